//! Workflows: what they offer, what they refuse or ask for, and what a send may change about them.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// One workflow, `work`, and a model that plays these turns.
async fn with(workflow: &Value, turns: Vec<Turn>) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    for turn in turns {
        provider.then(turn);
    }
    let daemon = Daemon::with(&provider, json!({ "workflows": { "work": workflow } })).await;
    for file in ["src/a.rs", "src/deep/b.rs", "docs/c.md", "secret/d.txt"] {
        daemon.file(file, "a needle\n");
    }
    let client = daemon.connect().await;
    (daemon, client, provider)
}

async fn go(client: &mut Client, more: &Value) -> Vec<Value> {
    let mut frame = json!({"type": "chat:send", "content": "go", "workflow": "work"});
    for (key, value) in more.as_object().unwrap() {
        frame[key] = value.clone();
    }
    client.send(frame).await;
    client.until("chat:stream-end").await;
    client.all("chat:tool-result")
}

fn said(result: &Value) -> &str {
    result["result"].as_str().unwrap()
}

async fn listed(client: &mut Client, more: &Value) -> Vec<String> {
    let mut frame = json!({"type": "tool:list", "workflow": "work"});
    for (key, value) in more.as_object().unwrap() {
        frame[key] = value.clone();
    }
    let answer = client.ask(frame).await;
    let tools = answer["payload"]["tools"].as_array().unwrap().clone();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn prompt_model_limits_and_tools_are_the_workflows() {
    let workflow = json!({
        "system_prompt": "You are the workflow.", "model": "its-model",
        "limits": { "max_turns": 1 },
        "tool_permissions": { "file_read": { "allowed": true } },
    });
    let turns = vec![
        Turn::call("file_read", &json!({"path": "src/a.rs"})),
        Turn::text("done"),
    ];
    let (_daemon, mut client, provider) = with(&workflow, turns).await;
    go(&mut client, &json!({"limits": {"maxTurns": 100}})).await;
    let asked = provider.requests();
    assert_eq!(asked[0]["model"], "its-model");
    assert!(
        asked[0]["messages"]
            .to_string()
            .contains("You are the workflow.")
    );
    // The model never sees what it may not use.
    let tools = asked[0]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["function"]["name"], "file_read");
    // A send narrows a limit and never widens it.
    let end = &client.all("chat:stream-end")[0];
    assert_eq!(end["stopReason"], "max_turns");
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_allowed_is_refused() {
    let workflow = json!({ "tool_permissions": { "file_read": { "allowed": true } } });
    let turns = vec![
        Turn::call("bash", &json!({"command": "touch made"})),
        Turn::text("done"),
    ];
    let (daemon, mut client, _provider) = with(&workflow, turns).await;
    let results = go(&mut client, &json!({"trustLevel": "autonomous"})).await;
    assert_eq!(results[0]["status"], "error");
    assert!(
        said(&results[0]).contains("not allowed"),
        "{}",
        said(&results[0])
    );
    assert!(!daemon.project().join("made").exists());
}

#[tokio::test]
async fn an_empty_map_and_none_mean_the_tools_that_only_read() {
    for workflow in [json!({}), json!({ "tool_permissions": {} })] {
        let (_daemon, mut client, _provider) = with(&workflow, Vec::new()).await;
        let names = listed(&mut client, &json!({})).await;
        assert!(names.contains(&"file_read".to_owned()));
        assert!(!names.contains(&"bash".to_owned()) && !names.contains(&"file_write".to_owned()));
    }
}

#[tokio::test]
async fn a_send_narrows_and_never_widens() {
    let workflow = json!({ "tool_permissions": {
        "file_read": { "allowed": true }, "file_list": { "allowed": true },
    } });
    let (_daemon, mut client, _provider) = with(&workflow, Vec::new()).await;
    let wider = json!({"toolPermissions": {
        "file_read": {"allowed": true}, "bash": {"allowed": true},
    }});
    assert_eq!(listed(&mut client, &wider).await, ["file_read"]);
    assert_eq!(
        listed(&mut client, &json!({})).await,
        ["file_list", "file_read"]
    );
}

#[tokio::test]
async fn a_path_outside_the_globs_is_refused_or_asked_for() {
    let workflow = || {
        json!({ "tool_permissions": {
            "file_write": { "allowed": true, "paths": ["src/**"] },
        } })
    };
    let write = |path: &str| Turn::call("file_write", &json!({"path": path, "content": "x"}));
    let (daemon, mut client, _provider) =
        with(&workflow(), vec![write("docs/new.md"), Turn::text("done")]).await;
    let results = go(&mut client, &json!({})).await;
    assert!(
        said(&results[0]).contains("outside the paths"),
        "{}",
        said(&results[0])
    );
    assert!(!daemon.project().join("docs/new.md").exists());

    let turns = vec![
        write("docs/new.md"),
        write("src/new.rs"),
        Turn::text("done"),
    ];
    let (daemon, mut client, _provider) = with(&workflow(), turns).await;
    client
        .send(
            json!({"type": "chat:send", "content": "go", "workflow": "work",
            "trustLevel": "autonomous"}),
        )
        .await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert!(confirm["reason"].as_str().unwrap().contains("docs/new.md"));
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
        .await;
    client.until("chat:stream-end").await;
    assert!(!daemon.project().join("docs/new.md").exists());
    assert!(daemon.project().join("src/new.rs").exists());
}

#[tokio::test]
async fn listing_and_searching_the_root_show_what_the_scope_shows() {
    let scoped = json!({ "allowed": true, "paths": ["src/**"] });
    let workflow = json!({ "tool_permissions": { "file_list": scoped, "file_search": scoped } });
    let turns = vec![
        Turn::call("file_list", &json!({})),
        Turn::call("file_search", &json!({"pattern": "needle"})),
        Turn::call("file_list", &json!({"path": "src/deep"})),
        Turn::call("file_list", &json!({"path": "secret"})),
        Turn::call(
            "file_search",
            &json!({"pattern": "needle", "path": "secret/d.txt"}),
        ),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = with(&workflow, turns).await;
    let results = go(&mut client, &json!({})).await;
    for result in &results[..2] {
        assert_eq!(result["status"], "success", "{result}");
        assert!(said(result).contains("src/a.rs") && said(result).contains("src/deep/b.rs"));
        assert!(!said(result).contains("secret") && !said(result).contains("docs"));
        assert!(said(result).contains("outside the paths that may be seen here are left out"));
    }
    assert!(said(&results[2]).contains("src/deep/b.rs"));
    for result in &results[3..5] {
        assert_eq!(result["status"], "error");
        assert!(said(result).contains("outside the paths"), "{result}");
        assert!(!said(result).contains("a needle"));
    }
}

#[tokio::test]
async fn time_and_danger_are_bound_by_the_permission() {
    let workflow = json!({ "trust_level": "autonomous", "tool_permissions": {
        "bash": { "allowed": true, "timeout": "200ms", "deny": ["touch **"] },
    } });
    let bash = |command: &str| Turn::call("bash", &json!({"command": command, "timeout": 60}));
    let turns = vec![
        bash("sleep 60"),
        bash("touch made"),
        bash("rm -rf src"),
        Turn::text("done"),
    ];
    let (daemon, mut client, _provider) = with(&workflow, turns).await;
    client
        .send(json!({"type": "chat:send", "content": "go", "workflow": "work"}))
        .await;
    // Dangerous, and the scope does not say `allow_dangerous`.
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["input"]["command"], "rm -rf src");
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
        .await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results[0]["metadata"]["timedOut"], true);
    assert!(said(&results[1]).contains("deny this command"));
    assert!(daemon.project().join("src/a.rs").exists());
    assert!(!daemon.project().join("made").exists());
}

#[tokio::test]
async fn a_workflow_that_there_is_not_is_said_with_those_there_are() {
    let (_daemon, mut client, _provider) = with(&json!({}), Vec::new()).await;
    let answer = client
        .ask(json!({"type": "chat:send", "content": "go", "workflow": "wrok"}))
        .await;
    assert_eq!(answer["payload"]["code"], "invalid_payload");
    let message = answer["payload"]["message"].as_str().unwrap();
    assert!(
        message.contains("no workflow `wrok`") && message.contains("work"),
        "{message}"
    );
}

#[tokio::test]
async fn a_workflow_says_what_becomes_of_a_violation() {
    let workflow =
        json!({"on_violation": "error", "tool_permissions": {"file_read": {"allowed": true}}});
    let read = || Turn::call("file_read", &json!({"path": "../a"}));
    let turns = vec![read(), Turn::text("sorry"), read()];
    let (_daemon, mut client, _provider) = with(&workflow, turns).await;
    let configure = |workflow: &str| json!({"type": "session:configure", "workflow": workflow});
    let answer = client.ask(configure("work")).await;
    assert_eq!(answer["payload"]["onViolation"], "error", "{answer}");
    go(&mut client, &json!({})).await;
    assert_eq!(client.all("chat:stream-end")[0]["stopReason"], "end_turn");
    let answer = client.ask(configure("")).await;
    assert_eq!(answer["payload"]["onViolation"], "stop", "{answer}");
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(
        client.all("chat:stream-end")[1]["stopReason"],
        "sandbox_violation"
    );
}

#[tokio::test]
async fn the_model_reads_its_roots_and_the_same_each_time() {
    let provider = Provider::start().await;
    provider.then(Turn::text("one")).then(Turn::text("two"));
    let daemon = Daemon::start(&provider).await;
    for _ in 0..2 {
        let mut client = daemon.connect().await;
        client.say("go").await;
        client.until("chat:stream-end").await;
    }
    let prompts: Vec<Value> = provider
        .requests()
        .iter()
        .map(|request| request["messages"][0].clone())
        .collect();
    assert_eq!(prompts[0], prompts[1]);
    let prompt = prompts[0].to_string();
    let root = daemon.project().canonicalize().unwrap();
    assert!(prompt.contains(root.to_str().unwrap()), "{prompt}");
    for placeholder in ["{root}", "{central}", "{project}"] {
        assert!(!prompt.contains(placeholder), "{prompt}");
    }
}

#[tokio::test]
async fn what_the_operator_locked_about_providers_stays() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hi"));
    let more = json!({
        "session": {"locked": ["providers"]},
        "providers": {"other": {"kind": "scripted"}},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    for refused in [
        json!({"type": "provider:configure", "provider": "test", "apiKey": "mine"}),
        json!({"type": "provider:configure", "provider": "openai", "baseUrl": "http://127.0.0.1:1"}),
        json!({"type": "session:configure", "provider": "other"}),
        json!({"type": "chat:send", "content": "go", "provider": "other"}),
    ] {
        let answer = client.ask(refused).await;
        assert_eq!(answer["payload"]["code"], "forbidden", "{answer}");
    }
    // The one that answers anyway may be named.
    let send = json!({"type": "chat:send", "content": "go", "provider": "test"});
    let answer = client.ask(send).await;
    assert_eq!(answer["type"], "chat:send-result", "{answer}");
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn no_send_widens_a_limit_that_the_operator_locked() {
    let provider = Provider::start().await;
    for _ in 0..3 {
        provider.then(Turn::text("hi"));
    }
    let more = json!({
        "session": {"locked": [
            "chat.max_turns", "chat.context_reserve", "chat.timeout_plain", "chat.timeout_tools",
        ]},
        "chat": {
            "max_turns": 5, "context_reserve": 1000, "timeout_plain": "1m", "timeout_tools": "2m",
        },
        "workflows": {"wide": {"limits": {"max_turns": 10}}},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let send = |workflow: &str, limits: Value| json!({"type": "chat:send", "content": "go", "workflow": workflow, "limits": limits});
    let plain = |limits: Value| {
        let mut send = send("", limits);
        send["toolPermissions"] = json!({"bash": {"allowed": false}});
        send
    };
    for (refused, key) in [
        (send("", json!({"maxTurns": 6})), "chat.max_turns"),
        (
            send("", json!({"contextReserve": 999})),
            "chat.context_reserve",
        ),
        (
            send("", json!({"timeoutMs": 120_001})),
            "chat.timeout_tools",
        ),
        (plain(json!({"timeoutMs": 60_001})), "chat.timeout_plain"),
    ] {
        let answer = client.ask(refused).await;
        assert_eq!(answer["payload"]["code"], "forbidden", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains(key), "{message}");
    }
    // Narrower is allowed, what the operator's own workflow gives, and what does not bind an exchange with tools.
    let narrow = json!({"maxTurns": 5, "contextReserve": 1000, "timeoutMs": 120_000});
    for allowed in [
        send("", narrow),
        send("wide", json!({"maxTurns": 8})),
        plain(json!({"timeoutMs": 60_000})),
    ] {
        let answer = client.ask(allowed).await;
        assert_eq!(answer["type"], "chat:send-result", "{answer}");
        client.until("chat:stream-end").await;
    }
}

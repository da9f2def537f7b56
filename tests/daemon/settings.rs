//! Settings that change while the daemon runs: by a request, and by reading the configuration again.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

async fn reload(client: &mut Client) -> Value {
    client.ask(json!({"type": "config:reload"})).await
}

#[tokio::test]
async fn what_may_change_does_and_the_rest_is_named() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let value = async |client: &mut Client, key: &str| {
        let got = client.ask(json!({"type": "config:get", "key": key})).await;
        got["payload"]["values"][0].clone()
    };
    let turns = value(&mut client, "chat.max_turns").await;
    assert_eq!(
        [&turns["value"], &turns["source"], &turns["live"]],
        [&json!(200), &json!("default"), &json!(true)]
    );
    let key = value(&mut client, "providers.test.api_key").await;
    assert_eq!(key["value"], "***");
    daemon.reconfigure(|config| {
        config["chat"]["max_turns"] = json!(1);
        config["server"]["max_connections"] = json!(9);
        config["providers"]["test"]["api_key"] = json!("another-key-0123456789");
        config["workflows"]["new"] = json!({"trust_level": "supervised"});
    });
    let reloaded = reload(&mut client).await["payload"].clone();
    assert_eq!(
        reloaded,
        json!({
            "changed": ["chat.max_turns", "providers.test.api_key", "workflows.new.trust_level"],
            "restart": ["server.max_connections"],
        })
    );
    // It comes by a way of its own, before the answer or after it.
    let is_told = |it: &Value| it["payload"]["code"] == "config_reloaded";
    let told = match client.seen.iter().find(|it| is_told(it)) {
        Some(told) => told.clone(),
        None => client.find(is_told).await,
    };
    let told = told["payload"]["message"].to_string();
    assert!(
        told.contains("server.max_connections") && !told.contains("another-key"),
        "{told}"
    );
    let turns = value(&mut client, "chat.max_turns").await;
    assert_eq!(turns["value"], 1);
    assert!(turns.get("pending").is_none());
    // What waits for a restart is not what counts.
    let most = value(&mut client, "server.max_connections").await;
    assert_eq!([&most["value"], &most["pending"]], [&json!(64), &json!(9)]);
    assert!(
        turns["source"].as_str().unwrap().starts_with("file "),
        "{turns}"
    );
    let listed = client.ask(json!({"type": "workflow:list"})).await;
    assert_eq!(listed["payload"]["workflows"][0]["name"], "new");
    // It counts for what is said from now on, in a session of before.
    provider
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::text("no more"));
    client.say("go").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "max_turns");
    let again = reload(&mut client).await["payload"].clone();
    assert_eq!(
        again,
        json!({"changed": [], "restart": ["server.max_connections"]})
    );
    // Who comes back is told what counts now.
    let query = format!("?session={}", client.session());
    let resumed = Client::connect(&daemon, &query).await;
    assert_eq!(resumed.seen[0]["payload"]["workflows"], json!(["new"]));
}

#[tokio::test]
async fn a_configuration_that_is_wrong_changes_nothing() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    daemon.reconfigure(|config| {
        config["chat"]["max_turns"] = json!("many");
        config["approval"]["timeout"] = json!("1m");
    });
    let refused = reload(&mut client).await;
    assert_eq!(refused["payload"]["code"], "config_invalid", "{refused}");
    let message = refused["payload"]["message"].as_str().unwrap();
    assert!(message.contains("chat.max_turns"), "{message}");
    let got = client
        .ask(json!({"type": "config:get", "key": "approval.timeout"}))
        .await;
    assert_eq!(got["payload"]["values"][0]["value"], "10m");
    let unknown = client
        .ask(json!({"type": "config:get", "key": "chatt"}))
        .await;
    assert_eq!(unknown["payload"]["code"], "invalid_payload");
}

#[cfg(unix)]
#[tokio::test]
async fn a_hangup_without_a_terminal_reads_the_configuration_again() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    daemon.reconfigure(|config| config["chat"]["max_turns"] = json!(7));
    let pid = rustix::process::Pid::from_raw(daemon.pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    client
        .find(|it| it["type"] == "session:notice" && it["payload"]["code"] == "config_reloaded")
        .await;
    daemon.reconfigure(|config| config["chat"]["max_turns"] = json!(-7));
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    client
        .find(|it| it["type"] == "session:notice" && it["payload"]["code"] == "config_invalid")
        .await;
}

#[tokio::test]
async fn an_approval_policy_answers_in_the_place_of_the_user() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for (policy, made, asked) in [
        ("deny_all", false, 0),
        ("auto_approve_safe", false, 1),
        ("ask", false, 1),
        ("allow_all", true, 0),
    ] {
        let configured = client
            .ask(json!({"type": "session:configure", "approvalPolicy": policy}))
            .await;
        assert_eq!(configured["payload"]["approvalPolicy"], policy);
        let before = client.all("chat:tool-confirm").len();
        provider
            .then(Turn::calls(&[
                ("bash", json!({"command": "touch made"})),
                ("bash", json!({"command": "ls"})),
            ]))
            .then(Turn::text("done"));
        client.say("go").await;
        // Whether a command that only reads is asked for as well is the difference between two of them.
        let questions = match policy {
            "ask" => asked + 1,
            _ => asked,
        };
        for _ in 0..questions {
            let confirm = client.until("chat:tool-confirm").await["payload"].clone();
            client
                .send(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
                .await;
        }
        client.until("chat:stream-end").await;
        assert_eq!(
            client.all("chat:tool-confirm").len() - before,
            questions,
            "{policy}"
        );
        assert_eq!(daemon.project().join("made").exists(), made, "{policy}");
    }
}

#[tokio::test]
async fn what_is_locked_by_a_reload_counts_in_a_session_that_had_loosened_it() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let loosen = json!({"type": "session:configure", "approvalPolicy": "allow_all"});
    let loosened = client.ask(loosen).await;
    assert_eq!(loosened["payload"]["approvalPolicy"], "allow_all");
    daemon.reconfigure(|config| {
        config["approval"]["policy"] = json!("deny_all");
        config["session"]["locked"] = json!(["approval.policy"]);
    });
    let reloaded = reload(&mut client).await["payload"].clone();
    assert_eq!(
        reloaded["changed"],
        json!(["approval.policy", "session.locked"])
    );
    provider
        .then(Turn::call("bash", &json!({"command": "touch made"})))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = client.all("chat:tool-result").pop().unwrap();
    assert_eq!(result["metadata"]["denied"], true, "{result}");
    assert!(!daemon.project().join("made").exists());
    let now = client.ask(json!({"type": "session:configure"})).await;
    assert_eq!(now["payload"]["approvalPolicy"], "deny_all");
}

#[tokio::test]
async fn a_provider_that_is_gone_forgets_its_key_and_a_new_one_waits_for_the_restart() {
    let provider = Provider::start().await;
    let entry = json!({"kind": "anthropic", "api_key": "another-key-0123456789"});
    let daemon = Daemon::with(&provider, json!({"providers": {"gone": entry.clone()}})).await;
    let mut client = daemon.connect().await;
    daemon.reconfigure(|config| {
        let providers = config["providers"].as_object_mut().unwrap();
        providers.remove("gone").unwrap();
        providers.insert("new".to_owned(), entry);
    });
    let reloaded = reload(&mut client).await["payload"].clone();
    assert_eq!(reloaded["changed"], json!(["providers.gone.api_key"]));
    let restart = reloaded["restart"].as_array().unwrap();
    for key in ["providers.gone.kind", "providers.new.api_key"] {
        assert!(restart.contains(&json!(key)), "{key}: {reloaded}");
    }
    let query = format!("?session={}", client.session());
    let resumed = Client::connect(&daemon, &query).await;
    let providers = resumed.seen[0]["payload"]["providers"].as_array().unwrap();
    let of = |id: &str| providers.iter().find(|it| it["id"] == id);
    assert_eq!(of("gone").unwrap()["configured"], false);
    assert_eq!(of("test").unwrap()["configured"], true);
    assert!(of("new").is_none());
}

#[tokio::test]
async fn what_the_operator_locked_stays() {
    let provider = Provider::start().await;
    let locked = json!({"session": {"locked": ["approval.policy", "tools.web_search"]}});
    let daemon = Daemon::with(&provider, locked).await;
    let mut client = daemon.connect().await;
    let configure = |policy: &str| json!({"type": "session:configure", "approvalPolicy": policy});
    let refused = client.ask(configure("allow_all")).await;
    assert_eq!(refused["payload"]["code"], "forbidden");
    let tighter = client.ask(configure("deny_all")).await;
    assert_eq!(tighter["payload"]["approvalPolicy"], "deny_all");
    for wanted in [
        json!({"type": "search:configure", "searxngUrl": "http://127.0.0.1:1"}),
        json!({"type": "workflow:put", "name": "mine", "workflow": {}}),
    ] {
        let refused = client.ask(wanted).await;
        assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
    }
}

#[tokio::test]
async fn how_the_web_is_searched_may_change() {
    let provider = Provider::start().await;
    let off = json!({"tools": {"web_search": {"searxng_url": ""}}});
    let daemon = Daemon::with(&provider, off).await;
    let mut client = daemon.connect().await;
    let key = "brave-key-that-is-a-secret";
    let set = client
        .ask(json!({"type": "search:configure", "searxngUrl": "http://127.0.0.1:1/", "braveApiKey": key}))
        .await;
    assert_eq!(
        set["payload"],
        json!({"searxngUrl": "http://127.0.0.1:1", "brave": true})
    );
    let cleared = client
        .ask(json!({"type": "search:configure", "braveApiKey": ""}))
        .await;
    assert_eq!(
        cleared["payload"],
        json!({"searxngUrl": "http://127.0.0.1:1", "brave": false})
    );
    // It outlives a reload that is about the search, and is what counts.
    daemon.reconfigure(|config| {
        config["tools"]["web_search"] = json!({"searxng_url": "http://127.0.0.1:2", "limit": 3});
    });
    let changed = reload(&mut client).await["payload"]["changed"].clone();
    assert!(
        changed
            .as_array()
            .unwrap()
            .contains(&json!("tools.web_search.limit"))
    );
    let got = client
        .ask(json!({"type": "config:get", "key": "tools.web_search.searxng_url"}))
        .await["payload"]["values"][0]
        .clone();
    assert_eq!(
        [&got["value"], &got["source"]],
        [&json!("http://127.0.0.1:1"), &json!("search:configure")]
    );
    provider
        .then(Turn::call("web_search", &json!({"query": "x"})))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = client.all("chat:tool-result")[0]["result"].to_string();
    assert!(
        result.contains("searxng") && !result.contains("no search engine"),
        "{result}"
    );
    for wrong in ["ftp://x", "http://u:p@x", "x"] {
        let refused = client
            .ask(json!({"type": "search:configure", "searxngUrl": wrong}))
            .await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{wrong}");
    }
    let log = std::fs::read_to_string(daemon.project().join("../log")).unwrap();
    assert!(!log.contains(key));
}

#[tokio::test]
async fn a_client_adds_workflows_where_the_operator_lets_it() {
    let provider = Provider::start().await;
    let own = json!({
        "session": {"allow_workflow_put": true},
        "workflows": {"own": {"trust_level": "supervised"}},
    });
    let daemon = Daemon::with(&provider, own).await;
    let mut client = daemon.connect().await;
    let put = |name: &str, workflow: Value| json!({"type": "workflow:put", "name": name, "workflow": workflow});
    let mine =
        json!({"systemPrompt": "Be brief.", "toolPermissions": {"file_read": {"allowed": true}}});
    let listed = client.ask(put("mine", mine)).await["payload"]["workflows"].clone();
    assert_eq!(
        [&listed[0]["name"], &listed[0]["put"]],
        [&json!("mine"), &json!(true)]
    );
    assert_eq!(listed[0]["tools"], json!(["file_read"]));
    assert_eq!(listed[1]["name"], "own");
    provider.then(Turn::text("a"));
    client
        .send(json!({"type": "chat:send", "content": "x", "workflow": "mine"}))
        .await;
    client.until("chat:stream-end").await;
    let request = &provider.requests()[0];
    assert_eq!(request["messages"][0]["content"], "Be brief.");
    assert_eq!(request["tools"].as_array().unwrap().len(), 1);
    for (wanted, code) in [
        (put("own", json!({})), "forbidden"),
        (put("", json!({})), "invalid_payload"),
        (
            put("a", json!({"provider": "nobody"})),
            "provider_not_found",
        ),
        (
            put("a", json!({"toolPermissions": {"bsh": {"allowed": true}}})),
            "invalid_payload",
        ),
        (
            put("a", json!({"limits": {"maxTurns": "x"}})),
            "invalid_payload",
        ),
    ] {
        let refused = client.ask(wanted.clone()).await;
        assert_eq!(refused["payload"]["code"], code, "{wanted}: {refused}");
    }
    let left = client
        .ask(json!({"type": "workflow:put", "name": "mine"}))
        .await;
    assert_eq!(left["payload"]["workflows"].as_array().unwrap().len(), 1);
}

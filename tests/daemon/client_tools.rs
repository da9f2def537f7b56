//! Tools that the client runs: offered, approved, handed out, answered once, whatever happens to the client.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// A tool that opens a file in an editor.
pub(crate) fn open_file() -> Value {
    json!({"name": "open_file", "description": "Opens a file in the editor.", "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["path"],
    }})
}

/// The same with other fields.
fn with(more: &Value) -> Value {
    let mut tool = open_file();
    for (key, value) in more.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

async fn register(client: &mut Client, tools: &[Value]) -> Value {
    client
        .ask(json!({"type": "tool:register", "tools": tools}))
        .await
}

/// Says something at a trust level where nothing is asked.
pub(crate) async fn go(client: &mut Client) {
    client
        .send(json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"}))
        .await;
}

async fn answer(client: &mut Client, call: &Value, more: &Value) -> Value {
    let mut frame = more.clone();
    frame["type"] = json!("chat:tool-output");
    frame["toolId"] = call["toolId"].clone();
    client.ask(frame).await
}

/// Has the model call `open_file` once and then say that it is done; returns the call as it was handed out.
async fn called(client: &mut Client, provider: &Provider, tool: &Value) -> Value {
    let registered = register(client, std::slice::from_ref(tool)).await;
    assert_eq!(registered["type"], "tool:register-result", "{registered}");
    provider
        .then(Turn::call(
            "client__open_file",
            &json!({"path": "a.rs", "line": 3}),
        ))
        .then(Turn::text("done"));
    go(client).await;
    client.until("chat:tool-call").await["payload"].clone()
}

/// The one result that the client was told of.
async fn result(client: &mut Client) -> Value {
    if client.all("chat:stream-end").is_empty() {
        client.until("chat:stream-end").await;
    }
    let results = client.all("chat:tool-result");
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

/// What the model was told in the last request.
fn told(provider: &Provider) -> String {
    let request = provider.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|it| it["role"] == "tool");
    last.unwrap()["content"].to_string()
}

#[tokio::test]
async fn a_call_is_handed_out_and_its_output_goes_to_the_model() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let features = &client.seen[0]["payload"]["features"];
    assert!(
        features
            .as_array()
            .unwrap()
            .contains(&json!("client_tools"))
    );
    let call = called(&mut client, &provider, &open_file()).await;
    assert_eq!(call["name"], "open_file");
    assert_eq!(call["toolName"], "client__open_file");
    assert_eq!(call["input"], json!({"path": "a.rs", "line": 3}));
    assert!(call["expiresAt"].is_string());
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["clientCalls"][0]["toolId"], call["toolId"]);
    assert_eq!(
        state["payload"]["conversations"][0]["state"],
        "awaiting-client"
    );
    answer(&mut client, &call, &json!({"chunk": "opening"})).await;
    let delta = client.all("chat:tool-delta");
    assert!(
        delta.iter().all(|it| it["stream"] == "progress"),
        "{delta:?}"
    );
    let output = json!({"content": "opened", "structured": {"line": 3}});
    let taken = answer(&mut client, &call, &output).await;
    assert_eq!(
        taken["payload"],
        json!({"toolId": call["toolId"], "accepted": true})
    );
    let result = result(&mut client).await;
    assert_eq!(result["status"], "success");
    assert!(result["result"].as_str().unwrap().ends_with("\nopened"));
    assert_eq!(result["metadata"]["provider"], "client");
    assert_eq!(result["metadata"]["results"], json!({"line": 3}));
    assert!(told(&provider).contains("do not follow instructions"));
    assert_eq!(client.all("chat:tool-delta")[0]["chunk"], "opening\n");
    // The client's tools are the last ones: what stands before them stays in a prompt cache.
    let request = &provider.requests()[0];
    let last = request["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(last["function"]["name"], "client__open_file");
    let list = client.ask(json!({"type": "tool:list"})).await;
    let tools = list["payload"]["tools"].as_array().unwrap();
    let ours = tools.iter().find(|it| it["origin"] == "client").unwrap();
    assert_eq!(ours["category"], "client");
    let state = client.ask(json!({"type": "session:state"})).await;
    assert!(state["payload"].get("clientCalls").is_none());
}

#[tokio::test]
async fn an_output_counts_once_and_is_known_when_it_comes_again() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let call = called(&mut client, &provider, &open_file()).await;
    let output = json!({"content": "opened"});
    answer(&mut client, &call, &output).await;
    let again = answer(&mut client, &call, &output).await;
    assert_eq!(again["payload"]["duplicate"], true, "{again}");
    let other = answer(&mut client, &call, &json!({"content": "another"})).await;
    assert_eq!(other["payload"]["code"], "tool_not_found", "{other}");
    let unknown = json!({"toolId": "t99"});
    let unknown = answer(&mut client, &unknown, &output).await;
    assert_eq!(unknown["payload"]["code"], "tool_not_found");
    result(&mut client).await;
    // A call that the daemon runs is none of the client's business.
    provider
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::text("done"));
    go(&mut client).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    let call = client.all("chat:tool-result")[1].clone();
    let forbidden = answer(&mut client, &call, &output).await;
    assert_eq!(forbidden["payload"]["code"], "forbidden", "{forbidden}");
}

#[tokio::test]
async fn an_output_that_does_not_fit_leaves_the_call_open() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let call = called(&mut client, &provider, &open_file()).await;
    for (wrong, said) in [
        (json!({}), "is needed"),
        (
            json!({"structured": "x".repeat(70_000)}),
            "field `structured`",
        ),
        (json!({"chunk": "x".repeat(20_000)}), "field `chunk`"),
        (
            json!({"content": [{"type": "image", "mediaType": "image/png", "data": "????"}]}),
            "field `content[0]`",
        ),
    ] {
        let error = answer(&mut client, &call, &wrong).await;
        assert_eq!(error["payload"]["code"], "invalid_payload", "{error}");
        let message = error["payload"]["message"].as_str().unwrap();
        assert!(
            message.contains(said) && message.contains("stays open"),
            "{message}"
        );
    }
    answer(
        &mut client,
        &call,
        &json!({"content": "no such file", "isError": true}),
    )
    .await;
    assert_eq!(result(&mut client).await["status"], "error");
}

#[tokio::test]
async fn what_the_model_calls_has_to_fit_the_schema() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    register(&mut client, &[open_file()]).await;
    provider
        .then(Turn::call("client__open_file", &json!({"line": "three"})))
        .then(Turn::text("done"));
    go(&mut client).await;
    let result = result(&mut client).await;
    assert!(
        result["result"].as_str().unwrap().contains("does not fit"),
        "{result}"
    );
    assert!(client.all("chat:tool-call").is_empty());
}

#[tokio::test]
async fn calls_of_one_turn_are_handed_out_together() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    register(&mut client, &[open_file()]).await;
    let paths: Vec<String> = (0..8).map(|number| format!("{number}.rs")).collect();
    let calls = paths
        .iter()
        .map(|path| ("client__open_file", json!({"path": path})));
    provider
        .then(Turn::calls(&calls.collect::<Vec<_>>()))
        .then(Turn::text("done"));
    go(&mut client).await;
    while client.all("chat:tool-call").len() < paths.len() {
        client.until("chat:tool-call").await;
    }
    let mut handed_out = client.all("chat:tool-call");
    handed_out.reverse();
    for call in &handed_out {
        let said = json!({"content": call["input"]["path"]});
        answer(&mut client, call, &said).await;
    }
    client.until("chat:stream-end").await;
    for (result, call) in client.all("chat:tool-result").iter().zip(&handed_out) {
        assert_eq!(result["toolId"], call["toolId"]);
        let text = result["result"].as_str().unwrap();
        assert!(
            text.ends_with(call["input"]["path"].as_str().unwrap()),
            "{text}"
        );
    }
    assert_eq!(client.all("chat:tool-result").len(), paths.len());
}

#[tokio::test]
async fn tools_come_and_go_in_the_middle_of_an_exchange() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let names = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap().iter();
        let names = tools.map(|it| it["function"]["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("client__")).collect()
    };
    let call = called(&mut client, &provider, &open_file()).await;
    let close = json!({"name": "close_file", "description": "Closes it.", "inputSchema": {}});
    let more = register(
        &mut client,
        &[close, with(&json!({"description": "Another."}))],
    )
    .await;
    let states = more["payload"]["tools"].as_array().unwrap();
    assert_eq!(
        [&states[0]["state"], &states[1]["state"]],
        ["new", "changed"]
    );
    answer(&mut client, &call, &json!({"content": "opened"})).await;
    client.until("chat:stream-end").await;
    let requests = provider.requests();
    assert_eq!(names(&requests[0]), ["client__open_file"]);
    assert_eq!(
        names(&requests[1]),
        ["client__close_file", "client__open_file"]
    );
    let gone = client
        .ask(json!({"type": "tool:unregister", "names": ["close_file"]}))
        .await;
    assert_eq!(gone["payload"]["removed"], json!(["client__close_file"]));
    let same = register(&mut client, &[with(&json!({"description": "Another."}))]).await;
    assert_eq!(same["payload"]["tools"][0]["state"], "unchanged");
    let all = client.ask(json!({"type": "tool:unregister"})).await;
    assert_eq!(all["payload"]["removed"], json!(["client__open_file"]));
    provider.then(Turn::text("bye"));
    go(&mut client).await;
    client.until("chat:stream-end").await;
    assert!(names(&provider.requests()[2]).is_empty());
}

#[tokio::test]
async fn a_tool_that_went_away_before_its_call_is_not_handed_out() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    register(&mut client, &[open_file()]).await;
    provider
        .then(Turn::call("client__open_file", &json!({"path": "a.rs"})))
        .then(Turn::text("done"));
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client.ask(json!({"type": "tool:unregister"})).await;
    client
        .send(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": true}))
        .await;
    let result = result(&mut client).await;
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("no longer offered"),
        "{result}"
    );
    assert!(client.all("chat:tool-call").is_empty());
}

#[tokio::test]
async fn approvals_hold_for_the_clients_tools_too() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    // What is declared, the trust level, and whether the user is asked.
    for (more, trust, asked) in [
        (json!({}), "guided", true),
        (json!({"readOnly": true}), "guided", true),
        (
            json!({"readOnly": true, "approval": "never"}),
            "guided",
            false,
        ),
        (
            json!({"readOnly": true, "approval": "never"}),
            "supervised",
            true,
        ),
        (json!({}), "autonomous", false),
        (json!({"approval": "always"}), "autonomous", true),
    ] {
        let mut client = daemon.connect().await;
        register(&mut client, &[with(&more)]).await;
        provider
            .then(Turn::call("client__open_file", &json!({"path": "a.rs"})))
            .then(Turn::text("done"));
        client
            .send(json!({"type": "chat:send", "content": "go", "trustLevel": trust}))
            .await;
        let kinds = ["chat:tool-confirm", "chat:tool-call"];
        let next = client
            .find(|it| kinds.iter().any(|kind| it["type"] == *kind))
            .await;
        assert_eq!(next["type"] == "chat:tool-confirm", asked, "{more} {trust}");
        if asked {
            let always = more["approval"] == "always";
            let remember = &next["payload"]["remember"]["approval"];
            assert!(
                !always || remember.as_array().is_none_or(Vec::is_empty),
                "{next}"
            );
            client
                .send(json!({"type": "chat:tool-approve", "toolId": next["payload"]["toolId"], "approved": false}))
                .await;
        } else {
            answer(&mut client, &next["payload"], &json!({"content": "ok"})).await;
        }
        result(&mut client).await;
    }
}

#[tokio::test]
async fn an_approval_that_is_remembered_is_for_the_tool_as_it_was() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    provider.by_rule(|last| match last["role"] == "user" {
        true => Turn::call("client__open_file", &json!({"path": "a.rs"})),
        false => Turn::text("done"),
    });
    let mut asked = Vec::new();
    for description in ["One.", "One.", "Another."] {
        register(&mut client, &[with(&json!({"description": description}))]).await;
        client.say("go").await;
        let kinds = ["chat:tool-confirm", "chat:tool-call"];
        let mut next = client
            .find(|it| kinds.iter().any(|kind| it["type"] == *kind))
            .await;
        asked.push(next["type"] == "chat:tool-confirm");
        if next["type"] == "chat:tool-confirm" {
            client
                .send(json!({"type": "chat:tool-approve", "toolId": next["payload"]["toolId"], "approved": true, "remember": "session"}))
                .await;
            next = client.until("chat:tool-call").await;
        }
        answer(&mut client, &next["payload"], &json!({"content": "ok"})).await;
        client.until("chat:stream-end").await;
    }
    assert_eq!(asked, [true, false, true]);
}

#[tokio::test]
async fn a_map_of_permissions_offers_the_clients_tools_that_it_names() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let never = with(&json!({"readOnly": true, "approval": "never"}));
    register(&mut client, &[never]).await;
    for (map, offered) in [
        (json!({}), false),
        (json!({"file_list": {"allowed": true}}), false),
        (json!({"client__*": {"allowed": true}}), true),
    ] {
        let list = client
            .ask(json!({"type": "tool:list", "toolPermissions": map}))
            .await;
        let tools = list["payload"]["tools"].as_array().unwrap();
        let found = tools.iter().any(|it| it["name"] == "client__open_file");
        assert_eq!(found, offered, "{map}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_taken_back_and_its_late_output_refused() {
    for by in ["chat:cancel", "tool:cancel"] {
        let provider = Provider::start().await;
        let daemon = Daemon::start(&provider).await;
        let mut client = daemon.connect().await;
        let call = called(&mut client, &provider, &open_file()).await;
        let cancel = match by {
            "tool:cancel" => json!({"type": by, "toolId": call["toolId"]}),
            _ => json!({"type": by}),
        };
        client.send(cancel).await;
        let back = client.until("chat:tool-cancelled").await;
        assert_eq!(back["payload"]["reason"], "cancel");
        let result = result(&mut client).await;
        assert_eq!(result["metadata"]["cancelled"], true, "{result}");
        assert!(
            result["result"].as_str().unwrap().contains("is unknown"),
            "{result}"
        );
        let late = answer(&mut client, &call, &json!({"content": "opened"})).await;
        assert_eq!(late["payload"]["code"], "tool_not_found");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    called(&mut client, &provider, &with(&json!({"timeoutMs": 1000}))).await;
    let back = client.until("chat:tool-cancelled").await;
    assert_eq!(back["payload"]["reason"], "timeout");
    let result = result(&mut client).await;
    assert_eq!(result["metadata"]["timedOut"], true);
    assert!(
        result["result"].as_str().unwrap().contains("within 1 s"),
        "{result}"
    );
}

#[tokio::test]
async fn a_client_that_comes_back_goes_on_with_its_calls() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    let call = called(&mut client, &provider, &open_file()).await;
    let after = client.seen.last().unwrap()["seq"].as_u64().unwrap();
    drop(client);
    let mut client = Client::connect(&daemon, &format!("?session={session}&after={after}")).await;
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["clientCalls"][0]["toolId"], call["toolId"]);
    assert!(
        client.all("chat:tool-call").is_empty(),
        "it was told before"
    );
    let same = register(&mut client, &[open_file()]).await;
    assert_eq!(same["payload"]["tools"][0]["state"], "unchanged");
    let output = json!({"content": "opened"});
    // As if the answer to the first one had been lost.
    answer(&mut client, &call, &output).await;
    let again = answer(&mut client, &call, &output).await;
    assert_eq!(again["payload"]["accepted"], true);
    assert_eq!(result(&mut client).await["status"], "success");
}

#[tokio::test]
async fn a_client_that_missed_events_is_told_of_its_open_calls() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"session": {"buffer_bytes": "64KiB"}})).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    let call = called(&mut client, &provider, &open_file()).await;
    let large = json!({"name": "large", "description": "x", "inputSchema": {"description": "x".repeat(40_000)}});
    register(&mut client, &[large]).await;
    for _ in 0..4 {
        client.ask(json!({"type": "tool:list"})).await;
    }
    drop(client);
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=1")).await;
    let gap = client.until("session:error").await;
    assert_eq!(gap["payload"]["code"], "replay_gap");
    let told = client.until("chat:tool-call").await;
    assert_eq!(told["payload"]["toolId"], call["toolId"]);
    assert!(told["payload"]["expiresAt"].is_string());
    answer(&mut client, &call, &json!({"content": "opened"})).await;
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn a_client_that_takes_over_without_the_tool_ends_its_calls() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    called(&mut first, &provider, &open_file()).await;
    let after = first.seen.last().unwrap()["seq"].as_u64().unwrap();
    let mut second = Client::connect(&daemon, &format!("?session={session}&after={after}")).await;
    let none = json!({"type": "tool:register", "tools": [], "replace": true});
    let removed = second.ask(none).await;
    assert_eq!(removed["payload"]["removed"], json!(["client__open_file"]));
    if second.all("chat:stream-end").is_empty() {
        second.until("chat:stream-end").await;
    }
    let back = second.all("chat:tool-cancelled");
    assert_eq!(back[0]["reason"], "gone");
    let results = second.all("chat:tool-result");
    assert_eq!(results.len(), 1);
    assert!(
        results[0]["result"].as_str().unwrap().contains("went away"),
        "{results:?}"
    );
}

#[tokio::test]
async fn the_same_client_may_drop_a_tool_and_still_answer() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let call = called(&mut client, &provider, &open_file()).await;
    client
        .ask(json!({"type": "tool:register", "tools": [], "replace": true}))
        .await;
    answer(&mut client, &call, &json!({"content": "opened"})).await;
    assert_eq!(result(&mut client).await["status"], "success");
}

#[tokio::test]
async fn a_call_whose_client_stays_away_ends_with_the_session() {
    let provider = Provider::start().await;
    let more = json!({"session": {"resume_grace": "100ms"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    let call = called(&mut client, &provider, &open_file()).await;
    drop(client);
    eventually("the end of the session", async || {
        let mut log = daemon.log().into_iter();
        log.any(|line| line["message"] == "used in all")
    })
    .await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let history = client.ask(json!({"type": "chat:history"})).await;
    let mut messages = history["payload"]["messages"].as_array().unwrap().iter();
    let resumed = messages.find(|it| it["role"] == "tool").unwrap();
    assert_eq!(resumed["toolCallId"], call["toolId"]);
    let text = resumed["content"].as_str().unwrap();
    assert!(text.contains("is unknown"), "{text}");
}

#[tokio::test]
async fn a_call_that_was_open_when_the_daemon_was_killed_has_one_result() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let session = client.session();
    let call = called(&mut client, &provider, &open_file()).await;
    drop(client);
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let history = client.ask(json!({"type": "chat:history"})).await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    let results: Vec<&Value> = messages.iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(results.len(), 1, "{messages:?}");
    assert_eq!(results[0]["toolCallId"], call["toolId"]);
    let state = client.ask(json!({"type": "session:state"})).await;
    assert!(
        state["payload"].get("clientCalls").is_none(),
        "never handed out again"
    );
    let late = answer(&mut client, &call, &json!({"content": "opened"})).await;
    assert_eq!(late["payload"]["code"], "tool_not_found");
    let list = client.ask(json!({"type": "tool:list"})).await;
    let tools = list["payload"]["tools"].as_array().unwrap();
    assert!(tools.iter().all(|it| it["origin"] != "client"));
}

#[tokio::test]
async fn what_cannot_be_registered_is_named() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let many: Vec<Value> = (0..65)
        .map(|number| with(&json!({"name": format!("t{number}")})))
        .collect();
    for (tools, code, said) in [
        (
            vec![with(&json!({"name": "a__b"}))],
            "invalid_payload",
            "`tools[0].name`",
        ),
        (
            vec![open_file(), with(&json!({"name": "b", "description": " "}))],
            "invalid_payload",
            "`tools[1].description`",
        ),
        (
            vec![with(&json!({"inputSchema": {"type": "array"}}))],
            "invalid_payload",
            "`tools[0].inputSchema`",
        ),
        (
            vec![with(&json!({"timeoutMs": 5}))],
            "invalid_payload",
            "`tools[0].timeoutMs`",
        ),
        (
            vec![open_file(), open_file()],
            "invalid_payload",
            "there twice",
        ),
        (
            vec![with(&json!({"approval": "never"}))],
            "forbidden",
            "tools.client.skip_approval",
        ),
        (many, "too_many_tools", "64"),
    ] {
        let error = register(&mut client, &tools).await;
        assert_eq!(error["payload"]["code"], code, "{error}");
        let message = error["payload"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
    let capped = register(&mut client, &[with(&json!({"timeoutMs": 86_400_000}))]).await;
    assert_eq!(capped["payload"]["tools"][0]["timeoutMs"], 600_000);
}

#[tokio::test]
async fn an_operator_may_have_no_tools_of_clients() {
    let provider = Provider::start().await;
    let more = json!({"tools": {"client": {"enabled": false}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let features = &client.seen[0]["payload"]["features"];
    assert!(
        !features
            .as_array()
            .unwrap()
            .contains(&json!("client_tools"))
    );
    let error = register(&mut client, &[open_file()]).await;
    assert_eq!(error["payload"]["code"], "forbidden");
}

//! What surrounds calls: states, limits, environment, requests about servers, the end.

use serde_json::{Value, json};

use super::{AUTONOMOUS, Fake, call, until_state, with_fake};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

#[tokio::test]
async fn a_server_that_never_answers_holds_up_nothing() {
    let (_fake, _daemon, mut client, _provider) =
        with_fake(vec![Turn::text("hello")], &["mute"], &json!({})).await;
    client.say("hi").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.text_said(), "hello");
    let listed = client.ask(json!({"type": "mcp:list"})).await;
    assert_eq!(listed["payload"]["servers"][0]["state"], "starting");
}

#[tokio::test]
async fn a_server_that_cannot_be_started_says_why() {
    let provider = Provider::start().await;
    let servers = json!({ "mcp": { "servers": { "gone": { "command": "no-such-server" } } } });
    let daemon = Daemon::with(&provider, servers).await;
    let mut client = daemon.connect().await;
    let row = until_state(&mut client, "gone", "failed").await;
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("no-such-server") && error.contains("env.PATH"),
        "{error}"
    );
}

#[tokio::test]
async fn the_last_words_of_a_server_that_ends_are_shown_without_secrets() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    let mut server = fake.config(&["broken"]);
    server["env"] = json!({"FAKE_TOKEN": "secret-of-the-server-123"});
    let daemon = Daemon::with(&provider, json!({ "mcpServers": { "fake": server } })).await;
    let mut client = daemon.connect().await;
    let row = until_state(&mut client, "fake", "restarting").await;
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("exit code 7") && error.contains("no such database"),
        "{error}"
    );
    assert!(!error.contains("secret-of-the-server-123"), "{error}");
}

#[tokio::test]
async fn nothing_of_a_stubborn_server_outlives_the_daemon() {
    let (fake, mut daemon, mut client, _provider) =
        with_fake(Vec::new(), &["stubborn"], &json!({})).await;
    until_state(&mut client, "fake", "ready").await;
    assert!(fake.processes() > 0);
    drop(daemon.stdin.take());
    let status = daemon.child.wait().await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(fake.processes(), 0);
}

#[tokio::test]
async fn a_server_gets_its_own_variables_and_none_of_the_daemons_secrets() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.then(call("environment")).then(Turn::text("done"));
    let mut server = fake.config(&[]);
    server["env"] = json!({"FAKE_TOKEN": "for the server alone"});
    let mut config = AUTONOMOUS();
    config["mcpServers"] = json!({ "fake": server });
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let environment = fake.note("environment").unwrap();
    assert!(
        environment.contains("FAKE_TOKEN=for the server alone"),
        "{environment}"
    );
    for secret in ["test-key-0123456789", &daemon.token] {
        assert!(!environment.contains(secret), "{environment}");
    }
    // Not the user's home, but a place of its own.
    let home = environment
        .lines()
        .find(|line| line.starts_with("HOME="))
        .unwrap();
    assert!(home.ends_with("/.mcp/fake"), "{home}");
}

#[tokio::test]
async fn what_a_server_asks_of_the_user_is_declined() {
    let turns = vec![call("ask"), Turn::text("done")];
    let (fake, _daemon, mut client, _provider) = with_fake(turns, &[], &AUTONOMOUS()).await;
    until_state(&mut client, "fake", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let answer: Value = serde_json::from_str(&fake.note("answer").unwrap()).unwrap();
    assert_eq!(answer["id"], 901);
    assert_eq!(answer["result"]["action"], "decline");
    let notices = client.all("session:notice");
    let declined = notices
        .iter()
        .find(|notice| notice["code"] == "mcp_input_declined");
    let message = declined.unwrap()["message"].as_str().unwrap();
    assert!(message.contains("inputRequests"), "{message}");
    assert_eq!(client.all("chat:tool-input-request").len(), 0);
}

#[tokio::test]
async fn odd_names_and_pages_are_taken_as_they_come() {
    let (_fake, _daemon, mut client, _provider) = with_fake(Vec::new(), &["big"], &json!({})).await;
    let row = until_state(&mut client, "fake", "ready").await;
    let names: Vec<&str> = row["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 3);
    for name in &names {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        assert!(name.len() <= 64 && name.chars().all(fits), "{name}");
        assert!(name.starts_with("mcp__fake__a_"), "{name}");
    }
}

#[tokio::test]
async fn resources_and_prompts_are_passed_on_as_they_are() {
    let (_fake, _daemon, mut client, _provider) = with_fake(Vec::new(), &[], &json!({})).await;
    let read = json!({"type": "mcp:read-resource", "server": "fake", "uri": "fake://one"});
    let answer = client.ask(read).await;
    assert_eq!(answer["type"], "mcp:read-resource-result");
    assert_eq!(answer["payload"]["contents"][0]["text"], "inside");
    let get = json!({"type": "mcp:get-prompt", "server": "fake", "name": "greet"});
    let answer = client.ask(get).await;
    assert_eq!(answer["payload"]["messages"][0]["content"]["text"], "hello");
    let unknown = json!({"type": "mcp:read-resource", "server": "other", "uri": "x"});
    let answer = client.ask(unknown).await;
    assert_eq!(answer["payload"]["code"], "mcp_error");
    assert_eq!(
        answer["payload"]["message"],
        "there is no MCP server `other`; there are: fake"
    );
}

#[tokio::test]
async fn servers_come_and_go_where_the_operator_lets_clients() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({ "mcp": { "allow_runtime_add": true } })).await;
    let mut client = daemon.connect().await;
    let mut add = fake.config(&[]);
    add["type"] = json!("mcp:add");
    add["name"] = json!("late");
    let added = client.ask(add.clone()).await;
    assert_eq!(added["type"], "mcp:add-result", "{added}");
    assert_eq!(added["payload"]["state"], "starting");
    let row = until_state(&mut client, "late", "ready").await;
    assert!(row["tools"].to_string().contains("mcp__late__echo"));
    let twice = client.ask(add).await;
    assert_eq!(twice["payload"]["code"], "mcp_error");
    let removed = client
        .ask(json!({"type": "mcp:remove", "name": "late"}))
        .await;
    assert_eq!(removed["payload"]["state"], "stopped");
    assert_eq!(fake.processes(), 0);
    let listed = client.ask(json!({"type": "mcp:list"})).await;
    assert_eq!(listed["payload"]["servers"], json!([]));
    let tools = client.ask(json!({"type": "tool:list"})).await;
    assert!(!tools.to_string().contains("mcp__"));
    for wrong in [
        json!({"type": "mcp:add", "name": "", "command": "x"}),
        json!({"type": "mcp:add", "name": "a", "command": "x", "url": "https://x"}),
        json!({"type": "mcp:add", "name": "a", "url": "http://example.org/mcp"}),
        json!({"type": "mcp:add", "name": "a", "url": "https://169.254.169.254/"}),
        json!({"type": "mcp:add", "name": "a", "command": "x", "args": ["a\u{0}b"]}),
    ] {
        let answer = client.ask(wrong.clone()).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{wrong}");
    }
}

#[tokio::test]
async fn servers_are_not_added_where_the_operator_does_not_let_clients() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for frame in [
        json!({"type": "mcp:add", "name": "x", "command": "touch"}),
        json!({"type": "mcp:remove", "name": "x"}),
    ] {
        let answer = client.ask(frame).await;
        assert_eq!(answer["payload"]["code"], "forbidden");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains("mcp.allow_runtime_add"), "{message}");
    }
}

#[tokio::test]
async fn a_workflow_names_the_tools_of_a_server_by_a_pattern() {
    let workflow = json!({ "workflows": { "narrow": {
        "tool_permissions": { "mcp__fake__e*": { "allowed": true } },
    } } });
    let turns = vec![call("fail"), Turn::text("done")];
    let (_fake, _daemon, mut client, provider) = with_fake(turns, &[], &workflow).await;
    until_state(&mut client, "fake", "ready").await;
    let listed = client
        .ask(json!({"type": "tool:list", "workflow": "narrow"}))
        .await;
    let names: Vec<Value> = listed["payload"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["mcp__fake__echo", "mcp__fake__environment"]);
    client
        .send(json!({"type": "chat:send", "content": "go", "workflow": "narrow"}))
        .await;
    client.until("chat:stream-end").await;
    assert!(
        !provider.requests()[0]["tools"]
            .to_string()
            .contains("mcp__fake__fail")
    );
    assert_eq!(client.all("chat:tool-result")[0]["status"], "error");
}

#[tokio::test]
async fn only_the_operators_word_makes_a_tool_safe() {
    let turns = vec![call("echo"), Turn::text("done")];
    let fake = Fake::new();
    let provider = Provider::start().await;
    for turn in turns {
        provider.then(turn);
    }
    let mut server = fake.config(&[]);
    server["safe_tools"] = json!(["echo"]);
    let daemon = Daemon::with(
        &provider,
        json!({ "mcp": { "servers": { "fake": server } } }),
    )
    .await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 0);
    assert_eq!(client.all("chat:tool-result")[0]["status"], "success");
}

#[tokio::test]
async fn a_call_has_a_time_limit_that_the_server_learns_of() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.then(call("slow")).then(Turn::text("done"));
    let mut server = fake.config(&[]);
    server["timeout"] = json!("300ms");
    let mut config = AUTONOMOUS();
    config["mcp"] = json!({ "servers": { "fake": server } });
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["metadata"]["timedOut"], true);
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("did not answer within 0.3 s"), "{said}");
    client
        .ask(json!({"type": "mcp:read-resource", "server": "fake", "uri": "fake://one"}))
        .await;
    assert!(fake.note("cancelled").unwrap().contains("timed out"));
}

#[tokio::test]
async fn an_endpoint_that_speaks_something_else_is_said() {
    let provider = Provider::start().await;
    let servers = json!({ "mcpServers": {
        "old": { "type": "sse", "url": format!("{}/sse", provider.url()) },
    } });
    let daemon = Daemon::with(&provider, servers).await;
    let mut client = daemon.connect().await;
    let row = until_state(&mut client, "old", "restarting").await;
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("over the older HTTP+SSE transport"),
        "{error}"
    );
}

#[tokio::test]
async fn what_a_sick_server_sends_costs_that_and_no_more() {
    let turns = vec![call("huge"), call("weird"), Turn::text("done")];
    let (_fake, _daemon, mut client, _provider) = with_fake(turns, &["sick"], &AUTONOMOUS()).await;
    let row = until_state(&mut client, "fake", "ready").await;
    assert_eq!(
        row["tools"],
        json!(["mcp__fake__huge", "mcp__fake__weird"]),
        "{row}"
    );
    client.say("go").await;
    let huge = client.until("chat:tool-result").await;
    let weird = client.until("chat:tool-result").await;
    let said = |result: &Value| result["payload"]["result"].as_str().unwrap().to_owned();
    assert_eq!(huge["payload"]["status"], "error");
    assert!(said(&huge).contains("bytes, more than the"), "{huge}");
    assert_eq!(weird["payload"]["status"], "success");
    assert!(said(&weird).contains("[content of \"weird\"") && said(&weird).contains("the rest"));
}

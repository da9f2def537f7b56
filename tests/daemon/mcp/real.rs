//! What a server of others has besides tools: all of it, of `server-everything`; and that server over the older transport.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::input::opt_in;
use super::peers::{everything, npm};
use super::{AUTONOMOUS, until_state};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

#[tokio::test]
async fn everything_that_is_no_tool() {
    let Some(folder) = npm() else { return };
    let provider = Provider::start().await;
    let call = |tool: &str, input| Turn::call(&format!("mcp__peer__{tool}"), &input);
    provider
        .then(call("get-roots-list", json!({})))
        .then(call("toggle-subscriber-updates", json!({})))
        .then(call(
            "trigger-sampling-request",
            json!({"prompt": "the weather", "maxTokens": 20}),
        ))
        .then(Turn::text("it rains"))
        .then(Turn::text("done"));
    let mut config = AUTONOMOUS();
    let server = json!({"command": "node", "args": [everything(folder), "stdio"], "sampling": "ask", "log_level": "info"});
    config["mcp"] = json!({ "servers": { "peer": server } });
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "peer", "ready").await;
    opt_in(&mut client).await;
    let layers = json!({"type": "session:configure", "layers": ["stream", "state", "servers"]});
    client.ask(layers).await;

    let prompt = json!({"type": "mcp:use-prompt", "command": "peer:args-prompt", "line": "Rome state='the old one'"});
    let used = client.ask(prompt).await;
    assert_eq!(
        used["payload"]["content"][0]["text"],
        "What's weather in Rome, the old one?"
    );
    let without = json!({"type": "mcp:use-prompt", "command": "peer:args-prompt"});
    let refused = client.ask(without).await;
    let why = refused["payload"]["message"].as_str().unwrap();
    assert!(why.contains("it needs `city`"), "{why}");

    let list = json!({"type": "mcp:list-resources", "server": "peer"});
    let listed = client.ask(list).await["payload"].clone();
    assert_eq!(listed["canSubscribe"], true, "{listed}");
    let templates = listed["templates"].to_string();
    assert!(
        templates.contains("demo://resource/dynamic/text/{resourceId}"),
        "{templates}"
    );
    let read = json!({"type": "mcp:read-resource", "server": "peer", "uri": "demo://resource/dynamic/text/1"});
    let read = client.ask(read).await["payload"].clone();
    assert!(read["contents"][0]["text"].is_string(), "{read}");

    let follow =
        json!({"type": "mcp:subscribe", "server": "peer", "uri": "demo://resource/dynamic/text/1"});
    let followed = client.ask(follow).await;
    assert_eq!(followed["type"], "mcp:subscribe-result", "{followed}");
    // The server tells of other things, too, whenever it comes to them.
    let is_told = |client: &Client| {
        let lines = client.all("mcp:log");
        lines
            .iter()
            .any(|line| line["text"].to_string().contains("Subscribe Resource"))
    };
    while !is_told(&client) {
        client.until("mcp:log").await;
    }

    client.say("go").await;
    for purpose in ["sampling", "sampledAnswer"] {
        let request = client.until("chat:tool-input-request").await["payload"].clone();
        assert_eq!(request["purpose"], purpose, "{request}");
        let yes = json!({"type": "chat:tool-input", "requestId": request["requestId"], "action": "accept"});
        client.ask(yes).await;
    }
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    let said = |at: usize| results[at]["result"].as_str().unwrap();
    let ready = client.all("session:ready")[0].clone();
    assert!(
        said(0).contains(ready["project"]["root"].as_str().unwrap()),
        "{}",
        said(0)
    );
    assert!(said(2).contains("it rains"), "{}", said(2));
    if client.all("mcp:resource-updated").is_empty() {
        client.until("mcp:resource-updated").await;
    }
}

#[tokio::test]
async fn everything_over_the_older_transport() {
    let Some(folder) = npm() else { return };
    // It takes no port 0. Other ports than those of the test over streamable HTTP.
    let port = 10_000 + std::process::id() % 10_000;
    let mut server = tokio::process::Command::new("node")
        .arg(everything(folder))
        .arg("sse")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap();
        let line = line.unwrap_or_else(|| panic!("it does not listen on port {port}"));
        if line.contains("running on port") {
            break;
        }
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let provider = Provider::start().await;
    provider
        .then(Turn::call(
            "mcp__peer__echo",
            &json!({"message": "over the old wire"}),
        ))
        .then(Turn::text("done"));
    let mut config = AUTONOMOUS();
    let url = format!("http://127.0.0.1:{port}/sse");
    config["mcp"] = json!({"servers": {"peer": {"url": url}}});
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "peer", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = client.all("chat:tool-result")[0].clone();
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("over the old wire"),
        "{result}"
    );
}

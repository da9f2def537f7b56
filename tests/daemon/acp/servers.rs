//! MCP servers that the editor names: they serve one session, and go with it.

use serde_json::{Value, json};

use super::{Editor, given};
use crate::mcp::Fake;
use crate::mcp::sign_in::elsewhere::{kept_by, signed_in_elsewhere};
use crate::mcp::sign_in::fake;
use crate::support::provider::Turn;
use crate::support::{Provider, eventually};

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    let names = tools.filter_map(|tool| tool["function"]["name"].as_str());
    names.filter(|name| name.starts_with("mcp__")).collect()
}

#[tokio::test]
async fn each_session_has_its_own_and_keeps_their_names() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let more = json!({"mcpServers": {"taken": fake.config(&[])}});
    let mut editor = Editor::start(&provider, more).await;
    editor.initialize(json!({})).await;
    let servers = json!([given(&fake, "given"), given(&fake, "taken")]);
    let open = json!({"cwd": editor.cwd(), "mcpServers": servers});
    // Both at once, as editors do.
    let opening = [
        editor.send("session/new", open.clone()).await,
        editor.send("session/new", open.clone()).await,
    ];
    let mut sessions = Vec::new();
    while sessions.len() < 2 {
        let frame = editor.next().await;
        if frame["id"].as_u64().is_some_and(|id| opening.contains(&id)) {
            sessions.push(frame["result"]["sessionId"].as_str().unwrap().to_owned());
        }
    }
    for session in &sessions {
        assert_eq!(editor.turn(session, "hi").await, "end_turn");
        let asked = provider.requests().last().unwrap().clone();
        let mut servers: Vec<_> = tools(&asked)
            .iter()
            .filter_map(|name| name.split("__").nth(1))
            .collect();
        // The daemon's own may be there a little later.
        servers.retain(|name| *name != "taken");
        servers.sort_unstable();
        servers.dedup();
        assert_eq!(servers, ["given", "taken-2"], "{}", editor.said());
    }
    eventually("each server runs", async || fake.processes() == 5).await;
    // What is loaded anew has the same names.
    let load = json!({"sessionId": sessions[0], "cwd": editor.cwd(), "mcpServers": [given(&fake, "given")]});
    editor.ask("session/load", load).await;
    editor.turn(&sessions[0], "again").await;
    let asked = provider.requests().last().unwrap().clone();
    assert!(
        tools(&asked)
            .iter()
            .any(|it| it.starts_with("mcp__given__"))
    );
    assert!(
        !tools(&asked).iter().any(|it| it.contains("-2__")),
        "{:?}",
        tools(&asked)
    );
    for session in &sessions {
        editor
            .ask("session/close", json!({"sessionId": session}))
            .await;
    }
    // The daemon's own is left.
    eventually("the servers of the sessions are gone", async || {
        fake.processes() == 1
    })
    .await;
}

#[tokio::test]
async fn a_server_that_takes_long_is_waited_for_aloud() {
    let provider = Provider::start().await;
    let mut editor = Editor::start(&provider, json!({})).await;
    editor.initialize(json!({})).await;
    let slow = json!({"name": "slow", "command": "sleep", "args": ["1000"], "env": []});
    let opened = editor
        .ask(
            "session/new",
            json!({"cwd": editor.cwd(), "mcpServers": [slow]}),
        )
        .await;
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let turn = editor.prompt(&session, "hi").await;
    let waits = "*Waiting for MCP server `slow`.*\n\n";
    editor
        .until(|frame| frame["params"]["update"]["content"]["text"] == waits)
        .await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let outcome = editor.outcome(turn).await;
    assert_eq!(outcome["result"]["stopReason"], "cancelled");
    assert!(provider.requests().is_empty());
}

/// An agent has no port for the answer of a page: somebody signs in by another process, as it says.
#[tokio::test]
async fn a_server_is_there_once_another_process_has_signed_in() {
    let docs = fake::Fake::start().await;
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("ok"));
    let servers = json!({"docs": docs.config(&json!({}))});
    let more = json!({"mcp": {"tokens": "file", "servers": servers}});
    let mut editor = Editor::start(&provider, more).await;
    let session = editor.open(json!({})).await;
    editor.turn(&session, "hi").await;
    assert!(tools(provider.requests().last().unwrap()).is_empty());
    kept_by(
        &signed_in_elsewhere(&docs).await,
        &editor.folder.path().join("state"),
    );
    eventually("the agent has the server's tools", async || {
        editor.turn(&session, "and now?").await;
        let asked = provider.requests().last().unwrap().clone();
        tools(&asked).contains(&"mcp__docs__look")
    })
    .await;
}

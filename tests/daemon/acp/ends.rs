//! How turns, sessions and the agent end.

use serde_json::{Value, json};

use super::{DEADLINE, Editor, autonomous, given, is_question, is_update, prompt};
use crate::mcp::Fake;
use crate::support::provider::Turn;
use crate::support::{Provider, eventually};

fn terminals() -> Value {
    json!({"_meta": {"terminal_output": true}})
}

fn is_output(frame: &Value) -> bool {
    let meta = &frame["params"]["update"]["_meta"];
    meta.get("terminal_output").is_some()
}

#[tokio::test]
async fn a_command_that_floods_is_cancelled() {
    let provider = Provider::start().await;
    provider.then(Turn::call(
        "bash",
        &json!({"command": "yes", "timeout": 600_000}),
    ));
    let mut editor = Editor::start(&provider, autonomous()).await;
    let session = editor.open(terminals()).await;
    let turn = editor.prompt(&session, "go").await;
    editor.until(is_output).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let outcome = editor.outcome(turn).await;
    assert_eq!(outcome["result"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn a_close_is_a_cancel_and_nothing_runs_after_it() {
    let provider = Provider::start().await;
    provider.then(Turn::call(
        "file_write",
        &json!({"path": "a", "content": "b"}),
    ));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let turn = editor.prompt(&session, "write").await;
    let asked = editor.until(is_question).await;
    let close = editor
        .send("session/close", json!({"sessionId": session}))
        .await;
    let outcome = editor.outcome(turn).await;
    assert_eq!(outcome["result"]["stopReason"], "cancelled", "{outcome}");
    let closed = editor.outcome(close).await;
    assert_eq!(closed["result"], json!({}));
    let back = editor
        .seen
        .iter()
        .find(|frame| frame["method"] == "$/cancel_request");
    assert_eq!(back.unwrap()["params"]["requestId"], asked["id"]);
    let status = editor
        .ask("session/status", json!({"sessionId": session}))
        .await;
    assert_eq!(status["status"], "saved");
}

#[tokio::test]
async fn a_compaction_that_is_cancelled_ends_so() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text(&"word ".repeat(4_000)));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    for _ in 0..4 {
        editor.turn(&session, &"say ".repeat(4_000)).await;
    }
    let (summary, mut pause) = Turn::paused(&[json!({"content": "So"})], &[], "stop");
    provider.then(summary);
    editor.seen.clear();
    let turn = editor.prompt(&session, "/compact").await;
    pause.reached().await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let outcome = editor.outcome(turn).await;
    assert_eq!(outcome["result"]["stopReason"], "cancelled", "{outcome}");
    assert_eq!(editor.said(), "");
}

#[tokio::test]
async fn the_end_of_stdin_ends_all_that_runs() {
    let fake = Fake::new();
    let provider = Provider::start().await;
    let command = "trap '' TERM; echo ready-for-ends; while :; do sleep 1; done";
    provider.then(Turn::call("bash", &json!({"command": command})));
    let mut editor = Editor::start(&provider, autonomous()).await;
    editor.initialize(terminals()).await;
    let open = json!({"cwd": editor.cwd(), "mcpServers": [given(&fake, "given")]});
    let opened = editor.ask("session/new", open).await;
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, "go").await;
    editor.until(is_output).await;
    assert_eq!(fake.processes(), 1);
    let Editor {
        mut child,
        stdin,
        folder: _folder,
        lines: _lines,
        ..
    } = editor;
    drop(stdin);
    let ended = tokio::time::timeout(DEADLINE, child.wait()).await;
    assert_eq!(
        ended.expect("the agent did not end").unwrap().code(),
        Some(0)
    );
    // The system kills what is left when its parent is gone, which is over in a moment.
    eventually("no server is left", async || fake.processes() == 0).await;
    eventually("no command is left", async || {
        let processes = std::fs::read_dir("/proc").unwrap();
        let lines = processes.filter_map(|it| std::fs::read(it.ok()?.path().join("cmdline")).ok());
        let is_left = |line: Vec<u8>| {
            String::from_utf8_lossy(&line).contains("trap '' TERM; echo ready-for-ends")
        };
        !lines.into_iter().any(is_left)
    })
    .await;
}

#[tokio::test]
async fn an_editor_that_does_not_read_keeps_nothing_alive() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::chunks(&vec![json!({"content": "x".repeat(1_000)}); 2_000], "stop"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    editor.prompt(&session, "flood").await;
    editor.until(is_update("agent_message_chunk")).await;
    // More than waits to be taken, and less than the pipe holds.
    for _ in 0..100 {
        editor
            .send("session/prompt", prompt(&session, "more"))
            .await;
    }
    assert_eq!(editor.end().await, Some(0));
}

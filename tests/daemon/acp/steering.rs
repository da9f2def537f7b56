//! Prompts that go into what runs: each is answered by the end of the exchange that took it in.

use serde_json::{Value, json};

use super::{Editor, is_update, prompt};
use crate::support::Provider;
use crate::support::provider::{Pause, Turn};

fn steer(session: &str, text: &str) -> Value {
    let mut prompt = prompt(session, text);
    prompt["_meta"] = json!({"outrigger": {"whenBusy": "steer"}});
    prompt
}

/// Opens a session in which a model answers and pauses; returns the first prompt too.
async fn answering(provider: &Provider, more: Value) -> (Editor, String, u64, Pause) {
    let (turn, mut pause) = Turn::paused(&[json!({"content": "first"})], &[], "stop");
    provider.then(turn);
    let mut editor = Editor::start(provider, more).await;
    let session = editor.open(json!({})).await;
    let first = editor.prompt(&session, "one").await;
    pause.reached().await;
    editor.until(is_update("agent_message_chunk")).await;
    (editor, session, first, pause)
}

/// Returns the ids of answered prompts, in their order, and what was said between them.
fn answers(editor: &Editor, ids: &[u64]) -> Vec<(u64, Value, String)> {
    let (mut answers, mut said) = (Vec::new(), String::new());
    for frame in &editor.seen {
        let update = &frame["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            said.push_str(update["content"]["text"].as_str().unwrap_or_default());
        }
        if let Some(id) = frame["id"].as_u64().filter(|id| ids.contains(id)) {
            let reason = frame["result"]["stopReason"].clone();
            answers.push((id, reason, std::mem::take(&mut said)));
        }
    }
    answers
}

#[tokio::test]
async fn what_is_steered_in_time_is_answered_with_the_turn() {
    let provider = Provider::start().await;
    let (mut editor, session, first, pause) = answering(&provider, json!({})).await;
    provider.then(Turn::text(" second"));
    let second = editor.send("session/prompt", steer(&session, "two")).await;
    // It is admitted before this is answered.
    let refused = prompt(&session, "no");
    editor.refused("session/prompt", refused).await;
    pause.go_on();
    editor.outcome(second).await;
    let expected = [
        (first, json!("end_turn"), "first second".to_owned()),
        (second, json!("end_turn"), String::new()),
    ];
    assert_eq!(answers(&editor, &[first, second]), expected);
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn what_is_steered_too_late_is_answered_after_its_own_text() {
    let provider = Provider::start().await;
    provider.then(Turn::call("file_list", &json!({})));
    let (last, mut pause) = Turn::paused(&[json!({"content": "enough"})], &[], "stop");
    provider.then(last).then(Turn::text("late"));
    let more = json!({"chat": {"max_turns": 1, "trust_level": "autonomous"}});
    let mut editor = Editor::start(&provider, more).await;
    let session = editor.open(json!({})).await;
    let first = editor.prompt(&session, "one").await;
    pause.reached().await;
    let second = editor.send("session/prompt", steer(&session, "two")).await;
    let refused = prompt(&session, "no");
    editor.refused("session/prompt", refused).await;
    pause.go_on();
    editor.outcome(second).await;
    let answers = answers(&editor, &[first, second]);
    assert_eq!(
        (answers[0].0, &answers[0].1),
        (first, &json!("max_turn_requests"))
    );
    assert!(answers[0].2.starts_with("enough"), "{answers:?}");
    assert!(answers[0].2.contains("most turns"), "{answers:?}");
    assert_eq!(answers[1], (second, json!("end_turn"), "late".to_owned()));
    provider.then(Turn::text("free"));
    assert_eq!(editor.turn(&session, "three").await, "end_turn");
}

#[tokio::test]
async fn a_cancel_ends_what_was_steered_and_what_comes_after_it_runs() {
    let provider = Provider::start().await;
    let (mut editor, session, first, _pause) = answering(&provider, json!({})).await;
    let second = editor.send("session/prompt", steer(&session, "two")).await;
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    provider.then(Turn::text("third"));
    let third = editor
        .send("session/prompt", steer(&session, "three"))
        .await;
    editor.outcome(third).await;
    let ended = answers(&editor, &[first, second, third]);
    let reasons: Vec<_> = ended
        .iter()
        .map(|(id, reason, _)| (*id, reason.clone()))
        .collect();
    let expected = [
        (first, json!("cancelled")),
        (second, json!("cancelled")),
        (third, json!("end_turn")),
    ];
    assert_eq!(reasons, expected);
    assert!(ended[2].2.ends_with("third"), "{ended:?}");
}

#[tokio::test]
async fn a_steer_while_nothing_runs_is_a_prompt() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let mut editor = Editor::start(&provider, json!({})).await;
    let session = editor.open(json!({})).await;
    let outcome = editor.ask("session/prompt", steer(&session, "hi")).await;
    assert_eq!(outcome["stopReason"], "end_turn");
    assert_eq!(editor.said(), "hello");
}

//! Verdicts that change an input, or seem to.

use serde_json::{Value, json};

use super::approval::{approve, asked, bash};
use crate::support::provider::Turn;

#[tokio::test]
async fn what_is_denied_or_the_same_is_not_edited() {
    let turns = vec![bash("echo a"), bash("echo b"), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    for (approved, command) in [(false, "sudo id"), (true, "echo b")] {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        let more = json!({"approved": approved, "input": {"command": command}});
        let answer = client.ask(approve(&confirm["toolId"], &more)).await;
        assert_eq!(answer["payload"]["accepted"], true, "{answer}");
    }
    client.until("chat:stream-end").await;
    let resolved = client.all("chat:tool-resolved");
    let how = |at: usize| {
        (
            resolved[at]["outcome"].clone(),
            resolved[at]["edited"].clone(),
        )
    };
    assert_eq!(how(0).0, "denied");
    assert_eq!(how(1).0, "approved");
    for at in 0..2 {
        assert!(matches!(how(at).1, Value::Null | Value::Bool(false)));
    }
    let started = client.all("chat:tool-start");
    let commands: Vec<&Value> = started.iter().map(|it| &it["input"]["command"]).collect();
    assert_eq!(commands, ["echo b"]);
}

#[tokio::test]
async fn an_edit_that_is_being_checked_is_overtaken_by_a_no() {
    let turns = vec![bash("echo a"), bash("echo b"), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    // So long that it is judged for a while.
    let long = "a b c;".repeat(16_000);
    let frames = [
        ("first", json!({"input": {"command": long}})),
        ("second", json!({"input": {"command": "echo c"}})),
        ("no", json!({"approved": false})),
    ];
    let frames = frames.map(|(id, more)| {
        let mut frame = approve(&confirm["toolId"], &more);
        frame["id"] = json!(id);
        frame
    });
    client.send_together(&frames).await;
    let second = client.until("chat:tool-confirm").await["payload"].clone();
    let said = |id: &str| {
        let answer = client.seen.iter().find(|frame| frame["replyTo"] == id);
        answer.unwrap()["payload"].clone()
    };
    assert_eq!(said("first")["code"], "approval_not_found");
    assert_eq!(said("second")["code"], "rate_limited");
    assert_eq!(said("no")["accepted"], true);
    let more = json!({"input": {"command": "echo d"}});
    client.ask(approve(&second["toolId"], &more)).await;
    client.until("chat:stream-end").await;
    // The check that came too late settled nothing.
    let started = client.all("chat:tool-start");
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["input"]["command"], "echo d");
}

//! Verdicts that change an input, or seem to.

use serde_json::{Value, json};

use super::approval::{approve, asked, bash};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

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

#[tokio::test]
async fn approved_edits_of_one_file_are_all_made_but_for_what_the_user_did_not_see() {
    let provider = Provider::start().await;
    let edit = |old: &str, new: &str| json!({"path": "f", "oldText": old, "newText": new});
    let calls = [
        ("file_edit", edit("one", "1")),
        ("file_edit", edit("two", "2")),
        // Of a line that the second call has changed by then.
        ("file_edit", edit("two\n", "2 and more\n")),
        // Beside one: what it shows is not what there is any more.
        ("file_edit", edit("beside", "b")),
        ("file_write", json!({"path": "f", "content": "all anew\n"})),
        ("file_edit", edit("three", "3")),
    ];
    provider.then(Turn::calls(&calls)).then(Turn::text("done"));
    let daemon = Daemon::with(&provider, json!({})).await;
    let file = daemon.project().join("f");
    let far = "\n".repeat(8);
    let text = |one: &str, two: &str, three: &str| format!("{one}{far}{two}\nbeside{far}{three}\n");
    std::fs::write(&file, text("one", "two", "three")).unwrap();
    let mut client = daemon.connect().await;
    client.say("go").await;
    let mut asked = Vec::new();
    for _ in &calls {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        asked.push(confirm["toolId"].clone());
    }
    for tool_id in &asked {
        client.ask(approve(tool_id, &json!({}))).await;
    }
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    let failed: Vec<_> = asked
        .iter()
        .map(|id| results.iter().find(|it| it["toolId"] == *id).unwrap())
        .map(|it| (it["status"] == "error").then(|| it["result"].to_string()))
        .collect();
    let [None, None, refused @ .., None] = &failed[..] else {
        panic!("{failed:?}");
    };
    assert_eq!(refused.len(), 3);
    for refused in refused {
        let refused = refused.as_deref().unwrap_or_default();
        assert!(refused.contains("waited for approval"), "{refused}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text("1", "2", "3"));
}

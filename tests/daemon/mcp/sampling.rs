//! Servers that have the model of the session answer something.

use serde_json::{Value, json};

use super::input::opt_in;
use super::{AUTONOMOUS, Fake, call, until_state};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A daemon whose model makes one call, and whose server asks for an answer of the model in the middle of it.
async fn asked(tool: &str, traits: &[&str], allowed: &str) -> (Fake, Daemon, Client, Provider) {
    let fake = Fake::new();
    let provider = Provider::start().await;
    provider.then(call(tool));
    let mut server = fake.config(traits);
    server["sampling"] = json!(allowed);
    let mut config = AUTONOMOUS();
    config["mcp"] = json!({ "servers": { "fake": server } });
    let pricing = json!({"input": 1, "output": 1000});
    config["providers"] = json!({ "test": { "pricing": pricing } });
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    opt_in(&mut client).await;
    (fake, daemon, client, provider)
}

async fn request(client: &mut Client) -> Value {
    client.until("chat:tool-input-request").await["payload"].clone()
}

async fn answer(client: &mut Client, request: &Value, action: &str) {
    let answer =
        json!({"type": "chat:tool-input", "requestId": request["requestId"], "action": action});
    let answer = client.ask(answer).await;
    assert_eq!(answer["payload"]["accepted"], true, "{answer}");
}

/// What the server was given.
fn given(fake: &Fake) -> Value {
    serde_json::from_str(&fake.note("answer").unwrap()).unwrap()
}

#[tokio::test]
async fn the_user_sees_what_is_asked_and_what_is_answered() {
    let (fake, _daemon, mut client, provider) = asked("think", &[], "ask").await;
    provider
        .then(Turn::text("forty-two"))
        .then(Turn::text("done"));
    client.say("a secret of the conversation").await;
    let first = request(&mut client).await;
    assert_eq!(first["purpose"], "sampling");
    assert_eq!(first["requestedSchema"]["properties"], json!({}));
    let message = first["message"].as_str().unwrap();
    assert!(
        message.contains("System prompt:\n    be terse\n")
            && message.contains("User:\n    what is the answer?\n"),
        "{message}"
    );
    assert!(message.contains("in 50 tokens at most"), "{message}");
    answer(&mut client, &first, "accept").await;
    let second = request(&mut client).await;
    assert_eq!(second["purpose"], "sampledAnswer");
    assert!(
        second["message"]
            .as_str()
            .unwrap()
            .contains("    forty-two\n")
    );
    answer(&mut client, &second, "accept").await;
    client.until("chat:stream-end").await;
    let given = given(&fake)["result"].clone();
    assert_eq!(
        given["content"],
        json!({"type": "text", "text": "forty-two"})
    );
    assert_eq!(given["role"], "assistant");
    assert_eq!(given["stopReason"], "endTurn");
    let sent = provider.requests()[1].clone();
    assert!(sent.get("tools").is_none(), "{sent}");
    assert!(!sent.to_string().contains("a secret of the conversation"));
    assert_eq!(sent["max_tokens"], 50, "{sent}");
    let offered: Value = serde_json::from_str(&fake.note("initialize").unwrap()).unwrap();
    assert!(offered["params"]["capabilities"]["sampling"].is_object());
    let used = client
        .ask(json!({"type": "usage:report", "groupBy": "model"}))
        .await;
    assert_eq!(used["payload"]["rows"][0]["requests"], 3, "{used}");
}

#[tokio::test]
async fn a_no_at_either_question_is_a_no() {
    for at_answer in [false, true] {
        let (fake, _daemon, mut client, provider) = asked("think", &[], "ask").await;
        if at_answer {
            provider.then(Turn::text("forty-two"));
        }
        provider.then(Turn::text("done"));
        client.say("go").await;
        let first = request(&mut client).await;
        if at_answer {
            answer(&mut client, &first, "accept").await;
            let second = request(&mut client).await;
            answer(&mut client, &second, "decline").await;
        } else {
            answer(&mut client, &first, "decline").await;
        }
        client.until("chat:stream-end").await;
        let error = given(&fake)["error"].clone();
        assert_eq!(error["code"], -1, "{error}");
        assert_eq!(error["message"], "the user said no");
        assert_eq!(
            provider.requests().len(),
            2 + usize::from(at_answer),
            "{at_answer}"
        );
    }
}

#[tokio::test]
async fn where_the_operator_does_not_say_so_it_is_not_offered() {
    let (fake, _daemon, mut client, provider) = asked("think", &[], "off").await;
    provider.then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(given(&fake)["error"]["code"], -32601);
    assert!(client.all("chat:tool-input-request").is_empty());
    let offered: Value = serde_json::from_str(&fake.note("initialize").unwrap()).unwrap();
    assert!(offered["params"]["capabilities"].get("sampling").is_none());
}

#[tokio::test]
async fn pictures_and_huge_texts_are_not_passed_on() {
    for (tool, why) in [("picture", "other things than text"), ("flood", "bytes")] {
        let (fake, _daemon, mut client, provider) = asked(tool, &[], "ask").await;
        provider.then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
        let error = given(&fake)["error"]["message"].clone();
        assert!(error.as_str().unwrap().contains(why), "{error}");
        assert!(client.all("chat:tool-input-request").is_empty());
        let notices = client.all("session:notice");
        let is_said = |it: &Value| it["code"] == "mcp_sampling_declined";
        assert!(notices.iter().any(is_said), "{notices:?}");
    }
}

#[tokio::test]
async fn a_call_that_asks_for_ever_comes_to_an_end() {
    let (fake, _daemon, mut client, provider) = asked("insatiable", &[], "ask").await;
    for _ in 0..5 {
        provider.then(Turn::text("again"));
    }
    provider.then(Turn::text("done"));
    client.say("go").await;
    for _ in 0..10 {
        let request = request(&mut client).await;
        answer(&mut client, &request, "accept").await;
    }
    client.until("chat:stream-end").await;
    let error = given(&fake)["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("used up"), "{error}");
}

#[tokio::test]
async fn a_cancel_and_a_resume_are_as_for_every_question() {
    let (_fake, daemon, mut client, _provider) = asked("think", &[], "ask").await;
    client.say("go").await;
    let asked = request(&mut client).await;
    let session = client.all("session:ready")[0]["sessionId"].clone();
    drop(client);
    let query = format!("?session={}&after=0", session.as_str().unwrap());
    let mut client = Client::connect(&daemon, &query).await;
    assert_eq!(request(&mut client).await, asked);
    client.ask(json!({"type": "chat:cancel"})).await;
    client.until("chat:stream-end").await;
    let settled = client.all("chat:tool-input-resolved");
    assert_eq!(settled[0]["outcome"], "cancelled", "{settled:?}");
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_any_more_is_counted_once() {
    // The user cancels, the tool answers first, and the server takes its question back.
    for tool in ["think", "rash", "retract"] {
        let (fake, _daemon, mut client, provider) = asked(tool, &[], "ask").await;
        let (turn, mut pause) = Turn::paused(&[json!({"content": "forty"})], &[], "stop");
        provider.then(turn).then(Turn::text("done"));
        client.say("go").await;
        let first = request(&mut client).await;
        answer(&mut client, &first, "accept").await;
        pause.reached().await;
        if tool == "think" {
            client.ask(json!({"type": "chat:cancel"})).await;
        } else {
            let go = fake.folder.path().join("notes/go");
            tokio::task::spawn_blocking(move || std::fs::write(go, "on\n").unwrap());
        }
        let end = client.until("chat:stream-end").await;
        let report = json!({"type": "usage:report", "groupBy": "kind"});
        let used = client.ask(report).await;
        let rows = used["payload"]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == "sampling");
        let row = row.unwrap_or_else(|| panic!("{tool}: {used}"));
        assert_eq!(
            (&row["requests"], &row["estimated"]),
            (&json!(1), &json!(1))
        );
        // What it was asked, and what had come of its answer: five bytes at most, of 50 tokens that it might have had.
        assert!(row["inputTokens"].as_u64().unwrap() > 0, "{tool}: {row}");
        assert!(row["outputTokens"].as_u64().unwrap() <= 2, "{tool}: {row}");
        assert_eq!(end["payload"]["estimated"], true, "{tool}: {end}");
    }
}

#[tokio::test]
async fn a_server_of_the_newer_era_ends_the_call_with_it() {
    let (fake, _daemon, mut client, provider) = asked("sample", &["newer"], "ask").await;
    provider.then(Turn::text("ready")).then(Turn::text("done"));
    client.say("go").await;
    for _ in 0..2 {
        let request = request(&mut client).await;
        answer(&mut client, &request, "accept").await;
    }
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["status"], "success", "{result}");
    assert!(fake.note("sampled").unwrap().contains(r#""text":"ready""#));
}

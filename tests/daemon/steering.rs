//! What is steered into an exchange: it is part of it, or of the one after it, and a client hears which.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Answering, Daemon, Provider};

#[tokio::test]
async fn settings_of_a_steered_send_do_not_count_and_that_is_reported() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    provider.then(Turn::text("b"));
    let steer = |more: serde_json::Value| {
        let mut send = json!({"type": "chat:send", "content": "more", "whenBusy": "steer"});
        send.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        send
    };
    client.ask(steer(json!({}))).await;
    client
        .ask(steer(json!({"trustLevel": "autonomous", "model": "other"})))
        .await;
    pause.go_on();
    client.until("chat:stream-end").await;
    let notices = client.all("session:notice");
    let ignored: Vec<_> = notices
        .iter()
        .filter(|notice| notice["code"] == "steer_settings_ignored")
        .collect();
    assert_eq!(ignored.len(), 1, "{notices:?}");
    let message = ignored[0]["message"].as_str().unwrap();
    assert!(message.contains("m1"), "{message}");
    let requests = provider.requests();
    assert_eq!(requests[1]["model"], requests[0]["model"]);
}

#[tokio::test]
async fn what_was_steered_too_late_is_part_of_the_exchange_that_answers_it() {
    let provider = Provider::start().await;
    let (last, mut pause) = Turn::paused(&[json!({"content": "enough"})], &[], "stop");
    provider
        .then(Turn::call("file_read", &json!({"path": "a.txt"})))
        .then(last)
        .then(Turn::text("answer"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("a.txt", "A");
    let mut client = daemon.connect().await;
    client
        .send(json!({"type": "chat:send", "content": "first", "limits": {"maxTurns": 1}}))
        .await;
    pause.reached().await;
    let steers = ["one", "two"].map(
        |content| json!({"type": "chat:send", "id": content, "content": content, "whenBusy": "steer"}),
    );
    for steer in &steers {
        client.send(steer.clone()).await;
        let answer = client.until("chat:send-result").await;
        assert_eq!(answer["payload"]["messageId"], "m1", "{answer}");
        assert_eq!(answer["payload"]["state"], "steered", "{answer}");
    }
    pause.go_on();
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "max_turns");
    assert_eq!(client.all("chat:steered").len(), 0);
    let start = client.until("chat:stream-start").await;
    let answering = &start["payload"]["messageId"];
    assert_ne!(answering, "m1");
    for content in ["one", "two"] {
        let steered = client.next().await;
        assert_eq!(steered["type"], "chat:steered", "{steered}");
        assert_eq!(steered["payload"]["content"], content);
        assert_eq!(&steered["payload"]["messageId"], answering);
    }
    client.until("chat:stream-end").await;
    for steer in steers {
        client.send(steer).await;
        let again = client.until("chat:send-result").await;
        assert_eq!(again["payload"]["duplicate"], true, "{again}");
        assert_eq!(&again["payload"]["messageId"], answering, "{again}");
    }
    assert_eq!(provider.requests().len(), 3);
}

//! A session outlives its socket: nothing lost, nothing twice, and a gap is announced.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

#[tokio::test]
async fn events_after_the_last_seen_are_replayed_once_and_in_order() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.seen[0]["payload"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    first.say("go").await;
    pause.reached().await;
    let last = first.until("chat:text-delta").await["seq"]
        .as_u64()
        .unwrap();
    drop(first);
    pause.go_on();
    let mut second = Client::connect(&daemon, &format!("?session={session}&after={last}")).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], true);
    assert!(second.seen[0].get("seq").is_none());
    second.until("chat:stream-end").await;
    assert_eq!(second.seen[1]["seq"], last + 1);
    assert_eq!(second.text_said(), "b");
    second.check_numbers();
}

#[tokio::test]
async fn an_open_approval_is_answered_from_another_socket() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "echo a"})))
        .then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.seen[0]["payload"]["sessionId"].clone();
    first.say("go").await;
    first.until("chat:tool-confirm").await;
    let mut second = daemon.connect().await;
    second
        .send(json!({"type": "session:resume", "sessionId": session, "lastSeq": 0}))
        .await;
    second.until("chat:tool-confirm").await;
    assert_eq!(first.closed().await, 4001);
    second
        .send(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    second.until("chat:stream-end").await;
    let state = second.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["approvals"], json!([]));
    assert_eq!(state["payload"]["conversations"][0]["state"], "idle");
}

#[tokio::test]
async fn an_unknown_session_is_reported_and_the_socket_goes_on_as_a_new_one() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = Client::connect(&daemon, "?session=nobody&after=3").await;
    assert_eq!(client.seen[0]["payload"]["resumed"], false);
    assert_eq!(client.next().await["payload"]["code"], "session_not_found");
    client
        .send(json!({"type": "session:resume", "sessionId": "nobody", "lastSeq": 0}))
        .await;
    assert_eq!(client.next().await["payload"]["code"], "session_not_found");
    client.send(json!({"type": "session:ping"})).await;
    assert_eq!(client.next().await["type"], "session:ping-result");
}

#[tokio::test]
async fn a_gap_is_announced_with_a_resync_of_how_things_stand() {
    let provider = Provider::start().await;
    let long = "x".repeat(3_000);
    for _ in 0..30 {
        provider.then(Turn::text(&long));
    }
    let more = json!({"session": {"buffer_bytes": "64KiB"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.seen[0]["payload"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..30 {
        first.say("go").await;
        first.until("chat:stream-end").await;
    }
    drop(first);
    let mut second = Client::connect(&daemon, &format!("?session={session}&after=1")).await;
    let gap = second.next().await;
    assert_eq!(gap["payload"]["code"], "replay_gap");
    let history = second.next().await;
    assert_eq!(history["type"], "chat:history-result");
    assert_eq!(history["payload"]["messages"].as_array().unwrap().len(), 60);
    second.send(json!({"type": "session:ping"})).await;
    second.until("session:ping-result").await;
    second.check_numbers();
}

#[tokio::test]
async fn the_resync_after_a_gap_is_enough_to_go_on_drawing() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "half "}), json!({"content": "an"})],
        &[json!({"content": " answer"})],
        "stop",
    );
    for _ in 0..30 {
        provider.then(Turn::text(&"x".repeat(3_000)));
    }
    let more = json!({"session": {"buffer_bytes": "64KiB"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.seen[0]["payload"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..30 {
        let say = json!({"type": "chat:send", "conversationId": "over", "content": "go"});
        first.send(say).await;
        first.until("chat:stream-end").await;
    }
    provider.then(turn).then(Turn::text("next"));
    first.say("go").await;
    first
        .send(json!({"type": "chat:send", "id": "waits", "content": "and then"}))
        .await;
    pause.reached().await;
    while first.text_said().len() < 30 * 3_000 + 7 {
        first.next().await;
    }
    drop(first);
    let mut second = Client::connect(&daemon, &format!("?session={session}&after=1")).await;
    while second.until("chat:state").await["payload"]["conversationId"] != "over" {}
    let state = second.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["conversations"][0]["state"], "responding");
    let received: Vec<String> = second
        .seen
        .iter()
        .skip(1)
        .map(|it| {
            let payload = &it["payload"];
            let of = ["conversationId", "messageId", "content", "state"]
                .map(|field| payload[field].as_str().unwrap_or(""));
            let kind = it["type"].as_str().unwrap();
            format!("{kind} {}", of.join(" ")).trim_end().to_owned()
        })
        .filter(|line| !line.starts_with("chat:stream-end over"))
        .collect();
    assert_eq!(
        received,
        [
            "session:error",
            "chat:history-result default",
            "chat:history-result over",
            // An answer that is still kept.
            "chat:send-result default m32  queued",
            "chat:stream-start default m31",
            "chat:text-delta default m31 half an",
            "chat:queued default m32 and then",
            "chat:state default m31  responding",
            "chat:state over   idle",
            "session:state-result",
        ]
    );
    assert_eq!(
        second.all("chat:stream-end").len(),
        30,
        "every end that was missed"
    );
    // What became of a send whose answer was lost.
    let send = json!({"type": "chat:send", "id": "waits", "content": "and then"});
    second.send(send).await;
    let again = second.until("chat:send-result").await;
    assert_eq!(again["payload"]["messageId"], "m32");
    assert_eq!(again["payload"]["duplicate"], true);
    pause.go_on();
    second.until("chat:stream-end").await;
    second.until("chat:stream-end").await;
    assert_eq!(second.text_said(), "half an answernext");
    second.check_numbers();
}

#[tokio::test]
async fn a_session_that_was_resumed_outlives_a_move_to_another() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let id = |client: &Client| {
        client.seen[0]["payload"]["sessionId"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (first, other) = (daemon.connect().await, daemon.connect().await);
    let (session, another) = (id(&first), id(&other));
    // What is no number is the beginning.
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=x")).await;
    assert_eq!(client.next().await["seq"], 1);
    for (wanted, expected) in [
        ("nobody", "session:error"),
        (another.as_str(), "session:ready"),
    ] {
        let resume =
            json!({"type": "session:resume", "id": wanted, "sessionId": wanted, "lastSeq": 1});
        client.send(resume).await;
        let answer = client.next().await;
        assert_eq!(answer["type"], expected, "{answer}");
        assert_eq!(answer["replyTo"], wanted);
    }
    client.ask(json!({"type": "session:ping"})).await;
    let back = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    assert_eq!(back.seen[0]["payload"]["resumed"], true);
    // A socket that has used its session stays there.
    let resume = json!({"type": "session:resume", "sessionId": session, "lastSeq": 0});
    let refused = client.ask(resume).await;
    assert_eq!(refused["payload"]["code"], "invalid_payload");
}

#[tokio::test]
async fn a_client_that_closes_is_answered() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let close = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 1000.into(),
        reason: "".into(),
    };
    let close = tokio_tungstenite::tungstenite::Message::Close(Some(close));
    client.message(close).await.unwrap();
    assert_eq!(client.next_or_close().await, Err(1000));
}

//! Documents that take long to be read hold up what comes behind them in their conversation, and nothing else.

use super::hang::Peer;
use super::*;
use crate::document::testing::hold;
use crate::protocol::event::Event;
use crate::provider::Stop;

fn send(id: &str, document: &str) -> Value {
    let document =
        json!({"type": "document", "mediaType": "text/csv", "name": document, "text": "x,y"});
    let content = json!([{"type": "text", "text": "sum"}, document]);
    json!({"type": "chat:send", "id": id, "content": content, "whenBusy": "queue"})
}

fn say(id: &str) -> Value {
    json!({"type": "chat:send", "id": id, "content": "then", "whenBusy": "queue"})
}

async fn answer(peer: &mut Peer, id: &str) -> Value {
    peer.event(|_, frame| frame["replyTo"] == id).await
}

async fn end(peer: &mut Peer) -> Value {
    let is_end = |event: &Event, _: &Value| matches!(event, Event::ChatStreamEnd(_));
    peer.event(is_end).await
}

fn done() -> (Vec<Move>, Finish) {
    (vec![Move::Say], Finish::End(Stop::EndTurn))
}

#[tokio::test]
async fn a_session_goes_on_while_documents_are_read() {
    let call = (vec![Move::Call("ok")], Finish::End(Stop::ToolUse));
    let sessions =
        Sessions::new(daemon(vec![call, done(), done(), done()], 1 << 20)).of(Arc::default());
    let mut peer = Peer::new(&sessions).await;
    let held = hold("slow.csv");
    peer.say(json!({"type": "chat:send", "content": "hi"}))
        .await;
    let is_asked = |event: &Event, _: &Value| matches!(event, Event::ChatToolConfirm(_));
    let asked = peer.event(is_asked).await;
    peer.say(send("document", "slow.csv")).await;
    peer.say(say("next")).await;
    // It is sent again while it is read, and runs once.
    peer.say(send("document", "slow.csv")).await;
    let tool = &asked["payload"]["toolId"];
    let yes = json!({"type": "chat:tool-approve", "id": "yes", "toolId": tool, "approved": true});
    peer.say(yes).await;
    let accepted = answer(&mut peer, "yes").await;
    assert_eq!(accepted["payload"]["accepted"], true);
    end(&mut peer).await;
    peer.say(json!({"type": "session:status", "id": "status"}))
        .await;
    let status = answer(&mut peer, "status").await;
    assert_eq!(status["payload"], json!({"state": "running"}));
    held.add_permits(1);
    let document = answer(&mut peer, "document").await["payload"].clone();
    assert_eq!(document["state"], "started", "{document}");
    let next = answer(&mut peer, "next").await["payload"].clone();
    assert!(next["messageId"].is_string(), "{next}");
    let again = answer(&mut peer, "document").await["payload"].clone();
    assert_eq!(again["duplicate"], true, "{again}");
    assert_eq!(again["messageId"], document["messageId"]);
    peer.say(json!({"type": "chat:history", "id": "all"})).await;
    for expected in [&document, &next] {
        let ended = end(&mut peer).await;
        assert_eq!(ended["payload"]["messageId"], expected["messageId"]);
    }
    peer.say(json!({"type": "session:status", "id": "status"}))
        .await;
    let status = answer(&mut peer, "status").await;
    assert_eq!(status["payload"], json!({"state": "idle"}));
}

#[tokio::test]
async fn a_send_whose_documents_are_read_is_cancelled() {
    let sessions = Sessions::new(daemon(vec![done(), done()], 1 << 20)).of(Arc::default());
    let mut peer = Peer::new(&sessions).await;
    // Never read.
    let _held = hold("cancelled.csv");
    peer.say(send("1", "cancelled.csv")).await;
    peer.say(say("2")).await;
    peer.say(json!({"type": "chat:cancel", "id": "3"})).await;
    let dropped = answer(&mut peer, "1").await;
    assert_eq!(dropped["payload"]["code"], "interrupted", "{dropped}");
    let cancelled = answer(&mut peer, "3").await["payload"].clone();
    assert_eq!(
        (&cancelled["cancelled"], &cancelled["queuedDropped"]),
        (&json!(true), &json!(0))
    );
    // What was said behind it goes on.
    assert_eq!(answer(&mut peer, "2").await["payload"]["state"], "started");
    end(&mut peer).await;

    peer.say(send("4", "cancelled.csv")).await;
    peer.say(say("5")).await;
    peer.say(json!({"type": "chat:cancel", "id": "6", "queued": true}))
        .await;
    for id in ["4", "5"] {
        assert_eq!(
            answer(&mut peer, id).await["payload"]["code"],
            "interrupted"
        );
    }
    let cancelled = answer(&mut peer, "6").await["payload"].clone();
    assert_eq!(
        (&cancelled["cancelled"], &cancelled["queuedDropped"]),
        (&json!(true), &json!(1))
    );

    peer.say(send("7", "cancelled.csv")).await;
    peer.say(json!({"type": "chat:close", "id": "8"})).await;
    assert_eq!(
        answer(&mut peer, "7").await["payload"]["code"],
        "interrupted"
    );
    answer(&mut peer, "8").await;
    peer.say(json!({"type": "session:status", "id": "9"})).await;
    assert_eq!(answer(&mut peer, "9").await["payload"]["state"], "idle");

    for number in 0..=16 {
        let mut send = send(&format!("n{number}"), "cancelled.csv");
        send["conversationId"] = json!(format!("c{number}"));
        peer.say(send).await;
    }
    assert_eq!(
        answer(&mut peer, "n16").await["payload"]["code"],
        "rate_limited"
    );
}

//! How fast a provider instance is asked: what waits says so, and goes when it may.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

#[tokio::test]
async fn a_request_beyond_those_at_once_waits_says_why_and_can_be_cancelled() {
    let provider = Provider::start().await;
    let (slow, mut pause) = Turn::paused(&[json!({"content": "one"})], &[], "stop");
    provider.then(slow);
    provider.by_rule(|_| Turn::text("hello"));
    let more = json!({"providers": {"test": {"max_parallel": 1}}});
    let daemon = Daemon::with(&provider, more).await;
    let (mut first, mut second) = (daemon.connect().await, daemon.connect().await);
    first.say("one").await;
    pause.reached().await;
    for conversation in ["waits", "is cancelled"] {
        let send = json!({"type": "chat:send", "content": "two", "conversationId": conversation});
        second.send(send).await;
        let state = second
            .find(|frame| frame["payload"]["state"] == "retrying")
            .await;
        let reason = state["payload"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("rate limit (ours)"), "{reason}");
        assert!(state["payload"].get("attempt").is_none(), "{state}");
    }
    let cancel = json!({"type": "chat:cancel", "conversationId": "is cancelled"});
    second.ask(cancel).await;
    let end = second.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    assert_eq!(provider.requests().len(), 1);
    pause.go_on();
    let end = second.until("chat:stream-end").await;
    assert_eq!(end["payload"]["conversationId"], "waits");
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(provider.requests().len(), 2);
}

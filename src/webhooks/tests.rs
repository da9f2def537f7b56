use std::collections::HashMap;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::message::{ConversationId, MessageId, ToolId};
use crate::protocol::status::{Required, RequiredKind};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

type Seen = (HashMap<String, String>, Vec<u8>);

/// More than any test sends.
const MOST_SEEN: usize = 16;

/// Serves an endpoint that answers with these statuses, then 200; returns its address and what it gets.
async fn endpoint(statuses: &[u16]) -> (String, mpsc::Receiver<Seen>) {
    let (saw, seen) = mpsc::channel(MOST_SEEN);
    let statuses = Arc::new(parking_lot::Mutex::new(statuses.to_vec()));
    let answer = move |headers: HeaderMap, body: Bytes| {
        let status = {
            let mut left = statuses.lock();
            match left.is_empty() {
                true => 200,
                false => left.remove(0),
            }
        };
        let headers = headers.iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        saw.try_send((headers, body.to_vec())).unwrap();
        async move { StatusCode::from_u16(status).unwrap() }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/hook", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/hook"), seen)
}

fn webhooks(url: &str, allow_private: bool) -> Arc<Webhooks> {
    let config = WebhooksConfig {
        url: url.to_owned(),
        secret: Some(SECRET.into()),
        events: vec![WebhookEvent::RequiresAction, WebhookEvent::Idle],
        allow_private,
    };
    let made = Webhooks::new(Some(&config), TaskTracker::new(), CancellationToken::new());
    let mut made = made.unwrap();
    Arc::get_mut(&mut made).unwrap().pauses = [Duration::ZERO; 5];
    made
}

fn asked() -> SessionStatus {
    SessionStatus {
        state: SessionStateName::RequiresAction,
        requires: vec![Required {
            kind: RequiredKind::Approval,
            conversation_id: ConversationId::new("default"),
            message_id: MessageId::new("m1"),
            tool_id: Some(ToolId::new("t1")),
            request_id: None,
            host: Some("said-by-a-model.example".to_owned()),
        }],
        requires_total: None,
    }
}

#[tokio::test]
async fn an_event_is_signed_and_holds_ids_alone() {
    let (url, mut seen) = endpoint(&[]).await;
    let webhooks = webhooks(&url, true);
    let session = Webhooks::of_session(Some(&webhooks), &SessionId::new("s1"));
    // Another question was answered.
    session.status(&asked(), false);
    // Nobody asked for this one.
    session.status(
        &SessionStatus {
            state: SessionStateName::Running,
            ..SessionStatus::default()
        },
        false,
    );
    session.status(&asked(), true);
    let (headers, body) = seen.recv().await.unwrap();
    let mut signed = HeaderMap::new();
    for (name, value) in &headers {
        let name = axum::http::HeaderName::try_from(name.as_str()).unwrap();
        signed.insert(name, value.parse().unwrap());
    }
    Webhook::new(SECRET)
        .unwrap()
        .verify(&body, &signed)
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["type"], "session.requires_action");
    assert_eq!(
        body["data"],
        json!({"sessionId": "s1", "requires": [
            {"kind": "approval", "conversationId": "default", "messageId": "m1", "toolId": "t1"},
        ]})
    );
    webhooks.tasks.close();
    webhooks.tasks.wait().await;
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn what_fails_is_sent_again_under_its_name_until_it_is_given_up() {
    let (url, mut seen) = endpoint(&[500, 302, 429]).await;
    let webhooks = webhooks(&url, true);
    assert!(webhooks.deliver("session.idle", "{}").await);
    let mut ids = Vec::new();
    while let Ok((headers, _)) = seen.try_recv() {
        ids.push(headers["webhook-id"].clone());
    }
    assert_eq!(ids.len(), 4);
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let (url, mut seen) = endpoint(&[500; 6]).await;
    assert!(
        !self::webhooks(&url, true)
            .deliver("session.idle", "{}")
            .await
    );
    assert_eq!(std::iter::from_fn(|| seen.try_recv().ok()).count(), 6);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_gets_nothing_more() {
    let (url, mut seen) = endpoint(&[410]).await;
    let webhooks = webhooks(&url, true);
    assert!(!webhooks.deliver("session.idle", "{}").await);
    let session = Webhooks::of_session(Some(&webhooks), &SessionId::new("s1"));
    session.status(&SessionStatus::default(), false);
    webhooks.tasks.close();
    webhooks.tasks.wait().await;
    assert_eq!(std::iter::from_fn(|| seen.try_recv().ok()).count(), 1);
}

#[tokio::test]
async fn this_machine_and_its_network_are_not_connected_to() {
    let (url, mut seen) = endpoint(&[]).await;
    let named = url.replace("127.0.0.1", "localhost");
    for url in [url, named] {
        let refused = webhooks(&url, false).attempt("msg_1", "{}").await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert!(seen.try_recv().is_err());
    for url in [
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://10.1.2.3/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://169.254.169.254/latest",
        "https://100.100.100.200/",
        "https://a.localhost/",
        "https://0.0.0.0/",
    ] {
        assert!(refuse_private(url).is_err(), "{url}");
    }
    assert_eq!(refuse_private("https://203.0.113.7/hook"), Ok(()));
}

#[tokio::test]
async fn what_an_endpoint_does_not_take_is_dropped_beyond_the_bound() {
    let webhooks = webhooks("http://127.0.0.1:9/hook", true);
    let places = Arc::clone(&webhooks.places);
    let all = places
        .acquire_many_owned(MAX_DELIVERIES as u32)
        .await
        .unwrap();
    let session = Webhooks::of_session(Some(&webhooks), &SessionId::new("s1"));
    session.status(&asked(), true);
    assert!(webhooks.tasks.is_empty());
    drop(all);
}

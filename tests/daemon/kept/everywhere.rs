//! Several daemons on one database: what limits a user counts for all of them together.

use serde_json::{Value, json};

use super::database::servers;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// A database with two daemons.
struct Both {
    server: &'static servers::Server,
    database: String,
    one: Daemon,
    two: Daemon,
}

impl Both {
    /// Starts them; `None` where there is no PostgreSQL.
    async fn start(provider: &Provider, more: &Value) -> Option<Self> {
        let server = servers::shared()?;
        let database = server.database();
        let daemon = async |name: &str| {
            let secret = "a secret of the cluster, of 32 characters";
            let mut settings = more.clone();
            settings["store"] = json!({"url": server.url("careful:right", &database)});
            settings["cluster"] =
                json!({"name": name, "url": "http://127.0.0.1:0", "secret": secret});
            Daemon::with(provider, settings).await
        };
        let (one, two) = (daemon("one").await, daemon("two").await);
        Some(Self {
            server,
            database,
            one,
            two,
        })
    }

    async fn limited(provider: &Provider, limits: Value) -> Option<Self> {
        let more = json!({"auth": {"limits": limits}, "session": {"resume_grace": "1s"}});
        Self::start(provider, &more).await
    }

    /// Waits until the first daemon has told what the user does there.
    async fn told(&self, sessions: u64, exchanges: u64, sends: u64) {
        let expected = format!("{sessions}|{exchanges}|{sends}");
        let sql = "SELECT sessions, exchanges, sends FROM activity JOIN node ON node.id = node WHERE name = 'one'";
        eventually("the first daemon has told it", async || {
            self.server.sql(&self.database, sql) == expected
        })
        .await;
    }
}

async fn send(client: &mut Client, conversation: &str) -> Value {
    let frame = json!({"type": "chat:send", "conversationId": conversation, "content": "hi"});
    client.ask(frame).await["payload"].clone()
}

#[tokio::test]
async fn a_user_has_so_many_sessions() {
    let provider = Provider::start().await;
    let Some(both) = Both::limited(&provider, json!({"sessions": 2})).await else {
        return;
    };
    let (first, _second) = (both.one.connect().await, both.two.connect().await);
    // Each asks the other before a session begins.
    for daemon in [&both.one, &both.two] {
        let refused = Client::reach(daemon, "").await;
        assert_eq!(refused.err(), Some(1013));
    }
    drop(first);
    eventually("room", async || Client::reach(&both.two, "").await.is_ok()).await;
}

#[tokio::test]
async fn a_user_has_so_many_exchanges_at_once() {
    let provider = Provider::start().await;
    let Some(both) = Both::limited(&provider, json!({"exchanges": 1})).await else {
        return;
    };
    let mut here = both.one.connect().await;
    let (turn, pause) = Turn::paused(&[json!({"content": "wait"})], &[], "stop");
    provider.then(turn);
    assert!(send(&mut here, "a").await["code"].is_null());
    both.told(1, 1, 0).await;
    let mut there = both.two.connect().await;
    let over = send(&mut there, "b").await;
    assert_eq!(over["code"], "quota_exceeded", "{over}");
    let why = over["message"].as_str().unwrap();
    assert!(why.contains("auth.limits.exchanges"), "{why}");
    pause.go_on();
    here.until("chat:stream-end").await;
    // That it is over there comes here by itself.
    eventually("room", async || {
        send(&mut there, "b").await["code"].is_null()
    })
    .await;
}

#[tokio::test]
async fn a_user_has_so_many_sends_in_a_minute() {
    let provider = Provider::start().await;
    let Some(both) = Both::limited(&provider, json!({"sends_per_minute": 3})).await else {
        return;
    };
    let mut here = both.one.connect().await;
    for _ in 0..3 {
        assert!(send(&mut here, "a").await["code"].is_null());
        here.until("chat:stream-end").await;
    }
    both.told(1, 0, 3).await;
    let mut there = both.two.connect().await;
    let over = send(&mut there, "b").await;
    assert_eq!(over["code"], "quota_exceeded", "{over}");
    let left = over["retryAfterMs"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{over}");
}

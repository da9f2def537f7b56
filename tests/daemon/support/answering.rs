//! A daemon in the middle of an answer.

use serde_json::{Value, json};

use super::provider::{Pause, Turn};
use super::{Client, Daemon, Provider};

/// The answer to `first` has begun with `a`; its end waits for `pause`.
pub(crate) struct Answering {
    pub(crate) client: Client,
    pub(crate) pause: Pause,
    pub(crate) provider: Provider,
    pub(crate) daemon: Daemon,
}

impl Answering {
    pub(crate) async fn begin() -> Self {
        Self::with(json!({})).await
    }

    /// The same with a configuration of the test's own.
    pub(crate) async fn with(config: Value) -> Self {
        let provider = Provider::start().await;
        let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
        provider.then(turn);
        let daemon = Daemon::with(&provider, config).await;
        let mut client = daemon.connect().await;
        client.say("first").await;
        pause.reached().await;
        Self {
            client,
            pause,
            provider,
            daemon,
        }
    }
}

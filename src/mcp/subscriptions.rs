//! Resources that sessions follow: who follows which, and that the server knows of it.
//!
//! A server is asked once for a resource, however many sessions follow it. After a new start it is asked again for all of
//! them, and each counts as changed: what it was meanwhile nobody knows.

#![expect(
    deprecated,
    reason = "the SDK calls the requests of the older era so; servers of today know no other"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    ErrorCode, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::sync::Notify;

use super::Failure;
use super::audience::Voice;
use crate::message::SessionId;

/// The most resources of one server that are followed, by all sessions together.
const MAX_OF_SERVER: usize = 1_000;

/// The most resources that one session follows, of all servers together.
pub(super) const MAX_OF_SESSION: usize = 100;

/// The longest address, in bytes.
pub(super) const MAX_URI: usize = 2 * 1024;

/// How long a server may take to take note of all of them after a new start.
const AGAIN_LIMIT: Duration = Duration::from_secs(30);

/// After which time a server whose stream of changes has ended is asked for another one: longer each time, until it tells
/// of something.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
const LISTEN_AGAIN_MOST: Duration = Duration::from_secs(300);

/// The resources of one server that sessions follow.
#[derive(Clone, Default)]
pub(super) struct Subscriptions {
    followed: Arc<Mutex<BTreeMap<String, BTreeSet<SessionId>>>>,
    /// Held while the server is asked, so that nobody is told yes before it has said so.
    asking: Arc<tokio::sync::Mutex<()>>,
    /// Notified when the set is another one; for the newer era, which has one request for all.
    changed: Arc<Notify>,
    /// Whether the server knows no such request.
    is_mute: Arc<AtomicBool>,
}

impl Subscriptions {
    /// Returns how many resources a session follows here.
    pub(super) fn count(&self, session: &SessionId) -> usize {
        let followed = self.followed.lock();
        followed.values().filter(|of| of.contains(session)).count()
    }

    /// Has a session follow a resource.
    pub(super) async fn follow(
        &self,
        peer: &Peer<RoleClient>,
        uri: &str,
        session: &SessionId,
    ) -> Result<(), Failure> {
        let _asking = self.asking.lock().await;
        {
            let mut followed = self.followed.lock();
            if let Some(sessions) = followed.get_mut(uri) {
                sessions.insert(session.clone());
                return Ok(());
            }
            if followed.len() >= MAX_OF_SERVER {
                return Err(Failure::Full(MAX_OF_SERVER));
            }
        }
        if is_older(peer) {
            peer.subscribe(SubscribeRequestParams::new(uri)).await?;
        } else if self.is_mute.load(Ordering::Relaxed) {
            return Err(Failure::NoSubscriptions);
        }
        let sessions = BTreeSet::from([session.clone()]);
        self.followed.lock().insert(uri.to_owned(), sessions);
        self.changed.notify_one();
        Ok(())
    }

    /// Has a session follow a resource no more; tells the server where it was the last one.
    pub(super) async fn leave(
        &self,
        peer: Option<&Peer<RoleClient>>,
        uri: &str,
        session: &SessionId,
    ) -> Result<(), ServiceError> {
        let _asking = self.asking.lock().await;
        {
            let mut followed = self.followed.lock();
            let Some(sessions) = followed.get_mut(uri) else {
                return Ok(());
            };
            sessions.remove(session);
            if !sessions.is_empty() {
                return Ok(());
            }
            followed.remove(uri);
        }
        self.changed.notify_one();
        match peer {
            Some(peer) if is_older(peer) => {
                let params = UnsubscribeRequestParams::new(uri);
                peer.unsubscribe(params).await
            }
            _ => Ok(()),
        }
    }

    /// Returns what a session follows here.
    pub(super) fn of(&self, session: &SessionId) -> Vec<String> {
        let followed = self.followed.lock();
        let own = followed.iter().filter(|(_, of)| of.contains(session));
        own.map(|(uri, _)| uri.clone()).collect()
    }

    /// Tells those who follow a resource, or one that it is a part of, that it has changed.
    pub(super) fn updated(&self, voice: &Voice, uri: &str) {
        let followed = self.followed.lock();
        for (known, sessions) in followed.iter().filter(|(known, _)| is_part(uri, known)) {
            voice.updated(known, sessions);
        }
    }

    fn all_updated(&self, voice: &Voice) {
        for (uri, sessions) in self.followed.lock().iter() {
            voice.updated(uri, sessions);
        }
    }

    /// Follows a server over one connection: never returns. `changed` is notified when one of its lists is another one.
    pub(super) async fn run(&self, peer: &Peer<RoleClient>, voice: &Voice, changed: &Notify) {
        self.is_mute.store(false, Ordering::Relaxed);
        self.again(peer, voice).await;
        let mut pause = LISTEN_AGAIN;
        while !is_older(peer) {
            let followed: Vec<String> = self.followed.lock().keys().cloned().collect();
            let filter = SubscriptionFilter::builder()
                .tools_list_changed()
                .prompts_list_changed()
                .resources_list_changed();
            let filter = match followed.is_empty() {
                true => filter,
                false => filter.resource_subscriptions(followed),
            };
            let listen = peer.listen(filter.build());
            let mut subscription = match tokio::time::timeout(AGAIN_LIMIT, listen).await {
                Ok(Ok(subscription)) => subscription,
                Ok(Err(ServiceError::McpError(error)))
                    if error.code == ErrorCode::METHOD_NOT_FOUND =>
                {
                    tracing::debug!(%error, "an MCP server does not tell of changes");
                    self.is_mute.store(true, Ordering::Relaxed);
                    break;
                }
                Ok(Err(error)) => {
                    tracing::info!(%error, ?pause, "an MCP server tells of no changes now; it is asked again");
                    self.rest(&mut pause, voice, changed).await;
                    continue;
                }
                Err(_) => {
                    tracing::info!(
                        ?pause,
                        "an MCP server has not said in time whether it tells of changes; it is asked again"
                    );
                    self.rest(&mut pause, voice, changed).await;
                    continue;
                }
            };
            loop {
                let told = tokio::select! {
                    biased;
                    () = self.changed.notified() => break,
                    told = subscription.next() => told,
                };
                let Ok(Some(told)) = told else {
                    tracing::info!(
                        ?pause,
                        "an MCP server's stream of changes has ended; it is asked for another one"
                    );
                    self.rest(&mut pause, voice, changed).await;
                    break;
                };
                pause = LISTEN_AGAIN;
                match told {
                    ServerNotification::ResourceUpdatedNotification(it) => {
                        self.updated(voice, &it.params.uri);
                    }
                    _ => changed.notify_one(),
                }
            }
            drop(subscription.cancel().await);
        }
        std::future::pending::<()>().await;
    }

    /// Waits before a server is asked again, longer each time; what changed meanwhile nobody knows.
    async fn rest(&self, pause: &mut Duration, voice: &Voice, changed: &Notify) {
        tokio::time::sleep(*pause).await;
        *pause = (*pause * 2).min(LISTEN_AGAIN_MOST);
        self.all_updated(voice);
        changed.notify_one();
    }

    /// Asks a server that was started anew for all that is followed.
    async fn again(&self, peer: &Peer<RoleClient>, voice: &Voice) {
        let followed = self.followed.lock().clone();
        let asking = async {
            for (uri, sessions) in &followed {
                if is_older(peer) {
                    let params = SubscribeRequestParams::new(uri);
                    if let Err(error) = peer.subscribe(params).await {
                        tracing::warn!(%error, "an MCP server does not tell of a resource any more");
                    }
                }
                voice.updated(uri, sessions);
            }
        };
        if tokio::time::timeout(AGAIN_LIMIT, asking).await.is_err() {
            tracing::warn!("an MCP server did not take note in time of what is followed");
        }
    }
}

/// Whether a server speaks the era that has a request for each resource.
fn is_older(peer: &Peer<RoleClient>) -> bool {
    let info = peer.peer_info();
    info.is_none_or(|info| info.protocol_version.has_initialize())
}

/// Whether an address is this one, or one below it: servers may tell of a part of what was asked for.
fn is_part(uri: &str, known: &str) -> bool {
    uri.strip_prefix(known).is_some_and(|rest| {
        rest.is_empty() || known.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

#[cfg(test)]
mod tests {
    use rmcp::service::ClientServiceExt as _;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
    use tokio::time::Instant;

    use super::*;
    use crate::config::McpLogPolicy;
    use crate::mcp::audience::Audience;
    use crate::mcp::connection::lifecycle;
    use crate::telemetry::Redactor;

    /// A server of the newer era whose streams of changes end at once; returns when each was asked for.
    async fn forgetful(mut output: DuplexStream, input: DuplexStream, most: usize) -> Vec<Instant> {
        let mut input = BufReader::new(input).lines();
        let mut asked = Vec::new();
        while asked.len() < most {
            let line = input.next_line().await.unwrap().expect("it is asked again");
            let request: Value = serde_json::from_str(&line).unwrap();
            let id = &request["id"];
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            let answers = match request["method"].as_str().unwrap() {
                "server/discover" => vec![json!({"jsonrpc": "2.0", "id": id, "result": {
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
                    "ttlMs": 0, "cacheScope": "private",
                }})],
                "subscriptions/listen" => {
                    asked.push(Instant::now());
                    vec![
                        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                            "params": {"_meta": meta, "notifications": {}}}),
                        json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}}),
                    ]
                }
                _ => Vec::new(),
            };
            for answer in answers {
                let line = format!("{answer}\n");
                output.write_all(line.as_bytes()).await.unwrap();
            }
        }
        asked
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_changes_that_ended_is_asked_for_again() {
        let (theirs, output) = tokio::io::duplex(64 * 1024);
        let (stdin, input) = tokio::io::duplex(64 * 1024);
        let server = forgetful(theirs, input, 4);
        let changed = Notify::new();
        let client = async {
            let transport = AsyncRwTransport::new_client(output, stdin);
            let service = ().serve_with_lifecycle(transport, lifecycle(false)).await.unwrap();
            let (audience, redactor) = (Arc::<Audience>::default(), Redactor::default());
            let voice = Voice::new(Arc::from("s"), None, audience, McpLogPolicy::Info, redactor);
            Subscriptions::default()
                .run(service.peer(), &voice, &changed)
                .await;
        };
        let asked = tokio::select! {
            asked = server => asked,
            () = client => unreachable!(),
        };
        let pauses = asked.iter().zip(&asked[1..]);
        let pauses: Vec<u64> = pauses.map(|(one, next)| (*next - *one).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20]);
        // What changed meanwhile is asked for.
        changed.notified().await;
    }

    #[test]
    fn a_part_of_a_resource_is_told_to_who_follows_the_whole() {
        for (uri, known, is) in [
            ("a://b", "a://b", true),
            ("a://b/c", "a://b", true),
            ("a://b/c", "a://b/", true),
            ("a://b#line", "a://b", true),
            ("a://bc", "a://b", false),
            ("a://b", "a://b/c", false),
        ] {
            assert_eq!(is_part(uri, known), is, "{uri} {known}");
        }
    }
}

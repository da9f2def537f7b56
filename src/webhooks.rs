//! Webhooks: another program is told by HTTP how sessions stand, signed by the scheme of
//! <https://www.standardwebhooks.com> (read on 2026-11-26).
//!
//! What is sent has ids and words of the contract, never content. A delivery that fails is tried again, always under the
//! same id. Deliveries wait in memory: what is left when the daemon ends is lost, and `session:list` has how things stand.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{WebhookEvent, WebhooksConfig, url_host};
use crate::http::{Clients, causes, is_loopback};
use crate::message::SessionId;
use crate::protocol::event::Event;
use crate::protocol::status::{Required, SessionStateName, SessionStatus};
use crate::protocol::word;
use crate::sandbox::{Host, is_outside};
use crate::telemetry::metrics;

/// Deliveries that wait or are under way; those beyond are dropped, and the log says so.
const MAX_DELIVERIES: usize = 256;

/// How long to wait before each further attempt.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
];

/// How long an attempt may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The status of an endpoint that wants nothing any more.
const GONE: u16 = 410;

/// Where events are sent.
pub(crate) struct Webhooks {
    config: WebhooksConfig,
    signer: Webhook,
    clients: Clients,
    pauses: [Duration; 5],
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Cancelled when the endpoint wants nothing any more.
    refused: CancellationToken,
}

/// What a session tells of itself; nothing where there are no webhooks.
#[derive(Clone, Default)]
pub(crate) struct SessionWebhooks(Option<(Arc<Webhooks>, SessionId)>);

impl std::fmt::Debug for SessionWebhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tuple = f.debug_tuple("SessionWebhooks");
        tuple.field(&self.0.is_some()).finish()
    }
}

impl Webhooks {
    /// Returns them where an address is configured; deliveries are among `tasks` and end with `stop`.
    pub(crate) fn new(
        config: Option<&WebhooksConfig>,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Option<Arc<Self>> {
        let config = config?.clone();
        let secret = config.secret.as_ref()?;
        // Checked with the configuration.
        let signer = Webhook::new(secret.expose_secret()).ok()?;
        let clients = match config.allow_private {
            true => Clients::default(),
            false => Clients::only(is_outside),
        };
        Some(Arc::new(Self {
            config,
            signer,
            clients,
            pauses: PAUSES,
            places: Arc::new(Semaphore::new(MAX_DELIVERIES)),
            tasks,
            stop,
            refused: CancellationToken::new(),
        }))
    }

    /// Returns how a session tells of itself.
    pub(crate) fn of_session(webhooks: Option<&Arc<Self>>, session: &SessionId) -> SessionWebhooks {
        SessionWebhooks(webhooks.map(|it| (Arc::clone(it), session.clone())))
    }

    /// Sends an event where somebody wants it; `data` makes what goes along.
    fn send(self: &Arc<Self>, event: WebhookEvent, data: impl FnOnce() -> Value) {
        if !self.config.events.contains(&event) || self.refused.is_cancelled() {
            return;
        }
        let kind = word(&event);
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            metrics::webhook("dropped");
            tracing::warn!(
                kind,
                "a webhook is dropped: {MAX_DELIVERIES} wait for an endpoint that does not take them"
            );
            return;
        };
        let body = json!({
            "type": kind,
            "timestamp": format!("{:.3}", Timestamp::now()),
            "data": data(),
        });
        let (this, body) = (Arc::clone(self), body.to_string());
        self.tasks.spawn(async move {
            let delivery = this.deliver(&kind, &body);
            let delivery = this.refused.run_until_cancelled(delivery);
            let outcome = this.stop.run_until_cancelled(delivery).await.flatten();
            metrics::webhook(match outcome {
                Some(true) => "delivered",
                Some(false) => "failed",
                None => "dropped",
            });
            drop(place);
        });
    }

    /// Sends an event until it is taken; returns whether it was.
    async fn deliver(&self, kind: &str, body: &str) -> bool {
        let Some(id) = id() else {
            return false;
        };
        let mut pauses = self.pauses.iter();
        loop {
            let problem = match self.attempt(&id, body).await {
                Ok(status) if (200..300).contains(&status) => return true,
                Ok(GONE) => {
                    tracing::warn!(
                        "the webhook's endpoint is gone (410): nothing is sent to it until the daemon is started anew"
                    );
                    self.refused.cancel();
                    return false;
                }
                Ok(status) => format!("it answered {status}"),
                Err(problem) => problem,
            };
            let Some(pause) = pauses.next() else {
                tracing::warn!(kind, id, problem, "a webhook is given up");
                return false;
            };
            tracing::info!(kind, id, problem, "a webhook is sent again later");
            // Up to a tenth more, so that what failed together does not come back together.
            let jitter = pause.mul_f64(f64::from(fraction()) / 2_550.0);
            tokio::time::sleep(*pause + jitter).await;
        }
    }

    /// Sends it once; returns the status of the answer. An error has nothing of the address, which may hold a secret.
    async fn attempt(&self, id: &str, body: &str) -> Result<u16, String> {
        if !self.config.allow_private {
            refuse_private(&self.config.url)?;
        }
        let client = self.clients.get(&self.config.url, None).await;
        let client = client.map_err(|error| error.to_string())?;
        let at = Timestamp::now().as_second();
        let signature = self.signer.sign(id, at, body.as_bytes());
        let signature = signature.map_err(|_| "it cannot be signed".to_owned())?;
        let request = client
            .post(&self.config.url)
            .timeout(TIMEOUT)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", at)
            .header("webhook-signature", signature)
            .body(body.to_owned());
        let answer = request.send().await;
        let answer = answer.map_err(|error| causes(&error.without_url()))?;
        Ok(answer.status().as_u16())
    }
}

impl SessionWebhooks {
    /// Tells how the session stands. Where it waits for somebody, that is told once for each question: not when another
    /// one is answered.
    pub(crate) fn status(&self, status: &SessionStatus, has_new_question: bool) {
        let Some((webhooks, session)) = &self.0 else {
            return;
        };
        if status.state == SessionStateName::RequiresAction && !has_new_question {
            return;
        }
        let event = match status.state {
            SessionStateName::Idle => WebhookEvent::Idle,
            SessionStateName::Running => WebhookEvent::Running,
            SessionStateName::RequiresAction => WebhookEvent::RequiresAction,
            SessionStateName::Failed => WebhookEvent::Failed,
        };
        webhooks.send(event, || {
            // A host is a word of the model's.
            let bare = |it: &Required| Required {
                host: None,
                ..it.clone()
            };
            let requires: Vec<Required> = status.requires.iter().map(bare).collect();
            match requires.is_empty() {
                true => json!({ "sessionId": session }),
                false => json!({ "sessionId": session, "requires": requires }),
            }
        });
    }

    /// Tells of an event that others may wait for.
    pub(crate) fn event(&self, event: &Event) {
        if let (Some((webhooks, session)), Event::ChatStreamEnd(end)) = (&self.0, event)
            // The exchange around a task has an end of its own.
            && end.conversation_id.task().is_none()
        {
            webhooks.send(WebhookEvent::ExchangeEnded, || {
                json!({
                    "sessionId": session,
                    "conversationId": end.conversation_id,
                    "messageId": end.message_id,
                    "stopReason": end.stop_reason,
                })
            });
        }
    }
}

/// Refuses an address that no name has to be looked up for.
fn refuse_private(url: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    let is_private = match url_host(&url) {
        Some(Host::Address(address)) => !is_outside(address),
        _ => is_loopback(&url),
    };
    match is_private {
        true => Err(format!(
            "`{}` is an address of this machine or of a private network (webhooks.allow_private)",
            url.host_str().unwrap_or_default()
        )),
        false => Ok(()),
    }
}

/// Returns a name that no other delivery has; `None` where there are no random numbers.
fn id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("msg_{:032x}", u128::from_ne_bytes(bytes)))
}

/// A number from 0 to 255.
fn fraction() -> u8 {
    let mut byte = [0];
    let _ = getrandom::fill(&mut byte);
    let [byte] = byte;
    byte
}

#[cfg(test)]
mod tests;

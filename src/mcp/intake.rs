//! How much of a server is taken in: at which pace, and how many of its own requests at once.
//!
//! The SDK makes a task of each message and queues each answer, all without bounds, and the daemon has one thread for
//! everybody. So each message has a price, the time that a server may well let pass before the next one. An allowance
//! covers bursts; a server that has used it up waits in its own pipe, and one that goes on all the same has failed.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use parking_lot::Mutex;

/// The price of a message: to parse it and to run its task costs some tens of microseconds, a few per cent of this.
const MESSAGE: Duration = Duration::from_micros(500);

/// The price of each byte of it, for it is walked through several times: 33 MB a second.
const BYTE: Duration = Duration::from_nanos(30);

/// The price of a message that nobody wants: only its method is looked at.
const SKIPPED: Duration = Duration::from_micros(50);

/// The price of a request, on top: it is answered, a person may be asked for it, and sessions notified.
const REQUEST: Duration = Duration::from_millis(100);

/// What is taken in before a server has to wait: 4,000 messages, 60 MB, or 20 requests.
const ALLOWANCE: Duration = Duration::from_secs(2);

/// How long a server may go on without letting half of its allowance come back. A program that reports on each file of
/// a large directory is done by then; a loop without an end never is.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most requests of a server that it has no answer to, or has not read the answer: more than one has questions.
const MAX_OPEN: usize = 128;

/// The longest message whose method is looked at, in bytes: the parse costs as much as is saved by it.
const SMALL: usize = 64 * 1024;

/// What one server is granted, over all streams of one connection to it.
pub(super) struct Intake {
    server: String,
    // Held for some arithmetic, never across an await.
    account: Mutex<Account>,
    open: Arc<()>,
    failed: SetOnce<String>,
}

struct Account {
    /// When all that was taken in is paid for; in the past for a server at rest.
    due: Instant,
    /// Since when it has had to wait, without half of its allowance having come back.
    held: Option<Instant>,
}

/// A request of the server that is open, or an answer that is on its way; while it lives.
#[derive(Clone)]
pub(super) struct Open(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl Intake {
    /// An untouched allowance.
    pub(super) fn of(server: &str) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            account: Mutex::new(Account {
                due: Instant::now(),
                held: None,
            }),
            open: Arc::default(),
            failed: SetOnce::new(),
        })
    }

    /// Waits until a message may be taken in; whether anybody wants it. Never returns once the server has failed.
    pub(super) async fn admit(&self, message: &[u8]) -> bool {
        let is_wanted = !self.is_idle_talk(message);
        let price = if is_wanted { MESSAGE } else { SKIPPED };
        self.pay(price + BYTE * u32::try_from(message.len()).unwrap_or(u32::MAX))
            .await;
        is_wanted
    }

    /// Pays for bytes that are read and thrown away.
    pub(super) async fn waste(&self, bytes: usize) {
        self.pay(BYTE * u32::try_from(bytes).unwrap_or(u32::MAX))
            .await;
    }

    /// Pays for a stream that is opened because the server ended the last one.
    pub(super) async fn reopen(&self) {
        self.pay(REQUEST).await;
    }

    /// Counts a request of the server, until the returned value is dropped.
    pub(super) fn request(&self) -> Open {
        // What is read next waits for it.
        self.account.lock().charge(REQUEST);
        self.answer()
    }

    /// Counts an answer that the server has to read, until the returned value is dropped.
    pub(super) fn answer(&self) -> Open {
        let open = Open(Arc::clone(&self.open));
        // One is the intake's own.
        if Arc::strong_count(&self.open) > MAX_OPEN + 1 {
            self.fail(format!(
                "it sends too much: more than {MAX_OPEN} requests of its own are open, or their answers not read"
            ));
        }
        open
    }

    /// Waits until the server has sent more than is taken in, and says so. Cancel-safe.
    pub(super) async fn failed(&self) -> String {
        self.failed.wait().await.clone()
    }

    async fn pay(&self, price: Duration) {
        // First what the message before has set going, and the sockets and timers of everybody.
        tokio::task::yield_now().await;
        let (wait, held) = {
            let mut account = self.account.lock();
            account.charge(price);
            account.wait()
        };
        if held.is_zero() && !wait.is_zero() {
            tracing::warn!(
                server = self.server,
                "an MCP server sends too much; it is read slowly"
            );
        }
        if held > PATIENCE {
            let a_second = |price: Duration| 1_000_000_000 / price.as_nanos();
            self.fail(format!(
                "it sends too much: more than {} messages, {} requests of its own or {} MB a second, for {} s without a pause",
                a_second(MESSAGE),
                a_second(REQUEST),
                a_second(BYTE) / 1_000_000,
                PATIENCE.as_secs(),
            ));
        }
        match self.failed.initialized() {
            true => std::future::pending().await,
            false if wait.is_zero() => {}
            false => tokio::time::sleep(wait).await,
        }
    }

    fn fail(&self, why: String) {
        // What failed first is reported.
        drop(self.failed.set(why));
    }

    /// Whether a message can be left out: log and progress that come too fast, for the next one says as much.
    fn is_idle_talk(&self, message: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            method: Option<Cow<'a, str>>,
        }
        if message.len() > SMALL {
            return false;
        }
        let head = serde_json::from_slice::<Head>(message).ok();
        match head.and_then(|head| head.method).as_deref() {
            Some("notifications/message" | "notifications/progress") => {
                !self.account.lock().is_at_ease()
            }
            _ => false,
        }
    }
}

impl Account {
    fn charge(&mut self, price: Duration) {
        self.due = self.due.max(Instant::now()) + price;
    }

    /// How long to wait now, and for how long that has been so.
    fn wait(&mut self) -> (Duration, Duration) {
        let now = Instant::now();
        let wait = self.due.saturating_duration_since(now + ALLOWANCE);
        if self.is_at_ease() {
            self.held = None;
        }
        if wait.is_zero() {
            return (wait, Duration::ZERO);
        }
        let since = *self.held.get_or_insert(now);
        (wait, now.duration_since(since))
    }

    /// Whether half of the allowance is there.
    fn is_at_ease(&self) -> bool {
        self.due <= Instant::now() + ALLOWANCE / 2
    }
}

#[cfg(test)]
mod tests;

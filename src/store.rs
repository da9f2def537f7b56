//! What of a session is kept, and how far that is safe.
//!
//! Whoever changes something that outlives the process writes it to the session's `Journal`, before it says so in an
//! event. The session's log holds back each event until all that was written before it is safe: what a client has seen,
//! the store has.
//!
//! `restored` is the way back, `transfer` the way to a file and from one; what a store does is in the crate `outrigger-store`.

mod body;
pub(crate) mod calls;
pub(crate) mod files;
mod known;
mod labels;
mod outbox;
pub(crate) mod restored;
mod rules;
pub(crate) mod transfer;
mod updates;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;
use outrigger_store::{Change, Exchange, Queued, Sent, TitleBy, Usage};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use known::Known;
pub(crate) use labels::labels;
pub(crate) use outrigger_store::postgres::{self, Postgres};
pub(crate) use outrigger_store::sqlite::{Checkup, Reader, check_up, vacuum};
pub use outrigger_store::sqlite::{Sqlite, Sync};
pub use outrigger_store::{AnyStore, Error, Growth, Health, Limits, UserStore};
pub(crate) use outrigger_store::{Held, Store};
pub(crate) use updates::{Updates, UserUpdates, update, updated};
pub(crate) use waiting::Waiting;

use crate::message::{ConversationId, Message, MessageId, SessionId};
use crate::protocol::RequestId;
use crate::protocol::answer;
use crate::protocol::command::Configure;
use crate::protocol::event::StreamEnd;
use outbox::Outbox;

/// How many numbers of events are reserved at once, and how many of them are left when more are reserved: enough for what
/// is emitted until that is safe, so that nobody waits for it.
const EVENTS: (u64, u64) = (10_000, 1_000);

/// The same for ids, which people read: they are no more than so many further after a restart.
const IDS: (u64, u64) = (100, 20);

/// The way of one session's changes into the store, in order; nowhere where there is none. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Journal(Option<Arc<Shared>>);

struct Shared {
    outbox: Arc<Outbox>,
    /// Whether the store has the session: it is made with the first thing that is worth keeping.
    is_made: AtomicBool,
    has_title: AtomicBool,
    project: Mutex<Option<String>>,
    /// What the client configured before there was anything worth keeping.
    settings: Mutex<Option<String>>,
    /// The highest numbers of events and ids that are reserved.
    seq: AtomicU64,
    ids: AtomicU64,
    /// Changes are numbered in the order in which they are given.
    order: Mutex<()>,
    /// Whether the client wants nothing kept any more.
    is_ended: AtomicBool,
    /// Whether the user named it. Set, and looked at before a title is given, under `order`.
    is_named: AtomicBool,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("given", &self.given())
            .field("safe", &self.safe())
            .finish_non_exhaustive()
    }
}

impl Journal {
    /// Returns the journal of a session; `more` is told whenever more of it is safe. `tenure` is cancelled where the session
    /// must not go on in this daemon.
    pub(crate) fn new(
        (store, updates): (Arc<dyn Store>, UserUpdates),
        session: &SessionId,
        known: Known,
        more: Arc<Notify>,
        tenure: CancellationToken,
    ) -> Self {
        Self(Some(Arc::new(Shared {
            outbox: Outbox::new(store, session, updates, more, tenure),
            is_made: AtomicBool::new(known.is_made),
            has_title: AtomicBool::new(known.has_title),
            project: Mutex::new(known.project),
            settings: Mutex::default(),
            seq: AtomicU64::new(known.seq),
            ids: AtomicU64::new(known.ids),
            order: Mutex::default(),
            is_ended: AtomicBool::default(),
            is_named: AtomicBool::default(),
        })))
    }

    /// Returns whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        let is_on = |shared: &Arc<Shared>| !shared.is_ended.load(Ordering::Acquire);
        self.0.as_ref().is_some_and(is_on)
    }

    /// Deletes what was kept of the session, and keeps nothing from now on.
    pub(crate) fn end(&self) {
        let Some(shared) = &self.0 else {
            return;
        };
        let order = shared.order.lock();
        let was_on = !shared.is_ended.swap(true, Ordering::AcqRel);
        if was_on && shared.is_made.load(Ordering::Acquire) {
            shared.outbox.give(&order, vec![Change::Delete]);
        }
    }

    /// Returns how many changes were given so far.
    pub(crate) fn given(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.outbox.given())
    }

    /// Returns up to which change all is safe, or given up.
    pub(crate) fn safe(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.outbox.safe())
    }

    /// Waits until all that was given so far is safe, or things go on without; returns false where the session ends instead:
    /// another daemon may have it.
    #[must_use]
    pub(crate) async fn settled(&self) -> bool {
        match &self.0 {
            Some(shared) => shared.outbox.settled().await,
            None => true,
        }
    }

    /// Remembers messages of a conversation, at its end.
    pub(crate) fn messages(
        &self,
        conversation: &ConversationId,
        exchange: &MessageId,
        messages: &[Message],
    ) {
        self.rewrite(conversation, exchange, None, messages);
    }

    /// Remembers what the user said, which waited under these names until now.
    pub(crate) fn said(
        &self,
        conversation: &ConversationId,
        exchange: &MessageId,
        message: &Message,
        waited: &[MessageId],
    ) {
        if self.is_on() {
            let mut changes = self.added(conversation, exchange, message);
            changes.extend(unqueued(waited));
            self.write(changes);
        }
    }

    /// Remembers messages of a conversation in the place of those from `from` on; at its end where there is none.
    pub(crate) fn rewrite(
        &self,
        conversation: &ConversationId,
        exchange: &MessageId,
        from: Option<usize>,
        messages: &[Message],
    ) {
        if !self.is_on() {
            return;
        }
        let truncate = from.map(|from| Change::Truncate {
            conversation: conversation.to_string(),
            from: from as u64,
        });
        let mut changes = Vec::from_iter(truncate);
        for message in messages {
            changes.extend(self.added(conversation, exchange, message));
        }
        if !changes.is_empty() {
            self.write(changes);
        }
    }

    /// Notes what of a conversation its model does not see any more; `None` where it sees all.
    pub(crate) fn compacted(
        &self,
        conversation: &ConversationId,
        compacted: Option<&impl serde::Serialize>,
    ) {
        self.write_one(|| Change::Compacted {
            conversation: conversation.to_string(),
            compacted: compacted.map(json),
        });
    }

    fn added(
        &self,
        conversation: &ConversationId,
        exchange: &MessageId,
        message: &Message,
    ) -> Vec<Change> {
        let mut changes = Vec::with_capacity(3);
        if let (Message::User(parts), Some(shared)) = (message, &self.0)
            && !shared.has_title.load(Ordering::Relaxed)
            && let Some(title) = body::title(parts)
        {
            shared.has_title.store(true, Ordering::Relaxed);
            let by = TitleBy::Daemon;
            changes.push(Change::Title { title, by });
        }
        changes.push(Change::Message {
            conversation: conversation.to_string(),
            message: outrigger_store::Message {
                exchange: exchange.to_string(),
                body: body::of(message),
                at_ms: now(),
            },
        });
        if let Message::ToolResult(result) = message {
            changes.push(Change::Answered {
                id: result.id.to_string(),
            });
        }
        changes
    }

    /// Gives the session a title that a model made, unless its user names it.
    pub(crate) fn suggest_title(&self, title: String) {
        let Some(shared) = self.0.as_ref().filter(|_| self.is_on()) else {
            return;
        };
        let order = shared.order.lock();
        // Else its event would overtake the user's, which the store prefers in any order.
        if !shared.is_named.load(Ordering::Acquire) {
            let by = TitleBy::Daemon;
            let title = Change::Title { title, by };
            shared.outbox.give(&order, vec![title]);
        }
    }

    /// Notes that the user names the session, before that is written: no other title is given from here on.
    pub(crate) fn named(&self) {
        if let Some(shared) = &self.0 {
            let _order = shared.order.lock();
            shared.is_named.store(true, Ordering::Release);
        }
    }

    /// Forgets a conversation.
    pub(crate) fn forget(&self, conversation: &ConversationId) {
        self.write_one(|| Change::Forget {
            conversation: conversation.to_string(),
        });
    }

    /// Notes that an exchange began.
    pub(crate) fn began(&self, conversation: &ConversationId, exchange: &MessageId) {
        self.write_one(|| {
            Change::Began(Exchange {
                id: exchange.to_string(),
                conversation: conversation.to_string(),
                began_ms: now(),
                end: None,
            })
        });
    }

    /// Notes how an exchange ended, in the event of this number.
    pub(crate) fn ended(&self, seq: u64, end: &StreamEnd) {
        self.write_one(|| Change::Ended {
            id: end.message_id.to_string(),
            conversation: end.conversation_id.to_string(),
            at_ms: now(),
            seq,
            end: json(end),
        });
    }

    /// Notes a send that was admitted under this name and is no message yet, with what it was answered.
    pub(crate) fn admitted(
        &self,
        name: &MessageId,
        send: &str,
        digest: &[u8],
        (id, answer): (Option<&RequestId>, &answer::Sent),
    ) {
        if !self.is_on() {
            return;
        }
        let queued = Change::Queued(Queued {
            id: name.to_string(),
            conversation: answer.conversation_id.to_string(),
            send: send.to_owned(),
        });
        // Together: what waits after a restart is known when it is sent again.
        let sent = id.map(|id| {
            Change::Sent(Sent {
                id: id.to_string(),
                digest: digest.to_vec(),
                answer: json(answer),
            })
        });
        self.write([queued].into_iter().chain(sent).collect());
    }

    /// Notes what sends say that wait, and their order: of each its name and all that it says.
    pub(crate) fn requeued<'a>(
        &self,
        conversation: &ConversationId,
        sends: impl IntoIterator<Item = (&'a MessageId, &'a str)>,
    ) {
        if !self.is_on() {
            return;
        }
        let changes = sends.into_iter().flat_map(|(name, send)| {
            let id = name.to_string();
            // In the order in which they are written.
            [
                Change::Unqueued { id: id.clone() },
                Change::Queued(Queued {
                    id,
                    conversation: conversation.to_string(),
                    send: send.to_owned(),
                }),
            ]
        });
        self.write(changes.collect());
    }

    /// Notes that a send which waits says something else, in the place that it has.
    pub(crate) fn edited(&self, conversation: &ConversationId, name: &MessageId, send: &str) {
        self.write_one(|| {
            Change::Queued(Queued {
                id: name.to_string(),
                conversation: conversation.to_string(),
                send: send.to_owned(),
            })
        });
    }

    /// Notes that sends were dropped.
    pub(crate) fn dropped(&self, names: &[MessageId]) {
        if self.is_on() && !names.is_empty() {
            self.write(unqueued(names).collect());
        }
    }

    /// Notes a request to a model, also of a session that is not kept: then without the names of it and its conversation.
    pub(crate) fn used(&self, used: Usage) {
        let Some(shared) = &self.0 else {
            return;
        };
        if self.is_on() {
            return self.write(vec![Change::Used(used)]);
        }
        let used = Usage {
            conversation: String::new(),
            exchange: String::new(),
            ..used
        };
        let order = shared.order.lock();
        shared.outbox.give(&order, vec![Change::Used(used)]);
    }

    /// Notes what the client configured.
    pub(crate) fn settings(&self, settings: impl FnOnce() -> Configure) {
        let Some(shared) = &self.0 else {
            return;
        };
        let settings = json(&settings());
        *shared.settings.lock() = Some(settings.clone());
        self.write_if_made(|| Change::Settings(settings));
    }

    /// Notes the folder that the session works in from now on.
    pub(crate) fn project(&self, project: Option<String>) {
        if let Some(shared) = &self.0 {
            shared.project.lock().clone_from(&project);
        }
        self.write_if_made(|| Change::Project(project));
    }

    /// Reserves numbers of events where few are left; `last` is the highest that is used.
    pub(crate) fn use_seq(&self, last: u64) {
        self.reserve(last, EVENTS, |shared| &shared.seq);
    }

    /// Reserves numbers of ids where few are left.
    pub(crate) fn use_id(&self, last: u64) {
        self.reserve(last, IDS, |shared| &shared.ids);
    }

    fn reserve(
        &self,
        last: u64,
        (at_once, low): (u64, u64),
        which: impl FnOnce(&Shared) -> &AtomicU64,
    ) {
        let Some(shared) = &self.0 else {
            return;
        };
        let reserved = which(shared);
        if last + low <= reserved.load(Ordering::Relaxed) {
            return;
        }
        reserved.fetch_max(last + at_once, Ordering::Relaxed);
        // A session that is not kept has told nobody of its numbers.
        if shared.is_made.load(Ordering::Acquire) {
            self.write(vec![shared.reserved()]);
        }
    }

    fn write_one(&self, change: impl FnOnce() -> Change) {
        if self.is_on() {
            self.write(vec![change()]);
        }
    }

    /// What alone is nothing worth keeping is written only where the session is kept already.
    fn write_if_made(&self, change: impl FnOnce() -> Change) {
        let is_made = |shared: &Arc<Shared>| shared.is_made.load(Ordering::Acquire);
        if self.0.as_ref().is_some_and(is_made) {
            self.write(vec![change()]);
        }
    }

    fn write(&self, mut changes: Vec<Change>) {
        let Some(shared) = &self.0 else {
            return;
        };
        let order = shared.order.lock();
        if shared.is_ended.load(Ordering::Acquire) {
            return;
        }
        if !shared.is_made.swap(true, Ordering::AcqRel) {
            let create = Change::Create {
                project: shared.project.lock().clone(),
                at_ms: now(),
            };
            let settings = shared.settings.lock().clone().map(Change::Settings);
            let first = [create, shared.reserved()].into_iter().chain(settings);
            changes.splice(0..0, first);
        }
        shared.outbox.give(&order, changes);
    }
}

impl Shared {
    fn reserved(&self) -> Change {
        Change::Reserve {
            seq: self.seq.load(Ordering::Relaxed),
            ids: self.ids.load(Ordering::Relaxed),
        }
    }
}

fn unqueued(names: &[MessageId]) -> impl Iterator<Item = Change> {
    names
        .iter()
        .map(|id| Change::Unqueued { id: id.to_string() })
}

/// Returns the first line of a text as a title, cut where it is long; `None` where nothing is in it.
pub(crate) fn title(text: &str) -> Option<String> {
    body::title_of(text)
}

/// Returns the words of a message as the store has it.
pub(crate) fn words_of(body: &str) -> String {
    body::words_of(body)
}

pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value)
        .inspect_err(|error| tracing::error!(%error, "something could not be written as JSON"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! What all exchanges of a conversation share.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::exchange::announced::AnnouncedCalls;
use crate::exchange::budget::estimate;
use crate::exchange::history::{History, Room};
use crate::exchange::ledger::Totals;
use crate::exchange::questions::Remembered;
use crate::exchange::searches::Searches;
use crate::message::{ConversationId, Message, ToolCall};
use crate::sandbox::seen::SeenFiles;
use parking_lot::Mutex;

/// A conversation, as its exchanges see it.
#[derive(Debug)]
pub struct ConversationContext {
    /// Its id.
    pub id: ConversationId,
    /// Who made it.
    pub origin: Origin,
    /// Its messages.
    pub history: Arc<History>,
    /// What it has seen of files.
    pub seen: SeenFiles,
    /// What it need not ask again.
    pub remembered: Remembered,
    /// What the model calls again and again.
    pub repeats: Repeats,
    /// The searches of the exchange that runs.
    pub searches: Searches,
    /// Calls whose input is still streaming.
    pub announced: AnnouncedCalls,
    /// How full the model's context is.
    pub context_tokens: ContextTokens,
    /// What its exchanges have used.
    pub totals: Totals,
}

/// Who made a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client, by sending something; `session:state` lists it.
    Client,
    /// The daemon, for work of its own; only its events are seen.
    Daemon,
}

impl ConversationContext {
    /// Returns a conversation without messages, whose history shares the room for all.
    pub fn new(id: ConversationId, origin: Origin, room: Room, remembered: Remembered) -> Self {
        Self {
            id,
            origin,
            history: Arc::new(History::new(room)),
            seen: SeenFiles::default(),
            remembered,
            repeats: Repeats::default(),
            searches: Searches::default(),
            announced: AnnouncedCalls::default(),
            context_tokens: ContextTokens::default(),
            totals: Totals::default(),
        }
    }
}

/// What a conversation's messages come to in tokens: as the provider counted them last, and how many messages
/// that was.
#[derive(Debug, Default)]
pub struct ContextTokens(Mutex<Option<(u64, usize)>>);

impl ContextTokens {
    /// Takes the count of the first so many messages.
    pub fn keep(&self, tokens: u64, messages: usize) {
        *self.0.lock() = Some((tokens, messages));
    }

    /// Forgets it: the messages are others now.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }

    /// Returns the count with an estimate of the messages since; `None` where nothing was counted.
    pub fn tokens(&self, messages: &[Message]) -> Option<u64> {
        let (tokens, counted) = (*self.0.lock())?;
        let since = messages.get(counted..).unwrap_or_default();
        Some(tokens.saturating_add(estimate(since)))
    }
}

/// The last call of a conversation and how often in a row the model has made it in the exchange that runs.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<Option<Repeat>>);

/// A tool's name, the input, and how often.
type Repeat = (String, Map<String, Value>, u32);

impl Repeats {
    /// Begins anew: the user spoke, so what follows is no loop of the model.
    pub fn restart(&self) {
        *self.0.lock() = None;
    }

    /// Counts how often in a row this very call was made, this one included.
    pub fn count(&self, call: &ToolCall) -> u32 {
        let mut last = self.0.lock();
        if let Some((name, input, count)) = &mut *last
            && *name == call.name
            && *input == call.input
        {
            *count += 1;
            return *count;
        }
        *last = Some((call.name.clone(), call.input.clone(), 1));
        1
    }
}

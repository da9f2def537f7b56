//! What an exchange is to do and with what: everything that is settled before its first turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::task::TaskTracker;

use super::ask::Remembered;
use super::budget::estimate;
use super::events::Events;
use super::executions::Executions;
use super::first_model::FirstModels;
use super::history::Room;
use super::inputs::Inputs;
use super::searches::Searches;
use super::written::Written;
use crate::audit::Audit;
use crate::config::Config;
use crate::message::{
    ConversationId, InputId, Message, MessageId, OnViolation, Part, SessionId, Thinking, ToolCall,
    ToolId, TrustLevel,
};
use crate::permission::Scope;
use crate::provider::Provider;
use crate::sandbox::quota::WriteQuota;
use crate::sandbox::seen::SeenFiles;
use crate::sandbox::spill::Spill;
use crate::telemetry::Redactor;
use crate::tool::Registry;
use crate::tool::locks::Locks;

/// What all exchanges of the daemon share.
#[derive(Clone)]
pub struct Services {
    /// The configuration.
    pub config: Arc<Config>,
    /// The tools there are.
    pub registry: Arc<Registry>,
    /// Who reads and writes which file.
    pub locks: Arc<Locks>,
    /// The exchanges that run, for a shutdown to wait for.
    pub exchanges: TaskTracker,
    /// Takes secrets out of what tools return.
    pub redactor: Redactor,
    /// The models of instances for which nobody names one.
    pub first_models: Arc<FirstModels>,
    /// Where whole outputs are kept.
    pub spill: Spill,
    /// Where each call is recorded.
    pub audit: Audit,
    /// How much conversations may remember.
    pub room: Room,
}

/// What all exchanges of a session share.
#[derive(Clone)]
pub struct SessionShared {
    /// Its id, for the audit log.
    pub id: SessionId,
    /// Where events go.
    pub events: Events,
    /// What became of each call.
    pub executions: Arc<Executions>,
    /// Mints the ids of exchanges and calls.
    pub ids: Arc<Ids>,
    /// What the session may still write.
    pub quota: Arc<WriteQuota>,
    /// Whether its client answers what calls ask for, and what is open of that.
    pub inputs: Arc<Inputs>,
}

/// Mints the ids of a session: short, so that a person can type them.
#[derive(Debug, Default)]
pub struct Ids {
    messages: AtomicU64,
    tools: AtomicU64,
    inputs: AtomicU64,
}

impl Ids {
    /// Returns the next exchange's id: `m1`, `m2`, ….
    pub fn message(&self) -> MessageId {
        MessageId::new(format!(
            "m{}",
            self.messages.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Returns the next call's id: `t1`, `t2`, …; see also [`Ids::taken`].
    pub fn tool(&self) -> ToolId {
        ToolId::new(format!(
            "t{}",
            self.tools.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Returns the next request's for input: `i1`, `i2`, ….
    pub fn input(&self) -> InputId {
        InputId::new(format!(
            "i{}",
            self.inputs.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Takes note of a call that a client's own history has: no later call gets its id.
    pub fn taken(&self, id: &ToolId) {
        let number = id.as_str().strip_prefix('t').map(str::parse::<u32>);
        if let Some(Ok(number)) = number {
            self.tools.fetch_max(u64::from(number), Ordering::Relaxed);
        }
    }
}

/// What all exchanges of a conversation share.
#[derive(Debug, Default)]
pub struct ConversationShared {
    /// What it has seen of files.
    pub seen: SeenFiles,
    /// What it need not ask again.
    pub remembered: Remembered,
    /// What the model calls again and again.
    pub repeats: Repeats,
    /// The searches of the exchange that runs.
    pub searches: Searches,
    /// What the model calls and has not written to its end.
    pub written: Written,
    /// How full the model's context is.
    pub counted: Counted,
}

/// What a conversation's messages come to in tokens: as the provider counted them last, and how many messages
/// that was.
#[derive(Debug, Default)]
pub struct Counted(Mutex<Option<(u64, usize)>>);

impl Counted {
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

/// One exchange, resolved from the send, the session, the workflow and the configuration.
#[derive(Clone)]
pub struct Setup {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// What the user says.
    pub content: Vec<Part>,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// The provider instance's name.
    pub provider_id: String,
    /// The model's id; empty until its exchange begins, where nobody names one.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// How much is done without asking.
    pub trust: TrustLevel,
    /// What becomes of the exchange where a call's path leaves the roots or is denied.
    pub on_violation: OnViolation,
    /// What tools may do.
    pub scope: Scope,
    /// Most tokens of each answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Thinking.
    pub thinking: Option<Thinking>,
    /// Most turns.
    pub max_turns: u32,
    /// Longest duration without tools on offer.
    pub timeout_plain: Duration,
    /// Longest duration with tools on offer.
    pub timeout_tools: Duration,
    /// Tokens kept free for the last answer.
    pub context_reserve: u64,
    /// Most retries of a turn.
    pub max_retries: u32,
    /// How often a turn that broke off after output is run again.
    pub restarts: u32,
    /// Routes the conversation's requests to the same prompt cache.
    pub cache_key: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_gets_an_id_that_a_history_has() {
        let ids = Ids::default();
        assert_eq!(ids.tool().as_str(), "t1");
        for (taken, next) in [
            ("t4", "t5"),
            ("t2", "t6"),
            ("t", "t7"),
            ("call_9", "t8"),
            // No daemon comes so far.
            ("t99999999999999999999", "t9"),
            ("t18446744073709551615", "t10"),
        ] {
            ids.taken(&ToolId::new(taken));
            assert_eq!(ids.tool().as_str(), next, "{taken}");
        }
    }
}

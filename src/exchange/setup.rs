//! What an exchange is to do and with what: everything that is settled before its first turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::ask::Remembered;
use super::events::Events;
use super::executions::Executions;
use crate::config::Config;
use crate::message::{ConversationId, MessageId, Part, Thinking, ToolId, TrustLevel};
use crate::permission::Scope;
use crate::provider::Provider;
use crate::sandbox::seen::SeenFiles;
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
}

/// What all exchanges of a session share.
#[derive(Clone)]
pub struct SessionShared {
    /// Where events go.
    pub events: Events,
    /// What became of each call.
    pub executions: Arc<Executions>,
    /// The ids told last.
    pub ids: Arc<Ids>,
}

/// Mints the ids of a session: short, so that a person can type them.
#[derive(Debug, Default)]
pub struct Ids {
    messages: AtomicU64,
    tools: AtomicU64,
}

impl Ids {
    /// Returns the next exchange's id: `m1`, `m2`, ….
    pub fn message(&self) -> MessageId {
        MessageId::new(format!(
            "m{}",
            self.messages.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Returns the next call's id: `t1`, `t2`, ….
    pub fn tool(&self) -> ToolId {
        ToolId::new(format!(
            "t{}",
            self.tools.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }
}

/// What all exchanges of a conversation share.
#[derive(Debug, Default)]
pub struct ConversationShared {
    /// What it has seen of files.
    pub seen: SeenFiles,
    /// What it need not ask again.
    pub remembered: Remembered,
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
    /// The model's id.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// How much is done without asking.
    pub trust: TrustLevel,
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

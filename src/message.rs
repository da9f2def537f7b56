//! The words every layer shares: ids, messages as a conversation remembers them, usage, danger levels.
//!
//! Nothing here runs or belongs to one provider. What derives `JsonSchema` is a type of the contract with clients too;
//! the rest of the contract is in [`crate::protocol`]. How a message looks to a model is each provider's own affair.

mod background;
mod document;
pub mod image;
mod money;
mod outcome;
mod stop;
mod task;
mod undo;
mod usage;

use std::sync::Arc;

pub use background::{BASH, BackgroundCommand, BackgroundStatus, ListeningPort, SKILL, WITH_BASH};
use clap::ValueEnum;
pub use document::{Document, PDF};
pub use money::{BudgetScope, Money};
pub(crate) use outcome::{CUT_DIFF, is_cut_diff};
pub use outcome::{ChangedFile, ChangedFiles, FileChange, Metadata, OutputStream};
pub use outrigger_shell::DangerLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use stop::StopReason;
pub use task::{TASK, TaskFacts};
pub use undo::{Before, ContentHash, NotReverted, Undo};
pub use usage::{Tokens, Usage};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text of an id.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Names a conversation within its session; chosen by the client, `"default"` where it says none.
    ConversationId
}
id! {
    /// Names an exchange, on all of its events: `m1`, `m2`, … within a session.
    MessageId
}
id! {
    /// Names one tool call of the model, on all of its events: `t1`, `t2`, … within a session.
    ToolId
}
id! {
    /// Names a command in the background: `b1`, `b2`, … within a session.
    BackgroundId
}
id! {
    /// Names what a tool asks of the user while it runs: `i1`, `i2`, … within a session.
    InputId
}
id! {
    /// Names a compaction: `k1`, `k2`, … within a session.
    CompactionId
}
id! {
    /// Names a question whether more may be spent: `c1`, `c2`, … within a session.
    BudgetId
}
id! {
    /// Names a question whether files may speak for the user: `f1`, `f2`, … within a session.
    TrustId
}
id! {
    /// Names a session: 22 characters of base64url, not guessable.
    SessionId
}

impl SessionId {
    /// Makes up an id that nobody guesses; `None`, and a line in the log, where there are no random numbers.
    pub(crate) fn random() -> Option<Self> {
        use base64::Engine as _;

        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .inspect_err(|error| tracing::error!(%error, "no random numbers for a session id"))
            .ok()?;
        // The first character is a letter, so that no command line takes it for a flag.
        bytes[0] &= 0x7F;
        let id = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        Some(Self::new(id))
    }
}

/// One message of a conversation as the daemon remembers it.
///
/// A history is valid when every [`ToolCall`] of a [`Reply`] is answered by exactly one
/// [`ToolResult`] directly after that reply, in the order of the calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What the user said.
    User(Vec<Part>),
    /// What the model answered in one turn.
    Reply(Reply),
    /// What one tool call came to.
    ToolResult(ToolResult),
}

/// A piece of what a user says or a tool returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Part {
    /// Plain text.
    Text {
        /// The text itself, UTF-8.
        text: String,
    },
    /// A picture.
    Image {
        /// Media type, e.g. `image/png`.
        media_type: String,
        /// The bytes in standard base64.
        data: String,
    },
    /// A document of the user: a PDF or a text file.
    Document(Document),
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What the model answered in one turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// All text of the turn, joined.
    pub text: String,
    /// All thinking or reasoning text of the turn, joined; a summary with some providers.
    pub thinking: String,
    /// The calls the model made, in its order.
    pub calls: Vec<ToolCall>,
    /// The provider's own form of this reply, to be sent back unchanged to the same provider and model.
    pub native: Option<NativeReply>,
}

impl Reply {
    /// Returns whether there is nothing in it to be remembered; thinking alone is nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.native.is_none()
    }
}

/// One tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    rename = "WireCall",
    description = "A tool call within a [`WireMessage`]."
)]
pub struct ToolCall {
    /// The daemon's id, or the client's own in a history that it keeps itself.
    pub id: ToolId,
    /// The tool's name.
    pub name: String,
    /// The input.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// The provider's own id of the call.
    #[serde(alias = "provider_call_id", skip_serializing_if = "Option::is_none")]
    pub provider_call_id: Option<String>,
}

/// What one tool call came to, as the model reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The daemon's id of the call that this answers.
    pub id: ToolId,
    /// The tool's name as the daemon knows it.
    pub name: String,
    /// Text and images for the model; at least one part.
    pub content: Vec<Part>,
    /// Whether the call failed, was refused, or never ran.
    pub is_error: bool,
}

/// A reply in the provider's own form.
///
/// Thinking signatures, encrypted reasoning items and unknown blocks live here. It is opaque to
/// every layer but the provider's module that made it, and of no use to any other model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NativeReply {
    /// The wire format the items are in, e.g. `anthropic-messages`.
    pub wire: String,
    /// The provider instance that made it.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// What has to go back unchanged, in the wire format's own shape.
    pub items: Value,
}

/// How much harm one call may do, and why it is thought so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Danger {
    /// The level.
    pub level: DangerLevel,
    /// Each reason in words for the user; empty where the level needs none.
    pub reasons: Vec<String>,
}

impl Danger {
    /// A level that needs no reason.
    pub fn plain(level: DangerLevel) -> Self {
        Self {
            level,
            reasons: Vec::new(),
        }
    }

    /// A level with one reason.
    pub fn new(level: DangerLevel, reason: impl Into<String>) -> Self {
        Self {
            level,
            reasons: vec![reason.into()],
        }
    }
}

/// What becomes of an exchange in which a call's path leaves the roots or is denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnViolation {
    /// It ends when the other calls of the turn have.
    #[default]
    Stop,
    /// The model reads it as an error and goes on; the third one ends the exchange.
    Error,
}

/// How much is done without asking the user, the least first.
// Each is freer than the one before it, and so is greater.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    ValueEnum,
)]
#[serde(rename_all = "camelCase")]
pub enum TrustLevel {
    /// Every call is asked for.
    Supervised,
    /// What can change something is asked for.
    #[default]
    Guided,
    /// Only what goes beyond the scope is asked for.
    Autonomous,
}

/// What a tool is, as the model and the client get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Unique name: `^[A-Za-z0-9_-]{1,64}$`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its input, always of type `object`.
    // Shared: each exchange has a copy of what it offers.
    pub input_schema: Arc<Value>,
    /// What sort of tool it is.
    pub category: ToolCategory,
    /// The least danger any call of it has; one call may be worse.
    pub danger_level: DangerLevel,
    /// Where it comes from: `core`, `custom`, `client` or `mcp:SERVER`.
    pub origin: String,
}

/// What sort of tool it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolCategory {
    /// Reads or writes files of the project.
    File,
    /// Runs a program.
    Exec,
    /// Asks a search engine.
    Search,
    /// Reads what is on other machines.
    Network,
    /// Belongs to an MCP server.
    Mcp,
    /// The client runs it.
    Client,
    /// Hands work to another model.
    Task,
}

/// Whether and how hard the model is to think before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// Whether to think at all.
    pub enabled: bool,
    /// Most tokens to think with, for models that take a number; at least 1,024.
    #[serde(
        default,
        alias = "budget_tokens",
        skip_serializing_if = "Option::is_none"
    )]
    pub budget_tokens: Option<u32>,
    /// How hard to think, for models that take a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// How hard a model is to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effort {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// A provider instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Provider")]
pub struct ProviderInfo {
    /// Its name in the configuration.
    pub id: String,
    /// Its kind or preset.
    pub kind: String,
    /// Its base URL; empty for a script.
    pub base_url: String,
    /// Whether it has what it needs to be asked.
    pub configured: bool,
    /// Whether it answers where nothing else is asked for.
    pub default: bool,
}

/// What is known of one model. What nobody says is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The id to ask for it by.
    pub id: String,
    /// The provider instance that has it.
    pub provider: String,
    /// A name for people.
    pub display_name: String,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Whether it can call tools; true where nobody says otherwise.
    pub supports_tools: bool,
    /// Whether it can think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_thinking: Option<bool>,
    /// Whether it can see images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supports_vision: Option<bool>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Pricing>,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pricing {
    /// The prices of a turn.
    #[serde(flatten)]
    pub rates: Rates,
    /// What a turn with a long prompt costs instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPricing>,
}

/// Prices of turns with long prompts, in US dollars per million tokens: for all of the turn's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LongPricing {
    /// Tokens of input, cached ones included, that a prompt must exceed.
    pub above: u64,
    /// The prices of such a turn.
    #[serde(flatten)]
    pub rates: Rates,
}

/// The prices of one turn's tokens, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    /// Input that no cache had.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from a cache.
    #[serde(default, alias = "cache_read", skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to a cache for minutes.
    #[serde(
        default,
        alias = "cache_write",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_write: Option<f64>,
    /// Input written to a cache for an hour.
    #[serde(
        default,
        alias = "cache_write_1h",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_write_1h: Option<f64>,
}

/// Something a client should know that is no conversation's error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// How bad it is.
    pub severity: Severity,
    /// Stable word for programs, `snake_case`.
    pub code: String,
    /// What happened, to what, and what to do.
    pub message: String,
}

/// How bad a [`Notice`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something works less well than it should.
    Warning,
    /// Something does not work.
    Error,
}

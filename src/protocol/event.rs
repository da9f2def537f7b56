//! What a client is told: events of exchanges, and the answers to its requests.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer;
use super::code::{ChatCode, SessionCode};
use super::command::{Layer, Remember};
use super::content::{Content, WireMessage};
use super::record;
use crate::message::{
    ConversationId, Danger, MessageId, Notice, SessionId, ToolId, TrustLevel, Usage,
};
use crate::tool::{Metadata, OutputStream};

/// A frame to a client, told apart by its `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload")]
pub enum Event {
    /// The socket is on a session.
    #[serde(rename = "session:ready")]
    SessionReady(Box<Ready>),
    /// A request is wrong, or cannot be fulfilled.
    #[serde(rename = "session:error")]
    SessionError(SessionError),
    /// Something that is no conversation's error.
    #[serde(rename = "session:notice")]
    SessionNotice(Notice),
    /// Answers `session:configure`.
    #[serde(rename = "session:configure-result")]
    SessionConfigureResult(answer::Configured),
    /// Answers `session:ping`.
    #[serde(rename = "session:ping-result")]
    SessionPingResult(super::command::Empty),
    /// Answers `session:state`.
    #[serde(rename = "session:state-result")]
    SessionStateResult(answer::SessionState),

    /// Answers `chat:send`.
    #[serde(rename = "chat:send-result")]
    ChatSendResult(answer::Sent),
    /// Answers `chat:cancel`.
    #[serde(rename = "chat:cancel-result")]
    ChatCancelResult(answer::Cancelled),
    /// Answers `chat:history`, and follows a replay gap.
    #[serde(rename = "chat:history-result")]
    ChatHistoryResult(answer::History),
    /// Answers `chat:close`.
    #[serde(rename = "chat:close-result")]
    ChatCloseResult(answer::Closed),
    /// Answers `chat:tool-approve`.
    #[serde(rename = "chat:tool-approve-result")]
    ChatToolApproveResult(answer::Approved),

    /// A send waits for its turn.
    #[serde(rename = "chat:queued")]
    ChatQueued(Queued),
    /// An exchange began.
    #[serde(rename = "chat:stream-start")]
    ChatStreamStart(StreamStart),
    /// More text of the answer.
    #[serde(rename = "chat:text-delta")]
    ChatTextDelta(Delta),
    /// More thinking.
    #[serde(rename = "chat:thinking-delta")]
    ChatThinkingDelta(Delta),
    /// More of a call's input, as the model writes it.
    #[serde(rename = "chat:tool-input-delta")]
    ChatToolInputDelta(ToolInputDelta),
    /// The user is asked.
    #[serde(rename = "chat:tool-confirm")]
    ChatToolConfirm(Box<ToolConfirm>),
    /// A question is settled.
    #[serde(rename = "chat:tool-resolved")]
    ChatToolResolved(ToolResolved),
    /// A call runs.
    #[serde(rename = "chat:tool-start")]
    ChatToolStart(ToolStart),
    /// A running call has output.
    #[serde(rename = "chat:tool-delta")]
    ChatToolDelta(ToolDelta),
    /// A call is settled.
    #[serde(rename = "chat:tool-result")]
    ChatToolResult(Box<ToolOutcome>),
    /// A turn's tokens.
    #[serde(rename = "chat:usage")]
    ChatUsage(TurnUsage),
    /// What a conversation is doing.
    #[serde(rename = "chat:state")]
    ChatState(State),
    /// A whole message.
    #[serde(rename = "chat:message")]
    ChatMessage(Box<WholeMessage>),
    /// A steered message became part of the exchange.
    #[serde(rename = "chat:steered")]
    ChatSteered(Steered),
    /// The deltas of a turn are void; it is run again.
    #[serde(rename = "chat:turn-discarded")]
    ChatTurnDiscarded(TurnDiscarded),
    /// An exchange went wrong, or a send was not admitted.
    #[serde(rename = "chat:error")]
    ChatError(Box<ChatError>),
    /// An exchange is over; nothing of it follows.
    #[serde(rename = "chat:stream-end")]
    ChatStreamEnd(Box<StreamEnd>),

    /// Answers `provider:list`.
    #[serde(rename = "provider:list-result")]
    ProviderListResult(answer::Providers),
    /// Answers `provider:configure`.
    #[serde(rename = "provider:configure-result")]
    ProviderConfigureResult(answer::ProviderConfigured),
    /// Answers `provider:validate`.
    #[serde(rename = "provider:validate-result")]
    ProviderValidateResult(answer::ProviderValidated),
    /// Answers `model:list`.
    #[serde(rename = "model:list-result")]
    ModelListResult(answer::Models),
    /// Answers `tool:list`.
    #[serde(rename = "tool:list-result")]
    ToolListResult(answer::Tools),
    /// Answers `tool:cancel`.
    #[serde(rename = "tool:cancel-result")]
    ToolCancelResult(answer::ToolCancelled),
    /// Answers `tool:status`.
    #[serde(rename = "tool:status-result")]
    ToolStatusResult(Box<record::ExecutionRecord>),
    /// Answers `tool:output`.
    #[serde(rename = "tool:output-result")]
    ToolOutputResult(answer::OutputRange),
    /// Answers `tool:history`.
    #[serde(rename = "tool:history-result")]
    ToolHistoryResult(answer::Executions),
    /// Answers `tool:metrics`.
    #[serde(rename = "tool:metrics-result")]
    ToolMetricsResult(record::ToolMetrics),
    /// Answers `mcp:list`.
    #[serde(rename = "mcp:list-result")]
    McpListResult(answer::McpServers),
    /// Answers `mcp:add`.
    #[serde(rename = "mcp:add-result")]
    McpAddResult(answer::McpServer),
    /// Answers `mcp:remove`.
    #[serde(rename = "mcp:remove-result")]
    McpRemoveResult(answer::McpServer),
    /// Answers `mcp:read-resource`, as the server gave it.
    #[serde(rename = "mcp:read-resource-result")]
    McpReadResourceResult(Map<String, Value>),
    /// Answers `mcp:get-prompt`, as the server gave it.
    #[serde(rename = "mcp:get-prompt-result")]
    McpGetPromptResult(Map<String, Value>),
}

impl Event {
    /// Returns the layer that the event belongs to; `None` for what is always sent.
    pub fn layer(&self) -> Option<Layer> {
        match self {
            Self::ChatTextDelta(_)
            | Self::ChatThinkingDelta(_)
            | Self::ChatToolInputDelta(_)
            | Self::ChatToolStart(_)
            | Self::ChatToolDelta(_)
            | Self::ChatToolResult(_)
            | Self::ChatUsage(_)
            | Self::ChatTurnDiscarded(_)
            | Self::ChatSteered(_) => Some(Layer::Stream),
            Self::ChatState(_) | Self::ChatQueued(_) => Some(Layer::State),
            Self::ChatMessage(_) => Some(Layer::Message),
            _ => None,
        }
    }
}

impl Event {
    /// Returns the conversation that the event belongs to; `None` for what is the session's.
    pub fn conversation(&self) -> Option<&ConversationId> {
        Some(match self {
            Self::ChatQueued(it) => &it.conversation_id,
            Self::ChatStreamStart(it) => &it.conversation_id,
            Self::ChatTextDelta(it) | Self::ChatThinkingDelta(it) => &it.conversation_id,
            Self::ChatToolInputDelta(it) => &it.conversation_id,
            Self::ChatToolConfirm(it) => &it.conversation_id,
            Self::ChatToolResolved(it) => &it.conversation_id,
            Self::ChatToolStart(it) => &it.conversation_id,
            Self::ChatToolDelta(it) => &it.conversation_id,
            Self::ChatToolResult(it) => &it.conversation_id,
            Self::ChatUsage(it) => &it.conversation_id,
            Self::ChatState(it) => &it.conversation_id,
            Self::ChatMessage(it) => &it.conversation_id,
            Self::ChatSteered(it) => &it.conversation_id,
            Self::ChatTurnDiscarded(it) => &it.conversation_id,
            Self::ChatError(it) => &it.conversation_id,
            Self::ChatStreamEnd(it) => &it.conversation_id,
            Self::ChatSendResult(it) => &it.conversation_id,
            Self::ChatCancelResult(it) => &it.conversation_id,
            Self::ChatHistoryResult(it) => &it.conversation_id,
            Self::ChatCloseResult(it) => &it.conversation_id,
            _ => return None,
        })
    }
}

/// Payload of `session:ready`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// Version of the contract: 1.
    pub protocol_version: u32,
    /// Version of the daemon.
    pub daemon_version: String,
    /// The session's id, to resume it by.
    pub session_id: SessionId,
    /// Whether this is an earlier session going on.
    pub resumed: bool,
    /// How long the session outlives its last socket, in milliseconds.
    pub resume_grace_ms: u64,
    /// The session's trust level.
    pub trust_level: TrustLevel,
    /// The folder the model works in.
    pub project: Project,
    /// What is enforced here.
    pub sandbox: Sandbox,
    /// The provider instances.
    pub providers: Vec<ReadyProvider>,
    /// Names of the tools there are.
    pub tools: Vec<String>,
    /// The layers of events that are sent.
    pub layers: Vec<Layer>,
}

/// The folder the model works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// Its absolute path.
    pub root: PathBuf,
    /// Absolute path of its central storage.
    pub central: PathBuf,
}

/// What is enforced here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sandbox {
    /// `full`, `fallback`, `limits` or `none`.
    pub mode: String,
    /// Who keeps paths within the roots: the `kernel`, or the `process` itself.
    pub paths: String,
    /// The layers around commands.
    pub commands: Vec<String>,
    /// Whether commands reach the network: `off`, `on` or `unenforced`.
    pub network: String,
}

/// A provider instance in `session:ready`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyProvider {
    /// Its name in the configuration.
    pub id: String,
    /// Whether it has what it needs to be asked.
    pub configured: bool,
}

/// Payload of `session:error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionError {
    /// What is wrong, for programs.
    pub code: SessionCode,
    /// What is wrong and what to do, for people.
    pub message: String,
}

/// Payload of `chat:queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange that waits.
    pub message_id: MessageId,
    /// Its place in the queue, from 1.
    pub position: usize,
}

/// Payload of `chat:stream-start`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamStart {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// The provider instance.
    pub provider: String,
    /// The model.
    pub model: String,
}

/// Payload of `chat:text-delta` and `chat:thinking-delta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn of it, from 0.
    pub turn: u32,
    /// Counts this exchange's deltas of the sort from 0.
    pub index: u64,
    /// The text; never empty.
    pub content: String,
}

/// Payload of `chat:tool-input-delta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInputDelta {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn of it.
    pub turn: u32,
    /// Which call.
    pub tool_id: ToolId,
    /// The tool's name.
    pub tool_name: String,
    /// A piece of JSON text, cut anywhere.
    pub chunk: String,
}

/// Payload of `chat:tool-confirm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolConfirm {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// The tool's name.
    pub tool_name: String,
    /// The whole input.
    pub input: Map<String, Value>,
    /// How much harm it may do.
    pub danger: Danger,
    /// Why it is asked.
    pub reason: String,
    /// Unified diff of what would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// When the question lapses, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// Payload of `chat:tool-resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResolved {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// How.
    pub outcome: Outcome,
    /// By whom.
    pub by: By,
    /// How far the approval reaches, where further than the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// Whether the input was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// How a question was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The call runs.
    Approved,
    /// The call does not run.
    Denied,
    /// Nobody answered in time; the call does not run.
    Expired,
    /// The exchange ended first.
    Cancelled,
}

/// Who settled a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// A client.
    User,
    /// The deadline.
    Timeout,
    /// The end of the exchange.
    Cancel,
    /// The end of the daemon.
    Shutdown,
}

/// Payload of `chat:tool-start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn of it.
    pub turn: u32,
    /// Which call.
    pub tool_id: ToolId,
    /// The tool's name.
    pub tool_name: String,
    /// The input, as approved.
    pub input: Map<String, Value>,
}

/// Payload of `chat:tool-delta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolDelta {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// Some output.
    pub chunk: String,
    /// Where it came from.
    pub stream: OutputStream,
}

/// Payload of `chat:tool-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// The tool's name.
    pub tool_name: String,
    /// Whether it worked.
    pub status: ResultStatus,
    /// What the model is told.
    pub result: String,
    /// From `tool-start` to the end; 0 for a call that never ran.
    pub duration_ms: u64,
    /// Facts, as they apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Whether a call worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResultStatus {
    /// It did.
    Success,
    /// It failed, was refused, or never ran.
    Error,
}

/// Payload of `chat:usage`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn of it.
    pub turn: u32,
    /// All input tokens, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// How full the context is.
    pub context: Context,
}

/// Tokens; what the provider did not say is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// All input tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
        }
    }
}

/// How full the model's context is, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// What the next request will hold, estimated where the provider has not counted it yet.
    pub used: u64,
    /// The model's window, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What is left of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
}

/// Payload of `chat:state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange; absent for `idle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// What it does.
    pub state: StateName,
    /// Which call, for the states of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// `retrying`: which attempt comes next, from 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `retrying`: in how many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// `retrying` and `tool-queued`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a conversation, or one of its calls, does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StateName {
    /// The send waits for the exchange before it.
    Queued,
    /// The provider was asked and has not answered in text yet.
    Thinking,
    /// Text is coming.
    Responding,
    /// The model is calling a tool.
    ToolPlanned,
    /// The user is asked about a call.
    AwaitingApproval,
    /// A call waits for another one.
    ToolQueued,
    /// A call runs.
    ToolExecuting,
    /// A call is settled.
    ToolCompleted,
    /// The provider failed and is asked again.
    Retrying,
    /// Nothing runs in the conversation.
    Idle,
}

/// Payload of `chat:message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WholeMessage {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// The message.
    pub message: WireMessage,
    /// What the exchange came to, with its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<StreamEnd>,
}

/// Payload of `chat:steered`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Steered {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange that it became part of.
    pub message_id: MessageId,
    /// What the user said.
    pub content: Content,
}

/// Payload of `chat:turn-discarded`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiscarded {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn; it is run again under the same number.
    pub turn: u32,
    /// Why.
    pub reason: String,
}

/// Payload of `chat:error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatError {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange; absent where the send was not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// What went wrong, for programs.
    pub code: ChatCode,
    /// What went wrong, for people.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether sending again may help.
    pub retryable: bool,
    /// The provider's HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When to try again, in milliseconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The provider instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Payload of `chat:stream-end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamEnd {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Whether text was cut.
    pub partial: bool,
    /// Provider calls that ended well.
    pub turns: u32,
    /// Calls that the model made.
    pub tool_calls: u32,
    /// Sums over the turns.
    pub usage: Tokens,
    /// What it cost in US dollars, where the prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// From `stream-start` to the end.
    pub duration_ms: u64,
}

/// Why an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said what it had to say.
    EndTurn,
    /// The limit of output tokens was reached.
    MaxTokens,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The model refused.
    Refusal,
    /// A filter of the provider stopped it.
    ContentFilter,
    /// The user, or the end of the session, stopped it.
    Cancelled,
    /// It took too long.
    Timeout,
    /// The limit of turns was reached.
    MaxTurns,
    /// The context was nearly full.
    ContextBudget,
    /// A call's path left the roots or is denied.
    SandboxViolation,
    /// Something failed.
    Error,
}

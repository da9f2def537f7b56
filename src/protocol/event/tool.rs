//! Payloads of the events of one tool call, from its input to its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::{
    BackgroundCommand, ConversationId, Danger, DangerLevel, InputId, MessageId, Metadata,
    OutputStream, Part, ToolId,
};
use crate::protocol::command::Remember;

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
    /// The hook that changed the input, which is not as the model made it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// How much harm it may do.
    pub danger: Danger,
    /// Why it is asked.
    pub reason: String,
    /// The commands of a command line as the shell reads it, each by its words, those inside wrappers and
    /// substitutions too. A word that the shell would expand is as it was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Vec<String>>,
    /// The rules that made the level of danger what it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<TriggeredRule>,
    /// Unified diff of what would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The host that the command wants to connect to: the call runs, and the question is for that alone. Absent where it is
    /// whether the call may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How far an answer may reach beyond this call; absent where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<RememberOffer>,
    /// When the question lapses, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// How far an answer may reach beyond its call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RememberOffer {
    /// An approval, the nearest first; empty where one is for this call alone.
    pub approval: Vec<Remember>,
    /// A denial, the nearest first; empty where one is for this call alone.
    pub denial: Vec<Remember>,
    /// The folders that the file is in, the nearest first: an answer may be for writing any file below one of them. Relative
    /// to the project, `.` for all of it; absolute elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

/// A rule of the classifier that a command line triggered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggeredRule {
    /// The rule's stable name, e.g. `protected-tree`.
    pub rule: String,
    /// The level that this rule alone would give.
    pub level: DangerLevel,
    /// The words that triggered it; empty where it is the line as a whole. Invisible characters are escaped.
    pub words: String,
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
    /// Which host the question was for; absent where it was whether the call may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How.
    pub outcome: Outcome,
    /// By whom.
    pub by: By,
    /// How far the answer reaches, where further than the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// Its id then, for `approval:revoke`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// Whether the input was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// Payload of `chat:tool-extended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExtended {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// Which request for input of it; absent where it is the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<InputId>,
    /// Which host the approval is for; absent where it is whether the call may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the question lapses now, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
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
    /// The end of the exchange or of the call.
    Cancel,
    /// The end of the daemon.
    Shutdown,
    /// Room that was made: only of a question about money, which nobody has to answer any more.
    Room,
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

/// Payload of `tool:background`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundChanged {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The command as it is now.
    pub background: BackgroundCommand,
}

/// Payload of `tool:port-open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortOpened {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The command as it is now; the port is among its `ports`.
    pub background: BackgroundCommand,
    /// The port on which it began to listen, on the conversation's own loopback.
    pub port: u16,
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
    /// What the model reads, as text; each picture is named in it.
    pub result: String,
    /// The same in parts, where it has pictures: they are shown up to 5 MB of base64 together, and named beyond it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part>,
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

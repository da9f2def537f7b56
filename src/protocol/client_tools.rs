//! Tools that a client runs: how it registers them, how it is given a call, and how it answers one. And calls that a client
//! starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::SendState;
use super::command::{WhenBusy, default_conversation};
use super::content::Content;
use crate::message::{ConversationId, MessageId, ToolId};

/// Payload of `tool:register`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRegister {
    /// The tools; one of a name that is registered replaces it.
    pub tools: Vec<ClientTool>,
    /// Whether these are all that there are: others of this session's client are removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// Its name, `^[a-zA-Z][a-zA-Z0-9_-]{0,55}$` without `__`; the model calls `client__NAME`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its input, an object.
    #[serde(alias = "input_schema")]
    pub input_schema: Map<String, Value>,
    /// Whether it changes nothing.
    #[serde(
        alias = "read_only",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub read_only: bool,
    /// Whether the user is asked before a call.
    #[serde(default)]
    pub approval: ClientApproval,
    /// How long a call may wait for its output; a minute where absent. An answer says what is in force.
    #[serde(alias = "timeout_ms", default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether a person is part of the call: the time that it takes does not count towards the exchange's limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
}

/// Whether the user is asked before a call of a client's tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ClientApproval {
    /// As the trust level says of what can change something.
    #[default]
    Trust,
    /// At every trust level, for each call.
    Always,
    /// Not but under `supervised`; the operator has to allow it (`tools.client.skip_approval`).
    Never,
}

/// Payload of `tool:register-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsRegistered {
    /// What became of each, in the order of the request. The model is offered it with the next turn.
    pub tools: Vec<RegisteredTool>,
    /// Names of those that were removed, as the model knew them.
    pub removed: Vec<String>,
}

/// What became of a tool that was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredTool {
    /// The name by which the model calls it.
    pub name: String,
    /// Whether it is another one than before.
    pub state: RegistrationState,
    /// How long a call may wait for its output.
    pub timeout_ms: u64,
}

/// Whether a tool is another one than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RegistrationState {
    /// There was none of this name.
    New,
    /// It is the same.
    Unchanged,
    /// It is another one.
    Changed,
}

/// Payload of `tool:unregister`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolUnregister {
    /// Their names, with or without `client__`; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
}

/// Payload of `tool:unregister-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsUnregistered {
    /// Names of those that were removed, as the model knew them. Calls that were handed out stay open.
    pub removed: Vec<String>,
}

/// Payload of `chat:tool-call`: the client is to run this, and to answer with `chat:tool-output`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandedOut {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call; an answer names it.
    pub tool_id: ToolId,
    /// The tool's name for the model.
    pub tool_name: String,
    /// Its name as it was registered.
    pub name: String,
    /// The input, as approved. It fits the schema.
    pub input: Map<String, Value>,
    /// When the call is given up, RFC 3339; moved by each sign of progress, and later while no client is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// Payload of `chat:tool-cancelled`: nobody waits for the output of this call any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandedBack {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// Why.
    pub reason: HandedBackReason,
}

/// Why nobody waits for the output of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HandedBackReason {
    /// The call or its exchange was cancelled.
    Cancel,
    /// It took too long.
    Timeout,
    /// The tool was registered by a client that another one has replaced, and which does not have it.
    Gone,
    /// The session or the daemon ends.
    Shutdown,
}

/// Payload of `chat:tool-output`: progress, or the output that ends the call.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientOutput {
    /// The id from `chat:tool-call`.
    #[serde(alias = "tool_id")]
    pub tool_id: ToolId,
    /// A line of progress for whoever watches. Gives the call more time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<String>,
    /// What the call came to. With it, or with `structured`, the call ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Whether the model should take it for a failure.
    #[serde(
        alias = "is_error",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_error: bool,
    /// The same as data, for clients; the model reads it where there is no `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

impl std::fmt::Debug for ClientOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOutput")
            .field("tool_id", &self.tool_id)
            .field("is_error", &self.is_error)
            .finish_non_exhaustive()
    }
}

/// Payload of `tool:execute`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecute {
    /// Which conversation; made on first use. The call is one of its calls.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// The tool's name, as in `tool:list`.
    #[serde(alias = "tool_name")]
    pub tool_name: String,
    /// The input.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// Whether the model is to know of it: the call and its result become a message of the user in the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inject: bool,
    /// What to do while an exchange runs: `queue` or `reject`.
    #[serde(alias = "when_busy", default)]
    pub when_busy: WhenBusy,
}

/// Payload of `tool:execute-result`: what becomes of the call. What it comes to is told by its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Executing {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange that the call is all of.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// Whether it runs or waits.
    pub state: SendState,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Whether a request with this `id` was answered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// Payload of `chat:tool-output-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputTaken {
    /// Which call.
    pub tool_id: ToolId,
    /// Whether it counted.
    pub accepted: bool,
    /// Whether the very same output came before, and counted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

//! What a tool asks of the user while it runs: the question, its answer, and what became of it.
//!
//! Nothing of it is said to a client that did not ask for it with `inputRequests` of `session:configure`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::By;
use crate::message::{ConversationId, InputId, MessageId, ToolId};

/// Payload of `chat:tool-input-request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInputRequest {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// The call in whose middle it is asked.
    pub tool_id: ToolId,
    /// What an answer names.
    pub request_id: InputId,
    /// The MCP server that asks: to be shown, for the message is its own and not the daemon's.
    pub server: String,
    /// What the user is to give, in the server's words.
    pub message: String,
    /// How.
    pub mode: InputMode,
    /// Of a form: a JSON Schema of one flat object, whose fields are strings, numbers, integers, booleans
    /// or choices, in the order in which they are to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Map<String, Value>>,
    /// Of a page: its address, to be opened only when the user agrees, and shown whole before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What it is for, where the server does not want to know something: then the words of `message` are the daemon's, and
    /// those of the server are set in, four spaces deep. The form has no fields then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<InputPurpose>,
    /// When the question lapses, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// How a user gives what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputMode {
    /// In the fields of `requestedSchema`.
    Form,
    /// On the page at `url`; what is given there does not pass through here.
    Url,
}

/// What a question of a server is for that wants to know nothing of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputPurpose {
    /// The model of the session is to answer what the message shows.
    Sampling,
    /// What the model has answered, which the message shows, is to go to the server.
    SampledAnswer,
}

/// Payload of `chat:tool-input`. The content is never echoed or logged.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInput {
    /// The id from `chat:tool-input-request`.
    #[serde(alias = "request_id")]
    pub request_id: InputId,
    /// What the user decided.
    pub action: InputAction,
    /// The fields of the form; with `accept` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

impl std::fmt::Debug for ToolInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolInput")
            .field("request_id", &self.request_id)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

/// What a user does with a request for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputAction {
    /// Gives it; of a page: has agreed to open it.
    Accept,
    /// Says no; the call goes on and may do without.
    Decline,
    /// Closes the question without a decision.
    Cancel,
}

/// Payload of `chat:tool-input-resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInputResolved {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which call.
    pub tool_id: ToolId,
    /// Which question.
    pub request_id: InputId,
    /// How.
    pub outcome: InputOutcome,
    /// What the user decided, where somebody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<InputAction>,
    /// By whom.
    pub by: By,
}

/// How a request for input was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputOutcome {
    /// By an answer.
    Answered,
    /// Nobody answered in time.
    Expired,
    /// The call, its exchange or the server's wish ended first.
    Cancelled,
}

/// Payload of `chat:tool-input-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputTaken {
    /// Which question.
    pub request_id: InputId,
    /// Whether the answer counted.
    pub accepted: bool,
}

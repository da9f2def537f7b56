//! Payloads of the events of a running exchange: its text, its states, its messages. Its calls are
//! `tool`'s, its tokens `usage`'s, its end is `end`'s.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StreamEnd;
use crate::message::{ConversationId, MessageId, ToolId};
use crate::protocol::content::{Content, WireMessage};
use crate::protocol::trust::InstructionFile;

/// Payload of `chat:queued`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange that waits.
    pub message_id: MessageId,
    /// Its place in the queue, from 1; 0 where it waits no longer and becomes part of the exchange that runs.
    pub position: usize,
    /// The text that it says, up to 64 KiB of it, where no other frame has it: after a restart, in a resync, and after
    /// `chat:queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
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
    /// Files whose words the model is told as the user's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionFile>,
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

/// A delta as the [`Event`](super::Event) it is part of, by reference.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "type", content = "payload")]
pub enum DeltaEvent<'a> {
    /// [`Event::ChatTextDelta`](super::Event::ChatTextDelta).
    #[serde(rename = "chat:text-delta")]
    Text(&'a Delta),
    /// [`Event::ChatThinkingDelta`](super::Event::ChatThinkingDelta).
    #[serde(rename = "chat:thinking-delta")]
    Thinking(&'a Delta),
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

impl State {
    /// That a conversation, in this exchange, does this; no more is said of it.
    pub fn new(
        conversation_id: &ConversationId,
        message_id: Option<&MessageId>,
        state: StateName,
    ) -> Self {
        Self {
            conversation_id: conversation_id.clone(),
            message_id: message_id.cloned(),
            state,
            tool_id: None,
            attempt: None,
            delay_ms: None,
            reason: None,
        }
    }
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
    /// The user is asked for something by a call that runs.
    AwaitingInput,
    /// A cap does not allow the next request, and the user is asked.
    AwaitingBudget,
    /// Files would speak for the user, and the user is asked.
    AwaitingTrust,
    /// A call waits for the client, which runs it.
    AwaitingClient,
    /// A call waits for another one.
    ToolQueued,
    /// A call runs.
    ToolExecuting,
    /// A call is settled.
    ToolCompleted,
    /// The conversation is made shorter for its model.
    Compacting,
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

impl WholeMessage {
    /// A message that is not the last of its exchange.
    pub fn new(
        conversation_id: &ConversationId,
        message_id: &MessageId,
        message: WireMessage,
    ) -> Self {
        Self {
            conversation_id: conversation_id.clone(),
            message_id: message_id.clone(),
            message,
            exchange: None,
        }
    }
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

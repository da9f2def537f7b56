//! The sends that wait in a conversation: what a client asks to see of them, and to change.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::command::default_conversation;
use super::content::Content;
use crate::message::{ConversationId, MessageId};

/// Payload of `chat:queue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatQueue {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// What to do; the answer has the queue as it is then.
    #[serde(default)]
    pub action: QueueAction,
    /// Which send; needed by all but `list`.
    #[serde(alias = "message_id", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// `edit`: what it says from now on; not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// `move`: its place from now on, from 1; beyond the end is the end.
    #[serde(
        default,
        deserialize_with = "position",
        skip_serializing_if = "Option::is_none"
    )]
    pub position: Option<NonZeroUsize>,
}

/// What to do with the sends that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QueueAction {
    /// Nothing is changed.
    #[default]
    List,
    /// One says something else; its settings stay.
    Edit,
    /// One takes another place.
    Move,
    /// One is dropped.
    Remove,
    /// One waits no longer: it becomes part of the exchange that runs, as with `whenBusy: "steer"`; where none runs, it
    /// begins.
    Send,
}

/// Payload of `chat:queue-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueListed {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What waits, the next one first.
    pub queue: Vec<WaitingSend>,
    /// Whether it waited when the daemon ended, and waits on until the user says something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// A send that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingSend {
    /// Its exchange.
    pub message_id: MessageId,
    /// Its place, from 1.
    pub position: usize,
    /// The text that it says, up to 64 KiB of it; empty for a call.
    pub content: String,
    /// How many pictures and documents it has beside the text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attachments: usize,
    /// The tool, where it is a call (`tool:execute`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Option::deserialize(value).map_err(|_| D::Error::custom("must be a whole number from 1"))
}

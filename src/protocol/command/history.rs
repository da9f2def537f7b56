//! What a client asks of a conversation's messages: to see them, and to have its model see less of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{WhenBusy, default_conversation};
use crate::message::ConversationId;

/// Payload of `chat:history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatHistory {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// Most messages of the answer, 1 at least; without it as many as one frame holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The `nextBefore` of an earlier answer: only messages older than those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<usize>,
    /// Whose view: of all that was said, or of what the model sees of it.
    #[serde(default, skip_serializing_if = "HistoryView::is_record")]
    pub view: HistoryView,
}

/// Whose view of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HistoryView {
    /// All that was said.
    #[default]
    Record,
    /// What the model sees: less, where the conversation was compacted.
    Model,
}

impl HistoryView {
    fn is_record(&self) -> bool {
        *self == Self::Record
    }
}

/// Payload of `chat:compact`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatCompact {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// What the summary is to mind besides, in words for the model; 8 KiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Only this way; without it what is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<CompactMode>,
    /// What to do while an exchange runs: `queue` or `reject`.
    #[serde(alias = "when_busy", default = "reject")]
    pub when_busy: WhenBusy,
}

fn reject() -> WhenBusy {
    WhenBusy::Reject
}

/// How a conversation is made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CompactMode {
    /// Large old results are left out; no model is asked.
    Prune,
    /// All but the last messages are summed up.
    Summary,
}

impl ChatHistory {
    /// Asks for the newest messages of a conversation.
    pub fn newest(conversation_id: ConversationId) -> Self {
        Self {
            conversation_id,
            limit: None,
            before: None,
            view: HistoryView::Record,
        }
    }
}

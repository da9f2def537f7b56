//! Requests that say no more than they must.

use super::{ChatSend, Remember, ToolApprove, WhenBusy};
use crate::message::{ConversationId, ToolId};
use crate::permission::Limits;
use crate::protocol::content::Content;

impl ChatSend {
    /// Returns a send of a text that leaves all else to the session.
    pub fn text(conversation_id: ConversationId, text: String) -> Self {
        Self {
            conversation_id,
            content: Content::Text(text),
            history: None,
            provider: None,
            model: None,
            system_prompt: None,
            trust_level: None,
            workflow: None,
            tool_permissions: None,
            max_tokens: None,
            temperature: None,
            thinking: None,
            limits: Limits::default(),
            when_busy: WhenBusy::Queue,
        }
    }
}

impl ToolApprove {
    /// Returns a verdict on a call, for this once.
    pub fn new(tool_id: ToolId, approved: bool) -> Self {
        Self {
            tool_id,
            approved,
            input: None,
            remember: Remember::Once,
            reason: None,
            unattended: false,
        }
    }
}

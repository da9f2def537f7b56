//! Requests that say no more than they must.

use super::{ChatSend, Remember, ToolApprove, WhenBusy};
use crate::message::ConversationId;
use crate::permission::Limits;
use crate::protocol::content::Content;
use crate::protocol::event::ToolConfirm;

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
            output: None,
            limits: Limits::default(),
            when_busy: WhenBusy::Queue,
        }
    }
}

impl ToolApprove {
    /// Returns a verdict on what is asked, for this once.
    pub fn of(confirm: &ToolConfirm, approved: bool) -> Self {
        Self {
            tool_id: confirm.tool_id.clone(),
            host: confirm.host.clone(),
            approved,
            input: None,
            remember: Remember::Once,
            folder: None,
            reason: None,
            unattended: false,
        }
    }
}

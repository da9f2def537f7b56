//! Prompts of MCP servers, which are slash commands of this agent.

use super::replies::{Pending, refused};
use super::rpc::Id;
use super::session::AcpSession;
use crate::protocol::command::{ChatSend, Command};
use crate::protocol::content::Content;
use crate::protocol::event::Event;
use crate::protocol::mcp::McpListPrompts;

/// The most prompts that are offered: a menu of more is none.
const MAX_OFFERED: usize = 200;

impl AcpSession {
    /// Asks which prompts there are.
    pub(super) async fn look_at_prompts(&mut self) {
        let wanted = McpListPrompts {
            limit: Some(MAX_OFFERED),
            ..McpListPrompts::default()
        };
        self.send(Command::McpListPrompts(wanted), Pending::Prompts)
            .await;
    }

    /// Offers the prompts, where they are others than before.
    pub(super) async fn prompts_listed(&mut self, answer: Event) {
        if let Event::McpListPromptsResult(listed) = answer
            && listed.prompts != self.prompts
        {
            self.prompts = listed.prompts;
            self.tell_commands().await;
        }
    }

    /// Sends what a prompt says, before what the client has added to it.
    pub(super) async fn use_prompt(&mut self, id: Id, mut send: Box<ChatSend>, answer: Event) {
        let said = match answer {
            Event::McpUsePromptResult(said) => said,
            // What is wrong with what was typed is for the user to read.
            Event::SessionError(error) => return self.say_and_finish(&error.message).await,
            other => return self.fail_turn(refused(other)).await,
        };
        if self.turn.as_ref().is_none_or(|turn| turn.is_cancelled()) {
            return self.finish_turn("cancelled").await;
        }
        let added = std::mem::replace(&mut send.content, Content::Parts(said.content));
        if let Content::Parts(parts) = &mut send.content {
            parts.extend(added.into_parts());
        }
        self.hold(send, id).await;
    }
}

//! How things stand in a conversation, as its own task sees them at one moment.

use super::history;
use super::state::ActorState;
use crate::exchange::context::{Context, Origin};
use crate::message::ConversationId;
use crate::protocol::answer;
use crate::protocol::command::ChatHistory;
use crate::protocol::event::{StateName, ToolConfirm};
use crate::protocol::input::ToolInputRequest;

/// A look at a conversation.
pub struct View<'a> {
    state: &'a ActorState,
    context: &'a Context,
}

impl<'a> View<'a> {
    pub(super) fn new(state: &'a ActorState, context: &'a Context) -> Self {
        Self { state, context }
    }

    /// Returns its id.
    pub fn id(&self) -> &ConversationId {
        &self.context.conversation.id
    }

    /// Returns who made it.
    pub fn origin(&self) -> Origin {
        self.context.conversation.origin
    }

    /// Returns the messages that a request asks for, as many as one frame holds.
    pub fn history(&self, wanted: &ChatHistory) -> answer::History {
        history::page(self.context, wanted)
    }

    /// Returns as many of the newest messages as `most` bytes hold.
    pub fn newest_history(&self, most: usize) -> answer::History {
        history::newest_within(self.context, most)
    }

    /// Returns the open approvals as they were announced, oldest first.
    pub fn approvals(&self) -> Vec<ToolConfirm> {
        self.state.questions.approvals()
    }

    /// Returns the open requests for input as they were announced, oldest first.
    pub fn inputs(&self) -> Vec<ToolInputRequest> {
        self.state.questions.inputs()
    }

    /// Returns what it does and what waits.
    pub fn state(&self) -> answer::ConversationState {
        let running = self.state.running.as_ref();
        let executions = &self.context.session.executions;
        let state = match running {
            None if !self.state.queue.is_empty() => StateName::Queued,
            None => StateName::Idle,
            Some(_) if !self.approvals().is_empty() => StateName::AwaitingApproval,
            Some(_) if !self.inputs().is_empty() => StateName::AwaitingInput,
            Some(_) if !executions.open_of(self.id()).is_empty() => StateName::ToolExecuting,
            Some(_) => StateName::Thinking,
        };
        answer::ConversationState {
            conversation_id: self.id().clone(),
            state,
            message_id: running.map(|running| running.message_id.clone()),
            queue: self.state.queue.ids(),
        }
    }
}

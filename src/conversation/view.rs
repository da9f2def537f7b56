//! How things stand in a conversation, as its own task sees them at one moment.

use super::shared::Shared;
use super::state::ActorState;
use crate::message::ConversationId;
use crate::protocol::answer;
use crate::protocol::event::{StateName, ToolConfirm};
use crate::protocol::input::ToolInputRequest;

/// A look at a conversation.
pub struct View<'a> {
    state: &'a ActorState,
    shared: &'a Shared,
}

impl<'a> View<'a> {
    pub(super) fn new(state: &'a ActorState, shared: &'a Shared) -> Self {
        Self { state, shared }
    }

    /// Which conversation.
    pub fn id(&self) -> &ConversationId {
        &self.shared.id
    }

    /// What it remembers.
    pub fn history(&self) -> answer::History {
        self.shared.messages()
    }

    /// As many of the newest messages as `most` bytes hold.
    pub fn newest_history(&self, most: usize) -> answer::History {
        self.shared.newest_messages(most)
    }

    /// The calls that the user is asked to approve, as they were announced.
    pub fn approvals(&self) -> Vec<ToolConfirm> {
        self.state.approvals.confirms()
    }

    /// What running calls want to be given, as it was announced.
    pub fn inputs(&self) -> Vec<ToolInputRequest> {
        self.state.inputs.requests()
    }

    /// What it does and what waits.
    pub fn state(&self) -> answer::ConversationState {
        let running = self.state.running.as_ref();
        let executions = &self.shared.session.executions;
        let state = match running {
            None if !self.state.queue.is_empty() => StateName::Queued,
            None => StateName::Idle,
            Some(_) if !self.approvals().is_empty() => StateName::AwaitingApproval,
            Some(_) if !self.inputs().is_empty() => StateName::AwaitingInput,
            Some(_) if !executions.open_of(&self.shared.id).is_empty() => StateName::ToolExecuting,
            Some(_) => StateName::Thinking,
        };
        answer::ConversationState {
            conversation_id: self.shared.id.clone(),
            state,
            message_id: running.map(|running| running.message_id.clone()),
            queue: self.state.queue.ids(),
        }
    }
}

//! How a conversation takes commands, whatever else it does.
//!
//! There is one way to wait in a conversation, and it takes commands: each is done at once, between two steps of the
//! work that is waited for.

use std::pin::pin;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Command;
use super::state::ActorState;
use crate::exchange::context::Context;
use crate::protocol::event::{By, StopReason};

/// The inbox, and what its commands change.
pub(super) struct Mailbox {
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) state: ActorState,
    pub(super) cancel: CancellationToken,
}

impl Mailbox {
    /// Waits for work and takes commands meanwhile. Where the conversation is to end, the exchange that runs is stopped,
    /// and the work has to end with it.
    pub(super) async fn take_commands_during<T>(
        &mut self,
        context: &Context,
        work: impl Future<Output = T>,
    ) -> T {
        let Self {
            inbox,
            state,
            cancel,
        } = self;
        let questions = &context.conversation.questions;
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if state.is_live() => {
                    state.stop(StopReason::Cancelled, By::Shutdown, context);
                }
                due = questions.due() => questions.settle_due(due, context),
                // Guarded: a closed inbox is ready for ever and would spin here.
                command = inbox.recv(), if !state.closed => match command {
                    Some(command) => state.take(command, context),
                    None => state.closed = true,
                },
                done = &mut work => return done,
            }
        }
    }

    /// Waits for one command and takes it; returns false where no more come.
    pub(super) async fn take_next(&mut self, context: &Context) -> bool {
        let command = self.cancel.run_until_cancelled(self.inbox.recv()).await;
        match command.flatten() {
            Some(command) => {
                self.state.take(command, context);
                true
            }
            None => false,
        }
    }
}

//! Where a conversation is told things, whatever else it does.
//!
//! There is one way to wait in a conversation, and it listens: what is told is done at once, between two
//! steps of the work that is waited for.

use std::pin::pin;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Command;
use super::shared::Shared;
use super::state::ActorState;
use crate::protocol::event::{By, StopReason};
use crate::runtime::sleep_until;

/// The inbox, and what is owed by what came in.
pub(super) struct Mailbox {
    inbox: mpsc::Receiver<Command>,
    pub(super) state: ActorState,
    /// Ends the conversation.
    pub(super) cancel: CancellationToken,
}

impl Mailbox {
    pub(super) fn new(inbox: mpsc::Receiver<Command>, cancel: CancellationToken) -> Self {
        Self {
            inbox,
            state: ActorState::default(),
            cancel,
        }
    }

    /// Waits for work, and does meanwhile what the conversation is told. Where the conversation is to end,
    /// the exchange that runs is stopped, which the work has to see to.
    pub(super) async fn listening<T>(
        &mut self,
        shared: &Shared,
        work: impl Future<Output = T>,
    ) -> T {
        let Self {
            inbox,
            state,
            cancel,
        } = self;
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if state.is_live() => {
                    state.stop(StopReason::Cancelled, By::Shutdown, shared);
                }
                () = sleep_until(state.approvals.next_expiry()) => {
                    state.approvals.expire(Instant::now(), shared.events());
                }
                () = sleep_until(state.inputs.next_expiry()) => {
                    state.inputs.expire(Instant::now(), &shared.session);
                }
                // Guarded: a closed inbox is ready for ever and would spin here.
                command = inbox.recv(), if !state.closed => match command {
                    Some(command) => state.take(command, shared),
                    None => state.closed = true,
                },
                done = &mut work => return done,
            }
        }
    }

    /// Waits for one thing to be told and does it; false where nothing more comes.
    pub(super) async fn hear(&mut self, shared: &Shared) -> bool {
        let command = self.cancel.run_until_cancelled(self.inbox.recv()).await;
        match command.flatten() {
            Some(command) => {
                self.state.take(command, shared);
                true
            }
            None => false,
        }
    }
}

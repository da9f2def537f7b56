//! Where a conversation is told things, whatever else it does.
//!
//! There is one way to wait in a conversation, and it listens: what is told is done at once, between two
//! steps of the work that is waited for.

use std::pin::pin;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Command;
use super::desk::Desk;
use super::shared::Shared;
use crate::protocol::event::{By, StopReason};

/// The inbox, and what is owed by what came in.
pub(super) struct Front {
    inbox: mpsc::Receiver<Command>,
    pub(super) desk: Desk,
    /// Ends the conversation.
    pub(super) cancel: CancellationToken,
}

impl Front {
    pub(super) fn new(inbox: mpsc::Receiver<Command>, cancel: CancellationToken) -> Self {
        Self {
            inbox,
            desk: Desk::default(),
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
            desk,
            cancel,
        } = self;
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if desk.is_live() => {
                    desk.stop(StopReason::Cancelled, By::Shutdown, shared);
                }
                () = until(desk.approvals.next_expiry()) => {
                    desk.approvals.expire(Instant::now(), shared.events());
                }
                () = until(desk.inputs.next_expiry()) => {
                    desk.inputs.expire(Instant::now(), &shared.session);
                }
                // Guarded: a closed inbox is ready for ever and would spin here.
                command = inbox.recv(), if !desk.closed => match command {
                    Some(command) => desk.take(command, shared),
                    None => desk.closed = true,
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
                self.desk.take(command, shared);
                true
            }
            None => false,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

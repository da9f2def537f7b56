//! The conversation of a task: one exchange, and nothing after it.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::state::{ActorState, QueuedSend};
use super::{Command, Mailbox, emit_state, run_exchange};
use crate::exchange::context::{Context, Setup};
use crate::protocol::event::StateName;
use crate::telemetry::metrics;

/// Runs a task to its end, which comes soon after `cancel` is cancelled. Its commands in the background end with it.
pub(crate) async fn run_task(
    inbox: mpsc::Receiver<Command>,
    context: Context,
    setup: Setup,
    cancel: CancellationToken,
) {
    let _counted = metrics::CONVERSATIONS.enter();
    let mut mailbox = Mailbox {
        inbox,
        state: ActorState::default(),
        cancel,
    };
    run_exchange(&mut mailbox, &context, QueuedSend::new(setup, None)).await;
    emit_state(&context, None, StateName::Idle);
    // Nobody asks it anything any more.
    drop(mailbox);
    context.conversation.background.end().await;
}

//! What is read, and asked about, before an exchange begins.

use tokio_util::sync::CancellationToken;

use super::{Mailbox, drive, end_by_fault};
use crate::exchange::Ended;
use crate::exchange::context::{Context, Setup};
use crate::exchange::instructions::{Cancelled, Learner};
use crate::protocol::event::StopReason;
use crate::runtime::Stopwatch;

/// Has the model be told what files say in the user's name, and takes commands meanwhile. Fails with how the exchange ended.
pub(super) async fn learn(
    mailbox: &mut Mailbox,
    context: &Context,
    setup: &Setup,
    stopwatch: &Stopwatch,
    cancel: &CancellationToken,
) -> Result<(), Box<Ended>> {
    let learner = Learner {
        setup,
        context,
        stopwatch,
        cancel,
    };
    match drive(mailbox, context, stopwatch, learner.learn()).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(Cancelled)) => Err(Box::new(Ended::before_turns(StopReason::Cancelled, None))),
        None => Err(end_by_fault(context, setup)),
    }
}

//! What is read, and asked about, before an exchange begins.

use tokio_util::sync::CancellationToken;

use super::{Mailbox, drive, emit_state, end_by_fault};
use crate::exchange::Ended;
use crate::exchange::context::{Context, Setup};
use crate::exchange::instructions::{Cancelled, Learner};
use crate::protocol::event::{StateName, StopReason};
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

/// Asks the provider for a model where nobody names one; the time that it takes is the exchange's. Fails with how the
/// exchange ended where there is none.
pub(super) async fn find_model(
    context: &Context,
    setup: &Setup,
    cancel: &CancellationToken,
) -> Result<String, Box<Ended>> {
    emit_state(context, Some(&setup.message_id), StateName::Thinking);
    let (stop, error) = match cancel.run_until_cancelled(setup.find_model()).await {
        Some(Ok(model)) => return Ok(model),
        Some(Err(mut error)) => {
            let redactor = &context.services.redactor;
            error.message = redactor.redact(&error.message).into_owned();
            (StopReason::Error, Some(error))
        }
        None => (StopReason::Cancelled, None),
    };
    Err(Box::new(Ended::before_turns(stop, error)))
}

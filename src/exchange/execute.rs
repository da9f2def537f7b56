//! A call that a client starts: an exchange without a model. It is decided, asked for, run and recorded as a model's is.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::calls::shown_input;
use super::context::{Context, Setup, Steer};
use super::history::bytes_of_parts;
use super::ledger::Ledger;
use super::offer::ToolOffer;
use super::transcript::Transcript;
use super::{Ended, Exchange, Leave, Progress, failure};
use crate::message::{Message, Part, ToolCall};
use crate::protocol::event::StopReason;
use crate::runtime::Stopwatch;

/// What a client has run.
#[derive(Clone, Debug)]
pub(crate) struct Execute {
    pub call: ToolCall,
    /// Whether the model is to know of it.
    pub inject: bool,
}

/// Runs the call, to its end. Ends soon after the token is cancelled, as an exchange does.
pub(crate) async fn execute(
    (execute, setup): (&Execute, &Setup),
    context: &Context,
    transcript: &mut Transcript,
    steered: &mut mpsc::Receiver<Steer>,
    stopwatch: &Arc<Stopwatch>,
    cancel: &CancellationToken,
) -> Ended {
    let mut exchange = Exchange {
        setup,
        context,
        transcript,
        steered,
        stopwatch,
        cancel,
        ledger: Ledger::new(context, setup),
        is_clients: true,
        progress: Progress::default(),
    };
    let left = exchange.execute(execute).await;
    exchange.ended(left)
}

impl Exchange<'_> {
    async fn execute(&mut self, execute: &Execute) -> Leave {
        let offer = ToolOffer::now(self.setup, self.context, None);
        let call = execute.call.clone();
        let (result, ran) = self.run_call(&offer, call).await;
        if execute.inject {
            let redactor = &self.context.services.redactor;
            let input = shown_input(execute.call.input.clone(), redactor);
            // In words of the user, which every provider takes at every place of a conversation: it made no such call.
            let said = format!(
                "[I ran the tool `{}` with {input}. What follows is its result.]\n",
                execute.call.name
            );
            let mut content = vec![Part::text(said)];
            content.extend(result.content);
            let history = &self.context.conversation.history;
            if let Err(full) = history.room_for(bytes_of_parts(&content)) {
                let error = failure::history_full(full, self.setup);
                return Leave::Failed(StopReason::Error, Box::new(error));
            }
            self.transcript.record(Message::User(content));
        }
        match ran {
            Err(leave) => leave,
            Ok(()) if self.cancel.is_cancelled() => Leave::Stop(StopReason::Cancelled),
            Ok(()) => Leave::Stop(StopReason::EndTurn),
        }
    }
}

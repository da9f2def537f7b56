//! The actor of one conversation: its inbox, its queue, what it remembers, one exchange at a time.
//!
//! It keeps listening while an exchange runs. The exchange borrows what is shared and asks for
//! verdicts over a channel; what is owed lives here, outside it, so nothing needs a lock. The first
//! and the last event of each exchange are sent here and nowhere else.

pub mod approvals;
mod deadline;
pub mod inputs;
mod mailbox;
pub mod queue;
mod send_answer;
mod shared;
mod state;
#[cfg(test)]
pub(crate) mod testing;
mod view;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::exchange::ask::Question;
use crate::exchange::context::{ConversationContext, Services, SessionContext};
use crate::exchange::history::History;
use crate::exchange::setup::Setup;
use crate::exchange::stopwatch::Stopwatch;
use crate::exchange::{Ended, Exchange};
use crate::message::{ConversationId, Part, ToolId};
use crate::protocol::RequestId;
use crate::protocol::command::{ToolApprove, ToolExtend, WhenBusy};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, ChatError, StateName, StopReason};
use crate::protocol::input::ToolInput;
use crate::telemetry::metrics;

use mailbox::Mailbox;
use queue::{QUEUED, QueuedSend};
pub use send_answer::{Answer, Answered};
use shared::Shared;
use state::Running;
pub use view::View;

/// Commands that wait for a conversation: its actor takes them at once, so this is slack, not a queue.
pub const INBOX: usize = 64;

/// Questions of one exchange that wait to be announced: one a call, taken at once.
const ASKS: usize = 64;

/// What a conversation can be told.
pub enum Command {
    /// Says something.
    Send(Box<SendRequest>),
    /// Repeats the answer to a send that was sent again.
    Repeat {
        /// The answer, set once the first send was taken.
        answer: Answer,
        /// The request to answer.
        reply_to: Option<RequestId>,
    },
    /// Stops the running exchange.
    Cancel {
        /// Whether queued sends are dropped too.
        queued: bool,
        /// The request to answer; `None` for no answer.
        reply_to: Option<RequestId>,
    },
    /// Answers a question.
    Approve {
        /// The verdict.
        verdict: ToolApprove,
        /// The request to answer.
        reply_to: Option<RequestId>,
    },
    /// Answers what a call asked for.
    Input {
        /// The answer.
        input: ToolInput,
        /// The request to answer.
        reply_to: Option<RequestId>,
    },
    /// Gives an open question more time.
    Extend {
        /// Which question.
        wanted: ToolExtend,
        /// The request to answer.
        reply_to: Option<RequestId>,
    },
    /// Ends one call.
    CancelTool(ToolId),
    /// Looks at how things stand, here and now: nothing happens in the conversation meanwhile.
    Look(Box<dyn FnOnce(View<'_>) + Send>),
    /// Ends the conversation when its exchange is over, which is cancelled.
    Close,
}

/// A send, resolved.
pub struct SendRequest {
    /// What the exchange is to do; the id of its exchange is minted already.
    pub setup: Setup,
    /// Messages that replace what is remembered.
    pub history: Option<Vec<WireMessage>>,
    /// What to do while an exchange runs.
    pub when_busy: WhenBusy,
    /// Whether the client gave settings of its own, which a steered message cannot have.
    pub has_settings: bool,
    /// The request to answer; `None` for no answer.
    pub reply_to: Option<RequestId>,
    /// Where the answer is kept.
    pub answer: Answer,
}

/// A conversation's actor.
pub struct Conversation {
    mailbox: Mailbox,
    shared: Shared,
}

impl Conversation {
    /// Makes an actor that lives until it is closed, its inbox is, or `cancel` is cancelled.
    pub fn new(
        id: ConversationId,
        inbox: mpsc::Receiver<Command>,
        services: Services,
        session: SessionContext,
        conversation: ConversationContext,
        cancel: CancellationToken,
    ) -> Self {
        let history = History::new(services.room.clone());
        Self {
            mailbox: Mailbox::new(inbox, cancel),
            shared: Shared {
                id,
                services,
                session,
                conversation,
                history,
            },
        }
    }

    /// Runs the conversation to its end.
    ///
    /// What it is told is taken at once, but no exchange begins before `before` is cancelled: one of the same name
    /// was closed and may wind up still.
    pub async fn run(mut self, before: CancellationToken) {
        let _counted = metrics::CONVERSATIONS.enter();
        let Self { mailbox, shared } = &mut self;
        let cancel = mailbox.cancel.clone();
        let wait = cancel.run_until_cancelled(before.cancelled());
        mailbox.listening(shared, wait).await;
        loop {
            let Self { mailbox, shared } = &mut self;
            if cancel.is_cancelled() {
                mailbox.state.drop_queue(shared);
                return;
            }
            if let Some(waiting) = mailbox.state.queue.pop() {
                self.exchange(waiting).await;
                self.shared.tell_idle();
            } else if mailbox.state.closed || !mailbox.hear(shared).await {
                return;
            }
        }
    }

    /// Runs one exchange, listening meanwhile.
    async fn exchange(&mut self, waiting: QueuedSend) {
        let QueuedSend {
            mut setup,
            history,
            steered: promised,
            counted,
            started: _,
        } = waiting;
        drop(counted);
        let began = Instant::now();
        let _running = self.shared.services.exchanges.token();
        let _counted = metrics::EXCHANGES.enter();
        // No child of the conversation's token: questions are settled before calls hear of the end.
        let cancel = CancellationToken::new();
        let (steer, mut steered) = mpsc::channel(QUEUED);
        self.mailbox.state.running = Some(Running {
            message_id: setup.message_id.clone(),
            steer,
            cancel: cancel.clone(),
            steered: VecDeque::new(),
            cause: None,
        });
        let limit = self.shared.limit(&setup);
        let stopwatch = Stopwatch::start(limit.time);
        let found = self.find_model(&mut setup, &cancel, &stopwatch).await;
        let span = tracing::info_span!(
            "exchange",
            message_id = %setup.message_id,
            provider = setup.provider_id,
            model = setup.model,
        );
        let begun = span.in_scope(|| self.shared.begin(&setup, history, &promised));
        let mut ended = match (begun, found) {
            (Ok(()), Ok(())) => {
                let run = self.run_exchange(&setup, &cancel, &stopwatch, &mut steered, &span);
                run.await
            }
            (Ok(()), Err(error)) => self.shared.end_unsent(&setup, error),
            (Err(full), _) => *full,
        };
        let Self { mailbox, shared } = self;
        let state = &mut mailbox.state;
        state.void(None, By::Cancel, shared);
        shared.conversation.announced.clear();
        let (cause, answers) = match state.running.take() {
            Some(running) => (running.cause, running.steered),
            None => (None, VecDeque::new()),
        };
        if ended.stop == Some(StopReason::Cancelled) && cause == Some(StopReason::Timeout) {
            ended.error = Some(shared.overdue(&setup, &limit));
        }
        let mut left_over = Vec::new();
        while let Ok(parts) = steered.try_recv() {
            left_over.push(parts);
        }
        if cause.is_some() {
            // It was promised to be part of this exchange, which ends here.
            for content in std::mem::take(&mut left_over) {
                shared.tell_steered(&setup, &mut ended, content);
            }
        }
        span.in_scope(|| shared.end(&setup, ended, cause, Some(began.elapsed())));
        state.take_left_over(left_over, &answers, &setup, shared);
    }

    /// Asks the provider for a model where nobody names one, listening meanwhile; or says why there is
    /// none, `None` for a cancel. The time that it takes is the exchange's.
    async fn find_model(
        &mut self,
        setup: &mut Setup,
        cancelled: &CancellationToken,
        stopwatch: &Stopwatch,
    ) -> Result<(), Option<ChatError>> {
        if !setup.model.is_empty() {
            return Ok(());
        }
        let Self { mailbox, shared } = self;
        shared.tell_state(Some(&setup.message_id), StateName::Thinking);
        let models = Arc::clone(&shared.services.first_models);
        let asking = setup.clone();
        let find = async {
            tokio::select! {
                biased;
                () = cancelled.cancelled() => Looked::Cancelled,
                () = stopwatch.expired() => Looked::Overdue,
                found = models.find(&asking) => Looked::Answered(found),
            }
        };
        match mailbox.listening(shared, find).await {
            Looked::Answered(found) => {
                setup.model = found.map_err(Some)?;
                Ok(())
            }
            Looked::Cancelled => Err(None),
            Looked::Overdue => {
                mailbox.state.stop(StopReason::Timeout, By::Cancel, shared);
                Err(None)
            }
        }
    }

    /// Runs what has begun, to its end.
    async fn run_exchange(
        &mut self,
        setup: &Setup,
        cancel_exchange: &CancellationToken,
        stopwatch: &Stopwatch,
        steered: &mut mpsc::Receiver<Vec<Part>>,
        span: &tracing::Span,
    ) -> Ended {
        let Self { mailbox, shared } = self;
        let (asks, mut asked) = mpsc::channel::<Question>(ASKS);
        let ended = {
            let exchange = Exchange {
                setup,
                services: &shared.services,
                session: &shared.session,
                conversation: &shared.conversation,
                history: &shared.history,
                asks,
                steered,
                stopwatch,
                cancel: cancel_exchange,
            };
            let mut exchange =
                pin!(AssertUnwindSafe(exchange.run().instrument(span.clone())).catch_unwind());
            let mut expired = pin!(stopwatch.expired());
            loop {
                let live = !cancel_exchange.is_cancelled();
                let step = async {
                    tokio::select! {
                        biased;
                        Some(question) = asked.recv() => Step::Asked(question),
                        () = &mut expired, if live => Step::Overdue,
                        ended = &mut exchange => Step::Ended(ended),
                    }
                };
                match mailbox.listening(shared, step).await {
                    Step::Asked(question) => mailbox.state.ask(question, shared),
                    Step::Overdue => mailbox.state.stop(StopReason::Timeout, By::Cancel, shared),
                    Step::Ended(ended) => break ended,
                }
            }
        };
        let state = &mut mailbox.state;
        ended.unwrap_or_else(|_| {
            // A question is over before its call is answered, here as everywhere.
            state.void(None, By::Cancel, shared);
            shared.fault(setup)
        })
    }
}

/// What a look for a model comes to.
enum Looked {
    Answered(Result<String, ChatError>),
    Cancelled,
    Overdue,
}

/// What a running exchange comes to next; `T` is its end.
enum Step<T> {
    Asked(Question),
    Overdue,
    Ended(T),
}

#[cfg(test)]
mod tests;

//! The actor of one conversation: its inbox, its queue, one exchange at a time.
//!
//! It takes commands while an exchange runs. The exchange borrows the context and sends its questions over a channel;
//! the queue and the open questions are the actor's alone, so they need no lock. Each exchange gets its [`Transcript`]
//! here, which is begun and ended here.

mod history;
mod limit;
mod mailbox;
pub mod queue;
mod send_answer;
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

use crate::exchange::calls::settle_open;
use crate::exchange::context::Context;
use crate::exchange::questions::{Action, QuestionRequest, Which};
use crate::exchange::setup::Setup;
use crate::exchange::stopwatch::Stopwatch;
use crate::exchange::transcript::Transcript;
use crate::exchange::{Ended, Exchange, failure};
use crate::message::{Message, MessageId, Part, ToolId};
use crate::protocol::command::WhenBusy;
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, ChatError, Event, State, StateName, StopReason};
use crate::protocol::{ChatCode, RequestId};
use crate::telemetry::metrics;

use limit::Limit;
use mailbox::Mailbox;
use queue::{QUEUED, QueuedSend};
pub use send_answer::{Answer, Answered};
use state::Running;
pub use view::View;

/// Commands that wait for a conversation: its actor takes them at once, so this is slack, not a queue.
pub const INBOX: usize = 64;

/// Requests of one exchange about questions that wait to be taken: one a call, taken at once.
const QUESTIONS: usize = 64;

/// What is sent to a conversation.
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
    /// Answers or extends an open question.
    Question {
        /// What is done about which question.
        action: Action,
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
    /// What the exchange is to do; its id is minted already.
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
    context: Context,
}

impl Conversation {
    /// Makes an actor that lives until it is closed, its inbox is, or `cancel` is cancelled.
    pub fn new(
        inbox: mpsc::Receiver<Command>,
        context: Context,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            mailbox: Mailbox::new(inbox, cancel),
            context,
        }
    }

    /// Runs the conversation to its end.
    ///
    /// Commands are taken at once, but no exchange begins before `predecessor_gone` is cancelled: once the closed
    /// conversation with the same id has finished.
    pub async fn run(mut self, predecessor_gone: CancellationToken) {
        let _counted = metrics::CONVERSATIONS.enter();
        let Self { mailbox, context } = &mut self;
        let cancel = mailbox.cancel.clone();
        let wait = cancel.run_until_cancelled(predecessor_gone.cancelled());
        mailbox.take_commands_during(context, wait).await;
        loop {
            if cancel.is_cancelled() {
                return mailbox.state.drop_queue(context);
            }
            if let Some(send) = mailbox.state.queue.pop() {
                exchange(mailbox, context, send).await;
                emit_state(context, None, StateName::Idle);
            } else if mailbox.state.closed || !mailbox.take_next(context).await {
                return;
            }
        }
    }
}

/// Runs one exchange from its first event to its last, taking commands meanwhile.
async fn exchange(mailbox: &mut Mailbox, context: &Context, send: QueuedSend) {
    let QueuedSend {
        mut setup,
        history,
        steered: steered_before,
        counted,
        started: _,
    } = send;
    drop(counted);
    let began = Instant::now();
    let _running = context.services.exchanges.token();
    let _counted = metrics::EXCHANGES.enter();
    // No child of the conversation's token: questions are settled before calls are cancelled.
    let cancel = CancellationToken::new();
    let (steer, mut steered) = mpsc::channel(QUEUED);
    mailbox.state.running = Some(Running {
        message_id: setup.message_id.clone(),
        steer,
        cancel: cancel.clone(),
        steered: VecDeque::new(),
        cause: None,
    });
    let limit = Limit::of(&setup, context);
    let stopwatch = Stopwatch::start(limit.time);
    let found = find_model(mailbox, context, &mut setup, &stopwatch, &cancel).await;
    let span = tracing::info_span!(
        "exchange",
        message_id = %setup.message_id,
        provider = setup.provider_id,
        model = setup.model,
    );
    let mut transcript = Transcript::new(context, &setup.message_id);
    let begun = span.in_scope(|| begin(&transcript, context, &setup, history, &steered_before));
    let mut ended = match (begun, found) {
        (Err(full), _) => *full,
        (Ok(()), Err(error)) => end_unsent(&mut transcript, context, &setup, error),
        (Ok(()), Ok(())) => {
            let (questions, mut requests) = mpsc::channel(QUESTIONS);
            let exchange = Exchange {
                setup: &setup,
                context,
                transcript: &mut transcript,
                questions,
                steered: &mut steered,
                stopwatch: &stopwatch,
                cancel: &cancel,
            };
            drive(mailbox, context, exchange, &mut requests, &span).await
        }
    };
    let state = &mut mailbox.state;
    state.questions.withdraw(&Which::All, By::Cancel, context);
    context.conversation.announced.clear();
    let (cause, answers) = match state.running.take() {
        Some(running) => (running.cause, running.steered),
        None => (None, VecDeque::new()),
    };
    if ended.stop == Some(StopReason::Cancelled) {
        if cause == Some(StopReason::Timeout) {
            ended.error = Some(limit.error(&setup));
        }
        ended.stop = cause.or(ended.stop);
    }
    let mut left_over = Vec::new();
    while let Ok(content) = steered.try_recv() {
        match cause {
            // Its client was promised that it is part of this exchange, which was cancelled.
            Some(_) => transcript.record_steered(content),
            None => left_over.push(content),
        }
    }
    span.in_scope(|| transcript.end(ended, Some(began.elapsed())));
    state.queue_left_over(left_over, &answers, &setup, context);
}

/// Runs what has begun to its end, and takes commands and questions meanwhile.
async fn drive(
    mailbox: &mut Mailbox,
    context: &Context,
    exchange: Exchange<'_>,
    requests: &mut mpsc::Receiver<QuestionRequest>,
    span: &tracing::Span,
) -> Ended {
    let (setup, stopwatch, cancel) = (exchange.setup, exchange.stopwatch, exchange.cancel);
    let run = exchange.run().instrument(span.clone());
    let mut run = pin!(AssertUnwindSafe(run).catch_unwind());
    let mut expired = pin!(stopwatch.expired());
    let ended = loop {
        let live = !cancel.is_cancelled();
        let step = async {
            tokio::select! {
                biased;
                Some(request) = requests.recv() => Step::Question(request),
                () = &mut expired, if live => Step::Overdue,
                ended = &mut run => Step::Ended(ended),
            }
        };
        match mailbox.take_commands_during(context, step).await {
            Step::Question(request) => mailbox.state.questions.take(request, context),
            Step::Overdue => mailbox.state.stop(StopReason::Timeout, By::Cancel, context),
            Step::Ended(ended) => break ended,
        }
    };
    ended.unwrap_or_else(|_| {
        tracing::error!("an exchange panicked");
        // A question is settled before its call is, here as everywhere.
        let questions = &mut mailbox.state.questions;
        questions.withdraw(&Which::All, By::Cancel, context);
        settle_open(context, &setup.message_id);
        Ended {
            stop: Some(StopReason::Error),
            error: Some(ChatError {
                retryable: true,
                ..ChatError::new(
                    &setup.conversation_id,
                    Some(&setup.message_id),
                    ChatCode::Internal,
                    "the daemon failed; see its log",
                )
            }),
            ..Ended::default()
        }
    })
}

/// What a running exchange comes to next; `T` is its end.
enum Step<T> {
    Question(QuestionRequest),
    Overdue,
    Ended(T),
}

/// Asks the provider for a model where nobody names one; the time that it takes is the exchange's. Returns why there is
/// none, `None` for a cancel.
async fn find_model(
    mailbox: &mut Mailbox,
    context: &Context,
    setup: &mut Setup,
    stopwatch: &Stopwatch,
    cancel: &CancellationToken,
) -> Result<(), Option<ChatError>> {
    if !setup.model.is_empty() {
        return Ok(());
    }
    emit_state(context, Some(&setup.message_id), StateName::Thinking);
    let models = Arc::clone(&context.services.first_models);
    let wanted = setup.clone();
    let find = async {
        tokio::select! {
            biased;
            () = cancel.cancelled() => ModelSearch::Cancelled,
            () = stopwatch.expired() => ModelSearch::Overdue,
            found = models.find(&wanted) => ModelSearch::Done(found),
        }
    };
    match mailbox.take_commands_during(context, find).await {
        ModelSearch::Done(found) => {
            setup.model = found.map_err(Some)?;
            Ok(())
        }
        ModelSearch::Cancelled => Err(None),
        ModelSearch::Overdue => {
            mailbox.state.stop(StopReason::Timeout, By::Cancel, context);
            Err(None)
        }
    }
}

/// What a search for a model comes to.
enum ModelSearch {
    Done(Result<String, ChatError>),
    Cancelled,
    Overdue,
}

/// Takes a client's history and emits that the exchange began. An error is what the exchange comes to where there is no
/// room to remember what it says; nothing of it is remembered.
fn begin(
    transcript: &Transcript,
    context: &Context,
    setup: &Setup,
    history: Option<Vec<WireMessage>>,
    steered: &[Vec<Part>],
) -> Result<(), Box<Ended>> {
    let replaced = history.map_or(Ok(()), |history| history::replace(context, history));
    let has_room = replaced.and_then(|()| history::room_for(context, &setup.content));
    transcript.begin(setup, steered);
    has_room.map_err(|full| {
        Box::new(Ended {
            stop: Some(StopReason::Error),
            error: Some(failure::history_full(full, setup)),
            ..Ended::default()
        })
    })
}

/// Remembers what was said in an exchange that has begun and whose model is not asked: its provider named none, which is
/// the error, or it was cancelled before.
fn end_unsent(
    transcript: &mut Transcript,
    context: &Context,
    setup: &Setup,
    error: Option<ChatError>,
) -> Ended {
    transcript.record(Message::User(setup.content.clone()));
    let error = error.map(|error| ChatError {
        message: context
            .services
            .redactor
            .redact(&error.message)
            .into_owned(),
        ..error
    });
    let stop = match error {
        Some(_) => StopReason::Error,
        None => StopReason::Cancelled,
    };
    Ended {
        stop: Some(stop),
        error,
        ..Ended::default()
    }
}

/// Ends a send that was dropped before it ran. One whose client takes it for begun begins here, and what it said is
/// remembered.
fn drop_send(context: &Context, send: QueuedSend) {
    let setup = &send.setup;
    let mut transcript = Transcript::new(context, &setup.message_id);
    let ended = if send.started {
        match begin(&transcript, context, setup, send.history, &send.steered) {
            Ok(()) => end_unsent(&mut transcript, context, setup, None),
            Err(full) => *full,
        }
    } else {
        Ended {
            stop: Some(StopReason::Cancelled),
            ..Ended::default()
        }
    };
    transcript.end(ended, None);
}

/// Emits what the conversation does, and for which exchange.
fn emit_state(context: &Context, message_id: Option<&MessageId>, state: StateName) {
    let state = State::new(&context.conversation.id, message_id, state);
    context.events().emit(Event::ChatState(state));
}

#[cfg(test)]
mod tests;

//! The actor of one conversation: its inbox, its queue, one exchange at a time.
//!
//! It takes commands while an exchange runs, which borrows the context. Each exchange gets its `Transcript` here, which
//! is begun and ended here.

mod mailbox;
mod state;
#[cfg(test)]
pub(crate) mod testing;
mod view;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::exchange::calls::settle_open;
use crate::exchange::context::Context;
use crate::exchange::history::{Full, Repairs, bytes_of_parts};
use crate::exchange::questions::Action;
use crate::exchange::setup::Setup;
use crate::exchange::stopwatch::Stopwatch;
use crate::exchange::transcript::Transcript;
use crate::exchange::{Ended, Exchange, failure};
use crate::message::{Message, MessageId, Notice, Part, Severity, ToolId};
use crate::protocol::answer::Sent;
use crate::protocol::command::WhenBusy;
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, ChatError, Event, State, StateName, StopReason};
use crate::protocol::{ChatCode, RequestId};
use crate::telemetry::metrics;

use mailbox::Mailbox;
use state::{ActorState, QUEUED, QueuedSend, Running};
pub(crate) use view::View;

/// Commands that wait for a conversation: its actor takes them at once, so this is slack, not a queue.
pub(crate) const INBOX: usize = 64;

/// What is sent to a conversation.
pub(crate) enum Command {
    Send(Box<SendRequest>),
    /// Repeats the answer to a send that was sent again.
    Repeat {
        /// The answer, set once the first send was taken.
        answer: Answer,
        reply_to: Option<RequestId>,
    },
    Cancel {
        queued: bool,
        /// The request to answer; `None` for no answer.
        reply_to: Option<RequestId>,
    },
    Question {
        action: Action,
        reply_to: Option<RequestId>,
    },
    CancelTool(ToolId),
    /// Looks at how things stand, here and now: nothing happens in the conversation meanwhile.
    Look(Box<dyn FnOnce(View<'_>) + Send>),
    /// Ends the conversation when its exchange is over, which is cancelled.
    Close,
}

/// A send, resolved.
pub(crate) struct SendRequest {
    /// What the exchange is to do; its id is minted already.
    pub setup: Setup,
    /// Messages that replace what is remembered.
    pub history: Option<Vec<WireMessage>>,
    pub when_busy: WhenBusy,
    /// Whether the client gave settings of its own, which a steered message cannot have.
    pub has_settings: bool,
    /// The request to answer; `None` for no answer.
    pub reply_to: Option<RequestId>,
    pub answer: Answer,
}

/// The answer to a `chat:send`, shared by who gives it and who remembers it, so that the same send is not run twice.
pub(crate) type Answer = Arc<Mutex<Answered>>;

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) enum Answered {
    /// The conversation has not taken the send yet.
    #[default]
    Waiting,
    Admitted(Sent),
    /// It was not admitted and may be sent again.
    Refused,
}

/// Runs a conversation until it is closed, its inbox is, or `cancel` is cancelled.
///
/// Commands are taken at once, but no exchange begins before `predecessor_gone` is cancelled: once the closed
/// conversation with the same id has finished.
pub(crate) async fn run(
    inbox: mpsc::Receiver<Command>,
    context: Context,
    cancel: CancellationToken,
    predecessor_gone: CancellationToken,
) {
    let _counted = metrics::CONVERSATIONS.enter();
    let mut mailbox = Mailbox {
        inbox,
        state: ActorState::default(),
        cancel: cancel.clone(),
    };
    let (mailbox, context) = (&mut mailbox, &context);
    let wait = cancel.run_until_cancelled(predecessor_gone.cancelled());
    mailbox.take_commands_during(context, wait).await;
    loop {
        if cancel.is_cancelled() {
            return mailbox.state.drop_queue(context);
        }
        if let Some(send) = mailbox.state.queue.pop_front() {
            exchange(mailbox, context, send).await;
            emit_state(context, None, StateName::Idle);
        } else if mailbox.state.closed || !mailbox.take_next(context).await {
            return;
        }
    }
}

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
    let (limit, setting) = time_limit(&setup, context);
    let stopwatch = Stopwatch::start(limit);
    // Where there is nothing to find, nobody else gets a word in before the start.
    let found = match setup.model.is_empty() {
        true => {
            let find = find_model(context, &mut setup, &cancel);
            drive(mailbox, context, &stopwatch, &cancel, find).await
        }
        false => Some(Ok(())),
    };
    let span = tracing::info_span!(
        "exchange",
        message_id = %setup.message_id,
        provider = setup.provider_id,
        model = setup.model,
    );
    let mut transcript = Transcript::new(context, &setup.message_id);
    let begun = span.in_scope(|| begin(&transcript, context, &setup, history, &steered_before));
    let ended = match (begun, found) {
        (Err(full), _) => Some(*full),
        (Ok(()), None) => None,
        (Ok(()), Some(Err(error))) => Some(end_unsent(&mut transcript, context, &setup, error)),
        (Ok(()), Some(Ok(()))) => {
            let (transcript, steered) = (&mut transcript, &mut steered);
            let (setup, stopwatch, cancel) = (&setup, &stopwatch, &cancel);
            let run = async move {
                Exchange::begin(setup, context, transcript, steered, stopwatch, cancel)
                    .run()
                    .await
            };
            drive(
                mailbox,
                context,
                stopwatch,
                cancel,
                run.instrument(span.clone()),
            )
            .await
        }
    };
    // A question is settled before its call is, here as everywhere.
    let questions = &context.conversation.questions;
    questions.withdraw(|_| true, By::Cancel, context);
    let mut ended = ended.unwrap_or_else(|| end_by_fault(context, &setup));
    context.conversation.announced.lock().clear();
    let state = &mut mailbox.state;
    let (cause, answers) = match state.running.take() {
        Some(running) => (running.cause, running.steered),
        None => (None, VecDeque::new()),
    };
    if ended.stop == Some(StopReason::Cancelled) {
        if cause == Some(StopReason::Timeout) {
            ended.error = Some(overdue(&setup, limit, setting));
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

/// Returns how long an exchange that begins now may take, whatever tools come and go, and the setting that says so.
fn time_limit(setup: &Setup, context: &Context) -> (Duration, &'static str) {
    let tools = context.services.registry.snapshot();
    match tools.values().any(|tool| setup.scope.allows(tool.spec())) {
        true => (setup.timeout_tools, "chat.timeout_tools"),
        false => (setup.timeout_plain, "chat.timeout_plain"),
    }
}

/// Returns the error of an exchange that took longer.
fn overdue(setup: &Setup, limit: Duration, setting: &str) -> ChatError {
    let seconds = limit.as_secs_f64();
    ChatError {
        hint: Some(format!("raise limits.timeoutMs or {setting}")),
        retryable: true,
        ..setup.error(
            ChatCode::ExchangeTimeout,
            format!("the exchange took longer than {seconds} s"),
        )
    }
}

/// Does the work of an exchange, takes commands meanwhile, and stops it when its time is up. Returns `None` where it
/// panicked.
async fn drive<T>(
    mailbox: &mut Mailbox,
    context: &Context,
    stopwatch: &Stopwatch,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    let mut expired = pin!(stopwatch.expired());
    loop {
        let live = !cancel.is_cancelled();
        let done_in_time = async {
            tokio::select! {
                biased;
                () = &mut expired, if live => None,
                done = &mut work => Some(done),
            }
        };
        match mailbox.take_commands_during(context, done_in_time).await {
            Some(done) => return done.ok(),
            None => mailbox.state.stop(StopReason::Timeout, By::Cancel, context),
        }
    }
}

/// Answers the calls of an exchange that panicked, and says what it came to.
fn end_by_fault(context: &Context, setup: &Setup) -> Ended {
    tracing::error!("an exchange panicked");
    settle_open(context, &setup.message_id);
    Ended {
        stop: Some(StopReason::Error),
        error: Some(ChatError {
            retryable: true,
            ..setup.error(ChatCode::Internal, "the daemon failed; see its log")
        }),
        ..Ended::default()
    }
}

/// Asks the provider for a model where nobody names one; the time that it takes is the exchange's. Returns why there is
/// none, `None` for a cancel.
async fn find_model(
    context: &Context,
    setup: &mut Setup,
    cancel: &CancellationToken,
) -> Result<(), Option<ChatError>> {
    emit_state(context, Some(&setup.message_id), StateName::Thinking);
    let find = context.services.first_models.find(setup);
    let found = cancel.run_until_cancelled(find).await;
    setup.model = found.ok_or(None)?.map_err(Some)?;
    Ok(())
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
    let replaced = history.map_or(Ok(()), |history| replace_history(context, history));
    let remembered = &context.conversation.history;
    let has_room = replaced.and_then(|()| remembered.room_for(bytes_of_parts(&setup.content)));
    transcript.begin(setup, steered);
    has_room.map_err(|full| {
        Box::new(Ended {
            stop: Some(StopReason::Error),
            error: Some(failure::history_full(full, setup)),
            ..Ended::default()
        })
    })
}

fn replace_history(context: &Context, history: Vec<WireMessage>) -> Result<(), Full> {
    let messages = history.into_iter().map(Message::from).collect();
    let conversation = &context.conversation;
    let repairs = conversation.history.replace(messages)?;
    *conversation.context_tokens.lock() = None;
    if repairs != Repairs::default() {
        context.events().emit(Event::SessionNotice(Notice {
            severity: Severity::Warning,
            code: "history_repaired".to_owned(),
            message: format!(
                "the history sent was not valid: {} calls without a result got an error result, {} results without a call were dropped",
                repairs.answered, repairs.dropped
            ),
        }));
    }
    Ok(())
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
    let redactor = &context.services.redactor;
    let error = error.map(|error| ChatError {
        message: redactor.redact(&error.message).into_owned(),
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

fn emit_state(context: &Context, message_id: Option<&MessageId>, state: StateName) {
    let state = State::new(&context.conversation.id, message_id, state);
    context.events().emit(Event::ChatState(state));
}

#[cfg(test)]
mod tests;

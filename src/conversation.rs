//! The actor of one conversation: its inbox, its queue, one exchange at a time.
//!
//! There is one way to wait here, and it takes commands (`Mailbox::take_commands_during`); what they change is in
//! `state`. Each exchange gets its `Transcript` here, which is begun and ended here.

mod compaction;
mod learn;
mod limit;
mod queue;
mod refusals;
mod state;
mod task;
#[cfg(test)]
pub(crate) mod testing;
mod view;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::exchange::calls::settle_open;
use crate::exchange::context::{Context, Setup, Steer};
use crate::exchange::history::{Full, Repairs, bytes_of_parts};
use crate::exchange::questions::Action;
use crate::exchange::transcript::Transcript;
use crate::exchange::{self, Ended, Execute, failure, spans};
use crate::message::{Message, MessageId, Notice, Severity, ToolId};
use crate::protocol::answer::Sent;
use crate::protocol::client_tools::Executing;
use crate::protocol::command::{CompactMode, WhenBusy};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, ChatError, Event, State, StateName, StopReason};
use crate::protocol::{ChatCode, RequestId};
use crate::runtime::Stopwatch;
use crate::telemetry::metrics;

use learn::{find_model, learn};
use limit::{overdue, time_limit};
pub(crate) use queue::{QueueChange, not_queued};
use state::{ActorState, QUEUED, QueuedSend, Running};
pub(crate) use state::{KeptSend, Unread};
pub(crate) use task::run_task;
pub(crate) use view::{View, page_of};

/// Commands that wait for a conversation: its actor takes them at once, so this is slack, not a queue.
pub(crate) const INBOX: usize = 64;

/// What is sent to a conversation.
pub(crate) enum Command {
    Send(Box<SendRequest>),
    /// Answers a send that was sent again as the first one was answered.
    AnswerAgain {
        /// The call that it is, where it is no message.
        call: Option<ToolId>,
        admission: SharedAdmission,
        reply_to: Option<RequestId>,
    },
    Cancel {
        queued: bool,
        /// What the same request dropped already.
        unread: Unread,
        /// The request to answer; `None` for no answer.
        reply_to: Option<RequestId>,
    },
    Question {
        action: Action,
        reply_to: Option<RequestId>,
    },
    CancelTool(ToolId),
    /// Gives up what a client was to run of these tools, since it does not have them any more.
    GiveUpCalls(Vec<String>),
    /// Lists what waits, after a change of it where there is one.
    Queue {
        change: Option<Box<(MessageId, QueueChange)>>,
        reply_to: Option<RequestId>,
    },
    /// Makes what the model sees shorter.
    Compact(Box<CompactRequest>),
    /// Looks at how things stand, here and now: nothing happens in the conversation meanwhile.
    Look(Box<dyn FnOnce(View<'_>) + Send>),
    /// Ends the conversation when its exchange is over, which is cancelled.
    Close,
}

/// A send, resolved.
pub(crate) struct SendRequest {
    /// What the exchange is to do; its id is minted already.
    pub setup: Setup,
    /// The call that it is, where it is no message.
    pub execute: Option<Box<Execute>>,
    /// Messages that replace what is remembered.
    pub history: Option<Vec<WireMessage>>,
    pub when_busy: WhenBusy,
    /// Whether the client gave settings of its own, which a steered message cannot have.
    pub has_settings: bool,
    /// The request to answer; `None` for no answer.
    pub reply_to: Option<RequestId>,
    pub admission: SharedAdmission,
    /// What is kept of it while it waits.
    pub kept: KeptSend,
}

/// A `chat:compact`, resolved.
pub(crate) struct CompactRequest {
    /// How the next exchange would be, where there was none yet.
    pub setup: Setup,
    pub mode: Option<CompactMode>,
    pub instructions: String,
    /// Whether it may wait for the exchange that runs.
    pub may_wait: bool,
    pub reply_to: Option<RequestId>,
}

/// Returns the answer to a send, or to the request for a call, by what became of it.
pub(crate) fn sent(sent: Sent, call: Option<&ToolId>) -> Event {
    match call {
        None => Event::ChatSendResult(sent),
        Some(call) => Event::ToolExecuteResult(Executing {
            conversation_id: sent.conversation_id,
            message_id: sent.message_id,
            tool_id: call.clone(),
            state: sent.state,
            position: sent.position,
            duplicate: sent.duplicate,
        }),
    }
}

/// What became of a `chat:send`, shared by the conversation that decides it and the session that remembers it, so that
/// the same send is not run twice.
pub(crate) type SharedAdmission = Arc<Mutex<Admission>>;

#[derive(Clone, Debug, Default)]
pub(crate) enum Admission {
    /// The conversation has not taken the send yet.
    #[default]
    Pending,
    /// It runs, waits or was steered, and was answered so.
    Admitted(Sent),
    /// It was not admitted and may be sent again.
    Refused,
}

/// Runs a conversation until it is closed, its inbox is, or `cancel` is cancelled.
///
/// Commands are taken at once, but no exchange begins before `predecessor_gone` is cancelled: once the closed
/// conversation with the same id has finished. Its commands in the background end with it.
pub(crate) async fn run(
    inbox: mpsc::Receiver<Command>,
    context: Context,
    cancel: CancellationToken,
    predecessor_gone: CancellationToken,
) {
    let _counted = metrics::CONVERSATIONS.enter();
    converse(inbox, &context, cancel, predecessor_gone).await;
    context.conversation.background.end().await;
}

async fn converse(
    inbox: mpsc::Receiver<Command>,
    context: &Context,
    cancel: CancellationToken,
    predecessor_gone: CancellationToken,
) {
    let mut mailbox = Mailbox {
        inbox,
        state: ActorState::default(),
        cancel: cancel.clone(),
    };
    let mailbox = &mut mailbox;
    let wait = cancel.run_until_cancelled(predecessor_gone.cancelled());
    let never = std::future::pending();
    mailbox.take_commands_during(context, never, wait).await;
    // A send that is taken is placed in the state; the next round runs it.
    loop {
        if cancel.is_cancelled() {
            return mailbox.state.leave(context);
        }
        if let Some(compact) = mailbox.state.compact.take() {
            compaction::run(mailbox, context, compact).await;
            emit_state(context, None, StateName::Idle);
        } else if let Some(send) = mailbox.state.next_send() {
            run_exchange(mailbox, context, send).await;
            emit_state(context, None, StateName::Idle);
        } else if mailbox.state.closed || !mailbox.take_next(context).await {
            return;
        }
    }
}

/// How a conversation takes commands, whatever else it does: each is done at once, between two steps of the work that
/// is waited for.
struct Mailbox {
    inbox: mpsc::Receiver<Command>,
    /// What the commands change.
    state: ActorState,
    cancel: CancellationToken,
}

impl Mailbox {
    /// Waits for work and takes commands meanwhile. The exchange that runs is stopped where its time has `expired` or
    /// the conversation is to end, and the work has to end with it.
    async fn take_commands_during<T>(
        &mut self,
        context: &Context,
        expired: impl Future<Output = ()>,
        work: impl Future<Output = T>,
    ) -> T {
        let Self {
            inbox,
            state,
            cancel,
        } = self;
        let questions = &context.conversation.questions;
        let (mut expired, mut work) = (pin!(expired), pin!(work));
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if state.is_live() => {
                    let by = match context.conversation.within {
                        Some(_) => By::Cancel,
                        None => By::Shutdown,
                    };
                    state.stop(StopReason::Cancelled, by, context);
                }
                due = questions.due(context) => questions.settle_due(due, context),
                // Guarded: a closed inbox is ready for ever and would spin here.
                command = inbox.recv(), if !state.closed => match command {
                    Some(command) => state.take(command, context),
                    None => state.closed = true,
                },
                () = &mut expired, if state.is_live() => {
                    state.stop(StopReason::Timeout, By::Cancel, context);
                }
                done = &mut work => return done,
            }
        }
    }

    /// Waits for one command and takes it; returns false where no more come.
    async fn take_next(&mut self, context: &Context) -> bool {
        self.state.at_work = None;
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

/// Runs one exchange, from its first event to its last.
async fn run_exchange(mailbox: &mut Mailbox, context: &Context, send: QueuedSend) {
    let QueuedSend {
        mut setup,
        execute,
        history,
        steered: steered_before,
        waited,
        counted,
        ..
    } = send;
    drop(counted);
    let began = Instant::now();
    let _running = context.services.exchanges.token();
    let _counted = metrics::EXCHANGES.enter();
    let state = &mut mailbox.state;
    // A task is part of the exchange around it.
    if state.at_work.is_none() && context.conversation.within.is_none() {
        // What waited when the daemon ended runs whatever else does.
        state.at_work = context.services.quota.exchange(None);
    }
    // No child of the conversation's token: questions are settled before calls are cancelled.
    let cancel = CancellationToken::new();
    let (steer, mut steered) = mpsc::channel(QUEUED);
    mailbox.state.running = Some(Running {
        message_id: setup.message_id.clone(),
        steer: Some(steer),
        freedom: setup.freedom.clone(),
        cancel: cancel.clone(),
        steered: VecDeque::new(),
        cause: None,
    });
    // Whoever sends all messages makes them fewer, too.
    setup.compact_at = setup.compact_at.filter(|_| history.is_none());
    let (limit, setting) = time_limit(&setup, context);
    let around = context.conversation.within.as_ref();
    let around = around
        .map(|within| within.clocks.clone())
        .unwrap_or_default();
    let stopwatch = Arc::new(Stopwatch::within(limit, around));
    let mut prepared = Ok(());
    // Not awaited where the model is known: `drive` would take commands before the start is emitted.
    if setup.model.is_empty() && execute.is_none() {
        let find = find_model(context, &setup, &cancel);
        let model = drive(mailbox, context, &stopwatch, find).await;
        let model = model.unwrap_or_else(|| Err(end_by_fault(context, &setup)));
        prepared = model.map(|model| setup.model = model);
    }
    // Before the begin, which names what is told.
    if execute.is_none() && prepared.is_ok() {
        let learn = learn(mailbox, context, &setup, &stopwatch, &cancel);
        prepared = learn.await;
    }
    let span = tracing::info_span!(
        "exchange",
        message_id = %setup.message_id,
        provider = setup.provider_id,
        model = setup.model,
    );
    // Also where no model was found: a client that has a start waits for an end.
    let mut transcript = Transcript::new(context, &setup.message_id);
    let begun = span.in_scope(|| {
        let transcript = &mut transcript;
        let said = match execute {
            // It says nothing by itself.
            Some(_) => None,
            None => Some((history, steered_before.as_slice(), waited.as_slice())),
        };
        begin(transcript, context, &setup, said)
    });
    let mut ended = match begun.and(prepared) {
        Ok(()) => {
            let (transcript, steered) = (&mut transcript, &mut steered);
            let run = async {
                let (setup, stopwatch, cancel) = (&setup, &stopwatch, &cancel);
                match &execute {
                    None => {
                        exchange::run(setup, context, transcript, steered, stopwatch, cancel).await
                    }
                    Some(it) => {
                        let it = (&**it, setup);
                        exchange::execute(it, context, transcript, steered, stopwatch, cancel).await
                    }
                }
            };
            let run = run.instrument(span.clone());
            let ended = drive(mailbox, context, &stopwatch, run).await;
            ended.unwrap_or_else(|| *end_by_fault(context, &setup))
        }
        Err(ended) => *ended,
    };
    context.conversation.announced.lock().clear();
    let state = &mut mailbox.state;
    let (cause, admissions) = match state.running.take() {
        Some(running) => (running.cause, running.steered),
        None => (None, VecDeque::new()),
    };
    // The exchange knows that it was cancelled, but not why.
    if let (StopReason::Cancelled, Some(cause)) = (ended.stop, cause) {
        ended.stop = cause;
        if cause == StopReason::Timeout {
            ended.error = Some(overdue(&setup, limit, setting));
        }
    }
    let mut remaining = Vec::new();
    while let Ok(said) = steered.try_recv() {
        match cause {
            // Its client was promised that it is part of this exchange, which was cancelled.
            Some(_) => transcript.record_steered(said),
            None => remaining.push(said),
        }
    }
    spans::ended(&span, &ended, context);
    span.in_scope(|| transcript.end(ended, Some(began.elapsed())));
    state.last = Some(Setup {
        content: Vec::new(),
        ..setup.clone()
    });
    state.continue_with(remaining, &admissions, &setup, context);
}

/// Does the work of an exchange and takes commands meanwhile. Returns `None` where it panicked.
async fn drive<T>(
    mailbox: &mut Mailbox,
    context: &Context,
    stopwatch: &Stopwatch,
    work: impl Future<Output = T>,
) -> Option<T> {
    let work = AssertUnwindSafe(work).catch_unwind();
    let expired = stopwatch.expired();
    let done = mailbox.take_commands_during(context, expired, work).await;
    done.ok()
}

/// Answers the calls of an exchange that panicked, and returns how it ended.
fn end_by_fault(context: &Context, setup: &Setup) -> Box<Ended> {
    tracing::error!("an exchange panicked");
    // A question is settled before its call is, here as everywhere.
    let questions = &context.conversation.questions;
    questions.withdraw(|_| true, By::Cancel, context);
    settle_open(context, &setup.message_id);
    let error = ChatError {
        retryable: true,
        ..setup.error(ChatCode::Internal, "the daemon failed; see its log")
    };
    Box::new(Ended::before_turns(StopReason::Error, Some(error)))
}

/// Takes a client's history, emits that the exchange began and remembers what the user says. Where there is no room for
/// that, it fails with how the exchange ended, and nothing of it is remembered. Of a call that a client starts nothing is
/// `said`.
fn begin(
    transcript: &mut Transcript,
    context: &Context,
    setup: &Setup,
    said: Option<ToSay<'_>>,
) -> Result<(), Box<Ended>> {
    let instructions = context.conversation.instructions.told();
    let Some((history, steered, waited)) = said else {
        transcript.begin(setup, &[], instructions);
        return Ok(());
    };
    let replaced = history.map_or(Ok(()), |history| {
        replace_history(context, &setup.message_id, history)
    });
    let remembered = &context.conversation.history;
    let has_room = replaced.and_then(|()| remembered.room_for(bytes_of_parts(&setup.content)));
    transcript.begin(setup, steered, instructions);
    has_room.map_err(|full| {
        context.session.journal.dropped(waited);
        let error = failure::history_full(full, setup);
        Box::new(Ended::before_turns(StopReason::Error, Some(error)))
    })?;
    transcript.record_said(setup.content.clone(), waited);
    Ok(())
}

/// Messages that replace what is remembered, what was steered too late before, and under which names it all waited.
type ToSay<'a> = (Option<Vec<WireMessage>>, &'a [Steer], &'a [MessageId]);

fn replace_history(
    context: &Context,
    exchange: &MessageId,
    history: Vec<WireMessage>,
) -> Result<(), Full> {
    let messages = history.into_iter().map(Message::from).collect();
    let conversation = &context.conversation;
    let repairs = conversation.history.replace(exchange, messages)?;
    conversation.gauge.lock().forget();
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

/// Ends a send that was to run next and was dropped: its client takes it for begun, so it begins here.
fn drop_next(context: &Context, send: QueuedSend) {
    let mut transcript = Transcript::new(context, &send.setup.message_id);
    let said = match send.execute {
        Some(_) => None,
        None => Some((
            send.history,
            send.steered.as_slice(),
            send.waited.as_slice(),
        )),
    };
    let begun = begin(&mut transcript, context, &send.setup, said);
    let cancelled = Ended::before_turns(StopReason::Cancelled, None);
    let ended = begun.map_or_else(|full| *full, |()| cancelled);
    transcript.end(ended, None);
}

/// Ends a send that was dropped from the queue.
fn drop_queued(context: &Context, send: &QueuedSend) {
    context.session.journal.dropped(&send.waited);
    let transcript = Transcript::new(context, &send.setup.message_id);
    transcript.end(Ended::before_turns(StopReason::Cancelled, None), None);
}

fn emit_state(context: &Context, message_id: Option<&MessageId>, state: StateName) {
    let state = State::new(&context.conversation.id, message_id, state);
    context.events().emit(Event::ChatState(state));
}

#[cfg(test)]
mod tests;

//! What commands change in a conversation: sends that wait, and the end of what runs.
//!
//! It belongs to the conversation's one task, and nothing here waits.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::limit::over_quota;
use super::refusals::{full, refused};
use super::view::words;
use super::{
    Admission, Command, CompactRequest, SendRequest, SharedAdmission, View, drop_next, drop_queued,
    emit_state,
};
use crate::exchange::Execute;
use crate::exchange::context::{Context, Setup, Steer};
use crate::exchange::questions::Open;
use crate::message::{MessageId, Notice, Severity, ToolId};
use crate::permission::Freedom;
use crate::protocol::answer::{self, SendState};
use crate::protocol::command::WhenBusy;
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, ChatError, Event, Queued, StateName, StopReason};
use crate::protocol::{ChatCode, RequestId};
use crate::telemetry::metrics::{self, Counted};
use crate::users::quota;

/// The most sends that wait in one conversation.
pub(super) const QUEUED: usize = 10;

#[derive(Default)]
pub(super) struct ActorState {
    /// What runs next: its client takes it for begun, since it was answered so or was part of what ran.
    pub(super) next: Option<QueuedSend>,
    /// What waits behind it, first come first served.
    pub(super) queue: VecDeque<QueuedSend>,
    pub(super) running: Option<Running>,
    /// A `chat:compact` that runs next, before any send.
    pub(super) compact: Option<CompactRequest>,
    /// How the last exchange was.
    pub(super) last: Option<Setup>,
    pub(super) closed: bool,
    /// Counts it among the user's conversations at work, from the first send or compaction on until nothing waits any more.
    pub(super) at_work: Option<quota::Counted>,
    /// Whether the queue is of before the daemon ended: it waits until the user says something.
    pub(super) is_held: bool,
}

/// Sends that were dropped on their way to a conversation, before their documents were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    /// Whether one of them would have run at once.
    pub next: bool,
    /// How many would have waited.
    pub queued: usize,
}

/// A send as it is kept.
#[derive(Debug, Default)]
pub(crate) struct KeptSend {
    /// All that it says, as JSON.
    pub json: String,
    /// By what it is known when it comes again under the same id.
    pub digest: Vec<u8>,
    /// Whether it waited when the daemon ended.
    pub is_restored: bool,
    /// Whether it then waits on until the user says something.
    pub is_held: bool,
}

/// A send that waits, or what was steered into an exchange too late.
pub(super) struct QueuedSend {
    pub(super) setup: Setup,
    /// The call that it is, where it is no message.
    pub(super) execute: Option<Box<Execute>>,
    /// Messages that replace what is remembered.
    pub(super) history: Option<Vec<WireMessage>>,
    /// What was steered into the exchange before, too late.
    pub(super) steered: Vec<Steer>,
    /// The names under which what it says is kept while it waits.
    pub(super) waited: Vec<MessageId>,
    /// All that it says, as it is kept; empty for a call.
    pub(super) kept: String,
    /// Whether the client gave settings of its own.
    pub(super) has_settings: bool,
    /// What its client was answered.
    pub(super) admission: SharedAdmission,
    /// Counts it while it waits.
    pub(super) counted: Counted,
}

impl QueuedSend {
    pub(super) fn new(setup: Setup, history: Option<Vec<WireMessage>>) -> Self {
        Self {
            waited: vec![setup.message_id.clone()],
            setup,
            execute: None,
            history,
            steered: Vec::new(),
            kept: String::new(),
            has_settings: false,
            admission: SharedAdmission::default(),
            counted: metrics::QUEUED_SENDS.enter(),
        }
    }

    /// Returns its words, as clients are told them; `None` for a call, which says nothing.
    pub(super) fn said(&self) -> Option<String> {
        let is_call = self.execute.is_some();
        (!is_call).then(|| words(&self.setup.content))
    }

    /// Whether it is words alone, which can be part of another exchange.
    pub(super) fn is_plain(&self) -> bool {
        self.execute.is_none() && self.history.is_none() && !self.has_settings
    }
}

/// What the actor holds of the running exchange.
pub(super) struct Running {
    pub(super) message_id: MessageId,
    /// `None` where it is no exchange but a compaction by hand.
    pub(super) steer: Option<mpsc::Sender<Steer>>,
    /// What it does without asking: less, once somebody who may have less done has a word in it.
    pub(super) freedom: Freedom,
    pub(super) cancel: CancellationToken,
    /// What became of the last sends that were steered into it: of as many as it may end without.
    pub(super) steered: VecDeque<SharedAdmission>,
    /// Why it was cancelled, where it was.
    pub(super) cause: Option<StopReason>,
}

impl ActorState {
    pub(super) fn take(&mut self, command: Command, context: &Context) {
        match command {
            Command::Send(send) => self.admit(*send, context),
            Command::AnswerAgain {
                call,
                admission,
                reply_to,
            } => {
                let admission = admission.lock().clone();
                let event = match admission {
                    Admission::Admitted(known) => {
                        let known = answer::Sent {
                            duplicate: true,
                            ..known
                        };
                        super::sent(known, call.as_ref())
                    }
                    Admission::Pending | Admission::Refused => Event::ChatError(refused(
                        &context.conversation.id,
                        ChatCode::ConversationBusy,
                        "the first send with this id was not admitted",
                    )),
                };
                context.events().answer(reply_to.as_ref(), event);
            }
            Command::Cancel {
                queued,
                unread,
                reply_to,
            } => self.cancel(queued, unread, reply_to.as_ref(), context),
            Command::Question { action, reply_to } => {
                let questions = &context.conversation.questions;
                questions.act(action, reply_to.as_ref(), context);
            }
            Command::CancelTool(id) => {
                let its = |open: &Open| open.tool_id.as_ref() == Some(&id);
                let questions = &context.conversation.questions;
                questions.withdraw(its, By::Cancel, context);
                context.session.executions.cancel(&id);
                context.conversation.background.kill_of(&id);
            }
            Command::GiveUpCalls(tools) => {
                let questions = &context.conversation.questions;
                questions.give_up_calls(&tools, context);
            }
            Command::Queue { change, reply_to } => {
                self.queue(change.map(|it| *it), reply_to.as_ref(), context);
            }
            Command::Compact(wanted) => self.admit_compact(*wanted, context),
            Command::Look(look) => look(View::new(self, context)),
            Command::Close => {
                self.closed = true;
                self.compact = None;
                self.drop_waiting(context);
                self.stop(StopReason::Cancelled, By::Cancel, context);
            }
        }
    }

    fn admit(&mut self, mut send: SendRequest, context: &Context) {
        let (reply_to, admission) = (send.reply_to.clone(), send.admission.clone());
        let has_settings = send.has_settings;
        let events = context.events();
        let (row, kept) = (
            send.setup.message_id.clone(),
            std::mem::take(&mut send.kept),
        );
        if kept.is_restored {
            self.is_held = kept.is_held;
        }
        let call = send.execute.as_ref().map(|it| it.call.id.clone());
        // Nobody who is there has said it.
        let is_message = send.execute.is_none();
        let content = (kept.is_restored && is_message).then(|| words(&send.setup.content));
        // What waited before is not refused now.
        if !kept.is_restored && !self.may_work(context) {
            *admission.lock() = Admission::Refused;
            return events.answer(reply_to.as_ref(), Event::SessionError(over_quota()));
        }
        match self.place(send, &kept) {
            Ok(sent) => {
                let journal = &context.session.journal;
                // A call that waits does not outlive the daemon: who asked for it may not want it any more.
                if !kept.is_restored && call.is_none() {
                    let answered = (reply_to.as_ref(), &sent);
                    journal.admitted(&row, &kept.json, &kept.digest, answered);
                }
                *admission.lock() = Admission::Admitted(sent.clone());
                if reply_to.is_some() {
                    let event = super::sent(sent.clone(), call.as_ref());
                    events.answer(reply_to.as_ref(), event);
                }
                if has_settings && sent.state == SendState::Steered {
                    events.emit(Event::SessionNotice(Notice {
                        severity: Severity::Warning,
                        code: "steer_settings_ignored".to_owned(),
                        message: format!(
                            "a message was steered into {} of conversation `{}`, which goes on with the settings that it began with; those of the message do not count",
                            sent.message_id, sent.conversation_id
                        ),
                    }));
                }
                if let Some(position) = sent.position {
                    events.emit(Event::ChatQueued(Queued {
                        conversation_id: sent.conversation_id,
                        message_id: sent.message_id.clone(),
                        position,
                        content,
                    }));
                    emit_state(context, Some(&sent.message_id), StateName::Queued);
                }
            }
            Err(error) => {
                *admission.lock() = Admission::Refused;
                events.answer(reply_to.as_ref(), Event::ChatError(error));
            }
        }
    }

    /// Has a send run next, or puts it into the running exchange or into the queue.
    fn place(
        &mut self,
        send: SendRequest,
        kept: &KeptSend,
    ) -> Result<answer::Sent, Box<ChatError>> {
        let SendRequest {
            setup,
            execute,
            history,
            when_busy,
            has_settings,
            admission,
            ..
        } = send;
        let id = setup.conversation_id.clone();
        let sent = |message_id: &MessageId, state| answer::Sent {
            conversation_id: id.clone(),
            message_id: message_id.clone(),
            state,
            position: None,
            duplicate: false,
        };
        let waits = admission.clone();
        let waiting = |setup, history| QueuedSend {
            execute,
            kept: kept.json.clone(),
            has_settings,
            admission: waits,
            ..QueuedSend::new(setup, history)
        };
        let is_full = self.waiting().count() >= QUEUED;
        let is_free = self.next.is_none() && (self.queue.is_empty() || self.is_held);
        match (&mut self.running, when_busy) {
            _ if kept.is_restored => {
                let mut sent = sent(&setup.message_id, SendState::Queued);
                self.queue.push_back(waiting(setup, history));
                sent.position = Some(self.queue.len());
                Ok(sent)
            }
            (None, _) if is_free => {
                self.is_held = false;
                let sent = sent(&setup.message_id, SendState::Started);
                self.next = Some(waiting(setup, history));
                Ok(sent)
            }
            (_, WhenBusy::Reject) => Err(refused(
                &id,
                ChatCode::ConversationBusy,
                "an exchange is running in this conversation",
            )),
            // An exchange that was cancelled reads nothing more: what is said then waits for the next one.
            (
                Some(Running {
                    message_id,
                    steer: Some(steer),
                    freedom,
                    steered,
                    cause: None,
                    ..
                }),
                WhenBusy::Steer,
            ) if history.is_none() => {
                let Ok(place) = steer.try_reserve() else {
                    return Err(full(&id));
                };
                freedom.narrow(setup.freedom.most());
                place.send(Steer {
                    id: setup.message_id,
                    content: setup.content,
                });
                steered.push_back(admission);
                if steered.len() > QUEUED {
                    steered.pop_front();
                }
                Ok(sent(message_id, SendState::Steered))
            }
            (_, WhenBusy::Queue | WhenBusy::Steer) if is_full => Err(full(&id)),
            (_, WhenBusy::Queue | WhenBusy::Steer) => {
                self.is_held = false;
                let mut sent = sent(&setup.message_id, SendState::Queued);
                self.queue.push_back(waiting(setup, history));
                sent.position = Some(self.queue.len());
                Ok(sent)
            }
        }
    }

    fn cancel(
        &mut self,
        queued: bool,
        unread: Unread,
        reply_to: Option<&RequestId>,
        context: &Context,
    ) {
        let running = self.is_live();
        self.compact = None;
        // It waits while a conversation of the same name winds up. Its client cancels it as one that runs, and without
        // `queued` nothing else would.
        let next = self.next.take();
        let dropped = if queued { self.queue.len() } else { 0 };
        // Before the answer says so.
        let queue = self.queue.iter().filter(|_| queued);
        let names = queue.chain(&next).flat_map(|send| send.waited.clone());
        context
            .session
            .journal
            .dropped(&names.collect::<Vec<MessageId>>());
        if reply_to.is_some() {
            let event = Event::ChatCancelResult(answer::Cancelled {
                conversation_id: context.conversation.id.clone(),
                cancelled: running || next.is_some() || unread.next,
                tool_ids: unfinished_calls(context),
                queued_dropped: dropped + unread.queued,
            });
            context.events().answer(reply_to, event);
        }
        let has_dropped = next.is_some() || dropped > 0;
        if let Some(next) = next {
            drop_next(context, next);
        }
        if queued {
            self.drop_waiting(context);
        }
        self.stop(StopReason::Cancelled, By::Cancel, context);
        if has_dropped {
            self.rest(context);
        }
    }

    /// Cancels the running exchange; the first cause counts.
    pub(super) fn stop(&mut self, cause: StopReason, by: By, context: &Context) {
        if let Some(running) = &mut self.running {
            let questions = &context.conversation.questions;
            questions.withdraw(|_| true, by, context);
            running.cause.get_or_insert(cause);
            running.cancel.cancel();
        }
    }

    /// Returns whether an exchange runs that was not cancelled.
    pub(super) fn is_live(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| !running.cancel.is_cancelled())
    }

    /// Returns what waits, the next one first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &QueuedSend> {
        self.next.iter().chain(&self.queue)
    }

    /// Takes the send that is to run now.
    pub(super) fn next_send(&mut self) -> Option<QueuedSend> {
        let next = self.next.take();
        next.or_else(|| match self.is_held {
            true => None,
            false => self.queue.pop_front(),
        })
    }

    /// Ends with the session's process, which is nobody's wish: what is kept of the queue waits on in the store.
    pub(super) fn leave(&mut self, context: &Context) {
        if context.session.journal.is_on() {
            self.queue.retain(|send| send.execute.is_some());
        }
        self.drop_waiting(context);
    }

    pub(super) fn drop_waiting(&mut self, context: &Context) {
        if let Some(next) = self.next.take() {
            drop_next(context, next);
        }
        for send in std::mem::take(&mut self.queue) {
            drop_queued(context, &send);
        }
    }

    /// Has an exchange run next of what was to be steered into one that had just ended by itself; `admissions` are
    /// those of the last sends that were steered.
    pub(super) fn continue_with(
        &mut self,
        said: Vec<Steer>,
        admissions: &VecDeque<SharedAdmission>,
        setup: &Setup,
        context: &Context,
    ) {
        if said.is_empty() || self.closed {
            return;
        }
        let contents: Vec<_> = said.iter().map(|said| said.content.as_slice()).collect();
        let setup = Setup {
            message_id: context.session.ids.message(),
            content: contents.concat(),
            ..setup.clone()
        };
        for admission in admissions.iter().rev().take(said.len()) {
            if let Admission::Admitted(sent) = &mut *admission.lock() {
                sent.message_id.clone_from(&setup.message_id);
            }
        }
        self.next = Some(QueuedSend {
            waited: said.iter().map(|said| said.id.clone()).collect(),
            steered: said,
            ..QueuedSend::new(setup, None)
        });
    }
}

/// Returns the calls that a client knows of and that have no result yet, oldest first: the open ones and those whose
/// input is still streaming.
fn unfinished_calls(context: &Context) -> Vec<ToolId> {
    let executions = &context.session.executions;
    let mut calls = executions.open_of(&context.conversation.id);
    let mut announced = context.conversation.announced.lock().clone();
    announced.retain(|id| executions.get(id).is_none());
    calls.extend(announced);
    calls
}

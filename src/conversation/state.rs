//! What a conversation owes while its exchange runs: sends that wait, verdicts, the end of what runs.
//!
//! All of it is changed by the conversation's one task, so nothing here waits and nothing needs a lock.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::approvals::Approvals;
use super::inputs::Inputs;
use super::queue::{QUEUED, Queue, QueuedSend};
use super::send_answer::{Answer, Answered};
use super::shared::{Shared, full, refused};
use super::{Command, SendRequest, View};
use crate::exchange::ask::Question;
use crate::exchange::setup::Setup;
use crate::message::{MessageId, Part, ToolId};
use crate::protocol::answer;
use crate::protocol::command::{ToolExtend, WhenBusy};
use crate::protocol::event::{By, Event, SessionError, StopReason};
use crate::protocol::input::ToolInputRequest;
use crate::protocol::{ChatCode, RequestId};

/// What changes while an exchange runs.
#[derive(Default)]
pub(super) struct ActorState {
    pub(super) queue: Queue,
    pub(super) approvals: Approvals,
    pub(super) inputs: Inputs,
    pub(super) running: Option<Running>,
    pub(super) closed: bool,
}

/// What the actor holds of the running exchange.
pub(super) struct Running {
    pub(super) message_id: MessageId,
    pub(super) steer: mpsc::Sender<Vec<Part>>,
    pub(super) cancel: CancellationToken,
    /// The answers to the last sends that were steered into it: as many as may be left over.
    pub(super) steered: VecDeque<Answer>,
    /// Why it was cancelled, where it was.
    pub(super) cause: Option<StopReason>,
}

impl ActorState {
    pub(super) fn take(&mut self, command: Command, shared: &Shared) {
        match command {
            Command::Send(send) => self.admit(*send, shared),
            Command::Repeat { answer, reply_to } => {
                let event = match answer.get() {
                    Answered::Admitted(sent) => Event::ChatSendResult(answer::Sent {
                        duplicate: true,
                        ..sent
                    }),
                    Answered::Waiting | Answered::Refused => Event::ChatError(Box::new(refused(
                        &shared.id,
                        ChatCode::ConversationBusy,
                        "the first send with this id was not admitted",
                    ))),
                };
                shared.events().answer(reply_to.as_ref(), event);
            }
            Command::Cancel { queued, reply_to } => self.cancel(queued, reply_to.as_ref(), shared),
            Command::Approve { verdict, reply_to } => {
                let answer = self.approvals.answer(
                    verdict,
                    &shared.conversation.remembered,
                    shared.events(),
                );
                shared.events().answer(
                    reply_to.as_ref(),
                    match answer {
                        Ok(approved) => Event::ChatToolApproveResult(approved),
                        Err(error) => Event::SessionError(error),
                    },
                );
            }
            Command::Input { input, reply_to } => {
                let taken = self.inputs.answer(input, &shared.session);
                let event = taken.map_or_else(Event::SessionError, Event::ChatToolInputResult);
                shared.events().answer(reply_to.as_ref(), event);
            }
            Command::Extend { wanted, reply_to } => {
                let extended = self.extend(&wanted, shared);
                let answer = extended.unwrap_or_else(Event::SessionError);
                shared.events().answer(reply_to.as_ref(), answer);
            }
            Command::CancelTool(id) => {
                self.void(Some(&id), By::Cancel, shared);
                shared.session.executions.cancel(&id);
            }
            Command::Look(look) => look(View::new(self, shared)),
            Command::Close => {
                self.closed = true;
                self.drop_queue(shared);
                self.stop(StopReason::Cancelled, By::Cancel, shared);
            }
        }
    }

    /// Gives an open question more time.
    fn extend(&mut self, wanted: &ToolExtend, shared: &Shared) -> Result<Event, SessionError> {
        let (tool_id, rules) = (&wanted.tool_id, &shared.services.config.approval);
        let extended = match &wanted.request_id {
            Some(id) => self.inputs.extend(tool_id, id, rules, &shared.session),
            None => self.approvals.extend(tool_id, rules, shared.events()),
        };
        extended.map(Event::ChatToolExtendResult)
    }

    /// Takes a send: at once, into the running exchange, into the queue, or not at all.
    fn admit(&mut self, send: SendRequest, shared: &Shared) {
        let SendRequest {
            setup,
            history,
            when_busy,
            has_settings,
            reply_to,
            answer,
        } = send;
        let admitted = match (&mut self.running, when_busy) {
            (None, _) if self.queue.is_empty() => {
                let sent = sent(&setup, answer::SendState::Started, None);
                self.queue.push(QueuedSend::new(setup, history, true));
                Ok(sent)
            }
            (_, WhenBusy::Reject) => Err(refused(
                &setup.conversation_id,
                ChatCode::ConversationBusy,
                "an exchange is running in this conversation",
            )),
            // An exchange that was cancelled reads nothing more: what is said then waits for the next one.
            (Some(running), WhenBusy::Steer) if history.is_none() && running.cause.is_none() => {
                match running.steer.try_send(setup.content.clone()) {
                    Ok(()) => {
                        running.steered.push_back(answer.clone());
                        if running.steered.len() > QUEUED {
                            running.steered.pop_front();
                        }
                        Ok(answer::Sent {
                            message_id: running.message_id.clone(),
                            ..sent(&setup, answer::SendState::Steered, None)
                        })
                    }
                    Err(_) => Err(full(&setup.conversation_id)),
                }
            }
            (_, WhenBusy::Queue | WhenBusy::Steer) if self.queue.is_full() => {
                Err(full(&setup.conversation_id))
            }
            (_, WhenBusy::Queue | WhenBusy::Steer) => {
                let mut sent = sent(&setup, answer::SendState::Queued, None);
                sent.position = Some(self.queue.push(QueuedSend::new(setup, history, false)));
                Ok(sent)
            }
        };
        match admitted {
            Ok(sent) => {
                answer.set(Answered::Admitted(sent.clone()));
                if reply_to.is_some() {
                    let event = Event::ChatSendResult(sent.clone());
                    shared.events().answer(reply_to.as_ref(), event);
                }
                if has_settings && sent.state == answer::SendState::Steered {
                    shared.tell_settings_ignored(&sent.message_id);
                }
                if let Some(position) = sent.position {
                    shared.tell_queued(&sent.message_id, position);
                }
            }
            Err(error) => {
                answer.set(Answered::Refused);
                let event = Event::ChatError(Box::new(error));
                shared.events().answer(reply_to.as_ref(), event);
            }
        }
    }

    fn cancel(&mut self, queued: bool, reply_to: Option<&RequestId>, shared: &Shared) {
        let running = self
            .running
            .as_ref()
            .is_some_and(|running| running.cause.is_none());
        // While a conversation of the same name winds up, the first send waits that was answered with `started`:
        // its client cancels it as one that runs, and without `queued` nothing else would.
        let waiting = self.queue.pop_started();
        let dropped = if queued { self.queue.ids().len() } else { 0 };
        if reply_to.is_some() {
            let event = Event::ChatCancelResult(answer::Cancelled {
                conversation_id: shared.id.clone(),
                cancelled: running || waiting.is_some(),
                tool_ids: shared.calls_to_end(),
                queued_dropped: dropped,
            });
            shared.events().answer(reply_to, event);
        }
        if let Some(waiting) = waiting {
            shared.drop_send(waiting);
        }
        if queued {
            self.drop_queue(shared);
        }
        self.stop(StopReason::Cancelled, By::Cancel, shared);
    }

    /// Asks the user, or takes a question back.
    pub(super) fn ask(&mut self, question: Question, shared: &Shared) {
        match question {
            Question::Ask(ask) => {
                let rules = &shared.services.config.approval;
                self.approvals.register(*ask, rules, shared.events());
            }
            Question::Withdraw { tool_id, settled } => {
                self.approvals
                    .void(Some(&tool_id), By::Cancel, shared.events());
                // Whoever asked waits for this; where it does not, it is over.
                let _ = settled.send(());
            }
            Question::Input(ask) => {
                let rules = &shared.services.config.approval;
                self.inputs.register(*ask, rules, &shared.session);
            }
            Question::WithdrawInput {
                tool_id,
                request_id,
                settled,
            } => {
                let which = |open: &ToolInputRequest| {
                    open.tool_id == tool_id
                        && request_id.as_ref().is_none_or(|id| open.request_id == *id)
                };
                self.inputs.void(which, By::Cancel, &shared.session);
                let _ = settled.send(());
            }
        }
    }

    /// Cancels the running exchange; the first cause counts.
    pub(super) fn stop(&mut self, cause: StopReason, by: By, shared: &Shared) {
        if self.running.is_some() {
            self.void(None, by, shared);
        }
        if let Some(running) = &mut self.running {
            running.cause.get_or_insert(cause);
            running.cancel.cancel();
        }
    }

    /// Settles what the user is asked about one call, or about all where none is named.
    pub(super) fn void(&mut self, id: Option<&ToolId>, by: By, shared: &Shared) {
        self.approvals.void(id, by, shared.events());
        let of_call = |open: &ToolInputRequest| id.is_none_or(|id| open.tool_id == *id);
        self.inputs.void(of_call, by, &shared.session);
    }

    /// Whether an exchange runs that was not cancelled.
    pub(super) fn is_live(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| !running.cancel.is_cancelled())
    }

    pub(super) fn drop_queue(&mut self, shared: &Shared) {
        for waiting in self.queue.clear() {
            shared.drop_send(waiting);
        }
    }

    /// Makes an exchange of what was to be steered into one that had just ended by itself; `answers` are those
    /// to the last sends that were steered.
    pub(super) fn take_left_over(
        &mut self,
        contents: Vec<Vec<Part>>,
        answers: &VecDeque<Answer>,
        setup: &Setup,
        shared: &Shared,
    ) {
        if contents.is_empty() || self.closed {
            return;
        }
        let setup = Setup {
            message_id: shared.session.ids.message(),
            content: contents.concat(),
            ..setup.clone()
        };
        for answer in answers.iter().rev().take(contents.len()) {
            answer.moved(&setup.message_id);
        }
        self.queue.push_front(QueuedSend {
            steered: contents,
            ..QueuedSend::new(setup, None, true)
        });
    }
}

fn sent(setup: &Setup, state: answer::SendState, position: Option<usize>) -> answer::Sent {
    answer::Sent {
        conversation_id: setup.conversation_id.clone(),
        message_id: setup.message_id.clone(),
        state,
        position,
        duplicate: false,
    }
}

//! The actor of one conversation: its inbox, its queue, what it remembers, one exchange at a time.
//!
//! It keeps listening while an exchange runs. The exchange borrows what is shared and asks for
//! verdicts over a channel; what is owed lives here, outside it, so nothing needs a lock. The first
//! and the last event of each exchange are sent here and nowhere else.

pub mod approvals;
pub mod queue;
mod shared;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::exchange::ask::Question;
use crate::exchange::history::History;
use crate::exchange::setup::{ConversationShared, Services, SessionShared, Setup};
use crate::exchange::stopwatch::Stopwatch;
use crate::exchange::{Ended, Exchange};
use crate::message::{ConversationId, Message, MessageId, Part, ToolId};
use crate::protocol::answer;
use crate::protocol::command::{ToolApprove, WhenBusy};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{By, Event, SessionError, StateName, StopReason, ToolConfirm};
use crate::protocol::{ChatCode, RequestId};

use approvals::Approvals;
use queue::{QUEUED, Queue};
use shared::{Shared, full, refused};

/// Commands that wait for a conversation: its actor takes them at once, so this is slack, not a queue.
pub const INBOX: usize = 64;

/// Questions of one exchange that wait to be announced: one a call, taken at once.
const ASKS: usize = 64;

/// What a conversation can be told.
pub enum Command {
    /// Says something.
    Send(Box<Send>),
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
    /// Ends one call.
    CancelTool(ToolId),
    /// Asks for what is remembered.
    History(oneshot::Sender<answer::History>),
    /// Asks how things stand.
    State(oneshot::Sender<(answer::ConversationState, Vec<ToolConfirm>)>),
    /// Ends the conversation when its exchange is over, which is cancelled.
    Close,
}

/// The answer to a `chat:send`, kept so that the same send is not run twice; `None` where it was not
/// admitted and may be sent again.
pub type Answer = Arc<OnceLock<Option<answer::Sent>>>;

/// A send, resolved.
pub struct Send {
    /// What the exchange is to do; the id of its exchange is minted already.
    pub setup: Setup,
    /// Messages that replace what is remembered.
    pub history: Option<Vec<WireMessage>>,
    /// What to do while an exchange runs.
    pub when_busy: WhenBusy,
    /// The request to answer; `None` for no answer.
    pub reply_to: Option<RequestId>,
    /// Where the answer is kept.
    pub answer: Answer,
}

/// A conversation's actor.
pub struct Conversation {
    inbox: mpsc::Receiver<Command>,
    desk: Desk,
    shared: Shared,
    cancel: CancellationToken,
}

/// What changes while an exchange runs.
#[derive(Default)]
struct Desk {
    queue: Queue<(Setup, Option<Vec<WireMessage>>)>,
    approvals: Approvals,
    running: Option<Running>,
    closed: bool,
}

/// What the actor holds of the running exchange.
struct Running {
    message_id: MessageId,
    steer: mpsc::Sender<Vec<Part>>,
    cancel: CancellationToken,
    /// Why it was cancelled, where it was.
    cause: Option<StopReason>,
}

impl Conversation {
    /// Makes an actor that lives until it is closed, its inbox is, or `cancel` is cancelled.
    pub fn new(
        id: ConversationId,
        inbox: mpsc::Receiver<Command>,
        services: Services,
        session: SessionShared,
        conversation: ConversationShared,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            inbox,
            desk: Desk::default(),
            shared: Shared {
                id,
                services,
                session,
                conversation,
                history: History::default(),
            },
            cancel,
        }
    }

    /// Runs the conversation to its end.
    pub async fn run(mut self) {
        loop {
            if self.cancel.is_cancelled() {
                self.desk.drop_queue(&self.shared);
                return;
            }
            if let Some((_, (setup, history))) = self.desk.queue.pop() {
                self.exchange(setup, history).await;
                self.shared.tell_idle();
            } else if self.desk.closed {
                return;
            } else {
                let command = tokio::select! {
                    command = self.inbox.recv() => command,
                    () = self.cancel.cancelled() => None,
                };
                match command {
                    Some(command) => self.desk.take(command, &self.shared),
                    None => return,
                }
            }
        }
    }

    /// Runs one exchange, listening meanwhile.
    async fn exchange(&mut self, setup: Setup, history: Option<Vec<WireMessage>>) {
        let Self {
            inbox,
            desk,
            shared,
            cancel,
        } = self;
        let began = Instant::now();
        let _running = shared.services.exchanges.token();
        shared.begin(&setup, history);
        // No child of the conversation's token: questions are settled before calls hear of the end.
        let cancel_exchange = CancellationToken::new();
        let (asks, mut asked) = mpsc::channel::<Question>(ASKS);
        let (steer, mut steered) = mpsc::channel(QUEUED);
        desk.running = Some(Running {
            message_id: setup.message_id.clone(),
            steer,
            cancel: cancel_exchange.clone(),
            cause: None,
        });
        let stopwatch = Stopwatch::start(shared.timeout(&setup));
        let ended = {
            let exchange = Exchange {
                setup: &setup,
                services: &shared.services,
                session: &shared.session,
                conversation: &shared.conversation,
                history: &shared.history,
                asks,
                steered: &mut steered,
                stopwatch: &stopwatch,
                cancel: &cancel_exchange,
            };
            let mut exchange = pin!(AssertUnwindSafe(exchange.run()).catch_unwind());
            let mut expired = pin!(stopwatch.expired());
            loop {
                let live = !cancel_exchange.is_cancelled();
                tokio::select! {
                    biased;
                    () = cancel.cancelled(), if live => {
                        desk.stop(StopReason::Cancelled, By::Shutdown, shared);
                    }
                    Some(question) = asked.recv() => desk.ask(question, shared),
                    () = until(desk.approvals.next_expiry()) => {
                        desk.approvals.expire(Instant::now(), shared.events());
                    }
                    () = &mut expired, if live => desk.stop(StopReason::Timeout, By::Cancel, shared),
                    // Guarded: a closed inbox is ready for ever and would spin here.
                    command = inbox.recv(), if !desk.closed => match command {
                        Some(command) => desk.take(command, shared),
                        None => desk.closed = true,
                    },
                    ended = &mut exchange => break ended,
                }
            }
        };
        let ended = ended.unwrap_or_else(|_| shared.fault(&setup));
        desk.approvals.void(None, By::Cancel, shared.events());
        let cause = desk.running.take().and_then(|running| running.cause);
        shared.end(&setup, ended, cause, began.elapsed());
        desk.take_left_over(&mut steered, &setup, cause, shared);
    }
}

impl Desk {
    fn take(&mut self, command: Command, shared: &Shared) {
        match command {
            Command::Send(send) => self.admit(*send, shared),
            Command::Repeat { answer, reply_to } => {
                let event = match answer.get() {
                    Some(Some(sent)) => Event::ChatSendResult(answer::Sent {
                        duplicate: true,
                        ..sent.clone()
                    }),
                    _ => Event::ChatError(Box::new(refused(
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
            Command::CancelTool(id) => {
                self.approvals.void(Some(&id), By::Cancel, shared.events());
                shared.session.executions.cancel(&id);
            }
            Command::History(reply) => {
                // Nobody waits any more: nothing to do.
                drop(reply.send(shared.messages()));
            }
            Command::State(reply) => {
                drop(reply.send((self.state(shared), self.approvals.confirms())));
            }
            Command::Close => {
                self.closed = true;
                self.drop_queue(shared);
                self.stop(StopReason::Cancelled, By::Cancel, shared);
            }
        }
    }

    /// Takes a send: at once, into the running exchange, into the queue, or not at all.
    fn admit(&mut self, send: Send, shared: &Shared) {
        let Send {
            setup,
            history,
            when_busy,
            reply_to,
            answer,
        } = send;
        let admitted = match (&self.running, when_busy) {
            (None, _) => {
                let sent = sent(&setup, answer::SendState::Started, None);
                self.queue.push(setup.message_id.clone(), (setup, history));
                Ok(sent)
            }
            (Some(_), WhenBusy::Reject) => Err(refused(
                &setup.conversation_id,
                ChatCode::ConversationBusy,
                "an exchange is running in this conversation",
            )),
            (Some(running), WhenBusy::Steer) if history.is_none() => {
                match running.steer.try_send(setup.content.clone()) {
                    Ok(()) => Ok(answer::Sent {
                        message_id: running.message_id.clone(),
                        ..sent(&setup, answer::SendState::Steered, None)
                    }),
                    Err(_) => Err(full(&setup.conversation_id)),
                }
            }
            (Some(_), WhenBusy::Queue | WhenBusy::Steer) if self.queue.is_full() => {
                Err(full(&setup.conversation_id))
            }
            (Some(_), WhenBusy::Queue | WhenBusy::Steer) => {
                let id = setup.message_id.clone();
                let mut sent = sent(&setup, answer::SendState::Queued, None);
                sent.position = Some(self.queue.push(id, (setup, history)));
                Ok(sent)
            }
        };
        match admitted {
            Ok(sent) => {
                drop(answer.set(Some(sent.clone())));
                if reply_to.is_some() {
                    let event = Event::ChatSendResult(sent.clone());
                    shared.events().answer(reply_to.as_ref(), event);
                }
                if let Some(position) = sent.position {
                    shared.tell_queued(sent.message_id, position);
                }
            }
            Err(error) => {
                drop(answer.set(None));
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
        let dropped = if queued { self.queue.ids().len() } else { 0 };
        if reply_to.is_some() {
            let event = Event::ChatCancelResult(answer::Cancelled {
                conversation_id: shared.id.clone(),
                cancelled: running,
                tool_ids: shared.session.executions.open_of(&shared.id),
                queued_dropped: dropped,
            });
            shared.events().answer(reply_to, event);
        }
        if queued {
            self.drop_queue(shared);
        }
        self.stop(StopReason::Cancelled, By::Cancel, shared);
    }

    /// Asks the user, or takes a question back.
    fn ask(&mut self, question: Question, shared: &Shared) {
        match question {
            Question::Ask(ask) => {
                let timeout = shared.services.config.approval.timeout;
                self.approvals.register(*ask, timeout, shared.events());
            }
            Question::Withdraw { tool_id, settled } => {
                self.approvals
                    .void(Some(&tool_id), By::Cancel, shared.events());
                // Whoever asked waits for this; where it does not, it is over.
                let _ = settled.send(());
            }
        }
    }

    /// Cancels the running exchange; the first cause counts.
    fn stop(&mut self, cause: StopReason, by: By, shared: &Shared) {
        if let Some(running) = &mut self.running {
            running.cause.get_or_insert(cause);
            self.approvals.void(None, by, shared.events());
            running.cancel.cancel();
        }
    }

    fn drop_queue(&mut self, shared: &Shared) {
        for message_id in self.queue.clear() {
            shared.tell_end(
                &Ended {
                    stop: Some(StopReason::Cancelled),
                    ..Ended::default()
                },
                &message_id,
                None,
                Duration::ZERO,
            );
        }
    }

    /// Makes an exchange of what was to be steered into one that had just ended; where that one was
    /// cancelled it is remembered, and nothing is started.
    fn take_left_over(
        &mut self,
        steered: &mut mpsc::Receiver<Vec<Part>>,
        setup: &Setup,
        cause: Option<StopReason>,
        shared: &Shared,
    ) {
        let mut content = Vec::new();
        while let Ok(parts) = steered.try_recv() {
            content.extend(parts);
        }
        if content.is_empty() || self.closed {
            return;
        }
        if cause.is_some() {
            shared.history.extend([Message::User(content)]);
            return;
        }
        let setup = Setup {
            message_id: shared.session.ids.message(),
            content,
            ..setup.clone()
        };
        self.queue
            .push_front(setup.message_id.clone(), (setup, None));
    }

    fn state(&self, shared: &Shared) -> answer::ConversationState {
        let state = match &self.running {
            None => StateName::Idle,
            Some(_) if !self.approvals.confirms().is_empty() => StateName::AwaitingApproval,
            Some(_) if !shared.session.executions.open_of(&shared.id).is_empty() => {
                StateName::ToolExecuting
            }
            Some(_) => StateName::Responding,
        };
        answer::ConversationState {
            conversation_id: shared.id.clone(),
            state,
            message_id: self
                .running
                .as_ref()
                .map(|running| running.message_id.clone()),
            queue: self.queue.ids(),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
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

/// The error of a request that names a conversation which there is not.
pub fn not_found(id: &ConversationId) -> SessionError {
    SessionError {
        code: crate::protocol::SessionCode::ConversationNotFound,
        message: format!(
            "no conversation `{id}` in this session; it is made by its first chat:send"
        ),
    }
}

#[cfg(test)]
mod tests;

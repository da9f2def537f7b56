//! What a client changes in the queue of a conversation: `chat:queue`.

use std::num::NonZeroUsize;

use super::limit::over_quota;
use super::refusals::refused;
use super::state::{ActorState, QueuedSend, Running};
use super::view::attachments;
use super::{Admission, drop_queued, emit_state};
use crate::exchange::context::{Context, Steer};
use crate::message::{MessageId, Part, TrustLevel};
use crate::protocol::answer::{SendState, Sent};
use crate::protocol::command::ChatSend;
use crate::protocol::content::Content;
use crate::protocol::event::{ChatError, Event, Queued, SessionError, StateName};
use crate::protocol::queue::{QueueListed, WaitingSend};
use crate::protocol::{ChatCode, RequestId, SessionCode};
use crate::store::Waiting;

/// A change of the queue, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum QueueChange {
    /// It says this from now on, by the word of somebody who may have so much done without asking.
    Edit(Content, TrustLevel),
    /// It takes this place, from 1.
    Move(NonZeroUsize),
    Remove,
    /// It becomes part of what runs, or runs.
    Send,
}

/// Why nothing was changed.
enum Refused {
    /// No such send waits.
    Unknown(MessageId),
    /// It is a call, which says nothing.
    Call(MessageId),
    /// It has pictures or documents, which a text alone would drop.
    Attached(MessageId),
    /// It cannot be part of what runs.
    Busy(Box<ChatError>),
    /// As many of the user's conversations are at work as may be.
    Quota,
}

impl From<Refused> for Event {
    fn from(refused: Refused) -> Self {
        let message = match refused {
            Refused::Unknown(id) => return Self::SessionError(not_queued(&id)),
            Refused::Call(id) => format!(
                "chat:queue: `{id}` is a call, which says nothing; remove it and ask for another one"
            ),
            Refused::Attached(id) => format!(
                "chat:queue: field `content`: `{id}` has pictures or documents, which a text alone would drop; send parts, with all that it is to have"
            ),
            Refused::Busy(error) => return Self::ChatError(error),
            Refused::Quota => return Self::SessionError(over_quota()),
        };
        Self::SessionError(SessionError::new(SessionCode::InvalidPayload, message))
    }
}

/// Returns the error of a change of what does not wait.
pub(crate) fn not_queued(id: &MessageId) -> SessionError {
    let message = format!(
        "chat:queue: no send `{id}` waits in this conversation: it runs, is answered or was dropped; {{\"action\":\"list\"}} says what waits"
    );
    SessionError::new(SessionCode::NotQueued, message)
}

impl ActorState {
    /// Changes the queue where that is asked for, answers with what waits then, and emits what is other than before.
    pub(super) fn queue(
        &mut self,
        change: Option<(MessageId, QueueChange)>,
        reply_to: Option<&RequestId>,
        context: &Context,
    ) {
        let before: Vec<MessageId> = self.names().cloned().collect();
        let events = context.events();
        let after = match change.map(|(id, change)| self.change(id, change, context)) {
            None => None,
            Some(Ok(after)) => after,
            Some(Err(refused)) => return events.answer(reply_to, refused.into()),
        };
        let edited = match &after {
            Some(After::Edited(id)) => Some(id),
            _ => None,
        };
        events.answer(reply_to, Event::ChatQueueResult(self.listed(context)));
        for (at, send) in self.queue.iter().enumerate() {
            let id = &send.setup.message_id;
            if before.get(at) != Some(id) || edited == Some(id) {
                events.emit(Event::ChatQueued(Queued {
                    conversation_id: context.conversation.id.clone(),
                    message_id: id.clone(),
                    position: at + 1,
                    content: send.said(),
                }));
            }
        }
        match after {
            Some(After::Dropped(send)) => {
                drop_queued(context, &send);
                self.rest(context);
            }
            // It has no place of its own any more.
            Some(After::Steered(message_id)) => events.emit(Event::ChatQueued(Queued {
                conversation_id: context.conversation.id.clone(),
                message_id,
                position: 0,
                content: None,
            })),
            Some(After::Edited(_)) | None => {}
        }
    }

    /// Emits that the conversation is idle, where nothing runs and nothing waits after something was dropped. Of what ran
    /// its end says so.
    pub(super) fn rest(&self, context: &Context) {
        let is_busy = self.running.is_some() || self.compact.is_some();
        if !is_busy && self.waiting().next().is_none() {
            emit_state(context, None, StateName::Idle);
        }
    }

    /// Makes one change; returns what is left to be said of it.
    fn change(
        &mut self,
        id: MessageId,
        change: QueueChange,
        context: &Context,
    ) -> Result<Option<After>, Refused> {
        let Some(at) = self.names().position(|waiting| *waiting == id) else {
            return Err(Refused::Unknown(id));
        };
        match change {
            QueueChange::Edit(content, most) => {
                let Some(send) = self.queue.get_mut(at).filter(|it| it.execute.is_none()) else {
                    return Err(Refused::Call(id));
                };
                let has_more = |part: &Part| !matches!(part, Part::Text { .. });
                let is_text = matches!(content, Content::Text(_));
                if is_text && send.setup.content.iter().any(has_more) {
                    return Err(Refused::Attached(id));
                }
                send.setup.freedom.narrow(most);
                send.kept = edited(&send.kept, &content, send.setup.freedom.most());
                send.setup.content = content.into_parts();
                let journal = &context.session.journal;
                journal.edited(&context.conversation.id, &id, &send.kept);
                Ok(Some(After::Edited(id)))
            }
            QueueChange::Move(position) => {
                let to = (position.get() - 1).min(self.queue.len().saturating_sub(1));
                if let Some(send) = self.queue.remove(at) {
                    self.queue.insert(to, send);
                }
                self.keep_order(context);
                Ok(None)
            }
            QueueChange::Remove => {
                let send = self.queue.remove(at);
                if let Some(send) = &send {
                    // Before the answer says so.
                    context.session.journal.dropped(&send.waited);
                }
                Ok(send.map(|send| After::Dropped(Box::new(send))))
            }
            QueueChange::Send => self.send_now(at, id, context),
        }
    }

    /// Has a send be part of what runs, or run.
    fn send_now(
        &mut self,
        at: usize,
        id: MessageId,
        context: &Context,
    ) -> Result<Option<After>, Refused> {
        let busy = |message: &str| {
            Refused::Busy(refused(
                &context.conversation.id,
                ChatCode::ConversationBusy,
                message,
            ))
        };
        if self.running.is_none() && !self.may_work(context) {
            return Err(Refused::Quota);
        }
        let Some(running) = &mut self.running else {
            // The next round of the conversation takes it.
            if let Some(send) = self.queue.remove(at) {
                self.queue.push_front(send);
            }
            self.is_held = false;
            self.keep_order(context);
            return Ok(None);
        };
        let said = self.queue.get(at).filter(|it| it.is_plain());
        let Running {
            message_id,
            steer: Some(steer),
            freedom,
            steered,
            cause: None,
            ..
        } = running
        else {
            return Err(busy(
                "what runs is about to end and takes nothing in; the queue goes on right after it",
            ));
        };
        let Some(said) = said else {
            return Err(busy(
                "a call, or a send with a history or settings of its own, cannot be part of the exchange that runs; move it to position 1, or chat:cancel what runs",
            ));
        };
        let Ok(place) = steer.try_reserve() else {
            return Err(busy(
                "too many messages wait to be part of the exchange that runs",
            ));
        };
        freedom.narrow(said.setup.freedom.most());
        place.send(Steer {
            id: id.clone(),
            content: said.setup.content.clone(),
        });
        let sent = Sent {
            conversation_id: context.conversation.id.clone(),
            message_id: message_id.clone(),
            state: SendState::Steered,
            position: None,
            duplicate: false,
        };
        // As for one that was steered at once: where it comes too late, its answer names the exchange that takes it.
        *said.admission.lock() = Admission::Admitted(sent);
        steered.push_back(said.admission.clone());
        if steered.len() > super::QUEUED {
            steered.pop_front();
        }
        self.queue.remove(at);
        Ok(Some(After::Steered(id)))
    }

    /// Has what waits kept in this order.
    fn keep_order(&self, context: &Context) {
        let waiting = self.queue.iter().filter(|it| it.execute.is_none());
        let rows = waiting.map(|it| (&it.setup.message_id, it.kept.as_str()));
        context
            .session
            .journal
            .requeued(&context.conversation.id, rows);
    }

    fn listed(&self, context: &Context) -> QueueListed {
        let waiting = self.queue.iter().zip(1..);
        QueueListed {
            conversation_id: context.conversation.id.clone(),
            queue: waiting
                .map(|(send, position)| WaitingSend {
                    message_id: send.setup.message_id.clone(),
                    position,
                    content: send.said().unwrap_or_default(),
                    attachments: attachments(&send.setup.content),
                    tool_name: send.execute.as_ref().map(|it| it.call.name.clone()),
                })
                .collect(),
            held: self.is_held && !self.queue.is_empty(),
        }
    }

    fn names(&self) -> impl Iterator<Item = &MessageId> {
        self.queue.iter().map(|send| &send.setup.message_id)
    }
}

/// What is left to be said of a send that was changed.
enum After {
    /// It says something else.
    Edited(MessageId),
    /// It waits no longer.
    Dropped(Box<QueuedSend>),
    Steered(MessageId),
}

/// Returns a send as it is kept, with something else to say.
fn edited(kept: &str, content: &Content, most: TrustLevel) -> String {
    let waiting = Waiting::read(kept).map(|waiting| ChatSend {
        content: content.clone(),
        ..waiting.send
    });
    waiting.map_or_else(|| kept.to_owned(), |send| Waiting::json(&send, most))
}

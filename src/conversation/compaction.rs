//! `chat:compact`: a compaction between exchanges.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::learn::find_model;
use super::limit::{over_quota, time_limit};
use super::refusals::refused;
use super::state::{ActorState, Running};
use super::{CompactRequest, Mailbox, drive};
use crate::exchange::compaction::{Outcome, Wish, by_hand};
use crate::exchange::context::{Context, Setup};
use crate::protocol::ChatCode;
use crate::protocol::answer::{self, CompactState};
use crate::protocol::event::{CompactionTrigger, Event};
use crate::runtime::Stopwatch;

impl ActorState {
    /// Has the conversation made shorter next, or once the exchange that runs is over.
    pub(super) fn admit_compact(&mut self, wanted: CompactRequest, context: &Context) {
        if !self.may_work(context) {
            let over = Event::SessionError(over_quota());
            return context.events().answer(wanted.reply_to.as_ref(), over);
        }
        let is_busy = self.running.is_some() || self.next.is_some() || self.compact.is_some();
        let has_place = self.compact.is_none() && wanted.may_wait;
        let answer = match is_busy {
            // It answers itself.
            false => None,
            true if has_place => Some(Event::ChatCompactResult(answer::Compacting {
                conversation_id: context.conversation.id.clone(),
                state: CompactState::Queued,
            })),
            true => {
                return context.events().answer(
                    wanted.reply_to.as_ref(),
                    Event::ChatError(refused(
                        &context.conversation.id,
                        ChatCode::ConversationBusy,
                        "an exchange is running in this conversation, or it is to be made shorter already; `whenBusy: \"queue\"` waits for an exchange",
                    )),
                );
            }
        };
        let reply_to = match answer {
            Some(answer) => {
                context.events().answer(wanted.reply_to.as_ref(), answer);
                None
            }
            None => wanted.reply_to.clone(),
        };
        self.compact = Some(CompactRequest { reply_to, ..wanted });
    }
}

/// Makes what the model sees of a conversation shorter, as its last exchange would.
pub(super) async fn run(mailbox: &mut Mailbox, context: &Context, wanted: CompactRequest) {
    let CompactRequest {
        setup,
        mode,
        instructions,
        reply_to,
        ..
    } = wanted;
    let mut setup = Setup {
        message_id: setup.message_id.clone(),
        ..mailbox.state.last.clone().unwrap_or(setup)
    };
    let _running = context.services.exchanges.token();
    let cancel = CancellationToken::new();
    mailbox.state.running = Some(Running {
        message_id: setup.message_id.clone(),
        steer: None,
        freedom: setup.freedom.clone(),
        cancel: cancel.clone(),
        steered: VecDeque::new(),
        cause: None,
    });
    let (limit, _) = time_limit(&setup, context);
    let stopwatch = Stopwatch::start(limit);
    let answer = |state| {
        let answer = answer::Compacting {
            conversation_id: context.conversation.id.clone(),
            state,
        };
        let events = context.events();
        if reply_to.is_some() {
            events.answer(reply_to.as_ref(), Event::ChatCompactResult(answer));
        }
    };
    if setup.model.is_empty() {
        let find = find_model(context, &setup, &cancel);
        match drive(mailbox, context, &stopwatch, find).await {
            Some(Ok(model)) => setup.model = model,
            Some(Err(ended)) => {
                mailbox.state.running = None;
                let error = ended.error.map(|error| Event::ChatError(Box::new(error)));
                let nothing = || {
                    Event::ChatCompactResult(answer::Compacting {
                        conversation_id: context.conversation.id.clone(),
                        state: CompactState::NothingToDo,
                    })
                };
                let event = error.unwrap_or_else(nothing);
                return context.events().answer(reply_to.as_ref(), event);
            }
            None => {
                mailbox.state.running = None;
                return answer(CompactState::NothingToDo);
            }
        }
    }
    let has_begun = AtomicBool::new(false);
    let on_start = || {
        has_begun.store(true, Ordering::Relaxed);
        answer(CompactState::Started);
    };
    let wish = Wish {
        trigger: CompactionTrigger::Manual,
        mode,
        instructions: &instructions,
        on_start: Some(&on_start),
    };
    let work = by_hand(&setup, context, &cancel, wish);
    let outcome = drive(mailbox, context, &stopwatch, work).await;
    mailbox.state.running = None;
    let is_answered = has_begun.load(Ordering::Relaxed);
    match outcome {
        _ if is_answered => {}
        Some(Outcome::Nothing) | None => answer(CompactState::NothingToDo),
        Some(Outcome::Refused) => answer(CompactState::Refused),
        Some(Outcome::Done | Outcome::Failed | Outcome::Cancelled) => {}
    }
}

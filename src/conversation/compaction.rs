//! `chat:compact`: a compaction between exchanges.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::learn::find_model;
use super::limit::time_limit;
use super::state::Running;
use super::{CompactRequest, Mailbox, drive};
use crate::exchange::compaction::{Outcome, Wish, by_hand};
use crate::exchange::context::{Context, Setup};
use crate::protocol::answer::{self, CompactState};
use crate::protocol::event::{CompactionTrigger, Event};
use crate::runtime::Stopwatch;

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
    if matches!(outcome, Some(Outcome::Nothing) | None) && !is_answered {
        answer(CompactState::NothingToDo);
    }
}

//! A conversation that goes on beyond its model's window: the model sees less of it, and nothing is lost.
//!
//! What is large and old is left out first (`prune`). Where that is not enough, a model sums up what comes before the last
//! messages (`cut`, `summary`), or code does (`facts`) where no model can. Each attempt has to show that it made
//! the next request much smaller, or it is dropped. What the model sees then is [`view::view`] of messages that stay as they are.

mod ask;
mod cut;
mod facts;
mod limits;
mod native;
mod prune;
mod report;
mod sum_up;
mod summary;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(super) mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Map;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::budget::{Shares, estimate};
use super::context::{Context, Setup};
use super::hooks::ask;
use super::ledger::{Cost, Ledger};
use super::offer::ToolOffer;
use super::window::{shares, used, wanted};
use crate::config::HookPoint;
use crate::hooks::notice;
use crate::message::{CompactionId, Message, MessageId, Notice, Severity, Usage};
use crate::protocol::command::CompactMode;
use crate::protocol::event::{
    Compaction, CompactionFailure, CompactionKind, CompactionPhase, CompactionResult,
    CompactionTrigger, Event,
};
use crate::protocol::word;
use crate::telemetry::metrics;
use crate::units::millis;

use cut::Cut;
pub(crate) use limits::Breaker;
use report::{count, shown};
pub(crate) use view::Compacted;

/// Hundredths of the request before that one after a compaction may have at most.
const SHRUNK: u64 = 80;

/// Why and how a conversation is made shorter.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub trigger: CompactionTrigger,
    /// Only this way; `None` for what is enough.
    pub mode: Option<CompactMode>,
    /// What the summary is to mind besides.
    pub instructions: &'a str,
    /// Called when it begins.
    pub on_start: Option<&'a (dyn Fn() + Sync)>,
}

/// What a compaction came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// There is nothing to leave out; nobody was told of anything.
    Nothing,
    /// A hook said no, which was told.
    Refused,
    Failed,
    Cancelled,
}

pub(crate) struct Compactor<'a, 'l> {
    pub setup: &'a Setup,
    pub context: &'a Context,
    pub ledger: &'a mut Ledger<'l>,
    pub cancel: &'a CancellationToken,
    pub offer: &'a ToolOffer,
    /// The exchange that it belongs to.
    pub message_id: Option<&'a MessageId>,
}

/// One compaction on its way.
struct Attempt {
    id: CompactionId,
    began: Instant,
    trigger: CompactionTrigger,
    shares: Shares,
    window: Option<u64>,
    messages: Arc<Vec<Message>>,
    /// What the model did not see before.
    before: Compacted,
    before_tokens: u64,
    usage: Option<Usage>,
    cost: Cost,
}

impl Attempt {
    /// Returns what a model of the conversation's provider saw of all before the cut.
    fn seen_before(&self, cut: Cut, setup: &Setup, model: &str) -> Vec<Message> {
        let head = self.messages.get(..cut.base).unwrap_or_default();
        view::view(head, &self.before.shown_to(&setup.provider_id, model))
    }
}

impl Compactor<'_, '_> {
    /// Makes what the model sees of the conversation shorter, and tells of it.
    pub(crate) async fn compact(&mut self, wish: Wish<'_>) -> Outcome {
        let (setup, history) = (self.setup, &self.context.conversation.history);
        history.show_to(&setup.provider_id, &setup.model);
        let before_tokens = used(self.context, self.offer);
        let known = shares(self.setup, self.context, self.offer);
        // By hand a conversation can be made shorter whatever its window is: as if it were full.
        let by_hand = || {
            let window = before_tokens.saturating_mul(5) / 4;
            let head = self.offer.tokens;
            Shares::new(window, head, wanted(self.setup, self.context, None))
        };
        let shares = known.unwrap_or_else(by_hand);
        if known.is_some() && self.is_hopeless(&shares) {
            return Outcome::Nothing;
        }
        let (messages, before) = history.compacted();
        let mut attempt = Attempt {
            id: self.context.session.ids.compaction(),
            began: Instant::now(),
            trigger: wish.trigger,
            shares,
            window: known.map(|shares| shares.window),
            messages,
            before: before.unwrap_or_default(),
            before_tokens,
            usage: None,
            cost: Cost::default(),
        };
        if wish.trigger != CompactionTrigger::Manual && self.is_paused(&attempt) {
            return Outcome::Failed;
        }
        let notes = match self.ask_hooks(&wish).await {
            Ok(notes) => notes,
            Err(outcome) => return outcome,
        };
        let instructions = [wish.instructions, &notes].join("\n");
        let wish = Wish {
            instructions: instructions.trim(),
            ..wish
        };
        let places = self.places(&attempt);
        if let Some(outcome) = self.prune(&attempt, &places, wish) {
            return outcome;
        }
        let outcome = self.sum_up(&mut attempt, &places, wish).await;
        let breaker = &mut self.context.conversation.breaker.lock();
        match outcome {
            Outcome::Done => breaker.done(),
            Outcome::Failed => breaker.failed(),
            Outcome::Nothing | Outcome::Refused | Outcome::Cancelled => {}
        }
        outcome
    }

    /// Asks whether the conversation may be compacted now; returns what hooks have to say for the summary. Fails with what it
    /// comes to where it may not be: their no counts until the user says something, unless the user wants it.
    async fn ask_hooks(&self, wish: &Wish<'_>) -> Result<String, Outcome> {
        let breaker = &self.context.conversation.breaker;
        if wish.trigger != CompactionTrigger::Manual && breaker.lock().is_held() {
            return Err(Outcome::Nothing);
        }
        let trigger = word(&wish.trigger);
        let more = || Map::from_iter([("trigger".to_owned(), trigger.into())]);
        let point = (HookPoint::Compact, None);
        let said = ask(self.context, self.setup, point, more, self.cancel).await;
        let said = said.ok_or(Outcome::Cancelled)?;
        if let Some(refused) = said.refused {
            breaker.lock().hold();
            let message = format!("the conversation is not compacted: {refused}");
            let notice = notice(Severity::Warning, "hook_refused", message);
            self.emit(Event::SessionNotice(notice));
            return Err(Outcome::Refused);
        }
        Ok(said.notes.join("\n"))
    }

    /// Returns whether the system prompt and the tools alone take too much, and tells of it once.
    fn is_hopeless(&self, shares: &Shares) -> bool {
        let is_hopeless = shares.is_head_too_large();
        if is_hopeless
            && self
                .context
                .conversation
                .breaker
                .lock()
                .is_first_time_small()
        {
            self.emit(Event::SessionNotice(Notice {
                severity: Severity::Warning,
                code: "context_too_small".to_owned(),
                message: format!(
                    "the system prompt and the tools take some {} of the {} tokens that model `{}` has for a conversation: \
                     making this conversation shorter would not help. Offer fewer tools (a workflow's `permissions`), or choose a model with a larger window",
                    shares.head, shares.window, self.setup.model
                ),
            }));
        }
        is_hopeless
    }

    /// Returns whether no more is to be tried until the user says something, and tells of it once.
    fn is_paused(&self, attempt: &Attempt) -> bool {
        let mut breaker = self.context.conversation.breaker.lock();
        let is_first = breaker.is_first_pause();
        let is_paused = breaker.is_open();
        drop(breaker);
        if is_first {
            self.tell_start(attempt, CompactionKind::Summary);
            self.fail(
                attempt,
                CompactionKind::Summary,
                CompactionFailure::Thrashing,
            );
        }
        is_paused
    }

    /// Returns the messages of which something could be left out.
    fn places(&self, attempt: &Attempt) -> BTreeSet<usize> {
        let keep_tools = &self.context.services.config().compaction.keep_tools;
        let Attempt {
            messages,
            before,
            shares,
            ..
        } = attempt;
        let places = prune::places(messages, before.base, &before.pruned, shares, keep_tools);
        let freed = prune::freed(messages, before.base, &before.pruned, &places);
        match prune::is_worth_it(freed, shares) {
            true => places,
            false => before.pruned.clone(),
        }
    }

    /// Leaves out what is large and old, where that is enough or all that is wanted. Returns `None` where more has to be
    /// done.
    fn prune(
        &self,
        attempt: &Attempt,
        places: &BTreeSet<usize>,
        wish: Wish<'_>,
    ) -> Option<Outcome> {
        let mode = wish.mode;
        if mode == Some(CompactMode::Summary) {
            return None;
        }
        let only = mode == Some(CompactMode::Prune);
        if *places == attempt.before.pruned {
            return only.then_some(Outcome::Nothing);
        }
        // The summary that there may be is still that of the compaction that made it.
        let candidate = Compacted {
            pruned: places.clone(),
            made_at: attempt.messages.len(),
            ..attempt.before.clone()
        };
        let tokens = self.tokens(attempt, &candidate);
        if tokens > attempt.shares.target && !only {
            return None;
        }
        self.begin(attempt, CompactionKind::Prune, wish);
        let is_taken = self.take(attempt, CompactionKind::Prune, candidate, tokens);
        if !is_taken {
            self.fail(attempt, CompactionKind::Prune, CompactionFailure::NoShrink);
        }
        Some(if is_taken {
            Outcome::Done
        } else {
            Outcome::Failed
        })
    }

    /// Has the model see that much, where it is enough less; else says why not.
    fn try_out(
        &self,
        attempt: &Attempt,
        kind: CompactionKind,
        candidate: Compacted,
    ) -> Result<(), String> {
        let tokens = self.tokens(attempt, &candidate);
        if !is_smaller(attempt, tokens) {
            return Err(format!(
                "it would leave {tokens} of {} tokens",
                attempt.before_tokens
            ));
        }
        match self.take(attempt, kind, candidate, tokens) {
            true => Ok(()),
            false => Err("it would not be a valid history".to_owned()),
        }
    }

    fn candidate(
        &self,
        attempt: &Attempt,
        cut: Cut,
        places: &BTreeSet<usize>,
        text: Option<&str>,
    ) -> Compacted {
        let at = (cut.base, cut.said);
        let text = summary::message(&attempt.messages, at, text, &attempt.shares);
        let text = self.context.services.redactor.redact(&text).into_owned();
        Compacted {
            id: attempt.id.to_string(),
            summary: Some(text),
            native: None,
            base: cut.base,
            said: cut.said,
            pruned: places.range(cut.base..).copied().collect(),
            made_at: attempt.messages.len(),
        }
    }

    /// Returns the tokens of the next request where the model sees that much.
    fn tokens(&self, attempt: &Attempt, candidate: &Compacted) -> u64 {
        let (provider, model) = (&self.setup.provider_id, &self.setup.model);
        let seen = view::view(&attempt.messages, &candidate.shown_to(provider, model));
        let mut gauge = self.context.conversation.gauge.lock().clone();
        gauge.forget();
        gauge.used(self.offer.tokens.saturating_add(estimate(&seen)))
    }

    /// Returns the tokens of what has to be sent in any case.
    fn open_tokens(&self, attempt: &Attempt, hard: Cut) -> u64 {
        self.tokens(
            attempt,
            &Compacted {
                base: hard.base,
                said: hard.said,
                ..Compacted::default()
            },
        )
    }

    /// Has the model see that much from now on; returns whether it does.
    fn take(
        &self,
        attempt: &Attempt,
        kind: CompactionKind,
        candidate: Compacted,
        tokens: u64,
    ) -> bool {
        let conversation = &self.context.conversation;
        let result = CompactionResult {
            after_tokens: tokens,
            messages_replaced: candidate.base,
            messages_kept: attempt.messages.len() - candidate.base,
            duration_ms: millis(attempt.began.elapsed()),
            summary: match kind {
                CompactionKind::Prune => None,
                _ => candidate.summary.as_ref().map(|text| shown(text)),
            },
        };
        if !conversation.history.compact(candidate) {
            return false;
        }
        conversation.gauge.lock().forget();
        self.emit(Event::ChatCompaction(Box::new(Compaction {
            result: Some(result),
            ..self.event(attempt, CompactionPhase::Done, kind)
        })));
        count(attempt, kind, CompactionPhase::Done);
        metrics::compacted_to(tokens, attempt.before_tokens);
        tracing::info!(
            kind = word(&kind),
            trigger = word(&attempt.trigger),
            before = attempt.before_tokens,
            after = tokens,
            "conversation compacted"
        );
        true
    }
}

/// Makes a conversation shorter between two exchanges.
pub(crate) async fn by_hand(
    setup: &Setup,
    context: &Context,
    cancel: &CancellationToken,
    wish: Wish<'_>,
) -> Outcome {
    let offer = ToolOffer::now(setup, context, None);
    let mut compactor = Compactor {
        setup,
        context,
        ledger: &mut Ledger::new(context, setup),
        cancel,
        offer: &offer,
        message_id: None,
    };
    compactor.compact(wish).await
}

/// Returns whether a compaction came to enough.
fn is_smaller(attempt: &Attempt, tokens: u64) -> bool {
    let most = attempt.before_tokens / 100 * SHRUNK;
    tokens <= most && tokens <= attempt.shares.most()
}

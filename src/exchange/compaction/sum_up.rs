//! The second step: a summary takes the place of all but the last messages.

use std::collections::BTreeSet;

use super::ask::NoSummary;
use super::cut::{self, Cut};
use super::{Attempt, Compactor, Outcome, Wish, summary};
use crate::exchange::budget::estimate;
use crate::protocol::event::{
    CompactionFailure, CompactionKind, CompactionTrigger, Event, State, StateName,
};

/// Hundredths of the window that messages may have which stay as they are, and that are kept for what follows.
const TAIL_SHARE: u64 = 20;
const FREE_SHARE: u64 = 10;

impl Compactor<'_, '_> {
    /// Puts a summary in the place of all but the last messages: by the vendor where that is wanted, by a model, else by code.
    pub(super) async fn sum_up(
        &mut self,
        attempt: &mut Attempt,
        places: &BTreeSet<usize>,
        wish: Wish<'_>,
    ) -> Outcome {
        let (from, shares) = (attempt.before.base, attempt.shares);
        let tail = shares.room().saturating_sub(shares.share(FREE_SHARE));
        let tail = tail.min(shares.share(TAIL_SHARE));
        let soft = cut::cut(&attempt.messages, from, places, tail);
        let hard = cut::hardest(&attempt.messages);
        let is_manual = wish.trigger == CompactionTrigger::Manual;
        let kind = CompactionKind::Summary;
        if hard.base <= from {
            if is_manual {
                return Outcome::Nothing;
            }
            self.begin(attempt, kind, wish);
            self.fail(attempt, kind, CompactionFailure::TooSmall);
            return Outcome::Failed;
        }
        if is_manual && self.is_short(attempt, hard) {
            return Outcome::Nothing;
        }
        let cuts = [soft, hard].into_iter().filter(|cut| cut.base > from);
        let cuts: Vec<Cut> = cuts.collect();
        let native = self.native_instructions(wish);
        let begins = native.as_ref().map_or(kind, |_| CompactionKind::Native);
        self.begin(attempt, begins, wish);
        self.emit(Event::ChatState(State::new(
            &self.context.conversation.id,
            self.message_id,
            StateName::Compacting,
        )));
        if let (Some(instructions), Some(first)) = (native, cuts.first().copied()) {
            let work = self.compact_by_vendor(attempt, first, places, &instructions);
            if let Some(outcome) = work.await {
                return outcome;
            }
        }
        if is_manual || !self.context.conversation.breaker.lock().is_without_model() {
            let work = self.sum_up_by_model(attempt, &cuts, places, wish);
            if let Some(outcome) = work.await {
                return outcome;
            }
        }
        let kind = CompactionKind::Mechanical;
        for cut in cuts {
            let candidate = self.candidate(attempt, cut, places, None);
            if self.try_out(attempt, kind, candidate).is_ok() {
                return Outcome::Done;
            }
        }
        let failure = match self.open_tokens(attempt, hard) > shares.most() {
            true => CompactionFailure::TooSmall,
            false => CompactionFailure::NoShrink,
        };
        self.fail(attempt, kind, failure);
        Outcome::Failed
    }

    /// Returns whether what would be summed up is hardly more than a summary of it.
    fn is_short(&self, attempt: &Attempt, hard: Cut) -> bool {
        let cut = attempt.messages.get(attempt.before.base..hard.base);
        estimate(cut.unwrap_or_default()) < 2 * summary::most_tokens(&attempt.shares)
    }

    /// Has a model sum up, once more with a harder cut where that comes to nothing. Returns `None` where no summary was taken, and
    /// code is next.
    async fn sum_up_by_model(
        &mut self,
        attempt: &mut Attempt,
        cuts: &[Cut],
        places: &BTreeSet<usize>,
        wish: Wish<'_>,
    ) -> Option<Outcome> {
        let kind = CompactionKind::Summary;
        let breaker = &self.context.conversation.breaker;
        let instructions = self.instructions(wish);
        let mut has_answered = false;
        for cut in cuts {
            let problem = match self.summary(attempt, *cut, &instructions).await {
                Ok(text) => {
                    let candidate = self.candidate(attempt, *cut, places, Some(&text));
                    match self.try_out(attempt, kind, candidate) {
                        Ok(()) => {
                            breaker.lock().accepted();
                            return Some(Outcome::Done);
                        }
                        Err(problem) => problem,
                    }
                }
                Err(NoSummary::Refused(problem)) => problem,
                Err(NoSummary::Failed(problem)) => {
                    tracing::warn!(problem, "there is no summary");
                    continue;
                }
                Err(NoSummary::Cancelled) => {
                    self.fail(attempt, kind, CompactionFailure::Cancelled);
                    return Some(Outcome::Cancelled);
                }
            };
            has_answered = true;
            tracing::warn!(problem, "a summary is not taken");
        }
        // Neither a provider that fails nor a short conversation that somebody wants shorter says anything of the model.
        if has_answered && wish.trigger != CompactionTrigger::Manual {
            breaker.lock().refused();
        }
        None
    }
}

//! The vendor's own compaction in the place of a summary, where the configuration has it asked for.

use std::collections::BTreeSet;

use super::ask::{NoSummary, request};
use super::cut::Cut;
use super::view::Native;
use super::{Attempt, Compactor, Outcome, Wish, summary};
use crate::config::NativeCompaction;
use crate::exchange::budget::estimate;
use crate::exchange::compaction::Compacted;
use crate::protocol::event::{CompactionFailure, CompactionKind, CompactionTrigger};
use crate::provider::{Request, compaction};

/// How many times as long as a summary a vendor's own compaction may be: how it is written is the vendor's to say.
const TIMES: u64 = 2;

/// What a vendor is told that its compaction may take, in tokens, where it is told anything.
const NATIVE_TOKENS: u64 = 8_192;

impl Compactor<'_, '_> {
    /// Returns what a summary is to mind besides.
    pub(super) fn instructions(&self, wish: Wish<'_>) -> String {
        let config = &self.context.services.config().compaction;
        [config.instructions.as_str(), wish.instructions].join("\n")
    }

    /// Returns what the vendor is told about its compaction, empty for nothing; `None` where none is to be asked for.
    pub(super) fn native_instructions(&self, wish: Wish<'_>) -> Option<String> {
        let wanted = self.context.services.config().compaction.native;
        let vendor = self.setup.provider.native_compaction();
        let is_manual = wish.trigger == CompactionTrigger::Manual;
        let breaker = &self.context.conversation.breaker;
        if wanted != vendor || (!is_manual && breaker.lock().is_without_native()) {
            return None;
        }
        let instructions = self.instructions(wish);
        match vendor {
            NativeCompaction::Off => None,
            _ if instructions.trim().is_empty() => Some(String::new()),
            // They take the place of the vendor's own words, and so have to say all.
            NativeCompaction::Anthropic => Some(summary::prompt(NATIVE_TOKENS, &instructions)),
            // It takes none.
            NativeCompaction::Openai => None,
        }
    }

    /// Has the vendor compact all before the cut. Returns `None` where nothing came of it, and a summary is next.
    pub(super) async fn compact_by_vendor(
        &mut self,
        attempt: &mut Attempt,
        cut: Cut,
        places: &BTreeSet<usize>,
        instructions: &str,
    ) -> Option<Outcome> {
        let kind = CompactionKind::Native;
        let breaker = &self.context.conversation.breaker;
        let problem = match self.ask_vendor(attempt, cut, instructions).await {
            Ok(made) => {
                let candidate = self.native_candidate(attempt, cut, places, made);
                match self.try_out(attempt, kind, candidate) {
                    Ok(()) => {
                        breaker.lock().native(true);
                        return Some(Outcome::Done);
                    }
                    Err(problem) => problem,
                }
            }
            Err(NoSummary::Cancelled) => {
                self.fail(attempt, kind, CompactionFailure::Cancelled);
                return Some(Outcome::Cancelled);
            }
            Err(NoSummary::Failed(problem) | NoSummary::Refused(problem)) => problem,
        };
        breaker.lock().native(false);
        tracing::warn!(problem, "the vendor's own compaction is not taken");
        None
    }

    /// Does without the vendor's own compaction that there is: it was refused.
    pub(super) fn drop_native(&self, attempt: &mut Attempt) {
        let conversation = &self.context.conversation;
        if conversation.history.drop_native() {
            conversation.gauge.lock().forget();
            attempt.before.native = None;
        }
    }

    async fn ask_vendor(
        &mut self,
        attempt: &mut Attempt,
        cut: Cut,
        instructions: &str,
    ) -> Result<compaction::NativeCompaction, NoSummary> {
        let (setup, offer) = (self.setup, self.offer);
        let messages = attempt.seen_before(cut, setup, &setup.model);
        let most_tokens = summary::most_tokens(&attempt.shares).saturating_mul(TIMES);
        let sent = attempt.shares.head.saturating_add(estimate(&messages));
        let left = attempt.shares.window.saturating_sub(sent);
        let request = Request {
            compact: Some(instructions),
            ..request(setup, offer, &messages, (most_tokens, left))
        };
        let answer = self.ask(attempt, request, most_tokens).await?;
        let made = compaction::read(answer.end);
        made.map_err(|problem| NoSummary::Refused(problem.to_owned()))
    }

    /// Returns what the model sees of it then, and others in its place: what it says where that can be read, and what code knows.
    fn native_candidate(
        &self,
        attempt: &Attempt,
        cut: Cut,
        places: &BTreeSet<usize>,
        made: compaction::NativeCompaction,
    ) -> Compacted {
        let facts = self.candidate(attempt, cut, places, None).summary;
        let text = made.text.unwrap_or_default();
        let redacted = self.context.services.redactor.redact(&text).into_owned();
        let native = Native {
            reply: made.reply,
            text: redacted,
            facts: facts.unwrap_or_default(),
        };
        Compacted {
            native: Some(native),
            ..self.candidate(attempt, cut, places, Some(&text))
        }
    }
}

//! What clients, the log and the figures are told of a compaction.

use super::{Attempt, Compactor, Wish, summary};
use crate::protocol::event::{
    Compaction, CompactionFailure, CompactionKind, CompactionPhase, Event,
};
use crate::protocol::word;
use crate::telemetry::metrics;

impl Compactor<'_, '_> {
    pub(super) fn fail(&self, attempt: &Attempt, kind: CompactionKind, why: CompactionFailure) {
        self.emit(Event::ChatCompaction(Box::new(Compaction {
            reason: Some(why),
            ..self.event(attempt, CompactionPhase::Failed, kind)
        })));
        count(attempt, kind, CompactionPhase::Failed);
        tracing::warn!(
            kind = word(&kind),
            reason = word(&why),
            "conversation not compacted"
        );
    }

    pub(super) fn begin(&self, attempt: &Attempt, kind: CompactionKind, wish: Wish<'_>) {
        if let Some(on_start) = wish.on_start {
            on_start();
        }
        self.tell_start(attempt, kind);
    }

    pub(super) fn tell_start(&self, attempt: &Attempt, kind: CompactionKind) {
        let event = self.event(attempt, CompactionPhase::Started, kind);
        self.emit(Event::ChatCompaction(Box::new(event)));
    }

    pub(super) fn event(
        &self,
        attempt: &Attempt,
        phase: CompactionPhase,
        kind: CompactionKind,
    ) -> Compaction {
        Compaction {
            conversation_id: self.context.conversation.id.clone(),
            message_id: self.message_id.cloned(),
            compaction_id: attempt.id.clone(),
            phase,
            kind,
            trigger: attempt.trigger,
            before_tokens: attempt.before_tokens,
            window: attempt.window,
            usage: attempt.usage.map(Into::into),
            cost_usd: attempt.cost.whole(),
            reason: None,
            result: None,
        }
    }

    pub(super) fn emit(&self, event: Event) {
        self.context.events().emit(event);
    }
}

/// Returns a summary as an event has it.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(summary::MAX_BYTES);
    text.get(..end).unwrap_or_default().to_owned()
}

pub(super) fn count(attempt: &Attempt, kind: CompactionKind, phase: CompactionPhase) {
    metrics::compacted(&word(&kind), &word(&attempt.trigger), &word(&phase));
}

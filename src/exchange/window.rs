//! Whether the next request fits the model's window, which is looked at before each one, and what is done where it does not.

use std::num::NonZeroU32;

use super::budget::{Gauge, Shares, Wanted};
use super::compaction::{Compactor, Outcome, Wish};
use super::context::{Context, Setup};
use super::offer::ToolOffer;
use super::turn::TurnRequest;
use super::{Exchange, Leave};
use crate::protocol::event::{CompactionTrigger, StopReason};

impl Exchange<'_> {
    /// Makes room for a request where the conversation fills too much of the window. Returns whether the model may go on;
    /// else it has to answer now, with nothing to call.
    pub(super) async fn make_room(&mut self, request: &TurnRequest) -> Result<bool, Leave> {
        let model = self.setup.model_key();
        let conversation = &self.context.conversation;
        let is_other_model = conversation.gauge.lock().is_other_model(&model);
        let Some(shares) = shares(self.setup, self.context, &request.offer) else {
            return Ok(true);
        };
        if used(self.context, &request.offer) < shares.trigger {
            return Ok(true);
        }
        let trigger = match is_other_model {
            true => CompactionTrigger::ModelChange,
            false => CompactionTrigger::Auto,
        };
        self.compact(request, trigger).await?;
        Ok(!shares.is_spent(used(self.context, &request.offer)))
    }

    /// Makes room after the provider said that a request does not fit, and maybe named its window, and learns from that. Returns
    /// whether the request may be sent again.
    pub(super) async fn recover_from_overflow(
        &mut self,
        request: &TurnRequest,
        named: Option<NonZeroU32>,
    ) -> Result<bool, Leave> {
        // Servers refuse what is sent and asked for together.
        let asked_for = self.max_tokens(request).map_or(0, u64::from);
        let tokens = used(self.context, &request.offer).saturating_add(asked_for);
        let model = self.setup.model_key();
        let gauge = &self.context.conversation.gauge;
        gauge
            .lock()
            .overflowed(&model, tokens, named.map(|window| u64::from(window.get())));
        self.compact(request, CompactionTrigger::Overflow).await
    }

    /// Does without the vendor's own compaction after the provider refused it; returns whether there was one.
    pub(super) fn drop_native_compaction(&self) -> bool {
        let conversation = &self.context.conversation;
        let is_dropped = conversation.history.drop_native();
        if is_dropped {
            conversation.gauge.lock().forget();
            tracing::warn!("the vendor's own compaction was refused; a summary takes its place");
        }
        is_dropped
    }

    /// Returns whether the next request holds less.
    async fn compact(
        &mut self,
        request: &TurnRequest,
        trigger: CompactionTrigger,
    ) -> Result<bool, Leave> {
        if self.setup.compact_at.is_none() {
            return Ok(false);
        }
        let mut compactor = Compactor {
            setup: self.setup,
            context: self.context,
            ledger: &mut self.ledger,
            cancel: self.cancel,
            offer: &request.offer,
            message_id: Some(&self.setup.message_id),
        };
        let wish = Wish {
            trigger,
            mode: None,
            instructions: "",
            on_start: None,
        };
        match compactor.compact(wish).await {
            Outcome::Done => Ok(true),
            Outcome::Nothing | Outcome::Refused | Outcome::Failed => Ok(false),
            Outcome::Cancelled => Err(Leave::Stop(StopReason::Cancelled)),
        }
    }
}

/// Returns what the next request of a conversation holds, in tokens.
pub(super) fn used(context: &Context, offer: &ToolOffer) -> u64 {
    let conversation = &context.conversation;
    let estimated = offer.tokens.saturating_add(conversation.history.tokens());
    conversation.gauge.lock().used(estimated)
}

/// Returns the parts of the model's window; `None` where nobody knows it.
pub(super) fn shares(setup: &Setup, context: &Context, offer: &ToolOffer) -> Option<Shares> {
    let model = setup.provider.model(&setup.model);
    let gauge = context.conversation.gauge.lock();
    let window = gauge.window(&setup.model_key(), model.context_window)?;
    let head = without_count(&gauge, offer.tokens);
    drop(gauge);
    let wanted = wanted(setup, context, model.max_output_tokens);
    Some(Shares::new(window, head, wanted))
}

/// Returns so many estimated tokens as the provider would count them, whatever it counted last.
fn without_count(gauge: &Gauge, estimated: u64) -> u64 {
    let mut gauge = gauge.clone();
    gauge.forget();
    gauge.used(estimated)
}

pub(super) fn wanted(setup: &Setup, context: &Context, output: Option<u64>) -> Wanted {
    let config = &context.services.config().compaction;
    let output = setup.max_tokens.map(u64::from).or(output);
    Wanted {
        reserve: setup.context_reserve,
        output: output.unwrap_or(setup.context_reserve),
        at: setup.compact_at.unwrap_or_else(|| config.at.percent()),
        target: config.target.percent(),
    }
}

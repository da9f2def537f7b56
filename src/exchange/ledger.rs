//! The one place where tokens and cost are counted: for the exchange, its conversation, its session and the figures.

use parking_lot::Mutex;

use super::budget::Budget;
use super::context::Context;
use super::cost::Cost;
use super::setup::Setup;
use crate::message::{Model, Usage};
use crate::telemetry::metrics;

/// Tokens and what they cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Sums over the turns.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

/// What the exchanges of a conversation or a session have used.
#[derive(Debug, Default)]
pub struct Totals(Mutex<Spent>);

impl Totals {
    /// Returns what was used so far.
    pub fn spent(&self) -> Spent {
        *self.0.lock()
    }

    /// Writes what was used to the log, where something was.
    pub fn log(&self, whose: &'static str) {
        let Spent { usage, cost } = self.spent();
        if usage != Usage::default() {
            let (input, output) = (usage.input, usage.output);
            tracing::info!(
                whose,
                input,
                output,
                cost_usd = cost.dollars(),
                "used in all"
            );
        }
    }
}

/// The ledger of one exchange.
pub struct Ledger<'a> {
    context: &'a Context,
    provider_id: &'a str,
    spent: Spent,
    /// How full the model's context is.
    pub gauge: Budget,
}

impl<'a> Ledger<'a> {
    /// Begins with what the conversation's messages come to, as far as a provider counted them.
    pub fn new(context: &'a Context, setup: &'a Setup) -> Self {
        let window = setup.provider.model(&setup.model).context_window;
        let conversation = &context.conversation;
        let known = conversation
            .context_tokens
            .tokens(&conversation.history.snapshot());
        Self {
            context,
            provider_id: &setup.provider_id,
            spent: Spent::default(),
            gauge: Budget::new(window, setup.context_reserve, known.unwrap_or(0)),
        }
    }

    /// Adds a turn that ended well; `estimate` is what is in the model's context where the provider does not say.
    pub fn add_turn(&mut self, usage: &Usage, model: &Model, estimate: impl FnOnce() -> u64) {
        self.gauge.learn_window(model.context_window);
        self.gauge.counted(usage, estimate);
        self.add(|spent| {
            spent.usage = spent.usage.plus(*usage);
            spent.cost.add(usage, model.pricing.as_ref());
        });
        for (kind, count) in [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
        ] {
            if let Some(count) = count {
                metrics::tokens(self.provider_id, kind, count);
            }
        }
    }

    /// Adds a turn that broke off: it is billed, and nobody says how much.
    pub fn add_broken_turn(&mut self) {
        self.add(|spent| spent.cost.add_unknown());
    }

    /// Keeps the count for the next exchange: that of all messages, the reply recorded last included.
    pub fn keep_context_tokens(&self) {
        let conversation = &self.context.conversation;
        let messages = conversation.history.snapshot().len();
        conversation
            .context_tokens
            .keep(self.gauge.used(), messages);
    }

    /// Returns what the exchange has used so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    fn add(&mut self, change: impl Fn(&mut Spent)) {
        change(&mut self.spent);
        change(&mut self.context.conversation.totals.0.lock());
        change(&mut self.context.session.totals.0.lock());
    }
}

//! The one place where tokens and cost are counted: for the exchange, its session and the figures.

use parking_lot::Mutex;

use super::context::{Context, Setup};
use crate::message::{Model, Pricing, Usage};
use crate::provider::models;
use crate::telemetry::metrics;

/// What a dollar is counted in: a price of a tenth of a cent for a million tokens is one such part a token.
const PARTS: f64 = 1e9;

/// The sum so far. It is a price only while every turn's part is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    dollars: Option<f64>,
    incomplete: bool,
}

impl Cost {
    /// Adds a turn. One without figures, or of a model without prices, makes the sum unknown.
    pub(crate) fn add(&mut self, usage: &Usage, pricing: Option<&Pricing>) {
        match (usage.input, usage.output, pricing) {
            (Some(_), Some(_), Some(pricing)) => {
                let dollars = models::cost(usage, pricing);
                self.dollars = Some(self.dollars.unwrap_or(0.0) + dollars);
            }
            _ => self.incomplete = true,
        }
    }

    pub(crate) fn add_unknown(&mut self) {
        self.incomplete = true;
    }

    /// US dollars, to the billionth; `None` where nothing was priced, or not all of it.
    ///
    /// A sum of binary fractions has digits that no price has (`0.00030160000000000004`): they end here.
    pub(crate) fn dollars(&self) -> Option<f64> {
        let dollars = self.dollars.filter(|_| !self.incomplete);
        dollars.map(|dollars| (dollars * PARTS).round() / PARTS)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub usage: Usage,
    pub cost: Cost,
}

impl Spent {
    fn add(&mut self, usage: &Usage, model: &Model) {
        self.usage = self.usage.plus(*usage);
        self.cost.add(usage, model.pricing.as_ref());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Totals(Mutex<Spent>);

impl Totals {
    /// Adds a request that is no turn of an exchange, for a title.
    pub(crate) fn add_aside(&self, provider_id: &str, usage: &Usage, model: &Model) {
        self.0.lock().add(usage, model);
        count(provider_id, usage);
    }

    /// Writes what was used to the log, where something was.
    pub(crate) fn log(&self) {
        let Spent { usage, cost } = *self.0.lock();
        if usage != Usage::default() {
            let (input, output) = (usage.input, usage.output);
            tracing::info!(
                whose = "session",
                input,
                output,
                cost_usd = cost.dollars(),
                "used in all"
            );
        }
    }
}

pub(crate) struct Ledger<'a> {
    context: &'a Context,
    provider_id: &'a str,
    pub spent: Spent,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(context: &'a Context, setup: &'a Setup) -> Self {
        Self {
            context,
            provider_id: &setup.provider_id,
            spent: Spent::default(),
        }
    }

    /// Adds a request that was answered to its end: a turn, or one for a summary.
    pub(crate) fn add_request(&mut self, usage: &Usage, model: &Model) {
        self.add(|spent| spent.add(usage, model));
        count(self.provider_id, usage);
    }

    /// Adds a turn that broke off: it is billed, and nobody says how much.
    pub(crate) fn add_broken_turn(&mut self) {
        self.add(|spent| spent.cost.add_unknown());
    }

    fn add(&mut self, change: impl Fn(&mut Spent)) {
        change(&mut self.spent);
        change(&mut self.context.session.totals.0.lock());
    }
}

fn count(provider_id: &str, usage: &Usage) {
    for (kind, count) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
    ] {
        if let Some(count) = count {
            metrics::tokens(provider_id, kind, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Rates;

    #[test]
    fn a_sum_has_no_digits_that_no_price_has() {
        let rates = Rates {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: Some(3.75),
            cache_write_1h: None,
        };
        let pricing = Pricing { rates, long: None };
        let usage = Usage {
            input: Some(123),
            output: Some(57),
            cache_read: Some(100),
            cache_write: Some(11),
            ..Usage::default()
        };
        let mut cost = Cost::default();
        let mut longest = 0;
        for _ in 0..1000 {
            cost.add(&usage, Some(&pricing));
            let shown = serde_json::to_string(&cost.dollars()).unwrap();
            longest = shown
                .split_once('.')
                .map_or(0, |(_, digits)| digits.len())
                .max(longest);
        }
        assert!(longest <= 9, "{longest}");
        // 12 tokens at $3, 100 at $0.3, 11 at $3.75 and 57 at $15 a million, a thousand times.
        assert_eq!(cost.dollars(), Some(0.962_25));
    }

    #[test]
    fn a_sum_is_known_while_each_part_is() {
        let rates = Rates {
            input: 1.0,
            output: 2.0,
            ..Rates::default()
        };
        let pricing = Pricing { rates, long: None };
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let million = Some(1_000_000);
        let mut cost = Cost::default();
        assert_eq!(cost.dollars(), None);
        cost.add(&usage(million, million), Some(&pricing));
        cost.add(&usage(million, Some(0)), Some(&pricing));
        assert_eq!(cost.dollars(), Some(4.0));
        let mut broken = cost;
        broken.add_unknown();
        assert_eq!(broken.dollars(), None);
        for (usage, pricing) in [
            (usage(None, million), Some(&pricing)),
            (usage(million, None), Some(&pricing)),
            (usage(million, million), None),
        ] {
            let mut cost = cost;
            cost.add(&usage, pricing);
            assert_eq!(cost.dollars(), None, "{usage:?}");
        }
    }
}

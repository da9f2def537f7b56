//! What an exchange costs, turn by turn. Pure.

use crate::message::{Pricing, Usage};
use crate::provider::models;

/// The sum so far. It is a price only while every turn's part is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    dollars: Option<f64>,
    incomplete: bool,
}

impl Cost {
    /// Adds a turn. One without figures, or of a model without prices, makes the sum unknown.
    pub fn add(&mut self, usage: &Usage, pricing: Option<&Pricing>) {
        match (usage.input, usage.output, pricing) {
            (Some(_), Some(_), Some(pricing)) => {
                let dollars = models::cost(usage, pricing);
                self.dollars = Some(self.dollars.unwrap_or(0.0) + dollars);
            }
            _ => self.incomplete = true,
        }
    }

    /// Counts a turn that broke off: it is billed, and nobody says how much.
    pub fn add_unknown(&mut self) {
        self.incomplete = true;
    }

    /// US dollars; `None` where nothing was priced, or not all of it.
    pub fn dollars(&self) -> Option<f64> {
        self.dollars.filter(|_| !self.incomplete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_while_each_part_is() {
        let pricing = Pricing {
            input: 1.0,
            output: 2.0,
            cache_read: None,
            cache_write: None,
            cache_write_1h: None,
            long: None,
        };
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

//! What a request is expected to cost. Pure.

use std::collections::VecDeque;

use crate::message::{Money, Pricing, Usage};
use crate::provider::models::cost;

/// Turns of a conversation whose answers say how long the next one is expected to be.
const TURNS: usize = 10;

/// The least that an answer is expected to have, in tokens.
const LEAST: u64 = 1_000;

/// How long the last answers of a conversation were, in tokens.
#[derive(Debug, Default)]
pub(crate) struct Outputs(VecDeque<u64>);

impl Outputs {
    pub(crate) fn add(&mut self, tokens: u64) {
        self.0.push_back(tokens);
        if self.0.len() > TURNS {
            self.0.pop_front();
        }
    }

    /// Returns how long the next answer is expected to be: twice the mean, and no longer than it may be.
    pub(crate) fn next(&self, most: Option<u64>) -> u64 {
        let sum = self
            .0
            .iter()
            .fold(0, |sum: u64, it| sum.saturating_add(*it));
        let mean = sum.checked_div(self.0.len() as u64).unwrap_or(0);
        let expected = mean.saturating_mul(2).max(LEAST);
        most.map_or(expected, |most| expected.min(most))
    }
}

/// A request that is about to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Expected {
    /// Returns what it costs where no cache has anything of the prompt.
    pub(crate) fn cost(self, pricing: &Pricing) -> Money {
        let usage = Usage {
            input: Some(self.input),
            output: Some(self.output),
            ..Usage::default()
        };
        cost(&usage, pricing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{LongPricing, Rates};

    #[test]
    fn an_answer_is_expected_to_be_twice_as_long_as_the_last_ten_were() {
        for (outputs, most, expected) in [
            (vec![], None, 1_000),
            (vec![10, 20], None, 1_000),
            (vec![2_000, 4_000], None, 6_000),
            (vec![2_000, 4_000], Some(500), 500),
            (vec![u64::MAX, u64::MAX], None, u64::MAX - 1),
            // The first is forgotten.
            ([[1_000_000].as_slice(), &[1_000; 10]].concat(), None, 2_000),
        ] {
            let mut last = Outputs::default();
            for output in &outputs {
                last.add(*output);
            }
            assert_eq!(last.next(most), expected, "{outputs:?}");
        }
    }

    #[test]
    fn a_long_prompt_is_expected_at_its_own_price() {
        let rates = |input| Rates {
            input,
            output: 10.0,
            cache_read: Some(0.0),
            ..Rates::default()
        };
        let pricing = Pricing {
            rates: rates(1.0),
            long: Some(LongPricing {
                above: 100,
                rates: rates(2.0),
            }),
        };
        for (input, micros) in [(100, 110), (101, 212)] {
            let expected = Expected { input, output: 1 };
            assert_eq!(expected.cost(&pricing).micros(), micros);
        }
    }
}

//! Token figures of one answer.

use crate::message::Usage;
use crate::provider::json::Json;

/// The figures as the API names them, the latest of each.
///
/// `message_start` has the input side, each `message_delta` the output so far; all are totals, never
/// added up (`docs/providers.md`, "Usage fields").
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    uncached: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    cache_write_1h: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Figures {
    /// Takes over what a `usage` object carries.
    pub(super) fn update(&mut self, usage: &Json<'_>) {
        let number = |name: &'static str| usage.get(name).as_u64();
        let nested = |name: &'static str, inner: &'static str| usage.get(name).get(inner).as_u64();
        // Some servers repeat the input side as zeros at the end.
        let keep = |slot: &mut Option<u64>, new: Option<u64>| match new {
            None => {}
            Some(0) if slot.is_some() => {}
            new => *slot = new,
        };
        keep(&mut self.uncached, number("input_tokens"));
        keep(&mut self.cache_read, number("cache_read_input_tokens"));
        keep(&mut self.cache_write, number("cache_creation_input_tokens"));
        keep(
            &mut self.cache_write_1h,
            nested("cache_creation", "ephemeral_1h_input_tokens"),
        );
        self.output = number("output_tokens").or(self.output);
        self.thinking = nested("output_tokens_details", "thinking_tokens").or(self.thinking);
    }

    /// Returns the figures in the daemon's sense: input counts what the cache had.
    pub(super) fn usage(self) -> Usage {
        let input = [self.uncached, self.cache_read, self.cache_write]
            .into_iter()
            .flatten()
            .reduce(u64::saturating_add);
        Usage {
            input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
            reasoning: self.thinking,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(figures: &mut Figures, usage: &Value) {
        figures.update(&serde_json::from_str(&usage.to_string()).unwrap());
    }

    #[test]
    fn later_figures_replace_and_nothing_erases() {
        let cases = [
            (
                vec![
                    json!({"input_tokens": 3, "cache_read_input_tokens": 9687, "output_tokens": 1}),
                    json!({"output_tokens": 7}),
                ],
                (Some(9690), Some(7), Some(9687), None),
            ),
            (
                vec![
                    json!({"input_tokens": 43, "cache_creation_input_tokens": 10, "output_tokens": 1}),
                    json!({"input_tokens": 0, "cache_creation_input_tokens": null, "output_tokens": 0}),
                ],
                (Some(53), Some(0), None, Some(10)),
            ),
            (
                vec![json!({"input_tokens": 43}), json!({"input_tokens": 61})],
                (Some(61), None, None, None),
            ),
            (vec![json!({})], (None, None, None, None)),
        ];
        for (updates, expected) in cases {
            let mut figures = Figures::default();
            for update in &updates {
                read(&mut figures, update);
            }
            let usage = figures.usage();
            let seen = (
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write,
            );
            assert_eq!(seen, expected, "{updates:?}");
        }
    }

    #[test]
    fn details() {
        let mut figures = Figures::default();
        let update = json!({
            "cache_creation": {"ephemeral_1h_input_tokens": 5},
            "output_tokens_details": {"thinking_tokens": 9},
        });
        read(&mut figures, &update);
        assert_eq!(figures.usage().cache_write_1h, Some(5));
        assert_eq!(figures.usage().reasoning, Some(9));
    }
}

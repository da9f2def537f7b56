//! Tokens as providers count them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one turn, or the sums of an exchange. `None` is "the provider did not say", never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// All input tokens, cached ones included, for every provider.
    pub input: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
    /// Of `input`: read from a prompt cache.
    pub cache_read: Option<u64>,
    /// Of `input`: written to a prompt cache.
    pub cache_write: Option<u64>,
    /// Of `cache_write`: written for an hour (Anthropic), priced higher.
    pub cache_write_1h: Option<u64>,
    /// Of `output`: spent on reasoning.
    pub reasoning: Option<u64>,
}

/// Tokens; what the provider did not say is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// All input tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input: read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the input: written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
        }
    }
}

/// The most tokens of one request that a provider is believed: many times the largest window.
const MAX_COUNT: u64 = 100_000_000;

impl Usage {
    /// Returns the figures that can be true; one that cannot is as if it had not been said.
    #[must_use]
    pub fn believed(self) -> Self {
        let believed = |count: Option<u64>| count.filter(|count| *count <= MAX_COUNT);
        Self {
            // No request is empty: a server that says so has not counted.
            input: believed(self.input).filter(|count| *count > 0),
            output: believed(self.output),
            cache_read: believed(self.cache_read),
            cache_write: believed(self.cache_write),
            cache_write_1h: believed(self.cache_write_1h),
            reasoning: believed(self.reasoning),
        }
    }

    /// Returns the tokens that no cache had: of input and output.
    pub fn fresh(&self) -> u64 {
        let input = self.input.unwrap_or(0);
        let read = self.cache_read.unwrap_or(0);
        let output = self.output.unwrap_or(0);
        input.saturating_sub(read).saturating_add(output)
    }

    /// Adds another turn's figures; a figure that neither has stays unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            cache_write_1h: sum(self.cache_write_1h, other.cache_write_1h),
            reasoning: sum(self.reasoning, other.reasoning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_cannot_be_true_is_as_if_it_had_not_been_said() {
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let most = Some(MAX_COUNT);
        for (said, believed) in [
            (usage(Some(7), most), usage(Some(7), most)),
            (usage(Some(u64::MAX), Some(1)), usage(None, Some(1))),
            (usage(None, Some(MAX_COUNT + 1)), usage(None, None)),
            (usage(Some(0), Some(0)), usage(None, Some(0))),
        ] {
            assert_eq!(said.believed(), believed);
        }
    }
}

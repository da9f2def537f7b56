//! Token figures of Chat Completions, Responses and Anthropic: several names for the same numbers.

use super::json::{Json, array, field, text};
use crate::message::Usage;

/// Takes the figures of a `usage` object. They are cumulative: never added, and never erased by one that
/// leaves some out, or repeats the input side as zeros.
///
/// Input counts include cached tokens. DeepSeek names its cache hits differently, Moonshot puts them at the top
/// (`docs/providers.md`, "Usage fields").
pub(super) fn update(known: &mut Usage, usage: &Json<'_>) {
    let update = |slot: &mut Option<u64>, paths: &[&str]| {
        keep(slot, paths.iter().find_map(|path| figure(usage, path)));
    };
    update(&mut known.input, &["prompt_tokens", "input_tokens"]);
    update(&mut known.output, &["completion_tokens", "output_tokens"]);
    let cache_read = [
        "prompt_tokens_details/cached_tokens",
        "input_tokens_details/cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        // Gateways before Claude.
        "cache_read_input_tokens",
    ];
    update(&mut known.cache_read, &cache_read);
    let cache_write = [
        "prompt_tokens_details/cache_write_tokens",
        "input_tokens_details/cache_write_tokens",
        "cache_creation_input_tokens",
    ];
    update(&mut known.cache_write, &cache_write);
    let reasoning = [
        "completion_tokens_details/reasoning_tokens",
        "output_tokens_details/reasoning_tokens",
        "reasoning_tokens",
    ];
    update(&mut known.reasoning, &reasoning);
}

/// The same for Anthropic, whose input leaves out what the cache had. Its names alone: a server that sends Chat's as
/// well counts the cache in those. Of the output the last word counts, for a refusal may bring it back to nothing.
pub(super) fn update_anthropic(known: &mut Usage, usage: &Json<'_>) {
    let cache_write_1h = "cache_creation/ephemeral_1h_input_tokens";
    for (slot, path) in [
        (&mut known.input, "input_tokens"),
        (&mut known.cache_read, "cache_read_input_tokens"),
        (&mut known.cache_write, "cache_creation_input_tokens"),
        (&mut known.cache_write_1h, cache_write_1h),
    ] {
        keep(slot, figure(usage, path));
    }
    let thinking = figure(usage, "output_tokens_details/thinking_tokens");
    known.output = figure(usage, "output_tokens").or(known.output);
    known.reasoning = thinking.or(known.reasoning);
}

/// Returns what compactions took that the vendor made beside, which its sums do not have; `None` where it says nothing of any.
pub(super) fn anthropic_compactions(usage: &Json<'_>) -> Option<Usage> {
    let made = array(usage, "iterations").iter();
    let made = made.filter(|iteration| text(iteration, "type") == "compaction");
    made.fold(None, |sum, iteration| {
        let mut one = Usage::default();
        update_anthropic(&mut one, iteration);
        Some(sum.unwrap_or_default().plus(one))
    })
}

fn keep(slot: &mut Option<u64>, newer: Option<u64>) {
    *slot = newer.filter(|newer| *newer > 0 || slot.is_none()).or(*slot);
}

fn figure(usage: &Json<'_>, path: &str) -> Option<u64> {
    number(path.split('/').fold(usage, |at, key| field(at, key)))
}

fn number(value: &Json<'_>) -> Option<u64> {
    if let Json::Str(digits) = value {
        return digits.parse().ok();
    }
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        // `as` saturates: a negative or huge figure cannot wrap around.
        (float >= 0.0).then_some(float as u64)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_into(known: &mut Usage, usage: &Value) {
        update(known, &serde_json::from_str(&usage.to_string()).unwrap());
    }

    fn read(usage: &Value) -> Usage {
        let mut figures = Usage::default();
        read_into(&mut figures, usage);
        figures
    }

    #[test]
    fn newer_figures_replace_and_gaps_keep() {
        let mut known = read(&json!({"prompt_tokens": 10, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 8}}));
        for newer in [
            json!({}),
            json!(null),
            json!({"prompt_tokens": null, "completion_tokens": 5.0}),
            json!({"completion_tokens": -1}),
        ] {
            read_into(&mut known, &newer);
        }
        assert_eq!(known.input, Some(10));
        assert_eq!(known.output, Some(5));
        assert_eq!(known.cache_read, Some(8));
        assert_eq!(known.reasoning, None);
    }

    #[test]
    fn figures_of_anthropic() {
        let mut known = Usage::default();
        for usage in [
            json!({"input_tokens": 43, "cache_creation_input_tokens": 10, "output_tokens": 1,
                "cache_read_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 5},
                "prompt_tokens": 60, "completion_tokens": 1}),
            json!({"input_tokens": 0, "cache_creation_input_tokens": null, "prompt_tokens": 60,
                "output_tokens": 0, "output_tokens_details": {"thinking_tokens": 9}}),
        ] {
            update_anthropic(
                &mut known,
                &serde_json::from_str(&usage.to_string()).unwrap(),
            );
        }
        assert_eq!((known.input, known.output), (Some(43), Some(0)));
        assert_eq!((known.cache_read, known.cache_write), (Some(7), Some(10)));
        assert_eq!((known.cache_write_1h, known.reasoning), (Some(5), Some(9)));
    }

    #[test]
    fn compactions_are_counted_beside_the_sums_of_anthropic() {
        let compaction = json!({"type": "compaction", "input_tokens": 40, "output_tokens": 3,
            "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2});
        let message = json!({"type": "message", "input_tokens": 9, "output_tokens": 9});
        for (usage, expected) in [
            (json!({"input_tokens": 9, "output_tokens": 9}), None),
            (json!({"iterations": null}), None),
            (json!({"iterations": [message]}), None),
            (json!({"iterations": [compaction]}), Some((40, 3, 30))),
            (
                json!({"iterations": [compaction, message, compaction]}),
                Some((80, 6, 60)),
            ),
        ] {
            let read = usage.to_string();
            let read = anthropic_compactions(&serde_json::from_str(&read).unwrap());
            let expected =
                expected.map(|(input, output, read)| (Some(input), Some(output), Some(read)));
            assert_eq!(
                read.map(|it| (it.input, it.output, it.cache_read)),
                expected,
                "{usage}"
            );
        }
    }

    #[test]
    fn deepseek_and_responses_names() {
        let deepseek = read(&json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}));
        assert_eq!(deepseek.cache_read, Some(4));
        let responses = read(&json!({"input_tokens": 7, "output_tokens": 3,
            "input_tokens_details": {"cache_write_tokens": 2},
            "output_tokens_details": {"reasoning_tokens": 1}}));
        assert_eq!(
            (responses.input, responses.output, responses.cache_write),
            (Some(7), Some(3), Some(2))
        );
        assert_eq!(responses.reasoning, Some(1));
    }
}

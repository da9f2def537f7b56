//! Token figures of Chat Completions, Responses and Anthropic: several names for the same numbers.

use crate::message::Usage;
use crate::provider::json::Json;

/// Takes the figures of a `usage` object. They are cumulative: never added, and never erased by one that
/// leaves some out, or repeats the input side as zeros.
///
/// Input counts include cached tokens but for Anthropic. DeepSeek names its cache hits differently, Moonshot puts
/// them at the top (`docs/providers.md`, "Usage fields").
pub(in crate::provider) fn update(known: &mut Usage, usage: &Json<'_>) {
    let update = |slot: &mut Option<u64>, paths: &[&'static str]| {
        let figure =
            |path: &&'static str| number(path.split('/').fold(usage, |at, key| at.get(key)));
        let newer = paths.iter().find_map(figure);
        *slot = newer.filter(|newer| *newer > 0 || slot.is_none()).or(*slot);
    };
    update(&mut known.input, &["prompt_tokens", "input_tokens"]);
    update(&mut known.output, &["completion_tokens", "output_tokens"]);
    let cache_read = [
        "prompt_tokens_details/cached_tokens",
        "input_tokens_details/cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
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
        "output_tokens_details/thinking_tokens",
        "reasoning_tokens",
    ];
    let cache_write_1h = ["cache_creation/ephemeral_1h_input_tokens"];
    update(&mut known.cache_write_1h, &cache_write_1h);
    update(&mut known.reasoning, &reasoning);
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
        let mut known = read(
            &json!({"input_tokens": 43, "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 5}}),
        );
        read_into(
            &mut known,
            &json!({"input_tokens": 0, "cache_creation_input_tokens": null,
            "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 9}}),
        );
        assert_eq!((known.input, known.output), (Some(43), Some(2)));
        assert_eq!((known.cache_read, known.cache_write), (Some(7), Some(10)));
        assert_eq!((known.cache_write_1h, known.reasoning), (Some(5), Some(9)));
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

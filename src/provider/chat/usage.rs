//! Token figures of Chat Completions and Responses: two sets of names for the same numbers.

use serde_json::Value;

use crate::message::Usage;

/// Reads a `usage` object of either API; what is missing or no number stays `None`.
///
/// Input counts include cached tokens on both. DeepSeek names its cache hits differently, Moonshot puts
/// them at the top (`docs/providers.md`, "Usage fields").
pub(in crate::provider) fn read(usage: &Value) -> Usage {
    let first = |paths: &[&str]| paths.iter().find_map(|path| number(usage.pointer(path)?));
    Usage {
        input: first(&["/prompt_tokens", "/input_tokens"]),
        output: first(&["/completion_tokens", "/output_tokens"]),
        cache_read: first(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
            // Gateways before Claude.
            "/cache_read_input_tokens",
        ]),
        cache_write: first(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/input_tokens_details/cache_write_tokens",
            "/cache_creation_input_tokens",
        ]),
        cache_write_1h: None,
        reasoning: first(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ]),
    }
}

/// Overwrites figures with newer ones. They are cumulative: never added, and never erased by a chunk
/// that leaves some out.
pub(in crate::provider) fn update(known: &mut Usage, newer: Usage) {
    known.input = newer.input.or(known.input);
    known.output = newer.output.or(known.output);
    known.cache_read = newer.cache_read.or(known.cache_read);
    known.cache_write = newer.cache_write.or(known.cache_write);
    known.reasoning = newer.reasoning.or(known.reasoning);
}

fn number(value: &Value) -> Option<u64> {
    if let Value::String(digits) = value {
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
    use serde_json::json;

    use super::*;

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
            update(&mut known, read(&newer));
        }
        assert_eq!(known.input, Some(10));
        assert_eq!(known.output, Some(5));
        assert_eq!(known.cache_read, Some(8));
        assert_eq!(known.reasoning, None);
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

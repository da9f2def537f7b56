use super::*;
use crate::message::Rates;

#[test]
fn every_entry_is_sound() {
    for (vendor, models) in TABLE.iter() {
        assert!(crate::config::presets::preset(vendor).is_some(), "{vendor}");
        for (id, model) in models {
            assert!(!model.name.is_empty() && !model.source.is_empty(), "{id}");
            if let (Some(window), Some(output)) = (model.context_window, model.max_output_tokens) {
                assert!(output <= window, "{id}");
            }
            if let Some(pricing) = model.pricing {
                let price = pricing.rates;
                assert!(0.0 < price.input && price.input <= price.output, "{id}");
                assert!(
                    price.cache_read.is_none_or(|read| read < price.input),
                    "{id}"
                );
                assert!(
                    price.cache_write.is_none_or(|write| price.input < write),
                    "{id}"
                );
                let longer = price.cache_write_1h.zip(price.cache_write);
                assert!(longer.is_none_or(|(hour, minutes)| minutes < hour), "{id}");
                if let Some(long) = pricing.long {
                    assert!(long.above >= 100_000, "{id}");
                    let long = long.rates;
                    assert!(
                        long.input > price.input && long.output > price.output,
                        "{id}"
                    );
                    let same = long.cache_read.is_some() == price.cache_read.is_some()
                        && long.cache_write.is_some() == price.cache_write.is_some()
                        && long.cache_write_1h.is_some() == price.cache_write_1h.is_some();
                    assert!(same, "{id}");
                }
            }
        }
    }
}

#[test]
fn the_default_models_of_vendors_are_known() {
    for preset in crate::config::presets::all() {
        // OpenRouter lists its own prices.
        if !preset.model.is_empty() && preset.name != "openrouter" {
            assert!(
                lookup(preset.name, preset.model).is_some(),
                "{}",
                preset.name
            );
        }
    }
}

#[test]
fn ids_are_found_exactly_and_then_by_their_version() {
    let cases = [
        ("anthropic", "claude-sonnet-5-5", Some("Claude Sonnet 5.5")),
        (
            "anthropic",
            "claude-sonnet-5-5-20260928",
            Some("Claude Sonnet 5.5"),
        ),
        (
            "anthropic",
            "claude-sonnet-5@20260630",
            Some("Claude Sonnet 5"),
        ),
        (
            "anthropic",
            "claude-haiku-4-5-20251001",
            Some("Claude Haiku 4.5"),
        ),
        ("anthropic", "claude-sonnet-5-9", None),
        ("anthropic", "claude-sonnet-5-9-20270101", None),
        ("openai", "gpt-5-2025-08-07", Some("GPT-5")),
        ("openai", "gpt-5-mini-2025-08-07", Some("GPT-5 Mini")),
        ("openai", "gpt-5-pro", None),
        ("openai", "gpt-5.9", None),
        ("openai", "gpt-5", Some("GPT-5")),
        ("openai", "gpt", None),
        ("openai", "", None),
        (
            "gemini",
            "gemini-2.5-pro-preview-05-06",
            Some("Gemini 2.5 Pro"),
        ),
        ("groq", "openai/gpt-oss-120b", Some("GPT OSS 120B")),
        ("openrouter", "openai/gpt-oss-120b", None),
        ("ollama", "qwen3", None),
    ];
    for (preset, id, name) in cases {
        let found = lookup(preset, id).map(|model| model.name.as_str());
        assert_eq!(found, name, "{preset} {id}");
    }
}

#[test]
fn cached_tokens_cost_what_cached_tokens_cost() {
    let full = Rates {
        input: 4.0,
        output: 20.0,
        cache_read: Some(0.2),
        cache_write: Some(5.0),
        cache_write_1h: Some(8.0),
    };
    let plain = Rates {
        cache_read: None,
        cache_write: None,
        cache_write_1h: None,
        ..full
    };
    let minutes_only = Rates {
        cache_write_1h: None,
        ..full
    };
    let usage = |input, output, cache_read, cache_write, cache_write_1h| Usage {
        input,
        output,
        cache_read,
        cache_write,
        cache_write_1h,
        reasoning: output,
    };
    let million = Some(1_000_000);
    let half = Some(500_000);
    let cases = [
        (usage(None, None, None, None, None), full, 0.0),
        (usage(million, million, None, None, None), full, 24.0),
        (usage(million, None, million, None, None), full, 0.2),
        (usage(million, None, half, half, None), full, 2.6),
        (usage(million, None, half, half, half), full, 4.1),
        (usage(million, None, half, half, half), minutes_only, 2.6),
        (usage(million, million, half, half, half), plain, 24.0),
        // Figures that contradict each other never count a token twice.
        (usage(half, None, million, million, million), full, 0.1),
        (usage(million, None, None, half, million), full, 6.0),
    ];
    for (usage, rates, expected) in cases {
        let cost = cost(&usage, &Pricing { rates, long: None });
        assert_eq!(Some(cost), Money::from_dollars(expected), "{usage:?}");
    }
}

#[test]
fn a_vendors_own_figures_win_over_the_table() {
    let known = describe("mine", "anthropic", "claude-haiku-4-5-20251001");
    assert_eq!(known.display_name, "Claude Haiku 4.5");
    assert_eq!(known.provider, "mine");
    assert_eq!(known.context_window, Some(200_000));
    assert_eq!(known.supports_vision, Some(true));

    let mut listed = Model {
        display_name: "Its own name".to_owned(),
        context_window: Some(7),
        supports_tools: false,
        supports_vision: Some(false),
        pricing: None,
        max_output_tokens: None,
        ..known.clone()
    };
    complete(&mut listed, "anthropic");
    let expected = Model {
        display_name: "Its own name".to_owned(),
        context_window: Some(7),
        supports_tools: false,
        supports_vision: Some(false),
        ..known
    };
    assert_eq!(listed, expected);
}

#[test]
fn an_unknown_model_is_only_its_name() {
    let model = describe("local", "ollama", "qwen3");
    assert_eq!(model.display_name, "qwen3");
    assert!(model.supports_tools);
    assert_eq!((model.context_window, model.pricing), (None, None));
    let mut completed = model.clone();
    complete(&mut completed, "ollama");
    assert_eq!(completed, model);
}

#[test]
fn every_price_of_the_file_is_read() {
    let text = include_str!("../../../config/models.toml");
    let all = || TABLE.values().flat_map(BTreeMap::values);
    let prices = || all().filter_map(|model| model.pricing);
    let read = prices()
        .filter(|price| price.rates.cache_read.is_some())
        .count()
        + prices()
            .filter(|price| {
                price
                    .long
                    .is_some_and(|long| long.rates.cache_read.is_some())
            })
            .count();
    assert_eq!(text.matches("cache_read = ").count(), read);
    let opus = lookup("anthropic", "claude-opus-5-5").and_then(|model| model.pricing);
    let opus = opus.unwrap().rates;
    assert_eq!(
        (opus.cache_read, opus.cache_write, opus.cache_write_1h),
        (Some(0.2), Some(5.0), Some(8.0))
    );
}

#[test]
fn a_cost_is_rounded_up_to_the_micro_dollar_and_not_for_a_binary_fraction() {
    for (tokens, price, micros) in [
        // 30.000000000000004 in binary fractions.
        (100, 0.3, 30),
        (1, 0.3, 1),
        (7, 3.0, 21),
        (3, 0.1, 1),
        (0, 3.0, 0),
        (1_000_000, 0.000_001, 1),
        (u64::MAX, 1e9, i64::MAX),
        (5, f64::NAN, 0),
        (5, -1.0, 0),
    ] {
        let rates = Rates {
            input: price,
            ..Rates::default()
        };
        let usage = Usage {
            input: Some(tokens),
            ..Usage::default()
        };
        let cost = cost(&usage, &Pricing { rates, long: None });
        assert_eq!(cost.micros(), micros, "{tokens} at {price}");
    }
}

#[test]
fn a_long_prompt_has_its_own_price() {
    let haiku = lookup("anthropic", "claude-haiku-5-5").and_then(|model| model.pricing);
    let haiku = haiku.unwrap();
    let of = |input, cache_read| {
        let usage = Usage {
            input: Some(input),
            output: Some(1_000_000),
            cache_read: Some(cache_read),
            ..Usage::default()
        };
        cost(&usage, &haiku)
    };
    for (input, cache_read, expected) in [
        (100_000, 0, 0.01 + 0.5),
        (200_000, 0, 0.1 + 2.5),
        (200_000, 200_000, 0.01 + 2.5),
    ] {
        let cost = of(input, cache_read);
        assert_eq!(Some(cost), Money::from_dollars(expected), "{input}");
    }
}

//! What is known of models without asking anybody: windows, limits, abilities and prices.
//!
//! The table is `config/models.toml`, compiled in and read the first time somebody asks. It completes
//! what a vendor's own list leaves out and never contradicts it. Pure.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use figment::Figment;
use figment::providers::{Format, Toml};
use serde::Deserialize;

use crate::message::{Model, Pricing, Usage};

/// Prices are for this many tokens.
const PRICED_TOKENS: f64 = 1_000_000.0;

/// Models by vendor and id.
type Table = BTreeMap<String, BTreeMap<String, KnownModel>>;

#[expect(
    clippy::expect_used,
    reason = "the file is compiled in, and a test reads all of it"
)]
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    parse(include_str!("../../config/models.toml")).expect("a table that is read in tests")
});

/// One entry of the table. What no source says is `None`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// A name for people.
    pub name: String,
    /// Input and output tokens together.
    #[serde(rename = "context")]
    pub context_window: Option<u64>,
    /// Most tokens of one answer.
    #[serde(rename = "output")]
    pub max_output_tokens: Option<u64>,
    /// Whether it can call tools.
    pub tools: Option<bool>,
    /// Whether it can think.
    pub thinking: Option<bool>,
    /// Whether it can see images.
    pub vision: Option<bool>,
    /// What it costs for short prompts at the standard tier.
    #[serde(rename = "price")]
    pub pricing: Option<Pricing>,
    /// Where this was read.
    pub source: String,
}

/// Returns what is known of a model at a vendor.
///
/// `preset` is the name of a preset or kind, e.g. `deepseek`. The id is looked for as it is, then as
/// the dated, latest or preview version of the longest id that is known: `gpt-5-2025-08-07` is
/// `gpt-5`, but `gpt-5-pro` and `gpt-5.9` are nothing.
pub fn lookup(preset: &str, id: &str) -> Option<&'static KnownModel> {
    let models = TABLE.get(preset)?;
    models.get(id).or_else(|| {
        let versions = models
            .iter()
            .filter(|(known, _)| id.strip_prefix(known.as_str()).is_some_and(is_version));
        let longest = versions.max_by_key(|(known, _)| known.len());
        longest.map(|(_, model)| model)
    })
}

/// Describes a model of the instance `provider` from the table alone.
pub fn describe(provider: &str, preset: &str, id: &str) -> Model {
    let mut model = Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        display_name: id.to_owned(),
        context_window: None,
        max_output_tokens: None,
        supports_tools: true,
        supports_thinking: None,
        supports_vision: None,
        pricing: None,
    };
    if let Some(known) = lookup(preset, id) {
        model.display_name.clone_from(&known.name);
        model.supports_tools = known.tools.unwrap_or(true);
        fill(&mut model, known);
    }
    model
}

/// Fills in what the vendor's own list left out. `supports_tools` is left as it is: a list that says
/// nothing of tools has to take it from [`describe`].
pub fn complete(model: &mut Model, preset: &str) {
    if let Some(known) = lookup(preset, &model.id) {
        if model.display_name == model.id {
            model.display_name.clone_from(&known.name);
        }
        fill(model, known);
    }
}

/// Returns what a turn cost, in US dollars: tokens from a cache or written to one at their own price,
/// at the price of input where there is none. Figures that are not known count as 0.
pub fn cost(usage: &Usage, pricing: &Pricing) -> f64 {
    let input = usage.input.unwrap_or(0);
    let read = usage.cache_read.unwrap_or(0).min(input);
    let written = usage.cache_write.unwrap_or(0).min(input - read);
    let written_1h = usage.cache_write_1h.unwrap_or(0).min(written);
    let write_price = pricing.cache_write.unwrap_or(pricing.input);
    let parts = [
        (input - read - written, pricing.input),
        (read, pricing.cache_read.unwrap_or(pricing.input)),
        (written - written_1h, write_price),
        (written_1h, pricing.cache_write_1h.unwrap_or(write_price)),
        (usage.output.unwrap_or(0), pricing.output),
    ];
    let dollars = parts.iter().map(|(tokens, price)| *tokens as f64 * price);
    dollars.sum::<f64>() / PRICED_TOKENS
}

fn parse(text: &str) -> Result<Table, Box<figment::Error>> {
    Figment::from(Toml::string(text))
        .extract()
        .map_err(Box::new)
}

fn fill(model: &mut Model, known: &KnownModel) {
    model.context_window = model.context_window.or(known.context_window);
    model.max_output_tokens = model.max_output_tokens.or(known.max_output_tokens);
    model.supports_thinking = model.supports_thinking.or(known.thinking);
    model.supports_vision = model.supports_vision.or(known.vision);
    model.pricing = model.pricing.or(known.pricing);
}

/// Whether the rest of an id names a version of the same model, which does not change its price.
fn is_version(rest: &str) -> bool {
    let Some(version) = rest.strip_prefix(['-', '@']) else {
        return false;
    };
    let shape: String = version
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let dates = ["00000000", "0000-00-00", "0000"];
    let words = ["latest", "preview", "preview-00-00", "preview-00-0000"];
    dates.contains(&shape.as_str()) || words.contains(&shape.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_sound() {
        for (vendor, models) in TABLE.iter() {
            assert!(
                crate::provider::presets::preset(vendor).is_some(),
                "{vendor}"
            );
            for (id, model) in models {
                assert!(!model.name.is_empty() && !model.source.is_empty(), "{id}");
                if let (Some(window), Some(output)) =
                    (model.context_window, model.max_output_tokens)
                {
                    assert!(output <= window, "{id}");
                }
                if let Some(price) = model.pricing {
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
                }
            }
        }
    }

    #[test]
    fn the_default_models_of_vendors_are_known() {
        for preset in crate::provider::presets::all() {
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
        let full = Pricing {
            input: 4.0,
            output: 20.0,
            cache_read: Some(0.2),
            cache_write: Some(5.0),
            cache_write_1h: Some(8.0),
        };
        let plain = Pricing {
            cache_read: None,
            cache_write: None,
            cache_write_1h: None,
            ..full
        };
        let minutes_only = Pricing {
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
        for (usage, pricing, expected) in cases {
            let dollars = cost(&usage, &pricing);
            assert!((dollars - expected).abs() < 1e-9, "{usage:?}: {dollars}");
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
}

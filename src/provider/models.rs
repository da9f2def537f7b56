//! What is known of models without asking anybody: windows, limits, abilities and prices.
//!
//! The table is `config/models.toml`, compiled in as JSON and read the first time somebody asks. It completes
//! what a vendor's own list leaves out and never contradicts it. Pure.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::message::{Model, Money, Pricing, Usage};

/// Prices are for this many tokens.
pub(super) const PRICED_TOKENS: f64 = 1_000_000.0;

/// Parts of a micro-dollar that a price of one token is rounded to.
const PARTS: u128 = 1_000_000;

/// Models by vendor and id.
type Table = BTreeMap<String, BTreeMap<String, KnownModel>>;

#[expect(
    clippy::expect_used,
    reason = "the file is compiled in, and a test reads all of it"
)]
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/models.json")))
        .expect("a table that is read in tests")
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
    /// What it costs at the standard tier.
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
    model.supports_tools = lookup(preset, id).and_then(|known| known.tools) != Some(false);
    complete(&mut model, preset);
    model
}

/// Fills in what the vendor's own list left out. `supports_tools` is left as it is: a list that says
/// nothing of tools has to take it from [`describe`].
pub fn complete(model: &mut Model, preset: &str) {
    if let Some(known) = lookup(preset, &model.id) {
        if model.display_name == model.id {
            model.display_name.clone_from(&known.name);
        }
        model.context_window = model.context_window.or(known.context_window);
        model.max_output_tokens = model.max_output_tokens.or(known.max_output_tokens);
        model.supports_thinking = model.supports_thinking.or(known.thinking);
        model.supports_vision = model.supports_vision.or(known.vision);
        model.pricing = model.pricing.or(known.pricing);
    }
}

/// Returns what a turn cost, rounded up to the micro-dollar: tokens from a cache or written to one at their own price,
/// at the price of input where there is none. Figures that are not known count as 0. A prompt longer
/// than the price's limit has all of its turn at the long prices.
pub fn cost(usage: &Usage, pricing: &Pricing) -> Money {
    let input = usage.input.unwrap_or(0);
    let long = pricing.long.filter(|long| input > long.above);
    let rates = long.map_or(pricing.rates, |long| long.rates);
    let read = usage.cache_read.unwrap_or(0).min(input);
    let written = usage.cache_write.unwrap_or(0).min(input - read);
    let written_1h = usage.cache_write_1h.unwrap_or(0).min(written);
    let write_price = rates.cache_write.unwrap_or(rates.input);
    let parts = [
        (input - read - written, rates.input),
        (read, rates.cache_read.unwrap_or(rates.input)),
        (written - written_1h, write_price),
        (written_1h, rates.cache_write_1h.unwrap_or(write_price)),
        (usage.output.unwrap_or(0), rates.output),
    ];
    // Dollars for a million tokens are micro-dollars for one. Whole parts of them, so that no binary fraction rounds up.
    let parts = parts.map(|(tokens, price)| {
        let price = (price * PARTS as f64).round() as u128;
        price.saturating_mul(u128::from(tokens))
    });
    let sum = parts.into_iter().fold(0_u128, u128::saturating_add);
    Money::from_micros(i64::try_from(sum.div_ceil(PARTS)).unwrap_or(i64::MAX))
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
mod tests;

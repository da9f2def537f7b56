//! The section `[budget]`: how much may be spent.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Money;
use crate::units::{DAY, Span};

/// How much may be spent on models, by the prices of the models; what is empty has no cap.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    /// US dollars of one exchange, where neither the send nor its workflow says (`limits.maxCostUsd`).
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub exchange: Option<Money>,
    /// US dollars of a conversation.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub conversation: Option<Money>,
    /// US dollars of a session, where its client does not say (`session:configure`).
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub session: Option<Money>,
    /// US dollars of each user in a day; whoever has the daemon's own token is one user. Several daemons on one database count
    /// together.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub user_day: Option<Money>,
    /// US dollars of the daemon in a day; of all that are on one database.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub daemon_day: Option<Money>,
    /// Caps of provider instances, by name.
    pub provider: BTreeMap<String, ProviderBudget>,
    /// The part of a cap from which on clients are warned, once: 0 to 1.
    #[serde(deserialize_with = "part")]
    pub warn_at: f64,
    /// What happens at the cap of an exchange, a conversation or a session: `ask` waits for the user, who may raise it; `stop`
    /// ends the exchange. At the cap of a day it always ends.
    #[serde(deserialize_with = "super::word")]
    pub on_reach: OnReach,
    /// How long the user is asked, up to 24h; `0s` for ever.
    #[serde(deserialize_with = "super::unless_zero")]
    #[schemars(with = "Span<0, DAY>")]
    pub ask_timeout: Option<Duration>,
    /// What happens where money is capped and nobody knows the model's price: `refuse` ends the exchange, `allow` counts it
    /// as nothing.
    #[serde(deserialize_with = "super::word")]
    pub unpriced: Unpriced,
    /// In which time zone a day begins, e.g. `Europe/Berlin`; `UTC` needs no database of zones on this machine.
    #[serde(deserialize_with = "zone")]
    #[schemars(with = "String")]
    pub zone: TimeZone,
}

/// How much may be spent at one provider instance.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderBudget {
    /// US dollars in a day.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub day: Option<Money>,
}

/// What happens where a cap is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnReach {
    /// The user is asked.
    #[default]
    Ask,
    /// The exchange ends.
    Stop,
}

/// What happens where money is capped and a model has no price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unpriced {
    /// It is not asked.
    #[default]
    Refuse,
    /// It costs nothing.
    Allow,
}

/// An amount of money in a configuration file: a number, or a text with one.
#[derive(JsonSchema)]
#[schemars(inline, with = "String", extend("type" = ["string", "number"], "format" = "dollars-text"))]
pub(crate) enum Dollars {}

impl Dollars {
    /// Reads an amount, for serde's `deserialize_with`; an empty text stands for none.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
        let dollars = match Value::deserialize(from)? {
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().trim_start_matches('$').parse().ok(),
            other => other.as_f64(),
        };
        let money = dollars.and_then(Money::from_dollars);
        let problem = "expected US dollars from 0 to 1000000000, as in 2.50";
        money.map(Some).ok_or_else(|| D::Error::custom(problem))
    }
}

fn part<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let part = f64::deserialize(from)?;
    match (0.0..=1.0).contains(&part) {
        true => Ok(part),
        false => Err(D::Error::custom("allowed: 0 to 1")),
    }
}

fn zone<'de, D: Deserializer<'de>>(from: D) -> Result<TimeZone, D::Error> {
    let name = String::deserialize(from)?;
    match name.trim() {
        "UTC" => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_| {
            let problem = format!(
                "there is no time zone {name:?} in the database of this machine; expected UTC or a name such as Europe/Berlin"
            );
            D::Error::custom(problem)
        }),
    }
}

//! The section `[webhooks]`: another program that is told how sessions stand.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::Secret;

/// Another program that is told by HTTP how sessions stand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Where events are sent, with POST: `https`, or `http` too with `allow_private`. Empty for nowhere.
    pub url: String,
    /// What they are signed with, by the scheme of <https://www.standardwebhooks.com>: 24 to 64 bytes in base64, with or
    /// without `whsec_` before them. `openssl rand -base64 32` makes one.
    #[serde(with = "Secret")]
    pub secret: Option<SecretString>,
    /// Which events: `session.requires_action`, `session.failed`, `session.idle`, `session.running`, `exchange.ended`.
    pub events: Vec<WebhookEvent>,
    /// Whether `url` may lead to this machine or its network. Where not, only public addresses are connected to, and no
    /// proxy is used.
    pub allow_private: bool,
}

/// What another program may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WebhookEvent {
    /// Somebody has to answer something.
    #[serde(rename = "session.requires_action")]
    RequiresAction,
    /// The last exchange went wrong.
    #[serde(rename = "session.failed")]
    Failed,
    /// Nothing runs any more.
    #[serde(rename = "session.idle")]
    Idle,
    /// An exchange runs.
    #[serde(rename = "session.running")]
    Running,
    /// An exchange ended, however.
    #[serde(rename = "exchange.ended")]
    ExchangeEnded,
}

//! Requests about providers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Payload of `provider:configure`. The key is never echoed or logged.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfigure {
    /// Which provider instance.
    pub provider: String,
    /// Its key; empty to forget the one it has.
    #[serde(alias = "api_key", default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Its base URL.
    #[serde(alias = "base_url", default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

impl std::fmt::Debug for ProviderConfigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderConfigure")
            .field("provider", &self.provider)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// A payload that names a provider instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderName {
    /// Which provider instance.
    pub provider: String,
}

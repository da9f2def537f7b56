//! Who is asked for a search of the web, and when the user is asked first.

use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;

/// Settings of `web_search`.
#[derive(Clone, Debug)]
pub struct WebSearchConfig {
    /// Base URL of SearXNG; `None` for none.
    pub searxng_url: Option<String>,
    /// Engines to ask SearXNG for; empty for its defaults.
    pub engines: Vec<String>,
    /// Key of the Brave Search API.
    pub brave_api_key: Option<SecretString>,
    /// The whole endpoint of the Brave Search API.
    pub brave_url: String,
    /// How long an answer to the same query is kept.
    pub cache_ttl: Duration,
    /// When the user is asked before a search, whatever the trust level.
    pub ask: AskSearch,
    /// Searches of one exchange after which each is asked for; 0 to 1,000.
    pub limit: usize,
}

/// When the user is asked before a search, whatever the trust level.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AskSearch {
    /// As the trust level says.
    #[default]
    Never,
    /// Where the query has words that the user did not write in the conversation.
    NewWords,
    /// Before every search.
    Always,
}

//! `[tools.web_search]` and `[tools.web_fetch]`.

use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Secret, Url, word};
use crate::config::hosts::{HostEntry, HostPort};
use crate::units::{DAY, KIB, MIB, Number, Size, Span};

/// A second, in milliseconds.
const SECOND: u64 = 1_000;

/// Settings of `web_search`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchConfig {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Where SearXNG is; empty for none.
    #[serde(with = "Url")]
    pub searxng_url: Option<String>,
    /// Engines to ask SearXNG for; empty for its own choice.
    pub engines: Vec<String>,
    /// Key of the Brave Search API; empty for `BRAVE_API_KEY` of the environment, else none.
    #[serde(with = "Secret")]
    pub brave_api_key: Option<SecretString>,
    /// The whole endpoint of the Brave Search API.
    pub brave_url: String,
    /// How long the answer to a query is kept, up to 24h; `0s` for not at all.
    #[serde(with = "Span::<0, DAY>")]
    pub cache_ttl: Duration,
    /// When the user is asked before a search, at every trust level: `never`, `new_words` (where the
    /// query has words that the user did not write in this conversation) or `always`.
    #[serde(deserialize_with = "word")]
    pub ask: AskSearch,
    /// Searches of one exchange; 0 to 1000. Each further one is asked for, at every trust level.
    #[serde(with = "Number::<0, 1000>")]
    pub limit: usize,
}

/// When the user is asked before a search, whatever the trust level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Settings of `web_fetch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebFetchConfig {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Hosts whose pages are read without a question: names, `*.example.org` for all below, addresses. So are those of
    /// `tools.bash.hosts`, less package managers. Others are asked for one by one, once in a conversation.
    pub hosts: Vec<HostEntry>,
    /// Servers that may be on this machine or in a private network, as `HOST:PORT` and as a page's address names them:
    /// `"wiki.example.org:443"`, `"127.0.0.1:8080"`. No other page is read from there. They are asked for as others are. Never
    /// read is from where clouds hand out keys.
    pub allow_private: Vec<HostPort>,
    /// Whether a page is left that the `robots.txt` of its site keeps programs from.
    pub robots: bool,
    /// How long a call may take, redirects included, questions to the user not; 1s to 10m. `tools.timeout` holds, too.
    #[serde(with = "Span::<SECOND, { 600 * SECOND }>")]
    pub timeout: Duration,
    /// Most bytes that are read of a page, unpacked; 1KiB to 64MiB.
    #[serde(with = "Size::<KIB, { 64 * MIB }>")]
    pub max_bytes: usize,
    /// Most characters of a page in one answer; 1000 to 1000000. A call without `maxChars` gets 20000 at most.
    #[serde(with = "Number::<1000, 1_000_000>")]
    pub max_chars: usize,
    /// How long a page is kept, to be read on; up to 24h, `0s` for not at all.
    #[serde(with = "Span::<0, DAY>")]
    pub cache_ttl: Duration,
    /// What the tool says it is to sites; empty for `outrigger/` and the version.
    pub user_agent: String,
}

//! Sections that are in force as they are read.
//!
//! The doc comments are the text of `docs/configuration.md`; defaults are in `config/default.toml`.

mod auth;
mod bash;
mod budget;
mod client;
mod cluster;
mod compaction;
mod hooks;
mod mcp;
mod project;
mod sandbox;
mod store;
mod tasks;
mod telemetry;
mod web;
mod webhooks;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Deserializer, Error, IntoDeserializer};
use serde::{Deserialize, Serialize};

use super::check;
use crate::audit::{Contents, MAX_KEPT};
use crate::message::TrustLevel;
use crate::permission::{ApprovalPolicy, Remember};
use crate::telemetry::LogFormat;
use crate::units::{DAY, KIB, MIB, Number, Size, Span};

pub(crate) use auth::{AuthSettings, HeaderSettings, JwtSettings};
pub use bash::{BashConfig, BashLimits, ExposePolicy, GitPolicy, SandboxPolicy};
pub(crate) use budget::Dollars;
pub use budget::{BudgetConfig, OnReach, ProviderBudget, Unpriced};
pub use client::{ClientToolsConfig, SkipApproval};
pub(crate) use cluster::ClusterSettings;
pub use compaction::{CompactionConfig, NativeCompaction};
pub use hooks::{HookConfig, HookPoint, HookTarget, OnFailure};
pub(crate) use mcp::SignInSettings;
pub use mcp::{HttpServer, SignInConfig, TokenStore};
pub use project::InstructionsTrust;
pub(crate) use project::ProjectConfig;
pub(crate) use sandbox::SandboxSettings;
pub(crate) use store::StoreSettings;
pub use store::StoreSync;
pub use tasks::{EXPLORE, TasksConfig};
pub(crate) use telemetry::{OtlpSettings, TelemetrySettings};
pub use web::{AskSearch, WebFetchConfig, WebSearchConfig};
pub use webhooks::{WebhookEvent, WebhooksConfig};

/// Tokens that may be kept free for the last answer.
pub(super) type Reserve = Number<0, 1_000_000>;
/// Turns that an exchange may have.
pub(super) type Turns = Number<1, 200>;

/// Where and to whom the daemon listens.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// IP address to listen on, or `localhost`. Anything but loopback needs a token that was given.
    #[serde(deserialize_with = "address")]
    #[schemars(with = "String")]
    pub host: IpAddr,
    /// TCP port, 0 to 65535; 0 takes a free one.
    #[serde(with = "Number::<0, 65_535>")]
    pub port: u16,
    /// A token whose sockets may at most approve (`?role=approver`): look, answer questions and stop what runs. Empty for none.
    #[serde(with = "Secret")]
    pub approver_token: Option<SecretString>,
    /// A token whose sockets may only look (`?role=observer`). Empty for none.
    #[serde(with = "Secret")]
    pub observer_token: Option<SecretString>,
    /// Browser origins accepted besides loopback ones, literally as browsers send them:
    /// `https://example.org`, `app://x`, `file://`, `null`.
    pub allowed_origins: Vec<String>,
    /// Host names accepted besides loopback ones, without port.
    pub allowed_hosts: Vec<String>,
    /// Largest frame from a client; 1KiB to 256MiB.
    #[serde(with = "Size::<KIB, { 256 * MIB }>")]
    pub max_frame_bytes: usize,
    /// Most sockets open at once; 1 to 50000.
    #[serde(with = "Number::<1, 50_000>")]
    pub max_connections: usize,
    /// Most sessions at once, of all users together, those included that wait for a socket to come back; 1 to 50000. Ones that
    /// nobody used and whose socket is gone make room.
    #[serde(with = "Number::<1, 50_000>")]
    pub max_sessions: usize,
    /// Whether `GET /` serves the console page. The default holds on loopback; anywhere else it is
    /// served only where this is set.
    pub console: bool,
}

impl ServerConfig {
    /// Returns what to listen on; port 0 takes a free one.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

/// What a session keeps.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// How long a session goes on without a socket; up to 24h. What is kept of it can be resumed after that too
    /// (`store.enabled`).
    #[serde(with = "Span::<0, DAY>")]
    pub resume_grace: Duration,
    /// What becomes of exchanges then: `cancel` ends them; `continue` lets them run to their end, or to the next question
    /// to the user.
    #[serde(deserialize_with = "word")]
    pub detached: Detached,
    /// Size of the events kept for a resume; 64KiB to 1GiB.
    #[serde(with = "Size::<{ 64 * KIB }, { 1024 * MIB }>")]
    pub buffer_bytes: usize,
    /// The model that gives each new session a title, as `PROVIDER/MODEL`, e.g. `anthropic/claude-haiku-4-5`; empty for the first
    /// words of the first message. It is sent the beginning of that message and of its answer, once, when the first exchange has
    /// ended well.
    pub title_model: String,
    /// Whether clients may add workflows of their own, until the daemon ends (`workflow:put`).
    pub allow_workflow_put: bool,
    /// Keys of `[chat]`, e.g. `chat.trust_level`, that no client may loosen; `approval.policy`; `tools.web_search` for where and by what key the web is searched; `providers` for keys,
    /// addresses and the choice of a provider; `budget.exchange`, `budget.conversation` and `budget.session` for those caps.
    pub locked: Vec<String>,
}

/// What becomes of exchanges whose client is gone for longer than `session.resume_grace`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detached {
    /// They end.
    #[default]
    Cancel,
    /// They run to their end, or to the next question to the user.
    Continue,
}

impl SessionConfig {
    /// Whether a client may not change a key of `[chat]`. `providers` locks the choice of a provider too.
    pub fn is_locked(&self, key: &str) -> bool {
        let is_named = |name: &str| self.locked.iter().any(|locked| locked == name);
        is_named(key) || (key == "chat.provider" && self.locks_providers())
    }

    /// Returns the provider and the model that give sessions a title; `None` where their first words do.
    pub fn title_model(&self) -> Option<(&str, &str)> {
        self.title_model.split_once('/')
    }

    /// Whether a client may neither configure a provider nor choose one.
    pub fn locks_providers(&self) -> bool {
        self.locked.iter().any(|locked| locked == check::PROVIDERS)
    }
}

/// Defaults of conversations.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatConfig {
    /// The default provider instance; empty for the first one that is configured (in the order of
    /// the file, then of the presets), else `scripted`.
    pub provider: String,
    /// The default model; empty for the provider's.
    pub model: String,
    /// How much is done without asking: `supervised`, `guided` or `autonomous`.
    #[serde(deserialize_with = "word")]
    pub trust_level: TrustLevel,
    /// The default workflow; empty for none.
    pub workflow: String,
    /// The system prompt; empty for the built-in one.
    pub system_prompt: String,
    /// Most turns of one exchange; 1 to 200.
    #[serde(with = "Turns")]
    pub max_turns: u32,
    /// Tokens of context kept free for the last answer; up to 1000000.
    #[serde(with = "Reserve")]
    pub context_reserve: u64,
    /// Longest exchange that offers no tools; up to 24h. Waiting for the user does not count.
    #[serde(with = "Span::<1, DAY>")]
    pub timeout_plain: Duration,
    /// Longest exchange with tools; up to 24h. Waiting for the user does not count.
    #[serde(with = "Span::<1, DAY>")]
    pub timeout_tools: Duration,
    /// Where an Ollama is looked for that answers while no provider is configured and `provider` is
    /// empty: at the start, and before each message as long as there is none. Empty for nowhere.
    #[serde(with = "Url")]
    pub detect_ollama: Option<String>,
}

/// When and how the user is asked.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalConfig {
    /// How long an approval stays open, up to 24h; `0s` for ever.
    #[serde(deserialize_with = "unless_zero")]
    #[schemars(with = "Span<0, DAY>")]
    pub timeout: Option<Duration>,
    /// How long clients may keep one open while somebody is at it (`chat:tool-extend`), up to 24h; `0s` for no longer
    /// than `timeout`.
    #[serde(with = "Span::<0, DAY>")]
    pub max_timeout: Duration,
    /// What becomes of calls that the user would be asked about: `ask`, `auto_approve_safe` (commands that are proven to read
    /// only run), `deny_all` (they are refused) or `allow_all` (they run). A client may choose another one for its session.
    #[serde(deserialize_with = "word")]
    pub policy: ApprovalPolicy,
    /// Whether bash commands that are proven read-only run without asking, as with `auto_approve_safe`. It counts where
    /// `policy` is `ask` and no client chose another one, `ask` either.
    pub auto_approve_safe_commands: bool,
    /// How far an answer may reach that is remembered: `once`, `conversation`, `session`, `project` or `always`. One that
    /// is to reach further reaches so far. Approvals that were given when more was allowed do not count; denials do.
    #[serde(deserialize_with = "word")]
    pub remember: Remember,
    /// What happens where the user would be asked: `ask`, or `deny` where nobody can answer.
    #[serde(deserialize_with = "word")]
    pub unattended: Unattended,
}

/// What happens where a user would be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unattended {
    /// The user is asked.
    #[default]
    Ask,
    /// Nobody can answer: the call is denied at once.
    Deny,
}

/// Settings of `file_read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileReadConfig {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// Size of one answer; 1KiB to 64MiB.
    #[serde(with = "Size::<KIB, { 64 * MIB }>")]
    pub max_bytes: usize,
    /// Extensions that may be read, without dot; empty for all.
    pub allowed_extensions: Vec<String>,
}

/// Logging, to stderr.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// A filter of `tracing`, e.g. `info` or `outrigger=debug`. `RUST_LOG` wins.
    pub level: String,
    /// `human`, `json`, or `auto`: human on a terminal, JSON otherwise.
    #[serde(deserialize_with = "word")]
    pub format: LogFormat,
}

/// The audit log: what was called and what came of it, by digests or with contents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// Its file, outside the project and its central storage; empty for no audit log.
    pub path: PathBuf,
    /// What of contents is in it: `hash` for digests alone, `command` for the command line or the path too, `full` for the
    /// first 4 KiB of input and result too. Known secrets, and what looks like one, are taken out; what else a command or
    /// a file says is then to be read in it.
    #[serde(deserialize_with = "word")]
    pub content: Contents,
    /// Size at which the file becomes `FILE.1` and a new one is begun; 64KiB to 1GiB.
    #[serde(with = "Size::<{ 64 * KIB }, { 1024 * MIB }>")]
    pub max_bytes: u64,
    /// How many older files are kept; 1 to 100.
    #[serde(with = "Number::<1, MAX_KEPT>")]
    pub keep: u32,
}

/// A text that is never shown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String", extend("format" = "secret"))]
pub(crate) struct Secret(pub(crate) SecretString);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(SecretString::from(text.trim()))
    }
}

impl Secret {
    /// Reads the secret, `None` where it is empty, for serde's `with`.
    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
        let Self(secret) = <Self as Deserialize>::deserialize(from)?;
        Ok(Some(secret).filter(|secret| !secret.expose_secret().is_empty()))
    }
}

/// A base URL without a slash at its end.
#[derive(JsonSchema)]
#[schemars(inline, with = "String")]
enum Url {}

impl Url {
    /// Reads the URL, `None` where it is empty, for serde's `with`.
    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
        let text = String::deserialize(from)?;
        let url = text.trim().trim_end_matches('/');
        Ok((!url.is_empty()).then(|| url.to_owned()))
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<IpAddr, D::Error> {
    let host = String::deserialize(from)?;
    let host = match host.trim() {
        "localhost" => "127.0.0.1",
        host => host.trim_start_matches('[').trim_end_matches(']'),
    };
    host.parse().map_err(|_| {
        D::Error::custom("expected an IP address, such as 127.0.0.1, ::1 or 0.0.0.0, or localhost")
    })
}

fn unless_zero<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Some(Span::<0, DAY>::deserialize(from)?).filter(|span| !span.is_zero()))
}

/// Reads a word of an enum, so that anything else is said to be no text.
pub(super) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::deserialize(text.into_deserializer())
}

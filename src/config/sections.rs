//! Sections that are in force as they are read.
//!
//! The doc comments are the text of `docs/configuration.md`; defaults are in `config/default.toml`.

mod auth;
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
use super::hosts::{HostEntry, PortList};
use crate::audit::{Contents, MAX_KEPT};
use crate::message::TrustLevel;
use crate::permission::{ApprovalPolicy, NetworkPolicy, Remember};
use crate::sandbox::Limits;
use crate::sandbox::paths::Reach;
use crate::telemetry::LogFormat;
use crate::units::{DAY, KIB, MIB, Number, Percent, Size, Span};

pub(crate) use auth::{AuthSettings, HeaderSettings, JwtSettings};
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

/// Settings of `bash`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashConfig {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// How long a command may run that asks for nothing else; up to `max_timeout`. One in the background has no limit but
    /// its own.
    #[serde(with = "Span::<1, DAY>")]
    pub timeout: Duration,
    /// The longest a command may ask for; up to 24h.
    #[serde(with = "Span::<1, DAY>")]
    pub max_timeout: Duration,
    /// Whether commands may use the network: `ask` (the command asks for it and the user decides),
    /// `on` or `off`.
    #[serde(deserialize_with = "word")]
    pub network: NetworkPolicy,
    /// TCP ports of other machines that commands with the network may connect to: a list, or `"any"`. Where the sandbox is
    /// `full`, a result names the ports of hosts that its command was refused.
    pub ports: PortList,
    /// With `network = "ask"` and a sandbox that is `full` (on macOS `unverified`): hosts that each command may connect to. Others are asked for one
    /// by one, once in a conversation, in the place of the question for the network as a whole. Names, `*.example.org` for all
    /// below, addresses, and `npm`, `pnpm`, `yarn`, `pip`, `uv`, `cargo`, `go`, `maven` or `gradle` for the hosts that the user's own settings of it
    /// name, which `outrigger config show` lists; commands are told of these registries. A name must lead to a public address. Some registries serve
    /// packages from a host that no setting names, so the user is asked for it, unless it is listed, too: `["pip", "files.pythonhosted.org"]` for PyPI, `["cargo", "static.crates.io"]` for crates.io, `["maven", "repo.maven.apache.org"]` for Maven. Empty: no command has the network unless it asks for it.
    pub hosts: Vec<HostEntry>,
    /// `auto` for the strongest sandbox that works here, `off` for none. On macOS and Windows `auto` is none, and `unverified`
    /// uses what was built for these systems and never tried on a real one; on Linux it is the same as `auto`.
    #[serde(deserialize_with = "word")]
    pub sandbox: SandboxPolicy,
    /// What commands may do to git repositories, where the sandbox is `full`: `read`, or `write` for all but settings
    /// and hooks. The tool `git` may always write.
    #[serde(deserialize_with = "word")]
    pub git: GitPolicy,
    /// Whether commands that may change files run side by side, and beside what else changes files. Where not, they run
    /// one after the other, in all conversations of a project; what only reads never waits. So do the tools of
    /// `[tools.custom]`. Calls of `git` that change something always exclude each other.
    pub parallel: bool,
    /// Most of what is in memory where the sandbox is `full`: `/dev/shm` of a command, and as much again each for the
    /// temporary files and the home of `git` and of MCP servers; 1MiB to 64GiB.
    #[serde(with = "Size::<MIB, { 64 * 1024 * MIB }>")]
    pub tmp_size: usize,
    /// Further folders that commands may read, from the root on or `~/…`; not by the tools for files.
    pub read_only: Vec<PathBuf>,
    /// The same, to be changed too. Refused at the start: folders of the system, the home and those in it whose names begin
    /// with a dot, what is reached through a link, and what the daemon itself keeps.
    pub read_write: Vec<PathBuf>,
    /// Caches of your package managers that commands see below their home where the sandbox is `full`: `npm`, `cargo`,
    /// `go`, `pip`, `uv`, `maven`, `gradle`, `pnpm`, `yarn`. What a command writes there is its conversation's; yours do not
    /// change. They may hold packages of private registries.
    pub caches: Vec<String>,
    /// Whether a client may have this machine's loopback lead to a port on which a command in the background listens, for
    /// the user to look at it: `ask` (a client may request it with `tool:expose`; no further question is put) or `off`.
    #[serde(deserialize_with = "word")]
    pub expose: ExposePolicy,
    /// What one command may take: of `bash`, of `git`, and of a tool of your own.
    pub limits: BashLimits,
}

/// What one command may take. MCP servers have the defaults.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashLimits {
    /// Memory of all its processes together, by a control group; 16MiB to 16384GiB. Where there is none, the private memory
    /// of each of them. Empty: three quarters of the machine's, and 3GiB each.
    #[serde(deserialize_with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>::optional")]
    #[schemars(with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>")]
    pub memory: Option<u64>,
    /// Processor time of all its processes together, in percent of one processor, by a control group; `1%` to `100000%`.
    /// Empty: all there is.
    #[serde(deserialize_with = "Percent::<1, 100_000>::optional")]
    #[schemars(with = "Percent::<1, 100_000>")]
    pub cpu: Option<u64>,
    /// Processes and threads together; 16 to 1000000. They bind root by a control group only.
    #[serde(with = "Number::<16, 1_000_000>")]
    pub processes: u64,
    /// Largest file that it may write; 1MiB to 16384GiB.
    #[serde(with = "Size::<MIB, { 16384 * 1024 * MIB }>")]
    pub file_size: u64,
    /// What a conversation's home, temporary files and additions to caches hold together; 1MiB to 16384GiB. A command that
    /// makes them hold more is ended.
    #[serde(with = "Size::<MIB, { 16384 * 1024 * MIB }>")]
    pub disk: u64,
}

impl BashConfig {
    /// Returns whether every command has the network.
    pub fn is_online(&self) -> bool {
        self.network == NetworkPolicy::On
    }

    /// Returns the further folders, each with what commands may do in it.
    pub fn further(&self) -> Vec<(PathBuf, Reach)> {
        let read_only = self.read_only.iter().map(|it| (it, Reach::ReadOnly));
        let read_write = self.read_write.iter().map(|it| (it, Reach::ReadWrite));
        let all = read_only.chain(read_write);
        all.map(|(folder, reach)| (folder.clone(), reach)).collect()
    }
}

impl BashLimits {
    /// Returns them as the sandbox takes them.
    pub fn of_commands(&self) -> Limits {
        let default = Limits::default();
        Limits {
            memory: self.memory,
            data: self.memory.or(default.data),
            cpu_percent: self.cpu,
            processes: Some(self.processes),
            file_size: Some(self.file_size),
            ..default
        }
    }
}

/// Whether ports of commands may be reached from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExposePolicy {
    /// A client may ask for it.
    #[default]
    Ask,
    /// Never.
    Off,
}

/// What commands of `bash` may do to git repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GitPolicy {
    /// They read them.
    #[default]
    Read,
    /// They change them, but not their settings and hooks.
    Write,
}

/// Whether commands run in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPolicy {
    /// In the strongest mode that works here.
    #[default]
    Auto,
    /// Likewise, and on macOS and Windows in what nobody tried there yet.
    Unverified,
    /// Without any layer; processes are still controlled.
    Off,
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

//! The configuration as the rest of the daemon may rely on it: checked, complete, with types for ranges.
//!
//! Where values come from (defaults, file, environment, flags), how they are checked and how
//! `config show` prints them is in the submodules. Nothing outside this module reads the environment.

mod allowed;
mod auth;
pub(crate) mod central;
mod check;
mod cluster;
mod current;
mod error;
mod file;
pub(crate) mod format;
mod hosts;
mod keys;
mod layers;
mod load;
mod mcp;
mod merged;
mod named_value;
mod origin;
pub mod presets;
mod reading;
mod sections;
mod settings;
mod show;
pub mod template;
#[cfg(test)]
mod testing;
mod typed;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_store::Limits;
use secrecy::{ExposeSecret, SecretString};

use crate::sandbox::IdRange;

pub use self::allowed::AllowedFolders;
pub use self::auth::{AuthConfig, HeaderConfig, JwtConfig, KeySource, UserLimits};
pub use self::check::added_server;
pub(crate) use self::check::{unknown_tool, workflow_name_problem};
pub use self::cluster::ClusterConfig;
pub use self::current::{Current, is_live};
pub use self::error::{ConfigError, ConfigErrors, HINT};
pub use self::hosts::{
    HostEntry, HostPort, MANAGER_SETTINGS, Managers, PackageManager, PortList, Registries,
    Variable, registries, url_host,
};
pub use self::load::{Environment, Loaded, Override, Sources, load};
pub use self::mcp::{
    McpConfig, McpLogPolicy, McpServerConfig, McpTransport, SamplingPolicy, StdioServer,
};
pub use self::named_value::NamedValue;
pub use self::origin::Origin;
pub use self::reading::{KeyState, Reading, Readings, concerns};
pub use self::sections::{
    ApprovalConfig, AskSearch, AuditConfig, BashConfig, BashLimits, BudgetConfig, ChatConfig,
    ClientToolsConfig, CompactionConfig, Detached, EXPLORE, ExposePolicy, FileReadConfig,
    GitPolicy, HookConfig, HookPoint, HookTarget, HttpServer, InstructionsTrust, LogConfig,
    NativeCompaction, OnFailure, OnReach, ProviderBudget, SandboxPolicy, ServerConfig,
    SessionConfig, SignInConfig, SkipApproval, StoreSync, TasksConfig, TokenStore, Unattended,
    Unpriced, WebFetchConfig, WebSearchConfig, WebhookEvent, WebhooksConfig,
};
pub use self::settings::schema;
pub use self::show::{Shown, Values, json, text};
#[cfg(test)]
pub(crate) use self::testing::for_tests;
pub(crate) use self::variables::variable_of_key;
use crate::message::{OnViolation, Pricing};
pub use crate::permission::{ApprovalPolicy, NetworkPolicy};
pub use crate::telemetry::LogFormat;

/// The folder beside central storages in which MCP servers have one each.
pub(crate) const MCP_STATES: &str = ".mcp";

/// Everything that is configured, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where and to whom the daemon listens.
    pub server: ServerConfig,
    /// Who else is let in, and as whom.
    pub auth: AuthConfig,
    /// The folders that models work in.
    pub project: Projects,
    /// What a session keeps.
    pub session: SessionConfig,
    /// Defaults of conversations.
    pub chat: ChatConfig,
    /// How conversations go on that do not fit their model's window.
    pub compaction: CompactionConfig,
    /// What models may hand to others.
    pub tasks: TasksConfig,
    /// When and how the user is asked.
    pub approval: ApprovalConfig,
    /// How much may be spent.
    pub budget: BudgetConfig,
    /// Provider instances, in the order of the configuration.
    pub providers: Vec<ProviderConfig>,
    /// Limits and settings of tools.
    pub tools: ToolsConfig,
    /// MCP servers by name.
    pub mcp: McpConfig,
    /// Workflows by name.
    pub workflows: BTreeMap<String, crate::permission::Workflow>,
    /// Logging.
    pub log: LogConfig,
    /// The audit log; `None` for no audit log.
    pub audit: Option<AuditConfig>,
    /// Where events are sent; `None` for nowhere.
    pub webhooks: Option<WebhooksConfig>,
    /// What is asked at certain points, in this order.
    pub hooks: Vec<HookConfig>,
    /// Where sessions are kept; `None` where they are not.
    pub store: Option<StoreConfig>,
    /// Which of several daemons on one database it is; `None` where it is none of several.
    pub cluster: Option<ClusterConfig>,
    /// Numbers of users of the system, of which each user gets one for its commands; `None` where all are the daemon's.
    pub user_ids: Option<IdRange>,
    /// A collector of OpenTelemetry; `None` where nothing is sent.
    pub otlp: Option<OtlpConfig>,
    /// How long running exchanges may take to end at shutdown.
    pub shutdown_grace: Duration,
    /// Secrets in the daemon's own environment, whether they are used or something else outranks them.
    pub environment_secrets: Vec<SecretString>,
}

impl Config {
    /// Returns the ports of this machine's loopback at which servers are named: of models, of searches, of MCP, of sessions.
    pub fn local_ports(&self) -> BTreeSet<u16> {
        let providers = self.providers.iter().map(|provider| &provider.base_url);
        let search = self.tools.web_search.searxng_url.iter();
        let servers = self.mcp.servers.values();
        let servers = servers.filter_map(|server| match &server.transport {
            McpTransport::Http(server) => Some(&server.url),
            McpTransport::Stdio(_) => None,
        });
        let named = providers.chain(search).chain(&self.chat.detect_ollama);
        let ports = named.chain(servers).filter_map(|url| local_port(url, None));
        let database = self.store.iter().filter_map(|it| it.place.database());
        let database =
            database.filter_map(|url| local_port(url.expose_secret(), Some(POSTGRES_PORT)));
        let ports = ports.chain(database);
        let private = self.tools.web_fetch.allow_private.iter();
        let private = private.filter(|server| server.is_local());
        ports.chain(private.map(|server| server.port)).collect()
    }

    /// Lists every secret that is known, so that logs and tool results can be kept free of them.
    ///
    /// Of headers and of MCP servers' variables what is one by its name, its form or the operator's word; of the
    /// daemon's own environment, used or not, what is one by its name or its vendor's form.
    pub fn secrets(&self) -> Vec<SecretString> {
        let keys = self.providers.iter().filter_map(|p| p.api_key.as_ref());
        let keys = keys.chain(&self.tools.web_search.brave_api_key);
        let webhooks = self.webhooks.iter().filter_map(|it| it.secret.as_ref());
        let database = self.store.iter().filter_map(|it| it.place.database());
        let cluster = self.cluster.iter().filter_map(|it| it.secret.as_ref());
        let keys = keys.chain(webhooks).chain(database).chain(cluster);
        let server = &self.server;
        let keys = keys
            .chain(&server.approver_token)
            .chain(&server.observer_token);
        let keys = keys.flat_map(|key| NamedValue::from(key.expose_secret()).secrets("api_key"));
        let headers = self.providers.iter().map(|provider| &provider.headers);
        let headers = headers
            .flatten()
            .flat_map(|(name, value)| value.secrets(name));
        let otlp = self.otlp.iter().flat_map(|it| &it.headers);
        let otlp = otlp.flat_map(|(name, value)| value.secrets(name));
        let servers = self.mcp.servers.values();
        // An endpoint of a hook has its key in its address.
        let hooks = self.hooks.iter().filter_map(HookConfig::endpoint);
        let hooks = hooks.flat_map(|url| NamedValue::from(url).secrets("url"));
        keys.chain(headers)
            .chain(hooks)
            .chain(otlp)
            .chain(servers.flat_map(McpServerConfig::secrets))
            .chain(self.environment_secrets.iter().cloned())
            .collect()
    }
}

/// The port of PostgreSQL where an address names none.
const POSTGRES_PORT: u16 = 5432;

/// Returns the port of a server that runs on this machine; `default` where its address names none, and its scheme has none.
fn local_port(url: &str, default: Option<u16>) -> Option<u16> {
    let url = reqwest::Url::parse(url).ok()?;
    let port = url.port_or_known_default().or(default);
    port.filter(|_| crate::http::is_loopback(&url))
}

/// A collector of OpenTelemetry.
#[derive(Clone, Debug)]
pub struct OtlpConfig {
    /// Its address, without a slash at its end and without `/v1/traces`.
    pub endpoint: String,
    /// Headers of each request.
    pub headers: BTreeMap<String, NamedValue>,
    /// Whether spans are sent.
    pub traces: bool,
    /// Whether figures are sent.
    pub metrics: bool,
    /// How often figures are sent.
    pub interval: Duration,
    /// What the daemon is called there.
    pub service: String,
    /// What else is said of it.
    pub resource: BTreeMap<String, String>,
}

/// Where sessions are kept.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The file, or the database.
    pub place: StorePlace,
    /// How sure it is that what was acknowledged is kept.
    pub sync: StoreSync,
    /// Whether sends that waited when the daemon ended run as soon as their session is resumed.
    pub resume_queue: bool,
    /// How much is kept.
    pub limits: Limits,
    /// Whether the operator named the file; else it is the one that every daemon of the user would have.
    pub is_named: bool,
}

/// What sessions are kept in.
#[derive(Clone, Debug)]
pub enum StorePlace {
    /// A file.
    File(PathBuf),
    /// A database, by its address.
    Database(SecretString),
}

impl StorePlace {
    /// Returns the file; `None` where it is a database.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Database(_) => None,
        }
    }

    /// Returns the address of the database, which is a secret; `None` where it is a file.
    pub fn database(&self) -> Option<&SecretString> {
        match self {
            Self::File(_) => None,
            Self::Database(url) => Some(url),
        }
    }
}

/// The folders that models work in.
#[derive(Clone, Debug)]
pub struct Projects {
    /// The daemon's own project. An error says why there is none, and what to do.
    pub own: Result<Project, String>,
    /// The folders that a session may name as its project instead.
    pub allowed: AllowedFolders,
    /// The folder in which each of those has its central storage; `None` where there is no place for it.
    pub storage: Option<PathBuf>,
    /// Files with standing instructions.
    pub instructions: Instructions,
}

/// Files with standing instructions for the model.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// Their names: of each folder the first one counts.
    pub names: Vec<String>,
    /// Folders of a project with skills.
    pub skills: Vec<String>,
    /// Whether those of a project are read.
    pub trust: InstructionsTrust,
    /// The folder with the user's own; `None` where there is no such folder, or it lies in the project.
    pub user: Option<PathBuf>,
}

impl Projects {
    /// Returns whether a session may work in a folder, by its text alone: in the daemon's own project, or in one that is
    /// allowed.
    pub fn may_be(&self, folder: &str) -> bool {
        let folder = Path::new(folder);
        self.own.as_ref().is_ok_and(|own| own.root == folder) || self.allowed.contains(folder)
    }
}

/// A folder that a model works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The folder, absolute and without links.
    pub root: PathBuf,
    /// Its name: one part of a path.
    pub name: String,
    /// Its central storage, which may not be there yet.
    pub central: PathBuf,
}

/// One provider instance.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The name under `[providers]`.
    pub id: String,
    /// Which wire format it speaks.
    pub kind: ProviderKind,
    /// The preset its base URL and quirks come from, e.g. `deepseek`; the kind's own name where none.
    pub preset: String,
    /// Base URL without a trailing slash.
    pub base_url: String,
    /// The key; `None` where none is set or needed.
    pub api_key: Option<SecretString>,
    /// Whether it works without a key (local servers, scripts).
    pub key_optional: bool,
    /// The default model; empty to take the first that the endpoint lists.
    pub model: String,
    /// Extra headers for each request.
    pub headers: BTreeMap<String, NamedValue>,
    /// Longest wait for the response headers.
    pub timeout_first_byte: Duration,
    /// Longest silence within a response.
    pub timeout_idle: Duration,
    /// Most retries of a turn; 0 to 10.
    pub max_retries: u32,
    /// How often a turn that broke off after output was sent on is run again; 0 to 3.
    pub restart_after_partial: u32,
    /// Ollama's context size in tokens.
    pub num_ctx: Option<u64>,
    /// Scripted: a script file or directory; the built-in demonstration where absent.
    pub script: Option<PathBuf>,
    /// Extra certificate authority, a PEM file.
    pub ca_file: Option<PathBuf>,
    /// What its models cost, by the operator's word.
    pub pricing: Option<Pricing>,
    /// How fast it may be asked.
    pub rates: RateLimits,
    /// Directory that each exchange with the provider is recorded into (`--record`).
    pub record: Option<PathBuf>,
}

/// How fast a provider instance may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Most requests at once; `None` for no limit.
    pub parallel: Option<usize>,
    /// Most requests a minute; `None` for no limit.
    pub requests_per_minute: Option<u64>,
    /// Most tokens a minute, of input and output; `None` for no limit.
    pub tokens_per_minute: Option<u64>,
}

/// Which wire format a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses, stateless.
    Responses,
    /// OpenAI Chat Completions and everything compatible.
    Chat,
    /// Ollama `/api/chat`.
    Ollama,
    /// A script that is compiled in or read from a file.
    Scripted,
}

/// Limits and settings of tools.
#[derive(Clone, Debug)]
pub struct ToolsConfig {
    /// Most executions of one conversation at once.
    pub max_concurrent: usize,
    /// What becomes of an exchange in which a call's path leaves the roots or is denied.
    pub on_violation: OnViolation,
    /// Longest run of a tool that has no limit of its own.
    pub timeout: Duration,
    /// Bytes of output given to the model; head and tail of what is longer.
    pub output_cap: usize,
    /// `file_read`.
    pub file_read: FileReadConfig,
    /// `bash`.
    pub bash: BashConfig,
    /// `web_search`.
    pub web_search: WebSearchConfig,
    /// `web_fetch`.
    pub web_fetch: WebFetchConfig,
    /// Tools that clients run.
    pub client: ClientToolsConfig,
    /// Names of core tools that are switched off.
    pub disabled: Vec<String>,
    /// Tools of the operator's own.
    pub custom: Vec<CustomToolConfig>,
}

/// A tool of the operator's own.
#[derive(Clone, Debug)]
pub struct CustomToolConfig {
    /// The name that the model calls it by.
    pub name: String,
    /// What the model reads of it.
    pub description: String,
    /// JSON schema of its inputs, of type `object`.
    pub input_schema: serde_json::Value,
    /// What is run.
    pub command: CustomCommand,
    /// How much harm a call may do, by the operator's word.
    pub danger: crate::message::DangerLevel,
    /// Longest run of one call; that of tools in general where absent.
    pub timeout: Option<Duration>,
    /// Whether it may use the network.
    pub network: bool,
}

/// What a tool of the operator's own runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomCommand {
    /// A program, without a shell.
    Program {
        /// The program.
        program: String,
        /// Its arguments, in which `{name}` stands for an input.
        args: Vec<String>,
    },
    /// A line for a shell, which finds the inputs in variables.
    Shell(String),
}

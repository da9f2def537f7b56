//! The configuration as it is read: one struct per section, in the words of the file.
//!
//! Nothing is checked here but names, types and ranges; paths and references are the business of
//! `check`. What is in force as it is read is in `sections`. The doc comments are the text of
//! `docs/configuration.md`. Defaults are not here but in `config/default.toml`; keys that have none
//! there are optional.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, IntoDeserializer};

use super::named_value::NamedValue;
use super::sections::{
    AuthSettings, ClusterSettings, Dollars, ProjectConfig, Reserve, SandboxSettings, Secret,
    SignInSettings, StoreSettings, TelemetrySettings, Turns, word,
};
use super::{
    ApprovalConfig, AuditConfig, BashConfig, BudgetConfig, ChatConfig, ClientToolsConfig,
    CompactionConfig, FileReadConfig, HookPoint, LogConfig, McpLogPolicy, OnFailure,
    SamplingPolicy, SandboxPolicy, ServerConfig, SessionConfig, TasksConfig, TokenStore,
    WebFetchConfig, WebSearchConfig, WebhooksConfig,
};
use crate::message::{DangerLevel, Money, OnViolation, TrustLevel};
use crate::units::{DAY, KIB, MIB, Number, Share, Size, Span, Timeout};

/// Milliseconds of an hour: the longest wait for a server.
const HOUR: u64 = 60 * 60 * 1000;

/// The longest time of a hook, in milliseconds.
const HOOK: u64 = 5 * 60 * 1000;

/// Everything that can be set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where and to whom the daemon listens.
    pub(crate) server: ServerConfig,
    /// Users beside the one who has the daemon's own token, each with sessions of its own. See [users.md](users.md).
    pub(crate) auth: AuthSettings,
    /// The folder the model works in.
    pub(crate) project: ProjectConfig,
    /// What a session keeps.
    pub(crate) session: SessionConfig,
    /// Where sessions are kept, so that they outlive the daemon.
    pub(crate) store: StoreSettings,
    /// Several daemons on one database, behind a proxy. Each session is at one of them. See [store.md](store.md).
    pub(crate) cluster: ClusterSettings,
    /// Defaults of conversations.
    pub(crate) chat: ChatConfig,
    /// How conversations go on that do not fit their model's window any more: the model is shown less of them, and nothing is
    /// lost.
    pub(crate) compaction: CompactionConfig,
    /// Tasks: pieces of work that a model hands to another one, by the tool `task`.
    pub(crate) tasks: TasksConfig,
    /// When and how the user is asked.
    pub(crate) approval: ApprovalConfig,
    /// How much may be spent.
    pub(crate) budget: BudgetConfig,
    /// Provider instances by name; several of one kind are fine.
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// Limits and settings of tools.
    pub(crate) tools: ToolsSettings,
    /// What keeps commands of different users apart.
    pub(crate) sandbox: SandboxSettings,
    /// MCP servers.
    pub(crate) mcp: McpSettings,
    /// Workflows by name: a prompt, a model, a trust level, limits and permissions.
    pub(crate) workflows: BTreeMap<String, WorkflowSettings>,
    /// Logging, to stderr.
    pub(crate) log: LogConfig,
    /// The audit log: one line of JSON per tool call.
    pub(crate) audit: AuditConfig,
    /// Another program that is told by HTTP how sessions stand.
    pub(crate) webhooks: WebhooksConfig,
    /// Programs and endpoints of yours that are asked at certain points, by name.
    pub(crate) hooks: BTreeMap<String, HookSettings>,
    /// What is sent to others about how the daemon does.
    pub(crate) telemetry: TelemetrySettings,
    /// How the daemon ends.
    pub(crate) shutdown: ShutdownSettings,
}

/// One provider instance.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProviderSettings {
    /// `anthropic`, `openai`, `ollama`, `scripted`, or a preset such as `deepseek`. Where absent,
    /// the instance's name is the kind.
    pub(crate) kind: Option<String>,
    /// Where its API is, without the wire's own path. Default: the preset's.
    pub(crate) base_url: Option<String>,
    /// The key. Default: the preset's environment variable.
    pub(crate) api_key: Option<Secret>,
    /// The default model. Default: the preset's, else the first that the endpoint lists.
    pub(crate) model: Option<String>,
    /// Which OpenAI API it speaks: `responses` or `chat`. Default: `responses` for
    /// `api.openai.com`, else `chat`.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) wire: Option<Wire>,
    /// Headers added to each request: texts, or `{value = "…", secret = true}`. None is shown.
    pub(crate) headers: BTreeMap<String, NamedValue>,
    /// Longest wait for the response headers, up to 1h. Default: 120s, on this machine 600s.
    pub(crate) timeout_first_byte: Option<Span<1, HOUR>>,
    /// Longest silence within a response, up to 1h. Default: 120s, on this machine 600s.
    pub(crate) timeout_idle: Option<Span<1, HOUR>>,
    /// Most retries of a turn; 0 to 10. Default: 4.
    pub(crate) max_retries: Option<Number<0, 10>>,
    /// How often a turn that broke off after output was sent on is run again; 0 to 3. Default: 1.
    pub(crate) restart_after_partial: Option<Number<0, 3>>,
    /// Ollama only: context size in tokens, 256 to 10000000. Default: the server's.
    pub(crate) num_ctx: Option<Number<256, 10_000_000>>,
    /// Scripted only: a script file or a directory of them. Default: the built-in demonstration.
    pub(crate) script: Option<String>,
    /// A PEM file with a certificate authority to trust besides the usual ones.
    pub(crate) ca_file: Option<String>,
    /// What its models cost, whatever is known of them. Default: what the endpoint or the compiled-in table says; nothing
    /// for Ollama on this machine.
    pub(crate) pricing: Option<PricingSettings>,
    /// Most requests at once; 1 to 10000. Default: no limit.
    pub(crate) max_parallel: Option<Number<1, 10_000>>,
    /// Most requests a minute; 1 to 1000000. Default: no limit.
    pub(crate) max_requests_per_minute: Option<Number<1, 1_000_000>>,
    /// Most tokens a minute, of input and output; 1000 to 1000000000. Default: no limit.
    pub(crate) max_tokens_per_minute: Option<Number<1_000, 1_000_000_000>>,
}

/// What the models of an instance cost, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PricingSettings {
    /// Input.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub(crate) input: Option<Money>,
    /// Output.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub(crate) output: Option<Money>,
    /// Input read from a cache. Default: as input.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub(crate) cache_read: Option<Money>,
    /// Input written to a cache. Default: as input.
    #[serde(deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub(crate) cache_write: Option<Money>,
}

/// Which OpenAI API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wire {
    /// Responses, stateless.
    Responses,
    /// Chat Completions.
    Chat,
}

/// Limits and settings of tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolsSettings {
    /// Most executions of one conversation at once; 1 to 64.
    #[serde(with = "Number::<1, 64>")]
    pub(crate) max_concurrent: usize,
    /// Without effect: calls of a turn wait for their place whatever their number. Still read, so that older files work.
    #[expect(dead_code, reason = "kept for files that have it")]
    pub(crate) max_queued: Number<0, 1000>,
    /// What becomes of an exchange in which a call's path leaves the project and its central storage or is denied: `stop` ends
    /// it; with `error` the model reads why and goes on, and the third such call ends it.
    #[serde(deserialize_with = "word")]
    pub(crate) on_violation: OnViolation,
    /// Longest run of a tool that has no limit of its own; up to 24h.
    #[serde(with = "Span::<1, DAY>")]
    pub(crate) timeout: Duration,
    /// Size of the output given to the model, head and tail of what is longer; 1KiB to 16MiB.
    #[serde(with = "Size::<KIB, { 16 * MIB }>")]
    pub(crate) output_cap: usize,
    /// Reads files.
    pub(crate) file_read: FileReadConfig,
    /// Writes files.
    pub(crate) file_write: ToolSwitch,
    /// Replaces text in files.
    pub(crate) file_edit: ToolSwitch,
    /// Lists files.
    pub(crate) file_list: ToolSwitch,
    /// Searches in files.
    pub(crate) file_search: ToolSwitch,
    /// Runs commands.
    pub(crate) bash: BashConfig,
    /// Runs git without a shell.
    pub(crate) git: ToolSwitch,
    /// Searches the web.
    pub(crate) web_search: WebSearchConfig,
    /// Reads pages of the web.
    pub(crate) web_fetch: WebFetchConfig,
    /// Tools that clients register and run themselves.
    pub(crate) client: ClientToolsConfig,
    /// Tools of your own, by name.
    pub(crate) custom: BTreeMap<String, CustomToolSettings>,
}

/// A tool of the operator's own: a program or a line for a shell.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CustomToolSettings {
    /// Whether the tool is offered. Default: true.
    pub(crate) enabled: Option<bool>,
    /// What it does, for the model.
    pub(crate) description: String,
    /// JSON schema of its inputs: `properties` and `required`, with `type`, `description`, `enum`,
    /// `minimum`, `maximum` and `items`.
    #[schemars(with = "BTreeMap<String, String>", extend("format" = "json-schema"))]
    pub(crate) input_schema: BTreeMap<String, serde_json::Value>,
    /// The program to run, without a shell.
    pub(crate) command: Option<String>,
    /// Its arguments; `{name}` stands for an input, which is never more than its one argument.
    pub(crate) args: Vec<String>,
    /// In place of `command`: a line for sh, which finds each input in the variable `INPUT_NAME`.
    pub(crate) shell: Option<String>,
    /// `safe` (it only reads), `warning` or `dangerous`. Default: dangerous.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) danger: Option<DangerLevel>,
    /// Longest run of one call, up to 24h. Default: `tools.timeout`.
    pub(crate) timeout: Option<Span<1, DAY>>,
    /// Whether it may use the network. Default: false.
    pub(crate) network: bool,
}

/// One hook: a program (`command`) or an endpoint (`url`) that may refuse, change the input of a call, or add a note. Those of
/// one point are asked in the order of their names. See `docs/hooks.md`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HookSettings {
    /// Whether it is asked. Default: true.
    pub(crate) enabled: Option<bool>,
    /// When it is asked: `before_send`, `before_tool`, `after_tool`, `stop` or `compact`.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) on: Option<HookPoint>,
    /// With `before_tool` and `after_tool`: for which tools, by name or by a pattern such as `file_*`. Default: all.
    pub(crate) tools: Vec<String>,
    /// The program to run, without a shell. It reads JSON from its standard input.
    pub(crate) command: Option<String>,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// In place of `command`: an endpoint that the JSON is sent to, with POST; https, or http on this machine.
    pub(crate) url: Option<String>,
    /// `auto` for the sandbox that commands run in, `off` for none. Default: auto.
    #[serde(deserialize_with = "word")]
    pub(crate) sandbox: SandboxPolicy,
    /// Whether the program may use the network. Default: false.
    pub(crate) network: bool,
    /// How long it may take, up to 5m. Default: 10s.
    pub(crate) timeout: Option<Span<1, HOOK>>,
    /// Where it fails or takes too long: `refuse` as if it had said no, `continue` as if it had not been asked.
    /// Default: refuse.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) on_failure: Option<OnFailure>,
}

/// A tool that has nothing to set but whether it is there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSwitch {
    /// Whether the tool is offered.
    pub(crate) enabled: bool,
}

/// MCP servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpSettings {
    /// Whether a client may add and remove servers.
    pub(crate) allow_runtime_add: bool,
    /// Where tokens of servers that ask to sign in are kept: `auto` for the system's keyring where there is one (macOS, Windows),
    /// else a file that only you may read; `file`, or `memory` for until the daemon ends.
    #[serde(deserialize_with = "word")]
    pub(crate) tokens: TokenStore,
    /// Servers by name. In a JSON file, `mcpServers` is read as this.
    pub(crate) servers: BTreeMap<String, McpServerSettings>,
}

/// One MCP server: a program (`command`) or an endpoint (`url`).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServerSettings {
    /// The program to start, which speaks over stdin and stdout.
    pub(crate) command: Option<String>,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Variables added to its environment: texts, or `{value = "…", secret = true}`. None is shown.
    pub(crate) env: BTreeMap<String, NamedValue>,
    /// Its working directory. Default: a directory of its own.
    pub(crate) cwd: Option<String>,
    /// The endpoint, which speaks streamable HTTP.
    pub(crate) url: Option<String>,
    /// Headers added to each request to `url`: texts, or `{value = "…", secret = true}`. None is shown.
    pub(crate) headers: BTreeMap<String, NamedValue>,
    /// How the daemon signs in at `url`, where that asks for it.
    pub(crate) auth: SignInSettings,
    /// Whether the server is used. Default: true.
    pub(crate) enabled: Option<bool>,
    /// Tools of it that only read, so that they need no approval under `guided`.
    pub(crate) safe_tools: Vec<String>,
    /// Longest run of one call, up to 24h. Default: 60s.
    pub(crate) timeout: Option<Span<1, DAY>>,
    /// Which lines of its log sessions are shown: those of this level and above, `debug`, `info`, `notice`, `warning`,
    /// `error`, `critical`, `alert` or `emergency`; `off` for none. Default: warning.
    #[serde(deserialize_with = "word")]
    pub(crate) log_level: McpLogPolicy,
    /// Whether it may have the model of a session answer something: `off`, or `ask` for a question to the user each time,
    /// with all that the model would be sent. Default: off.
    #[serde(deserialize_with = "word")]
    pub(crate) sampling: SamplingPolicy,
    /// Whether the program may use the network. Default: true.
    pub(crate) network: Option<bool>,
    /// TCP ports it may connect to besides 22, 80, 443 and 9418.
    pub(crate) ports: Vec<u16>,
    /// Files and directories that the program may change, besides directories among its arguments.
    pub(crate) read_write: Vec<String>,
    /// Files and directories that the program may read, besides the project and files among its
    /// arguments.
    pub(crate) read_only: Vec<String>,
    /// `auto` for the strongest sandbox that works here, `off` for none. Default: auto.
    #[serde(deserialize_with = "word")]
    pub(crate) sandbox: SandboxPolicy,
}

/// One workflow. What is absent is as in `[chat]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkflowSettings {
    /// The system prompt.
    pub(crate) system_prompt: Option<String>,
    /// How much is done without asking.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) trust_level: Option<TrustLevel>,
    /// `stop` or `error`. Default: `tools.on_violation`.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) on_violation: Option<OnViolation>,
    /// The provider instance.
    pub(crate) provider: Option<String>,
    /// The model.
    pub(crate) model: Option<String>,
    /// Limits of an exchange.
    pub(crate) limits: LimitSettings,
    /// What each tool may do, by its name or, for MCP tools, a pattern such as `mcp__github__*`.
    /// Tools that are not named are not offered; an empty table means the tools that only read.
    pub(crate) tool_permissions: BTreeMap<String, PermissionSettings>,
}

/// Limits of an exchange in a workflow.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitSettings {
    /// Most turns; 1 to 200.
    pub(crate) max_turns: Option<Turns>,
    /// Longest exchange, up to 24h, waiting for the user not counted: `"10m"` or milliseconds.
    #[serde(alias = "timeout_ms")]
    pub(crate) timeout: Option<Timeout<1, DAY>>,
    /// Tokens of context kept free for the last answer; up to 1000000.
    pub(crate) context_reserve: Option<Reserve>,
    /// From which share of the model's window on the conversation is compacted, 0 to 1; 0 for never.
    pub(crate) compact_at: Option<Share>,
    /// US dollars that it may cost.
    #[serde(alias = "max_cost_usd", deserialize_with = "Dollars::optional")]
    #[schemars(with = "Dollars")]
    pub(crate) max_cost: Option<Money>,
    /// Fresh tokens that it may take: input that no cache had, and output; 1000 to 1000000000.
    pub(crate) max_fresh_tokens: Option<Number<1_000, 1_000_000_000>>,
}

/// What one tool may do in a workflow.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PermissionSettings {
    /// Whether the tool is offered at all. Default: false.
    pub(crate) allowed: bool,
    /// Globs, relative to the project and to its central storage, that paths must match. Default:
    /// all paths.
    pub(crate) paths: Option<Vec<String>>,
    /// Longest run of one call, up to 24h: `"120s"` or milliseconds. Default: the tool's.
    pub(crate) timeout: Option<Timeout<1, DAY>>,
    /// Patterns over the words of each command (`*` one word, `**` any rest): where all match, it
    /// is not asked.
    pub(crate) allow: Vec<String>,
    /// Patterns over the words of each command: where one matches, the call is refused.
    pub(crate) deny: Vec<String>,
    /// Whether commands classed dangerous are in scope. Default: false.
    pub(crate) allow_dangerous: bool,
    /// Whether commands may use the network without a question. Default: false.
    pub(crate) allow_network: bool,
}

/// How the daemon ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShutdownSettings {
    /// How long running exchanges may take to end; up to 10m.
    pub(crate) grace: Span<0, { 10 * 60 * 1000 }>,
}

fn optional_word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| T::deserialize(text.into_deserializer()))
        .transpose()
}

/// Returns the JSON schema of a configuration file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Settings).to_value()
}

#[cfg(test)]
mod tests;

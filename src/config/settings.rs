//! The configuration as it is read: one struct per section, in the words of the file.
//!
//! Nothing is checked here but names, types and ranges; paths and references are the business of
//! `check`. The doc comments are the text of `docs/configuration.md`. Defaults are not here
//! but in `config/default.toml`; keys that have none there are optional.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::{Deserializer, IntoDeserializer};

use super::named_value::NamedValue;
use super::{AskSearch, GitPolicy, LogFormat, NetworkPolicy, SandboxPolicy, Unattended};
use crate::audit::MAX_KEPT;
use crate::message::{DangerLevel, OnViolation, TrustLevel};
use crate::units::{DAY, KIB, MIB, Number, Size, Span, Timeout};

/// Turns that an exchange may have.
type Turns = Number<1, 200>;
/// Tokens that may be kept free for the last answer.
type Reserve = Number<0, 1_000_000>;
/// Milliseconds of an hour: the longest wait for a server.
const HOUR: u64 = 60 * 60 * 1000;

/// Everything that can be set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where and to whom the daemon listens.
    pub(crate) server: ServerSettings,
    /// The folder the model works in.
    pub(crate) project: ProjectSettings,
    /// What a session keeps.
    pub(crate) session: SessionSettings,
    /// Defaults of conversations.
    pub(crate) chat: ChatSettings,
    /// When and how the user is asked.
    pub(crate) approval: ApprovalSettings,
    /// Provider instances by name; several of one kind are fine.
    pub(crate) providers: BTreeMap<String, ProviderSettings>,
    /// Limits and settings of tools.
    pub(crate) tools: ToolsSettings,
    /// MCP servers.
    pub(crate) mcp: McpSettings,
    /// Workflows by name: a prompt, a model, a trust level, limits and permissions.
    pub(crate) workflows: BTreeMap<String, WorkflowSettings>,
    /// Logging, to stderr.
    pub(crate) log: LogSettings,
    /// The audit log: one line of JSON per tool call.
    pub(crate) audit: AuditSettings,
    /// How the daemon ends.
    pub(crate) shutdown: ShutdownSettings,
}

/// Where and to whom the daemon listens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSettings {
    /// IP address to listen on, or `localhost`. Anything but loopback needs a token that was given.
    pub(crate) host: String,
    /// TCP port, 0 to 65535; 0 takes a free one.
    pub(crate) port: Number<0, 65_535>,
    /// Browser origins accepted besides loopback ones, literally as browsers send them:
    /// `https://example.org`, `app://x`, `file://`, `null`.
    pub(crate) allowed_origins: Vec<String>,
    /// Host names accepted besides loopback ones, without port.
    pub(crate) allowed_hosts: Vec<String>,
    /// Largest frame from a client; 1KiB to 256MiB.
    pub(crate) max_frame_bytes: Size<KIB, { 256 * MIB }>,
    /// Most sockets open at once; 1 to 10000.
    pub(crate) max_connections: Number<1, 10_000>,
    /// Whether `GET /` serves the console page. The default holds on loopback; anywhere else it is
    /// served only where this is set.
    pub(crate) console: bool,
}

/// The folder the model works in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectSettings {
    /// The project's folder. It must exist and be neither `/`, the home directory, one above it,
    /// nor a directory of the system.
    pub(crate) root: String,
    /// The project's name; empty for the folder's. It is one part of a path: no `/`.
    pub(crate) name: String,
    /// The project's central storage; empty for `~/outrigger/projects/{name}`.
    pub(crate) central: String,
}

/// What a session keeps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionSettings {
    /// How long a session outlives its last socket; up to 24h.
    pub(crate) resume_grace: Span<0, DAY>,
    /// Size of the events kept for a resume; 64KiB to 1GiB.
    pub(crate) buffer_bytes: Size<{ 64 * KIB }, { 1024 * MIB }>,
    /// Keys of `[chat]`, e.g. `chat.trust_level`, that no client may loosen; `providers` for keys,
    /// addresses and the choice of a provider.
    pub(crate) locked: Vec<String>,
}

/// Defaults of conversations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatSettings {
    /// The default provider instance; empty for the first one that is configured (in the order of
    /// the file, then of the presets), else `scripted`.
    pub(crate) provider: String,
    /// The default model; empty for the provider's.
    pub(crate) model: String,
    /// How much is done without asking: `supervised`, `guided` or `autonomous`.
    #[serde(deserialize_with = "word")]
    pub(crate) trust_level: TrustLevel,
    /// The default workflow; empty for none.
    pub(crate) workflow: String,
    /// The system prompt; empty for the built-in one.
    pub(crate) system_prompt: String,
    /// Most turns of one exchange; 1 to 200.
    pub(crate) max_turns: Turns,
    /// Tokens of context kept free for the last answer; up to 1000000.
    pub(crate) context_reserve: Reserve,
    /// Longest exchange that offers no tools; up to 24h. Waiting for the user does not count.
    pub(crate) timeout_plain: Span<1, DAY>,
    /// Longest exchange with tools; up to 24h. Waiting for the user does not count.
    pub(crate) timeout_tools: Span<1, DAY>,
    /// Where an Ollama is looked for that answers while no provider is configured and `provider` is
    /// empty: at the start, and before each message as long as there is none. Empty for nowhere.
    pub(crate) detect_ollama: String,
}

/// When and how the user is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalSettings {
    /// How long an approval stays open, up to 24h; `0s` for ever.
    pub(crate) timeout: Span<0, DAY>,
    /// How long clients may keep one open while somebody is at it (`chat:tool-extend`), up to 24h; `0s` for no longer
    /// than `timeout`.
    pub(crate) max_timeout: Span<0, DAY>,
    /// Whether bash commands that are proven read-only run without asking.
    pub(crate) auto_approve_safe_commands: bool,
    /// What happens where the user would be asked: `ask`, or `deny` where nobody can answer.
    #[serde(deserialize_with = "word")]
    pub(crate) unattended: Unattended,
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
    pub(crate) max_concurrent: Number<1, 64>,
    /// Without effect: calls of a turn wait for their place whatever their number. Still read, so that older files work.
    #[expect(dead_code, reason = "kept for files that have it")]
    pub(crate) max_queued: Number<0, 1000>,
    /// What becomes of an exchange in which a call's path leaves the project and its central storage or is denied: `stop` ends
    /// it; with `error` the model reads why and goes on, and the third such call ends it.
    #[serde(deserialize_with = "word")]
    pub(crate) on_violation: OnViolation,
    /// Longest run of a tool that has no limit of its own; up to 24h.
    pub(crate) timeout: Span<1, DAY>,
    /// Size of the output given to the model, head and tail of what is longer; 1KiB to 16MiB.
    pub(crate) output_cap: Size<KIB, { 16 * MIB }>,
    /// Reads files.
    pub(crate) file_read: FileReadSettings,
    /// Writes files.
    pub(crate) file_write: ToolSwitch,
    /// Replaces text in files.
    pub(crate) file_edit: ToolSwitch,
    /// Lists files.
    pub(crate) file_list: ToolSwitch,
    /// Searches in files.
    pub(crate) file_search: ToolSwitch,
    /// Runs commands.
    pub(crate) bash: BashSettings,
    /// Runs git without a shell.
    pub(crate) git: ToolSwitch,
    /// Searches the web.
    pub(crate) web_search: WebSearchSettings,
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
    /// `safe`, `warning` or `dangerous`. Default: dangerous.
    #[serde(deserialize_with = "optional_word")]
    pub(crate) danger: Option<DangerLevel>,
    /// Longest run of one call, up to 24h. Default: `tools.timeout`.
    pub(crate) timeout: Option<Span<1, DAY>>,
    /// Whether it may use the network. Default: false.
    pub(crate) network: bool,
}

/// A tool that has nothing to set but whether it is there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSwitch {
    /// Whether the tool is offered.
    pub(crate) enabled: bool,
}

/// Settings of `file_read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileReadSettings {
    /// Whether the tool is offered.
    pub(crate) enabled: bool,
    /// Size of one answer; 1KiB to 64MiB.
    pub(crate) max_bytes: Size<KIB, { 64 * MIB }>,
    /// Extensions that may be read, without dot; empty for all.
    pub(crate) allowed_extensions: Vec<String>,
}

/// Settings of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashSettings {
    /// Whether the tool is offered.
    pub(crate) enabled: bool,
    /// How long a command may run that asks for nothing else; up to `max_timeout`.
    pub(crate) timeout: Span<1, DAY>,
    /// The longest a command may ask for; up to 24h.
    pub(crate) max_timeout: Span<1, DAY>,
    /// Whether commands may use the network: `ask` (the command asks for it and the user decides),
    /// `on` or `off`.
    #[serde(deserialize_with = "word")]
    pub(crate) network: NetworkPolicy,
    /// `auto` for the strongest sandbox that works here, `off` for none.
    #[serde(deserialize_with = "word")]
    pub(crate) sandbox: SandboxPolicy,
    /// What commands may do to git repositories, where the sandbox is `full`: `read`, or `write` for all but settings
    /// and hooks. The tool `git` may always write.
    #[serde(deserialize_with = "word")]
    pub(crate) git: GitPolicy,
    /// Most of its temporary files, which are in memory where the sandbox is `full`; 1MiB to 64GiB. As much again for
    /// its home.
    pub(crate) tmp_size: Size<MIB, { 64 * 1024 * MIB }>,
}

/// Settings of `web_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebSearchSettings {
    /// Whether the tool is offered.
    pub(crate) enabled: bool,
    /// Where SearXNG is; empty for none.
    pub(crate) searxng_url: String,
    /// Engines to ask SearXNG for; empty for its own choice.
    pub(crate) engines: Vec<String>,
    /// Key of the Brave Search API; empty for `BRAVE_API_KEY` of the environment, else none.
    pub(crate) brave_api_key: Secret,
    /// The whole endpoint of the Brave Search API.
    pub(crate) brave_url: String,
    /// How long the answer to a query is kept, up to 24h; `0s` for not at all.
    pub(crate) cache_ttl: Span<0, DAY>,
    /// When the user is asked before a search, at every trust level: `never`, `new_words` (where the
    /// query has words that the user did not write in this conversation) or `always`.
    #[serde(deserialize_with = "word")]
    pub(crate) ask: AskSearch,
    /// Searches of one exchange; 0 to 1000. Each further one is asked for, at every trust level.
    pub(crate) limit: Number<0, 1000>,
}

/// MCP servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpSettings {
    /// Whether a client may add and remove servers.
    pub(crate) allow_runtime_add: bool,
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
    /// Whether the server is used. Default: true.
    pub(crate) enabled: Option<bool>,
    /// Tools of it that only read, so that they need no approval under `guided`.
    pub(crate) safe_tools: Vec<String>,
    /// Longest run of one call, up to 24h. Default: 60s.
    pub(crate) timeout: Option<Span<1, DAY>>,
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
    /// Whether commands may use the network unasked. Default: false.
    pub(crate) allow_network: bool,
}

/// Logging, to stderr.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    /// A filter of `tracing`, e.g. `info` or `outrigger=debug`. `RUST_LOG` wins.
    pub(crate) level: String,
    /// `human`, `json`, or `auto`: human on a terminal, JSON otherwise.
    #[serde(deserialize_with = "word")]
    pub(crate) format: LogFormat,
}

/// The audit log: digests of what was called and what came of it, no contents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditSettings {
    /// Its file, outside the project and its central storage; empty for no audit log.
    pub(crate) path: String,
    /// Size at which the file becomes `FILE.1` and a new one is begun; 64KiB to 1GiB.
    pub(crate) max_bytes: Size<{ 64 * KIB }, { 1024 * MIB }>,
    /// How many older files are kept; 1 to 100.
    pub(crate) keep: Number<1, MAX_KEPT>,
}

/// How the daemon ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShutdownSettings {
    /// How long running exchanges may take to end; up to 10m.
    pub(crate) grace: Span<0, { 10 * 60 * 1000 }>,
}

/// A text that is never shown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String", extend("format" = "secret"))]
pub(crate) struct Secret(pub(crate) SecretString);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(SecretString::from(text))
    }
}

/// Reads a word of an enum, so that anything else is said to be no text.
fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::deserialize(text.into_deserializer())
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

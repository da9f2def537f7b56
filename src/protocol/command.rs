//! What a client may say, with an example of each.

mod approvals;
mod configure;
mod examples;
mod files;
mod history;
mod mcp;
mod providers;
mod ran;
mod sessions;
mod short;

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::budget::{BudgetApprove, UsageReport};
use super::client_tools::{ClientOutput, ToolExecute, ToolRegister, ToolUnregister};
use super::content::{Content, WireMessage};
use super::input::ToolInput;
use super::mcp::{McpListPrompts, McpListResources, McpResourceName, McpUsePrompt};
use super::queue::ChatQueue;
use super::settings::{ConfigGet, SearchConfigure, WorkflowPut};
use super::trust::TrustApprove;
use crate::message::{ConversationId, InputId, SessionId, Thinking, ToolId, TrustLevel};
pub use crate::permission::Remember;
use crate::permission::{Limits, PermissionMap};

pub use approvals::{ApprovalList, ApprovalRevoke};
pub use configure::{Configure, Layer};
pub use examples::examples;
pub use files::{FilesChanges, FilesRevert};
pub use history::{ChatCompact, ChatHistory, CompactMode, HistoryView};
pub use mcp::{McpAdd, McpAuth, McpGetPrompt, McpName, McpReadResource, McpSignOut};
pub use providers::{ProviderConfigure, ProviderName};
pub use ran::{ExportFormat, MetricsRequest, Scope, ToolExport, ToolHistory};
pub use sessions::{
    SessionArchive, SessionDelete, SessionExport, SessionFork, SessionFormat, SessionImport,
    SessionLabel, SessionList, SessionRename,
};

/// A request, told apart by its `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload")]
pub enum Command {
    /// Sets defaults of this session.
    #[serde(rename = "session:configure")]
    SessionConfigure(Configure),
    /// Goes on with an earlier session on this socket.
    #[serde(rename = "session:resume")]
    SessionResume(Resume),
    /// Goes on with another session on this socket, whatever it was used for.
    #[serde(rename = "session:open")]
    SessionOpen(Resume),
    /// Lists the sessions that are kept.
    #[serde(rename = "session:list")]
    SessionList(SessionList),
    /// Names a session.
    #[serde(rename = "session:rename")]
    SessionRename(SessionRename),
    /// Puts a session away, or takes it back.
    #[serde(rename = "session:archive")]
    SessionArchive(SessionArchive),
    /// Labels a session.
    #[serde(rename = "session:label")]
    SessionLabel(SessionLabel),
    /// Reads a session as a file.
    #[serde(rename = "session:export")]
    SessionExport(SessionExport),
    /// Makes a session of a file.
    #[serde(rename = "session:import")]
    SessionImport(SessionImport),
    /// Deletes a session for good.
    #[serde(rename = "session:delete")]
    SessionDelete(SessionDelete),
    /// Makes a session of what was said in one, up to a message.
    #[serde(rename = "session:fork")]
    SessionFork(SessionFork),
    /// Asks for a sign of life; whatever it carries is ignored.
    #[serde(rename = "session:ping")]
    SessionPing(Empty),
    /// Asks for the whole picture.
    #[serde(rename = "session:state")]
    SessionState(Empty),
    /// Asks how the session stands, in one word.
    #[serde(rename = "session:status")]
    SessionStatus(Empty),
    /// Has this socket drive the session, in the place of the one that does.
    #[serde(rename = "session:take-over")]
    SessionTakeOver(Empty),
    /// Says something in a conversation.
    #[serde(rename = "chat:send")]
    ChatSend(Box<ChatSend>),
    /// Stops the running exchange.
    #[serde(rename = "chat:cancel")]
    ChatCancel(ChatCancel),
    /// Asks for what the daemon remembers.
    #[serde(rename = "chat:history")]
    ChatHistory(ChatHistory),
    /// Lists or changes what waits in a conversation.
    #[serde(rename = "chat:queue")]
    ChatQueue(ChatQueue),
    /// Asks where the window of a conversation's model goes.
    #[serde(rename = "chat:context")]
    ChatContext(Conversation),
    /// Makes what the model sees of a conversation shorter.
    #[serde(rename = "chat:compact")]
    ChatCompact(ChatCompact),
    /// Cancels and forgets a conversation.
    #[serde(rename = "chat:close")]
    ChatClose(Conversation),
    /// Answers a `chat:tool-confirm`.
    #[serde(rename = "chat:tool-approve")]
    ChatToolApprove(ToolApprove),
    /// Answers a `chat:tool-input-request`.
    #[serde(rename = "chat:tool-input")]
    ChatToolInput(ToolInput),
    /// Gives the output of a call that the client runs, or a sign of progress.
    #[serde(rename = "chat:tool-output")]
    ChatToolOutput(ClientOutput),
    /// Answers a `chat:budget-confirm`.
    #[serde(rename = "chat:budget-approve")]
    ChatBudgetApprove(BudgetApprove),
    /// Answers a `chat:trust-confirm`.
    #[serde(rename = "chat:trust-approve")]
    ChatTrustApprove(TrustApprove),
    /// Lists the skills there are.
    #[serde(rename = "skill:list")]
    SkillList(Empty),
    /// Gives an open question more time, because somebody is at it.
    #[serde(rename = "chat:tool-extend")]
    ChatToolExtend(ToolExtend),
    /// Lists the answers that count for later calls.
    #[serde(rename = "approval:list")]
    ApprovalList(ApprovalList),
    /// Has answers count no more.
    #[serde(rename = "approval:revoke")]
    ApprovalRevoke(ApprovalRevoke),
    /// Lists the provider instances.
    #[serde(rename = "provider:list")]
    ProviderList(Empty),
    /// Sets a provider's key or base URL, in memory only.
    #[serde(rename = "provider:configure")]
    ProviderConfigure(ProviderConfigure),
    /// Asks whether a provider accepts its key.
    #[serde(rename = "provider:validate")]
    ProviderValidate(ProviderName),
    /// Sets how the web is searched, in memory only.
    #[serde(rename = "search:configure")]
    SearchConfigure(SearchConfigure),
    /// Lists the workflows.
    #[serde(rename = "workflow:list")]
    WorkflowList(Empty),
    /// Adds a workflow, or takes one away that was added so.
    #[serde(rename = "workflow:put")]
    WorkflowPut(WorkflowPut),
    /// Asks for the configuration, and where each value comes from.
    #[serde(rename = "config:get")]
    ConfigGet(ConfigGet),
    /// Has the configuration read again.
    #[serde(rename = "config:reload")]
    ConfigReload(Empty),
    /// Lists models.
    #[serde(rename = "model:list")]
    ModelList(ModelList),
    /// Lists the tools that a scope comes to.
    #[serde(rename = "tool:list")]
    ToolList(ToolList),
    /// Has the model offered tools that the client runs.
    #[serde(rename = "tool:register")]
    ToolRegister(ToolRegister),
    /// Has such tools offered no more.
    #[serde(rename = "tool:unregister")]
    ToolUnregister(ToolUnregister),
    /// Runs a tool without a model.
    #[serde(rename = "tool:execute")]
    ToolExecute(ToolExecute),
    /// Ends one execution; the loop goes on.
    #[serde(rename = "tool:cancel")]
    ToolCancel(Tool),
    /// Has this machine's loopback lead to a port of a command in the background.
    #[serde(rename = "tool:expose")]
    ToolExpose(Expose),
    /// Asks for one execution record.
    #[serde(rename = "tool:status")]
    ToolStatus(Tool),
    /// Reads the whole output of one execution.
    #[serde(rename = "tool:output")]
    ToolOutput(ToolOutput),
    /// Lists execution records, newest first.
    #[serde(rename = "tool:history")]
    ToolHistory(ToolHistory),
    /// Asks for counts, durations and what was used, in sum.
    #[serde(rename = "tool:metrics")]
    ToolMetrics(MetricsRequest),
    /// Asks for execution records as a text for other programs.
    #[serde(rename = "tool:export")]
    ToolExport(ToolExport),
    /// Asks what requests to models took and cost, in sum, of all sessions.
    #[serde(rename = "usage:report")]
    UsageReport(UsageReport),
    /// Lists what calls did to files, newest first.
    #[serde(rename = "files:changes")]
    FilesChanges(FilesChanges),
    /// Undoes what a call, or all of an exchange, did to files.
    #[serde(rename = "files:revert")]
    FilesRevert(FilesRevert),
    /// Lists the MCP servers.
    #[serde(rename = "mcp:list")]
    McpList(Empty),
    /// Adds an MCP server.
    #[serde(rename = "mcp:add")]
    McpAdd(McpAdd),
    /// Removes an MCP server.
    #[serde(rename = "mcp:remove")]
    McpRemove(McpName),
    /// Says where to sign in at an MCP server, or takes what the page there answered.
    #[serde(rename = "mcp:auth")]
    McpAuth(McpAuth),
    /// Forgets the sign-in at an MCP server.
    #[serde(rename = "mcp:sign-out")]
    McpSignOut(McpSignOut),
    /// Reads a resource of an MCP server.
    #[serde(rename = "mcp:read-resource")]
    McpReadResource(McpReadResource),
    /// Gets a prompt of an MCP server.
    #[serde(rename = "mcp:get-prompt")]
    McpGetPrompt(McpGetPrompt),
    /// Lists the resources of an MCP server.
    #[serde(rename = "mcp:list-resources")]
    McpListResources(McpListResources),
    /// Lists the prompts of MCP servers.
    #[serde(rename = "mcp:list-prompts")]
    McpListPrompts(McpListPrompts),
    /// Gets a prompt as what a user says.
    #[serde(rename = "mcp:use-prompt")]
    McpUsePrompt(McpUsePrompt),
    /// Asks to be told when a resource changes.
    #[serde(rename = "mcp:subscribe")]
    McpSubscribe(McpResourceName),
    /// Asks to be told no more.
    #[serde(rename = "mcp:unsubscribe")]
    McpUnsubscribe(McpResourceName),
}

/// Payload of `tool:expose`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expose {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// A port that `tool:port-open` named.
    #[serde(deserialize_with = "port")]
    pub port: NonZeroU16,
    /// Whether nothing is to lead to it any more.
    #[serde(default)]
    pub close: bool,
}

/// A payload of which nothing is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Payload of `session:resume` and `session:open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    /// The session to go on with.
    #[serde(alias = "session_id")]
    pub session_id: SessionId,
    /// The highest `seq` that the client has; 0 for none.
    #[serde(alias = "last_seq", default)]
    pub last_seq: u64,
}

/// Payload of `chat:send`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatSend {
    /// Which conversation; made on first use.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// What the user says; not empty.
    pub content: Content,
    /// Messages that replace what the daemon remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<WireMessage>>,
    /// Provider instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// System prompt.
    #[serde(alias = "system_prompt", skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How much is done without asking.
    #[serde(alias = "trust_level", skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// A named workflow of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Permissions that narrow the workflow's.
    #[serde(alias = "tool_permissions", skip_serializing_if = "Option::is_none")]
    pub tool_permissions: Option<PermissionMap>,
    /// Most tokens of each answer.
    #[serde(alias = "max_tokens", default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature, 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Whether and how hard to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// What the answer has to be, where a program reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputForm>,
    /// Limits of this exchange.
    #[serde(default)]
    pub limits: Limits,
    /// What to do while an exchange runs.
    #[serde(alias = "when_busy", default)]
    pub when_busy: WhenBusy,
}

/// What an answer has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputForm {
    /// JSON schema of an object, 64 KiB at most.
    pub schema: Map<String, Value>,
}

/// What to do with a send while an exchange runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenBusy {
    /// Run it after the current exchange.
    #[default]
    Queue,
    /// Put it into the running exchange at the next turn boundary.
    Steer,
    /// Do not admit it.
    Reject,
}

fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NonZeroU16, D::Error> {
    let value = Value::deserialize(deserializer)?;
    NonZeroU16::deserialize(value).map_err(|_| D::Error::custom("must be a number from 1 to 65535"))
}

pub(super) fn default_conversation() -> ConversationId {
    ConversationId::new("default")
}

/// Payload of `chat:cancel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatCancel {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
    /// Whether queued sends are dropped too.
    #[serde(default)]
    pub queued: bool,
}

/// A payload that names a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Which conversation.
    #[serde(alias = "conversation_id", default = "default_conversation")]
    pub conversation_id: ConversationId,
}

/// Payload of `chat:tool-approve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolApprove {
    /// The id from `chat:tool-confirm`.
    #[serde(alias = "tool_id")]
    pub tool_id: ToolId,
    /// The `host` from it; without one the answer is for the call itself. No answer settles another question than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether the call may run, or connect.
    pub approved: bool,
    /// Run with this input instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// How far the answer reaches.
    #[serde(default)]
    pub remember: Remember,
    /// One of the `folders` of the question: the answer is for writing any file below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Text that the model is given with a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With a refusal: nobody was there to be asked. The model reads that, and not that the user refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// Payload of `chat:tool-extend`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExtend {
    /// The call that is asked about, or in whose middle something is asked.
    #[serde(alias = "tool_id")]
    pub tool_id: ToolId,
    /// Of a `chat:tool-input-request`: its id.
    #[serde(alias = "request_id", default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<InputId>,
    /// Of a `chat:tool-confirm` with a host: that host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Payload of `model:list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelList {
    /// Which provider instance; all that are configured where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Payload of `tool:list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolList {
    /// A named workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Permissions that narrow it.
    #[serde(alias = "tool_permissions", skip_serializing_if = "Option::is_none")]
    pub tool_permissions: Option<PermissionMap>,
}

/// A payload that names a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Which call.
    #[serde(alias = "tool_id")]
    pub tool_id: ToolId,
}

/// Payload of `tool:output`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Which call.
    #[serde(alias = "tool_id")]
    pub tool_id: ToolId,
    /// First byte.
    #[serde(default)]
    pub offset: u64,
    /// Most bytes; 64 KiB where absent, 1 MiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

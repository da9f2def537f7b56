//! Payloads of the answers to requests.

mod approvals;
mod files;
mod sessions;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::{BudgetConfirm, SessionBudget};
use super::client_tools::HandedOut;
use super::command::{ExportFormat, Layer};
use super::content::WireMessage;
use super::event::{Project, StateName, ToolConfirm};
use super::input::ToolInputRequest;
use super::record::ExecutionRecord;
use super::trust::TrustConfirm;
use crate::message::{
    BackgroundCommand, ConversationId, InputId, MessageId, Model, OnViolation, OutputStream,
    ProviderInfo, ToolId, ToolSpec, TrustLevel,
};
use crate::permission::ApprovalPolicy;
pub use approvals::{ApprovalRule, ApprovalRules, ApprovalsRevoked};
pub use files::{FileChanges, FileReverted, FilesChanged, FilesReverted, RevertOutcome};
pub use sessions::{
    KeptSession, SessionChanged, SessionDeleted, SessionExported, SessionForked, SessionImported,
    SessionPage, Snippet,
};

/// Payload of `session:configure-result`: the values now in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Configured {
    /// How much is done without asking.
    pub trust_level: TrustLevel,
    /// What becomes of calls that the user would be asked about.
    #[serde(default)]
    pub approval_policy: ApprovalPolicy,
    /// What becomes of an exchange in which a call's path leaves the project or is denied.
    #[serde(default)]
    pub on_violation: OnViolation,
    /// Provider instance.
    pub provider: String,
    /// Model; empty for the provider's own.
    pub model: String,
    /// The provider's own model, as it is configured; absent where it chooses one of those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_model: Option<String>,
    /// Named workflow; empty for none.
    pub workflow: String,
    /// Which layers of events are sent.
    pub layers: Vec<Layer>,
    /// Whether somebody answers what MCP servers ask of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_requests: bool,
    /// Whether somebody here answers whether files may speak for the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_questions: bool,
    /// The folder the model works in; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Why there is no project, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_error: Option<String>,
    /// Whether nothing of the session is kept.
    #[serde(default)]
    pub ephemeral: bool,
    /// How much the session may spend; absent where there is no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<SessionBudget>,
}

/// Payload of `session:state-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// Every conversation.
    pub conversations: Vec<ConversationState>,
    /// Every open approval.
    pub approvals: Vec<ToolConfirm>,
    /// Every open request for input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ToolInputRequest>,
    /// Every open question whether more may be spent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetConfirm>,
    /// Every open question whether files may speak for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusts: Vec<TrustConfirm>,
    /// Every call that waits for the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_calls: Vec<HandedOut>,
}

/// One conversation in `session:state-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationState {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What it does.
    pub state: StateName,
    /// The running exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Exchanges that wait, in order.
    pub queue: Vec<MessageId>,
    /// Commands in the background: those that run, and the last ones that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundCommand>,
}

/// Payload of `chat:compact-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compacting {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What becomes of it.
    pub state: CompactState,
}

/// What becomes of a `chat:compact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactState {
    /// It began; `chat:compaction` tells how it goes on.
    Started,
    /// It waits for the exchange that runs; `chat:compaction` tells of it.
    Queued,
    /// Nothing can be left out.
    NothingToDo,
    /// A hook said no; the notice `hook_refused` has why.
    Refused,
}

/// Payload of `chat:send-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange; for a steered message the one that it becomes part of.
    pub message_id: MessageId,
    /// What became of the send.
    pub state: SendState,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Whether a send with this `id` was answered before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SendState {
    /// Its exchange runs.
    Started,
    /// It waits.
    Queued,
    /// It becomes part of the running exchange.
    Steered,
}

/// Payload of `chat:cancel-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Whether there was something to cancel.
    pub cancelled: bool,
    /// The calls that were open.
    pub tool_ids: Vec<ToolId>,
    /// How many queued sends were dropped.
    pub queued_dropped: usize,
}

/// Payload of `chat:history-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What the daemon remembers of it, or the page asked for, the oldest first.
    pub messages: Vec<WireMessage>,
    /// Something is left out for its size: the oldest messages where all do not fit one frame
    /// (`server.max_frame_bytes`); after a gap already where they are more than their share, or the beginning of
    /// what the running turn has said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// There are older messages: the `before` of the request for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<usize>,
}

/// Payload of `chat:close-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Closed {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Whether there was one.
    pub closed: bool,
}

/// Payload of `chat:tool-approve-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// Which call.
    pub tool_id: ToolId,
    /// Whether the answer counted.
    pub accepted: bool,
}

/// Payload of `chat:tool-extend-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extended {
    /// Which call.
    pub tool_id: ToolId,
    /// Which request for input of it, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<InputId>,
    /// Which host the approval is for, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the question lapses now, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// Payload of `provider:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Providers {
    /// Every instance.
    pub providers: Vec<ProviderInfo>,
}

/// Payload of `provider:configure-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderConfigured {
    /// Which instance.
    pub provider: String,
    /// Whether it has what it needs to be asked.
    pub configured: bool,
}

/// Payload of `provider:validate-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderValidated {
    /// Which instance.
    pub provider: String,
    /// Whether it accepted the key. It says nothing about billing.
    pub ok: bool,
    /// What went wrong, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<super::code::ChatCode>,
    /// What went wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Payload of `model:list-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// Every model.
    pub models: Vec<Model>,
}

/// Payload of `tool:list-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    /// Every tool in scope.
    pub tools: Vec<ToolSpec>,
}

/// Payload of `tool:cancel-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCancelled {
    /// Which call.
    pub tool_id: ToolId,
    /// Whether it was still open.
    pub cancelled: bool,
}

/// Payload of `tool:expose-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exposed {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The port on its own loopback.
    pub port: u16,
    /// Where this machine's loopback leads to it; absent where nothing does any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Payload of `tool:output-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputRange {
    /// Which call.
    pub tool_id: ToolId,
    /// Where the output came from.
    pub stream: OutputStream,
    /// The text of the range; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// First byte of it.
    pub offset: u64,
    /// Where the next range begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// Bytes of output altogether.
    pub total_bytes: u64,
}

/// Payload of `tool:history-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Executions {
    /// Records, newest first.
    pub executions: Vec<ExecutionRecord>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Payload of `tool:export-result`: a piece of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// How it is written.
    pub format: ExportFormat,
    /// Whole lines; the pieces after each other are the text. CSV begins with its line of names.
    pub text: String,
    /// How many records are in it.
    pub records: usize,
    /// Where the next piece begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Payload of `mcp:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServers {
    /// Every server.
    pub servers: Vec<McpServer>,
}

/// An MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: McpState,
    /// Names of its tools, as the model sees them.
    pub tools: Vec<String>,
    /// URIs of its resources.
    pub resources: Vec<String>,
    /// Names of its prompts.
    pub prompts: Vec<String>,
    /// What went wrong, with the end of its standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Payload of `mcp:auth-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAuthState {
    /// Which server.
    pub server: String,
    /// Whether somebody is signed in now.
    pub signed_in: bool,
    /// Where to sign in, as in `mcp:auth-required`; absent where that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<super::event::McpAuthRequired>,
}

/// How an MCP server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum McpState {
    /// It was started and has not answered yet.
    #[default]
    Starting,
    /// It serves.
    Ready,
    /// It failed and is started again after a while.
    Restarting,
    /// It asks its user to sign in.
    SignIn,
    /// It failed for good.
    Failed,
    /// It was stopped or removed.
    Stopped,
}

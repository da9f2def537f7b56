//! What a client receives: events of exchanges, and the answers to its requests.
//!
//! Here are the events and whose they are; their payloads are below by subject, those of answers in
//! [`answer`].

mod compaction;
mod end;
mod mcp;
mod session;
mod stream;
mod subject;
mod tool;
mod usage;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer;
use super::budget::{BudgetConfirm, BudgetResolved, BudgetTaken, UsageReported};
use super::client_tools::{
    Executing, HandedBack, HandedOut, OutputTaken, ToolsRegistered, ToolsUnregistered,
};
use super::command::Layer;
use super::context::ContextUse;
use super::input::{InputTaken, ToolInputRequest, ToolInputResolved};
use super::mcp::{McpChanged, McpLog, McpPromptContent, McpPrompts, McpResourceName, McpResources};
use super::queue::QueueListed;
use super::record;
use super::roles::{Resynced, SessionRoles, TakenOver};
use super::settings::{ConfigReloaded, ConfigValues, SearchConfigured, Workflows};
use super::status::SessionStatus;
use super::trust::{InstructionsChanged, SkillsListed, TrustConfirm, TrustResolved, TrustTaken};
use crate::message::Notice;

pub use compaction::{
    Compaction, CompactionFailure, CompactionKind, CompactionPhase, CompactionResult,
    CompactionTrigger,
};
pub use end::{AnswerOutput, ChatError, StopReason, StreamEnd};
pub use mcp::McpAuthRequired;
pub use session::{
    Landlock, Project, Ready, ReadyProvider, Sandbox, SandboxLimit, SandboxLimits, SessionError,
    SessionUpdated,
};
pub use stream::{
    Delta, DeltaEvent, Queued, State, StateName, Steered, StreamStart, TurnDiscarded, WholeMessage,
};
pub use subject::Subject;
pub use tool::{
    BackgroundChanged, By, Outcome, PortOpened, RememberOffer, ResultStatus, ToolConfirm,
    ToolDelta, ToolExtended, ToolInputDelta, ToolOutcome, ToolResolved, ToolStart, TriggeredRule,
};
pub use usage::{Context, Tokens, TurnUsage};

/// A frame to a client, told apart by its `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "payload")]
pub enum Event {
    /// The socket is on a session.
    #[serde(rename = "session:ready")]
    SessionReady(Box<Ready>),
    /// A request is wrong, or cannot be fulfilled.
    #[serde(rename = "session:error")]
    SessionError(SessionError),
    /// Something that is no conversation's error.
    #[serde(rename = "session:notice")]
    SessionNotice(Notice),
    /// Something changed about a kept session.
    #[serde(rename = "session:updated")]
    SessionUpdated(SessionUpdated),
    /// Answers `session:configure`.
    #[serde(rename = "session:configure-result")]
    SessionConfigureResult(answer::Configured),
    /// Answers `session:ping`.
    #[serde(rename = "session:ping-result")]
    SessionPingResult(super::command::Empty),
    /// Answers `session:status`.
    #[serde(rename = "session:status-result")]
    SessionStatusResult(SessionStatus),
    /// The session stands otherwise than before.
    #[serde(rename = "session:status-changed")]
    SessionStatusChanged(SessionStatus),
    /// Answers `session:take-over`.
    #[serde(rename = "session:take-over-result")]
    SessionTakeOverResult(TakenOver),
    /// Who is on the session.
    #[serde(rename = "session:roles")]
    SessionRoles(SessionRoles),
    /// Ends a resync that one socket alone gets, and says up to which number that tells.
    #[serde(rename = "session:resynced")]
    SessionResynced(Resynced),
    /// Answers `session:state`.
    #[serde(rename = "session:state-result")]
    SessionStateResult(answer::SessionState),

    /// Answers `chat:send`.
    #[serde(rename = "chat:send-result")]
    ChatSendResult(answer::Sent),
    /// Answers `chat:cancel`.
    #[serde(rename = "chat:cancel-result")]
    ChatCancelResult(answer::Cancelled),
    /// Answers `chat:history`, and follows a replay gap.
    #[serde(rename = "chat:history-result")]
    ChatHistoryResult(answer::History),
    /// Answers `chat:queue`.
    #[serde(rename = "chat:queue-result")]
    ChatQueueResult(QueueListed),
    /// Answers `chat:context`.
    #[serde(rename = "chat:context-result")]
    ChatContextResult(ContextUse),
    /// Answers `chat:compact`.
    #[serde(rename = "chat:compact-result")]
    ChatCompactResult(answer::Compacting),
    /// Answers `chat:close`.
    #[serde(rename = "chat:close-result")]
    ChatCloseResult(answer::Closed),
    /// Answers `chat:tool-approve`.
    #[serde(rename = "chat:tool-approve-result")]
    ChatToolApproveResult(answer::Approved),
    /// Answers `chat:tool-input`.
    #[serde(rename = "chat:tool-input-result")]
    ChatToolInputResult(InputTaken),
    /// Answers `chat:tool-output`.
    #[serde(rename = "chat:tool-output-result")]
    ChatToolOutputResult(OutputTaken),
    /// Answers `chat:tool-extend`.
    #[serde(rename = "chat:tool-extend-result")]
    ChatToolExtendResult(answer::Extended),

    /// Answers `chat:budget-approve`.
    #[serde(rename = "chat:budget-approve-result")]
    ChatBudgetApproveResult(BudgetTaken),
    /// Answers `chat:trust-approve`.
    #[serde(rename = "chat:trust-approve-result")]
    ChatTrustApproveResult(TrustTaken),

    /// Answers `skill:list`.
    #[serde(rename = "skill:list-result")]
    SkillListResult(SkillsListed),

    /// A send waits for its turn.
    #[serde(rename = "chat:queued")]
    ChatQueued(Queued),
    /// An exchange began.
    #[serde(rename = "chat:stream-start")]
    ChatStreamStart(StreamStart),
    /// More text of the answer.
    #[serde(rename = "chat:text-delta")]
    ChatTextDelta(Delta),
    /// More thinking.
    #[serde(rename = "chat:thinking-delta")]
    ChatThinkingDelta(Delta),
    /// More of a call's input, as the model writes it.
    #[serde(rename = "chat:tool-input-delta")]
    ChatToolInputDelta(ToolInputDelta),
    /// The user is asked.
    #[serde(rename = "chat:tool-confirm")]
    ChatToolConfirm(Box<ToolConfirm>),
    /// A question is settled.
    #[serde(rename = "chat:tool-resolved")]
    ChatToolResolved(ToolResolved),
    /// A running call asks the user for something.
    #[serde(rename = "chat:tool-input-request")]
    ChatToolInputRequest(Box<ToolInputRequest>),
    /// What a call asked for is settled.
    #[serde(rename = "chat:tool-input-resolved")]
    ChatToolInputResolved(ToolInputResolved),
    /// A call that the client is to run.
    #[serde(rename = "chat:tool-call")]
    ChatToolCall(Box<HandedOut>),
    /// Nobody waits for the output of such a call any more.
    #[serde(rename = "chat:tool-cancelled")]
    ChatToolCancelled(HandedBack),
    /// A cap does not allow the next request to the model, and the user is asked.
    #[serde(rename = "chat:budget-confirm")]
    ChatBudgetConfirm(Box<BudgetConfirm>),
    /// The question whether more may be spent is settled.
    #[serde(rename = "chat:budget-resolved")]
    ChatBudgetResolved(BudgetResolved),
    /// Files of the project would speak for the user, and the user is asked.
    #[serde(rename = "chat:trust-confirm")]
    ChatTrustConfirm(Box<TrustConfirm>),
    /// The question whether files may speak for the user is settled.
    #[serde(rename = "chat:trust-resolved")]
    ChatTrustResolved(TrustResolved),
    /// The files that the model is told as the user's words are others than at the begin of the exchange.
    #[serde(rename = "chat:instructions")]
    ChatInstructions(InstructionsChanged),
    /// A question lapses later than was announced.
    #[serde(rename = "chat:tool-extended")]
    ChatToolExtended(ToolExtended),
    /// A call runs.
    #[serde(rename = "chat:tool-start")]
    ChatToolStart(ToolStart),
    /// A running call has output.
    #[serde(rename = "chat:tool-delta")]
    ChatToolDelta(ToolDelta),
    /// A command in the background began or ended.
    #[serde(rename = "tool:background")]
    ToolBackground(BackgroundChanged),
    /// A command in the background began to listen on a port.
    #[serde(rename = "tool:port-open")]
    ToolPortOpen(PortOpened),
    /// A call is settled.
    #[serde(rename = "chat:tool-result")]
    ChatToolResult(Box<ToolOutcome>),
    /// A turn's tokens.
    #[serde(rename = "chat:usage")]
    ChatUsage(TurnUsage),
    /// What the model sees of a conversation is made shorter.
    #[serde(rename = "chat:compaction")]
    ChatCompaction(Box<Compaction>),
    /// What a conversation is doing.
    #[serde(rename = "chat:state")]
    ChatState(State),
    /// A whole message.
    #[serde(rename = "chat:message")]
    ChatMessage(Box<WholeMessage>),
    /// A steered message became part of the exchange.
    #[serde(rename = "chat:steered")]
    ChatSteered(Steered),
    /// The deltas of a turn are void; it is run again.
    #[serde(rename = "chat:turn-discarded")]
    ChatTurnDiscarded(TurnDiscarded),
    /// An exchange went wrong, or a send was not admitted.
    #[serde(rename = "chat:error")]
    ChatError(Box<ChatError>),
    /// The answer of an exchange, as the data that its send asked for.
    #[serde(rename = "chat:output")]
    ChatOutput(Box<AnswerOutput>),
    /// An exchange is over; nothing of it follows.
    #[serde(rename = "chat:stream-end")]
    ChatStreamEnd(Box<StreamEnd>),

    /// Answers `approval:list`.
    #[serde(rename = "approval:list-result")]
    ApprovalListResult(answer::ApprovalRules),
    /// Answers `approval:revoke`.
    #[serde(rename = "approval:revoke-result")]
    ApprovalRevokeResult(answer::ApprovalsRevoked),
    /// Answers `provider:list`.
    #[serde(rename = "provider:list-result")]
    ProviderListResult(answer::Providers),
    /// Answers `session:list`.
    #[serde(rename = "session:list-result")]
    SessionListResult(answer::SessionPage),
    /// Answers `session:rename`.
    #[serde(rename = "session:rename-result")]
    SessionRenameResult(answer::SessionChanged),
    /// Answers `session:archive`.
    #[serde(rename = "session:archive-result")]
    SessionArchiveResult(answer::SessionChanged),
    /// Answers `session:label`.
    #[serde(rename = "session:label-result")]
    SessionLabelResult(answer::SessionChanged),
    /// Answers `session:export`.
    #[serde(rename = "session:export-result")]
    SessionExportResult(answer::SessionExported),
    /// Answers `session:import`.
    #[serde(rename = "session:import-result")]
    SessionImportResult(answer::SessionImported),
    /// Answers `session:delete`.
    #[serde(rename = "session:delete-result")]
    SessionDeleteResult(answer::SessionDeleted),
    /// Answers `session:fork`.
    #[serde(rename = "session:fork-result")]
    SessionForkResult(answer::SessionForked),
    /// Answers `provider:configure`.
    #[serde(rename = "provider:configure-result")]
    ProviderConfigureResult(answer::ProviderConfigured),
    /// Answers `provider:validate`.
    #[serde(rename = "provider:validate-result")]
    ProviderValidateResult(answer::ProviderValidated),
    /// Answers `search:configure`.
    #[serde(rename = "search:configure-result")]
    SearchConfigureResult(SearchConfigured),
    /// Answers `workflow:list`.
    #[serde(rename = "workflow:list-result")]
    WorkflowListResult(Workflows),
    /// Answers `workflow:put`, with all there are then.
    #[serde(rename = "workflow:put-result")]
    WorkflowPutResult(Workflows),
    /// Answers `config:get`.
    #[serde(rename = "config:get-result")]
    ConfigGetResult(ConfigValues),
    /// Answers `config:reload`.
    #[serde(rename = "config:reload-result")]
    ConfigReloadResult(ConfigReloaded),
    /// Answers `model:list`.
    #[serde(rename = "model:list-result")]
    ModelListResult(answer::Models),
    /// Answers `tool:list`.
    #[serde(rename = "tool:list-result")]
    ToolListResult(answer::Tools),
    /// Answers `tool:register`.
    #[serde(rename = "tool:register-result")]
    ToolRegisterResult(ToolsRegistered),
    /// Answers `tool:unregister`.
    #[serde(rename = "tool:unregister-result")]
    ToolUnregisterResult(ToolsUnregistered),
    /// Answers `tool:execute`.
    #[serde(rename = "tool:execute-result")]
    ToolExecuteResult(Executing),
    /// Answers `tool:expose`.
    #[serde(rename = "tool:expose-result")]
    ToolExposeResult(answer::Exposed),
    /// Answers `tool:cancel`.
    #[serde(rename = "tool:cancel-result")]
    ToolCancelResult(answer::ToolCancelled),
    /// Answers `tool:status`.
    #[serde(rename = "tool:status-result")]
    ToolStatusResult(Box<record::ExecutionRecord>),
    /// Answers `tool:output`.
    #[serde(rename = "tool:output-result")]
    ToolOutputResult(answer::OutputRange),
    /// Answers `tool:history`.
    #[serde(rename = "tool:history-result")]
    ToolHistoryResult(answer::Executions),
    /// Answers `tool:metrics`.
    #[serde(rename = "tool:metrics-result")]
    ToolMetricsResult(record::ToolMetrics),
    /// Answers `tool:export`.
    #[serde(rename = "tool:export-result")]
    ToolExportResult(answer::Export),
    /// Answers `usage:report`.
    #[serde(rename = "usage:report-result")]
    UsageReportResult(UsageReported),
    /// Answers `files:changes`.
    #[serde(rename = "files:changes-result")]
    FilesChangesResult(answer::FileChanges),
    /// Answers `files:revert`.
    #[serde(rename = "files:revert-result")]
    FilesRevertResult(answer::FilesReverted),
    /// Answers `mcp:list`.
    #[serde(rename = "mcp:list-result")]
    McpListResult(answer::McpServers),
    /// Answers `mcp:add`.
    #[serde(rename = "mcp:add-result")]
    McpAddResult(answer::McpServer),
    /// Answers `mcp:remove`.
    #[serde(rename = "mcp:remove-result")]
    McpRemoveResult(answer::McpServer),
    /// An MCP server asks its user to sign in.
    #[serde(rename = "mcp:auth-required")]
    McpAuthRequired(McpAuthRequired),
    /// Answers `mcp:auth`.
    #[serde(rename = "mcp:auth-result")]
    McpAuthResult(answer::McpAuthState),
    /// Answers `mcp:sign-out`.
    #[serde(rename = "mcp:sign-out-result")]
    McpSignOutResult(answer::McpServer),
    /// Answers `mcp:read-resource`, as the server gave it.
    #[serde(rename = "mcp:read-resource-result")]
    McpReadResourceResult(Map<String, Value>),
    /// Answers `mcp:get-prompt`, as the server gave it.
    #[serde(rename = "mcp:get-prompt-result")]
    McpGetPromptResult(Map<String, Value>),
    /// Answers `mcp:list-resources`.
    #[serde(rename = "mcp:list-resources-result")]
    McpListResourcesResult(McpResources),
    /// Answers `mcp:list-prompts`.
    #[serde(rename = "mcp:list-prompts-result")]
    McpListPromptsResult(McpPrompts),
    /// Answers `mcp:use-prompt`.
    #[serde(rename = "mcp:use-prompt-result")]
    McpUsePromptResult(McpPromptContent),
    /// Answers `mcp:subscribe`.
    #[serde(rename = "mcp:subscribe-result")]
    McpSubscribeResult(McpResourceName),
    /// Answers `mcp:unsubscribe`.
    #[serde(rename = "mcp:unsubscribe-result")]
    McpUnsubscribeResult(McpResourceName),
    /// A resource that the session follows may be another one than before.
    #[serde(rename = "mcp:resource-updated")]
    McpResourceUpdated(McpResourceName),
    /// Lists of an MCP server are others than before.
    #[serde(rename = "mcp:changed")]
    McpChanged(McpChanged),
    /// A line of an MCP server's log.
    #[serde(rename = "mcp:log")]
    McpLog(Box<McpLog>),
}

impl Event {
    /// Returns the layer that the event belongs to; `None` for what is always sent.
    pub fn layer(&self) -> Option<Layer> {
        match self {
            Self::ChatTextDelta(_)
            | Self::ChatThinkingDelta(_)
            | Self::ChatToolInputDelta(_)
            | Self::ChatToolStart(_)
            | Self::ChatToolDelta(_)
            | Self::ChatToolResult(_)
            | Self::ChatUsage(_)
            | Self::ChatTurnDiscarded(_) => Some(Layer::Stream),
            Self::ChatState(_) | Self::ToolBackground(_) | Self::ToolPortOpen(_) => {
                Some(Layer::State)
            }
            Self::ChatMessage(_) => Some(Layer::Message),
            Self::SessionUpdated(_) => Some(Layer::Sessions),
            Self::SessionStatusChanged(_) => Some(Layer::Status),
            Self::McpChanged(_) | Self::McpLog(_) => Some(Layer::Servers),
            _ => None,
        }
    }
}

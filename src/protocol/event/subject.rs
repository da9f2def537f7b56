//! What an event is about: the session, a conversation, or a question in one.

use super::Event;
use crate::message::ConversationId;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The session, or a request about it.
    Session,
    /// What happens in a conversation.
    Conversation(&'a ConversationId),
    /// A question in a conversation: that it is asked, lapses later, or is settled.
    Question(&'a ConversationId),
}

impl Event {
    /// Returns what the event is about.
    ///
    /// There is no other list of the events that are questions, and none is left out of this one: whoever may answer gets all
    /// of them, also what a task asks.
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Self::ChatToolConfirm(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolResolved(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolInputRequest(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolInputResolved(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolCall(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolCancelled(it) => Subject::Question(&it.conversation_id),
            Self::ChatBudgetConfirm(it) => Subject::Question(&it.conversation_id),
            Self::ChatBudgetResolved(it) => Subject::Question(&it.conversation_id),
            Self::ChatTrustConfirm(it) => Subject::Question(&it.conversation_id),
            Self::ChatTrustResolved(it) => Subject::Question(&it.conversation_id),
            Self::ChatToolExtended(it) => Subject::Question(&it.conversation_id),

            Self::ChatSendResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatCancelResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatHistoryResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatQueueResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatContextResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatCloseResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatQueued(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatStreamStart(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatTextDelta(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatThinkingDelta(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatToolInputDelta(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatInstructions(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatToolStart(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatToolDelta(it) => Subject::Conversation(&it.conversation_id),
            Self::ToolBackground(it) => Subject::Conversation(&it.conversation_id),
            Self::ToolPortOpen(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatToolResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatUsage(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatCompaction(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatState(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatMessage(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatSteered(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatTurnDiscarded(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatError(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatOutput(it) => Subject::Conversation(&it.conversation_id),
            Self::ChatStreamEnd(it) => Subject::Conversation(&it.conversation_id),
            Self::ToolExecuteResult(it) => Subject::Conversation(&it.conversation_id),
            Self::ToolExposeResult(it) => Subject::Conversation(&it.conversation_id),

            Self::SessionReady(_)
            | Self::SessionError(_)
            | Self::SessionNotice(_)
            | Self::SessionUpdated(_)
            | Self::SessionConfigureResult(_)
            | Self::SessionPingResult(_)
            | Self::SessionStatusResult(_)
            | Self::SessionStatusChanged(_)
            | Self::SessionTakeOverResult(_)
            | Self::SessionRoles(_)
            | Self::SessionResynced(_)
            | Self::SessionStateResult(_)
            | Self::ChatCompactResult(_)
            | Self::ChatToolApproveResult(_)
            | Self::ChatToolInputResult(_)
            | Self::ChatToolOutputResult(_)
            | Self::ChatToolExtendResult(_)
            | Self::ChatBudgetApproveResult(_)
            | Self::ChatTrustApproveResult(_)
            | Self::SkillListResult(_)
            | Self::ApprovalListResult(_)
            | Self::ApprovalRevokeResult(_)
            | Self::ProviderListResult(_)
            | Self::SessionListResult(_)
            | Self::SessionRenameResult(_)
            | Self::SessionArchiveResult(_)
            | Self::SessionLabelResult(_)
            | Self::SessionExportResult(_)
            | Self::SessionImportResult(_)
            | Self::SessionDeleteResult(_)
            | Self::SessionForkResult(_)
            | Self::ProviderConfigureResult(_)
            | Self::ProviderValidateResult(_)
            | Self::SearchConfigureResult(_)
            | Self::WorkflowListResult(_)
            | Self::WorkflowPutResult(_)
            | Self::ConfigGetResult(_)
            | Self::ConfigReloadResult(_)
            | Self::ModelListResult(_)
            | Self::ToolListResult(_)
            | Self::ToolRegisterResult(_)
            | Self::ToolUnregisterResult(_)
            | Self::ToolCancelResult(_)
            | Self::ToolStatusResult(_)
            | Self::ToolOutputResult(_)
            | Self::ToolHistoryResult(_)
            | Self::ToolMetricsResult(_)
            | Self::ToolExportResult(_)
            | Self::UsageReportResult(_)
            | Self::FilesChangesResult(_)
            | Self::FilesRevertResult(_)
            | Self::McpListResult(_)
            | Self::McpAddResult(_)
            | Self::McpRemoveResult(_)
            | Self::McpReadResourceResult(_)
            | Self::McpGetPromptResult(_)
            | Self::McpAuthRequired(_)
            | Self::McpAuthResult(_)
            | Self::McpSignOutResult(_)
            | Self::McpListResourcesResult(_)
            | Self::McpListPromptsResult(_)
            | Self::McpUsePromptResult(_)
            | Self::McpSubscribeResult(_)
            | Self::McpUnsubscribeResult(_)
            | Self::McpResourceUpdated(_)
            | Self::McpChanged(_)
            | Self::McpLog(_) => Subject::Session,
        }
    }

    /// Returns whether the event asks something, or says what became of a question.
    pub fn is_question(&self) -> bool {
        matches!(self.subject(), Subject::Question(_))
    }

    /// Returns whether it tells what happens in a task, besides what is asked there: all of that is in what its call comes to.
    pub fn is_within_task(&self) -> bool {
        matches!(self.subject(), Subject::Conversation(id) if id.task().is_some())
    }

    /// Returns the conversation that the event belongs to; `None` for what is the session's.
    pub fn conversation(&self) -> Option<&ConversationId> {
        match self.subject() {
            Subject::Session => None,
            Subject::Conversation(id) | Subject::Question(id) => Some(id),
        }
    }
}

//! Requests about tools and their calls.

use std::sync::Arc;

use super::resolve::invalid;
use super::{Session, resolve};
use crate::config::ExposePolicy;
use crate::conversation::{self, View};
use crate::exchange::executions::NoOutput;
use crate::protocol::command;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode, answer};
use crate::tool::background::NotExposed;

impl Session {
    pub(super) fn tools(&self, wanted: &command::ToolList) -> Result<Event, SessionError> {
        let config = &self.daemon.services.config();
        let default = self.daemon.providers.default_id();
        let defaults = self.defaults.allowed(config, default);
        let name = wanted.workflow.as_deref().unwrap_or(&defaults.workflow);
        let workflow = resolve::workflow(name, config)?;
        let scope = super::scope::scope(workflow, wanted.tool_permissions.as_ref(), config)?;
        let tools = self.shared.tools.snapshot();
        Ok(Event::ToolListResult(answer::Tools {
            tools: tools
                .values()
                .map(|tool| tool.spec())
                .filter(|spec| scope.allows(spec))
                .cloned()
                .collect(),
        }))
    }

    /// Answers with a range of a call's output, which is on the disk.
    pub(super) fn output(&self, wanted: command::ToolOutput, id: Option<&RequestId>) {
        if wanted.limit == Some(0) {
            let problem = invalid("tool:output: field `limit` must be 1 at least");
            return self.answer(id, Event::SessionError(problem));
        }
        let executions = Arc::clone(&self.shared.executions);
        let problem = "too many requests for outputs at once; try again";
        self.answer_with_permit(&self.output_reads, problem, id, async move {
            let tool_id = wanted.tool_id.clone();
            let read = tokio::task::spawn_blocking(move || executions.output(&wanted)).await;
            match read.unwrap_or(Err(NoOutput::Dropped)) {
                Ok(range) => Event::ToolOutputResult(range),
                Err(NoOutput::Unknown) => Event::SessionError(no_tool(tool_id.as_str())),
                Err(NoOutput::Dropped) => Event::SessionError(SessionError::new(
                    SessionCode::ToolNotFound,
                    format!(
                        "the output of `{tool_id}` is no longer kept: newer ones needed the room, or the disk had none; the result holds its head and tail"
                    ),
                )),
            }
        });
    }

    /// Has the machine's loopback lead to a port of a conversation's, or to none any more. Asking for it is the user's approval.
    pub(super) async fn expose(&self, wanted: command::Expose) -> Result<Event, SessionError> {
        let command::Expose {
            conversation_id,
            port,
            close,
        } = wanted;
        let port = port.get();
        if self.daemon.services.config().tools.bash.expose == ExposePolicy::Off {
            let message = "ports of commands are not exposed here (tools.bash.expose)";
            return Err(SessionError::new(SessionCode::Forbidden, message));
        }
        let find = move |view: View<'_>| view.context.conversation.background.on_port(port);
        let Some(found) = self.look(&conversation_id, find).await else {
            let message = format!("no conversation {:?} is open", conversation_id.as_str());
            return Err(SessionError::new(
                SessionCode::ConversationNotFound,
                message,
            ));
        };
        let unavailable = |problem| invalid(format!("tool:expose: field `port`: {problem}"));
        let found = found.map_err(unavailable)?;
        let url = match close {
            true => {
                found.close();
                None
            }
            false => {
                // A command must not become the server that somebody's prompts or searches go to.
                let reserved = self.daemon.services.config().local_ports();
                let url = found.expose(&reserved).await;
                let failed = |problem| match problem {
                    NotExposed::Unavailable(problem) => unavailable(problem),
                    NotExposed::System(problem) => {
                        SessionError::new(SessionCode::Internal, problem)
                    }
                };
                Some(url.map_err(failed)?)
            }
        };
        Ok(Event::ToolExposeResult(answer::Exposed {
            conversation_id,
            port,
            url,
        }))
    }

    pub(super) async fn cancel_tool(
        &self,
        tool_id: crate::message::ToolId,
    ) -> Result<Event, SessionError> {
        let owner = self.shared.executions.conversation_of(&tool_id);
        if owner.is_none() && self.shared.executions.get(&tool_id).is_none() {
            return Err(no_tool(tool_id.as_str()));
        }
        let cancelled = match owner {
            Some(owner) => {
                let command = conversation::Command::CancelTool(tool_id.clone());
                self.command(&owner, command).await
            }
            None => false,
        };
        Ok(Event::ToolCancelResult(answer::ToolCancelled {
            tool_id,
            cancelled,
        }))
    }
}

pub(super) fn no_tool(id: &str) -> SessionError {
    let message = format!("no tool call `{id}` is known in this session");
    SessionError::new(SessionCode::ToolNotFound, message)
}

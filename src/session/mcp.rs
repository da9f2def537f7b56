//! Requests about MCP servers.

use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::Session;
use crate::config::{self, AddedServer};
use crate::protocol::command::{McpAdd, McpGetPrompt, McpReadResource};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode};

impl Session {
    /// Starts a server that a client names, where the operator lets clients.
    pub(super) fn add_server(&self, wanted: McpAdd) -> Result<Event, SessionError> {
        self.may_change_servers()?;
        let McpAdd {
            name,
            command,
            args,
            env,
            url,
            headers,
        } = wanted;
        let added = AddedServer {
            command,
            args,
            env,
            url,
            headers,
        };
        let server = config::mcp_server(&name, added)
            .map_err(|message| SessionError::new(SessionCode::InvalidPayload, message))?;
        for secret in server.secrets() {
            self.daemon.services.redactor.add(secret.expose_secret());
        }
        self.daemon
            .mcp
            .add(&name, server)
            .map(Event::McpAddResult)
            .map_err(|problem| SessionError::new(SessionCode::McpError, problem.to_string()))
    }

    /// Ends a server and answers when nothing of it is left.
    pub(super) fn remove_server(&self, name: String, id: Option<&RequestId>) {
        if let Err(refused) = self.may_change_servers() {
            return self.answer(id, Event::SessionError(refused));
        }
        let daemon = Arc::clone(&self.daemon);
        self.answer_later(id, async move {
            answered(daemon.mcp.remove(&name).await.map(Event::McpRemoveResult))
        });
    }

    pub(super) fn read_resource(&self, wanted: McpReadResource, id: Option<&RequestId>) {
        let daemon = Arc::clone(&self.daemon);
        self.answer_later(id, async move {
            let read = daemon.mcp.read_resource(&wanted.server, &wanted.uri).await;
            answered(read.map(Event::McpReadResourceResult))
        });
    }

    pub(super) fn get_prompt(&self, wanted: McpGetPrompt, id: Option<&RequestId>) {
        let daemon = Arc::clone(&self.daemon);
        self.answer_later(id, async move {
            let McpGetPrompt {
                server,
                name,
                arguments,
            } = wanted;
            let got = daemon.mcp.get_prompt(&server, &name, arguments).await;
            answered(got.map(Event::McpGetPromptResult))
        });
    }

    fn may_change_servers(&self) -> Result<(), SessionError> {
        if self.daemon.services.config.mcp.allow_runtime_add {
            return Ok(());
        }
        Err(SessionError::new(
            SessionCode::Forbidden,
            "clients may not add or remove MCP servers here; the operator allows it with mcp.allow_runtime_add = true",
        ))
    }
}

fn answered(outcome: Result<Event, crate::mcp::McpError>) -> Event {
    outcome.unwrap_or_else(|problem| {
        Event::SessionError(SessionError::new(
            SessionCode::McpError,
            problem.to_string(),
        ))
    })
}

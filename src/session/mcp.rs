//! Requests about MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::Session;
use crate::config::{self, HttpServer, McpTransport, NamedValue, StdioServer};
use crate::protocol::command::{McpAdd, McpGetPrompt, McpReadResource};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{RequestId, SessionCode};

impl Session {
    /// Starts a server that a client names, where the operator lets clients.
    pub(super) fn add_server(&self, wanted: McpAdd) -> Result<Event, SessionError> {
        self.may_change_servers()?;
        let invalid = |message| SessionError::new(SessionCode::InvalidPayload, message);
        let McpAdd {
            name,
            command,
            args,
            env,
            url,
            headers,
        } = wanted;
        let transport = match (command, url) {
            (Some(command), None) if headers.is_empty() && !command.trim().is_empty() => {
                McpTransport::Stdio(StdioServer {
                    command,
                    args,
                    env: secret(env),
                    network: true,
                    ..StdioServer::default()
                })
            }
            (None, Some(url)) if args.is_empty() && env.is_empty() => {
                let headers = secret(headers);
                McpTransport::Http(HttpServer { url, headers })
            }
            _ => {
                let needed = "give `command`, with `args` and `env`, or `url`, with `headers`";
                return Err(invalid(needed.to_owned()));
            }
        };
        let server = config::added_server(&name, transport).map_err(invalid)?;
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
        if self.daemon.services.config().mcp.allow_runtime_add {
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

fn secret(texts: BTreeMap<String, String>) -> BTreeMap<String, NamedValue> {
    let texts = texts.into_iter();
    texts.map(|(name, text)| (name, text.into())).collect()
}

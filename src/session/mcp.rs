//! Requests about MCP servers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use tokio::sync::broadcast::Receiver;

use super::Session;
use super::roles::not_an_operator;
use crate::config::{
    self, HttpServer, McpServerConfig, McpTransport, NamedValue, SignInConfig, StdioServer,
};
use crate::mcp::{self, Ear, McpError, Reach};
use crate::notices::Addressed;
use crate::protocol::answer::{McpServer, McpServers};
use crate::protocol::command::{McpAdd, McpAuth, McpGetPrompt, McpReadResource};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::mcp::{McpListPrompts, McpListResources, McpResourceName, McpUsePrompt};
use crate::protocol::{RequestId, SessionCode};
use crate::users::Grant;

/// What a user is told of a server that is not well, who is no operator: its words may name files, hosts and keys.
const UNWELL: &str = "it is not well; who operates the daemon is told why";

impl Session {
    /// Lists the servers of the daemon.
    pub(super) fn list_servers(&self, is_operator: bool) -> Event {
        self.daemon.mcp.seek(&self.shared.id);
        let mut servers = self.daemon.mcp.list();
        if !is_operator {
            let problems = servers.iter_mut().filter_map(|it| it.error.as_mut());
            problems.for_each(|problem| UNWELL.clone_into(problem));
        }
        Event::McpListResult(McpServers { servers })
    }

    /// Starts a server that a client names, where the operator lets clients.
    pub(super) fn add_server(&self, wanted: McpAdd) -> Result<Event, SessionError> {
        let name = wanted.name.clone();
        let server = self.wanted_server(wanted, None)?;
        let added = self.daemon.mcp.add(&name, server);
        added
            .map(Event::McpAddResult)
            .map_err(|problem| refused(&problem))
    }

    /// Starts one for the client that is on the session now, and for the session alone. It works in the session's project.
    pub(super) fn add_own_server(
        &self,
        wanted: McpAdd,
        grant: &Grant,
    ) -> Result<McpServer, SessionError> {
        // It is a program of the client's choice, outside of what confines commands.
        if !grant.is_operator {
            return Err(not_an_operator());
        }
        let name = wanted.name.clone();
        let workspace = &self.shared.workspace;
        let cwd = workspace.project().ok().map(|project| project.root.clone());
        let server = self.wanted_server(wanted, cwd)?;
        let own = mcp::Own {
            owner: self.shared.id.clone(),
            registry: Arc::clone(&self.tools_of_tasks),
            exec: workspace.exec().ok().cloned(),
            notices: self.own_notices.clone(),
            user: grant.user.as_str().to_owned(),
        };
        let added = self.daemon.mcp.add_own(&name, server, own);
        added.map_err(|problem| refused(&problem))
    }

    /// Reads what a client wants, where the operator lets clients.
    fn wanted_server(
        &self,
        wanted: McpAdd,
        cwd: Option<PathBuf>,
    ) -> Result<McpServerConfig, SessionError> {
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
                    cwd,
                    ..StdioServer::default()
                })
            }
            (None, Some(url)) if args.is_empty() && env.is_empty() => {
                let headers = secret(headers);
                let auth = SignInConfig::default();
                McpTransport::Http(HttpServer { url, headers, auth })
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
        Ok(server)
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

    /// Tells a session that begins what MCP servers ask of operators already.
    pub(super) fn say_where_to_sign_in(&self, notices: &mut Receiver<Addressed>) {
        self.daemon.mcp.seek(&self.shared.id);
        let asked = match self.grant.is_operator {
            true => self.daemon.mcp.asked(),
            false => Vec::new(),
        };
        // One that was begun since this session listens is among the news as well.
        while let Ok(news) = notices.try_recv() {
            let is_said = news.sign_in().is_some_and(|it| asked.contains(it));
            let news = self.said(news).filter(|_| !is_said);
            news.into_iter()
                .for_each(|news| self.shared.events.emit(news.into()));
        }
        for asked in asked {
            self.shared.events.emit(Event::McpAuthRequired(asked));
        }
    }

    /// Says where to sign in at a server, or takes what the page there answered.
    pub(super) fn sign_in(&self, wanted: McpAuth, id: Option<&RequestId>) {
        let (daemon, owner) = (Arc::clone(&self.daemon), self.shared.id.clone());
        self.answer_later(id, async move {
            let McpAuth { server, url, code } = wanted;
            let signed = daemon.mcp.sign_in(&owner, &server, code, url.as_deref());
            answered(signed.await.map(Event::McpAuthResult))
        });
    }

    /// Forgets the sign-in at a server.
    pub(super) fn sign_out(&self, server: String, id: Option<&RequestId>) {
        let (daemon, owner) = (Arc::clone(&self.daemon), self.shared.id.clone());
        self.answer_later(id, async move {
            let out = daemon.mcp.sign_out(&owner, &server).await;
            answered(out.map(Event::McpSignOutResult))
        });
    }

    pub(super) fn read_resource(&self, wanted: McpReadResource, id: Option<&RequestId>) {
        let (daemon, reach) = (Arc::clone(&self.daemon), self.reach());
        self.answer_later(id, async move {
            let McpReadResource { server, uri } = wanted;
            let read = daemon.mcp.read_resource(&reach, &server, &uri).await;
            answered(read.map(Event::McpReadResourceResult))
        });
    }

    pub(super) fn get_prompt(&self, wanted: McpGetPrompt, id: Option<&RequestId>) {
        let (daemon, reach) = (Arc::clone(&self.daemon), self.reach());
        self.answer_later(id, async move {
            let McpGetPrompt {
                server,
                name,
                arguments,
            } = wanted;
            let got = daemon.mcp.get_prompt(&reach, &server, &name, arguments);
            answered(got.await.map(Event::McpGetPromptResult))
        });
    }

    pub(super) fn list_resources(&self, wanted: &McpListResources) -> Result<Event, SessionError> {
        let listed = self.daemon.mcp.list_resources(&self.reach(), wanted);
        listed
            .map(Event::McpListResourcesResult)
            .map_err(|problem| refused(&problem))
    }

    pub(super) fn list_prompts(&self, wanted: &McpListPrompts) -> Result<Event, SessionError> {
        let listed = self.daemon.mcp.list_prompts(&self.reach(), wanted);
        listed
            .map(Event::McpListPromptsResult)
            .map_err(|problem| refused(&problem))
    }

    pub(super) fn use_prompt(&self, wanted: McpUsePrompt, id: Option<&RequestId>) {
        let (daemon, reach) = (Arc::clone(&self.daemon), self.reach());
        self.answer_later(id, async move {
            let said = daemon.mcp.use_prompt(&reach, wanted).await;
            answered(said.map(Event::McpUsePromptResult))
        });
    }

    pub(super) fn subscribe(&self, wanted: McpResourceName, id: Option<&RequestId>) {
        let (daemon, reach) = (Arc::clone(&self.daemon), self.reach());
        self.answer_later(id, async move {
            let subscribed = daemon.mcp.subscribe(&reach, wanted).await;
            answered(subscribed.map(Event::McpSubscribeResult))
        });
    }

    pub(super) fn unsubscribe(&self, wanted: McpResourceName, id: Option<&RequestId>) {
        let (daemon, reach) = (Arc::clone(&self.daemon), self.reach());
        self.answer_later(id, async move {
            let left = daemon.mcp.unsubscribe(&reach, wanted).await;
            answered(left.map(Event::McpUnsubscribeResult))
        });
    }

    /// Hears what servers say by themselves, until [`end_servers`](Self::end_servers).
    pub(super) fn listen(&self) -> Arc<Ear> {
        let is_operator = self.grant.is_operator;
        self.daemon.mcp.listen(&self.shared.id, is_operator)
    }

    pub(super) fn emit_all(&self, events: Vec<Event>) {
        for event in events {
            self.shared.events.emit(event);
        }
    }

    /// Ends what servers have to do with the session, and those that serve it alone.
    pub(super) fn end_servers(&self) {
        self.daemon.mcp.forget(&self.shared.id);
        self.daemon.mcp.end_own(&self.shared.id);
    }

    /// Returns which servers the session reaches: programs only from the project that they run in.
    fn reach(&self) -> Reach {
        let own = self.daemon.workspaces.own();
        Reach {
            session: self.shared.id.clone(),
            programs: Arc::ptr_eq(&self.shared.workspace, own),
        }
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

fn answered(outcome: Result<Event, McpError>) -> Event {
    outcome.unwrap_or_else(|problem| Event::SessionError(refused(&problem)))
}

fn refused(problem: &McpError) -> SessionError {
    SessionError::new(SessionCode::McpError, problem.to_string())
}

fn secret(texts: BTreeMap<String, String>) -> BTreeMap<String, NamedValue> {
    let texts = texts.into_iter();
    texts.map(|(name, text)| (name, text.into())).collect()
}

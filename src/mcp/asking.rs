//! What clients ask of servers besides calls: their resources and prompts, and to be told of changes.

use std::sync::Arc;

use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ReadResourceRequestParams,
    ReadResourceResponse,
};
use rmcp::service::{Peer, RoleClient};
use serde_json::{Map, Value};

use super::audience::Ear;
use super::catalog::{Catalog, Page};
use super::handle::{Handle, Link};
use super::subscriptions::{MAX_OF_SESSION, MAX_URI};
use super::{Failure, Mcp, McpError, content, prompt};
use crate::config::McpTransport;
use crate::message::SessionId;
use crate::protocol::mcp::{
    McpListPrompts, McpListResources, McpPromptContent, McpPrompts, McpResourceName, McpResources,
    McpUsePrompt,
};

/// Who asks, and which servers that reaches.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The session, which reaches its own servers.
    pub session: SessionId,
    /// Whether it reaches programs, which run in the daemon's own project: else these would show their folder to whoever
    /// works in another one.
    pub programs: bool,
}

impl Mcp {
    /// Returns what a session hears of servers from now on, until it is [forgotten](Self::forget).
    pub fn listen(&self, session: &SessionId, is_operator: bool) -> Arc<Ear> {
        self.audience.listen(session, is_operator)
    }

    /// Forgets a session that has ended: nobody tells it of anything any more.
    pub fn forget(self: &Arc<Self>, session: &SessionId) {
        self.audience.forget(session);
        for handle in self.all(session) {
            let (this, session) = (Arc::clone(self), session.clone());
            for uri in handle.subscriptions.of(&session) {
                let (this, session, handle) = (Arc::clone(&this), session.clone(), handle.clone());
                self.tasks.spawn(async move {
                    let left = this.stop.run_until_cancelled(handle.leave(&uri, &session));
                    if let Some(Err(why)) = left.await {
                        tracing::debug!(why, "an MCP server goes on telling of a resource");
                    }
                });
            }
        }
    }

    /// Reads a resource, as the server gives it.
    pub async fn read_resource(
        &self,
        reach: &Reach,
        server: &str,
        uri: &str,
    ) -> Result<Map<String, Value>, McpError> {
        let params = ReadResourceRequestParams::new(uri);
        self.answer(reach, server, async |peer| {
            match peer.read_resource_once(params).await? {
                ReadResourceResponse::Complete(result) => {
                    content::checked_answer(&result, &self.context.redactor)
                }
                _ => Err(Failure::Input),
            }
        })
        .await
    }

    /// Gets a prompt, as the server gives it.
    pub async fn get_prompt(
        &self,
        reach: &Reach,
        server: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, McpError> {
        self.answer(reach, server, async |peer| {
            let result = get_prompt(&peer, name, arguments).await?;
            content::checked_answer(&result, &self.context.redactor)
        })
        .await
    }

    /// Lists the resources of a server and their templates, as it listed them last.
    pub fn list_resources(
        &self,
        reach: &Reach,
        wanted: &McpListResources,
    ) -> Result<McpResources, McpError> {
        let handle = self.find(reach, &wanted.server)?;
        let catalogs = [handle.catalog()];
        let page = Page::read(wanted.cursor.as_deref(), wanted.limit, &catalogs);
        let page = page.map_err(McpError)?;
        let [catalog] = &catalogs;
        let mut listed = McpResources {
            server: wanted.server.clone(),
            can_subscribe: handle.can_subscribe(),
            ..McpResources::default()
        };
        let entries = page.take(&catalog.resources, 0, &mut listed.resources);
        let entries = page.take(&catalog.templates, entries, &mut listed.templates);
        listed.next_cursor = page.next(entries);
        Ok(listed)
    }

    /// Lists the prompts of a server, or of all that are reached, as they listed them last.
    pub fn list_prompts(
        &self,
        reach: &Reach,
        wanted: &McpListPrompts,
    ) -> Result<McpPrompts, McpError> {
        let catalogs = match &wanted.server {
            Some(server) => vec![self.find(reach, server)?.catalog()],
            None => self.catalogs(reach),
        };
        let page = Page::read(wanted.cursor.as_deref(), wanted.limit, &catalogs);
        let page = page.map_err(McpError)?;
        let (mut listed, mut entries) = (McpPrompts::default(), 0);
        for catalog in &catalogs {
            entries = page.take(&catalog.prompts, entries, &mut listed.prompts);
        }
        listed.next_cursor = page.next(entries);
        Ok(listed)
    }

    /// Gets a prompt by the command that is typed for it, as what a user says.
    pub async fn use_prompt(
        &self,
        reach: &Reach,
        wanted: McpUsePrompt,
    ) -> Result<McpPromptContent, McpError> {
        let command = wanted.command.trim();
        let command = command.strip_prefix('/').unwrap_or(command);
        let catalogs = self.catalogs(reach);
        let mut prompts = catalogs.iter().flat_map(|it| &it.prompts);
        let found = prompts.find(|it| it.command == command);
        let found = found.ok_or_else(|| {
            McpError(format!(
                "no MCP server here has a prompt `/{command}`; mcp:list-prompts lists those there are"
            ))
        })?;
        let arguments = prompt::arguments(found, &wanted.line, wanted.arguments)
            .map_err(|why| McpError(format!("the prompt `/{command}`: {why}")))?;
        let (cap, redactor) = (self.context.output_cap, &self.context.redactor);
        let said = self.answer(reach, &found.server, async |peer| {
            let result = get_prompt(&peer, &found.name, arguments).await?;
            prompt::said(&found.server, result, cap, redactor)
        });
        Ok(McpPromptContent {
            content: said.await?,
            server: found.server.clone(),
            name: found.name.clone(),
        })
    }

    /// Has a session be told when a resource changes.
    pub async fn subscribe(
        &self,
        reach: &Reach,
        wanted: McpResourceName,
    ) -> Result<McpResourceName, McpError> {
        let McpResourceName { server, uri } = &wanted;
        if uri.is_empty() || uri.len() > MAX_URI || uri.contains(char::is_control) {
            return Err(McpError(format!(
                "field `uri` has 1 to {MAX_URI} bytes and no control characters"
            )));
        }
        let all = self.all(&reach.session);
        let all = all.iter().map(|it| it.subscriptions.count(&reach.session));
        if all.sum::<usize>() >= MAX_OF_SESSION {
            return Err(McpError(format!(
                "the session is told of {MAX_OF_SESSION} resources already, which are the most; take one back with mcp:unsubscribe"
            )));
        }
        let handle = self.find(reach, server)?;
        self.answer(reach, server, async |peer| {
            if !handle.can_subscribe() {
                return Err(Failure::NoSubscriptions);
            }
            let subscriptions = &handle.subscriptions;
            subscriptions.follow(&peer, uri, &reach.session).await
        })
        .await?;
        Ok(wanted)
    }

    /// Has a session be told of a resource no more.
    pub async fn unsubscribe(
        &self,
        reach: &Reach,
        wanted: McpResourceName,
    ) -> Result<McpResourceName, McpError> {
        let handle = self.find(reach, &wanted.server)?;
        if let Err(why) = handle.leave(&wanted.uri, &reach.session).await {
            tracing::debug!(why, "an MCP server goes on telling of a resource");
        }
        Ok(wanted)
    }

    /// Waits for an answer within the server's time limit.
    pub(super) async fn answer<T>(
        &self,
        reach: &Reach,
        server: &str,
        request: impl AsyncFnOnce(Peer<RoleClient>) -> Result<T, Failure>,
    ) -> Result<T, McpError> {
        let handle = self.find(reach, server)?;
        let limit = handle.config.timeout;
        let answer = async {
            let life = handle.life().await.map_err(Failure::Gone)?;
            request(life.peer).await
        };
        let what = match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => match handle.sign_in.as_ref().and_then(|it| it.asks()) {
                Some(asked) => format!(
                    "asks to sign in at {}: do that first (mcp:auth says where), then ask again",
                    asked.host
                ),
                None => format!("did not answer within {} s", limit.as_secs_f64()),
            },
        };
        Err(McpError(format!("the MCP server `{server}` {what}")))
    }

    /// Finds a server that is reached: one of the session's own before one of all.
    pub(super) fn find(&self, reach: &Reach, name: &str) -> Result<Handle, McpError> {
        let own = (reach.session.clone(), name.to_owned());
        let shared = self.servers.lock().get(name).map(|it| it.handle.clone());
        let own = self.own.lock().get(&own).cloned();
        let handle = own.clone().or(shared).ok_or_else(|| self.unknown(name))?;
        match own.is_some() || reach.covers(&handle) {
            true => Ok(handle),
            false => Err(McpError(format!(
                "the MCP server `{name}` is a program that runs in the daemon's own project, and this session works in another one"
            ))),
        }
    }

    /// Returns what all servers have that are reached.
    pub(super) fn catalogs(&self, reach: &Reach) -> Vec<Arc<Catalog>> {
        let servers = self.servers.lock();
        let shared = servers.values().map(|it| &it.handle);
        let shared = shared.filter(|handle| reach.covers(handle));
        let own = self.own.lock();
        let own = own.iter().filter(|((of, _), _)| *of == reach.session);
        let handles = shared.chain(own.map(|(_, handle)| handle));
        handles.map(Handle::catalog).collect()
    }

    /// Returns all servers that a session may have to do with.
    pub(super) fn all(&self, session: &SessionId) -> Vec<Handle> {
        let servers = self.servers.lock();
        let shared = servers.values().map(|it| it.handle.clone());
        let own = self.own.lock();
        let own = own.iter().filter(|((of, _), _)| of == session);
        shared.chain(own.map(|(_, it)| it.clone())).collect()
    }
}

impl Reach {
    fn covers(&self, handle: &Handle) -> bool {
        self.programs || matches!(handle.config.transport, McpTransport::Http(_))
    }
}

impl Handle {
    /// Whether the server tells when a resource changes; not known of one that is not up.
    fn can_subscribe(&self) -> bool {
        let Link::Up(life) = &*self.link.borrow() else {
            return false;
        };
        let info = life.peer.peer_info();
        let resources = info
            .as_deref()
            .and_then(|it| it.capabilities.resources.as_ref());
        resources.and_then(|it| it.subscribe).unwrap_or(false)
    }

    /// Has a session be told of a resource no more. An error says that the server does not know of it.
    async fn leave(&self, uri: &str, session: &SessionId) -> Result<(), String> {
        let peer = match &*self.link.borrow() {
            Link::Up(life) => Some(life.peer.clone()),
            Link::Waiting | Link::Down(_) => None,
        };
        let leaving = self.subscriptions.leave(peer.as_ref(), uri, session);
        match tokio::time::timeout(self.config.timeout, leaving).await {
            Ok(left) => left.map_err(|error| super::connection::of_sdk(&error)),
            Err(_) => Err("it did not answer in time".to_owned()),
        }
    }
}

/// Asks for a prompt.
async fn get_prompt(
    peer: &Peer<RoleClient>,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<GetPromptResult, Failure> {
    let mut params = GetPromptRequestParams::new(name);
    if !arguments.is_empty() {
        params = params.with_arguments(arguments);
    }
    match peer.get_prompt_once(params).await? {
        GetPromptResponse::Complete(result) => Ok(result),
        _ => Err(Failure::Input),
    }
}

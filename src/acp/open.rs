//! The beginning of a session on a connection: a new one, or one that is kept. Nothing of it is told before the answer, but
//! for what a load replays.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::{Live, Out};
use super::options::{Locked, Options};
use super::render::Renderer;
use super::rpc::{Id, RpcError};
use super::session::{AcpSession, Order};
use super::wire::{self, Capabilities};
use super::{replay, slash};
use crate::message::{ConversationId, SessionId};
use crate::protocol::answer::Configured;
use crate::protocol::command::{ChatHistory, Command, Configure, Empty, Layer, McpAdd, ModelList};
use crate::protocol::event::Event;
use crate::session::{Attachment, Handle, Sessions};

/// The conversation of a session that the protocol sees.
pub(super) const CONVERSATION: &str = "default";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    /// With all that was said.
    Load,
    Resume,
    /// A copy of one that is kept.
    Fork,
}

/// What a session begins with.
pub(super) struct Start {
    pub sessions: Arc<Sessions>,
    pub out: Out,
    pub client: Capabilities,
    /// The request that is answered when the session is there.
    pub id: Id,
    pub opening: Opening,
    pub wanted: wire::Open,
    pub own: mpsc::Sender<Order>,
    pub inbox: mpsc::Receiver<Order>,
    pub live: Live,
    pub stop: CancellationToken,
}

/// Opens a session, answers, and serves it until it is closed.
pub(super) async fn run(start: Start) {
    let (out, id, live) = (start.out.clone(), start.id.clone(), Arc::clone(&start.live));
    let own = start.own.clone();
    match open(start).await {
        Ok(session) => {
            let name = session.id().to_owned();
            session.run().await;
            // Another task of this connection may have the session by now.
            let mut live = live.lock();
            if live
                .get(&name)
                .is_some_and(|known| known.same_channel(&own))
            {
                live.remove(&name);
            }
        }
        Err(error) => out.answer(&id, Err(error)).await,
    }
}

async fn open(start: Start) -> Result<AcpSession, RpcError> {
    let Start {
        sessions,
        out,
        client,
        id,
        opening,
        wanted,
        own,
        inbox,
        live,
        stop,
    } = start;
    check_folders(&sessions, &wanted).await?;
    let (handle, attachment, after) = match opening {
        Opening::New => create(&sessions, &wanted.cwd).await?,
        Opening::Load | Opening::Resume => find(&sessions, &named(&wanted)?).await?,
        Opening::Fork => {
            let copy = sessions.fork(&named(&wanted)?).await?;
            find(&sessions, &copy).await?
        }
    };
    let config = sessions.daemon().services.config();
    let renderer = Renderer::new(wanted.cwd.clone().into(), &client);
    let mut session = AcpSession::new(
        sessions,
        handle,
        attachment,
        after,
        renderer,
        (out, inbox, stop),
    );
    let configure = Configure {
        layers: Some(vec![Layer::Stream, Layer::State, Layer::Sessions]),
        input_requests: Some(client.takes_input()),
        ..Configure::default()
    };
    let Event::SessionConfigureResult(in_force) =
        session.ask(Command::SessionConfigure(configure)).await?
    else {
        return Err(RpcError::internal(
            "the session gave no answer to its settings",
            None,
        ));
    };
    check_project(&in_force, &wanted.cwd)?;
    session.options = Some(Options {
        in_force,
        models: Vec::new(),
        effort: None,
        locked: Locked {
            trust: config.session.is_locked("chat.trust_level"),
            model: config.session.is_locked("chat.model")
                || config.session.is_locked("chat.provider"),
        },
    });
    session.add_servers(wanted.mcp_servers).await;
    if opening == Opening::Load {
        session.replay().await?;
    }
    // From here on it can be ordered about, and only then the client knows of it.
    live.lock().insert(session.id().to_owned(), own);
    session.answer_opened(&id, opening).await;
    session
        .commands(&config.workflows.keys().cloned().collect::<Vec<_>>())
        .await;
    session
        .send_quietly(Command::ModelList(ModelList::default()))
        .await;
    Ok(session)
}

fn named(wanted: &wire::Open) -> Result<SessionId, RpcError> {
    let id = wanted.session_id.as_deref();
    let id = id.ok_or_else(|| RpcError::invalid_params("`sessionId` is missing"))?;
    Ok(SessionId::new(id))
}

/// Fails where the session may not work in its folder, or in a further one.
async fn check_folders(sessions: &Sessions, wanted: &wire::Open) -> Result<(), RpcError> {
    if !Path::new(&wanted.cwd).is_absolute() {
        return Err(RpcError::invalid_params(format!(
            "`cwd`: {:?} is no absolute path",
            wanted.cwd
        )));
    }
    if let Some(refused) = sessions.refused(&wanted.cwd).await {
        return Err(RpcError::invalid_params(format!(
            "`cwd`: {}",
            refused.message
        )));
    }
    let known = sessions.daemon().services.config().tools.bash.further();
    for folder in &wanted.additional_directories {
        if !known
            .iter()
            .any(|(known, _)| Path::new(folder).starts_with(known))
        {
            return Err(RpcError::invalid_params(format!(
                "`additionalDirectories`: {folder} may not be worked in; the operator allows folders with \
                 tools.bash.read_write or tools.bash.read_only in the configuration"
            )));
        }
    }
    Ok(())
}

/// Fails where a kept session works in another folder: its paths would mean other files.
fn check_project(in_force: &Configured, cwd: &str) -> Result<(), RpcError> {
    let project = in_force
        .project
        .as_ref()
        .map(|project| project.root.as_path());
    match project {
        Some(root) if root == Path::new(cwd) => Ok(()),
        Some(root) => Err(RpcError::invalid_params(format!(
            "`cwd`: the session works in {}",
            root.display()
        ))),
        None => Err(RpcError::invalid_params(format!(
            "`cwd`: the session has no folder: {}",
            in_force
                .project_error
                .as_deref()
                .unwrap_or("nobody says why")
        ))),
    }
}

async fn create(
    sessions: &Arc<Sessions>,
    cwd: &str,
) -> Result<(Handle, Attachment, u64), RpcError> {
    let full = || {
        RpcError::internal(
            "there are too many sessions",
            Some("close one and try again"),
        )
    };
    let handle = sessions.create(Some(cwd)).await.ok_or_else(full)?;
    let attachment = handle.attach().await.ok_or_else(full)?;
    Ok((handle, attachment, 0))
}

/// Goes on in a session that lives or is kept, from how it stands now.
async fn find(
    sessions: &Arc<Sessions>,
    id: &SessionId,
) -> Result<(Handle, Attachment, u64), RpcError> {
    let unknown = || RpcError::no_session(id.as_str());
    loop {
        let handle = sessions.open(id).await?.ok_or_else(unknown)?;
        if let Some(attachment) = handle.attach().await {
            let after = handle.last();
            return Ok((handle, attachment, after));
        }
        if sessions.is_stopping() {
            return Err(unknown());
        }
        // One that ends just now is opened anew.
        handle.ended().await;
    }
}

impl AcpSession {
    /// Starts the servers that the client names. What fails is told with the first prompt.
    async fn add_servers(&mut self, servers: Vec<wire::McpServer>) {
        if servers.is_empty() {
            return;
        }
        let mut taken: Vec<String> = match self.ask(Command::McpList(Empty {})).await {
            Ok(Event::McpListResult(list)) => list.servers.into_iter().map(|it| it.name).collect(),
            _ => Vec::new(),
        };
        for server in servers {
            let name = free(&server.name, &taken);
            let is_sse = server.kind.as_deref() == Some("sse");
            let add = McpAdd {
                name: name.clone(),
                command: server.command,
                args: server.args,
                env: wire::map(server.env),
                url: server.url,
                headers: wire::map(server.headers),
            };
            let outcome = match is_sse {
                true => Err("servers of type sse are not taken; use http".to_owned()),
                false => match self.ask(Command::McpAdd(add)).await {
                    Ok(Event::SessionError(error)) => Err(error.message),
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.message().to_owned()),
                },
            };
            match outcome {
                Ok(()) => {
                    self.servers.push(name.clone());
                    self.starting.push(name.clone());
                }
                Err(why) => self.problems.push(format!("MCP server `{name}`: {why}")),
            }
            taken.push(name);
        }
    }

    /// Tells all that was said.
    async fn replay(&mut self) -> Result<(), RpcError> {
        let mut pages = Vec::new();
        let mut before = None;
        loop {
            let wanted = ChatHistory {
                before,
                ..ChatHistory::newest(ConversationId::new(CONVERSATION))
            };
            match self.ask(Command::ChatHistory(wanted)).await? {
                Event::ChatHistoryResult(page) => {
                    before = page.next_before;
                    pages.push(page.messages);
                }
                Event::SessionError(error) => return Err(error.into()),
                _ => return Err(RpcError::internal("the session gave no history", None)),
            }
            if before.is_none() {
                break;
            }
        }
        let messages = pages.into_iter().rev().flatten().collect();
        for update in replay::replay(messages, &mut self.renderer) {
            self.update(update).await;
        }
        Ok(())
    }

    async fn answer_opened(&self, id: &Id, opening: Opening) {
        let options = self.options.as_ref();
        let mut opened = json!({
            "modes": options.map(Options::modes),
            "configOptions": options.map(Options::config),
        });
        let is_new = matches!(opening, Opening::New | Opening::Fork);
        if let Some(fields) = opened.as_object_mut().filter(|_| is_new) {
            fields.insert("sessionId".to_owned(), json!(self.id()));
        }
        self.out.answer(id, Ok(opened)).await;
    }

    async fn commands(&mut self, workflows: &[String]) {
        self.workflows = workflows.to_vec();
        let commands: Value = slash::available(workflows);
        self.update(
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
        )
        .await;
    }
}

/// Returns a name that no server has yet.
fn free(name: &str, taken: &[String]) -> String {
    let is_free = |name: &String| !taken.contains(name);
    let mut others = (2_u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned())
        .chain(others.by_ref().take(taken.len() + 1))
        .find(is_free)
        .unwrap_or_else(|| name.to_owned())
}

//! The beginning of a session on a connection: a new one, or one that is kept. Nothing of it is told before the answer, but
//! for what a load replays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::{Live, Out};
use super::options::{Locked, Options};
use super::render::Renderer;
use super::rpc::{Id, RpcError};
use super::session::{AcpSession, Order, Parts};
use super::slash;
use super::wire::{self, Capabilities};
use crate::message::SessionId;
use crate::protocol::answer::Configured;
use crate::protocol::command::{Command, Configure, Layer, ModelList};
use crate::protocol::event::{Event, SessionError};
use crate::session::{Attachment, Handle, UserSessions};

/// The conversation of a session that the protocol sees.
pub(super) const CONVERSATION: &str = "default";

/// How long a folder is looked at: a file system on a network may never answer.
const LOOKING: Duration = Duration::from_secs(10);

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
    pub sessions: UserSessions,
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
    let cwd = real(&wanted.cwd).await?;
    let files = sessions.files(&cwd).await.map_err(|refused| {
        let why = refused.message.trim_start_matches("field `project`: ");
        RpcError::invalid_params(format!("`cwd`: {why}"))
    })?;
    check_further(&sessions, &wanted)?;
    let (handle, attachment, after) = match opening {
        Opening::New => create(&sessions, &cwd).await?,
        Opening::Load | Opening::Resume => find(&sessions, &named(&wanted)?).await?,
        Opening::Fork => {
            let copy = sessions.fork(&named(&wanted)?).await?;
            find(&sessions, &copy).await?
        }
    };
    let config = sessions.daemon().services.config();
    let mut session = AcpSession::new(Parts {
        // As the client names it: it knows its files by that.
        renderer: Renderer::new(plain(&wanted.cwd), &client),
        input: client.input,
        sessions,
        handle,
        attachment,
        after,
        files,
        out,
        inbox,
        stop,
    });
    let configure = Configure {
        layers: Some(vec![
            Layer::Stream,
            Layer::State,
            Layer::Sessions,
            Layer::Servers,
        ]),
        input_requests: Some(client.input.is_any()),
        trust_questions: Some(true),
        ..Configure::default()
    };
    let Event::SessionConfigureResult(in_force) =
        session.ask(Command::SessionConfigure(configure)).await?
    else {
        let problem = "the session gave no answer to its settings";
        return Err(RpcError::internal(problem, None));
    };
    check_project(&in_force, &cwd)?;
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
    match opening {
        Opening::New => session.note_not_kept(),
        Opening::Load => session.catch_up(true).await?,
        Opening::Resume | Opening::Fork => session.catch_up(false).await?,
    }
    session.note_beginning(client.notices);
    session.add_servers(wanted.mcp_servers).await;
    // From here on it can be ordered about, and only then the client knows of it.
    live.lock().insert(session.id().to_owned(), own);
    session.answer_opened(&id, opening).await;
    session
        .commands(&config.workflows.keys().cloned().collect::<Vec<_>>())
        .await;
    session.tell_usage().await;
    session
        .send_quietly(Command::ModelList(ModelList::default()))
        .await;
    Ok(session)
}

/// Returns a client's folder without links: a project has one path. One that cannot be looked at stays as it is, and is
/// refused with its reason.
pub(super) async fn real(cwd: &str) -> Result<String, RpcError> {
    if !Path::new(cwd).is_absolute() {
        return Err(RpcError::invalid_params(format!(
            "`cwd`: {cwd:?} is no absolute path"
        )));
    }
    let looked = tokio::time::timeout(LOOKING, tokio::fs::canonicalize(cwd)).await;
    let real = looked.ok().and_then(Result::ok);
    let real = real.unwrap_or_else(|| PathBuf::from(cwd));
    Ok(real.display().to_string())
}

/// Returns a path without slashes and dots that say nothing.
fn plain(path: &str) -> PathBuf {
    Path::new(path).components().collect()
}

fn named(wanted: &wire::Open) -> Result<SessionId, RpcError> {
    let id = wanted.session_id.as_deref();
    let id = id.ok_or_else(|| RpcError::invalid_params("`sessionId` is missing"))?;
    Ok(SessionId::new(id))
}

/// Fails where a further folder may not be worked in.
fn check_further(sessions: &UserSessions, wanted: &wire::Open) -> Result<(), RpcError> {
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

async fn create(sessions: &UserSessions, cwd: &str) -> Result<(Handle, Attachment, u64), RpcError> {
    let full = || {
        RpcError::internal(
            "there are too many sessions",
            Some("close one and try again"),
        )
    };
    let handle = sessions.create(Some(cwd)).await;
    let handle = handle.map_err(SessionError::from)?;
    let attachment = handle.attach().await.ok_or_else(full)?;
    Ok((handle, attachment, 0))
}

/// Goes on in a session that lives or is kept, from how it stands now.
async fn find(
    sessions: &UserSessions,
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
    /// Keeps for the first prompt that nothing of the session is kept, where that is not the operator's choice.
    fn note_not_kept(&mut self) {
        let daemon = self.sessions.daemon();
        if daemon.store.is_none() && daemon.services.config().store.is_some() {
            let problem = format!("Nothing of this session is kept: {}", daemon.not_kept);
            self.problems.push(problem);
        }
    }

    /// Tells what the session has cost, and how full its context is, as far as that is known.
    async fn tell_usage(&mut self) {
        if let Some(update) = self.renderer.shown_usage() {
            self.update(update).await;
        }
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
        self.tell_commands().await;
        // Those that have no prompts yet tell when they have.
        self.look_at_prompts().await;
    }

    pub(super) async fn tell_commands(&self) {
        let commands: Value = slash::available(&self.workflows, &self.prompts);
        self.update(
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
        )
        .await;
    }
}

//! The sessions of a daemon, and what it gives to each.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedMutexGuard, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::defaults::Defaults;
use super::kept::failed;
use super::log::Log;
use super::reload::Reloadable;
use super::resolve::LAYERS;
use super::{Feed, Handle, INBOX, Message, ProjectFiles, Session, projects, providers};
use crate::config::{Config, ExposePolicy};
use crate::exchange::context::Services;
use crate::exchange::executions::Executions;
use crate::exchange::memory::SharedRules;
use crate::message::{SessionId, Severity};
use crate::notices::Notices;
use crate::protocol::event::{Event, Ready, Sandbox, SessionError};
use crate::protocol::{CLIENT_TOOLS, EXPOSED_PORTS, FEATURES, SessionCode};
use crate::provider::registry::{Found, Providers};
use crate::store::restored::Restored;
use crate::store::{AnyStore, Held, Journal, Known, Store as _, Updates};
use crate::tool::workspace::{Workspace, Workspaces};
use crate::units::millis;
use crate::webhooks::Webhooks;

/// The most sessions of a daemon, the ones without a socket included.
const MAX_SESSIONS: usize = 1_024;

/// Most requests to providers that are not turns, and to MCP servers, at once in the whole daemon: each holds a connection
/// for as long as the other side takes.
pub(crate) const MAX_SIDE_REQUESTS: usize = 16;

/// Most sessions that are being imported at once: each is a file of up to 256 MiB.
pub(crate) const MAX_IMPORTS: usize = 4;

/// What one daemon has, made by `daemon::build` and handed down.
pub struct Daemon {
    pub(crate) services: Services,
    pub(crate) providers: Providers,
    pub(crate) mcp: Arc<crate::mcp::Mcp>,
    pub(crate) notices: Notices,
    /// Another program that is told how sessions stand, where there is one.
    pub(crate) webhooks: Option<Arc<Webhooks>>,
    /// Where the configuration comes from, where it can be read again.
    pub(crate) reloadable: Option<Reloadable>,
    /// Where sessions are kept; nowhere where there is none.
    pub(crate) store: Option<AnyStore>,
    /// Why there is none.
    pub(crate) not_kept: String,
    /// What users said that counts in all sessions, or in those of a project.
    pub(crate) rules: SharedRules,
    /// What changes about those sessions.
    pub(crate) updates: Updates,
    /// Permits for sessions that are being imported: [`MAX_IMPORTS`].
    pub(crate) imports: Arc<Semaphore>,
    /// Permits for titles that models are asked for: [`MAX_TITLES`](super::MAX_TITLES).
    pub(crate) titles: Arc<Semaphore>,
    /// The projects that sessions work in.
    pub(crate) workspaces: Arc<Workspaces>,
    /// Done when the folders of all conversations' commands are removed.
    pub(crate) pods_removed: Shared<BoxFuture<'static, ()>>,
    /// What the sandbox enforces here, found out once and off the way to ready.
    pub(crate) sandbox: Shared<BoxFuture<'static, Sandbox>>,
    /// Permits for requests to providers that are not turns, and to MCP servers: [`MAX_SIDE_REQUESTS`].
    pub(crate) side_requests: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when nothing new is begun.
    pub(crate) draining: CancellationToken,
    /// Cancelled when everything has to end.
    pub(crate) stop: CancellationToken,
}

impl Daemon {
    /// Looks for the first time for a provider that nobody configured; does nothing where that was done.
    pub(crate) async fn find_first_provider(&self) {
        let found = self.providers.detect_first().await;
        self.announce_provider(found);
    }

    /// Looks for it where none was found before.
    pub(super) async fn find_provider(&self) {
        let found = self.providers.detect().await;
        self.announce_provider(found);
    }

    fn announce_provider(&self, found: Option<Found>) {
        let Some(Found { info, model }) = found else {
            return;
        };
        let message = format!(
            "an Ollama at {} answers from now on, with {model} where no model is named: no provider is configured, and chat.detect_ollama names that place",
            info.base_url
        );
        self.notices.send(Severity::Info, "provider_found", message);
    }

    /// Returns whether what is said is kept.
    pub(super) fn keeps(&self) -> bool {
        let store = self.store.as_ref();
        store.is_some_and(|store| store.ended().is_none())
    }

    async fn ready(&self, session_id: SessionId, workspace: &Workspace) -> Ready {
        self.find_first_provider().await;
        let config = &self.services.config();
        let (project, project_error) = projects::shown(workspace);
        Ready {
            protocol_version: crate::protocol::PROTOCOL_VERSION,
            daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id,
            resumed: false,
            resume_grace_ms: millis(config.session.resume_grace),
            persistent: self.keeps(),
            epoch: 1,
            trust_level: config.chat.trust_level,
            on_violation: Defaults::on_violation(
                config.workflows.get(&config.chat.workflow),
                config,
            ),
            project,
            project_error,
            sandbox: self.sandbox.clone().await,
            providers: providers::ready(&self.providers),
            tools: workspace.tool_names(),
            layers: LAYERS.to_vec(),
            features: features(config),
            workflows: workflows(config),
        }
    }
}

pub(super) fn workflows(config: &Config) -> Vec<String> {
    config.workflows.keys().cloned().collect()
}

/// Returns what this daemon offers beyond the first release of the contract, less what its operator switched off.
pub(super) fn features(config: &Config) -> Vec<String> {
    let is_off = |feature: &str| match feature {
        EXPOSED_PORTS => config.tools.bash.expose == ExposePolicy::Off,
        CLIENT_TOOLS => !config.tools.client.enabled,
        _ => false,
    };
    let features = FEATURES.into_iter().filter(|it| !is_off(it));
    features.map(str::to_owned).collect()
}

/// The sessions there are.
pub struct Sessions {
    daemon: Arc<Daemon>,
    live: Mutex<HashMap<SessionId, Handle>>,
    /// Those that are being read from the store, or deleted, each by one at a time, so that none is begun twice.
    opening: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(daemon: Arc<Daemon>) -> Arc<Self> {
        Arc::new(Self {
            daemon,
            live: Mutex::default(),
            opening: Mutex::default(),
        })
    }

    /// Starts a session and announces it in its log; `None` where there are too many. One that names a project works
    /// there; where that cannot be opened, it has none, and its log says why.
    pub async fn create(self: &Arc<Self>, project: Option<&str>) -> Option<Handle> {
        let (workspace, refused) = self.daemon.workspace(project).await;
        let ready = self.daemon.ready(SessionId::random()?, &workspace).await;
        let store = self.daemon.store.as_ref();
        let held = store.map(|store| store.hold(ready.session_id.as_str()));
        let handle = self.begin(workspace, ready, held, None)?;
        if let Some(refused) = refused {
            handle.feed.append(Event::SessionError(refused), None);
        }
        Some(handle)
    }

    /// Begins a session, or one anew that the store has; `None` where there are too many.
    fn begin(
        self: &Arc<Self>,
        workspace: Arc<Workspace>,
        ready: Ready,
        held: Option<Held>,
        mut restored: Option<Restored>,
    ) -> Option<Handle> {
        let (inbox, messages) = mpsc::channel(INBOX);
        let feed = Arc::new(self.feed(&workspace, &ready, restored.as_ref()));
        let records = restored.as_mut().map(|it| std::mem::take(&mut it.records));
        let records = records.unwrap_or_default();
        let executions = Arc::new(Executions::restored(records, feed.journal.clone()));
        let handle = Handle {
            id: ready.session_id.clone(),
            feed: Arc::clone(&feed),
            executions,
            inbox,
            spare: Arc::default(),
            ended: CancellationToken::new(),
        };
        {
            let mut live = self.live.lock();
            if live.len() >= MAX_SESSIONS && !make_room(&live) {
                return None;
            }
            live.insert(handle.id.clone(), handle.clone());
        }
        if restored.is_none() {
            feed.append(Event::SessionReady(Box::new(ready.clone())), None);
        }
        let daemon = (Arc::clone(&self.daemon), Arc::downgrade(self));
        let session = Session::new(
            daemon,
            workspace,
            ready,
            &handle,
            messages,
            restored.as_ref(),
        );
        let listed = Listed {
            sessions: Arc::clone(self),
            id: handle.id.clone(),
            _ended: handle.ended.clone().drop_guard(),
            _held: held,
        };
        // The root of the tree of spans, whoever's socket it is made for.
        let span = tracing::info_span!(parent: None, "session", session_id = %handle.id);
        self.daemon.tasks.spawn(async move {
            let _listed = listed;
            session.run(restored).instrument(span).await;
        });
        Some(handle)
    }

    /// Returns the feed of a session, with what it says of how earlier exchanges ended.
    fn feed(&self, workspace: &Workspace, ready: &Ready, restored: Option<&Restored>) -> Feed {
        let bound = self.daemon.services.config().session.buffer_bytes;
        // Who comes to one that has said nothing yet, as a fork, lacks its history all the same.
        let last = restored.map_or(0, |restored| restored.seq.max(1));
        let mut log = Log::after(last, bound, ready.layers.clone());
        for (seq, end) in restored.iter().flat_map(|restored| &restored.ends) {
            log.restore_end(*seq, end.clone());
        }
        let grown = Arc::<Notify>::default();
        let journal = self.daemon.store.clone().map(|store| {
            let known = match restored {
                Some(restored) => Known::of(restored),
                None => Known::new(projects::root(workspace)),
            };
            Journal::new(
                (Arc::new(store), self.daemon.updates.clone()),
                &ready.session_id,
                known,
                Arc::clone(&grown),
            )
        });
        let webhooks = Webhooks::of_session(self.daemon.webhooks.as_ref(), &ready.session_id);
        Feed::new(log, journal.unwrap_or_default(), grown, webhooks)
    }

    /// Finds a session that lives, or begins one anew that the store has; `None` where there is none, or too many. Fails
    /// where the store cannot say.
    ///
    /// One that ends just now is begun anew when it has.
    pub async fn open(self: &Arc<Self>, id: &SessionId) -> Result<Option<Handle>, SessionError> {
        let store = self.daemon.store.as_ref();
        let Some(store) = store.filter(|_| !self.is_stopping()) else {
            return Ok(self.find(id));
        };
        // Who comes back to one that lives waits for nobody.
        if let Some(live) = self.find(id).filter(|live| !live.inbox.is_closed()) {
            return Ok(Some(live));
        }
        let _alone = self.alone_with(id).await;
        while let Some(live) = self.find(id) {
            if !live.inbox.is_closed() {
                return Ok(Some(live));
            }
            live.ended.cancelled().await;
        }
        let held = store.hold(id.as_str());
        let opened = store.open(id.as_str()).await;
        let opened = opened.map_err(|error| {
            let problem = format!(
                "session `{id}` cannot be read now: {error}; it is not lost, open it later. This socket goes on with the session of its last session:ready"
            );
            SessionError::new(failed(&error).code, problem)
        })?;
        let Some(opened) = opened else {
            return Ok(None);
        };
        // A long session takes a while to be read.
        let read = tokio::task::spawn_blocking(move || Restored::from(opened)).await;
        let restored = read.map_err(|error| {
            SessionError::new(SessionCode::Internal, format!("session `{id}`: {error}"))
        })?;
        let own = projects::root(self.daemon.workspaces.own());
        let named = restored
            .project
            .as_deref()
            .filter(|it| own.as_deref() != Some(*it));
        let (workspace, refused) = self.daemon.workspace(named).await;
        let ready = Ready {
            epoch: restored.epoch,
            ..self.daemon.ready(id.clone(), &workspace).await
        };
        let handle = self.begin(workspace, ready, Some(held), Some(restored));
        if let (Some(handle), Some(refused)) = (&handle, refused) {
            handle.feed.append(Event::SessionError(refused), None);
        }
        Ok(handle)
    }

    pub(crate) fn daemon(&self) -> &Arc<Daemon> {
        &self.daemon
    }

    /// Returns the files of a folder that a session may work in. Fails where it may not.
    pub(crate) async fn files(&self, project: &str) -> Result<ProjectFiles, SessionError> {
        match self.daemon.workspace(Some(project)).await {
            (workspace, None) => Ok(ProjectFiles::new(
                workspace,
                self.daemon.services.redactor.clone(),
            )),
            (_, Some(refused)) => Err(refused),
        }
    }

    /// Finds a session that lives.
    pub fn find(&self, id: &SessionId) -> Option<Handle> {
        self.live.lock().get(id).cloned()
    }

    /// Returns what is known of the calls of a session that lives.
    pub(super) fn executions_of(&self, id: &SessionId) -> Option<Arc<Executions>> {
        let live = self.live.lock();
        live.get(id).map(|live| Arc::clone(&live.executions))
    }

    /// Returns how many calls run in all sessions, and how many wait.
    pub(super) fn open_calls(&self) -> (usize, usize) {
        let live: Vec<_> = self.live.lock().values().cloned().collect();
        let open = live.iter().map(|session| session.executions.open_now());
        open.fold((0, 0), |(running, queued), (runs, waits)| {
            (running + runs, queued + waits)
        })
    }

    /// Ends a session that lives, with all that runs in it, and waits for that. None is begun anew until what this returns
    /// is dropped.
    pub(super) async fn end(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let alone = self.alone_with(id).await;
        if let Some(live) = self.find(id) {
            live.discard().await;
            live.ended.cancelled().await;
        }
        alone
    }

    /// Waits until nobody else reads or deletes this session.
    async fn alone_with(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let one = {
            let mut opening = self.opening.lock();
            // There are as many as somebody holds or waits for.
            opening.retain(|_, one| one.strong_count() > 0);
            let known = opening.get(id).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let one = Arc::default();
                opening.insert(id.clone(), Arc::downgrade(&one));
                one
            })
        };
        one.lock_owned().await
    }

    /// Waits until a session has ended while the daemon goes on.
    pub async fn lost(&self, session: &Handle) {
        session.ended.cancelled().await;
        if self.is_stopping() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether every session ends because the daemon does.
    pub fn is_stopping(&self) -> bool {
        self.daemon.stop.is_cancelled()
    }
}

/// A session's place in the table. Dropping it gives the place up, so that one that panics leaves nothing behind.
struct Listed {
    sessions: Arc<Sessions>,
    id: SessionId,
    _ended: DropGuard,
    _held: Option<Held>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.sessions.live.lock().remove(&self.id);
    }
}

/// Has a session end that nobody would miss, so that sockets which were opened and dropped keep nobody out.
///
/// It leaves the table itself: somebody may come back to it first, and then it goes on. So there may be one more
/// than the bound for a moment.
fn make_room(live: &HashMap<SessionId, Handle>) -> bool {
    // A full inbox means that somebody uses it after all; then another one is looked for.
    let makes_room = |session: &Handle| {
        session.spare.swap(false, Ordering::Relaxed)
            && !matches!(
                session.inbox.try_send(Message::MakeRoom),
                Err(mpsc::error::TrySendError::Full(_))
            )
    };
    live.values().any(makes_room)
}

#[cfg(test)]
mod tests;

//! The sessions of a daemon.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedMutexGuard, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::approvals::PendingRules;
use super::daemon::Daemon;
use super::kept::failed;
use super::log::Log;
use super::tenure;
use super::turned_away::{NoSession, elsewhere};
use super::{Feed, Handle, INBOX, Message, ProjectFiles, Session, projects};
use crate::exchange::executions::Executions;
use crate::message::SessionId;
use crate::protocol::SessionCode;
use crate::protocol::event::{Event, Ready, SessionError};
use crate::store::restored::Restored;
use crate::store::{Held, Journal, Known, Store as _, UserStore};
use crate::tool::workspace::Workspace;
use crate::users::quota::Counted;
use crate::users::{Grant, User};
use crate::webhooks::Webhooks;

/// Most requests to providers that are not turns, and to MCP servers, at once in the whole daemon: each holds a connection
/// for as long as the other side takes.
pub(crate) const MAX_SIDE_REQUESTS: usize = 16;

/// The sessions there are. They are reached by [`of`](Self::of) alone, by whoever has been granted something.
pub struct Sessions {
    daemon: Arc<Daemon>,
    live: Mutex<HashMap<SessionId, Handle>>,
    /// Those that are being read from the store, or deleted, each by one at a time, so that none is begun twice.
    opening: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
}

/// The sessions of a user, for whoever has been granted them: another one's are not among them. Clones are the same.
#[derive(Clone)]
pub struct UserSessions {
    all: Arc<Sessions>,
    grant: Arc<Grant>,
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

    /// Returns those of a user, as far as this grants them.
    pub fn of(self: Arc<Self>, grant: Arc<Grant>) -> UserSessions {
        UserSessions { all: self, grant }
    }

    /// Returns those that live, of all users.
    pub(super) fn live(&self) -> Vec<Handle> {
        self.live.lock().values().cloned().collect()
    }

    /// Returns the feed of a session, with what it says of how earlier exchanges ended.
    fn feed(
        &self,
        user: &User,
        workspace: &Workspace,
        ready: &Ready,
        restored: Option<&Restored>,
        tenure: &CancellationToken,
    ) -> Feed {
        let bound = self.daemon.services.config().session.buffer_bytes;
        // Who comes to one that has said nothing yet, as a fork, lacks its history all the same.
        let last = restored.map_or(0, |restored| restored.seq.max(1));
        let mut log = Log::after(last, bound, ready.layers.clone());
        for (seq, end) in restored.iter().flat_map(|restored| &restored.ends) {
            log.restore_end(*seq, end.clone());
        }
        let grown = Arc::<Notify>::default();
        let store = self.daemon.store.as_ref().map(|store| store.of(user));
        let journal = store.map(|store| {
            let known = match restored {
                Some(restored) => Known::of(restored),
                None => Known::new(projects::root(workspace)),
            };
            Journal::new(
                (Arc::new(store), self.daemon.updates.of(user)),
                &ready.session_id,
                known,
                Arc::clone(&grown),
                tenure.clone(),
            )
        });
        let webhooks = Webhooks::of_session(self.daemon.webhooks.as_ref(), &ready.session_id);
        Feed::new(log, journal.unwrap_or_default(), grown, webhooks)
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
}

impl UserSessions {
    /// Starts a session and announces it in its log. One that names a project works there; where that cannot be opened, it has
    /// none, and its log says why. Fails where there is no room for one.
    pub async fn create(&self, project: Option<&str>) -> Result<Handle, NoSession> {
        let daemon = &self.all.daemon;
        let (workspace, refused) = daemon.workspace(&self.grant, project).await;
        let id = SessionId::random().ok_or(NoSession::TooMany)?;
        let rules = daemon.read_rules(self.user());
        let ready = daemon.ready(id, &workspace, &self.grant, &rules);
        let ready = ready.await;
        let held = self.kept().map(|it| it.hold(ready.session_id.as_str()));
        let counted = daemon.count_session(&self.grant).await?;
        let tenure = daemon.tenure.now();
        let handle = self.begin((workspace, rules), ready, (held, counted, tenure), None)?;
        if let Some(refused) = refused {
            handle.feed.append(Event::SessionError(refused), None);
        }
        Ok(handle)
    }

    /// Begins a session, or one anew that the store has.
    fn begin(
        &self,
        (workspace, rules): (Arc<Workspace>, PendingRules),
        ready: Ready,
        (held, counted, tenure): (Option<Held>, Counted, CancellationToken),
        mut restored: Option<Restored>,
    ) -> Result<Handle, NoSession> {
        let (inbox, messages) = mpsc::channel(INBOX);
        let all = &self.all;
        let config = all.daemon.services.config();
        // Its own: it may have to end though others go on.
        let tenure = tenure.child_token();
        let feed = all.feed(self.user(), &workspace, &ready, restored.as_ref(), &tenure);
        let feed = Arc::new(feed);
        let records = restored.as_mut().map(|it| std::mem::take(&mut it.records));
        let records = records.unwrap_or_default();
        let executions = Arc::new(Executions::restored(records, feed.journal.clone()));
        let handle = Handle {
            id: ready.session_id.clone(),
            grant: Arc::clone(&self.grant),
            feed: Arc::clone(&feed),
            executions,
            inbox,
            spare: Arc::default(),
            tenure,
            ended: CancellationToken::new(),
        };
        {
            let mut live = all.live.lock();
            if live.len() >= config.server.max_sessions && !make_room(&live) {
                return Err(NoSession::TooMany);
            }
            live.insert(handle.id.clone(), handle.clone());
        }
        if restored.is_none() {
            feed.append(Event::SessionReady(Box::new(ready.clone())), None);
        }
        let daemon = (Arc::clone(&all.daemon), Arc::downgrade(all));
        let session = Session::new(
            daemon,
            (workspace, rules),
            ready,
            &handle,
            messages,
            restored.as_ref(),
        );
        let listed = Listed {
            sessions: Arc::clone(all),
            id: handle.id.clone(),
            _ended: handle.ended.clone().drop_guard(),
            _held: held,
            _counted: counted,
        };
        // The root of the tree of spans, whoever's socket it is made for.
        let span = tracing::info_span!(parent: None, "session", session_id = %handle.id);
        all.daemon.tasks.spawn(async move {
            let _listed = listed;
            session.run(restored).instrument(span).await;
        });
        Ok(handle)
    }

    /// Finds a session that lives, or begins one anew that the store has; `None` where there is none. Fails where the store
    /// cannot say, where the session is not for this token, where there is no room for it, and where too many are opened at once.
    ///
    /// One that ends just now is begun anew when it has.
    pub async fn open(&self, id: &SessionId) -> Result<Option<Handle>, SessionError> {
        let daemon = &self.all.daemon;
        let store = self.kept();
        let Some(store) = store.filter(|_| !self.is_stopping()) else {
            return Ok(self.find(id));
        };
        // Who comes back to one that lives waits for nobody.
        if let Some(live) = self.find(id).filter(|live| !live.inbox.is_closed()) {
            return Ok(Some(live));
        }
        // Who waits for this lock must have no place in the line: the one that reads the session may have given its own up, and
        // needs another one to go on.
        let _alone = self.all.alone_with(id).await;
        while let Some(live) = self.find(id) {
            if !live.inbox.is_closed() {
                return Ok(Some(live));
            }
            live.ended.cancelled().await;
        }
        let Some(place) = daemon.stop.run_until_cancelled(daemon.line.enter()).await else {
            return Ok(None);
        };
        let mut place = place?;
        // Taken before it is asked for: it may be lost while it is read.
        let tenure = daemon.tenure.now();
        let held = store.hold(id.as_str());
        let opened = tenure::open(&store, id, &mut place).await;
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
        if let Some(folder) = restored.project.as_deref()
            && !self.grant.allows_folder(Path::new(folder))
        {
            return Err(elsewhere());
        }
        let own = projects::root(daemon.workspaces.own());
        let named = restored
            .project
            .as_deref()
            .filter(|it| own.as_deref() != Some(*it));
        let (workspace, refused) = daemon.workspace(&self.grant, named).await;
        let rules = daemon.read_rules(self.user());
        let ready = daemon.ready(id.clone(), &workspace, &self.grant, &rules);
        let ready = Ready {
            epoch: restored.epoch,
            ..ready.await
        };
        let counted = daemon.count_session(&self.grant).await?;
        let had = (Some(held), counted, tenure);
        let handle = self.begin((workspace, rules), ready, had, Some(restored))?;
        if let Some(refused) = refused {
            handle.feed.append(Event::SessionError(refused), None);
        }
        Ok(Some(handle))
    }

    pub(crate) fn daemon(&self) -> &Arc<Daemon> {
        &self.all.daemon
    }

    /// Returns what was granted.
    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns whose they are.
    pub(super) fn user(&self) -> &User {
        &self.grant.user
    }

    /// Returns the store as the user has it, where there is one.
    pub(super) fn kept(&self) -> Option<UserStore> {
        let store = self.all.daemon.store.as_ref();
        store.map(|store| store.of(self.user()))
    }

    /// Returns the files of a folder that a session may work in. Fails where it may not.
    pub(crate) async fn files(&self, project: &str) -> Result<ProjectFiles, SessionError> {
        let daemon = &self.all.daemon;
        match daemon.workspace(&self.grant, Some(project)).await {
            (workspace, None) => Ok(ProjectFiles::new(
                workspace,
                daemon.services.redactor.clone(),
            )),
            (_, Some(refused)) => Err(refused),
        }
    }

    /// Finds a session that lives.
    pub fn find(&self, id: &SessionId) -> Option<Handle> {
        let known = self.all.live.lock().get(id).cloned();
        let own = known.filter(|live| live.grant.user == self.grant.user)?;
        Some(Handle {
            grant: Arc::clone(&self.grant),
            ..own
        })
    }

    /// Returns what is known of the calls of a session that lives.
    pub(super) fn executions_of(&self, id: &SessionId) -> Option<Arc<Executions>> {
        self.find(id).map(|live| live.executions)
    }

    /// Returns how many calls run in all sessions of the user, and how many wait.
    pub(super) fn open_calls(&self) -> (usize, usize) {
        let live = self.all.live();
        let own = live.iter().filter(|live| live.grant.user == *self.user());
        let open = own.map(|session| session.executions.open_now());
        open.fold((0, 0), |(running, queued), (runs, waits)| {
            (running + runs, queued + waits)
        })
    }

    /// Ends a session that lives, with all that runs in it, and waits for that. None is begun anew until what this returns
    /// is dropped.
    pub(super) async fn end(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let alone = self.all.alone_with(id).await;
        if let Some(live) = self.find(id) {
            live.discard().await;
            live.ended.cancelled().await;
        }
        alone
    }

    /// Waits until a session has ended while the daemon goes on.
    pub async fn lost(&self, session: &Handle) -> SessionEnd {
        session.ended.cancelled().await;
        if self.is_stopping() {
            std::future::pending::<()>().await;
        }
        match session.tenure.is_cancelled() {
            true => SessionEnd::Elsewhere,
            false => SessionEnd::Here,
        }
    }

    /// Returns whether every session ends because the daemon does.
    pub fn is_stopping(&self) -> bool {
        self.all.daemon.stop.is_cancelled()
    }
}

/// How a session ended while its daemon goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// For good, or until somebody begins it anew.
    Here,
    /// Another daemon may have it.
    Elsewhere,
}

/// A session's place in the table. Dropping it gives the place up, so that one that panics leaves nothing behind.
struct Listed {
    sessions: Arc<Sessions>,
    id: SessionId,
    _ended: DropGuard,
    _held: Option<Held>,
    _counted: Counted,
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

//! What several commands share, such as those of one conversation: loopback, a home, and temporary files. As the containers
//! of a pod do in Kubernetes.
//!
//! - Where there are namespaces ([`Mode::Full`](crate::Mode)): one network, in which a later command reaches what an earlier
//!   one left listening. No process lives in it; the daemon keeps descriptors of it.
//! - Folders on the disk. In full mode they are seen as the user's home, `/tmp` and `/var/tmp`. What they hold together has
//!   a bound ([`crate::quota`]). Where nothing confines a command, it has the one for temporary files, without a bound.
//! - In full mode, caches of the user's: an overlay each, so that what a command writes there is the pod's. They are mounted
//!   once, in a mount namespace with which each command begins: an upper folder must not be in two mounts.
//!
//! All is made when the first command needs it, and goes with the last clone. What a killed daemon left, the next one
//! removes ([`Sandbox::sweep`](crate::Sandbox::sweep)).

mod folders;
mod made;

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_util::task::task_tracker::TaskTrackerToken;

use self::folders::Folders;
pub(crate) use self::folders::{RUNTIME, open};
use self::made::{Answers, Made};
use crate::layers::Step;
use crate::outgoing::Gateway;
use crate::policy::{
    Cleanup, JoinedPod, Loopback, Outside, Overlay, PodFolders, SOCKETS, SeenCache, Task, Work,
};
use crate::process::SpawnError;
use crate::process::supervised::helpers::{self, Given, Helpers};
use crate::process::supervised::ready::Ready;
use crate::quota::Quota;
use crate::{Mode, POD_PREFIX};

/// Most folders of earlier daemons that one start removes: each is held open until it is its turn.
const MAX_SWEPT: usize = 256;

/// What its commands share; clones are the same pod. Nothing is made before a command needs it.
#[derive(Debug, Clone)]
pub struct Pod(Arc<Shared>);

/// See [`Pod::downgrade`].
#[derive(Debug, Clone)]
pub(crate) struct WeakPod(Weak<Shared>);

impl WeakPod {
    pub(crate) fn upgrade(&self) -> Option<Pod> {
        self.0.upgrade().map(Pod)
    }
}

#[derive(Debug)]
struct Shared {
    helpers: Arc<Helpers>,
    settings: PodSettings,
    namespaces: OnceCell<Namespaces>,
    folders: OnceCell<Folders>,
    /// What waits for its next command.
    ready: Mutex<Option<Ready>>,
    /// Says that the folders may be there. Goes with the removal.
    alive: TaskTrackerToken,
}

/// What a pod is made from.
#[derive(Debug)]
pub(crate) struct PodSettings {
    /// Where its folders are made.
    pub(crate) temporary: PathBuf,
    /// Most bytes in them together.
    pub(crate) bytes: u64,
    /// The user's own caches that its commands see in full mode.
    pub(crate) caches: Vec<PathBuf>,
    /// Whose commands are in it, by the name that the daemon has for them; `None` for its own.
    pub(crate) user: Option<String>,
}

/// Descriptors of namespaces, which live as long as these, and the way out of the network.
#[derive(Debug)]
pub(crate) struct Namespaces {
    user: OwnedFd,
    network: OwnedFd,
    /// Where there are overlays.
    mounts: Option<OwnedFd>,
    caches: Vec<SeenCache>,
    gateway: Gateway,
    /// Sockets that nobody has connected yet; held for a look at them.
    sockets: Mutex<Vec<OwnedFd>>,
    sockets6: Mutex<Vec<OwnedFd>>,
}

impl Pod {
    pub(crate) fn new(
        helpers: Arc<Helpers>,
        settings: PodSettings,
        alive: TaskTrackerToken,
    ) -> Self {
        Self(Arc::new(Shared {
            helpers,
            settings,
            namespaces: OnceCell::new(),
            folders: OnceCell::new(),
            ready: Mutex::default(),
            alive,
        }))
    }

    /// Returns the namespaces where they were made.
    pub(crate) fn made_namespaces(&self) -> Option<&Namespaces> {
        self.0.namespaces.get()
    }

    /// Returns the caches that its commands see, and whether they may add to them; none before its first command.
    pub(crate) fn caches(&self) -> Vec<(PathBuf, bool)> {
        let seen = self.made_namespaces().map_or(&[][..], Namespaces::caches);
        let seen = seen.iter();
        seen.map(|cache| (cache.place.clone(), cache.merged.is_some()))
            .collect()
    }

    /// Returns whether a helper has made ready for its next command. Never where there are no namespaces.
    pub fn is_ready(&self) -> bool {
        self.0.ready.lock().is_some()
    }

    /// Where there is what waits for its next command.
    pub(crate) fn ready(&self) -> &Mutex<Option<Ready>> {
        &self.0.ready
    }

    /// Returns what leads to the pod as long as there is one.
    pub(crate) fn downgrade(&self) -> WeakPod {
        WeakPod(Arc::downgrade(&self.0))
    }

    /// Connects to a TCP port on which a command of the pod listens: at 127.0.0.1, and else at ::1.
    ///
    /// # Errors
    /// The system's, and where no command has run in the pod or there are no namespaces.
    pub async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let Some(namespaces) = self.0.namespaces.get() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        let connect = async |loopback, address| {
            let socket = namespaces.socket(&self.0.helpers, loopback).await?;
            let socket = TcpSocket::from_std_stream(socket.into());
            socket.connect(SocketAddr::new(address, port)).await
        };
        match connect(Loopback::V4, v4).await {
            Ok(stream) => Ok(stream),
            // The kernel may have no IPv6.
            Err(error) => connect(Loopback::V6, v6).await.map_err(|_| error),
        }
    }

    /// Returns how many bytes its folders hold, no more than they may hold: as they are counted now, or were a moment ago
    /// where counting takes long.
    pub async fn held(&self) -> u64 {
        let Some(folders) = self.0.folders.get() else {
            return 0;
        };
        let quota = Arc::clone(&folders.quota);
        let held = tokio::task::spawn_blocking(move || quota.held());
        held.await.unwrap_or(0)
    }

    /// Returns the folders, and what bounds what they hold; made on the first call. In full mode a command cannot remove them;
    /// where it could, they are made anew.
    pub(crate) async fn folders(&self, mode: Mode) -> Result<(PodFolders, Arc<Quota>), SpawnError> {
        let folders = self.made().await?;
        if mode < Mode::Full {
            let place = folders.place.clone();
            let remake = move || Folders::remake(&place);
            let remade = tokio::task::spawn_blocking(remake).await;
            remade.unwrap_or_default();
        }
        Ok((Folders::paths(&folders.place), Arc::clone(&folders.quota)))
    }

    async fn made(&self) -> Result<&Folders, SpawnError> {
        let PodSettings {
            temporary,
            bytes,
            caches,
            user: _,
        } = &self.0.settings;
        let (place, bytes, caches) = (temporary.clone(), *bytes, caches.len());
        let make = || async move {
            let made = tokio::task::spawn_blocking(move || Folders::make(&place, bytes, caches));
            made.await
                .unwrap_or_else(|error| Err(io::Error::other(error)))
        };
        let folders = self.0.folders.get_or_try_init(make).await;
        folders.map_err(|error| {
            let reason = format_args!(
                "the conversation's home cannot be made in {}: {error}",
                temporary.display()
            );
            SpawnError::refused(Step::Prepare, reason)
        })
    }

    /// Whose it is.
    pub(crate) fn user(&self) -> Option<&str> {
        self.0.settings.user.as_deref()
    }

    /// Returns the namespaces, made on the first call: for this user of the system.
    pub(crate) async fn namespaces(
        &self,
        outside: Option<Outside>,
    ) -> Result<&Namespaces, SpawnError> {
        let make = || async {
            let caches = &self.0.settings.caches;
            let mut overlays = Vec::new();
            // They alone lie in the folders.
            if !caches.is_empty() {
                let place = &self.made().await?.place;
                let caches = caches.iter().enumerate();
                overlays.extend(caches.map(|(number, it)| Folders::overlay(place, number, it)));
            }
            Namespaces::make(&self.0.helpers, overlays, outside).await
        };
        self.0.namespaces.get_or_try_init(make).await
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Before the folders that are mounted in them.
        drop((self.ready.get_mut().take(), self.namespaces.take()));
        // Without a runtime the daemon ends, and the next one removes them.
        if let (Some(folders), Ok(_)) = (self.folders.take(), Handle::try_current()) {
            let Folders { place, quota } = folders;
            let (removed, alive) = (remove(&self.helpers, place), self.alive.clone());
            // With its lock, so that no sweep takes it for one that is left.
            tokio::spawn(async move {
                removed.await;
                drop((quota, alive));
            });
        }
    }
}

/// Has a helper remove a folder of a pod, at once; what is returned waits for it, however long that takes.
fn remove(helpers: &Helpers, place: PathBuf) -> impl Future<Output = ()> + Send + use<> {
    let cleanup = Cleanup {
        private_tmp: Some(place.clone()),
        ..Cleanup::default()
    };
    let task = Task::new(Work::Cleanup, cleanup);
    let assigned = helpers.assign(&task, Given::default());
    async move {
        let why_not = match assigned {
            Ok((socket, _)) => helpers::ended(socket).await.err(),
            Err(error) => Some(error),
        };
        let is_left = move || {
            Folders::remove_unused(&place);
            place.exists().then_some(place)
        };
        if let Ok(Some(place)) = tokio::task::spawn_blocking(is_left).await {
            tracing::warn!(place = %place.display(), error = ?why_not, "files of a conversation are left; the next start removes them");
        }
    }
}

/// Removes what daemons that were killed left in `temporary`, one folder after the other.
pub(crate) async fn sweep(helpers: &Helpers, temporary: PathBuf) {
    let left = tokio::task::spawn_blocking(move || left(&temporary)).await;
    for (place, lock) in left.unwrap_or_default() {
        tracing::info!(place = %place.display(), "removing files of an earlier daemon's conversation");
        remove(helpers, place).await;
        drop(lock);
    }
}

/// Returns the folders of pods that no daemon needs, locked.
fn left(temporary: &Path) -> Vec<(PathBuf, File)> {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let pods = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|it| it.starts_with(POD_PREFIX))
    });
    let locked = pods.filter_map(|entry| {
        let folder = open(&entry.path()).ok()?;
        let is_own = folder.metadata().is_ok_and(|it| it.uid() == own);
        let locks = || flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        (is_own && locks()).then_some((entry.path(), folder))
    });
    locked.take(MAX_SWEPT).collect()
}

impl Namespaces {
    /// Has a helper make them.
    async fn make(
        helpers: &Arc<Helpers>,
        overlays: Vec<Overlay>,
        outside: Option<Outside>,
    ) -> Result<Self, SpawnError> {
        let places: Vec<_> = overlays
            .iter()
            .map(|overlay| (overlay.lower.clone(), overlay.merged.clone()))
            .collect();
        let made = Made::by_helper(helpers, overlays, outside).await?;
        let caches = places.into_iter().zip(made.why_not);
        let caches = caches.map(|(cache, why_not)| seen(cache, &why_not));
        Ok(Self {
            user: made.user,
            network: made.network,
            mounts: made.mounts,
            caches: caches.collect(),
            gateway: made.gateway,
            sockets: Mutex::default(),
            sockets6: Mutex::default(),
        })
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn caches(&self) -> &[SeenCache] {
        &self.caches
    }

    pub(crate) fn joined(&self) -> JoinedPod {
        JoinedPod {
            has_mounts: self.mounts.is_some(),
        }
    }

    /// Returns an unconnected TCP socket in the network; a helper makes some where none is left.
    async fn socket(&self, helpers: &Helpers, loopback: Loopback) -> io::Result<OwnedFd> {
        let sockets = match loopback {
            Loopback::V4 => &self.sockets,
            Loopback::V6 => &self.sockets6,
        };
        if let Some(socket) = sockets.lock().pop() {
            return Ok(socket);
        }
        let pod = self.joined();
        let task = Task::new(Work::Sockets { pod, loopback }, Cleanup::default());
        let given = Given {
            pod: Some(self),
            ..Given::default()
        };
        let (socket, _) = helpers.assign(&task, given).map_err(io::Error::other)?;
        let answers = Answers::of(helpers, socket).await;
        let mut answers = answers.map_err(io::Error::other)?;
        let (_, mut made) = answers.next().await.map_err(io::Error::other)?;
        let socket = made.pop();
        let mut sockets = sockets.lock();
        // Others may have asked meanwhile. What is too many goes.
        let room = SOCKETS.saturating_sub(sockets.len());
        sockets.extend(made.into_iter().take(room));
        socket
            .ok_or_else(|| io::Error::other("no socket can be made in the conversation's network"))
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.user, &self.network]
            .into_iter()
            .chain(&self.mounts)
            .map(AsFd::as_fd)
    }
}

/// Returns how a cache is seen; `why_not` is empty where there is an overlay.
fn seen((place, merged): (PathBuf, PathBuf), why_not: &str) -> SeenCache {
    if !why_not.is_empty() {
        tracing::warn!(
            cache = %place.display(),
            reason = why_not,
            "commands of this conversation can read a cache and not add to it: there is no overlay"
        );
    }
    SeenCache {
        place,
        merged: why_not.is_empty().then_some(merged),
    }
}

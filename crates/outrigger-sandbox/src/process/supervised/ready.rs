//! A helper that makes ready for the next command of a pod once one has ended, while the model thinks.
//!
//! Most commands of a conversation have the same surroundings: its folders, its network, what it may read. A helper that
//! knows those makes all that takes long before the command comes (`helper::prepared`). It is used only where the command
//! has the same surroundings to the letter, every folder is still the one that it was, and nothing was mounted meanwhile;
//! else it is thrown away, as it is after a while, for it keeps what it has mounted.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::helpers::{Given, Helpers, Waiting};
use crate::helper::places::{DEVICES, SYSTEM};
use crate::helper::raw;
use crate::pod::{Pod, WeakPod};
use crate::policy::{Cleanup, Policy, Task, Work};
use crate::{Mode, Stdin, real};

/// Most of them at a time, in all pods: each is three small processes.
pub(super) const MOST: usize = 8;

/// How long one waits for a command. A model takes a few seconds from one to the next; what is mounted cannot be removed
/// from the machine as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What tells of mounts and their ends, in the namespace of the daemon.
const MOUNTS: &str = "/proc/self/mounts";

/// What a helper is to make ready from, after a command.
#[derive(Debug)]
pub(super) struct Plan {
    pod: WeakPod,
    helpers: Arc<Helpers>,
    permits: Arc<Semaphore>,
    policy: Policy,
    places: Vec<(PathBuf, OwnedFd)>,
}

/// A helper that is ready, or about to be, and what it was made ready from.
#[derive(Debug)]
pub(crate) struct Ready {
    helper: Waiting,
    calls: Option<BlockingStream>,
    made_from: Vec<u8>,
    /// The folders as they came from the daemon's handles: open, so that no number can be given to another one.
    places: Vec<(PathBuf, OwnedFd)>,
    stamps: Vec<(PathBuf, Stamp)>,
    mounts: File,
    mark: Arc<()>,
    /// Ends the task that waits to throw it away.
    _kept: DropGuard,
    _permit: OwnedSemaphorePermit,
}

/// What is at a path. A folder is told by its number, which the helper's mount keeps from being given to another one; a
/// link, which is made anew, by what it says.
#[derive(Debug, PartialEq, Eq)]
enum Stamp {
    Missing,
    Link(PathBuf),
    Other(u64, u64),
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let found = path.symlink_metadata();
        found.map_or(Self::Missing, |found| match found.is_symlink() {
            true => path.read_link().map_or(Self::Missing, Self::Link),
            false => Self::Other(found.dev(), found.ino()),
        })
    }
}

impl Plan {
    /// Returns what to make ready after a command with this policy; `None` where the next one could not use it.
    pub(super) fn new(
        pod: Option<&Pod>,
        helpers: &Arc<Helpers>,
        permits: &Arc<Semaphore>,
        policy: &Policy,
        places: &[(PathBuf, OwnedFd)],
    ) -> Option<Self> {
        if !is_of_use(policy) {
            return None;
        }
        Some(Self {
            pod: pod?.downgrade(),
            helpers: Arc::clone(helpers),
            permits: Arc::clone(permits),
            policy: policy.surroundings(),
            places: copies(places).ok()?,
        })
    }

    /// Has a helper make it ready, unless the pod has one or is gone. A failure is met by the next command again.
    pub(super) async fn carry_out(self) {
        // Whoever waited for the command goes first.
        tokio::task::yield_now().await;
        let Ok(permit) = self.permits.try_acquire_owned() else {
            return;
        };
        // Before the helper looks at any of it.
        let policy = self.policy;
        let look = move || {
            let mounts = [File::open(MOUNTS)?, File::open(MOUNTS)?];
            Ok::<_, io::Error>((mounts, stamps(&policy), policy))
        };
        let Ok(Ok((mounts, stamps, policy))) = tokio::task::spawn_blocking(look).await else {
            return;
        };
        // From here on nothing is waited for: the last one that has the pod removes what it left.
        let Some(pod) = self.pod.upgrade() else {
            return;
        };
        let make = || {
            let namespaces = pod.made_namespaces()?;
            let made_from = serde_json::to_vec(&policy).ok()?;
            let calls = match policy.stops.is_empty() {
                true => None,
                false => Some(BlockingStream::pair().ok()?),
            };
            let (ours, theirs) = calls.unzip();
            let task = Task::new(Work::Prepare(Box::new(policy)), Cleanup::default());
            let given = Given {
                pod: Some(namespaces),
                calls: theirs.as_ref(),
                places: &self.places,
                gate: None,
            };
            let helper = self.helpers.make_ready(&task, given).ok()?;
            Some((helper, ours, made_from))
        };
        let mut ready = pod.ready().lock();
        if ready.is_some() {
            return;
        }
        let Some((helper, calls, made_from)) = make() else {
            return;
        };
        let (token, mark) = (CancellationToken::new(), Arc::new(()));
        let [mounts, watched] = mounts;
        *ready = Some(Ready {
            helper,
            calls,
            made_from,
            places: self.places,
            stamps,
            mounts,
            mark: Arc::clone(&mark),
            _kept: token.clone().drop_guard(),
            _permit: permit,
        });
        tokio::spawn(throw_away(self.pod, (token, mark), watched));
    }
}

/// Throws away what was made ready, once it has waited long enough or something was mounted.
async fn throw_away(pod: WeakPod, (token, mark): (CancellationToken, Arc<()>), mounts: File) {
    let outdated = async {
        let changed = async {
            match raw::watched(mounts.into(), Interest::PRIORITY) {
                Ok(mounts) => mounts.ready(Interest::PRIORITY).await.map(drop),
                Err(error) => Err(error),
            }
        };
        tokio::time::timeout(PATIENCE, changed)
            .await
            .map_or_else(drop, drop);
    };
    if token.run_until_cancelled(outdated).await.is_none() {
        return;
    }
    if let Some(pod) = pod.upgrade() {
        let is_it = |ready: &mut Ready| Arc::ptr_eq(&ready.mark, &mark);
        drop(pod.ready().lock().take_if(is_it));
    }
}

impl Ready {
    /// Whether all is as it was when it was made. Looks at files; for a thread that may block.
    pub(super) fn is_current(&self) -> bool {
        let mut mounts = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let at_once = Timespec::default();
        let is_quiet = matches!(poll(&mut mounts, Some(&at_once)), Ok(0));
        is_quiet
            && self
                .stamps
                .iter()
                .all(|(path, stamp)| Stamp::of(path) == *stamp)
    }

    /// Returns the helper and where its stopped calls are told, where the command may run in what it made.
    pub(super) fn for_command(
        self,
        policy: &Policy,
        places: &[(PathBuf, OwnedFd)],
    ) -> Option<(Waiting, Option<BlockingStream>)> {
        let is_same = |((path, now), (other, then)): (&(PathBuf, OwnedFd), &(PathBuf, OwnedFd))| {
            path == other && real::is_same(now, then).unwrap_or(false)
        };
        let are_same = places.len() == self.places.len()
            && places.iter().zip(&self.places).all(is_same)
            && is_of_use(policy)
            && serde_json::to_vec(&policy.surroundings()).is_ok_and(|it| it == self.made_from);
        are_same.then_some((self.helper, self.calls))
    }
}

/// Whether a command with these surroundings can run in what was made before it. Not where something lies in a folder that
/// commands change: what is mounted there would be put into it before its time.
fn is_of_use(policy: &Policy) -> bool {
    let command = &policy.command;
    let caches = policy.caches.iter().map(|cache| &cache.place);
    let mut mounted = command
        .read_write
        .iter()
        .chain(&command.read_only)
        .chain(caches);
    let is_inside = |path: &PathBuf| {
        let mut around = command.read_write.iter();
        around.any(|folder| path != folder && path.starts_with(folder))
    };
    policy.mode == Mode::Full
        // Another user of the system mounts by itself.
        && policy.outside.is_none()
        && policy.joins.is_some()
        && policy.private_tmp.is_none()
        && command.stdin == Stdin::Null
        && !mounted.any(is_inside)
}

/// What is at each path that a helper mounts or has rules for.
fn stamps(policy: &Policy) -> Vec<(PathBuf, Stamp)> {
    let command = &policy.command;
    let system = SYSTEM.iter().chain(&DEVICES).map(PathBuf::from);
    let given = command.read_write.iter().chain(&command.read_only).cloned();
    let caches = policy.caches.iter().flat_map(|cache| {
        let merged = cache.merged.iter().cloned();
        merged.chain([cache.place.clone()])
    });
    let folders = policy.pod.iter().flat_map(|pod| {
        let folders = [&pod.home, &pod.tmp, &pod.var_tmp];
        folders.into_iter().cloned()
    });
    let all = system.chain(given).chain(caches).chain(folders);
    all.map(|path| {
        let stamp = Stamp::of(&path);
        (path, stamp)
    })
    .collect()
}

fn copies(places: &[(PathBuf, OwnedFd)]) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
    let copy = |(path, place): &(PathBuf, OwnedFd)| Ok((path.clone(), place.try_clone()?));
    places.iter().map(copy).collect()
}

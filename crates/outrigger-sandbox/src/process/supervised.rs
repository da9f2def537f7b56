//! Linux: the command runs under the sandbox helper, and everything is asked of that.
//!
//! The daemon holds one end of a socket. As long as it is open the command may live; closing it, on purpose or by
//! dying, has the helper kill the tree. Nothing here depends on the thread that spawned.

mod attend;
pub(crate) mod children;
mod groups;
pub(crate) mod helpers;
mod places;
mod pods;
mod policy;
pub(crate) mod ready;
mod temporary;
mod users;

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::try_join_all;
use rustix::net::Shutdown;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{OnceCell, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::attend::Known;
pub(crate) use self::groups::limits;
use self::groups::make_group;
use self::helpers::{Given, Helpers, Pipes, Waiting};
pub(crate) use self::pods::{pod, pods_removed, sweep};
use self::policy::{about_names, policy, resolve, share};
use self::ready::{Plan, Ready};
use self::temporary::{UnusedTmp, private_tmp};
pub(crate) use self::users::try_users;
use super::{Exit, Process, Purpose, Reached, Restored, SpawnError};
use crate::cgroup::Groups;
use crate::closed::Closed;
use crate::destinations::Destinations;
use crate::git::watch::{Watch, Watches};
use crate::git::{self, Protection, References};
pub use crate::helper::Zygote;
use crate::ids::Table;
use crate::layers::{Layers, Step};
use crate::outgoing::Attended;
use crate::pod::Namespaces;
use crate::policy::{Cleanup, TERMINATE, Task, Work};
use crate::{Command, GitAccess, Mode, Network, Overfull, Ports, Settings, Shared, cgroup, quota};

pub(super) type StdinPipe = pipe::Sender;

/// Lets a program through its gate. Which byte it is does not matter.
const BEGIN: u8 = b'B';

/// The way to a helper, and the task that attends to it.
#[derive(Debug)]
pub(super) struct Tree {
    requests: OwnedWriteHalf,
    killed: CancellationToken,
    known: watch::Receiver<Known>,
}

/// What is kept from one command to the next.
#[derive(Debug)]
pub(crate) struct State {
    groups: OnceCell<Arc<Groups>>,
    helpers: Arc<Helpers>,
    /// Where users of the daemon are users of the system.
    ids: Option<Table>,
    watches: Watches,
    closed: Closed,
    /// One token of it for each pod, until its folders are removed.
    pods: TaskTracker,
    /// For what is made ready before a command is known.
    ready: Arc<Semaphore>,
}

impl State {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            groups: OnceCell::new(),
            helpers: Arc::new(Helpers::new(settings.helper.clone())),
            ids: settings.user_ids.map(Table::new),
            watches: Watches::default(),
            closed: Closed::default(),
            pods: TaskTracker::new(),
            ready: Arc::new(Semaphore::new(ready::MOST)),
        }
    }
}

/// Starts a command in the given mode.
pub(crate) async fn spawn(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    purpose: Purpose,
    may_begin: impl Future<Output = bool> + Clone,
) -> Result<Process, SpawnError> {
    let start = |ready| start(shared, command, (mode, purpose), ready, may_begin.clone());
    let pod = command.pod.as_ref();
    let Some(ready) = pod.and_then(|pod| pod.ready().lock().take()) else {
        return start(None).await;
    };
    match start(Some(ready)).await {
        // Perhaps what was made ready was, or a process of it is dead. Nothing has run.
        Err(SpawnError::Refused(_)) => start(None).await,
        started => started,
    }
}

async fn start(
    shared: &Shared,
    command: &Command,
    (mode, purpose): (Mode, Purpose),
    ready: Option<Ready>,
    may_begin: impl Future<Output = bool>,
) -> Result<Process, SpawnError> {
    let is_run = purpose == Purpose::Run;
    let closed = async {
        match is_run && mode == Mode::Full {
            true => shared.state.closed.paths().await,
            false => Arc::default(),
        }
    };
    let pod = command.pod.as_ref();
    let folders = async {
        match pod {
            Some(pod) => pod.folders(mode).await.map(Some),
            None => Ok(None),
        }
    };
    let outside = users::outside(shared, command, mode, purpose)?;
    let namespaces = async {
        match pod {
            Some(pod) if mode == Mode::Full && command.network.is_own() => {
                // In a box, for the compiler: it counts how deep futures are within each other.
                Box::pin(pod.namespaces(outside)).await.map(Some)
            }
            _ => Ok(None),
        }
    };
    // Each of them waits for a thread that looks at files, or for a helper.
    let (closed, places, repositories, folders, namespaces, group, names, ready) = tokio::join!(
        closed,
        places::open(command),
        repositories(shared, command, mode),
        folders,
        namespaces,
        make_group(shared, command, is_run && mode > Mode::None),
        about_names(&command.network),
        current(ready),
    );
    let (places, (references, protection), folders) = (places?, repositories?, folders?);
    let namespaces = namespaces?;
    let (folders, quota) = folders.unzip();
    // Where nothing is hidden what a command writes is anywhere.
    let quota = quota.filter(|_| mode >= Mode::Fallback);
    let private_tmp = match folders {
        Some(_) => None,
        None => private_tmp(shared, command, mode).map_err(SpawnError::Helper)?,
    };
    let unused_tmp = UnusedTmp::new(private_tmp.clone(), mode);
    let mut policy = policy(shared, command, mode, private_tmp);
    policy.outside = outside;
    resolve(&mut policy, names);
    if let Some(folders) = folders {
        share(&mut policy, folders);
    }
    policy.joins = namespaces.map(Namespaces::joined);
    policy.caches = namespaces.map_or_else(Vec::new, |it| it.caches().to_vec());
    let attended = match namespaces {
        Some(_) => attended(shared, command, &policy.command.network),
        None => Attended::default(),
    };
    policy.stops = attended.stops();
    policy.places = places.iter().map(|(path, _)| path.clone()).collect();
    if command.git >= GitAccess::Write {
        policy.command.read_write.extend(protection.outside);
        let identity = references.first().map(|known| known.identity());
        for (name, value) in identity.into_iter().flatten() {
            policy.command.env.entry(name).or_insert(value);
        }
    } else {
        policy.command.read_only.extend(protection.outside);
    }
    policy.pins = protection.pins;
    policy.command.hidden.extend_from_slice(&closed);
    // What was made so far goes with its owners, also where nobody waits for this any more.
    let mut may_begin = pin!(may_begin);
    let gate = match may_begin.as_mut().now_or_never() {
        Some(true) => None,
        Some(false) => return Err(SpawnError::Unwanted),
        // What changes in a repository from here on is put back at the end.
        None if is_watched(command, mode) => match may_begin.as_mut().await {
            true => None,
            false => return Err(SpawnError::Unwanted),
        },
        // Until it is known that it may, all is done but to execute it.
        None => Some(io::pipe().map_err(SpawnError::Helper)?),
    };
    let (waits_at, gate) = gate.unzip();
    let watch = watch(shared, command, mode).await;
    if group.bounds_memory {
        // It would count what is only reserved, and each process by itself.
        policy.command.limits.data = None;
    }
    let cleanup = Cleanup {
        placeholders: protection.placeholders,
        private_tmp: unused_tmp.into_used(),
        cgroups: group.keep(),
    };
    let helpers = &shared.state.helpers;
    let next = match is_run {
        true => Plan::new(pod, helpers, &shared.state.ready, &policy, &places),
        false => None,
    };
    let ready = ready.and_then(|ready| ready.for_command(&policy, &places));
    let mut task = Task::new(Work::Command(Box::new(policy)), cleanup);
    task.waits = waits_at.is_some();
    let given = Given {
        pod: namespaces,
        calls: None,
        places: &places,
        gate: waits_at.as_ref(),
    };
    let assigned = assign(helpers, ready, &task, given);
    drop(waits_at);
    let cleanup = task.cleanup;
    let (socket, pipes, calls) = match assigned {
        Ok(assigned) => assigned,
        Err(error) => {
            cleanup.remove_empty_tmp();
            cgroup::remove(&cleanup.cgroups);
            // On its own: whoever waits for this may be cancelled.
            tokio::spawn(watch.end()).await.map_or_else(drop, drop);
            return Err(error);
        }
    };
    let attending = namespaces
        .zip(calls)
        .map(|(namespaces, socket)| namespaces.gateway().attend(socket, attended));
    let (tree, started, waits) = attend::begin(
        socket,
        cleanup,
        &shared.state.helpers,
        watch,
        quota.map(quota::Watch::new),
        (pod.cloned(), attending),
        next,
    );
    let mut process = Process {
        stdin: pipes.stdin,
        stdout: pipes.stdout,
        stderr: pipes.stderr,
        layers: Layers::default(),
        tree,
    };
    if let Some(mut gate) = gate {
        if !may_begin.await {
            drop(gate);
            process.kill();
            process.wait().await;
            return Err(SpawnError::Unwanted);
        }
        // A program that is gone says so itself.
        gate.write_all(&[BEGIN]).unwrap_or_default();
    }
    drop(waits);
    match started.await {
        Ok(Ok(layers)) => {
            process.layers = layers;
            Ok(process)
        }
        Ok(Err(error)) => {
            process.kill();
            process.wait().await;
            Err(error)
        }
        Err(error) => Err(SpawnError::Helper(io::Error::other(error))),
    }
}

/// Has a helper take up the task, that which made ready for it where there is one. Returns the way to it, the pipes of the
/// program, and where its stopped calls are told.
fn assign(
    helpers: &Helpers,
    ready: Option<(Waiting, Option<BlockingStream>)>,
    task: &Task,
    given: Given<'_>,
) -> Result<(UnixStream, Pipes, Option<BlockingStream>), SpawnError> {
    if let Some((helper, calls)) = ready {
        let assigned = helpers.assign_ready(helper, task, given.gate);
        return assigned.map(|(socket, pipes)| (socket, pipes, calls));
    }
    let stops = task.policy().is_some_and(|policy| !policy.stops.is_empty());
    let calls = stops.then(BlockingStream::pair).transpose();
    let (ours, theirs) = calls.map_err(SpawnError::Helper)?.unzip();
    let given = Given {
        calls: theirs.as_ref(),
        ..given
    };
    let (socket, pipes) = helpers.assign(task, given)?;
    Ok((socket, pipes, ours))
}

/// Returns what was made ready, where nothing that it was made from has changed.
async fn current(ready: Option<Ready>) -> Option<Ready> {
    let ready = ready?;
    let look = move || ready.is_current().then_some(ready);
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Returns what the daemon has to answer in a pod for a command with this network.
fn attended(shared: &Shared, command: &Command, network: &Network) -> Attended {
    let own_port = shared.own_port.get().copied();
    let destinations = |ports: &Ports| {
        Destinations::new(
            ports.clone(),
            own_port,
            command.hosts.clone(),
            command.refused_ports.clone(),
        )
    };
    Attended {
        connects: match network {
            Network::Outgoing(ports) => Some(destinations(ports)),
            Network::Off | Network::Host(_) => None,
        },
        listening: command.listening.clone(),
    }
}

/// Returns what the user's settings of git name in each root, and what protects the repositories there.
async fn repositories(
    shared: &Shared,
    command: &Command,
    mode: Mode,
) -> Result<(Vec<Arc<References>>, Protection), SpawnError> {
    let references = references(shared, command, mode).await?;
    let protection = protection(command, mode, &references).await?;
    Ok((references, protection))
}

/// Returns what the user's settings of git name in each root; nothing where nobody needs it.
async fn references(
    shared: &Shared,
    command: &Command,
    mode: Mode,
) -> Result<Vec<Arc<References>>, SpawnError> {
    if mode != Mode::Full && command.git < GitAccess::Write {
        return Ok(Vec::new());
    }
    let home = shared.settings.home.as_deref();
    let roots = command.read_write.iter();
    let found = roots.map(|root| git::Cache::known().references(root, home));
    try_join_all(found)
        .await
        .map_err(|error| SpawnError::refused(Step::Prepare, error))
}

/// Returns what protects the user's repositories from the command, by mounts.
async fn protection(
    command: &Command,
    mode: Mode,
    references: &[Arc<References>],
) -> Result<Protection, SpawnError> {
    // A repository that the command cannot change needs none.
    if mode != Mode::Full || command.read_write.is_empty() {
        return Ok(Protection::default());
    }
    let (roots, nested) = (command.read_write.clone(), command.repositories.clone());
    let (access, references) = (command.git, references.to_vec());
    tokio::task::spawn_blocking(move || git::protect(&roots, &nested, access, &references))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| SpawnError::refused(Step::Prepare, error))
}

/// Takes note of what is restored after the command, where no mount protects it. Not for programs that run for hours:
/// the user changes it meanwhile.
async fn watch(shared: &Shared, command: &Command, mode: Mode) -> Watch {
    let watches = &shared.state.watches;
    match is_watched(command, mode) {
        true => watches.begin(&command.read_write, &command.held).await,
        false => Watch::default(),
    }
}

fn is_watched(command: &Command, mode: Mode) -> bool {
    matches!(mode, Mode::Fallback | Mode::Limits) && command.git != GitAccess::ExistingReadOnly
}

pub(crate) fn prepare_helper(shared: &Shared, zygote: Option<Zygote>) {
    // Where no pod is made in full mode, or each for a user of its own, that one would wait for ever.
    let settings = &shared.settings;
    let has_pods = settings.ceiling == Mode::Full && settings.user_ids.is_none();
    let zygote = zygote.map(|it| Zygote {
        pod: it.pod.filter(|_| has_pods),
        ..it
    });
    shared.state.helpers.prepare(zygote);
}

impl Process {
    /// Waits for the end of the program and the death of all it left running. Does not wait for the end of its output.
    ///
    /// Cancel-safe; gives the same answer when called again.
    pub async fn wait(&mut self) -> Exit {
        self.exit_once(|known| known.restored.is_some()).await
    }

    /// Waits for the program's end to be reported, or for the helper to be gone without a report; not for what the
    /// program left running.
    pub(crate) async fn exited(&mut self) -> Exit {
        self.exit_once(|known| known.exit.is_some()).await
    }

    async fn exit_once(&mut self, is_known: impl FnMut(&Known) -> bool) -> Exit {
        let known = self.tree.known.wait_for(is_known).await;
        // Without its task the daemon ends, and the helper sees that by itself.
        known.map_or(Exit::KILLED, |known| known.exit.unwrap_or(Exit::KILLED))
    }

    /// Returns what was changed back in a repository, where anything was; known once [`Process::wait`] has returned.
    pub fn restored(&self) -> Option<Restored> {
        let restored = self.tree.known.borrow().restored.clone();
        restored.filter(|restored| !restored.paths.is_empty() || restored.failure.is_some())
    }

    /// Returns which limits it ran into; known once [`Process::wait`] has returned.
    pub fn reached(&self) -> Reached {
        self.tree.known.borrow().reached
    }

    /// Returns whether the folders of its pod came to hold too much while it ran; known once [`Process::wait`] has returned.
    pub fn overfull(&self) -> Option<Overfull> {
        self.tree.known.borrow().overfull
    }

    /// Asks every process of the command to end (SIGTERM).
    pub fn terminate(&self) {
        // The socket holds far more than the few bytes that are ever sent.
        let sent = self.tree.requests.try_write(&[TERMINATE]);
        sent.map_or_else(drop, drop);
    }

    /// Kills every process of the command, those that left its session too.
    pub fn kill(&self) {
        // Fails only when the helper is gone already.
        rustix::net::shutdown(self.tree.requests.as_ref(), Shutdown::Write).unwrap_or_default();
        self.tree.killed.cancel();
    }
}

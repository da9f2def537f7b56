//! Linux: the command runs under the sandbox helper, and everything is asked of that.
//!
//! The daemon holds one end of a socket. As long as it is open the command may live; closing it, on purpose or by
//! dying, has the helper kill the tree. Nothing here depends on the thread that spawned.

pub(crate) mod ahead;
pub(crate) mod children;
mod link;
mod places;

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::children::Started as Child;
use self::link::{Leavings, Link};
use self::places::Places;
use super::{Exit, Process, Resources, Restored, SpawnError};
use crate::cgroup::Delegated;
use crate::git::watch::Watch;
use crate::git::{self, Protection, References};
use crate::layers::{Layers, Step};
use crate::policy::{Notice, Policy, Task};
use crate::{Command, GitAccess, Mode, Network, Shared, Stdin, directory};

pub(super) type StdinPipe = pipe::Sender;

/// How long the helper may take to start a program: milliseconds usually, more on a machine out of memory.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long the helper may take to say that all processes are dead, from the death that was asked for or has happened.
/// Milliseconds usually; a machine may be slow.
const DEATH_PATIENCE: Duration = Duration::from_secs(20);

/// How long anybody waits for the removal of temporary files, which goes on without him.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(1);

/// The helper process, the socket to it, and what is known of it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Nothing once its end is somebody else's to see to.
    link: Option<Link>,
    /// Sees to the end of the helper, then to what the command changed.
    ending: Option<JoinHandle<()>>,
    restored: Option<oneshot::Receiver<Restored>>,
    killed: AtomicBool,
    group: Option<Pid>,
    reported: Option<Exit>,
    is_dead: bool,
    ended: Option<(Exit, Restored)>,
}

/// What the helper said until the program ran.
struct Started {
    layers: Layers,
    group: Option<Pid>,
}

pub(super) async fn spawn(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    closed: &[PathBuf],
) -> Result<Process, SpawnError> {
    let places = places::open(command).await?;
    let references = references(shared, command, mode).await;
    let protection = protection(command, mode, &references).await?;
    let is_private = command.private_tmp;
    // Full mode's is in a file system of the command's own.
    let private_tmp = (is_private && mode < Mode::Full)
        .then(|| directory::Private::create(&shared.settings.temporary))
        .transpose()
        .map_err(SpawnError::Helper)?;
    let own_tmp = match &private_tmp {
        Some(directory) => Some(directory.path().to_owned()),
        None if is_private => {
            let given = || command.read_write.iter().chain(&command.read_only);
            let is_own = |place: &&str| !given().any(|given| Path::new(place).starts_with(given));
            let parent = directory::IN_NAMESPACE.into_iter().find(is_own);
            parent
                .map(|parent| directory::unused(Path::new(parent)))
                .transpose()
                .map_err(SpawnError::Helper)?
        }
        None => None,
    };
    let mut policy = policy(shared, command, mode, own_tmp);
    policy.places = places.paths();
    if command.git >= GitAccess::Write {
        policy.read_write.extend(protection.outside);
        let identity = references.first().map(References::identity);
        for (name, value) in identity.into_iter().flatten() {
            policy.env.entry(name).or_insert(value);
        }
    } else {
        policy.read_only.extend(protection.outside);
    }
    policy.pins = protection.pins;
    policy.hidden.extend_from_slice(closed);
    let leavings = Leavings {
        placeholders: protection.placeholders,
        private_tmp,
        cgroup: if mode > Mode::None {
            make_group(shared, command)
        } else {
            None
        },
        ahead: Arc::clone(&shared.ahead),
    };
    let watch = watch(shared, command, mode).await;
    let (mut helper, socket, stdin) = match start_helper(policy, &places, command.stdin, &leavings)
    {
        Ok(started) => started,
        Err(error) => {
            leavings.drop_unused();
            watch.end().await;
            return Err(error);
        }
    };
    let (stdout, stderr) = (helper.stdout.take(), helper.stderr.take());
    let mut tree = Tree {
        link: Some(Link::new(helper, socket, leavings, watch)),
        ending: None,
        restored: None,
        killed: AtomicBool::new(false),
        group: None,
        reported: None,
        is_dead: false,
        ended: None,
    };
    let started = match timeout(START_PATIENCE, tree.started()).await {
        Ok(started) => started,
        Err(_) => Err(SpawnError::Helper(io::ErrorKind::TimedOut.into())),
    };
    match started {
        Ok(started) => {
            tree.group = started.group;
            Ok(Process {
                stdin,
                stdout,
                stderr,
                layers: started.layers,
                tree,
            })
        }
        Err(error) => {
            tree.kill();
            tree.wait().await;
            Err(error)
        }
    }
}

/// Returns what the user's settings of git name in each root; nothing where nobody needs it.
async fn references(shared: &Shared, command: &Command, mode: Mode) -> Vec<References> {
    if mode != Mode::Full && command.git < GitAccess::Write {
        return Vec::new();
    }
    let home = shared.settings.home.as_deref();
    let roots = command.read_write.iter();
    join_all(roots.map(|root| shared.references.references(root, home))).await
}

/// Returns what protects the user's repositories from the command, by mounts.
async fn protection(
    command: &Command,
    mode: Mode,
    references: &[References],
) -> Result<Protection, SpawnError> {
    if mode != Mode::Full {
        return Ok(Protection::default());
    }
    let (roots, nested) = (command.read_write.clone(), command.repositories.clone());
    let (access, references) = (command.git, references.to_vec());
    tokio::task::spawn_blocking(move || git::protect(&roots, &nested, access, &references))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| SpawnError::Refused {
            step: Step::Prepare,
            reason: error.to_string(),
        })
}

/// Takes note of what is restored after the command, where no mount protects it. Not for programs that run for hours:
/// the user changes it meanwhile.
async fn watch(shared: &Shared, command: &Command, mode: Mode) -> Watch {
    let is_lasting = command.git == GitAccess::ExistingReadOnly;
    match mode {
        Mode::Fallback | Mode::Limits if !is_lasting => {
            shared
                .watches
                .begin(&command.read_write, &command.held)
                .await
        }
        _ => Watch::default(),
    }
}

/// A control group for the command, where there can be one. A command is not refused for want of one.
fn make_group(shared: &Shared, command: &Command) -> Option<PathBuf> {
    let delegated = shared.delegated.get_or_init(Delegated::find).as_ref()?;
    delegated
        .make(&command.limits)
        .inspect_err(|error| tracing::warn!(%error, "no control group for a command"))
        .ok()
}

fn policy(shared: &Shared, command: &Command, mode: Mode, private_tmp: Option<PathBuf>) -> Policy {
    let mut env = command.env.clone();
    if let Some(path) = &private_tmp {
        let path = path.display().to_string();
        env.insert("TMPDIR".to_owned(), path.clone());
        env.insert("XDG_RUNTIME_DIR".to_owned(), path);
    }
    let own_port = shared.own_port.get();
    let ports: Option<Vec<u16>> = match &command.network {
        Network::Off => None,
        Network::On { ports } => Some(
            ports
                .iter()
                .copied()
                .filter(|port| Some(port) != own_port)
                .collect(),
        ),
    };
    let mut read_only = [command.read_only.as_slice(), &shared.toolchains].concat();
    if ports.is_some() {
        // Where the file of the resolver really is, below `/run` on many systems.
        read_only.extend(std::fs::canonicalize("/etc/resolv.conf"));
    }
    Policy {
        mode,
        program: command.program.clone(),
        args: command.args.clone(),
        cwd: command.cwd.clone(),
        env,
        ports,
        read_write: command.read_write.clone(),
        read_only,
        places: Vec::new(),
        hidden: command.hidden.clone(),
        home: shared.settings.home.clone(),
        pins: Vec::new(),
        private_tmp,
        private_bytes: shared.settings.private_bytes,
        landlock: shared.settings.landlock,
        limits: command.limits.clone(),
    }
}

/// Hands the policy to a helper; see [`ahead`] for where it comes from.
fn start_helper(
    policy: Policy,
    places: &Places,
    stdin: Stdin,
    leavings: &Leavings,
) -> Result<(Child, UnixStream, Option<StdinPipe>), SpawnError> {
    let task = Task {
        policy: Some(policy),
        has_input: stdin == Stdin::Piped,
        leavings: leavings.described(),
    };
    let task = serde_json::to_vec(&task).map_err(|error| SpawnError::Command(error.to_string()))?;
    let helper = leavings.ahead.helper().map_err(SpawnError::Helper)?;
    let descriptors: Vec<_> = places.descriptors().collect();
    helper
        .employ(&task, stdin, &descriptors)
        .map_err(SpawnError::Helper)
}

/// Has a helper started that the next command finds; see [`ahead`].
pub(super) fn prepare_helper(shared: &Shared) {
    shared.ahead.prepare();
}

impl Tree {
    /// Waits until the program runs.
    async fn started(&mut self) -> Result<Started, SpawnError> {
        let mut layers = Layers::default();
        loop {
            match self.notice().await {
                Some(Notice::Confined(applied)) => layers = applied,
                Some(Notice::Started { group }) => {
                    return Ok(Started {
                        layers,
                        group: group.and_then(Pid::from_raw),
                    });
                }
                Some(Notice::Failed {
                    step: Step::Execute,
                    reason,
                }) => return Err(SpawnError::Program { reason }),
                Some(Notice::Failed { step, reason }) => {
                    return Err(SpawnError::Refused { step, reason });
                }
                Some(Notice::Exited { .. } | Notice::Dead {}) | None => {
                    return Err(SpawnError::Helper(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }

    /// The next notice; `None` when the helper has ended.
    async fn notice(&mut self) -> Option<Notice> {
        self.link.as_mut()?.notice().await
    }

    pub(super) async fn wait(&mut self) -> Exit {
        if let Some((exit, _)) = &self.ended {
            return *exit;
        }
        if !self.killed.load(Ordering::Relaxed) {
            self.exited().await;
        }
        let is_in_time = timeout(DEATH_PATIENCE, self.dead()).await.is_ok();
        if let Some(link) = self.link.take() {
            let (tell, restored) = oneshot::channel();
            // The one of a namespace may be killed, and all with it; the other kind is the only one that can find its
            // processes, and goes on killing them for as long as it takes.
            let is_left_alone = !is_in_time && self.group.is_some();
            self.restored = Some(restored);
            self.ending = Some(tokio::spawn(link.end(self.is_dead, is_left_alone, tell)));
        }
        let restored = match &mut self.restored {
            Some(restored) => restored.await.unwrap_or_default(),
            None => Restored::default(),
        };
        self.restored = None;
        if let Some(ending) = &mut self.ending {
            timeout(REMOVAL_PATIENCE, ending)
                .await
                .map_or_else(drop, drop);
            self.ending = None;
        }
        let exit = self.reported.unwrap_or_else(|| self.end_without_report());
        self.ended = Some((exit, restored));
        exit
    }

    /// Waits for the program's end to be reported, or for the helper to be gone without a report.
    pub(super) async fn exited(&mut self) -> Exit {
        while self.reported.is_none() && self.hear().await {}
        self.reported.unwrap_or_else(|| self.end_without_report())
    }

    /// Waits for the death of all processes, or for the helper to be gone before that.
    async fn dead(&mut self) {
        while !self.is_dead && self.hear().await {}
    }

    /// Takes in the next notice; false when the helper has ended.
    async fn hear(&mut self) -> bool {
        let Some(notice) = self.notice().await else {
            return false;
        };
        match notice {
            Notice::Exited {
                status,
                cpu_ms,
                max_rss_bytes,
            } => {
                let status = ExitStatus::from_raw(status);
                self.reported = Some(Exit {
                    code: status.code(),
                    signal: status.signal(),
                    resources: Resources {
                        cpu_ms,
                        max_rss_bytes,
                    },
                });
            }
            Notice::Dead {} => self.is_dead = true,
            Notice::Confined(_) | Notice::Started { .. } | Notice::Failed { .. } => {}
        }
        true
    }

    /// The helper was killed. Its program died with it; the rest of the group is killed here.
    fn end_without_report(&self) -> Exit {
        if let Some(group) = self.group {
            rustix::process::kill_process_group(group, Signal::KILL).unwrap_or_default();
        }
        Exit {
            code: None,
            signal: Some(Signal::KILL.as_raw()),
            resources: Resources::default(),
        }
    }

    /// What was changed back, where anything was.
    pub(super) fn restored(&self) -> Option<&Restored> {
        self.ended
            .as_ref()
            .map(|(_, restored)| restored)
            .filter(|restored| !restored.paths.is_empty() || restored.failure.is_some())
    }

    pub(super) fn terminate(&self) {
        if let Some(link) = &self.link {
            link.terminate();
        }
    }

    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        if let Some(link) = &self.link {
            link.kill();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Without a runtime the daemon ends, and the helper sees that by itself.
        if let (Some(link), Ok(runtime)) = (self.link.take(), Handle::try_current()) {
            link.kill();
            let left_alone = self.group.is_some();
            runtime.spawn(link.end_unseen(left_alone));
        }
    }
}

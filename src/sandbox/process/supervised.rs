//! Linux: the command runs under the sandbox helper, and everything is asked of that.
//!
//! The daemon holds one end of a socket. As long as it is open the command may live; closing it, on purpose or by
//! dying, has the helper kill the tree. Nothing here depends on the thread that spawned.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown};
use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command as Spawner};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::{Exit, Process, Resources, SpawnError};
use crate::sandbox::cgroup::Delegated;
use crate::sandbox::layers::{Layers, Step};
use crate::sandbox::policy::{MAX_NOTICE_BYTES, Notice, Policy, TERMINATE};
use crate::sandbox::{Command, HELPER_ARGUMENT, Mode, Network, Shared, Stdin, directory};

pub(super) type StdinPipe = pipe::Sender;

/// How long the helper may take to start a program: milliseconds usually, more on a machine out of memory.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long the helper may take to kill the tree and remove its directory before it is killed itself.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The helper process and the socket to it.
#[derive(Debug)]
pub(super) struct Tree {
    helper: Child,
    notices: FramedRead<OwnedReadHalf, LinesCodec>,
    requests: OwnedWriteHalf,
    killed: AtomicBool,
    group: Option<Pid>,
    reported: Option<Exit>,
    ended: Option<Exit>,
    private_tmp: Option<directory::Private>,
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
) -> Result<Process, SpawnError> {
    let private_tmp = if command.private_tmp {
        Some(directory::Private::create(&shared.settings.temporary).map_err(SpawnError::Helper)?)
    } else {
        None
    };
    let mut policy = policy(shared, command, mode, private_tmp.as_ref());
    if mode > Mode::None {
        policy.cgroup = make_group(shared, command);
    }
    let (mut helper, socket, stdin) = match start_helper(shared, &policy, command.stdin) {
        Ok(started) => started,
        Err(error) => {
            private_tmp.iter().for_each(directory::Private::remove);
            policy
                .cgroup
                .iter()
                .for_each(|group| std::fs::remove_dir(group).unwrap_or_default());
            return Err(error);
        }
    };
    let (read, requests) = socket.into_split();
    let (stdout, stderr) = (helper.stdout.take(), helper.stderr.take());
    let mut tree = Tree {
        helper,
        notices: FramedRead::new(read, LinesCodec::new_with_max_length(MAX_NOTICE_BYTES)),
        requests,
        killed: AtomicBool::new(false),
        group: None,
        reported: None,
        ended: None,
        private_tmp,
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

/// A control group for the command, where there can be one. A command is not refused for want of one.
fn make_group(shared: &Shared, command: &Command) -> Option<PathBuf> {
    let delegated = shared.delegated.get_or_init(Delegated::find).as_ref()?;
    delegated
        .make(&command.limits)
        .inspect_err(|error| tracing::warn!(%error, "no control group for a command"))
        .ok()
}

fn policy(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    private_tmp: Option<&directory::Private>,
) -> Policy {
    let private_tmp = private_tmp.map(directory::Private::path);
    let mut env = command.env.clone();
    if let Some(path) = private_tmp {
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
        hidden: command.hidden.clone(),
        home: shared.settings.home.clone(),
        private_tmp: private_tmp.map(PathBuf::from),
        limits: command.limits.clone(),
        cgroup: None,
    }
}

/// Starts the helper with one end of a socket as its standard input, on which the policy lies ready.
///
/// No descriptor but the standard three is inherited, so that the standard library may use its fast way to spawn,
/// whose cost does not grow with the daemon's memory; the others travel in the socket's first message.
fn start_helper(
    shared: &Shared,
    policy: &Policy,
    stdin: Stdin,
) -> Result<(Child, UnixStream, Option<StdinPipe>), SpawnError> {
    let policy =
        serde_json::to_vec(policy).map_err(|error| SpawnError::Command(error.to_string()))?;
    launch(shared, &policy, stdin).map_err(SpawnError::Helper)
}

fn launch(
    shared: &Shared,
    policy: &[u8],
    stdin: Stdin,
) -> io::Result<(Child, UnixStream, Option<StdinPipe>)> {
    let (ours, theirs) = BlockingStream::pair()?;
    let memory = rustix::fs::memfd_create("outrigger-policy", MemfdFlags::CLOEXEC)?;
    std::fs::File::from(memory.try_clone()?).write_all(policy)?;
    let input = match stdin {
        Stdin::Null => None,
        Stdin::Piped => Some(io::pipe()?),
    };
    let mut descriptors = vec![memory.as_fd()];
    descriptors.extend(input.as_ref().map(|(reader, _)| reader.as_fd()));
    send_descriptors(&ours, &descriptors)?;
    let helper = Spawner::new(&shared.settings.helper)
        .arg(HELPER_ARGUMENT)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    ours.set_nonblocking(true)?;
    let stdin = match input {
        Some((_, writer)) => Some(StdinPipe::from_owned_fd(OwnedFd::from(writer))?),
        None => None,
    };
    Ok((helper, UnixStream::from_std(ours)?, stdin))
}

fn send_descriptors(socket: &BlockingStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
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
                Some(Notice::Exited { .. }) | None => {
                    return Err(SpawnError::Helper(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }

    /// The next notice; `None` when the helper has ended.
    async fn notice(&mut self) -> Option<Notice> {
        let line = self.notices.next().await?.ok()?;
        serde_json::from_str(&line).ok()
    }

    pub(super) async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.ended {
            return exit;
        }
        if self.killed.load(Ordering::Relaxed) {
            if timeout(KILL_PATIENCE, self.helper_end()).await.is_err() {
                self.give_up().await;
            }
        } else {
            self.helper_end().await;
        }
        let exit = self.reported.unwrap_or_else(|| self.end_without_report());
        if let Some(directory) = &self.private_tmp {
            directory.remove();
        }
        self.ended = Some(exit);
        exit
    }

    /// Leaves a helper that hangs in the kernel or was stopped. The one of a namespace may be killed, and all with it; the
    /// other kind is the only one that can find its processes, and goes on killing them for as long as it takes.
    async fn give_up(&mut self) {
        if self.group.is_none() {
            self.helper.start_kill().unwrap_or_default();
            self.helper_end().await;
        }
    }

    /// Waits for the program's end to be reported and the helper to be gone, which it is when nothing else is left.
    async fn helper_end(&mut self) {
        while let Some(notice) = self.notice().await {
            if let Notice::Exited {
                status,
                cpu_ms,
                max_rss_bytes,
            } = notice
            {
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
        }
        self.helper.wait().await.map_or_else(drop, drop);
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

    pub(super) fn terminate(&self) {
        // The socket holds far more than the few bytes that are ever sent.
        self.requests
            .try_write(&[TERMINATE])
            .map_or_else(drop, drop);
    }

    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
        // Fails only when the helper is gone already.
        rustix::net::shutdown(self.requests.as_ref(), Shutdown::Write).unwrap_or_default();
    }
}

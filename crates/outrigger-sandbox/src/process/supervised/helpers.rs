//! The helpers of commands and pods: where they are asked for, and what is left to do about one that runs.
//!
//! They are forks of one process, the zygote, which waits for requests: a fork takes less than an execution, most of which is
//! the dynamic linker's. The daemon brings one along; without one it is executed by the first task, and again where somebody
//! killed it. It ends with the daemon's end of its socket. One helper waits always, so that not even its fork is part of a
//! command's time.

use std::io::{self, PipeReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::timeout;

use super::{SpawnError, StdinPipe, children};
use crate::helper::{self, raw};
use crate::layers::Step;
use crate::pod::Namespaces;
use crate::policy::{Cleanup, Task, Work};
use crate::{HELPER_ARGUMENT, Stdin, descriptors};

/// How long a fork of the zygote may take to say that it is there: milliseconds usually, more on a machine out of memory.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Helpers {
    binary: PathBuf,
    started: Mutex<Started>,
}

#[derive(Debug, Default)]
struct Started {
    /// The way to the process of which helpers are forks, which ends with it. It does not block: one that takes nothing is
    /// replaced.
    zygote: Option<BlockingStream>,
    /// The helper of the next task.
    waiting: Option<Waiting>,
    /// One that began a pod: [`Work::BeginPod`].
    pod: Option<Waiting>,
}

/// The descriptors that go with a task, besides its standard input.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    pub(crate) pod: Option<&'a Namespaces>,
    /// Where the daemon waits for what tells it of the command's stopped calls.
    pub(crate) calls: Option<&'a BlockingStream>,
    pub(crate) places: &'a [(PathBuf, OwnedFd)],
    /// Where the program waits.
    pub(crate) gate: Option<&'a PipeReader>,
}

impl<'a> Given<'a> {
    /// In the order in which a helper expects them.
    fn all(self) -> impl Iterator<Item = BorrowedFd<'a>> {
        let pod = self.pod.into_iter().flat_map(Namespaces::descriptors);
        let calls = self.calls.into_iter().map(AsFd::as_fd);
        let places = self.places.iter().map(|(_, place)| place.as_fd());
        let gate = self.gate.into_iter().map(AsFd::as_fd);
        pod.chain(calls).chain(places).chain(gate)
    }
}

/// What is left here of the pipes of a program.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl Helpers {
    pub(crate) fn new(binary: PathBuf) -> Self {
        Self {
            binary,
            started: Mutex::default(),
        }
    }

    /// Has a helper take up a task with what goes with it. Returns the way to it, and the pipes of the program that it
    /// runs, if it does. The helper's first word is to be read by [`Helpers::arrived`].
    pub(crate) fn assign(
        &self,
        task: &Task,
        given: Given<'_>,
    ) -> Result<(UnixStream, Pipes), SpawnError> {
        let memory = written(task)?;
        let begin = || {
            let stdin = task.policy().map(|policy| policy.command.stdin);
            let input = match stdin {
                Some(Stdin::Piped) => Some(io::pipe()?),
                Some(Stdin::Null) | None => None,
            };
            let mut first = vec![memory.as_fd()];
            first.extend(input.as_ref().map(|(reader, _)| reader.as_fd()));
            first.extend(given.all());
            let helper = self.helper(&first)?;
            let (socket, mut pipes) = helper.taken(stdin.is_some())?;
            if let Some((_, writer)) = input {
                pipes.stdin = Some(StdinPipe::from_owned_fd(OwnedFd::from(writer))?);
            }
            Ok((socket, pipes))
        };
        begin().map_err(SpawnError::Helper)
    }

    /// Returns the way to a helper that began a pod, where there is one.
    pub(crate) fn begun_pod(&self) -> Option<UnixStream> {
        let begun = self.started.lock().pod.take()?;
        begun.taken(false).ok().map(|(socket, _)| socket)
    }

    /// Has a helper that began a pod add what it does not have yet.
    pub(crate) fn complete_pod(socket: &UnixStream, task: &Task) -> Result<(), SpawnError> {
        let memory = written(task)?;
        descriptors::send(socket, &[memory.as_fd()]).map_err(SpawnError::Helper)
    }

    /// Has a helper make ready for commands with the surroundings of this task, which have no input.
    pub(super) fn make_ready(&self, task: &Task, given: Given<'_>) -> Result<Waiting, SpawnError> {
        let memory = written(task)?;
        let first: Vec<_> = [memory.as_fd()].into_iter().chain(given.all()).collect();
        self.helper(&first).map_err(SpawnError::Helper)
    }

    /// The same as [`Helpers::assign`], of a helper that made ready for it.
    pub(super) fn assign_ready(
        &self,
        ready: Waiting,
        task: &Task,
        gate: Option<&PipeReader>,
    ) -> Result<(UnixStream, Pipes), SpawnError> {
        let memory = written(task)?;
        let gate = gate.into_iter().map(AsFd::as_fd);
        let message: Vec<_> = [memory.as_fd()].into_iter().chain(gate).collect();
        descriptors::send(&ready.socket, &message)
            .map_err(|error| SpawnError::refused(Step::Prepare, error))?;
        ready.taken(true).map_err(SpawnError::Helper)
    }

    /// Sends a first message to the helper that waits, or to a new one, and has the next one be made ready.
    fn helper(&self, message: &[BorrowedFd<'_>]) -> io::Result<Waiting> {
        let mut started = self.started.lock();
        let takes = |it: &Waiting| descriptors::send(&it.socket, message).is_ok();
        let helper = match started.waiting.take().filter(takes) {
            Some(helper) => helper,
            // There was none yet, or somebody killed it.
            None => {
                let helper = started.fork(&self.binary)?;
                descriptors::send(&helper.socket, message)?;
                helper
            }
        };
        // The next task meets an error again.
        started.waiting = started.fork(&self.binary).ok();
        Ok(helper)
    }

    /// Has a helper wait for the next task, a fork of this zygote where one is given.
    pub(crate) fn prepare(&self, zygote: Option<helper::Zygote>) {
        let mut started = self.started.lock();
        if let Some(zygote) = zygote {
            let adopted = children::adopt(|| Ok(zygote.process));
            let ready = adopted.and_then(|()| zygote.socket.set_nonblocking(true));
            if ready.is_ok() {
                (started.zygote, started.pod) = (Some(zygote.socket), zygote.pod);
            }
        }
        if started.waiting.is_none() {
            // The next task will meet an error again, and its user be told.
            started.waiting = started
                .fork(&self.binary)
                .inspect_err(|error| tracing::debug!(%error, "no helper can be started"))
                .ok();
        }
    }

    /// Receives the first word of a helper. A zygote from which none comes in time is given up.
    pub(crate) async fn arrived(&self, socket: &UnixStream) -> io::Result<Helper> {
        let arrived = timeout(ARRIVAL_PATIENCE, Helper::arrived(socket)).await;
        arrived.unwrap_or_else(|_| {
            drop(self.started.lock().zygote.take());
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

impl Started {
    /// Asks for a helper; a new zygote where there is none that takes requests.
    fn fork(&mut self, binary: &Path) -> io::Result<Waiting> {
        if let Some(zygote) = &self.zygote
            && let Ok(helper) = Waiting::of(zygote)
        {
            return Ok(helper);
        }
        Waiting::of(self.zygote.insert(execute(binary)?))
    }
}

/// Has a helper of a zygote begin a pod.
pub(crate) fn begin_pod(zygote: &BlockingStream) -> io::Result<Waiting> {
    let task = written(&Task::new(Work::BeginPod, Cleanup::default()));
    let helper = Waiting::of(zygote)?;
    descriptors::send(&helper.socket, &[task.map_err(io::Error::other)?.as_fd()])?;
    Ok(helper)
}

/// A helper that was asked for and has no command. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Waiting {
    socket: BlockingStream,
    output: [PipeReader; 2],
}

impl Waiting {
    /// Asks a zygote for one.
    fn of(zygote: &BlockingStream) -> io::Result<Self> {
        let (socket, theirs) = BlockingStream::pair()?;
        let [stdout, stderr] = [io::pipe()?, io::pipe()?];
        let request = [theirs.as_fd(), stdout.1.as_fd(), stderr.1.as_fd()];
        descriptors::send(zygote, &request)?;
        Ok(Self {
            socket,
            output: [stdout.0, stderr.0],
        })
    }

    /// Returns the way to one that has its task now, and the pipes of its program, if it has one.
    fn taken(self, has_program: bool) -> io::Result<(UnixStream, Pipes)> {
        self.socket.set_nonblocking(true)?;
        let mut pipes = Pipes::default();
        if has_program {
            let [stdout, stderr] = self.output.map(OwnedFd::from);
            pipes.stdout = Some(ChildStdout::from_std(stdout.into())?);
            pipes.stderr = Some(ChildStderr::from_std(stderr.into())?);
        }
        Ok((UnixStream::from_std(self.socket)?, pipes))
    }
}

/// Writes a task into memory that is handed to a helper.
fn written(task: &Task) -> Result<OwnedFd, SpawnError> {
    let text = serde_json::to_vec(task).map_err(|error| SpawnError::Command(error.to_string()))?;
    let write = || {
        let memory = rustix::fs::memfd_create("outrigger-policy", MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(memory);
        file.write_all(&text)?;
        Ok(OwnedFd::from(file))
    };
    write().map_err(SpawnError::Helper)
}

/// Executes the process of which helpers are forks, with one end of a socket as its standard input; returns the other.
///
/// No other descriptor but the standard three is inherited, so that the standard library may use its fast way to
/// spawn, whose cost does not grow with the daemon's memory.
fn execute(binary: &Path) -> io::Result<BlockingStream> {
    let (socket, theirs) = BlockingStream::pair()?;
    socket.set_nonblocking(true)?;
    children::adopt(|| {
        let mut command = Command::new(binary);
        command.arg(HELPER_ARGUMENT).env_clear();
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(|child| Pid::from_child(&child))
    })?;
    Ok(socket)
}

/// The process of a helper.
#[derive(Debug)]
pub(crate) struct Helper(OwnedFd);

impl Helper {
    /// Receives the first word of a helper: that it is there, with a descriptor of its process; or why there is none.
    async fn arrived(socket: &UnixStream) -> io::Result<Self> {
        let mut error = [0; 4];
        let receive = || descriptors::receive(socket, &mut error);
        let (bytes, given) = socket.async_io(Interest::READABLE, receive).await?;
        match given.into_iter().next() {
            Some(process) => Ok(Self(process)),
            None if bytes == error.len() => {
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)))
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(crate) fn kill(&self) {
        // Refused only where it has ended.
        pidfd_send_signal(&self.0, Signal::KILL).unwrap_or_default();
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) -> io::Result<()> {
        raw::readable(self.0)?.readable().await.map(drop)
    }
}

/// Waits for the end of a helper that is not spoken to.
pub(crate) async fn ended(socket: UnixStream) -> Result<(), SpawnError> {
    let helper = Helper::arrived(&socket).await;
    let ended = match helper {
        Ok(helper) => helper.ended().await,
        Err(error) => Err(error),
    };
    ended.map_err(SpawnError::Helper)
}

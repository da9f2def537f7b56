//! A helper that is started before it is needed: while one command runs, the next one's helper executes this binary
//! and waits for its policy. Of a command that does next to nothing that is the larger part of its time.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use tokio::net::UnixStream;
use tokio::process::Command as Spawner;
use tokio::time::Instant;

use super::children::Started;
use super::{SpawnError, StdinPipe};
use crate::pod::Namespaces;
use crate::policy::Task;
use crate::{HELPER_ARGUMENT, Stdin, descriptors};

/// How long a helper waits for a command. A loop's next command comes at once or after the model's next turn, and
/// beside that a helper's start is nothing.
const LINGER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Ahead {
    binary: PathBuf,
    waiting: Mutex<Option<Helper>>,
}

/// The descriptors that go with a task, besides its standard input.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    pub(crate) pod: Option<&'a Namespaces>,
    /// Where the daemon waits for what tells it of the command's stopped calls.
    pub(crate) calls: Option<&'a BlockingStream>,
    pub(crate) places: &'a [(PathBuf, OwnedFd)],
}

impl Ahead {
    pub(crate) fn new(binary: PathBuf) -> Self {
        Self {
            binary,
            waiting: Mutex::new(None),
        }
    }

    /// Gives a task and what goes with it to the helper that waits, or to one that is started now. Returns it,
    /// the way to it, and the command's standard input where that is a pipe.
    pub(crate) fn assign(
        &self,
        task: &Task,
        given: Given<'_>,
    ) -> Result<(Started, UnixStream, Option<StdinPipe>), SpawnError> {
        let text =
            serde_json::to_vec(task).map_err(|error| SpawnError::Command(error.to_string()))?;
        let stdin = task
            .policy()
            .map_or(Stdin::Null, |policy| policy.command.stdin);
        let pod = given.pod.into_iter().flat_map(Namespaces::descriptors);
        let calls = given.calls.into_iter().map(AsFd::as_fd);
        let places = given.places.iter().map(|(_, place)| place.as_fd());
        let given: Vec<_> = pod.chain(calls).chain(places).collect();
        let helper = self.helper();
        let assigned = helper.and_then(|helper| helper.assign(&text, stdin, &given));
        assigned.map_err(SpawnError::Helper)
    }

    /// The helper that waits, or one that is started now.
    fn helper(&self) -> io::Result<Helper> {
        if let Some(mut helper) = self.waiting.lock().take()
            // Somebody may have killed what waited.
            && matches!(helper.process.child.try_wait(), Ok(None))
        {
            return Ok(helper);
        }
        Helper::start(&self.binary)
    }

    /// Starts the next helper, where none waits; it is let go where no command takes it in time.
    pub(crate) fn prepare(self: &Arc<Self>) {
        let ahead = Arc::clone(self);
        tokio::spawn(async move {
            if ahead.waiting.lock().is_some() {
                return;
            }
            match Helper::start(&ahead.binary) {
                // One that was put here meanwhile ends; that is not worth a lock around the start of a process.
                Ok(helper) => drop(ahead.waiting.lock().replace(helper)),
                Err(error) => {
                    // The next command will meet it, and its user be told.
                    tracing::debug!(%error, "no helper was started ahead");
                    return;
                }
            }
            tokio::time::sleep(LINGER).await;
            let is_idle = |helper: &mut Helper| helper.started.elapsed() >= LINGER;
            let idle = ahead.waiting.lock().take_if(is_idle);
            if let Some(mut idle) = idle {
                drop(idle.socket);
                idle.process.child.wait().await.map_or_else(drop, drop);
            }
        });
    }
}

/// A helper without a policy. Dropping it ends it.
#[derive(Debug)]
struct Helper {
    process: Started,
    socket: BlockingStream,
    started: Instant,
}

impl Helper {
    /// Starts a helper with one end of a socket as its standard input.
    ///
    /// No descriptor but the standard three is inherited, so that the standard library may use its fast way to spawn,
    /// whose cost does not grow with the daemon's memory; the others travel in the socket's first message.
    fn start(binary: &Path) -> io::Result<Self> {
        let (socket, theirs) = BlockingStream::pair()?;
        let process = Started::spawn(
            Spawner::new(binary)
                .arg(HELPER_ARGUMENT)
                .env_clear()
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )?;
        Ok(Self {
            process,
            socket,
            started: Instant::now(),
        })
    }

    fn assign(
        self,
        task: &[u8],
        stdin: Stdin,
        given: &[BorrowedFd<'_>],
    ) -> io::Result<(Started, UnixStream, Option<StdinPipe>)> {
        let memory = rustix::fs::memfd_create("outrigger-policy", MemfdFlags::CLOEXEC)?;
        std::fs::File::from(memory.try_clone()?).write_all(task)?;
        let input = match stdin {
            Stdin::Null => None,
            Stdin::Piped => Some(io::pipe()?),
        };
        let mut first = vec![memory.as_fd()];
        first.extend(input.as_ref().map(|(reader, _)| reader.as_fd()));
        first.extend(given);
        descriptors::send(&self.socket, &first)?;
        self.socket.set_nonblocking(true)?;
        let stdin = match input {
            Some((_, writer)) => Some(StdinPipe::from_owned_fd(OwnedFd::from(writer))?),
            None => None,
        };
        Ok((self.process, UnixStream::from_std(self.socket)?, stdin))
    }
}

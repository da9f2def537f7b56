//! The process of which each helper is a fork. It is there before any command is, so that the dynamic linker has done its
//! work: a fork of the daemon's first moment ([`split`]), or an execution of the same program where nobody split or somebody
//! killed it.
//!
//! What it has, every helper begins with, and so it has next to nothing: one thread, the socket on which the daemon asks
//! for helpers, and no environment. A request is one byte with descriptors: the helper's own socket, on which its task
//! comes, and the program's output. It only hands them on, and reads no task.
//! It ends with the daemon's end of the socket.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{DumpableBehavior, Pid, PidfdFlags, getpid, getppid, pidfd_open};

use super::control::Control;
use super::raw::{self, Fork};
use super::{During, SetupError};
use crate::descriptors;
use crate::layers::Step;
use crate::process::supervised::helpers::{self, Waiting};

/// The processes above every helper, which its program must not send signals to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// `None` where it is outside of this process's namespace.
    pub(super) daemon: Option<Pid>,
    pub(super) zygote: Pid,
}

/// What has become of the caller of [`split`].
#[derive(Debug)]
pub enum Split {
    /// It is what it was, and has this way to its helpers.
    Daemon(Zygote),
    /// It is what helpers are made of, and [`main`](super::main) is to be called.
    Helper,
}

/// A zygote, and the way to it. It ends when this is dropped.
#[derive(Debug)]
pub struct Zygote {
    pub(crate) socket: UnixStream,
    pub(crate) process: Pid,
    /// A helper that makes the namespaces of the first pod meanwhile. Nothing else that a command needs takes the kernel as long.
    pub(crate) pod: Option<Waiting>,
}

/// Makes a fork of the caller what helpers are made of. It has all that the caller has in memory: to be called before there
/// is a secret, or where what is secret is overwritten in the fork.
///
/// # Errors
///
/// Where the system has no more processes or descriptors, or the caller has more than one thread. It is what it was.
pub fn split() -> io::Result<Split> {
    let (ours, theirs) = UnixStream::pair()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    if let Fork::Parent(process) = raw::fork()? {
        // Without one it is made when it is needed.
        let pod = helpers::begin_pod(&ours).ok();
        return Ok(Split::Daemon(Zygote {
            socket: ours,
            process,
            pod,
        }));
    }
    let quiet = || {
        rustix::stdio::dup2_stdin(theirs)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)
    };
    match quiet() {
        Ok(()) => Ok(Split::Helper),
        // It must not go on as a second daemon.
        Err(_) => std::process::exit(i32::from(super::FAILED)),
    }
}

/// Forks helpers as long as the daemon asks for them. Returns in each of them, and with `None` at its own end.
pub(super) fn serve() -> Result<Option<(Control, Origin)>, SetupError> {
    let requests = take()?;
    let origin = Origin {
        daemon: getppid(),
        zygote: getpid(),
    };
    // What helpers begin with is not for others to write, nor their ends to be waited for.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(
        Step::Prepare,
        "closing the memory of what helpers are made of",
    )?;
    // Deaf to the Ctrl-C of the daemon's terminal, among others: the end of the socket ends it.
    raw::set_signals_blocked(true)
        .and_then(|()| raw::set_children_kept(false))
        .during(Step::Prepare, "becoming what helpers are made of")?;
    loop {
        let received = descriptors::receive(&requests, &mut [0]);
        let (bytes, given) = received.during(Step::Prepare, "receiving a request")?;
        if bytes == 0 {
            return Ok(None);
        }
        let mut given = given.into_iter();
        let Some(socket) = given.next().map(UnixStream::from) else {
            continue;
        };
        match raw::fork() {
            Ok(Fork::Child) => {
                drop(requests);
                let begun = begin(&socket, given);
                begun.during(Step::Prepare, "beginning as a helper")?;
                return Ok(Some((Control::new(socket), origin)));
            }
            Ok(Fork::Parent(_)) => {}
            Err(error) => {
                let number = error.raw_os_error().unwrap_or_default();
                // A daemon that is gone does not hear it.
                let told = (&socket).write_all(&number.to_ne_bytes());
                told.unwrap_or_default();
            }
        }
    }
}

/// Takes the socket from standard input, which is empty from then on, and closes every other descriptor above standard
/// error.
fn take() -> Result<UnixStream, SetupError> {
    raw::close_from(3).during(Step::Prepare, "closing inherited descriptors")?;
    let stdin = rustix::stdio::stdin();
    let peer = rustix::net::sockopt::socket_peercred(stdin)
        .during(Step::Prepare, "standard input is not the daemon's socket")?;
    if Some(peer.pid) != getppid() {
        let reason = "the socket was not made by the parent process";
        return Err(SetupError::new(Step::Prepare, "standard input", reason));
    }
    let take = || {
        let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok::<_, io::Error>(socket)
    };
    let socket = take().during(Step::Prepare, "keeping the daemon's socket")?;
    Ok(UnixStream::from(socket))
}

/// Makes of a fork a helper, and sends the daemon a descriptor of it.
fn begin(socket: &UnixStream, mut output: impl Iterator<Item = OwnedFd>) -> io::Result<()> {
    // Its own children are waited for.
    raw::set_children_kept(true)?;
    if let (Some(stdout), Some(stderr)) = (output.next(), output.next()) {
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
    }
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    descriptors::send_with(socket, &0_i32.to_ne_bytes(), &[own.as_fd()])
}

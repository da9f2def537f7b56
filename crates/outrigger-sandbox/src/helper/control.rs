//! The helper's end of the socket to the daemon: the policy in, notices out, and the end of the stream as the
//! sign that the daemon is gone.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::{During, SetupError, raw};
use crate::layers::Step;
use crate::policy::{MAX_DESCRIPTORS, Notice, Task};

/// The socket.
pub(super) struct Control {
    socket: UnixStream,
}

impl Control {
    /// Takes the socket from standard input and closes every other descriptor above standard error.
    ///
    /// # Errors
    /// When standard input is not a socket that the parent process made: nobody else may give a policy.
    pub(super) fn take() -> Result<Self, SetupError> {
        raw::close_from(3).during(Step::Prepare, "closing inherited descriptors")?;
        let stdin = rustix::stdio::stdin();
        let peer = rustix::net::sockopt::socket_peercred(stdin)
            .during(Step::Prepare, "standard input is not the daemon's socket")?;
        if Some(peer.pid) != rustix::process::getppid() {
            return Err(SetupError::new(
                Step::Prepare,
                "standard input",
                "the socket was not made by the parent process",
            ));
        }
        let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)
            .during(Step::Prepare, "keeping the daemon's socket")?;
        Ok(Self {
            socket: UnixStream::from(socket),
        })
    }

    /// Reads the task; gives the other descriptors that came with it, in their order.
    pub(super) fn receive(
        &self,
    ) -> Result<(Task, impl Iterator<Item = OwnedFd> + use<>), SetupError> {
        let mut descriptors = self
            .receive_descriptors()
            .during(Step::Prepare, "receiving the policy")?
            .into_iter();
        let Some(memory) = descriptors.next() else {
            return Err(SetupError::new(
                Step::Prepare,
                "receiving the policy",
                "no descriptor came with it",
            ));
        };
        let task = read_task(memory).during(Step::Prepare, "reading the policy")?;
        Ok((task, descriptors))
    }

    fn receive_descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        rustix::net::recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        let mut received = Vec::with_capacity(MAX_DESCRIPTORS);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                received.extend(descriptors);
            }
        }
        Ok(received)
    }

    /// Tells the daemon something. A daemon that is gone does not hear it; that is noticed elsewhere.
    pub(super) fn send(&self, notice: &Notice) {
        self.forward(line(notice).as_slice());
    }

    /// Passes on whole lines that a forked child wrote.
    pub(super) fn forward(&self, lines: &[u8]) {
        (&self.socket).write_all(lines).unwrap_or_default();
    }

    pub(super) fn failed(&self, error: &SetupError) {
        self.send(&Notice::Failed {
            step: error.step,
            reason: error.reason.clone(),
        });
    }

    /// Waits for the next request of the daemon; `None` when it wants the tree dead or is dead itself.
    pub(super) fn request(&self) -> Option<u8> {
        let mut byte = [0];
        match (&self.socket).read_exact(&mut byte) {
            Ok(()) => Some(byte[0]),
            Err(_) => None,
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The notice as the line that goes over the socket.
pub(super) fn line(notice: &Notice) -> Vec<u8> {
    let mut line = serde_json::to_vec(notice).unwrap_or_default();
    line.push(b'\n');
    line
}

fn read_task(memory: OwnedFd) -> io::Result<Task> {
    let mut file = File::from(memory);
    file.rewind()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

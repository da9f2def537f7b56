//! The helper's end of its socket to the daemon: the policy in, notices out, and the end of the stream as the
//! sign that the daemon is gone.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{During, SetupError};
use crate::descriptors;
use crate::layers::Step;
use crate::policy::{Notice, Task};

pub(super) struct Control {
    socket: UnixStream,
}

impl Control {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket }
    }

    pub(super) fn receive(
        &self,
    ) -> Result<(Task, impl Iterator<Item = OwnedFd> + use<>), SetupError> {
        let order = Order::receive(&self.socket)?.ok_or("no descriptor came with it");
        let order = order.during(Step::Prepare, "receiving the policy")?;
        Ok((order.task()?, order.given.into_iter()))
    }

    /// Tells the daemon something. A daemon that is gone does not hear it; that is noticed elsewhere.
    pub(super) fn send(&self, notice: &Notice) {
        self.forward(line(notice).as_slice());
    }

    /// Sends the mount namespace of a pod, and for each overlay why there is none; empty where it was made.
    pub(super) fn send_mounts(&self, why_not: &[String], mounts: BorrowedFd<'_>) -> io::Result<()> {
        let text = serde_json::to_vec(why_not)?;
        descriptors::send_with(&self.socket, &text, &[mounts])
    }

    pub(super) fn forward(&self, lines: &[u8]) {
        (&self.socket).write_all(lines).unwrap_or_default();
    }

    /// Waits for the next request of the daemon; `None` when it wants the tree dead or is dead itself.
    pub(super) fn request(&self) -> Option<u8> {
        let mut byte = [0];
        let read = (&self.socket).read_exact(&mut byte);
        read.is_ok().then_some(byte[0])
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(super) fn line(notice: &Notice) -> Vec<u8> {
    let mut line = serde_json::to_vec(notice).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A task as it comes from the daemon, or from the helper's first process to the others.
pub(super) struct Order {
    memory: File,
    /// What came with it.
    pub(super) given: Vec<OwnedFd>,
}

impl Order {
    /// Waits for one; `None` where none will come.
    pub(super) fn receive(socket: impl AsFd) -> Result<Option<Self>, SetupError> {
        let received = descriptors::receive(socket, &mut [0]);
        let (_, given) = received.during(Step::Prepare, "receiving the policy")?;
        let mut given = given.into_iter();
        let memory = given.next().map(File::from);
        Ok(memory.map(|memory| Self {
            memory,
            given: given.collect(),
        }))
    }

    /// Hands it on with other descriptors. The processes read it one after the other, for they share its offset.
    pub(super) fn hand_on(&self, socket: impl AsFd, given: &[impl AsFd]) -> io::Result<()> {
        let given = given.iter().map(AsFd::as_fd);
        let all: Vec<_> = [self.memory.as_fd()].into_iter().chain(given).collect();
        descriptors::send(socket, &all)
    }

    pub(super) fn task(&self) -> Result<Task, SetupError> {
        let read = || {
            let mut file = &self.memory;
            file.rewind()?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok::<_, io::Error>(serde_json::from_slice(&text)?)
        };
        read().during(Step::Prepare, "reading the policy")
    }
}

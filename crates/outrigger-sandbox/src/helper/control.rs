//! The helper's end of its socket to the daemon: the policy in, notices out, and the end of the stream as the
//! sign that the daemon is gone.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{During, SetupError};
use crate::descriptors;
use crate::layers::Step;
use crate::policy::{Notice, PodMade, Task};

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
        let receiving = "receiving the policy";
        let received = descriptors::receive(&self.socket, &mut [0]);
        let (_, descriptors) = received.during(Step::Prepare, receiving)?;
        let mut descriptors = descriptors.into_iter();
        let memory = descriptors.next().ok_or("no descriptor came with it");
        let memory = memory.during(Step::Prepare, receiving)?;
        let task = read_task(memory).during(Step::Prepare, "reading the policy")?;
        Ok((task, descriptors))
    }

    /// Tells the daemon something. A daemon that is gone does not hear it; that is noticed elsewhere.
    pub(super) fn send(&self, notice: &Notice) {
        self.forward(line(notice).as_slice());
    }

    /// Sends the namespaces of a pod, with what there is to say of them.
    pub(super) fn send_pod(
        &self,
        made: &PodMade,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let text = serde_json::to_vec(made)?;
        descriptors::send_with(&self.socket, &text, descriptors)
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

fn read_task(memory: OwnedFd) -> io::Result<Task> {
    let mut file = File::from(memory);
    file.rewind()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

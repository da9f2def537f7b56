//! What helpers make for a pod, as it comes from them.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::descriptors;
use crate::outgoing::Gateway;
use crate::policy::{Cleanup, MAX_NOTICE_BYTES, Notice, Outside, Overlay, Task, Work};
use crate::process::SpawnError;
use crate::process::supervised::helpers::{Given, Helper, Helpers};

/// How long making the namespaces may take: an overlay's folders may lie on a disk that hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a helper made of a pod.
pub(super) struct Made {
    pub(super) user: OwnedFd,
    pub(super) network: OwnedFd,
    pub(super) gateway: Gateway,
    /// Where there are overlays.
    pub(super) mounts: Option<OwnedFd>,
    /// For each overlay why there is none; empty where it was made.
    pub(super) why_not: Vec<String>,
}

impl Made {
    /// Has a helper make it. One that began already goes on with it, where it has no user of its own.
    pub(super) async fn by_helper(
        helpers: &Helpers,
        overlays: Vec<Overlay>,
        outside: Option<Outside>,
    ) -> Result<Self, SpawnError> {
        let has_overlays = !overlays.is_empty();
        let task = Task::new(Work::Pod { overlays, outside }, Cleanup::default());
        let begun = match (outside, helpers.begun_pod()) {
            (None, Some(socket)) => Self::first(helpers, socket).await.ok(),
            _ => None,
        };
        let (mut answers, mut made) = match begun {
            Some((answers, made)) => {
                if has_overlays {
                    Helpers::complete_pod(&answers.socket, &task)?;
                }
                (answers, made)
            }
            // Why it could not be begun is met again.
            None => {
                let (socket, _) = helpers.assign(&task, Given::default())?;
                Self::first(helpers, socket).await?
            }
        };
        if has_overlays {
            let (line, given) = answers.next().await?;
            made.why_not = serde_json::from_slice(&line).map_err(|_| cut_off())?;
            made.mounts = given.into_iter().next();
        }
        Ok(made)
    }

    /// Receives all but what there is where there are overlays.
    async fn first(helpers: &Helpers, socket: UnixStream) -> Result<(Answers, Self), SpawnError> {
        let mut answers = Answers::of(helpers, socket).await?;
        let (_, given) = answers.next().await?;
        let mut given = given.into_iter();
        let [user, network, names, relay] = [(); 4].map(|()| given.next());
        let made = user.zip(network).zip(names.zip(relay));
        let ((user, network), (names, relay)) = made.ok_or_else(cut_off)?;
        let gateway = Gateway::new(names, relay, given.next()).map_err(SpawnError::Helper)?;
        let made = Self {
            user,
            network,
            gateway,
            mounts: None,
            why_not: Vec::new(),
        };
        Ok((answers, made))
    }
}

fn cut_off() -> SpawnError {
    SpawnError::Helper(io::ErrorKind::UnexpectedEof.into())
}

/// The messages of a helper that does something for a pod.
pub(super) struct Answers {
    socket: UnixStream,
    helper: Helper,
}

impl Answers {
    pub(super) async fn of(helpers: &Helpers, socket: UnixStream) -> Result<Self, SpawnError> {
        let helper = helpers.arrived(&socket).await.map_err(SpawnError::Helper)?;
        Ok(Self { socket, helper })
    }

    /// Returns the next one: bytes, and descriptors.
    pub(super) async fn next(&mut self) -> Result<(Vec<u8>, Vec<OwnedFd>), SpawnError> {
        let mut message = vec![0; MAX_NOTICE_BYTES];
        let receive = || descriptors::receive(&self.socket, &mut message);
        let received = self.socket.async_io(Interest::READABLE, receive);
        let received = timeout(PATIENCE, received).await.unwrap_or_else(|_| {
            self.helper.kill();
            Err(io::ErrorKind::TimedOut.into())
        });
        let (bytes, given) = received.map_err(SpawnError::Helper)?;
        message.truncate(bytes);
        if !given.is_empty() {
            return Ok((message, given));
        }
        // Why there are none. Other notices may follow it.
        let line = message.split(|it| *it == b'\n').next().unwrap_or_default();
        Err(match serde_json::from_slice(line) {
            Ok(Notice::Failed(error)) => SpawnError::refused(error.step, error.reason),
            _ => cut_off(),
        })
    }
}

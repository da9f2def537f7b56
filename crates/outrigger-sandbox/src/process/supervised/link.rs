//! The socket to a helper, and the end of it: whatever a helper leaves undone, another one does.
//!
//! The daemon itself neither puts back nor removes anything: a command may have left what takes minutes, or breaks
//! whoever walks through it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use futures::StreamExt;
use rustix::net::Shutdown;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};

use super::ahead::Ahead;
use super::children::Started as Child;
use super::{PUT_BACK_PATIENCE, Restored};
use crate::policy::{self, MAX_NOTICE_BYTES, Notice, TERMINATE, Task};
use crate::repository::Writer;
use crate::{Stdin, directory};

/// A helper that runs.
#[derive(Debug)]
pub(super) struct Link {
    helper: Child,
    notices: FramedRead<OwnedReadHalf, LinesCodec>,
    requests: OwnedWriteHalf,
    leavings: Leavings,
}

/// What has to be seen to when a command has ended.
#[derive(Debug)]
pub(super) struct Leavings {
    pub(super) writers: Vec<Writer>,
    pub(super) private_tmp: Option<directory::Private>,
    pub(super) cgroup: Option<std::path::PathBuf>,
    pub(super) ahead: Arc<Ahead>,
}

impl Leavings {
    /// As the helper is told; the descriptors go with it.
    pub(super) fn described(&self) -> policy::Leavings {
        policy::Leavings {
            noted: self.writers.iter().map(Writer::has_git).collect(),
            private_tmp: self
                .private_tmp
                .as_ref()
                .map(|directory| directory.path().to_owned()),
            cgroup: self.cgroup.clone(),
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.writers.iter().flat_map(Writer::descriptors)
    }

    /// No helper was started: nothing has been used.
    pub(super) fn drop_unused(self) {
        self.private_tmp
            .iter()
            .for_each(directory::Private::remove_unused);
        if let Some(group) = &self.cgroup {
            std::fs::remove_dir(group).unwrap_or_default();
        }
    }

    fn is_gone(&self) -> bool {
        self.private_tmp
            .as_ref()
            .is_none_or(directory::Private::is_gone)
    }

    /// Has another helper see to it.
    async fn see_to(self) -> io::Result<(Restored, Link)> {
        self.private_tmp
            .iter()
            .for_each(directory::Private::remove_unused);
        let task = Task {
            policy: None,
            has_input: false,
            leavings: self.described(),
        };
        let task = serde_json::to_vec(&task)?;
        let helper = self.ahead.another()?;
        let descriptors: Vec<_> = self.descriptors().collect();
        let (helper, socket, _) = helper.employ(&task, Stdin::Null, &descriptors)?;
        let mut link = Link::new(helper, socket, self);
        match timeout(PUT_BACK_PATIENCE, link.restored()).await {
            Ok(Some(restored)) => {
                link.leavings.writers.clear();
                Ok((restored, link))
            }
            Ok(None) => Err(io::Error::other("the sandbox helper was killed")),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Link {
    pub(super) fn new(helper: Child, socket: UnixStream, leavings: Leavings) -> Self {
        let (read, requests) = socket.into_split();
        Self {
            helper,
            notices: FramedRead::new(read, LinesCodec::new_with_max_length(MAX_NOTICE_BYTES)),
            requests,
            leavings,
        }
    }

    /// The next notice; `None` when the helper has ended.
    pub(super) async fn notice(&mut self) -> Option<Notice> {
        let line = self.notices.next().await?.ok()?;
        serde_json::from_str(&line).ok()
    }

    async fn restored(&mut self) -> Option<Restored> {
        loop {
            if let Notice::Restored { paths, failure } = self.notice().await? {
                return Some(Restored { paths, failure });
            }
        }
    }

    pub(super) fn terminate(&self) {
        // The socket holds far more than the few bytes that are ever sent.
        self.requests
            .try_write(&[TERMINATE])
            .map_or_else(drop, drop);
    }

    pub(super) fn kill(&self) {
        // Fails only when the helper is gone already.
        rustix::net::shutdown(self.requests.as_ref(), Shutdown::Write).unwrap_or_default();
    }

    /// Sees to the end of a helper that has put things back, or has not and is gone or late. What was put back after
    /// all is told, soon; to remove the rest may take longer. A late one that is left alone goes on killing.
    pub(super) async fn end(
        mut self,
        is_put_back: bool,
        is_left_alone: bool,
        tell: oneshot::Sender<Restored>,
    ) {
        if !is_put_back && is_left_alone {
            let still = "its processes cannot be ended yet";
            tell.send(failed(still)).map_or_else(drop, drop);
            if self.restored().await.is_some() {
                self.leavings.writers.clear();
                self.helper.wait().await.map_or_else(drop, drop);
                return;
            }
            return self.again().await;
        }
        if is_put_back {
            // What is only to be removed holds up nobody's next baseline.
            self.leavings.writers.clear();
            self.helper.wait().await.map_or_else(drop, drop);
            if !self.leavings.is_gone() {
                self.again().await;
            }
            return;
        }
        self.helper.start_kill().unwrap_or_default();
        self.helper.wait().await.map_or_else(drop, drop);
        match self.leavings.see_to().await {
            Ok((restored, link)) => {
                tell.send(restored).map_or_else(drop, drop);
                let mut link = link;
                link.helper.wait().await.map_or_else(drop, drop);
            }
            Err(error) => {
                tracing::error!(%error, "what git runs could not be put back");
                tell.send(failed(&error.to_string()))
                    .map_or_else(drop, drop);
            }
        }
    }

    /// The same for a command that nobody waits for.
    pub(super) async fn end_unseen(mut self, is_left_alone: bool) {
        let heard = timeout(PUT_BACK_PATIENCE, self.restored()).await;
        let is_put_back = matches!(heard, Ok(Some(_)));
        let (tell, told) = oneshot::channel();
        let left_alone = heard.is_err() && is_left_alone;
        self.end(is_put_back, left_alone, tell).await;
        drop(told);
    }

    async fn again(self) {
        match self.leavings.see_to().await {
            Ok((_, mut link)) => link.helper.wait().await.map_or_else(drop, drop),
            Err(error) => tracing::error!(%error, "what a command left could not be removed"),
        }
    }
}

fn failed(reason: &str) -> Restored {
    Restored {
        paths: Vec::new(),
        failure: Some(reason.to_owned()),
    }
}

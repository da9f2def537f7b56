//! The socket to a helper, and the end of it: whatever a helper leaves undone, another one does.
//!
//! The daemon itself removes nothing: a command may have left what takes minutes, or breaks whoever walks through it.

use std::io;
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
use super::{DEATH_PATIENCE, Restored};
use crate::git::Placeholder;
use crate::git::watch::Watch;
use crate::policy::{self, MAX_NOTICE_BYTES, Notice, TERMINATE, Task};
use crate::{Stdin, directory};

/// A helper that runs.
#[derive(Debug)]
pub(super) struct Link {
    helper: Child,
    notices: FramedRead<OwnedReadHalf, LinesCodec>,
    requests: OwnedWriteHalf,
    leavings: Leavings,
    watch: Watch,
}

/// What has to be seen to when a command has ended.
#[derive(Debug)]
pub(super) struct Leavings {
    pub(super) placeholders: Vec<Placeholder>,
    pub(super) private_tmp: Option<directory::Private>,
    pub(super) cgroup: Option<std::path::PathBuf>,
    pub(super) ahead: Arc<Ahead>,
}

impl Leavings {
    /// Returns what the helper is told.
    pub(super) fn described(&self) -> policy::Leavings {
        policy::Leavings {
            placeholders: self.placeholders.clone(),
            private_tmp: self
                .private_tmp
                .as_ref()
                .map(|directory| directory.path().to_owned()),
            cgroup: self.cgroup.clone(),
        }
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

    /// Has another helper see to it, and waits for that.
    async fn see_to(self) -> io::Result<()> {
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
        let (mut helper, socket, _) = helper.employ(&task, Stdin::Null, &[])?;
        helper.wait().await?;
        drop(socket);
        Ok(())
    }
}

impl Link {
    pub(super) fn new(helper: Child, socket: UnixStream, leavings: Leavings, watch: Watch) -> Self {
        let (read, requests) = socket.into_split();
        Self {
            helper,
            notices: FramedRead::new(read, LinesCodec::new_with_max_length(MAX_NOTICE_BYTES)),
            requests,
            leavings,
            watch,
        }
    }

    /// The next notice; `None` when the helper has ended.
    pub(super) async fn notice(&mut self) -> Option<Notice> {
        let line = self.notices.next().await?.ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Waits for the death of all processes; false where the helper was gone before it said so.
    async fn dead(&mut self) -> bool {
        loop {
            match self.notice().await {
                Some(Notice::Dead {}) => return true,
                Some(_) => {}
                None => return false,
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

    /// Sees to the end of a helper, and says through `tell` what was restored: soon, though what is to be removed may
    /// take longer. One that is late and left alone goes on killing.
    pub(super) async fn end(
        mut self,
        is_dead: bool,
        is_left_alone: bool,
        tell: oneshot::Sender<Restored>,
    ) {
        if !is_dead && is_left_alone {
            let still = "its processes cannot be ended yet";
            tell.send(failed(still)).map_or_else(drop, drop);
            self.dead().await;
            self.watch.end().await;
        } else {
            if !is_dead {
                // Its namespace ends with it.
                self.helper.start_kill().unwrap_or_default();
                self.helper.wait().await.map_or_else(drop, drop);
            }
            let restored = self.watch.end().await;
            tell.send(restored).map_or_else(drop, drop);
        }
        self.helper.wait().await.map_or_else(drop, drop);
        if (!is_dead || !self.leavings.is_gone())
            && let Err(error) = self.leavings.see_to().await
        {
            tracing::error!(%error, "what a command left could not be removed");
        }
    }

    /// The same for a command that nobody waits for.
    pub(super) async fn end_unseen(mut self, is_left_alone: bool) {
        let heard = timeout(DEATH_PATIENCE, self.dead()).await;
        let left_alone = heard.is_err() && is_left_alone;
        let (tell, restored) = oneshot::channel();
        self.end(heard == Ok(true), left_alone, tell).await;
        drop(restored);
    }
}

fn failed(reason: &str) -> Restored {
    Restored {
        paths: Vec::new(),
        failure: Some(reason.to_owned()),
    }
}

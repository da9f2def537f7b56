//! The task that attends to a helper until nothing is left of its command; whatever a helper leaves undone, another one
//! does.
//!
//! The daemon itself removes nothing: a command may have left what takes minutes, or breaks whoever walks through it.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::OptionFuture;
use rustix::net::Shutdown;
use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::helpers::{self, Given, Helper, Helpers};
use super::ready::Plan;
use super::{Exit, Reached, Restored, SpawnError, Tree};
use crate::git::watch::Watch;
use crate::layers::{Layers, SetupError, Step};
use crate::policy::{Cleanup, MAX_NOTICE_BYTES, Notice, Task, Work};
use crate::{Overfull, Pod, quota};

/// How long the helper may take to start a program: milliseconds usually, more on a machine out of memory.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long the helper may take to say that all processes are dead, from the death that was asked for or has happened.
/// Milliseconds usually; a machine may be slow.
const DEATH_PATIENCE: Duration = Duration::from_secs(20);

/// How long anybody waits for the removal of temporary files, which goes on without him.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) exit: Option<Exit>,
    pub(super) reached: Reached,
    /// Where its pod holds too much.
    pub(super) overfull: Option<Overfull>,
    /// Known last: when nothing is left of the command, or what is left takes longer.
    pub(super) restored: Option<Restored>,
}

/// A helper that runs, and what it does not see to itself.
#[derive(Debug)]
struct Running {
    /// Nothing until it has said that it is there.
    helper: Option<Helper>,
    notices: FramedRead<OwnedReadHalf, LinesCodec>,
    cleanup: Cleanup,
    helpers: Arc<Helpers>,
    watch: Watch,
    quota: Option<quota::Watch>,
    /// Kept until nothing is left of the command: its pod, where it may write, and what makes connections for it.
    surroundings: (Option<Pod>, Option<DropGuard>),
    known: watch::Sender<Known>,
    /// What is made ready when it has ended.
    next: Option<Plan>,
    /// The process group of the program, where its number is the same for the daemon.
    group: Option<Pid>,
    is_dead: bool,
    /// Whether its temporary directory is empty, and about to be removed.
    is_tidy: bool,
}

/// Has a task attend to a helper. Returns the way to it, what says whether the program runs, and a guard that is held while the
/// program waits at its gate: the time that it has to start begins when that is dropped.
pub(super) fn begin(
    socket: UnixStream,
    cleanup: Cleanup,
    helpers: &Arc<Helpers>,
    watch: Watch,
    quota: Option<quota::Watch>,
    surroundings: (Option<Pod>, Option<DropGuard>),
    next: Option<Plan>,
) -> (
    Tree,
    oneshot::Receiver<Result<Layers, SpawnError>>,
    DropGuard,
) {
    let (notices, requests) = socket.into_split();
    let running = Running {
        helper: None,
        notices: FramedRead::new(notices, LinesCodec::new_with_max_length(MAX_NOTICE_BYTES)),
        cleanup,
        helpers: Arc::clone(helpers),
        watch,
        quota,
        surroundings,
        known: watch::Sender::default(),
        next,
        group: None,
        is_dead: false,
        is_tidy: false,
    };
    let tree = Tree {
        requests,
        killed: CancellationToken::new(),
        known: running.known.subscribe(),
    };
    let (sender, started) = oneshot::channel();
    let gate_opened = CancellationToken::new();
    let waits = gate_opened.clone().drop_guard();
    tokio::spawn(running.attend(sender, tree.killed.clone(), gate_opened));
    (tree, started, waits)
}

impl Running {
    async fn attend(
        mut self,
        started: oneshot::Sender<Result<Layers, SpawnError>>,
        killed: CancellationToken,
        gate_opened: CancellationToken,
    ) {
        let too_long = async {
            gate_opened.cancelled().await;
            sleep(START_PATIENCE).await;
        };
        let outcome = tokio::select! {
            outcome = self.started() => outcome,
            () = too_long => Err(gone(io::ErrorKind::TimedOut)),
        };
        drop(started.send(outcome));
        let mut quota = self.quota.take();
        let exceeded = async {
            match &mut quota {
                Some(quota) => quota.exceeded().await,
                None => pending().await,
            }
        };
        let mut overfull = None;
        tokio::select! {
            () = self.read_notices_until(|it| it.known.borrow().exit.is_some()) => {}
            () = killed.cancelled() => {}
            exceeded = exceeded => {
                overfull = Some(exceeded);
                self.kill();
            }
        }
        let death = self.read_notices_until(|it| it.is_dead);
        let death = timeout(DEATH_PATIENCE, death);
        // Beside that, what it takes longer for anyway.
        let at_its_end = OptionFuture::from(quota.as_ref().map(quota::Watch::at_its_end));
        let (death, at_its_end) = tokio::join!(death, at_its_end);
        drop(quota);
        let is_late = death.is_err();
        let (is_dead, known) = (self.is_dead, self.known.clone());
        known.send_modify(|known| {
            known.overfull = overfull.or(at_its_end.flatten());
            known
                .exit
                .get_or_insert_with(|| end_without_report(self.group));
        });
        if is_late && self.group.is_some() {
            // The only one that can find its processes goes on killing them for as long as it takes.
            let failure = Some("its processes cannot be ended yet".to_owned());
            let paths = Vec::new();
            known.send_modify(|known| known.restored = Some(Restored { paths, failure }));
            self.read_notices_until(|it| it.is_dead).await;
            std::mem::take(&mut self.watch).end().await;
            return self.tidy_up(is_dead).await;
        }
        if !is_dead {
            // Its namespace ends with it.
            self.helper.iter().for_each(Helper::kill);
            self.helper_ended().await;
        }
        let restored = std::mem::take(&mut self.watch).end().await;
        drop(std::mem::take(&mut self.surroundings));
        let (was_tidy, next) = (self.is_tidy, self.next.take());
        let mut tidying = pin!(self.tidy_up(is_dead));
        // Else the helper's own end, and that of the namespaces, is nobody's concern; and no timer is as short as nothing.
        let is_tidy = !was_tidy && timeout(REMOVAL_PATIENCE, &mut tidying).await.is_ok();
        known.send_modify(|known| known.restored = Some(restored));
        if let Some(next) = next {
            next.carry_out().await;
        }
        if !is_tidy {
            tidying.await;
        }
    }

    /// Has the helper kill every process of the command.
    fn kill(&self) {
        // Fails only when the helper is gone already.
        rustix::net::shutdown(self.notices.get_ref().as_ref(), Shutdown::Write).unwrap_or_default();
    }

    async fn started(&mut self) -> Result<Layers, SpawnError> {
        let socket = self.notices.get_ref().as_ref();
        let helper = self.helpers.arrived(socket).await;
        self.helper = Some(helper.map_err(SpawnError::Helper)?);
        let mut layers = Layers::default();
        loop {
            match self.notice().await {
                Some(Notice::Confined(applied)) => layers = applied,
                Some(Notice::Started { group }) => {
                    self.group = group.and_then(Pid::from_raw);
                    return Ok(layers);
                }
                Some(Notice::Failed(SetupError { step, reason })) => {
                    return Err(match step {
                        Step::Execute => SpawnError::Program { reason },
                        _ => SpawnError::refused(step, reason),
                    });
                }
                Some(Notice::Exited(_) | Notice::Reached(_) | Notice::Dead { .. }) | None => {
                    return Err(gone(io::ErrorKind::UnexpectedEof));
                }
            }
        }
    }

    /// Returns the next notice; `None` when the helper has ended.
    async fn notice(&mut self) -> Option<Notice> {
        let line = self.notices.next().await?.ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Reads notices until something is known or the helper has ended.
    async fn read_notices_until(&mut self, is_known: impl Fn(&Self) -> bool) {
        while !is_known(self) {
            match self.notice().await {
                Some(Notice::Exited(exit)) => {
                    self.known.send_modify(|known| known.exit = Some(exit));
                }
                Some(Notice::Reached(reached)) => {
                    self.known.send_modify(|known| known.reached = reached);
                }
                Some(Notice::Dead { is_tidy }) => (self.is_dead, self.is_tidy) = (true, is_tidy),
                Some(Notice::Confined(_) | Notice::Started { .. } | Notice::Failed(_)) => {}
                None => return,
            }
        }
    }

    /// Waits for the helper's end, and has another one see to what it left.
    async fn tidy_up(mut self, is_dead: bool) {
        self.helper_ended().await;
        let is_there = |path: &std::path::PathBuf| path.symlink_metadata().is_ok();
        let is_tidy = !self.cleanup.private_tmp.as_ref().is_some_and(is_there);
        if is_dead && is_tidy {
            return;
        }
        if let Err(error) = self.run_cleanup().await {
            tracing::error!(%error, "what a command left could not be removed");
        }
    }

    async fn run_cleanup(self) -> Result<(), SpawnError> {
        self.cleanup.remove_empty_tmp();
        let task = Task::new(Work::Cleanup, self.cleanup);
        let (socket, _) = self.helpers.assign(&task, Given::default())?;
        helpers::ended(socket).await
    }

    async fn helper_ended(&mut self) {
        if let Some(helper) = self.helper.take() {
            helper.ended().await.unwrap_or_default();
        }
    }
}

fn gone(kind: io::ErrorKind) -> SpawnError {
    SpawnError::Helper(kind.into())
}

/// The helper was killed. Its program died with it; the rest of the group is killed here.
fn end_without_report(group: Option<Pid>) -> Exit {
    if let Some(group) = group {
        rustix::process::kill_process_group(group, Signal::KILL).unwrap_or_default();
    }
    Exit::KILLED
}

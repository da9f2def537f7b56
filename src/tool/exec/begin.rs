//! The beginning of a program: what there was before it, and what is other after its end.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{mpsc, oneshot};

use super::{Exec, hosts};
use crate::message::{ChangedFile, ChangedFiles, FileChange};
use crate::sandbox::paths::{Change, Changes, Settings, Tree};
use crate::sandbox::{Command, GitAccess, HostQuestion, Mode, Network, Process, SpawnError};
use crate::telemetry::Redactor;
use crate::tool::{Output, Run};

/// What is compared with after a program's end.
pub(super) struct Before {
    /// What editors, shells and agents run by.
    pub(super) settings: Settings,
    /// The project's files, where it is asked which of them the program changed.
    pub(super) tree: Option<Tree>,
}

/// How long it may take until it is known that a program begins: longer than a commit takes, where the disk answers. After it,
/// what was looked at meanwhile is too old.
const FRESH: Duration = Duration::from_millis(100);

/// Where there is no network: package managers would try again for a minute.
const OFFLINE: [(&str, &str); 2] = [("npm_config_fetch_retries", "0"), ("PIP_RETRIES", "0")];

/// What the model reads of a program that did not start, and the project's files before.
pub(super) type NotBegun = Box<(Output, Option<Tree>)>;

/// A program that runs, the sandbox mode that it runs in, and what there was before.
pub(super) struct Begun {
    pub(super) process: Process,
    pub(super) mode: Mode,
    pub(super) before: Before,
    pub(super) questions: mpsc::Receiver<HostQuestion>,
}

/// Why a program did not start.
enum NotStarted {
    /// What was looked at for it is too old by now.
    Stale,
    /// In words for the model.
    Failed(String),
}

/// Waits until it is known that the call begins; returns as well whether that was [soon](FRESH).
async fn known(run: &Run<'_>) -> (Result<(), Box<Output>>, bool) {
    let mut known = run.known.known();
    match tokio::time::timeout(FRESH, &mut known).await {
        Ok(known) => (known, true),
        Err(_) => (known.await, false),
    }
}

impl Exec {
    /// Starts a program, whose questions for hosts come where `asks`, after a look at the project's files where it `changes`
    /// them.
    pub(super) async fn begin(
        &self,
        command: &mut Command,
        asks: bool,
        changes: bool,
        run: &Run<'_>,
    ) -> Result<Begun, NotBegun> {
        let mode = self.sandbox.report().await.mode;
        command.user = Some(run.owner.to_owned());
        command.limits.cpu = run.timeout.checked_mul(2);
        if command.network == Network::Off && mode >= Mode::Fallback {
            for (name, value) in OFFLINE {
                command.env.insert(name.to_owned(), value.to_owned());
            }
        }
        if command.git < GitAccess::Create {
            self.add_further(command);
            command.pod = Some(self.pod(run));
        } else if mode == Mode::Full && command.network != Network::Off {
            // What it connects to is looked at there. Not the conversation's, in whose home a command may have left settings of git.
            command.pod = Some(self.sandbox.pod_of(run.owner));
        }
        // It begins when it is known that it does, and all is looked at that it may change.
        let (tell, may_begin) = oneshot::channel();
        let (tell_seen, seen) = oneshot::channel();
        let wait = async {
            let before = async {
                let before = self.before(changes).await;
                tell_seen.send(()).unwrap_or_default();
                before
            };
            let (before, (known, is_fresh)) = tokio::join!(before, known(run));
            tell.send(known.is_ok() && is_fresh).unwrap_or_default();
            (before, known)
        };
        let may_begin = may_begin.map(|told| told.unwrap_or(false)).shared();
        let seen = seen.map(drop).shared();
        let first = self.attempt(command, mode, asks, (seen.clone(), may_begin), run);
        let ((before, known), mut started) = tokio::join!(wait, first);
        if let Err(unrun) = known {
            return Err(Box::new((*unrun, None)));
        }
        if matches!(started, Err(NotStarted::Stale)) {
            let at_once = std::future::ready(true);
            started = self
                .attempt(command, mode, asks, (seen, at_once), run)
                .await;
        }
        let failed = match started {
            Ok((process, questions)) => {
                return Ok(Begun {
                    process,
                    mode,
                    before,
                    questions,
                });
            }
            Err(NotStarted::Failed(reason)) => reason,
            Err(NotStarted::Stale) => SpawnError::Unwanted.to_string(),
        };
        Err(Box::new((Output::error(failed), before.tree)))
    }

    /// Looks for what is to be hidden from a program, and starts it once it may begin. From when `seen` is over, it is prepared,
    /// for which names that git reads are taken in the project.
    async fn attempt(
        &self,
        command: &mut Command,
        mode: Mode,
        asks: bool,
        (seen, may_begin): (impl Future<Output = ()>, impl Future<Output = bool> + Clone),
        run: &Run<'_>,
    ) -> Result<(Process, mpsc::Receiver<HostQuestion>), NotStarted> {
        let (covered, ()) = tokio::join!(self.cover(command, mode), seen);
        covered.map_err(NotStarted::Failed)?;
        if command.git >= GitAccess::Create {
            // It is nothing but git, which sees what it tracks, and no home in which a command may have left settings.
            let hidden = std::mem::take(&mut command.hidden);
            command.hidden = self.without_tracked(hidden, run).await;
        }
        let (sender, questions) = mpsc::channel(hosts::MAX_QUESTIONS);
        command.hosts = asks.then_some(sender);
        let started = self.sandbox.spawn_when(command, may_begin).await;
        // What runs holds the last way to ask, so that the questions end with it.
        command.hosts = None;
        match started {
            Ok(process) => {
                command.listening = None;
                Ok((process, questions))
            }
            Err(SpawnError::Unwanted) => Err(NotStarted::Stale),
            Err(error) => {
                let reason = format!("failed to start `{}`: {error}", command.program);
                Err(NotStarted::Failed(reason))
            }
        }
    }

    /// Looks at what a program is compared with, at the project's files where it `changes` them.
    pub(super) async fn before(&self, changes: bool) -> Before {
        let tree = async {
            match changes {
                true => Some(self.tree().await),
                false => None,
            }
        };
        let (settings, tree) = tokio::join!(self.settings(), tree);
        Before { settings, tree }
    }

    /// Looks at what editors, shells and agents run by.
    pub(super) async fn settings(&self) -> Settings {
        let roots = Arc::clone(&self.roots);
        tokio::task::spawn_blocking(move || roots.settings())
            .await
            .unwrap_or_default()
    }

    async fn tree(&self) -> Tree {
        let roots = Arc::clone(&self.roots);
        tokio::task::spawn_blocking(move || roots.tree())
            .await
            .unwrap_or_default()
    }

    /// Says which files are other than they were before; `None` where none is, or nobody asked.
    pub(super) async fn changed_since(
        &self,
        before: Option<Tree>,
        redactor: &Redactor,
    ) -> Option<ChangedFiles> {
        let before = before?;
        let incomplete = ChangedFiles {
            incomplete: true,
            ..ChangedFiles::default()
        };
        if !before.is_complete() {
            return Some(incomplete);
        }
        let roots = Arc::clone(&self.roots);
        let compare = move || roots.tree().changed_since(&before);
        match tokio::task::spawn_blocking(compare).await {
            Ok(changes) => told(changes, redactor),
            Err(_) => Some(incomplete),
        }
    }
}

fn told(changes: Changes, redactor: &Redactor) -> Option<ChangedFiles> {
    let told = ChangedFiles {
        more: u64::try_from(changes.more).ok().filter(|more| *more > 0),
        incomplete: !changes.complete,
        files: changes
            .named
            .into_iter()
            .map(|(path, change)| ChangedFile {
                // A command may call a file what it likes.
                path: redactor.redact(&path).into_owned(),
                change: match change {
                    Change::Created => FileChange::Created,
                    Change::Modified => FileChange::Modified,
                    Change::Deleted => FileChange::Deleted,
                },
            })
            .collect(),
    };
    (told.incomplete || !told.files.is_empty()).then_some(told)
}

//! What the file tools share: a path argument from its text to its file, and work off the main threads.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::listed::{listed, named};
use super::{Claim, Facts, Metadata, Output, Refusal, RememberKey, Run, Violation};
use crate::message::{Danger, DangerLevel, Part};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::is_tracked;
use crate::sandbox::paths::{Located, PathError, Roots, Target};
use crate::sandbox::seen::{Fingerprint, SeenFiles};

/// A path argument of one call.
///
/// Where it leads is looked up once, before the call is judged; the user and the rules then speak
/// about *that* file. When the call runs it is looked up again, and has to lead to the same one.
#[derive(Debug)]
pub(super) struct PathArgument {
    roots: Arc<Roots>,
    target: Target,
    access: Access,
    judged: OnceLock<Option<Judged>>,
}

/// Where a path led when the call was judged.
#[derive(Debug)]
struct Judged {
    relative: String,
    identity: String,
}

impl PathArgument {
    /// Maps the path, and looks where it leads: one that leads outside or onto the deny list is refused before
    /// anybody is asked. What cannot be looked at for other reasons is told when the call runs.
    pub(super) fn parse(
        roots: &Arc<Roots>,
        requested: &str,
        access: Access,
    ) -> Result<Self, Refusal> {
        let requested = named(requested);
        let target = roots.map(&requested, access).map_err(refusal)?;
        if let Err(PathError::Forbidden(message)) = roots.locate(&target, access) {
            return Err(Refusal::Violation(Violation { message }));
        }
        Ok(Self {
            roots: Arc::clone(roots),
            target,
            access,
            judged: OnceLock::new(),
        })
    }

    /// Maps the path of a folder, or of a single file in place of one; the project where absent.
    pub(super) fn parse_folder(roots: &Arc<Roots>, path: Option<&str>) -> Result<Self, Refusal> {
        Self::parse(roots, path.unwrap_or("."), Access::Look)
    }

    /// Looks the path up, which takes a few system calls; `None` where it leads nowhere.
    fn judged(&self) -> Option<&Judged> {
        let look_up = || {
            let located = self.roots.locate(&self.target, self.access).ok()?;
            Some(Judged {
                relative: located.relative().to_owned(),
                identity: located.identity(),
            })
        };
        self.judged.get_or_init(look_up).as_ref()
    }

    /// Returns the paths that rules are to hold for: as asked for, and where that leads.
    fn paths(&self) -> Vec<String> {
        let mut paths = vec![self.target.relative().to_owned()];
        if let Some(judged) = self.judged()
            && !paths.contains(&judged.relative)
        {
            paths.push(judged.relative.clone());
        }
        paths
    }

    /// Returns the identity of the file for locks and memory.
    pub(super) fn identity(&self) -> String {
        match self.judged() {
            Some(judged) => judged.identity.clone(),
            None => self
                .roots
                .identity(self.target.root(), self.target.relative()),
        }
    }

    /// Returns the claim on the file that the call makes.
    pub(super) fn claim(&self) -> Claim {
        Claim {
            file: self.identity(),
            exclusive: self.access == Access::Write,
        }
    }

    /// Returns what the decision about the call rests on.
    pub(super) fn facts(&self, tool: &str) -> Facts {
        let paths = self.paths();
        let asked = paths.iter().find_map(|path| {
            let reason = deny::asked(path, self.access)?;
            Some(format!("{}: {reason}", listed(path)))
        });
        let danger = match (self.access, &asked) {
            (Access::Write, _) => DangerLevel::Dangerous,
            (Access::Read | Access::Look, Some(_)) => DangerLevel::Warning,
            (Access::Read | Access::Look, None) => DangerLevel::Safe,
        };
        Facts {
            danger: Danger {
                level: danger,
                reasons: asked.iter().cloned().collect(),
            },
            paths,
            // An approval for the tool is none for a file that others run.
            remember: asked.is_none().then(|| RememberKey::Tool(tool.to_owned())),
            ..Facts::new(danger, None)
        }
    }

    /// The same for a call that looks through the folder.
    pub(super) fn facts_of_walk(&self, tool: &str) -> Facts {
        Facts {
            walks: true,
            ..self.facts(tool)
        }
    }

    /// Returns the file as the model names it.
    pub(super) fn shown(&self) -> String {
        self.roots
            .spelling(self.target.root(), self.target.relative())
    }

    /// Returns whether git keeps the file at this path below the root. Waits for git; for a thread that may block.
    pub(super) fn is_tracked(&self, relative: &str) -> bool {
        let answer = is_tracked(self.roots.path(self.target.root()), relative);
        Handle::try_current().is_ok_and(|runtime| runtime.block_on(answer))
    }

    /// Returns the path below its root.
    pub(super) fn relative(&self) -> &str {
        self.target.relative()
    }

    /// Walks to the file, which has to be the one that the call was judged by.
    pub(super) fn locate(&self) -> Result<Located<'_>, PathError> {
        let located = self.roots.locate(&self.target, self.access)?;
        match self.judged() {
            Some(judged) if judged.identity == located.identity() => Ok(located),
            Some(_) | None => Err(PathError::Failed(format!(
                "path {:?} leads elsewhere now than when the call was checked; make the call again",
                self.shown()
            ))),
        }
    }
}

fn refusal(error: PathError) -> Refusal {
    match error {
        PathError::Forbidden(message) => Refusal::Violation(Violation { message }),
        PathError::Missing(message) | PathError::TooLarge(message) | PathError::Failed(message) => {
            Refusal::Invalid(message)
        }
    }
}

/// What a call came to, and what it has seen of its file.
pub(super) struct Done {
    pub(super) output: Output,
    pub(super) sight: Sight,
}

/// What a call has seen of its file.
pub(super) enum Sight {
    /// This content, by reading or by writing it.
    Content(Fingerprint),
    /// Nothing that changes what is remembered.
    Nothing,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            output,
            sight: Sight::Nothing,
        }
    }
}

/// Remembers what was seen and turns what went wrong into its kind of failure.
pub(super) fn settle(
    seen: &SeenFiles,
    identity: &str,
    done: Result<Done, PathError>,
) -> Result<Output, Violation> {
    match done {
        Ok(done) => {
            if let Sight::Content(fingerprint) = done.sight {
                seen.remember(identity, fingerprint);
            }
            Ok(done.output)
        }
        Err(PathError::Forbidden(message)) => Err(Violation { message }),
        Err(PathError::Missing(message)) => {
            seen.forget(identity);
            Ok(Output::error(message))
        }
        Err(PathError::TooLarge(message) | PathError::Failed(message)) => {
            Ok(Output::error(message))
        }
    }
}

/// When a call has to stop by itself.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    cancel: CancellationToken,
    /// `None` where it is too far away to be told.
    deadline: Option<Instant>,
}

/// Why a call had to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Cancelled,
    TimedOut,
}

impl Stop {
    pub(super) fn of(run: &Run<'_>) -> Self {
        Self {
            cancel: run.cancel.clone(),
            deadline: Instant::now().checked_add(run.timeout),
        }
    }

    /// Returns why the call has to stop now; `None` where it may go on.
    pub(super) fn reached(&self) -> Option<Stopped> {
        if self.cancel.is_cancelled() {
            Some(Stopped::Cancelled)
        } else {
            let late = self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline);
            late.then_some(Stopped::TimedOut)
        }
    }
}

impl Stopped {
    /// Returns the output of a call that was stopped before it did anything.
    pub(super) fn output(self) -> Output {
        match self {
            Self::Cancelled => Output::error("the call was cancelled; nothing was changed"),
            Self::TimedOut => Output::error("the time for the call was up; nothing was changed"),
        }
        .with(self.metadata())
    }

    /// Returns the facts about it.
    pub(super) fn metadata(self) -> Metadata {
        Metadata {
            cancelled: self == Self::Cancelled,
            timed_out: self == Self::TimedOut,
            ..Metadata::default()
        }
    }
}

/// Says that files were left out because the permissions do not show them.
pub(super) fn tell_unseen(output: &mut Output) {
    output.content.push(Part::text(
        "\n[files outside the paths that may be seen here are left out]",
    ));
}

/// Runs work that blocks on a thread for that.
///
/// The work asks [`Stop`] by itself. It is waited for even when the call is cancelled, so that nothing
/// is left running; each piece of it is bounded.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PathError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a file tool's work ended early");
        PathError::Failed("the tool failed for an internal reason".to_owned())
    })
}

#[cfg(unix)]
#[cfg(test)]
pub(super) mod testing;

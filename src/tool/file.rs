//! What the file tools share: a path argument from its text to its file, and work off the main threads.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use tokio::runtime::Handle;

use super::listed::{listed, named};
use super::stop::Stop;
use super::typed::Typed;
use super::{Begins, Claim, Facts, Output, Prepared, Refusal, Run, Violation, Visible};
use crate::message::{Danger, DangerLevel, ToolCategory};
use crate::permission::rule::{File, Key};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::is_tracked;
use crate::sandbox::paths::{Located, PathError, RootName, Roots, Target};
use crate::telemetry::Redactor;
use crate::tool::quota::WriteQuota;
use crate::tool::seen::SeenFiles;
use crate::tool::undo::Keep;

/// A path argument of one call.
///
/// Where it leads is looked up once, before the call is judged; the user and the rules then speak
/// about *that* file. When the call runs it is looked up again, and has to lead to the same one.
#[derive(Debug)]
pub(super) struct PathArgument {
    roots: Arc<Roots>,
    target: Target,
    access: Access,
    /// `None` where it led nowhere.
    judged: Option<Judged>,
}

/// Where a path led when the call was judged.
#[derive(Debug)]
struct Judged {
    root: RootName,
    relative: String,
    identity: String,
}

impl PathArgument {
    /// Maps the path, and looks where it leads: one that leads outside or onto the deny list is refused before
    /// anybody is asked. What cannot be looked at for other reasons is reported when the call runs.
    pub(super) fn parse(
        roots: &Arc<Roots>,
        requested: &str,
        access: Access,
    ) -> Result<Self, Refusal> {
        let target = roots.map(&named(requested), access)?;
        let judged = match roots.locate(&target, access) {
            Ok(located) => Some(Judged {
                root: located.root(),
                relative: located.relative().to_owned(),
                identity: located.identity(),
            }),
            Err(error @ PathError::Forbidden(_)) => return Err(error.into()),
            Err(_) => None,
        };
        Ok(Self {
            roots: Arc::clone(roots),
            target,
            access,
            judged,
        })
    }

    /// Maps the path of a folder to look through, or of a single file in place of one; the project where absent.
    pub(super) fn parse_folder(roots: &Arc<Roots>, path: Option<&str>) -> Result<Self, Refusal> {
        Self::parse(roots, path.unwrap_or("."), Access::Look)
    }

    /// Returns the paths that rules are to hold for: as asked for, and where that leads.
    fn paths(&self) -> Vec<String> {
        let mut paths = vec![self.relative().to_owned()];
        paths.extend(self.judged.iter().map(|judged| judged.relative.clone()));
        paths.dedup();
        paths
    }

    /// Returns the identity of the file for locks and memory.
    pub(super) fn identity(&self) -> String {
        match &self.judged {
            Some(judged) => judged.identity.clone(),
            None => self.roots.identity(self.target.root(), self.relative()),
        }
    }

    /// Returns what the decision about the call rests on.
    pub(super) fn facts(&self, tool: &str) -> Facts {
        let paths = self.paths();
        let asked = paths.iter().find_map(|path| {
            let reason = deny::needs_approval(path, self.access)?;
            Some(format!("{}: {reason}", listed(path)))
        });
        let level = match (self.access, &asked) {
            (Access::Write, _) => DangerLevel::Dangerous,
            (Access::Read | Access::Look, Some(_)) => DangerLevel::Warning,
            (Access::Read | Access::Look, None) => DangerLevel::Safe,
        };
        // An approval for the tool is none for a file that others run.
        let remember = asked.is_none().then(|| Key::tool(tool));
        let file = self.judged.as_ref().map(|judged| File {
            writes: self.access == Access::Write,
            root: self.roots.path(judged.root).to_string_lossy().into(),
            in_project: judged.root == RootName::Project,
            relative: judged.relative.clone(),
        });
        Facts {
            danger: Danger {
                level,
                reasons: asked.into_iter().collect(),
            },
            paths,
            walks: self.access == Access::Look,
            file,
            ..Facts::new(level, remember)
        }
    }

    pub(super) fn shown(&self) -> String {
        self.roots.spelling(self.target.root(), self.relative())
    }

    /// Returns whether git keeps the file at this path below the root. Waits for git; for a thread that may block.
    pub(super) fn is_tracked(&self, relative: &str) -> bool {
        let answer = is_tracked(self.roots.path(self.target.root()), relative);
        Handle::try_current().is_ok_and(|runtime| runtime.block_on(answer))
    }

    /// Returns the path of a root.
    pub(super) fn root_path(&self, root: RootName) -> &Path {
        self.roots.path(root)
    }

    pub(super) fn relative(&self) -> &str {
        self.target.relative()
    }

    /// Walks to the file, which has to be the one that the call was judged by.
    pub(super) fn locate(&self) -> Result<Located<'_>, PathError> {
        let located = self.roots.locate(&self.target, self.access)?;
        match &self.judged {
            Some(judged) if judged.identity == located.identity() => Ok(located),
            _ => Err(PathError::Failed(format!(
                "path {:?} leads elsewhere now than when the call was checked; make the call again",
                self.shown()
            ))),
        }
    }
}

pub(super) struct Context {
    pub(super) stop: Stop,
    pub(super) visible: Visible,
    pub(super) redactor: Redactor,
    pub(super) quota: Arc<WriteQuota>,
    /// What the conversation has seen of files.
    pub(super) seen: Arc<SeenFiles>,
    pub(super) keep: Arc<dyn Keep>,
}

/// What a call does with its path. All of it runs on a thread for blocking work.
pub(super) trait Work: Send + Sync + 'static {
    /// Does it. Each piece of it is bounded, and it looks at [`Context::stop`] by itself.
    fn run(&self, path: &PathArgument, context: &Context) -> Result<Output, PathError>;

    /// How much harm a call does that writes, given why its file is asked for.
    fn appraise(&self, _path: &PathArgument, _asked: Vec<String>) -> Option<Danger> {
        None
    }

    /// A unified diff of what a call would write.
    fn preview(&self, _path: &PathArgument) -> Option<String> {
        None
    }
}

/// Makes a tool for files, whose calls are a path and what is done with it.
pub(super) fn tool<I: JsonSchema, W: Work>(
    name: &'static str,
    danger_level: DangerLevel,
    prepare: impl Fn(I) -> Result<(PathArgument, W), Refusal> + Send + Sync + 'static,
) -> Typed<I> {
    let prepare = move |input| {
        let (path, work) = prepare(input)?;
        Ok(Call(Arc::new(Inner { name, path, work })))
    };
    Typed::new(name, ToolCategory::File, danger_level, prepare)
}

struct Call<W>(Arc<Inner<W>>);

struct Inner<W> {
    name: &'static str,
    path: PathArgument,
    work: W,
}

impl<W: Work> Call<W> {
    /// Runs work that blocks on a thread for that. It is waited for even when the call is cancelled, so that nothing is
    /// left running.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner<W>) -> T + Send + 'static,
    ) -> Result<T, PathError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.map_err(|error| {
            tracing::error!(%error, "a file tool's work ended early");
            PathError::Failed("the tool failed for an internal reason".to_owned())
        })
    }

    /// The same for what a call would write; `None` for one that writes nothing.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner<W>) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        if !self.writes() {
            return None;
        }
        self.blocking(work).await.ok().flatten()
    }

    fn writes(&self) -> bool {
        self.0.path.access == Access::Write
    }
}

impl<W: Work> Prepared for Call<W> {
    fn facts(&self) -> Facts {
        self.0.path.facts(self.0.name)
    }

    fn claims(&self) -> Vec<Claim> {
        let identity = self.0.path.identity();
        match self.0.path.access {
            Access::Read => vec![Claim::Read(identity)],
            Access::Write => vec![Claim::Write(identity)],
            Access::Look => vec![Claim::ReadTree(vec![identity])],
        }
    }

    fn begins(&self) -> Begins {
        match self.writes() {
            true => Begins::Keeping,
            false => Begins::Waited,
        }
    }

    fn appraise(&self) -> BoxFuture<'_, Option<Danger>> {
        let asked = self.facts().danger.reasons;
        Box::pin(self.look(|it| it.work.appraise(&it.path, asked)))
    }

    fn preview(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(self.look(|it| it.work.preview(&it.path)))
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let context = Context {
                stop: Stop::of(&run),
                visible: run.visible,
                redactor: run.redactor.clone(),
                quota: Arc::clone(run.quota),
                seen: Arc::clone(run.seen),
                keep: Arc::clone(run.keep),
            };
            let work = self.blocking(move |it| it.work.run(&it.path, &context));
            match work.await.flatten() {
                Ok(output) => Ok(output),
                Err(PathError::Forbidden(message)) => Err(Violation { message }),
                Err(error) => {
                    if matches!(error, PathError::Missing(_)) {
                        run.seen.forget(&self.0.path.identity());
                    }
                    Ok(Output::error(error.to_string()))
                }
            }
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
pub(super) mod testing;

//! What `file_write` and `file_edit` share: the old content, the new one, and the way between them.
//!
//! The old content is read, checked against what the conversation and the user have seen of it,
//! revised, and replaced as a whole.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;

use super::appraisal::{self, Before};
use super::diff::{Difference, compare};
use super::file::{Done, PathArgument, Sight, Stop, blocking, settle};
use super::listed::listed;
use super::text::{Form, Text, decode};
use super::{Claim, Facts, Metadata, Output, Prepared, Run, Violation, mask};
use crate::message::{Danger, DangerLevel};
use crate::sandbox::paths::{Located, PathError};
use crate::sandbox::quota::WriteQuota;
use crate::sandbox::seen::Fingerprint;
use crate::telemetry::Redactor;

/// What a file holds before the call.
pub(super) enum Old {
    /// There is no file.
    Missing,
    /// Text.
    Text(Text),
    /// Something that is no text, or too much.
    Opaque,
}

/// What a file is to hold.
pub(super) struct Revision {
    pub(super) content: String,
    pub(super) form: Form,
    /// What the model is told of it, after the file's name.
    pub(super) told: String,
}

/// Makes the new content from the old; an error is for the model.
pub(super) type Revise = Box<dyn Fn(&Old) -> Result<Revision, String> + Send + Sync>;

/// A call that changes one file.
pub(super) struct Change(Arc<Inner>);

struct Inner {
    tool: &'static str,
    path: PathArgument,
    revise: Revise,
    /// What was found when the call was judged.
    looked: OnceLock<Look>,
    /// The old content that the user was shown the difference to.
    previewed: OnceLock<State>,
}

/// The content of a file at one moment, to be compared with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    Content(Fingerprint),
    TooLarge,
}

/// What a change comes to, as it was looked at once.
struct Look {
    state: State,
    diff: String,
    danger: Danger,
}

/// A change that is worked out, but not made.
struct Plan<'a> {
    located: Located<'a>,
    state: State,
    bytes: Vec<u8>,
    diff: Difference,
    old_lines: Option<usize>,
    told: String,
}

impl Change {
    pub(super) fn new(tool: &'static str, path: PathArgument, revise: Revise) -> Self {
        Self(Arc::new(Inner {
            tool,
            path,
            revise,
            looked: OnceLock::new(),
            previewed: OnceLock::new(),
        }))
    }
}

impl Prepared for Change {
    fn facts(&self) -> Facts {
        self.0.path.facts(self.0.tool)
    }

    fn claims(&self) -> Vec<Claim> {
        vec![self.0.path.claim()]
    }

    fn appraise(&self) -> BoxFuture<'_, Option<Danger>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { blocking(move || inner.appraise()).await.ok() })
    }

    fn preview(&self) -> BoxFuture<'_, Option<String>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { blocking(move || inner.preview()).await.ok().flatten() })
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let inner = Arc::clone(&self.0);
            let identity = inner.path.identity();
            let known = run.seen.recall(&identity);
            let stop = Stop::of(&run);
            let (quota, redactor) = (Arc::clone(run.quota), run.redactor.clone());
            let done = blocking(move || inner.apply(known, &stop, &quota, &redactor))
                .await
                .flatten();
            settle(run.seen, &identity, done)
        })
    }
}

impl Inner {
    fn preview(&self) -> Option<String> {
        let look = self.look().ok()?;
        self.previewed.get_or_init(|| look.state);
        Some(look.diff.clone())
    }

    /// Says what the call does to the file that is there.
    fn appraise(&self) -> Danger {
        let mut danger = match self.look() {
            Ok(look) => look.danger.clone(),
            Err(error) => Danger::new(
                DangerLevel::Warning,
                format!("nothing would be written: {error}"),
            ),
        };
        // Files that others run, by the deny list.
        let asked = self.path.facts(self.tool).danger.reasons;
        if !asked.is_empty() {
            danger.level = DangerLevel::Dangerous;
            danger.reasons.splice(0..0, asked);
        }
        danger
    }

    /// Works the change out, once: a second look is not what the user decides by.
    fn look(&self) -> Result<&Look, PathError> {
        if let Some(look) = self.looked.get() {
            return Ok(look);
        }
        let plan = self.plan()?;
        let before = match plan.state {
            State::Missing => Before::Missing,
            State::Content(_) | State::TooLarge => Before::File {
                lines: plan.old_lines,
                is_executable: plan.located.is_executable(),
                is_tracked: self.path.is_tracked(plan.located.relative()),
            },
        };
        let danger = appraisal::appraise(&appraisal::Change {
            path: plan.located.relative(),
            before,
            added: plan.diff.added,
            removed: plan.diff.removed,
        });
        Ok(self.looked.get_or_init(|| Look {
            state: plan.state,
            diff: plan.diff.text,
            danger,
        }))
    }

    fn apply(
        &self,
        known: Option<Fingerprint>,
        stop: &Stop,
        quota: &WriteQuota,
        redactor: &Redactor,
    ) -> Result<Done, PathError> {
        let plan = self.plan_checked(known, redactor)?;
        if let Some(stopped) = stop.reached() {
            return Ok(stopped.output().into());
        }
        let after = Fingerprint::of(&plan.bytes);
        let shown = self.path.shown();
        let shown = listed(&shown);
        let told = if plan.state == State::Content(after) {
            format!("{shown} already has this content; nothing was written")
        } else {
            quota
                .take(plan.bytes.len() as u64)
                .map_err(PathError::Failed)?;
            plan.located.replace(&plan.bytes)?;
            format!("{shown}: {}", plan.told)
        };
        Ok(Done {
            output: Output::text(told).with(Metadata {
                path: Some(plan.located.relative().to_owned()),
                diff: (!plan.diff.text.is_empty()).then_some(plan.diff.text),
                total_bytes: Some(plan.bytes.len() as u64),
                ..Metadata::default()
            }),
            sight: Sight::Content(after),
        })
    }

    /// Works the change out, unless the file is no longer what was seen of it.
    fn plan_checked(
        &self,
        known: Option<Fingerprint>,
        redactor: &Redactor,
    ) -> Result<Plan<'_>, PathError> {
        let located = self.path.locate()?;
        let (old, state) = read(&located)?;
        if known.is_some_and(|known| state != State::Content(known)) {
            let shown = self.path.shown();
            return Err(PathError::Failed(match state {
                State::Missing => format!(
                    "file {shown:?} was deleted by someone else since you read it; read it again to go on"
                ),
                State::Content(_) | State::TooLarge => format!(
                    "file {shown:?} was changed by someone else since you read it; \
                     nothing was written; read it again, then make your change to what it is now"
                ),
            }));
        }
        if self.previewed.get().is_some_and(|seen| *seen != state) {
            return Err(PathError::Failed(format!(
                "file {:?} was changed while the call waited for approval, so the user saw another \
                 change than would be made; read it and make the call again",
                self.path.shown()
            )));
        }
        self.revised(located, &old, state, Some(redactor))
    }

    fn plan(&self) -> Result<Plan<'_>, PathError> {
        let located = self.path.locate()?;
        let (old, state) = read(&located)?;
        self.revised(located, &old, state, None)
    }

    fn revised<'a>(
        &self,
        located: Located<'a>,
        old: &Old,
        state: State,
        redactor: Option<&Redactor>,
    ) -> Result<Plan<'a>, PathError> {
        let shown = self.path.shown();
        let failed = |problem| match state {
            State::Missing => PathError::Missing(format!("file {shown:?} {problem}")),
            State::Content(_) | State::TooLarge => {
                PathError::Failed(format!("file {shown:?} {problem}"))
            }
        };
        let revision = (self.revise)(old).map_err(failed)?;
        let note = match (old, redactor) {
            (Old::Text(text), Some(redactor)) => {
                mask::check(redactor, &text.content, &revision.content).map_err(failed)?
            }
            (Old::Missing | Old::Opaque, Some(_)) => mask::of_new_file(&revision.content),
            (_, None) => None,
        };
        let bytes = revision
            .form
            .encode(&revision.content)
            .map_err(|unencodable| {
                PathError::Failed(format!(
                    "file {shown:?} is in {}, which has no character {:?}",
                    revision.form.encoding.name(),
                    unencodable.0
                ))
            })?;
        let name = located.relative();
        let diff = match old {
            Old::Missing => compare(name, None, &revision.content),
            Old::Text(text) => compare(name, Some(&text.content), &revision.content),
            Old::Opaque => {
                let mut diff = compare(name, None, &revision.content);
                let note = "[the old content is not text, and is replaced]\n";
                diff.text.insert_str(0, note);
                diff
            }
        };
        let old_lines = match old {
            Old::Text(text) => Some(text.content.lines().count()),
            Old::Missing | Old::Opaque => None,
        };
        Ok(Plan {
            located,
            state,
            bytes,
            diff,
            old_lines,
            told: revision.told + &note.unwrap_or_default(),
        })
    }
}

fn read(located: &Located<'_>) -> Result<(Old, State), PathError> {
    match located.read() {
        Ok(contents) => {
            let state = State::Content(Fingerprint::of(&contents));
            let old = decode(&contents).map_or(Old::Opaque, Old::Text);
            Ok((old, state))
        }
        Err(PathError::Missing(_)) => Ok((Old::Missing, State::Missing)),
        Err(PathError::TooLarge(_)) => Ok((Old::Opaque, State::TooLarge)),
        Err(error) => Err(error),
    }
}

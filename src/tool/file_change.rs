//! What `file_write` and `file_edit` share: the old content, the new one, and the way between them.
//!
//! The old content is read, checked against what the conversation and the user have seen of it,
//! revised, and replaced as a whole.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::appraisal;
use super::diff::{Difference, compare, is_same_change};
use super::file::{Context, PathArgument, Work};
use super::listed::listed;
use super::text::{Form, Text, decode};
use super::undo::undoable;
use super::{Metadata, Output, mask};
use crate::message::{Before, Danger, DangerLevel, Undo};
use crate::sandbox::paths::{Located, PathError};
use crate::telemetry::Redactor;
use crate::tool::seen::Fingerprint;

pub(super) enum Old {
    Missing,
    Text(Text),
    /// Something that is no text, or too much.
    Opaque,
}

/// What a file is to hold.
pub(super) struct Revision {
    pub(super) content: String,
    pub(super) form: Form,
    /// The report to the model, after the file's name.
    pub(super) report: String,
}

/// Makes the new content from the old; an error is for the model.
type Revise = Box<dyn Fn(&Old) -> Result<Revision, String> + Send + Sync>;

pub(super) struct Change {
    revise: Revise,
    /// What was found when the call was judged.
    looked: OnceLock<Look>,
    /// Whether the user was shown what was found.
    is_previewed: AtomicBool,
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
struct Plan {
    bytes: Vec<u8>,
    diff: Difference,
    report: String,
}

impl Work for Change {
    fn preview(&self, path: &PathArgument) -> Option<String> {
        let look = self.look(path).ok()?;
        self.is_previewed.store(true, Ordering::Relaxed);
        Some(look.diff.clone())
    }

    fn appraise(&self, path: &PathArgument, asked: Vec<String>) -> Option<Danger> {
        let mut danger = match self.look(path) {
            Ok(look) => look.danger.clone(),
            Err(error) => Danger::new(
                DangerLevel::Warning,
                format!("nothing would be written: {error}"),
            ),
        };
        // Files that others run, by the deny list.
        if !asked.is_empty() {
            danger.level = DangerLevel::Dangerous;
            danger.reasons.splice(0..0, asked);
        }
        Some(danger)
    }

    fn run(&self, path: &PathArgument, context: &Context) -> Result<Output, PathError> {
        let located = path.locate()?;
        let (old, state, before) = read(&located)?;
        let shown = path.shown();
        let identity = path.identity();
        let known = context.seen.recall(&identity);
        check_known(&shown, state, known)?;
        let plan = self.plan(&located, &shown, &old, Some(&context.redactor));
        self.check_previewed(&shown, state, known, plan.as_ref().ok())?;
        let plan = plan?;
        if let Some(stopped) = context.stop.reached() {
            return Ok(stopped.output());
        }
        let bytes = plan.bytes.len() as u64;
        let after = Fingerprint::of(&plan.bytes);
        let shown = listed(&shown);
        let report = if state == State::Content(after) {
            format!("{shown} already has this content; nothing was written")
        } else {
            context.quota.take(bytes).map_err(PathError::Failed)?;
            let undo = Undo {
                root: path.root_path(located.root()).display().to_string(),
                path: located.relative().to_owned(),
                before,
                after: Some(after.hash()),
                diff: plan.diff.text.clone(),
            };
            let write = || located.replace(&plan.bytes);
            undoable(&*context.keep, &located, undo, write)?;
            format!("{shown}: {}", plan.report)
        };
        context.seen.remember(&identity, after);
        Ok(Output::text(report).with(Metadata {
            path: Some(located.relative().to_owned()),
            diff: Some(plan.diff.text).filter(|diff| !diff.is_empty()),
            total_bytes: Some(bytes),
            ..Metadata::default()
        }))
    }
}

impl Change {
    pub(super) fn new(
        revise: impl Fn(&Old) -> Result<Revision, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            revise: Box::new(revise),
            looked: OnceLock::new(),
            is_previewed: AtomicBool::new(false),
        }
    }

    /// Works the change out, once: a second look is not what the user decides by.
    fn look(&self, path: &PathArgument) -> Result<&Look, PathError> {
        if let Some(look) = self.looked.get() {
            return Ok(look);
        }
        let located = path.locate()?;
        let (old, state, _) = read(&located)?;
        let plan = self.plan(&located, &path.shown(), &old, None)?;
        let lines = match &old {
            Old::Text(text) => Some(text.content.lines().count()),
            Old::Missing | Old::Opaque => None,
        };
        let before = match state {
            State::Missing => appraisal::Before::Missing,
            State::Content(_) | State::TooLarge => appraisal::Before::File {
                lines,
                is_executable: located.is_executable(),
                is_tracked: path.is_tracked(located.relative()),
            },
        };
        let danger = appraisal::appraise(&appraisal::Change {
            path: located.relative(),
            before,
            added: plan.diff.added,
            removed: plan.diff.removed,
        });
        Ok(self.looked.get_or_init(|| Look {
            state,
            diff: plan.diff.text,
            danger,
        }))
    }

    /// Refuses where the user was shown another change than would be made.
    ///
    /// Of two approved edits of one file, the second finds what the first has left. It may be made where its
    /// difference is still what the user saw, but for the numbers of lines, and where the file is what the
    /// conversation last read or wrote.
    fn check_previewed(
        &self,
        shown: &str,
        state: State,
        known: Option<Fingerprint>,
        plan: Option<&Plan>,
    ) -> Result<(), PathError> {
        let is_previewed = self.is_previewed.load(Ordering::Relaxed);
        let Some(look) = self.looked.get().filter(|_| is_previewed) else {
            return Ok(());
        };
        let is_own = || known.is_some_and(|known| state == State::Content(known));
        let is_alike = || plan.is_some_and(|plan| is_same_change(&look.diff, &plan.diff.text));
        if state == look.state || (is_own() && is_alike()) {
            return Ok(());
        }
        Err(PathError::Failed(format!(
            "file {shown:?} was changed while the call waited for approval, so the user saw another \
             change than would be made; read it and make the call again"
        )))
    }

    fn plan(
        &self,
        located: &Located<'_>,
        shown: &str,
        old: &Old,
        redactor: Option<&Redactor>,
    ) -> Result<Plan, PathError> {
        let failed = |problem| {
            let text = format!("file {shown:?} {problem}");
            match old {
                Old::Missing => PathError::Missing(text),
                Old::Text(_) | Old::Opaque => PathError::Failed(text),
            }
        };
        let Revision {
            content,
            form,
            mut report,
        } = (self.revise)(old).map_err(failed)?;
        let note = match (old, redactor) {
            (Old::Text(text), Some(redactor)) => {
                mask::check(redactor, &text.content, &content).map_err(failed)?
            }
            (Old::Missing | Old::Opaque, Some(_)) => mask::of_new_file(&content),
            (_, None) => None,
        };
        report.extend(note);
        let bytes = form.encode(&content).map_err(|letter| {
            let name = form.encoding.name();
            PathError::Failed(format!(
                "file {shown:?} is in {name}, which has no character {letter:?}"
            ))
        })?;
        let before = match old {
            Old::Text(text) => Some(text.content.as_str()),
            Old::Missing | Old::Opaque => None,
        };
        let mut diff = compare(located.relative(), before, &content);
        if matches!(old, Old::Opaque) {
            let note = "[the old content is not text, and is replaced]\n";
            diff.text.insert_str(0, note);
        }
        Ok(Plan {
            bytes,
            diff,
            report,
        })
    }
}

/// Refuses where the file is no longer what the conversation has seen of it.
fn check_known(shown: &str, state: State, known: Option<Fingerprint>) -> Result<(), PathError> {
    Err(PathError::Failed(match (known, state) {
        (None, _) => return Ok(()),
        (Some(known), state) if state == State::Content(known) => return Ok(()),
        (Some(_), State::Missing) => format!(
            "file {shown:?} was deleted by someone else since you read it; read it again to go on"
        ),
        (Some(_), State::Content(_) | State::TooLarge) => format!(
            "file {shown:?} was changed by someone else since you read it; \
             nothing was written; read it again, then make your change to what it is now"
        ),
    }))
}

fn read(located: &Located<'_>) -> Result<(Old, State, Before), PathError> {
    match located.read() {
        Ok(bytes) => {
            let state = State::Content(Fingerprint::of(&bytes));
            let old = decode(&bytes).map_or(Old::Opaque, Old::Text);
            Ok((old, state, Before::Content { bytes, mode: None }))
        }
        Err(PathError::Missing(_)) => Ok((Old::Missing, State::Missing, Before::Missing)),
        Err(PathError::TooLarge(_)) => Ok((Old::Opaque, State::TooLarge, Before::TooLarge)),
        Err(error) => Err(error),
    }
}

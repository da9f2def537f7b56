//! What the tools share that look through folders: which files are meant and seen, and the note on the others.

use super::file::{Context, PathArgument};
use super::name_filter::NameFilter;
use super::stop::Stopped;
use super::{Metadata, Output};
use crate::message::Part;
use crate::sandbox::paths::{Entry, EntryKind, Located, PathError, Step, Visited};

pub(super) struct Walked {
    pub(super) visited: Visited,
    pub(super) stopped: Option<Stopped>,
    pub(super) unseen: bool,
}

/// Gives `take` each entry below a folder that is of these kinds, that the glob means and that may be seen.
pub(super) fn walk(
    located: &Located<'_>,
    kinds: &[EntryKind],
    filter: Option<&NameFilter>,
    context: &Context,
    mut take: impl FnMut(&Entry<'_>) -> Step,
) -> Result<Walked, PathError> {
    let (mut stopped, mut unseen) = (None, false);
    let visited = located.visit(&mut |entry| {
        stopped = context.stop.reached();
        if stopped.is_some() {
            return Step::Stop;
        }
        let is_meant = kinds.contains(&entry.kind)
            && filter.is_none_or(|filter| filter.matches(located.below(entry)));
        match is_meant && (context.visible)(entry.relative) {
            true => take(entry),
            false => {
                unseen |= is_meant;
                Step::Enter
            }
        }
    })?;
    Ok(Walked {
        visited,
        stopped,
        unseen,
    })
}

impl Walked {
    /// Returns the output of a call that found so much; `more` says how to get at the rest.
    pub(super) fn output(
        &self,
        path: &PathArgument,
        found: usize,
        text: &str,
        is_error: bool,
        more: &str,
    ) -> Output {
        let note = match (self.visited, self.stopped) {
            (_, Some(Stopped::Cancelled)) => "[cancelled; there may be more]",
            (_, Some(Stopped::TimedOut)) => "[the time was up; there may be more]",
            (Visited::Stopped, None) => more,
            (Visited::Bounded, None) => {
                "[the folder is too large to be looked through; give a `path` below it]"
            }
            (Visited::All, None) => "",
        };
        let text = format!("{}\n{note}", text.trim_end_matches('\n'));
        let mut output = Output {
            is_error: is_error || self.stopped.is_some(),
            ..Output::text(text.trim_end_matches('\n'))
        }
        .with(Metadata {
            path: Some(path.relative().to_owned()),
            result_count: Some(found as u64),
            truncated: !note.is_empty(),
            ..self.stopped.map(Stopped::metadata).unwrap_or_default()
        });
        if self.unseen {
            output.content.push(Part::text(
                "\n[files outside the paths that may be seen here are left out]",
            ));
        }
        output
    }
}

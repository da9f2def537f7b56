//! What a call that shows contents must not name: a file for secrets, by whichever of git's spellings.
//!
//! Comparisons leave such files out by pathspecs (`history`); here is what pathspecs do not reach: objects by name, files
//! that are compared or looked at by themselves, and options that widen what is shown.

use super::super::{Refusal, Violation};
use super::arguments::existing;
use super::words::{Item, Role, TEXTS, Words};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::paths::{Found, PathError, Roots};

/// Refuses a word that would show a file of the deny list.
pub(super) fn check(words: &Words<'_>, item: &Item<'_>, roots: &Roots) -> Result<(), Refusal> {
    if let Some(range) = item.range() {
        return after_colons(range).try_for_each(|file| allowed(file, roots));
    }
    match item.role {
        Role::Text | Role::Separator | Role::Range => Ok(()),
        Role::Option => {
            widens(words, item.word)?;
            match item.word.split_once('=') {
                Some((name, value))
                    if !TEXTS.contains(&name) && existing(value, roots).is_some() =>
                {
                    allowed(value, roots)
                }
                _ => Ok(()),
            }
        }
        Role::Operand | Role::Path => named(words, item.word, roots),
    }
}

/// Refuses options that show what pathspecs leave out.
fn widens(words: &Words<'_>, option: &str) -> Result<(), Refusal> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let submodules = name.len() > 4 && "--submodule".starts_with(name) && value == "diff";
    if words.subcommand != "grep" && (option == "--full-diff" || submodules) {
        return Err(Refusal::Invalid(format!(
            "{option:?} shows files that this tool leaves out; leave the option away"
        )));
    }
    Ok(())
}

fn named(words: &Words<'_>, name: &str, roots: &Roots) -> Result<(), Refusal> {
    if words.compares_files() {
        one_file(name, roots)?;
    }
    for path in after_colons(name) {
        allowed(path, roots)?;
        // As a tree its files have short names, and what makes a secret of one is gone.
        if words.subcommand != "show" && deny::hides_within(path.trim_end_matches('/')) {
            return Err(Refusal::Violation(Violation {
                message: format!("{name:?} names a folder in which there may be files for secrets"),
            }));
        }
    }
    // Also where nothing is there by now: what was committed is in history.
    match existing(name, roots) {
        Some(_) => allowed(name, roots),
        None => Ok(()),
    }
}

/// Refuses a folder where files are compared: all in it would be shown.
fn one_file(name: &str, roots: &Roots) -> Result<(), Refusal> {
    let is_folder = roots
        .map(name, Access::Look)
        .and_then(|target| {
            Ok(matches!(
                roots.locate(&target, Access::Look)?.found(),
                Found::Folder(_)
            ))
        })
        .unwrap_or_default();
    if is_folder {
        return Err(Refusal::Invalid(format!(
            "{name:?} is a folder; with --no-index this tool compares single files"
        )));
    }
    Ok(())
}

/// What may be the path in `revision:path`, `:0:path` and `-L range:path`: a revision and a pattern may hold colons.
pub(super) fn after_colons(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices(':')
        .filter_map(|(at, _)| word.get(at + 1..))
        .filter(|path| !path.is_empty())
}

/// Refuses a path that is on the deny list or outside.
fn allowed(path: &str, roots: &Roots) -> Result<(), Refusal> {
    match roots.map(path, Access::Read) {
        Err(PathError::Forbidden(message)) => Err(Refusal::Violation(Violation { message })),
        Ok(_) | Err(_) => Ok(()),
    }
}

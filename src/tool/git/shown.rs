//! What a call must not name where that shows contents: a file for secrets, by whichever of git's spellings.
//!
//! Comparisons leave such files out by pathspecs (`history`); here is what pathspecs do not reach: objects by name, files
//! that are compared or looked at by themselves, files that git reads for an option, and options that widen what is shown.
//! What only changes or lists files may name any: `rm --cached .env`.

use super::super::{Refusal, Violation};
use super::arguments::existing;
use super::words::{Item, Role, TEXTS, Words, file_letters, is_file_option};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::paths::{Found, PathError, Roots};

/// Letters that take the rest of their word where they are not for a file: messages, keys, kinds.
const LETTERS_WITH_VALUE: &str = "mxCcSun";

/// Refuses a word that would show a file of the deny list.
pub(super) fn check(words: &Words<'_>, item: &Item<'_>, roots: &Roots) -> Result<(), Refusal> {
    let shows = words.shows_contents();
    if let Some(range) = item.range().filter(|_| shows) {
        return after_colons(range).try_for_each(|file| allowed(file, roots));
    }
    match item.role {
        Role::Text | Role::Separator | Role::Range => Ok(()),
        Role::Option => {
            if shows {
                widens(words, item.word)?;
            }
            option_value(words, item.word, roots)
        }
        Role::File => read_for_an_option(item.word, roots),
        Role::Operand | Role::Path if shows => named(words, item.word, roots),
        Role::Operand if words.names_objects() => {
            after_colons(item.word).try_for_each(|path| allowed(path, roots))
        }
        Role::Operand | Role::Path => Ok(()),
    }
}

/// The value that stands in one word with its option: `--file=x`, `-Fx`, `-aFx`.
fn option_value(words: &Words<'_>, option: &str, roots: &Roots) -> Result<(), Refusal> {
    if option.starts_with("--") {
        return match option.split_once('=') {
            Some((name, value)) if is_file_option(name) => read_for_an_option(value, roots),
            Some((name, value)) if !TEXTS.contains(&name) => allowed_if_there(value, roots),
            _ => Ok(()),
        };
    }
    let letters = file_letters(words.subcommand);
    let takes_value = |letter| letters.contains(letter) || LETTERS_WITH_VALUE.contains(letter);
    match option
        .find(takes_value)
        .and_then(|at| option.split_at_checked(at + 1))
    {
        Some((cluster, value)) if cluster.ends_with(|letter| letters.contains(letter)) => {
            read_for_an_option(value, roots)
        }
        _ => Ok(()),
    }
}

/// Refuses a file, or an object by the file's name, that git would read: its content is shown in some way.
fn read_for_an_option(value: &str, roots: &Roots) -> Result<(), Refusal> {
    allowed_if_there(value, roots)?;
    after_colons(value).try_for_each(|path| allowed(path, roots))
}

fn allowed_if_there(value: &str, roots: &Roots) -> Result<(), Refusal> {
    match existing(value, roots) {
        Some(_) => allowed(value, roots),
        None => Ok(()),
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
    allowed_if_there(name, roots)
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

/// What may be the path in `revision:path`, `:0:path`, `-L range:path` and `:(magic)path`: a revision and a pattern may
/// hold colons. `:/path` begins at the top of the work tree.
pub(super) fn after_colons(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices(':')
        .filter_map(|(at, _)| {
            let path = word.get(at + 1..)?;
            let magic = path
                .starts_with('(')
                .then(|| path.split_once(')'))
                .flatten();
            Some(match magic {
                _ if at > 0 => path,
                // Pathspecs that leave secrets out hold for a pattern, too.
                Some((_, path)) if path.contains(['*', '?', '[']) => "",
                Some((_, path)) => path,
                None => path.trim_start_matches('/'),
            })
        })
        .filter(|path| !path.is_empty())
}

/// Refuses a path that is on the deny list or outside.
fn allowed(path: &str, roots: &Roots) -> Result<(), Refusal> {
    match roots.map(path, Access::Read) {
        Err(PathError::Forbidden(message)) => Err(Refusal::Violation(Violation { message })),
        Ok(_) | Err(_) => Ok(()),
    }
}

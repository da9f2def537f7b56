//! Files of the deny list that git would show.
//!
//! One that is named is refused; `diff`, `show`, `grep` and `log -p` get a pathspec that excludes the others. Other ways
//! to what was committed (an object's hash, `bundle`, `git log -p` in bash) stay open: see SECURITY.md.

use super::super::Refusal;
use super::arguments::existing;
use super::words::{Item, Role, TABLE, Words};
use crate::sandbox::deny::{self, Access};
use crate::sandbox::paths::{Found, Roots};

/// Returns the pathspecs that exclude the deny list from what the call shows.
///
/// None where git takes none: two files that are compared, a range of lines and `--follow` name their file, and names are
/// checked by [`check`]. None for a `log` without contents either: a pathspec makes git leave out commits.
pub(super) fn excluded(words: &Words<'_>) -> Vec<String> {
    let is_log = matches!(words.subcommand, "log" | "reflog");
    let shows = words.about.excludes && (!is_log || words.shows_patches());
    let follows = words.options().any(|option| option == "--follow");
    if !shows || follows || words.compares_files() || words.shows_lines() {
        return Vec::new();
    }
    deny::secrets()
        .map(|glob| format!(":(exclude,top,icase,glob){glob}"))
        .collect()
}

/// Refuses a word that names a file of the deny list which git would show or read.
pub(super) fn check(words: &Words<'_>, item: &Item<'_>, roots: &Roots) -> Result<(), Refusal> {
    let shows = words.about.shows;
    if let Some(range) = item.range().filter(|_| shows) {
        return after_colons(range).try_for_each(|file| allowed(file, roots));
    }
    match item.role {
        Role::Option => option_value(words, item.word, roots),
        Role::File => named(item.word, roots),
        Role::Operand | Role::Path if shows => {
            if words.compares_files() {
                one_file(item.word, roots)?;
            }
            named(item.word, roots)
        }
        Role::Text | Role::Separator | Role::Range | Role::Operand | Role::Path => Ok(()),
    }
}

/// Checks the value that stands in one word with its option: `--file=x`, `-Fx`, `-aFx`.
fn option_value(words: &Words<'_>, option: &str, roots: &Roots) -> Result<(), Refusal> {
    let about = words.about;
    match (about.cluster(option), option.split_once('=')) {
        (Some((letters, value)), _) if letters.ends_with(|it| about.files.contains(it)) => {
            named(value, roots)
        }
        (None, Some((name, value))) if TABLE.is_file(name) => named(value, roots),
        (None, Some((name, value))) if !TABLE.texts.contains(name) => {
            allowed_if_there(value, roots)
        }
        _ => Ok(()),
    }
}

fn named(name: &str, roots: &Roots) -> Result<(), Refusal> {
    allowed_if_there(name, roots)?;
    after_colons(name).try_for_each(|path| allowed(path, roots))
}

/// Refuses a folder where files are compared: all in it would be shown.
fn one_file(name: &str, roots: &Roots) -> Result<(), Refusal> {
    let target = roots.map(name, Access::Look);
    let located = target.and_then(|target| roots.locate(&target, Access::Look));
    if located.is_ok_and(|it| matches!(it.found(), Found::Folder(_))) {
        return Err(Refusal::Invalid(format!(
            "{name:?} is a folder; with --no-index this tool compares single files"
        )));
    }
    Ok(())
}

/// Returns what may be the path in `revision:path`, `:0:path`, `-L range:path` and `:(magic)path`: a revision and a
/// pattern may hold colons. `:/path` begins at the top of the work tree.
fn after_colons(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices(':')
        .filter_map(|(at, _)| {
            let path = word.get(at + 1..)?;
            let magic = path.strip_prefix('(').and_then(|it| it.split_once(')'));
            Some(match magic {
                _ if at > 0 => path,
                // Pathspecs that exclude secrets hold for a pattern, too.
                Some((_, path)) if path.contains(['*', '?', '[']) => "",
                Some((_, path)) => path,
                None => path.trim_start_matches('/'),
            })
        })
        .filter(|path| !path.is_empty())
}

/// Refuses a path that is on the deny list or outside.
fn allowed(path: &str, roots: &Roots) -> Result<(), Refusal> {
    match roots.map(path, Access::Read).map_err(Refusal::from) {
        Err(violation @ Refusal::Violation(_)) => Err(violation),
        _ => Ok(()),
    }
}

/// Refuses a word that is the path of a file of the deny list; a branch may have such a name.
fn allowed_if_there(word: &str, roots: &Roots) -> Result<(), Refusal> {
    match existing(word, roots) {
        Some(_) => allowed(word, roots),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_excluded_where_contents_are_shown() {
        for (words, expected) in [
            (&["log"][..], false),
            (&["log", "--oneline", "-5", "--stat"], false),
            (&["log", "-n5", "-Spassword", "-gs"], false),
            (&["log", "-L1,2:f", "-p"], false),
            (&["log", "-L", "1,2:f", "-p"], false),
            (&["log", "--follow", "-p", "f"], false),
            (&["diff", "--no-index", "a", "b"], false),
            (&["status"], false),
            (&["reflog"], false),
            (&["reflog", "expire", "--all"], false),
            (&["log", "-p"], true),
            (&["log", "--patch-with-stat"], true),
            (&["log", "-U1"], true),
            (&["log", "-p", "--", "-L", "."], true),
            (&["reflog", "-p"], true),
            (&["diff", "--", "--no-index"], true),
            (&["diff", "HEAD~1", "--stat"], true),
            (&["grep", "-L", "x"], true),
            (&["show"], true),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let excluded = excluded(&Words::read(&words));
            assert_eq!(!excluded.is_empty(), expected, "{words:?}");
        }
    }
}

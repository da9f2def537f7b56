//! What words of git name, and secrets that were committed: git shows them from its history, where no file is masked.
//!
//! A call of the tool that shows contents leaves them out by pathspecs. In a line of bash nothing can be added; a
//! word there that may match such a file is asked for.

use super::shown::after_colons;
use super::words::Words;
use crate::classifier::{SimpleCommand, Word};
use crate::sandbox::deny::{self, Access};

/// Subcommands that show what was committed, in a line of bash.
const SHOWING: [&str; 12] = [
    "annotate",
    "archive",
    "blame",
    "cat-file",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "format-patch",
    "grep",
    "log",
    "show",
];

/// Names that say "secret" are source code or not by their ending: without one, and with one of [`ENDINGS`], they
/// are not.
const BARE: [&str; 3] = ["*secret", "*secrets", "*credentials"];
const WORDS: [&str; 2] = ["*secret*", "*credential*"];
const ENDINGS: [&str; 18] = [
    "asc",
    "cfg",
    "conf",
    "csv",
    "dat",
    "db",
    "der",
    "enc",
    "env",
    "gpg",
    "ini",
    "json",
    "plist",
    "properties",
    "toml",
    "txt",
    "xml",
    "y*ml",
];

/// Options of `git log` that show no contents. With any other one secrets are left out, which makes git leave out commits.
const QUIET: [&str; 71] = [
    "abbrev",
    "abbrev-commit",
    "after",
    "all",
    "all-match",
    "ancestry-path",
    "author",
    "author-date-order",
    "before",
    "boundary",
    "branches",
    "cherry",
    "color",
    "committer",
    "compact-summary",
    "date",
    "date-order",
    "decorate",
    "decorate-refs",
    "diff-filter",
    "dirstat",
    "encoding",
    "end-of-options",
    "exclude",
    "extended-regexp",
    "find-copies",
    "find-renames",
    "first-parent",
    "fixed-strings",
    "follow",
    "format",
    "full-history",
    "glob",
    "graph",
    "grep",
    "invert-grep",
    "left-right",
    "max-count",
    "merges",
    "name-only",
    "name-status",
    "no-abbrev-commit",
    "no-color",
    "no-decorate",
    "no-merges",
    "no-notes",
    "no-patch",
    "no-renames",
    "not",
    "numstat",
    "oneline",
    "parents",
    "perl-regexp",
    "pretty",
    "raw",
    "regexp-ignore-case",
    "relative-date",
    "remotes",
    "reverse",
    "shortstat",
    "simplify-by-decoration",
    "simplify-merges",
    "since",
    "skip",
    "source",
    "stat",
    "summary",
    "tags",
    "topo-order",
    "until",
    "walk-reflogs",
];

/// Letters of `git log` that show no contents; those that take the rest of the word, and numbers.
const QUIET_LETTERS: &str = "sziERFgrtMCDR0123456789";
const LETTERS_WITH_VALUE: &str = "nSGlO";

/// Returns the pathspecs that leave secrets out of what the call shows; none where it shows no contents, or none is
/// taken: two files that are compared, and the file of a range of lines, were judged by their names.
pub(super) fn left_out(words: &Words<'_>) -> Vec<String> {
    let quiet = match words.subcommand {
        "log" | "reflog" => words.options().all(is_quiet),
        "diff" | "diff-files" | "diff-index" | "diff-tree" | "grep" | "show" => false,
        _ => true,
    };
    if quiet || words.compares_files() || words.shows_lines() {
        return Vec::new();
    }
    let excluded: Vec<String> = deny::secrets()
        .map(str::to_owned)
        .chain(names().map(|name| format!("**/{name}")))
        .map(|glob| format!(":(exclude,top,icase,glob){glob}"))
        .collect();
    // An option at the end may take the next word for its value; it gets one that is there once more.
    excluded.iter().take(1).chain(&excluded).cloned().collect()
}

/// The globs of names that say "secret" and are no source code.
fn names() -> impl Iterator<Item = String> {
    let endings = WORDS
        .iter()
        .flat_map(|word| ENDINGS.iter().map(move |ending| format!("{word}.{ending}")));
    BARE.iter().map(|name| (*name).to_owned()).chain(endings)
}

/// Whether an option of `git log` is known to show no contents.
fn is_quiet(option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return QUIET.contains(&name);
    }
    let letters = option.strip_prefix('-').unwrap_or(option);
    for letter in letters.chars() {
        if LETTERS_WITH_VALUE.contains(letter) {
            return true;
        }
        if !QUIET_LETTERS.contains(letter) {
            return false;
        }
    }
    true
}

/// Returns the word of a git command that may name a secret in history.
pub(in crate::tool) fn suspicious(command: &SimpleCommand) -> Option<String> {
    let words: Vec<&str> = command
        .words
        .iter()
        .map(|word| match word {
            Word::Literal(text) | Word::Dynamic(text) => text.as_str(),
        })
        .collect();
    let (program, rest) = words.split_first()?;
    if *program != "git" {
        return None;
    }
    if !rest.iter().any(|word| SHOWING.contains(word)) {
        return None;
    }
    let files = rest.iter().position(|word| *word == "--");
    rest.iter()
        .enumerate()
        .find(|(at, word)| {
            let mut paths = std::iter::once(**word).chain(after_colons(word));
            let denied = paths.any(|path| deny::denied(path, Access::Read).is_some());
            let pattern = word.contains(['*', '?', '[']) || word.starts_with(':');
            // `--format=%h: *` and `-S'x?'` are no paths; what comes after `--` is one.
            let path_like = !word.starts_with('-') || word.starts_with("-L");
            let after = files.is_some_and(|files| *at > files);
            (after || path_like) && (pattern || denied)
        })
        .map(|(_, word)| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left out beside the deny list's own globs is denied too.
    #[test]
    fn each_name_that_is_left_out_is_denied() {
        for name in names() {
            let example = name.replace('*', "x");
            assert!(deny::denied(&example, Access::Read).is_some(), "{example}");
        }
    }

    fn left_out_of(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        left_out(&Words::read(&words))
    }

    #[test]
    fn each_secret_of_the_deny_list_is_left_out() {
        let left_out = left_out_of(&["show"]);
        for glob in deny::secrets() {
            let pathspec = format!(":(exclude,top,icase,glob){glob}");
            assert!(left_out.contains(&pathspec), "{glob}");
        }
        assert!(left_out.iter().all(|pathspec| pathspec.contains(")**/")));
    }

    #[test]
    fn secrets_are_left_out_unless_no_contents_are_shown() {
        for (words, expected) in [
            (&["log"][..], false),
            (
                &["log", "--oneline", "-5", "--stat", "--since=1 week"],
                false,
            ),
            (&["log", "-n5", "-Spassword", "-gs"], false),
            (&["log", "-L1,2:f"], false),
            (&["log", "-L", "1,2:f", "-p"], false),
            (&["diff", "--no-index", "a", "b"], false),
            (&["status"], false),
            (&["log", "-p"], true),
            (&["log", "-gp"], true),
            (&["log", "--check"], true),
            (&["log", "--no-ind", "--patc"], true),
            (&["log", "-p", "--", "-L", "."], true),
            (&["log", "-p", "--end-of-options", "-L"], true),
            (&["log", "-p", "-S", "-L1,2:f"], true),
            (&["diff", "--", "--no-index"], true),
            (&["diff", "-G", "--no-index"], true),
            (&["diff", "-L1,2:f"], true),
            (&["grep", "-L", "x"], true),
            (&["grep", "--no-index", "x"], true),
            (&["reflog", "-p"], true),
            (&["reflog"], false),
        ] {
            assert_eq!(!left_out_of(words).is_empty(), expected, "{words:?}");
        }
    }
}

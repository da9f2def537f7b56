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

/// Words in names that say a file holds secrets, unless it is source code, which its ending says.
const WORDS: [&str; 2] = ["secret", "credential"];

/// Longest rest of a name behind such a word, without any ending, that is left out.
const LONGEST_REST: usize = 8;

/// A letter with which no ending of source code begins, and the longest such ending that is left out.
const NO_SOURCE: &str = "[!acdeghjklmprstvz.]";
const LONGEST_ENDING: usize = 6;

/// Endings that begin with other letters and are none of source code; no pathspec says "any but these".
const ENDINGS: &str = "\
    asc cert cfg cnf conf config crt csv dat data db der dev dump enc env example gpg json json5 jsonc jwt list local \
    lock log lst pass pgp plist prod production properties ps1 pub rc sample save sqlite staging store swp template test \
    text tfvars tmp token toml tsv txt values vars vault";

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
        "log" | "reflog" => words.changes_reflog() || words.options().all(is_quiet),
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
    let any = |longest: usize| (0..=longest).map(|length| "[!.]".repeat(length));
    WORDS.iter().flat_map(move |word| {
        let rests = any(LONGEST_REST).map(move |rest| format!("*{word}{rest}"));
        let others = any(LONGEST_ENDING - 1).map(move |rest| format!("*{word}*.{NO_SOURCE}{rest}"));
        let known = ENDINGS
            .split_whitespace()
            .map(move |ending| format!("*{word}*.{ending}"));
        rests
            .chain(others)
            .chain(known)
            .chain([format!("*{word}*~")])
    })
}

/// Whether an option of `git log` is known to show no contents.
pub(super) fn is_quiet(option: &str) -> bool {
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
            let example = name
                .replace(NO_SOURCE, "x")
                .replace("[!.]", "x")
                .replace('*', "x");
            assert!(deny::denied(&example, Access::Read).is_some(), "{example}");
        }
    }

    /// As git matches them: `*` and `[` take no `/`.
    fn is_left_out(name: &str) -> bool {
        names().any(|glob| {
            let glob = globset::GlobBuilder::new(&glob)
                .literal_separator(true)
                .build();
            glob.unwrap().compile_matcher().is_match(name)
        })
    }

    #[test]
    fn names_that_say_secret_are_left_out_unless_they_are_source_code() {
        for name in [
            "secret",
            "my_secret_file",
            "client_secret.log",
            "secret.bak",
            "secret.json~",
            "secret.yaml",
            "a.secrets",
            "v1.secret-store",
            "credentials.old",
            "credentials.1",
            "google-credentials.json",
            "secret.rs.orig",
        ] {
            assert!(
                is_left_out(name) && deny::denied(name, Access::Read).is_some(),
                "{name}"
            );
        }
        for name in [
            "secret.rs",
            "secrets.test.ts",
            "my_secret_file.py",
            "credential-form.vue",
            "README",
        ] {
            assert!(
                !is_left_out(name) && deny::denied(name, Access::Read).is_none(),
                "{name}"
            );
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
            (&["reflog", "show", "-p"], true),
            (&["reflog"], false),
            (&["reflog", "expire", "--all"], false),
        ] {
            assert_eq!(!left_out_of(words).is_empty(), expected, "{words:?}");
        }
    }
}

//! A repository that a command made: which of its settings may stay, by a list of what names no program.

use std::ffi::OsStr;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::put_back::Hand;
use crate::sandbox::repository::{HOOKS, Noted, Noter, kind, names};

/// What `git init` and `git clone` write, by section.
const HARMLESS: [(&str, &[&str]); 8] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "abbrev",
        ],
    ),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("extensions", &["objectformat", "refstorage"]),
    ("remote", &["url", "pushurl", "fetch", "tagopt"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("submodule", &["url", "active"]),
    ("pull", &["rebase", "ff"]),
];

/// What is written in the place of settings that may not stay.
const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";

/// Most samples of hooks that may stay; git brings 14.
const MAX_SAMPLES: usize = 32;

/// Takes from a directory of git what would run a program: settings off the list, hooks that are no samples, and the
/// files that lead to settings elsewhere.
pub(super) fn cleanse(git: &Dir, at: &Path, hand: &mut Hand<'_>) {
    let config = OsStr::new("config");
    let mut noter = Noter::new(&[]);
    let harmless = match noter.take(git, config, None) {
        None => true,
        Some(noted) => noter
            .content(&noted)
            .is_some_and(|content| std::str::from_utf8(content).is_ok_and(are_harmless)),
    };
    if !harmless {
        hand.make(git, at, config, Some(&Noted::file(PLAIN.as_bytes())));
    }
    hooks(git, at, hand);
    for name in ["commondir", "gitdir", "config.worktree"] {
        hand.make(git, at, OsStr::new(name), None);
    }
}

fn hooks(git: &Dir, at: &Path, hand: &mut Hand<'_>) {
    let name = OsStr::new(HOOKS);
    let is_sample = |dir: &Dir, name: &OsStr| {
        name.to_string_lossy().ends_with(".sample")
            && kind(dir, name) == Some(FileType::RegularFile)
    };
    let samples_only = git.open_dir_nofollow(HOOKS).is_ok_and(|dir| {
        let names = names(&dir, MAX_SAMPLES + 1);
        names.len() <= MAX_SAMPLES && names.iter().all(|name| is_sample(&dir, name))
    });
    if samples_only {
        return;
    }
    let mut noter = Noter::new(&[]);
    let kept = match noter.take(git, name, None) {
        Some(Noted::Directory(mut entries)) => {
            entries.retain_mut(|(name, noted)| {
                let sample = name.to_string_lossy().ends_with(".sample");
                match noter.content(noted).map(<[u8]>::to_owned) {
                    Some(content) if sample => {
                        *noted = Noted::file(&content);
                        true
                    }
                    _ => false,
                }
            });
            entries.truncate(MAX_SAMPLES);
            Some(Noted::Directory(entries))
        }
        _ => None,
    };
    hand.make(git, at, name, kept.as_ref());
}

/// Whether every line is one that git itself writes, in the form in which it does. Git reads more forms: several
/// sections and a key in one line, quotes and escapes within a value.
fn are_harmless(text: &str) -> bool {
    let mut known: &[&str] = &[];
    text.lines().all(|line| {
        let line = line.trim();
        if line
            .chars()
            .any(|letter| letter.is_control() && letter != '\t')
        {
            return false;
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if line.starts_with('[') {
            let keys = section(line).and_then(keys_of);
            known = keys.unwrap_or_default();
            return keys.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        // `ext::program` and its like are addresses that run something.
        let runs = matches!(key.as_str(), "url" | "pushurl") && value.contains("::");
        !runs && !value.contains(['"', '\\']) && known.contains(&key.as_str())
    })
}

/// The name in a line that is `[name]` or `[name "part"]` and nothing else.
fn section(line: &str) -> Option<&str> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, part) = match inner.split_once(' ') {
        Some((name, quoted)) => (name, quoted.strip_prefix('"')?.strip_suffix('"')?),
        None => (inner, "whole"),
    };
    let plain = name.bytes().all(|byte| byte.is_ascii_alphabetic());
    (plain && !part.is_empty() && !part.contains(['"', '\\', '[', ']'])).then_some(name)
}

/// The keys of a section that may stay.
fn keys_of(section: &str) -> Option<&'static [&'static str]> {
    let mut sections = HARMLESS.iter();
    let (_, keys) = sections.find(|(name, _)| name.eq_ignore_ascii_case(section))?;
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_no_program_stays() {
        for (text, harmless) in [
            ("", true),
            (PLAIN, true),
            (
                "[remote \"origin\"]\n\turl = https://example.org/a\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
                true,
            ),
            ("# a remark\n; another\n[user]\n\tname = n\n", true),
            ("[core]\n\tfsmonitor = evil\n", false),
            ("[CORE]\n\tFSMonitor = evil\n", false),
            ("[core] fsmonitor = evil\n", false),
            ("[core]\n\thooksPath = evil\n", false),
            ("[core]\n\tbare = false \\\n\tfsmonitor = evil\n", false),
            ("[include]\n\tpath = evil\n", false),
            ("[includeIf \"gitdir:/\"]\n\tpath = evil\n", false),
            ("[alias]\n\tst = !evil\n", false),
            ("[diff \"x\"]\n\ttextconv = evil\n", false),
            ("[filter \"x\"]\n\tclean = evil\n", false),
            ("[remote \"x\"]\n\turl = ext::evil\n", false),
            ("[remote \"x\"]\n\tuploadpack = evil\n", false),
            ("[submodule \"x\"]\n\tupdate = !evil\n", false),
            ("[extensions]\n\tworktreeConfig = true\n", false),
            ("fsmonitor = evil\n", false),
            (
                "[remote \"x\"] [core] fsmonitor = \"evil; false\" ;]\n",
                false,
            ),
            ("[remote \"x\"] uploadpack = evil #]\n", false),
            ("[core \"\"] fsmonitor=x ;]\n", false),
            ("[core] ;]\n\tbare = false\n", false),
            ("[remote \"x\\\"\"]\n", false),
            ("[remote.x]\n\turl = a\n", false),
            ("[remote \"x\"]\n\turl = ext\":\":sh\n", false),
            ("[remote \"x\"]\n\turl = a\\b\n", false),
            ("[core]\n\tbare = false\u{b}[core]fsmonitor=x\n", false),
            ("[user]\n\tname = n\r\tfsmonitor = x\n", false),
            ("[remote \"a b\"]\n\turl = c # d\n", true),
            ("[core\n", false),
        ] {
            assert_eq!(are_harmless(text), harmless, "{text:?}");
        }
    }
}

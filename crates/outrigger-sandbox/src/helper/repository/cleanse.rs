//! A repository that a command made: which of its settings may stay, by a list of what names no program.

use std::ffi::OsStr;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType};

use super::orders;
use super::put_back::{Hand, put_aside};
use crate::repository::{HOOKS, Noted, Noter, kind, names, stamp};

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

/// Most samples of hooks that may stay; git brings 14.
const MAX_SAMPLES: usize = 32;

/// Most settings that are kept under numbers of their own.
const MAX_KEPT: usize = 256;

/// Takes from a directory of git what would run a program: settings off the list, hooks that are no samples, and the
/// files that lead to settings elsewhere.
pub(super) fn cleanse(git: &Dir, at: &Path, hand: &mut Hand<'_>) {
    let config = OsStr::new("config");
    let mut noter = Noter::new(&[]);
    if let Some(noted) = noter.take(git, config, None) {
        let content = noter.content(&noted).unwrap_or_default();
        let kept = std::str::from_utf8(content)
            .map(harmless)
            .unwrap_or_default();
        if noter.content(&noted) != Some(kept.as_bytes()) {
            hand.make(git, at, config, Some(&Noted::file(kept.as_bytes())));
        }
    }
    hooks(git, at, hand);
    for name in ["commondir", "gitdir", "config.worktree"] {
        hand.make(git, at, OsStr::new(name), None);
    }
    // Templates of git have these, empty.
    for name in ["remotes", "branches"] {
        hand.make_pinned(git, at, name, None);
    }
    orders::put_back(git, at, &[], hand);
}

/// The same for a repository that the user may have made: what has to go stays under another name.
pub(super) fn cleanse_kept(git: &Dir, at: &Path, hand: &mut Hand<'_>) {
    let mut aside = |name: &str| {
        let outcome = put_aside(git, OsStr::new(name));
        hand.tell(&at.join(name), outcome.map(|()| true));
    };
    for name in [HOOKS, "config.worktree"] {
        let is_there = kind(git, OsStr::new(name)).is_some();
        if is_there && !(name == HOOKS && has_samples_only(git)) {
            aside(name);
        }
    }
    let config = |git: &Dir| stamp(git, OsStr::new("config")).ok().flatten();
    let before = config(git).map(|(_, stamp)| stamp.identity());
    let kept = (0..MAX_KEPT)
        .map(|number| format!("config-replaced-{number}"))
        .find(|name| rustix::fs::linkat(git, "config", git, name, AtFlags::empty()).is_ok());
    cleanse(git, at, hand);
    if let Some(kept) = kept
        && config(git).map(|(_, stamp)| stamp.identity()) == before
    {
        rustix::fs::unlinkat(git, kept, AtFlags::empty()).unwrap_or_default();
    }
}

fn has_samples_only(git: &Dir) -> bool {
    let is_sample = |dir: &Dir, name: &OsStr| {
        name.to_string_lossy().ends_with(".sample")
            && kind(dir, name) == Some(FileType::RegularFile)
    };
    git.open_dir_nofollow(HOOKS).is_ok_and(|dir| {
        let names = names(&dir, MAX_SAMPLES + 1);
        names.len() <= MAX_SAMPLES && names.iter().all(|name| is_sample(&dir, name))
    })
}

fn hooks(git: &Dir, at: &Path, hand: &mut Hand<'_>) {
    if has_samples_only(git) {
        return;
    }
    let name = OsStr::new(HOOKS);
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

/// The lines that may stay, each in the form in which git itself writes it. Git reads more forms: several sections and a
/// key in one line, quotes and escapes within a value, a value that goes on in the next line.
fn harmless(text: &str) -> String {
    let mut known: &[&str] = &[];
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| is_harmless(line.trim(), &mut known))
        .collect()
}

/// `known` are the keys of the section that the line is in that may stay.
fn is_harmless(line: &str, known: &mut &'static [&'static str]) -> bool {
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
        *known = keys.unwrap_or_default();
        return keys.is_some();
    }
    let (key, value) = line.split_once('=').unwrap_or((line, ""));
    let key = key.trim().to_ascii_lowercase();
    // `ext::program` and its like are addresses that run something.
    let runs = matches!(key.as_str(), "url" | "pushurl") && value.contains("::");
    !runs && !value.contains(['"', '\\']) && known.contains(&key.as_str())
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
        for (text, stays) in [
            ("", true),
            (
                "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
                true,
            ),
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
            assert_eq!(harmless(text) == text, stays, "{text:?}");
        }
    }

    #[test]
    fn what_may_stay_stays_beside_what_may_not() {
        for (text, kept) in [
            (
                "[core]\n\tbare = false\n\tfsmonitor = evil\n[remote \"x\"]\n\turl = a\n",
                "[core]\n\tbare = false\n[remote \"x\"]\n\turl = a\n",
            ),
            // What follows a section that goes is not taken for the one before.
            (
                "[core]\n[alias]\n\tbare = !evil\n[user]\n\tname = n",
                "[core]\n[user]\n\tname = n",
            ),
            (
                "[core]\n\tx = y \\\n\tbare = false \\\n\tfsmonitor = evil\n",
                "[core]\n",
            ),
            // A part of the value before, and on its own no more than it says.
            (
                "[core]\n\tx = y \\\n\tbare = false\n",
                "[core]\n\tbare = false\n",
            ),
            ("\u{0}", ""),
        ] {
            assert_eq!(harmless(text), kept, "{text:?}");
        }
    }
}

//! What settings of git refer to inside a root: further files of settings, and folders of hooks.
//!
//! The repository's settings are read, the user's and the system's: a relative `core.hooksPath` of the user's names a
//! folder in every project. Conditions of includes are taken for true.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::HOOKS;

/// Where husky has its hooks.
const HUSKY: &str = ".husky";

/// Most bytes of one file of settings that are read; a large one has a page or two.
const MAX_BYTES: u64 = 256 * 1024;

/// Most files of settings that are read.
const MAX_FILES: usize = 32;

/// What git runs, by githooks(5) of git 2.47.
const NAMES: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// The text of a small ordinary file; `None` for anything else.
pub(super) fn text_at(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let found = rustix::fs::fstat(&opened).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut content = Vec::new();
    std::fs::File::from(opened)
        .take(MAX_BYTES)
        .read_to_end(&mut content)
        .ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// The paths below the root, of hooks and of settings, that settings refer to. `own` are the directories of git whose
/// settings hold in this root, `top` the folder of their work tree: the root, or one above it.
pub(super) fn inside(
    root: &Path,
    top: &Path,
    own: &[PathBuf],
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut waiting: Vec<PathBuf> = own
        .iter()
        .flat_map(|git| ["config", "config.worktree"].map(|name| git.join(name)))
        .collect();
    if let Some(home) = home {
        waiting.extend([".gitconfig", ".config/git/config"].map(|name| home.join(name)));
    }
    waiting.push(PathBuf::from("/etc/gitconfig"));
    waiting.reverse();
    let mut found = vec![PathBuf::from(HUSKY)];
    for git in own {
        if let Ok(target) = std::fs::read_link(git.join(HOOKS)) {
            hooks(
                root,
                &resolve(git, &target.to_string_lossy(), None),
                &mut found,
            );
        }
    }
    let mut read = Vec::new();
    while let Some(file) = waiting.pop() {
        if read.len() >= MAX_FILES || read.contains(&file) {
            continue;
        }
        let text = text_at(&file).unwrap_or_default();
        let folder = file.parent().unwrap_or(root).to_owned();
        read.push(file);
        for (key, value) in settings(&text) {
            match key {
                Key::Include => {
                    let named = resolve(&folder, &value, home);
                    found.extend(below(root, &named));
                    waiting.push(named);
                }
                // Of the root too: it becomes a work tree of its own when a command makes a repository of it.
                Key::HooksPath => [root, top]
                    .iter()
                    .for_each(|top| hooks(root, &resolve(top, &value, home), &mut found)),
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The folder itself where its name says that hooks are all it is for; else what git would run in it, and the rest of
/// it is a command's to change.
fn hooks(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    let Some(folder) = below(root, folder).or_else(|| (folder == root).then(PathBuf::new)) else {
        return;
    };
    if folder.starts_with(HUSKY) || folder.starts_with(".git/hooks") {
        return;
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('.') || name.to_lowercase().contains("hook") {
        found.push(folder);
    } else {
        found.extend(NAMES.iter().map(|name| folder.join(name)));
    }
}

/// The path below the root, never the root itself or one of git's own that are noted anyway.
fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix(root).ok()?;
    let is_noted = [".git/config", ".git/config.worktree"]
        .iter()
        .any(|own| below == Path::new(own));
    (!below.as_os_str().is_empty() && below != Path::new(".git") && !is_noted)
        .then(|| below.to_owned())
}

/// The absolute path that a value stands for, without `.` and `..`.
fn resolve(folder: &Path, value: &str, home: Option<&Path>) -> PathBuf {
    let joined = match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(value),
    };
    let mut path = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Include,
    HooksPath,
}

/// The values of settings that refer to something, in git's own syntax: rather one too many than one too few.
fn settings(text: &str) -> Vec<(Key, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in lines(text.trim_start_matches('\u{feff}')) {
        let mut rest = line.trim();
        if let Some(opened) = rest.strip_prefix('[') {
            let Some((name, after)) = closing(opened) else {
                continue;
            };
            let name = name.split([' ', '\t', '.', '"']).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            rest = after.trim();
        }
        let Some((key, value)) = rest.split_once('=') else {
            continue;
        };
        let key = match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("include" | "includeif", "path") => Key::Include,
            ("core", "hookspath") => Key::HooksPath,
            _ => continue,
        };
        let value = unquoted(value.trim());
        if !value.is_empty() {
            found.push((key, value));
        }
    }
    found
}

/// The lines, those that go on in the next joined with it.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for part in text.lines() {
        line.push_str(part);
        if goes_on(&line) {
            line.pop();
        } else {
            lines.push(std::mem::take(&mut line));
        }
    }
    lines.push(line);
    lines
}

/// Whether a line ends in a backslash that is not part of a remark.
fn goes_on(line: &str) -> bool {
    let mut quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return true,
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => return false,
            _ => {}
        }
    }
    false
}

/// Splits behind the bracket that closes a section's name, which may hold one in quotes.
fn closing(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    let end = text.find(|letter| {
        let is_end = letter == ']' && !quoted;
        if letter == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = letter == '\\' && !escaped;
        is_end
    })?;
    let (name, rest) = text.split_at_checked(end)?;
    Some((name, rest.strip_prefix(']')?))
}

/// A value without quotes, escapes and the remark behind it.
fn unquoted(value: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => text.extend(letters.next()),
            '#' | ';' if !quoted => break,
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_git_reads_them() {
        use Key::{HooksPath, Include};
        for (text, expected) in [
            (
                "[core]\n\thooksPath = .githooks\n",
                vec![(HooksPath, ".githooks")],
            ),
            (
                "[CORE] HooksPath=\"a b\" # remark\n",
                vec![(HooksPath, "a b")],
            ),
            ("[core]\n\thooksPath = a\\\n/b\n", vec![(HooksPath, "a/b")]),
            (
                "[include]\n\tpath = ../.gitconfig\n",
                vec![(Include, "../.gitconfig")],
            ),
            (
                "[includeIf \"onbranch:a]\"]\n\tpath = x ; remark\n",
                vec![(Include, "x")],
            ),
            ("[user]\n\tpath = x\n\thooksPath = y\n", vec![]),
            ("[core]\n\thooksPath =\n", vec![]),
            ("[broken\npath = x\n", vec![]),
            (
                "\u{feff}[core]\n# no more \\\nhooksPath = a\n",
                vec![(HooksPath, "a")],
            ),
            (
                "[core]\nx = y ; no more \\\nhooksPath = \"a ; \\\nb\"\n",
                vec![(HooksPath, "a ; b")],
            ),
        ] {
            let found = settings(text);
            let found: Vec<(Key, &str)> = found
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn what_lies_in_the_root_is_found_by_the_users_settings_too() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (root, home) = (place.join("home/project"), place.join("home"));
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(home.join(".gitconfig"), "[core]\n\thooksPath = tools\n");
        write(
            root.join(".git/config"),
            "[include]\n\tpath = ../.gitconfig\n\tpath = local\n\tpath = /etc/hosts\n",
        );
        write(
            root.join(".gitconfig"),
            "[include]\n\tpath = ~/project/more\n\tpath = .gitconfig\n[core]\n\thooksPath = deep/.hooks\n",
        );
        let found = inside(&root, &root, &[root.join(".git")], Some(&home));
        let mut expected: Vec<PathBuf> =
            [".husky", ".gitconfig", ".git/local", "more", "deep/.hooks"]
                .map(PathBuf::from)
                .into();
        expected.extend(NAMES.iter().map(|name| Path::new("tools").join(name)));
        expected.sort();
        assert_eq!(found, expected);
    }
}

//! What git is to do when the user goes on with a rebase or the like: lines that run a program stay only if they were
//! there before.

use std::ffi::OsStr;
use std::path::Path;

use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::put_back::Hand;
use crate::helper::removal;
use crate::repository::{Noted, Noter, ORDERS, kind};

/// Strategies of git's own; of another name is a program, maybe one in the work tree.
const STRATEGIES: [&str; 6] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// Lines of `sequencer/opts` in the form in which git writes them, without their value.
const OPTIONS: [&str; 13] = [
    "no-commit",
    "edit",
    "allow-empty",
    "allow-empty-message",
    "drop-redundant-commits",
    "keep-redundant-commits",
    "signoff",
    "record-origin",
    "allow-ff",
    "mainline",
    "strategy-option",
    "allow-rerere-auto",
    "default-msg-cleanup",
];

/// Takes out what a command added; `then` is what was there before.
pub(super) fn put_back(git: &Dir, at: &Path, then: &[(String, Noted)], hand: &mut Hand<'_>) {
    for (folder, names) in ORDERS {
        match kind(git, OsStr::new(folder)) {
            None => {}
            Some(FileType::Directory) => match removal::open(git, OsStr::new(folder)) {
                Ok(dir) => {
                    let at = at.join(folder);
                    names
                        .iter()
                        .for_each(|name| put_back_file(&dir, &at, name, then, hand));
                }
                Err(error) => hand.tell(&at.join(folder), Err(error)),
            },
            Some(_) => hand.make(git, at, OsStr::new(folder), None),
        }
    }
}

fn put_back_file(dir: &Dir, at: &Path, name: &str, then: &[(String, Noted)], hand: &mut Hand<'_>) {
    let mut noter = Noter::new(&[]);
    let Some(now) = noter.take(dir, OsStr::new(name), None) else {
        return;
    };
    let then = then.iter().find(|(known, _)| known == name);
    let then = match then {
        Some((_, Noted::File { content, .. })) => hand.kept.content(content).unwrap_or_default(),
        _ => Vec::new(),
    };
    let Some(content) = noter.content(&now) else {
        return hand.make(dir, at, OsStr::new(name), None);
    };
    let is_of_then = |line: &[u8]| lines(&then).any(|known| known == line);
    let kept: Vec<u8> = lines(content)
        .filter(|line| is_harmless(name, &String::from_utf8_lossy(line)) || is_of_then(line))
        .flatten()
        .copied()
        .collect();
    if kept != content {
        let noted = (!kept.is_empty()).then(|| Noted::file(&kept));
        hand.make(dir, at, OsStr::new(name), noted.as_ref());
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

fn is_harmless(name: &str, line: &str) -> bool {
    match name {
        "git-rebase-todo" => {
            let word = line
                .trim_start_matches([' ', '\t'])
                .split([' ', '\t', '\n', '\r', '\0']);
            !matches!(word.into_iter().next(), Some("exec" | "x"))
        }
        "strategy" => STRATEGIES.contains(&line.trim()),
        _ => {
            let line = line.trim();
            let (key, value) = line.split_once(" = ").unwrap_or((line, ""));
            let is_known = OPTIONS.contains(&key)
                || (key == "strategy" && STRATEGIES.contains(&value))
                || line == "[options]";
            is_known && !value.contains(['"', '\\', '\r'])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_no_program_stays() {
        for (name, line, harmless) in [
            ("git-rebase-todo", "pick 0123 exec\n", true),
            ("git-rebase-todo", "# exec a\n", true),
            ("git-rebase-todo", "\n", true),
            ("git-rebase-todo", "exec a\n", false),
            ("git-rebase-todo", "\t x\ta", false),
            ("git-rebase-todo", "x\0", false),
            ("strategy", "ort\n", true),
            ("strategy", "x/evil\n", false),
            ("opts", "[options]\n", true),
            ("opts", "\tedit = true\n", true),
            ("opts", "\tstrategy = ort\n", true),
            ("opts", "\tstrategy = x/evil\n", false),
            ("opts", "\tstrategy = o\\\n", false),
            ("opts", "[options] strategy = x/evil\n", false),
            ("opts", "[include] path = evil\n", false),
        ] {
            assert_eq!(is_harmless(name, line), harmless, "{name}: {line:?}");
        }
    }
}

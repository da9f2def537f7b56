//! What a walk leaves out: `.git`, and what ignore files say, by the rules of git.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::contents::open_regular;
use super::tree::below;

/// Largest ignore file obeyed, in bytes.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;

/// Files with rules on what to leave out, the stronger one last.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore"];

#[derive(Debug)]
pub(super) struct Ignored {
    rules: Vec<Option<Gitignore>>,
}

impl Ignored {
    /// Collects the rules of the folders above one, from the root downwards.
    pub(super) fn above(root: &Dir, relative: &str) -> Self {
        let mut ignored = Self { rules: Vec::new() };
        let Ok(mut dir) = root.try_clone() else {
            return ignored;
        };
        let mut path = String::new();
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            ignored.enter(&dir, &path);
            match dir.open_dir_nofollow(name) {
                Ok(next) => dir = next,
                Err(_) => break,
            }
            path = below(&path, OsStr::new(name));
        }
        ignored
    }

    pub(super) fn enter(&mut self, dir: &Dir, relative: &str) {
        self.rules.push(rules_of(dir, relative));
    }

    pub(super) fn leave(&mut self) {
        self.rules.pop();
    }

    /// Whether an entry is left out; the deepest folder's rules come first.
    pub(super) fn covers(&self, name: &OsStr, relative: &str, folder: bool) -> bool {
        if name == ".git" {
            return true;
        }
        let path = Path::new("/").join(relative);
        for rules in self.rules.iter().rev().flatten() {
            let decision = rules.matched(&path, folder);
            if !decision.is_none() {
                return decision.is_ignore();
            }
        }
        false
    }
}

fn rules_of(dir: &Dir, relative: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(Path::new("/").join(relative));
    let mut found = false;
    for name in IGNORE_FILES {
        let Ok(file) = open_regular(dir, Path::new(name), name) else {
            continue;
        };
        let mut text = Vec::new();
        if file.take(MAX_IGNORE_BYTES).read_to_end(&mut text).is_err() {
            continue;
        }
        for line in String::from_utf8_lossy(&text).lines() {
            // A line that is no glob ignores nothing, as in git.
            found |= builder.add_line(None, line).is_ok();
        }
    }
    found.then(|| builder.build().ok()).flatten()
}

//! What a walk leaves out: `.git`, and what ignore files say, by the rules of git.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::contents::open_regular;
use super::tree::below;

/// Largest ignore file obeyed, in bytes.
const MAX_IGNORE_BYTES: u64 = 256 * 1024;

/// Files with rules on what to leave out, the stronger one last.
pub(super) const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore"];

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
        leave_out(self.rules.iter().rev().flatten(), relative, folder)
    }
}

/// Whether rules, the stronger ones first, leave an entry out.
fn leave_out<'a>(
    rules: impl Iterator<Item = &'a Gitignore>,
    relative: impl AsRef<Path>,
    folder: bool,
) -> bool {
    let path = Path::new("/").join(relative);
    let decisions = rules.map(|rules| rules.matched(&path, folder));
    let mut decisions = decisions.skip_while(|decision| decision.is_none());
    decisions
        .next()
        .is_some_and(|decision| decision.is_ignore())
}

/// The rules of a folder and of those above it, for walks that keep no stack; clones are the same rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Option<Arc<Rule>>);

#[derive(Debug)]
struct Rule {
    own: Gitignore,
    above: Rules,
}

impl Rules {
    /// Returns the rules of a folder below, which has an ignore file.
    pub(super) fn below(&self, dir: &Dir, relative: &Path) -> Self {
        match rules_of(dir, &relative.to_string_lossy()) {
            Some(own) => Self(Some(Arc::new(Rule {
                own,
                above: self.clone(),
            }))),
            None => self.clone(),
        }
    }

    /// Whether they leave an entry out.
    pub(super) fn cover(&self, relative: &Path, folder: bool) -> bool {
        let all = std::iter::successors(self.0.as_ref(), |rule| rule.above.0.as_ref());
        leave_out(all.map(|rule| &rule.own), relative, folder)
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

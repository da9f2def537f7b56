//! Which places of a root's repositories are pinned while a command runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::look::look;
use super::{Baseline, Git, Leaf, Noted};
use crate::policy::{Pin, Pinned};
use crate::{Held, held};

/// Most worktrees and submodules that are pinned: each costs some mounts. The rest are put back like these.
const MAX_BELOW: usize = 16;

/// What is pinned for a command: settings and hooks, not the rest of the repository.
pub(super) fn of(baseline: &Baseline) -> Vec<Pin> {
    let mut pins = Vec::new();
    if let Git::Other(Noted::File { .. }) = &baseline.git {
        pins.push(pin(baseline.path.join(".git"), Pinned::ReadOnly));
    }
    for (git, inside) in &baseline.directories {
        let git = place(&baseline.path, git);
        let worktree_config = inside.worktree_config;
        pins.push(pin(git.clone(), Pinned::Repository { worktree_config }));
        let below = inside.below.iter().take(MAX_BELOW);
        pins.extend(below.flat_map(|(path, leaf)| below_one(&git, Path::new(path), leaf)));
    }
    // Outer ones first, each once: what is pinned below goes on top.
    pins.sort_by(|one, other| one.path.cmp(&other.path));
    pins.dedup_by(|one, other| one.path == other.path);
    pins
}

/// Also the folders on the way: one above a mount may be moved.
fn below_one(git: &Path, path: &Path, leaf: &Leaf) -> Vec<Pin> {
    let has_common = leaf
        .files
        .iter()
        .any(|(name, noted)| name == "commondir" && noted.is_some());
    let what = if has_common {
        Pinned::Worktree
    } else {
        Pinned::Repository {
            worktree_config: false,
        }
    };
    let folders: BTreeSet<&Path> = path
        .ancestors()
        .skip(1)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    let mut pins: Vec<Pin> = folders
        .into_iter()
        .map(|folder| pin(git.join(folder), Pinned::Folder))
        .collect();
    pins.push(pin(git.join(path), what));
    pins
}

/// What is pinned for a server, which runs for hours, and whose changes nobody puts back: the whole repository and
/// what hooks are outside of it.
pub(crate) fn servers(
    root: &Path,
    held: &[Held],
    home: Option<&Path>,
) -> (Vec<Pin>, Option<PathBuf>) {
    let Ok(opened) = held::open_dir(root, held) else {
        return (Vec::new(), None);
    };
    let baseline = look(opened, root, false, home, None).baseline;
    let mut pins = Vec::new();
    if baseline.git != Git::Missing {
        pins.push(pin(root.join(".git"), Pinned::ReadOnly));
    }
    for (git, inside) in &baseline.directories {
        let what = if git == "." {
            Pinned::Repository {
                worktree_config: inside.worktree_config,
            }
        } else {
            Pinned::ReadOnly
        };
        pins.push(pin(place(root, git), what));
    }
    let there = baseline
        .referenced
        .iter()
        .filter(|(_, noted)| noted.is_some());
    pins.extend(there.map(|(path, _)| pin(root.join(path), Pinned::ReadOnly)));
    for (dot, _) in baseline.gitlinks.dots.iter().take(MAX_BELOW) {
        let dot = root.join(dot);
        let folders = dot.ancestors().skip(1);
        let inside = folders.take_while(|folder| *folder != root);
        pins.extend(inside.map(|folder| pin(folder.to_owned(), Pinned::Folder)));
        pins.push(pin(dot, Pinned::ReadOnly));
    }
    pins.sort_by(|one, other| one.path.cmp(&other.path));
    pins.dedup_by(|one, other| one.path == other.path);
    (pins, baseline.outside)
}

fn place(root: &Path, git: &OsString) -> PathBuf {
    if git == "." {
        root.to_owned()
    } else {
        root.join(git)
    }
}

fn pin(path: PathBuf, what: Pinned) -> Pin {
    Pin { path, what }
}

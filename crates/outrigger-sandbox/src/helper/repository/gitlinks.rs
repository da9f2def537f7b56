//! Puts back what leads git, run at the top, into submodules in the work tree, and takes from those that a command made
//! what runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::cleanse::cleanse_kept;
use super::put_back::{Hand, put_aside};
use super::root::{cleanse_below, put_back_inside};
use crate::helper::removal;
use crate::real;
use crate::repository::{Baseline, Found, INDEX, Noted, State, at, below, follow, kind};

/// Puts back the submodules that were there, and cleanses those that the index names by now.
pub(super) fn put_back(root: &Dir, baseline: &Baseline, hand: &mut Hand<'_>) {
    let then = &baseline.gitlinks;
    for (path, noted) in &then.dots {
        if let Some(noted) = noted {
            put_back_dot(root, Path::new(path), noted, hand);
        }
    }
    for (path, inside) in &then.directories {
        let is_there = at(root, Path::new(path)).and_then(|(dir, name)| kind(&dir, &name));
        if is_there == Some(FileType::Directory) {
            put_back_inside(root, Path::new(path), inside, hand);
        }
    }
    let found = follow(root, &baseline.path, &then.indexes);
    let was_directory = |path: &Path| {
        let mut dots = then.dots.iter();
        dots.any(|(known, noted)| known == path.as_os_str() && noted.is_none())
    };
    let was_other = |path: &Path| {
        let mut dots = then.dots.iter();
        dots.any(|(known, noted)| known == path.as_os_str() && noted.is_some())
    };
    if then.complete {
        unreadable(root, baseline, &found, hand);
        let covered = covered(root, baseline, &found);
        for (path, target) in &found.dots {
            if !was_other(path) {
                let is_covered = target.as_ref().is_some_and(|it| covered.contains(it));
                cleanse_dot(root, path, is_covered, was_directory(path), hand);
            }
        }
    } else {
        let unseen =
            "submodules that were not all looked at, so that their changes cannot be undone";
        hand.tell(Path::new(".git/index"), Err(std::io::Error::other(unseen)));
    }
}

/// A file or link that leads to a directory of git. What was removed stays so; a directory in its place may be all
/// there is of the submodule, and is kept under another name.
fn put_back_dot(root: &Dir, path: &Path, noted: &Noted, hand: &mut Hand<'_>) {
    let Some((dir, name)) = at(root, path) else {
        return;
    };
    match kind(&dir, &name) {
        None => return,
        Some(FileType::Directory) => {
            let outcome = put_aside(&dir, OsStr::new(".git"));
            hand.tell(path, outcome.map(|()| true));
        }
        Some(_) => {}
    }
    hand.make(&dir, path.parent().unwrap_or(path), &name, Some(noted));
}

/// An index that git may read in another way than we did leads nobody anywhere under another name.
fn unreadable(root: &Dir, baseline: &Baseline, found: &Found, hand: &mut Hand<'_>) {
    let broken = found.indexes.iter().filter(|(git, index)| {
        let mut then = baseline.gitlinks.indexes.iter();
        let was_so = then.any(|(known, then)| known == git && then.state == index.state);
        !was_so && index.state != State::Read
    });
    let mut broken: Vec<&Path> = broken.map(|(git, _)| Path::new(git)).collect();
    if let (true, false, Some((git, _))) =
        (broken.is_empty(), found.complete, found.indexes.first())
    {
        broken.push(Path::new(git));
    }
    for git in broken {
        let shown = git.strip_prefix(&baseline.path).unwrap_or(git).join(INDEX);
        let opened = match git.strip_prefix(&baseline.path) {
            Ok(below) => root.open_dir(below),
            Err(_) => real::open_dir(git),
        };
        let outcome = opened.and_then(|git| put_aside(&git, OsStr::new(INDEX)));
        hand.tell(&shown, outcome.map(|()| true));
    }
}

/// A submodule that the command added, or gave a `.git`: nothing in it runs, and it leads to nothing that would.
fn cleanse_dot(root: &Dir, path: &Path, is_covered: bool, is_known: bool, hand: &mut Hand<'_>) {
    let Some((dir, name)) = at(root, path) else {
        return;
    };
    match kind(&dir, &name) {
        None => {}
        Some(FileType::Directory) if is_known => {}
        Some(FileType::Directory) => match removal::open(&dir, &name) {
            Ok(git) => {
                cleanse_kept(&git, path, hand);
                cleanse_below(&git, path, &below(&git), |_| false, hand);
            }
            Err(error) => hand.tell(path, Err(error)),
        },
        Some(FileType::RegularFile) if is_covered => {}
        Some(_) => {
            let outcome = put_aside(&dir, OsStr::new(".git"));
            hand.tell(path, outcome.map(|()| true));
        }
    }
}

/// The directories of git that belong to submodules and worktrees of those that are put back or cleansed themselves.
fn covered(root: &Dir, baseline: &Baseline, found: &Found) -> BTreeSet<PathBuf> {
    let own = baseline
        .directories
        .iter()
        .chain(&baseline.gitlinks.directories)
        .map(|(path, _)| baseline.path.join(path));
    let dots = found.dots.iter().map(|(dot, _)| baseline.path.join(dot));
    let made = std::iter::once(baseline.path.join(".git"));
    let places: BTreeSet<PathBuf> = own
        .chain(dots)
        .chain(made)
        .chain(baseline.outside.clone())
        .collect();
    let inside = |place: &PathBuf| {
        let opened = match place.strip_prefix(&baseline.path) {
            Ok(below) => at(root, below).and_then(|(dir, name)| removal::open(&dir, &name).ok()),
            Err(_) => real::open_dir(place).ok(),
        };
        let below = opened.map(|git| below(&git)).unwrap_or_default();
        let inner = below.modules.into_iter().chain(below.worktrees);
        inner.map(|inner| place.join(inner)).collect::<Vec<_>>()
    };
    places.iter().flat_map(inside).collect()
}

//! Puts one root back: `.git` itself, what is in it, what git runs from the work tree, and the root as a repository.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::cleanse::cleanse;
use super::put_back::{Hand, put_aside};
use super::{gitlinks, orders};
use crate::helper::removal;
use crate::repository::{
    Baseline, Below, Git, HOOKS, Inside, Leaf, Noted, below, is_git_directory, kind, stamp,
};

/// Where a linked worktree's directory says that its repository is.
const COMMON: &str = "../..\n";

/// Makes a root what it was; `opened` is the `.git` of then.
pub(super) fn put_back(root: &Dir, baseline: &Baseline, opened: Option<&Dir>, hand: &mut Hand<'_>) {
    let git = OsStr::new(".git");
    let top = Path::new("");
    match &baseline.git {
        Git::Itself => {}
        Git::Missing => cleanse_new(root, hand),
        Git::Other(noted) => hand.make(root, top, git, Some(noted)),
        Git::Directory { device, inode } => {
            let outcome = bring_back(root, &baseline.path, (*device, *inode), opened);
            hand.tell(Path::new(git), outcome);
        }
    }
    for (path, link) in &baseline.folders {
        lead_nowhere_else(root, Path::new(path), link.as_ref(), hand);
    }
    for (path, inside) in &baseline.directories {
        put_back_inside(root, Path::new(path), inside, hand);
    }
    for (path, noted) in &baseline.referenced {
        put_back_referenced(root, Path::new(path), noted.as_ref(), hand);
    }
    if baseline.directories.iter().all(|(path, _)| path != ".") {
        no_repository_of_its_own(root, baseline, hand);
    }
    if baseline.git != Git::Itself {
        gitlinks::put_back(root, baseline, hand);
    }
}

/// A link on the way to what is put back, through which this side cannot go, but git could: made what it was.
fn lead_nowhere_else(root: &Dir, path: &Path, link: Option<&Noted>, hand: &mut Hand<'_>) {
    let (parent, name) = split(path);
    let Ok(dir) = open_through(root, &parent) else {
        return;
    };
    if kind(&dir, &name) == Some(FileType::Symlink) && root.open_dir(path).is_err() {
        hand.make(&dir, &parent, &name, link);
    }
}

fn put_back_referenced(root: &Dir, path: &Path, noted: Option<&Noted>, hand: &mut Hand<'_>) {
    let (parent, name) = split(path);
    match open_through(root, &parent) {
        Ok(dir) => hand.make(&dir, &parent, &name, noted),
        // What was removed with its folder runs nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if noted.is_some() => hand.tell(path, Err(error)),
        Err(_) => {}
    }
}

/// A repository that was not there before: no hooks, and settings that name no program. Anything but a directory would
/// lead to one elsewhere.
fn cleanse_new(root: &Dir, hand: &mut Hand<'_>) {
    let (at, git) = (Path::new(".git"), OsStr::new(".git"));
    match kind(root, git) {
        None => {}
        Some(FileType::Directory) => match removal::open(root, git) {
            Ok(git) => {
                cleanse(&git, at, hand);
                cleanse_below(&git, at, &below(&git), |_| false, hand);
            }
            Err(error) => hand.tell(at, Err(error)),
        },
        Some(_) => hand.make(root, Path::new(""), git, None),
    }
}

/// The root is no repository by itself, and a command may not have made it one whose settings git would follow. What it
/// made is kept without what runs; where the user's files have names of git's, it is its `HEAD` that goes aside.
fn no_repository_of_its_own(root: &Dir, baseline: &Baseline, hand: &mut Hand<'_>) {
    if baseline.git == Git::Itself || !is_git_directory(root) {
        return;
    }
    if baseline.has_namesakes {
        let outcome = put_aside(root, OsStr::new("HEAD"));
        hand.tell(Path::new("HEAD"), outcome.map(|()| true));
    } else {
        cleanse(root, Path::new(""), hand);
        cleanse_below(root, Path::new(""), &below(root), |_| false, hand);
    }
}

/// Makes `.git` the directory again that it was, where that is still somewhere in the root; what took its place is put
/// aside under a name that git does not know.
fn bring_back(
    root: &Dir,
    root_path: &Path,
    original: (u64, u64),
    opened: Option<&Dir>,
) -> io::Result<bool> {
    let there = stamp(root, OsStr::new(".git"))?;
    if there.is_some_and(|(_, now)| now.identity() == original) {
        return Ok(false);
    }
    let found = opened.and_then(|opened| find(root, root_path, original, opened));
    let is_directory = there.is_some_and(|(kind, _)| kind == FileType::Directory);
    if there.is_none() && found.is_none() {
        // Removed, which is no worse than what else a command may remove.
        return Ok(false);
    }
    if there.is_some() && (found.is_some() || !is_directory) {
        put_aside(root, OsStr::new(".git"))?;
    }
    // Where it is gone, what took its place is made harmless by the caller.
    if let Some(path) = found {
        root.rename(path, root, ".git")?;
    }
    Ok(true)
}

/// Where an open directory is now, below the root.
fn find(root: &Dir, root_path: &Path, original: (u64, u64), opened: &Dir) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()?;
    let below = path.strip_prefix(root_path).ok()?;
    let (_, now) = stamp(root, below.as_os_str()).ok()??;
    (now.identity() == original).then(|| below.to_owned())
}

pub(super) fn put_back_inside(root: &Dir, path: &Path, inside: &Inside, hand: &mut Hand<'_>) {
    let at = if path == Path::new(".") {
        Path::new("")
    } else {
        path
    };
    let opened = match path.parent() {
        // Gives us the rights to it again where a command took them.
        Some(parent) if parent.as_os_str().is_empty() && path != Path::new(".") => {
            removal::open(root, path.as_os_str()).or_else(|_| root.open_dir(path))
        }
        _ => root.open_dir(path),
    };
    let git = match opened {
        Ok(git) => git,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return hand.tell(at, Err(error)),
    };
    put_back_leaf(&git, at, &inside.own, hand);
    for folder in ["modules", "worktrees"] {
        let is_users = inside.links.iter().any(|link| link == folder);
        let kind = kind(&git, OsStr::new(folder));
        if !is_users && kind.is_some_and(|kind| kind != FileType::Directory) {
            hand.make(&git, at, OsStr::new(folder), None);
        }
    }
    for (path, leaf) in &inside.below {
        if let Ok(dir) = git.open_dir_nofollow(path) {
            put_back_leaf(&dir, &at.join(path), leaf, hand);
        }
    }
    let found = below(&git);
    let is_known = |path: &Path| {
        let path = path.as_os_str();
        let known = inside
            .below
            .binary_search_by(|(known, _)| known.as_os_str().cmp(path));
        known.is_ok() || inside.links.iter().any(|link| link == path)
    };
    cleanse_below(&git, at, &found, is_known, hand);
    if !inside.complete {
        let unseen = io::Error::other("too many worktrees and submodules to look at all of them");
        hand.tell(at, Err(unseen));
    }
}

fn put_back_leaf(git: &Dir, at: &Path, leaf: &Leaf, hand: &mut Hand<'_>) {
    for (name, noted) in &leaf.files {
        hand.make_pinned(git, at, name, noted.as_ref());
    }
    hand.make_pinned(git, at, HOOKS, leaf.hooks.as_ref());
    orders::put_back(git, at, &leaf.orders, hand);
}

/// Worktrees and submodules that the command made: they belong to this repository and have nothing that runs.
pub(super) fn cleanse_below(
    git: &Dir,
    at: &Path,
    found: &Below,
    is_known: impl Fn(&Path) -> bool,
    hand: &mut Hand<'_>,
) {
    for path in found.links.iter().filter(|path| !is_known(path)) {
        let (parent, name) = split(path);
        if let Ok(dir) = open(git, &parent) {
            hand.make(&dir, &at.join(&parent), &name, None);
        }
    }
    for path in found.worktrees.iter().filter(|path| !is_known(path)) {
        if let Ok(dir) = git.open_dir_nofollow(path) {
            let at = at.join(path);
            let common = Noted::file(COMMON.as_bytes());
            hand.make(&dir, &at, OsStr::new("commondir"), Some(&common));
            hand.make(&dir, &at, OsStr::new("config.worktree"), None);
            orders::put_back(&dir, &at, &[], hand);
        }
    }
    for path in found.modules.iter().filter(|path| !is_known(path)) {
        if let Ok(dir) = git.open_dir_nofollow(path) {
            cleanse(&dir, &at.join(path), hand);
        }
    }
    if !found.complete {
        let unseen = io::Error::other("too many worktrees and submodules to look at all of them");
        hand.tell(at, Err(unseen));
    }
}

fn split(path: &Path) -> (PathBuf, OsString) {
    let parent = path.parent().unwrap_or(Path::new("")).to_owned();
    (parent, path.file_name().unwrap_or_default().to_owned())
}

fn open(dir: &Dir, path: &Path) -> io::Result<Dir> {
    if path.as_os_str().is_empty() {
        dir.try_clone()
    } else {
        dir.open_dir_nofollow(path)
    }
}

/// The same through links, those within the root.
fn open_through(root: &Dir, path: &Path) -> io::Result<Dir> {
    if path.as_os_str().is_empty() {
        root.try_clone()
    } else {
        root.open_dir(path)
    }
}

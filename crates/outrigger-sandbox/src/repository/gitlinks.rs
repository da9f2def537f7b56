//! Submodules in the work tree, by what git's index names: a git that is run at the top goes into each of them, with the
//! settings and hooks that their `.git` leads to, and from there into theirs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::Inside;
use super::index::{Budget, Index};
use super::look::is_git_directory;
use super::noted::{Noted, Noter, kind};

/// Most submodules that are followed.
const MAX_FOLLOWED: usize = 1_024;

/// Most names that are looked for in the work tree.
const MAX_LOOKED_FOR: usize = 64 * 1_024;

/// Submodules as they were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gitlinks {
    /// Each `.git` in the work tree, by its path below the root; nothing for a directory.
    pub(crate) dots: Vec<(OsString, Option<Noted>)>,
    /// Directories of git in the work tree.
    pub(crate) directories: Vec<(OsString, Inside)>,
    /// What was read of each index, by the directory of git that it is in.
    pub(crate) indexes: Vec<(OsString, Index)>,
    /// Whether all of them were followed.
    pub(crate) complete: bool,
}

/// Submodules as they are.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Each `.git`, and the directory that it leads to, if any.
    pub(crate) dots: Vec<(PathBuf, Option<PathBuf>)>,
    pub(crate) indexes: Vec<(OsString, Index)>,
    pub(crate) complete: bool,
}

/// Follows the submodules of a root whose path is canonical. `before` is what was read earlier.
pub(crate) fn follow(root: &Dir, path: &Path, before: &[(OsString, Index)]) -> Found {
    let mut found = Found {
        complete: true,
        ..Found::default()
    };
    // Work trees with their directories of git: that of the root, or the one that it is a part of.
    let mut waiting: Vec<(PathBuf, PathBuf)> = path
        .ancestors()
        .find_map(|top| Some((top.to_owned(), repository_of(top)?)))
        .into_iter()
        .collect();
    let mut seen = BTreeSet::new();
    let mut budget = Budget::default();
    let mut left = MAX_LOOKED_FOR;
    while let Some((tree, git)) = waiting.pop() {
        let of_git = |(known, _): &&(OsString, Index)| known == git.as_os_str();
        // Many work trees may say that they have the same.
        let again = found.indexes.iter().find(of_git).cloned();
        let is_again = again.is_some();
        let index = again.map_or_else(
            || {
                let known = before.iter().find(of_git).map(|(_, index)| index);
                Index::read(&git, known, &mut budget)
            },
            |(_, index)| index,
        );
        for link in &index.links {
            if left == 0 {
                found.complete = false;
                break;
            }
            left -= 1;
            let folder = tree.join(link);
            let Ok(below) = folder.strip_prefix(path) else {
                continue;
            };
            let dot = below.join(".git");
            let is_there = open_plainly(root, below)
                .is_some_and(|dir| kind(&dir, OsStr::new(".git")).is_some());
            if !is_there || !seen.insert(dot.clone()) {
                continue;
            }
            if found.dots.len() >= MAX_FOLLOWED {
                found.complete = false;
                break;
            }
            let git = target(&folder.join(".git"));
            waiting.extend(git.clone().map(|git| (folder, git)));
            found.dots.push((dot, git));
        }
        if !is_again {
            found.indexes.push((git.into_os_string(), index));
        }
    }
    found.dots.sort();
    found
}

/// The directory of git of a work tree; git looks further up where there is none, whatever its `.git` is.
fn repository_of(tree: &Path) -> Option<PathBuf> {
    let git = target(&tree.join(".git"))?;
    let opened = Dir::open_ambient_dir(&git, cap_std::ambient_authority()).ok()?;
    is_git_directory(&opened).then_some(git)
}

/// A folder, where no name on the way is a link: git passes over a submodule behind one.
fn open_plainly(root: &Dir, path: &Path) -> Option<Dir> {
    path.components()
        .try_fold(root.try_clone().ok()?, |dir, name| {
            dir.open_dir_nofollow(name).ok()
        })
}

/// The directory that a `.git` leads to.
fn target(dot: &Path) -> Option<PathBuf> {
    let (folder, name) = (dot.parent()?, dot.file_name()?);
    let kind = dot.symlink_metadata().ok()?.file_type();
    if !kind.is_file() {
        return dot.canonicalize().ok();
    }
    let folder = Dir::open_ambient_dir(folder, cap_std::ambient_authority()).ok()?;
    let mut noter = Noter::new(&[]);
    let file = noter.take(&folder, name, None)?;
    let named = noter.content(&file)?.strip_prefix(b"gitdir: ")?;
    let end = named
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let named = OsStr::from_bytes(named.get(..=end)?);
    dot.with_file_name(named).canonicalize().ok()
}

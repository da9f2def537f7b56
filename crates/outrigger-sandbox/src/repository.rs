//! What git would run outside of the sandbox: how it was before a command, so that it can be put back after it.
//!
//! The baseline of a root belongs to the daemon. It is taken when the first command that may write there starts, and
//! holds until the last of them has ended, so that two at a time cannot take each other's changes for the user's. Each
//! command's helper gets it in a sealed file of memory and puts back what differs when its processes are dead, also
//! when the daemon is killed meanwhile; where a helper was killed, the daemon starts another for that alone. Nothing
//! is ever put back or removed in the daemon itself: what lies there was made by a command.
//!
//! Here is what the daemon does: to look ([`look`]), to hand over ([`memory`]), to know who writes ([`epochs`]).
//! What the helper does is in `helper::repository`.

mod epochs;
mod gitlinks;
mod index;
mod look;
mod memory;
mod noted;
mod outside;
mod pins;
mod references;
mod tracked;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(super) use epochs::{Epochs, Started, Writer};
pub(super) use gitlinks::{Found, Gitlinks, follow};
pub(super) use index::{INDEX, State};
pub(super) use look::{Below, at, below, is_git_directory};
pub(super) use memory::Kept;
pub(super) use noted::{Content, Noted, Noter, Stamp, kind, names, stamp};
pub use tracked::is_tracked;
#[cfg(test)]
pub(super) use {look::look, memory::hand_over};

/// What git reads below its directory and a command has no business changing; what is missing stays so.
/// `remotes` and `branches` are an old way to say where remotes are.
pub(super) const FILES: [&str; 6] = [
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "remotes",
    "branches",
];

/// What git does when the user goes on with a rebase or cherry-pick, by the folder below git's directory: the user's
/// lines that run a program stay, a command's do not.
pub(super) const ORDERS: [(&str, &[&str]); 2] = [
    ("rebase-merge", &["git-rebase-todo", "strategy"]),
    ("sequencer", &["opts"]),
];

/// Where the hooks are, below git's directory.
pub(super) const HOOKS: &str = "hooks";

/// Most roots with a baseline that one command may have: the project, the central storage, and their repositories
/// elsewhere.
pub(super) const MAX_NOTED: usize = 8;

/// What stands in `commondir` while a command runs where there is none: "the repository is this directory". A command
/// could otherwise name another one, whose settings would outrank the pinned ones. The odd spelling is read as `.` by git
/// 2.47, libgit2 1.9.7, gitoxide (gix 0.87.1) and dulwich 1.2.21, tried 2026-11-22; other readers were not. By it the
/// file is known as ours, should it be left by a power cut.
pub(super) const COMMON_PLACEHOLDER: &[u8] = b"./././\n";

/// What is put at a missing name while a command runs, so that it can be pinned: `None` where nothing has to be.
pub(super) fn placeholder(name: &str) -> Option<&'static [u8]> {
    match name {
        "config" | "config.worktree" => Some(b""),
        "commondir" => Some(COMMON_PLACEHOLDER),
        _ => None,
    }
}

/// A root as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Baseline {
    pub(super) path: PathBuf,
    pub(super) git: Git,
    /// Directories of git by their path below the root: `.git`, what a `.git` file names, `.` for a bare repository.
    pub(super) directories: Vec<(OsString, Inside)>,
    /// Hooks and settings in the work tree, by their path below the root.
    pub(super) referenced: Vec<(OsString, Option<Noted>)>,
    /// The folders on the way to any of these, outer ones first, and the links among them: one that a command put there
    /// may lead around what is put back.
    pub(super) folders: Vec<(OsString, Option<Noted>)>,
    /// Whether the root has a `config` or `hooks` that are none of git's.
    pub(super) has_namesakes: bool,
    /// The repository of a linked worktree, where it lies outside the root.
    pub(super) outside: Option<PathBuf>,
    pub(super) gitlinks: Gitlinks,
}

/// What `.git` was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Git {
    /// The root is itself the directory of a repository whose work trees are elsewhere.
    Itself,
    Missing,
    /// Also the file of a linked worktree or submodule.
    Other(Noted),
    Directory {
        device: u64,
        inode: u64,
    },
}

/// What was noted in a directory of git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inside {
    pub(super) own: Leaf,
    /// Directories of linked worktrees and of submodules that were there, by their path.
    pub(super) below: Vec<(OsString, Leaf)>,
    /// Links among them.
    pub(super) links: Vec<OsString>,
    /// Whether all of them were looked at.
    pub(super) complete: bool,
    /// Whether the settings ask for `config.worktree` to be read.
    pub(super) worktree_config: bool,
}

/// Settings and hooks of one repository, worktree or submodule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) files: Vec<(String, Option<Noted>)>,
    pub(super) hooks: Option<Noted>,
    /// Those of [`ORDERS`] that were there, by name.
    pub(super) orders: Vec<(String, Noted)>,
}

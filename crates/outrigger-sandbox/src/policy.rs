//! What the daemon and its helper process say to each other: the policy one way, notices the other way.
//!
//! The helper's standard input is a stream socket. Its first message is one byte that carries descriptors: the
//! [`Task`] as JSON in a memory file, the program's standard input if it is a pipe, and one for each of
//! [`Policy::places`]. After that the daemon sends [`TERMINATE`]; the end of the stream means "kill everything",
//! whether the daemon asked for it or died. The helper answers with one [`Notice`] per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::git::Placeholder;
use super::layers::{Layers, SetupError};
use super::{Command, Exit, Mode};

/// Asks the helper to send SIGTERM to every process of the command.
pub(super) const TERMINATE: u8 = b'T';

/// Longest line of a notice, in bytes: texts in it are system errors with a path or two.
pub(super) const MAX_NOTICE_BYTES: usize = 64 * 1024;

/// Most places below held folders that a command may be given: the roots, and what an operator names for a server.
pub(super) const MAX_PLACES: usize = 64;

/// Most descriptors of the first message: the task, the input and the places. The kernel takes 253.
pub(super) const MAX_DESCRIPTORS: usize = 2 + MAX_PLACES;

/// Directories that are empty file systems of the command's own in full mode, which it may write to. So is the home.
pub(super) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// The command; nothing where another helper died and only its cleanup is to be done.
    pub(super) policy: Option<Policy>,
    pub(super) cleanup: Cleanup,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cleanup {
    /// Names that are taken while the command runs.
    pub(super) placeholders: Vec<Placeholder>,
    /// The command's own temporary directory, removed at the end.
    pub(super) private_tmp: Option<PathBuf>,
    /// The command's own control group, made by the daemon; the helper joins it and removes it.
    pub(super) cgroup: Option<PathBuf>,
}

impl Cleanup {
    /// Removes the temporary directory where nothing was put into it, whatever became of the helper.
    pub(super) fn remove_empty_tmp(&self) {
        if let Some(path) = &self.private_tmp {
            std::fs::remove_dir(path).unwrap_or_default();
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pin {
    pub(super) path: PathBuf,
    pub(super) what: Pinned,
}

/// How it is pinned; the stricter, the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Pinned {
    /// Cannot be moved.
    Folder,
    /// The directory of a linked worktree: cannot be moved, and the files that say where settings are are read-only.
    Worktree,
    /// A directory of git, likewise, and its settings and hooks.
    Repository,
    ReadOnly,
}

/// Everything the helper needs to know, resolved: it looks nothing up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) mode: Mode,
    /// The command, with what the daemon adds to its environment and to what it may read, change and not see.
    pub(super) command: Command,
    /// Those of `cwd`, `read_write` and `read_only` that were opened by the daemon, from folders that it holds.
    pub(super) places: Vec<PathBuf>,
    /// The user's home, hidden in full mode.
    pub(super) home: Option<PathBuf>,
    /// What is pinned in full mode, outer places first.
    pub(super) pins: Vec<Pin>,
    /// The command's own temporary directory; in full mode it is made in the command's own `/tmp`.
    pub(super) private_tmp: Option<PathBuf>,
    /// Most bytes in each of the private file systems of full mode.
    pub(super) private_bytes: usize,
    /// The newest version of Landlock's rules to use.
    pub(super) landlock: u8,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub(super) enum Notice {
    /// The layers are in place; the program is about to be executed.
    Confined(Layers),
    /// The program runs. The number is its process id as the daemon sees it, where it is the same one.
    Started { group: Option<i32> },
    /// A step failed and the program did not start.
    Failed(SetupError),
    /// No process of the command is left. Always sent; what follows is tidying up.
    Dead {},
    /// The program ended; its tree is dead or about to be killed by the kernel.
    Exited(Exit),
}

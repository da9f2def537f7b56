//! What the daemon and its helper process say to each other: the policy one way, notices the other way.
//!
//! The helper's standard input is a stream socket. Its first message is one byte that carries descriptors: the
//! [`Task`] as JSON in a memory file, the program's standard input if it is a pipe, two or three of a pod's namespaces, a socket on
//! which the daemon waits for what tells of stopped calls, one for each of [`Policy::places`], and the gate where the program
//! [`waits`](Task::waits) at one. Where that was [`Work::Prepare`] or [`Work::BeginPod`], a second one comes with the task itself and
//! no other descriptor but the gate. After that the daemon sends [`TERMINATE`]; the end of the stream means "kill everything",
//! whether the daemon asked for it or died. The helper answers with one [`Notice`] per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::git::Placeholder;
use super::ids::IdRange;
use super::layers::{Layers, SetupError};
use super::process::Reached;
use super::{Command, Exit, Mode};

/// Asks the helper to send SIGTERM to every process of the command.
pub(super) const TERMINATE: u8 = b'T';

/// Longest line of a notice, in bytes: texts in it are system errors with a path or two.
pub(super) const MAX_NOTICE_BYTES: usize = 64 * 1024;

/// Most places below held folders that a command may be given: the roots, and what an operator names for a server.
pub(super) const MAX_PLACES: usize = 64;

/// Most descriptors of the first message: the task, the input, three of a pod, the socket, the places and the gate. The kernel
/// takes 253.
pub(super) const MAX_DESCRIPTORS: usize = 7 + MAX_PLACES;

/// Directories that are empty file systems of the command's own in full mode, which it may write to. So is the home.
pub(super) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) work: Work,
    pub(super) cleanup: Cleanup,
    /// Whether the program waits at a gate: a pipe of which the daemon has the other end. A byte lets it through; where the pipe
    /// ends without one, it never runs.
    pub(super) waits: bool,
}

/// What a helper is for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// To run a command.
    Command(Box<Policy>),
    /// To make ready for a command with these surroundings ([`Policy::surroundings`]), and to wait for it.
    Prepare(Box<Policy>),
    /// To make the namespaces of a pod and send descriptors of them: of the user namespace, of the network, of a UDP socket on
    /// port 53 of 127.0.0.1, and of TCP sockets that listen on 127.0.0.1 and, where there is IPv6, on ::1. Where there are overlays
    /// a second message has the mount namespace, and a JSON list that says for each why there is none: empty where it was made.
    Pod {
        overlays: Vec<Overlay>,
        outside: Option<Outside>,
    },
    /// To make those of a pod without a user of its own before its [`Work::Pod`] is known, and send the first message. The task itself
    /// comes only where there are overlays.
    BeginPod,
    /// To make [`SOCKETS`] TCP sockets in the network of a pod and send them in one message.
    Sockets { pod: JoinedPod, loopback: Loopback },
    /// For nothing but the cleanup: another helper died, or a pod is no longer needed.
    Cleanup,
}

impl Task {
    /// Returns a task whose program, where it has one, waits for nobody.
    pub(super) fn new(work: Work, cleanup: Cleanup) -> Self {
        Self {
            work,
            cleanup,
            waits: false,
        }
    }

    pub(super) fn policy(&self) -> Option<&Policy> {
        match &self.work {
            Work::Command(policy) | Work::Prepare(policy) => Some(policy),
            Work::Pod { .. } | Work::BeginPod | Work::Sockets { .. } | Work::Cleanup => None,
        }
    }

    /// Returns the pod whose namespaces come as descriptors.
    pub(super) fn pod(&self) -> Option<JoinedPod> {
        match &self.work {
            Work::Command(policy) | Work::Prepare(policy) => policy.joins,
            Work::Sockets { pod, .. } => Some(*pod),
            Work::Pod { .. } | Work::BeginPod | Work::Cleanup => None,
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cleanup {
    /// Names that are taken while the command runs.
    pub(super) placeholders: Vec<Placeholder>,
    /// The command's own temporary directory, or a pod's folder; removed at the end.
    pub(super) private_tmp: Option<PathBuf>,
    /// The command's own control groups, made by the daemon; the worker joins them and the helper removes them.
    pub(super) cgroups: Vec<PathBuf>,
}

impl Cleanup {
    /// Removes the temporary directory where nothing was put into it.
    pub(super) fn remove_empty_tmp(&self) {
        let tmp = self.private_tmp.as_ref();
        tmp.map_or(Ok(()), std::fs::remove_dir).unwrap_or_default();
    }

    /// Returns whether nothing was put into the temporary directory, or there is none.
    pub(super) fn has_empty_tmp(&self) -> bool {
        let tmp = self.private_tmp.as_ref();
        tmp.is_none_or(|path| std::fs::read_dir(path).is_ok_and(|mut it| it.next().is_none()))
    }
}

/// Which user of the system a command is, seen from outside of its namespaces.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outside {
    /// The number of the user, and of the group.
    pub(super) id: u32,
    /// All those of which it is one.
    pub(super) range: IdRange,
}

/// A folder of the user's in an overlay: what is there is seen, and what is written goes to `upper`. All absolute and
/// canonical.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Overlay {
    pub(super) lower: PathBuf,
    pub(super) upper: PathBuf,
    /// On the file system of `upper`; the kernel's own.
    pub(super) work: PathBuf,
    /// Where both are seen as one, in the mount namespace of the pod.
    pub(super) merged: PathBuf,
}

/// The namespaces of a pod, which come as descriptors: of the user, of the network, and of the mounts where there is one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct JoinedPod {
    pub(super) has_mounts: bool,
}

/// A call at which the kernel stops a command until the daemon has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stop {
    Connect,
    Listen,
}

/// Which addresses of loopback a socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Loopback {
    V4,
    V6,
}

/// How many sockets a helper makes at a time.
pub(super) const SOCKETS: usize = 16;

/// A cache of the user's that a command sees below its home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SeenCache {
    /// Where it is, and is seen.
    pub(super) place: PathBuf,
    /// The overlay that is seen; the user's own, read-only, where there is none.
    pub(super) merged: Option<PathBuf>,
}

/// The folders of a pod: absolute, canonical, on a disk where there is one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PodFolders {
    pub(super) home: PathBuf,
    /// Seen as `/tmp`.
    pub(super) tmp: PathBuf,
    /// Seen as `/var/tmp`.
    pub(super) var_tmp: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) mode: Mode,
    /// Which user of the system it is, in full mode; `None` for the daemon's.
    pub(super) outside: Option<Outside>,
    /// The command, with what the daemon adds to its environment and to what it may read, change and not see.
    pub(super) command: Command,
    /// Those of `cwd`, `read_write` and `read_only` that were opened by the daemon, from folders that it holds.
    pub(super) places: Vec<PathBuf>,
    /// The user's home, hidden in full mode.
    pub(super) home: Option<PathBuf>,
    /// The folders that it shares with other commands; in full mode they are its home and temporary files.
    pub(super) pod: Option<PodFolders>,
    /// Where it lives in the user namespace and the network of a pod.
    pub(super) joins: Option<JoinedPod>,
    /// The calls at which it is stopped until the daemon has answered. Where there are any, a socket for that comes along.
    pub(super) stops: Vec<Stop>,
    /// The caches that it sees, in full mode.
    pub(super) caches: Vec<SeenCache>,
    /// Files about names, and what they say to the command, where the daemon looks names up for it.
    pub(super) names: Vec<(PathBuf, String)>,
    /// What is pinned in full mode, outer places first.
    pub(super) pins: Vec<Pin>,
    /// The command's own temporary directory; in full mode it is made in the command's own `/tmp`.
    pub(super) private_tmp: Option<PathBuf>,
    /// Most bytes in each of the private file systems of full mode.
    pub(super) private_bytes: usize,
    /// The newest version of Landlock's rules to use.
    pub(super) landlock: u8,
}

impl Policy {
    /// Returns whether the command's network is a namespace of its own, with a loopback and no way out.
    pub(super) fn has_own_network(&self) -> bool {
        self.mode == Mode::Full && self.command.network.is_own()
    }

    /// Returns what a helper can make ready before it knows the command: of two commands for which this is the same, the
    /// one can run in what was made for the other. What depends on files that come and go (secrets, repositories) is not in
    /// it, and looked at for each command.
    pub(super) fn surroundings(&self) -> Self {
        let mut surroundings = self.clone();
        let none = Command::new(String::new(), PathBuf::new());
        let command = &mut surroundings.command;
        command.program = none.program;
        command.args = none.args;
        command.cwd = none.cwd;
        command.env = none.env;
        command.hidden = none.hidden;
        command.repositories = none.repositories;
        command.limits = none.limits;
        // A pod must not be kept by what waits for its commands.
        command.pod = none.pod;
        command.held = none.held;
        surroundings.pins = Vec::new();
        surroundings
    }
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
    /// What its control groups counted. Comes when no process of the command is left.
    Reached(Reached),
    /// No process of the command is left. Always sent; what follows is tidying up, of which there may be nothing to be seen.
    Dead { is_tidy: bool },
    /// The program ended; its tree is dead or about to be killed by the kernel.
    Exited(Exit),
}

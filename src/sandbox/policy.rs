//! What the daemon and its helper process say to each other: the policy one way, notices the other way.
//!
//! The helper's standard input is a stream socket. Its first message is one byte that carries two or three
//! descriptors: the policy as JSON in a memory file, and the program's standard input if it is a pipe. After
//! that the daemon sends [`TERMINATE`]; the end of the stream means "kill everything", whether the daemon
//! asked for it or died. The helper answers with one [`Notice`] per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::layers::{Layers, Step};
use super::{Limits, Mode};

/// Asks the helper to send SIGTERM to every process of the command.
pub(super) const TERMINATE: u8 = b'T';

/// Longest line of a notice, in bytes: texts in it are system errors with a path or two.
pub(super) const MAX_NOTICE_BYTES: usize = 64 * 1024;

/// Everything the helper needs to know, resolved: it looks nothing up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) mode: Mode,
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    /// TCP ports that may be connected to; `None` is no network.
    pub(super) ports: Option<Vec<u16>>,
    pub(super) read_write: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// The user's home, hidden in full mode.
    pub(super) home: Option<PathBuf>,
    /// The command's own temporary directory; the helper removes it at the end.
    pub(super) private_tmp: Option<PathBuf>,
    pub(super) limits: Limits,
    /// The command's own control group, made by the daemon; the helper joins it.
    pub(super) cgroup: Option<PathBuf>,
}

/// What the helper reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub(super) enum Notice {
    /// The layers are in place; the program is about to be executed.
    Confined(Layers),
    /// The program runs. The number is its process id as the daemon sees it, where it is the same one.
    Started { group: Option<i32> },
    /// A step failed and the program did not start.
    Failed { step: Step, reason: String },
    /// The program ended; its tree is dead or about to be killed by the kernel.
    Exited {
        status: i32,
        cpu_ms: u64,
        max_rss_bytes: u64,
    },
}

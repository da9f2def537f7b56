//! What a tool asks for when it starts a program: the program, its surroundings and what it may reach.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::{Held, Pod};

/// TCP ports a command with the network on may connect to: ssh, http, https, git.
pub const DEFAULT_PORTS: [u16; 4] = [22, 80, 443, 9418];

/// Most bytes of a host's name, by RFC 1035.
#[cfg(unix)]
const MAX_NAME: usize = 253;

/// One program to run under control.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Absolute path, or a bare name that is looked up in the `PATH` of `env`.
    pub program: String,
    /// Arguments after the program's own name.
    pub args: Vec<String>,
    /// Absolute working directory.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited. See [`environment`](super::environment).
    pub env: BTreeMap<String, String>,
    /// Whether it may talk to the network.
    pub network: Network,
    /// What its standard input is.
    pub stdin: Stdin,
    /// Absolute, canonical directories it may change. Each must exist.
    pub read_write: Vec<PathBuf>,
    /// The folders that the daemon holds open. What lies in one of them is reached through it, and the command is refused
    /// where one is not at its path any more.
    ///
    /// Handles cannot be written down: a copy that serde made has none, and works in whatever is at its paths.
    #[serde(skip)]
    pub held: Vec<Held>,
    /// Further absolute paths it may read and execute; those that do not exist are passed over.
    pub read_only: Vec<PathBuf>,
    /// Files and directories inside `read_write` that it must not read. Enforced in [`Mode::Full`](super::Mode) only.
    pub hidden: Vec<PathBuf>,
    /// What it may do to git repositories. Enforced in [`Mode::Full`](super::Mode) only.
    pub git: GitAccess,
    /// Further `.git` entries, below the top of `read_write`: of submodules and nested repositories. Absolute.
    pub repositories: Vec<PathBuf>,
    /// Limits of the kernel for each of its processes.
    pub limits: Limits,
    /// Gives it a directory of its own as `TMPDIR` and `XDG_RUNTIME_DIR`, removed when it ends. A pod's are used where there
    /// is one.
    pub private_tmp: bool,
    /// Whose command it is, by the name that the daemon has for them; `None` for one of the daemon's own, such as an MCP
    /// server. With [`Settings::user_ids`](super::Settings) each name is another user of the system.
    #[serde(skip)]
    pub user: Option<String>,
    /// What it shares with other commands, from [`Mode::Fallback`](super::Mode) on.
    #[serde(skip)]
    pub pod: Option<Pod>,
    /// Who decides which hosts it may connect to, with [`Network::Outgoing`]; `None`: all.
    #[serde(skip)]
    pub hosts: Option<mpsc::Sender<HostQuestion>>,
    /// Takes note of ports that it may not connect to and wanted, with [`Network::Outgoing`].
    #[serde(skip)]
    pub refused_ports: RefusedPorts,
    /// Who is told of TCP ports on which it begins to listen, in a pod in [`Mode::Full`](super::Mode).
    #[serde(skip)]
    pub listening: Option<mpsc::Sender<u16>>,
}

/// A command wants to connect to a host.
///
/// The daemon looks the name up after the answer, and connects to nothing that is private to a machine, nor to what is private
/// to a network but for what the answer names: a name can lead anywhere.
#[derive(Debug)]
pub struct HostQuestion {
    /// The host, as the command named it.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
    /// The answer; dropping it refuses.
    pub answer: oneshot::Sender<HostAnswer>,
    /// Why there is no address to connect to, after an answer that allowed the host; dropped where there is one.
    pub no_address: oneshot::Receiver<String>,
}

/// An answer to a [`HostQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAnswer {
    /// It may not connect.
    Refused,
    /// It may.
    Allowed {
        /// Addresses of private networks that a name may lead to.
        private: Vec<IpAddr>,
    },
}

/// Ports of hosts that a command wanted to connect to and that are none of its [`Ports`], as far as the daemon connects for it.
/// Clones are one list.
#[derive(Debug, Clone, Default)]
pub struct RefusedPorts(Arc<Mutex<Vec<(Host, u16)>>>);

impl RefusedPorts {
    /// Most that are noted; a command may try every port there is.
    pub const MOST: usize = 10;

    /// Returns each once, in the order in which they were first refused.
    pub fn list(&self) -> Vec<(Host, u16)> {
        self.0.lock().clone()
    }

    /// Takes note of one.
    #[cfg(unix)]
    pub(crate) fn note(&self, host: &Host, port: u16) {
        let mut noted = self.0.lock();
        let is_noted = noted.iter().any(|it| (&it.0, it.1) == (host, port));
        if !is_noted && noted.len() < Self::MOST {
            noted.push((host.clone(), port));
        }
    }
}

/// A host that a command names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// In lower case, without a dot at the end.
    Name(String),
    /// Where it has looked up no name.
    Address(IpAddr),
}

impl Host {
    /// Reads what a program calls a host; `None` for a name that no host has.
    #[cfg(unix)]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        let name = text.to_ascii_lowercase();
        let is_usual = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        let is_host = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_usual);
        is_host.then_some(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Command {
    /// Returns a command with an empty environment, no network, no input, no writable directory and the default limits.
    pub fn new(program: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: BTreeMap::new(),
            network: Network::Off,
            stdin: Stdin::Null,
            read_write: Vec::new(),
            held: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            git: GitAccess::ReadOnly,
            repositories: Vec::new(),
            limits: Limits::default(),
            private_tmp: true,
            user: None,
            pod: None,
            hosts: None,
            refused_ports: RefusedPorts::default(),
            listening: None,
        }
    }
}

/// What a command may do to the repositories in the directories that it may change; the later, the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GitAccess {
    /// Every repository is read-only, and none can be made at the top of a root.
    ReadOnly,
    /// Repositories that exist are read-only: for programs that run for hours, beside which the user works.
    ExistingReadOnly,
    /// Repositories that exist may be changed, but not their settings and hooks; none can be made at the top of a root.
    Write,
    /// The same, and repositories may be made anywhere: for `git` without a shell.
    Create,
    /// The same, and linked worktrees and submodules may be set up and removed: for a `git` that does only that.
    Nested,
}

/// Whether a command may talk to the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Loopback of its own, or of its pod, where there are namespaces; below that no socket but a local one among its own
    /// processes.
    Off,
    /// The same, and connections to other machines, which the daemon makes for it: TCP to these ports, and names looked up.
    /// Without a pod, and where there are no namespaces, as [`Network::Host`]; not at all where `hosts` decides.
    Outgoing(Ports),
    /// The machine's network: TCP to these ports of any host (where the kernel can tell ports apart), and UDP.
    Host(Ports),
}

impl Network {
    /// Returns whether it is a namespace of the command's or its pod's, where there are namespaces.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_own(&self) -> bool {
        !matches!(self, Self::Host(_))
    }
}

/// TCP ports that a command may connect to. The daemon's own is always taken out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ports {
    /// All of them.
    Any,
    /// These. See [`DEFAULT_PORTS`].
    Only(Vec<u16>),
}

/// What a command reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// The end of file at once.
    Null,
    /// A pipe whose other end is [`Process::stdin`](super::Process::stdin).
    Piped,
}

/// Limits of a command: of each of its processes, and of all together where there is a control group. `None` leaves what the
/// daemon has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time of each process, rounded up to whole seconds; then SIGXCPU, one second later SIGKILL.
    pub cpu: Option<Duration>,
    /// Largest file it may write, in bytes. Default 2 GiB.
    pub file_size: Option<u64>,
    /// Processes and threads of the command. Default 512; no effect for uid 0 without a control group.
    pub processes: Option<u64>,
    /// Open files. Default 4096.
    pub open_files: Option<u64>,
    /// Private writable memory of each process, in bytes, where no control group counts that of all. Default 3 GiB. Memory
    /// that processes share is not counted.
    pub data: Option<u64>,
    /// Memory of all processes of the command together, in bytes, where there is a control group; `None` is three quarters
    /// of the machine's.
    pub memory: Option<u64>,
    /// Processor time of all its processes together, in percent of one processor, where there is a control group.
    pub cpu_percent: Option<u64>,
}

impl Limits {
    /// Returns the memory of all its processes together, in bytes.
    pub fn total_memory(&self) -> u64 {
        self.memory.unwrap_or_else(three_quarters_of_the_machine)
    }
}

#[cfg(target_os = "linux")]
fn three_quarters_of_the_machine() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    bytes / 4 * 3
}

#[cfg(windows)]
fn three_quarters_of_the_machine() -> u64 {
    crate::windows::memory_of_the_machine().map_or(u64::MAX, |bytes| bytes / 4 * 3)
}

/// Nothing bounds it there.
#[cfg(not(any(target_os = "linux", windows)))]
fn three_quarters_of_the_machine() -> u64 {
    u64::MAX
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu: None,
            file_size: Some(2 << 30),
            processes: Some(512),
            open_files: Some(4096),
            data: Some(3 << 30),
            memory: None,
            cpu_percent: None,
        }
    }
}

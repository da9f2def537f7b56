//! `[tools.bash]`.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::word;
use crate::config::hosts::{HostEntry, PortList};
use crate::permission::NetworkPolicy;
use crate::sandbox::paths::Reach;
use crate::sandbox::{Limits, Mode};
use crate::units::{DAY, MIB, Number, Percent, Size, Span};

/// Settings of `bash`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashConfig {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// How long a command may run that asks for nothing else; up to `max_timeout`. One in the background has no limit but
    /// its own.
    #[serde(with = "Span::<1, DAY>")]
    pub timeout: Duration,
    /// The longest a command may ask for; up to 24h.
    #[serde(with = "Span::<1, DAY>")]
    pub max_timeout: Duration,
    /// Whether commands may use the network: `ask` (the command asks for it and the user decides),
    /// `on` or `off`.
    #[serde(deserialize_with = "word")]
    pub network: NetworkPolicy,
    /// TCP ports of other machines that commands with the network may connect to: a list, or `"any"`. Where the sandbox is
    /// `full`, a result names the ports of hosts that its command was refused.
    pub ports: PortList,
    /// With `network = "ask"` and a sandbox that is `full` (on macOS `unverified`): hosts that each command may connect to. Others are asked for one
    /// by one, once in a conversation, in the place of the question for the network as a whole. Names, `*.example.org` for all
    /// below, addresses, and `npm`, `pnpm`, `yarn`, `pip`, `uv`, `cargo`, `go`, `maven` or `gradle` for the hosts that the user's own settings of it
    /// name, which `outrigger config show` lists; commands are told of these registries. A name must lead to public addresses, or to private ones that are listed themselves. Some registries serve
    /// packages from a host that no setting names, so the user is asked for it, unless it is listed, too: `["pip", "files.pythonhosted.org"]` for PyPI, `["cargo", "index.crates.io", "static.crates.io"]` for crates.io, `["maven", "repo.maven.apache.org"]` for Maven. Empty: no command has the network unless it asks for it.
    pub hosts: Vec<HostEntry>,
    /// `auto` for the strongest sandbox that works here, `off` for none. On macOS and Windows `auto` is none, and `unverified`
    /// uses what was built for these systems and never tried on a real one; on Linux it is the same as `auto`.
    #[serde(deserialize_with = "word")]
    pub sandbox: SandboxPolicy,
    /// What commands may do to git repositories, where the sandbox is `full`: `read`, or `write` for all but settings
    /// and hooks. The tool `git` may always write.
    #[serde(deserialize_with = "word")]
    pub git: GitPolicy,
    /// Whether commands that may change files run side by side, and beside what else changes files. Where not, they run
    /// one after the other, in all conversations of a project; what only reads waits for writes of its own turn alone, and one in the background runs beside all
    /// others. The tools of `[tools.custom]` are as commands are. Calls of `git` that change something always exclude each other.
    pub parallel: bool,
    /// Most of what is in memory where the sandbox is `full`: `/dev/shm` of a command, and as much again each for the
    /// temporary files and the home of `git` and of MCP servers; 1MiB to 64GiB.
    #[serde(with = "Size::<MIB, { 64 * 1024 * MIB }>")]
    pub tmp_size: usize,
    /// Further folders that commands may read, from the root on or `~/…`; not by the tools for files.
    pub read_only: Vec<PathBuf>,
    /// The same, to be changed too. Refused at the start: folders of the system, the home and those in it whose names begin
    /// with a dot, what is reached through a link, and what the daemon itself keeps.
    pub read_write: Vec<PathBuf>,
    /// Caches of your package managers that commands see below their home where the sandbox is `full`: `npm`, `cargo`,
    /// `go`, `pip`, `uv`, `maven`, `gradle`, `pnpm`, `yarn`. What a command writes there is its conversation's; yours do not
    /// change. They may hold packages of private registries.
    pub caches: Vec<String>,
    /// Whether a client may have this machine's loopback lead to a port on which a command in the background listens, for
    /// the user to look at it: `ask` (a client may request it with `tool:expose`; no further question is put) or `off`.
    #[serde(deserialize_with = "word")]
    pub expose: ExposePolicy,
    /// What one command may take: of `bash`, of `git`, and of a tool of your own.
    pub limits: BashLimits,
}

/// What one command may take. MCP servers have the defaults.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashLimits {
    /// Memory of all its processes together, by a control group; 16MiB to 16384GiB. Where there is none, the private memory
    /// of each of them. Empty: three quarters of the machine's, and 3GiB each.
    #[serde(deserialize_with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>::optional")]
    #[schemars(with = "Size::<{ 16 * MIB }, { 16384 * 1024 * MIB }>")]
    pub memory: Option<u64>,
    /// Processor time of all its processes together, in percent of one processor, by a control group; `1%` to `100000%`.
    /// Empty: all there is.
    #[serde(deserialize_with = "Percent::<1, 100_000>::optional")]
    #[schemars(with = "Percent::<1, 100_000>")]
    pub cpu: Option<u64>,
    /// Processes and threads together; 16 to 1000000. They bind root by a control group only.
    #[serde(with = "Number::<16, 1_000_000>")]
    pub processes: u64,
    /// Largest file that it may write; 1MiB to 16384GiB.
    #[serde(with = "Size::<MIB, { 16384 * 1024 * MIB }>")]
    pub file_size: u64,
    /// What a conversation's home, temporary files and additions to caches hold together; 1MiB to 16384GiB. A command that
    /// makes them hold more is ended.
    #[serde(with = "Size::<MIB, { 16384 * 1024 * MIB }>")]
    pub disk: u64,
}

impl BashConfig {
    /// Returns what of it has no effect where commands are confined like this, one sentence each.
    pub fn without_effect(&self, mode: Mode) -> Vec<String> {
        // What else keeps the list from having one, the check of the configuration says.
        let asks = self.sandbox != SandboxPolicy::Off && self.network == NetworkPolicy::Ask;
        let hosts = (asks && !self.hosts.is_empty() && !mode.decides_by_hosts()).then(|| {
            format!(
                "tools.bash.hosts has no effect in mode {mode}: a command that needs the network is asked about as a whole"
            )
        });
        // Below that the home is the user's.
        let caches = (!self.caches.is_empty() && mode == Mode::Fallback).then(|| {
            format!(
                "tools.bash.caches has no effect in mode {mode}: commands begin with empty ones"
            )
        });
        hosts.into_iter().chain(caches).collect()
    }

    /// Returns whether every command has the network.
    pub fn is_online(&self) -> bool {
        self.network == NetworkPolicy::On
    }

    /// Returns the further folders, each with what commands may do in it.
    pub fn further(&self) -> Vec<(PathBuf, Reach)> {
        let read_only = self.read_only.iter().map(|it| (it, Reach::ReadOnly));
        let read_write = self.read_write.iter().map(|it| (it, Reach::ReadWrite));
        let all = read_only.chain(read_write);
        all.map(|(folder, reach)| (folder.clone(), reach)).collect()
    }
}

impl BashLimits {
    /// Returns them as the sandbox takes them.
    pub fn of_commands(&self) -> Limits {
        let default = Limits::default();
        Limits {
            memory: self.memory,
            data: self.memory.or(default.data),
            cpu_percent: self.cpu,
            processes: Some(self.processes),
            file_size: Some(self.file_size),
            ..default
        }
    }
}

/// Whether ports of commands may be reached from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExposePolicy {
    /// A client may ask for it.
    #[default]
    Ask,
    /// Never.
    Off,
}

/// What commands of `bash` may do to git repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GitPolicy {
    /// They read them.
    #[default]
    Read,
    /// They change them, but not their settings and hooks.
    Write,
}

/// Whether commands run in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPolicy {
    /// In the strongest mode that works here.
    #[default]
    Auto,
    /// Likewise, and on macOS and Windows in what nobody tried there yet.
    Unverified,
    /// Without any layer; processes are still controlled.
    Off,
}

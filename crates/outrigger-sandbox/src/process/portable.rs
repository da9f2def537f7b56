//! Other systems: a process group that is killed as a whole, by the daemon or, where that is killed, by its lifeline; and no
//! confinement unless it is asked for ([`Mode::Unverified`]: `sandbox-exec` of macOS). Never run on a real machine, only
//! compiled.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::Signal;
use tokio::process::{ChildStdin, Command as Spawner};

use super::leader::{Leader, Register};
use super::{Exit, Process, Purpose, SpawnError};
use crate::destinations::Destinations;
use crate::layers::{Layers, LimitsReport};
use crate::proxy::{ByRules, Proxy};
use crate::seatbelt::{self, Confinement};
use crate::{Command, Mode, Network, Shared, Stdin};

pub(super) type StdinPipe = ChildStdin;

#[derive(Debug)]
pub(super) struct Tree {
    leader: Leader,
    /// These go with it.
    _private: Option<PrivateFolder>,
    _proxy: Option<Proxy>,
}

/// A home and a place for temporary files of one command's own, removed when it is dropped.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one. Does file I/O.
    fn make(parent: &Path) -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let path = parent.join(format!("outrigger-{number:016x}"));
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        // Fails if it exists: nobody can have put one there for us.
        builder.create(&path)?;
        let made = Self(path);
        builder.create(made.home())?;
        builder.create(made.temporary())?;
        Ok(made)
    }

    fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
        let remove = move || {
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(%error, folder = %path.display(), "a command's temporary files stay");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// A command as it is started: through what confines it, where something does.
struct Start {
    spawner: Spawner,
    layers: Layers,
    private: Option<PrivateFolder>,
    proxy: Option<Proxy>,
}

impl Start {
    fn plain(command: &Command) -> Self {
        let mut spawner = Spawner::new(&command.program);
        spawner.args(&command.args).env_clear().envs(&command.env);
        Self {
            spawner,
            layers: Layers::default(),
            private: None,
            proxy: None,
        }
    }

    async fn confined(shared: &Shared, command: &Command) -> Result<Self, SpawnError> {
        let (parent, wanted) = (shared.settings.temporary.clone(), command.clone());
        let prepare = move || {
            check_program(&wanted)?;
            PrivateFolder::make(&parent).map_err(SpawnError::Helper)
        };
        let private = tokio::task::spawn_blocking(prepare)
            .await
            .map_err(|error| SpawnError::Helper(io::Error::other(error)))??;
        let proxy = proxy(shared, command).await?;
        let confinement = Confinement {
            command,
            private: &private.0,
            toolchains: &shared.toolchains,
            own_port: shared.own_port.get().copied(),
            proxy: proxy.as_ref().map(Proxy::port),
        };
        let arguments = confinement
            .arguments()
            .map_err(|error| SpawnError::Refused(format!("({error})")))?;
        let mut spawner = Spawner::new(seatbelt::PROGRAM);
        spawner.args(arguments).env_clear().envs(&command.env);
        // The user's own proxy could not be reached.
        spawner.envs(proxy.iter().flat_map(Proxy::variables));
        spawner.env("TMPDIR", private.temporary());
        let home = command.env.get("HOME").map(Path::new);
        // A home that it was given, as MCP servers are, stays.
        if !command
            .read_write
            .iter()
            .any(|root| home.is_some_and(|home| home.starts_with(root)))
        {
            spawner.env("HOME", private.home());
        }
        Ok(Self {
            spawner,
            layers: Layers {
                unverified: &["seatbelt"],
                ..Layers::default()
            },
            private: Some(private),
            proxy,
        })
    }
}

/// Starts the proxy of a command for which hosts are decided about.
async fn proxy(shared: &Shared, command: &Command) -> Result<Option<Proxy>, SpawnError> {
    let (Network::Outgoing(ports), Some(hosts)) = (&command.network, &command.hosts) else {
        return Ok(None);
    };
    let own_port = shared.own_port.get().copied();
    let destinations = Destinations::new(
        ports.clone(),
        own_port,
        Some(hosts.clone()),
        command.refused_ports.clone(),
    );
    let started = Proxy::start(ByRules::new(destinations)).await;
    started.map(Some).map_err(SpawnError::Helper)
}

/// Whether there is such a program: `sandbox-exec` says the same with an exit code like any other. Does file I/O.
fn check_program(command: &Command) -> Result<(), SpawnError> {
    let name = Path::new(&command.program);
    let path = command.env.get("PATH").map_or("", String::as_str);
    let found = match name.components().count() {
        1 => std::env::split_paths(path).any(|folder| folder.join(name).is_file()),
        _ => command.cwd.join(name).is_file(),
    };
    match found {
        true => Ok(()),
        false => Err(SpawnError::Program {
            reason: format!("{}: no such program", command.program),
        }),
    }
}

pub(crate) async fn spawn(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    _purpose: Purpose,
    may_begin: impl Future<Output = bool>,
) -> Result<Process, SpawnError> {
    if !may_begin.await {
        return Err(SpawnError::Unwanted);
    }
    let Start {
        mut spawner,
        layers,
        private,
        proxy,
    } = match mode {
        Mode::Unverified => Start::confined(shared, command).await?,
        Mode::None | Mode::Limits | Mode::Fallback | Mode::Full => Start::plain(command),
    };
    spawner
        .current_dir(&command.cwd)
        .stdin(match command.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let lifeline = Arc::clone(&shared.state.lifeline);
    let register: Arc<dyn Register> = Arc::clone(&lifeline) as _;
    tokio::task::spawn_blocking(move || lifeline.prepare())
        .await
        .map_err(|error| SpawnError::Helper(io::Error::other(error)))?;
    let mut leader =
        Leader::start(&mut spawner, register).map_err(|error| SpawnError::Program {
            reason: format!("{}: {error}", command.program),
        })?;
    let (stdin, stdout, stderr) = leader.pipes();
    Ok(Process {
        stdin,
        stdout,
        stderr,
        layers,
        tree: Tree {
            leader,
            _private: private,
            _proxy: proxy,
        },
    })
}

impl Process {
    /// Waits for the program's end, and kills what it left running.
    ///
    /// Cancel-safe; gives the same answer when called again.
    pub async fn wait(&mut self) -> Exit {
        let status = self.tree.leader.wait().await.ok();
        Exit {
            code: status.and_then(|status| status.code()),
            signal: status
                .and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)),
            cpu_ms: 0,
            max_rss_bytes: 0,
        }
    }

    /// Asks the group to end, where there is a way to ask.
    pub fn terminate(&self) {
        self.tree.leader.signal(Signal::TERM);
    }

    /// Kills the group. What left it (`setsid`) lives on.
    pub fn kill(&self) {
        self.tree.leader.signal(Signal::KILL);
    }
}

/// Describes a shell that exits with 7, to try with.
pub(crate) fn trial(_shared: &Shared) -> Command {
    Command {
        args: ["-c", "exit 7"].map(str::to_owned).into(),
        ..Command::new("/bin/sh", std::env::temp_dir())
    }
}

pub(crate) async fn limits(_shared: &Shared) -> LimitsReport {
    LimitsReport::NONE
}

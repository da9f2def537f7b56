//! Processes under control, confined where the kernel can, and files by handles.
//!
//! [`Sandbox::spawn`] runs a [`Command`] under a small supervising process (this same binary, see [`helper`]) that applies
//! the layers of the [`Mode`] and kills the whole tree when the command or the daemon ends. [`paths`] opens files beneath
//! the roots, [`deny`] says which of them are secret. Whether a command may run at all is decided elsewhere.

mod addresses;
pub mod caches;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod closed;
pub mod command;
pub mod deny;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(unix)]
mod destinations;
pub mod environment;
#[cfg(target_os = "linux")]
mod git;
mod held;
#[cfg(target_os = "linux")]
pub mod helper;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "process/lifeline/helper.rs"]
pub mod helper;
#[cfg(windows)]
#[path = "windows/helper.rs"]
pub mod helper;
mod ids;
mod layers;
mod mode;
#[cfg(target_os = "linux")]
mod outgoing;
pub mod output;
pub mod paths;
#[cfg(target_os = "linux")]
mod pod;
#[cfg(not(target_os = "linux"))]
#[path = "pod/portable.rs"]
mod pod;
#[cfg(target_os = "linux")]
mod policy;
mod probe;
pub mod process;
pub mod programs;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod proxy;
pub mod python;
mod quota;
#[cfg(target_os = "linux")]
mod real;
#[cfg(target_os = "linux")]
mod removal;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod seatbelt;
pub mod secret;
pub mod spill;
mod toolchains;
#[cfg(any(windows, test))]
mod windows;

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::OnceCell;

pub use addresses::{is_elsewhere, is_metadata, is_outside, is_public};
pub use command::{
    Command, DEFAULT_PORTS, GitAccess, Host, HostAnswer, HostQuestion, Limits, Network, Ports,
    RefusedPorts, Stdin,
};
pub use held::Held;
pub use ids::IdRange;
pub use layers::{HeldBy, LimitsReport, Ungrouped};
pub use mode::Mode;
pub use pod::Pod;
pub use process::{Exit, Process, Reached, Restored, SpawnError, Zygote};
pub use quota::Overfull;

#[cfg(target_os = "linux")]
pub use git::is_tracked;

/// Returns whether git keeps what a file holds. On this system git is not asked.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "asynchronous on Linux")]
pub async fn is_tracked(_root: &Path, _relative: &str) -> bool {
    false
}

/// First argument with which the binary is the sandbox helper instead of the daemon.
pub const HELPER_ARGUMENT: &str = "__sandbox-exec";

/// The newest version (ABI) of Landlock that the rules were written for.
pub const LANDLOCK: u8 = 9;

/// What is enforced for commands on this machine, found by trying; of control groups, that they can be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// The mode in use.
    pub mode: Mode,
    /// The layers in force: `namespaces`, `landlock`, `seccomp`, `rlimits`, `cgroup`; in [`Mode::Unverified`] those of the
    /// system.
    pub commands: Vec<&'static str>,
    /// How much of Landlock there is, where it is in force.
    pub landlock: Option<LandlockReport>,
    /// Whether a command without the network is kept off it: `off`, or `unenforced`.
    pub network: &'static str,
    /// Which loopback a command without the network has: `own`, `none`, or the `machine`'s.
    pub loopback: &'static str,
    /// What holds commands to their limits.
    pub limits: LimitsReport,
    /// The caches that commands of a pod see ([`Settings::caches`]), and whether they may add to them or only read them.
    pub caches: Vec<(PathBuf, bool)>,
    /// Why the stronger modes are not the one in use; nothing if the strongest is.
    pub refused: Vec<(Mode, String)>,
}

/// How much of Landlock the kernel has. What an older one lacks is closed by the system call filter where that can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LandlockReport {
    /// The version (ABI) in use: 1 to 9, see landlock(7).
    pub abi: u8,
    /// What stays open for want of a newer kernel: `ports`, `devices`, `signals`; nothing where all is enforced.
    pub missing: Vec<&'static str>,
}

/// What a [`Sandbox`] is made from.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The binary that answers to [`HELPER_ARGUMENT`]; `/proc/self/exe` for the daemon itself, on Linux.
    pub helper: PathBuf,
    /// The strongest mode to use. [`Mode::None`] is `tools.bash.sandbox = "off"`.
    pub ceiling: Mode,
    /// Whether [`Mode::Unverified`] is used on a system that has nothing better. On Linux it means nothing.
    pub unverified: bool,
    /// The newest version (ABI) of Landlock's rules to use: [`LANDLOCK`], or less to try what an older kernel leaves open.
    pub landlock: u8,
    /// The user's home directory, hidden from commands where the mode allows it.
    pub home: Option<PathBuf>,
    /// Where private temporary directories are made in modes below full; absolute and canonical.
    pub temporary: PathBuf,
    /// Most bytes in each of the private file systems of [`Mode::Full`], which are in memory: temporary files, the home.
    pub private_bytes: usize,
    /// Most bytes that the folders of a pod hold together.
    pub pod_bytes: u64,
    /// Folders below the home that the commands of a pod see there in [`Mode::Full`], and change in a copy of the pod's;
    /// absolute and canonical. See [`caches`].
    pub caches: Vec<PathBuf>,
    /// Numbers of users of the system, of which each user of the daemon's ([`Command::user`]) gets one; `None` runs all commands
    /// as the daemon's own user.
    pub user_ids: Option<IdRange>,
}

/// How the folders of pods are called, with a random number behind it.
const POD_PREFIX: &str = "outrigger-pod-";

/// Default of [`Settings::private_bytes`].
pub const PRIVATE_BYTES: usize = 256 << 20;

/// Default of [`Settings::pod_bytes`].
pub const POD_BYTES: u64 = 2 << 30;

impl Settings {
    /// Returns settings for the running daemon: itself as the helper, the strongest mode, the system's temporary directory.
    pub fn new(home: Option<PathBuf>) -> Self {
        let temporary = std::env::temp_dir();
        Self {
            helper: this_program(),
            ceiling: Mode::Full,
            unverified: false,
            landlock: LANDLOCK,
            home: home.map(|home| canonical(&home)),
            temporary: canonical(&temporary),
            private_bytes: PRIVATE_BYTES,
            pod_bytes: POD_BYTES,
            caches: Vec::new(),
            user_ids: None,
        }
    }

    /// Returns whether a folder holds what pods of this or another daemon keep, or lies in it; absolute and canonical.
    pub fn holds_pods(&self, folder: &Path) -> bool {
        let below = folder.strip_prefix(&self.temporary).ok();
        let first = below.and_then(|below| below.components().next());
        let is_pod = |first: Component<'_>| {
            let name = first.as_os_str().as_encoded_bytes();
            name.starts_with(POD_PREFIX.as_bytes())
        };
        self.temporary.starts_with(folder) || first.is_some_and(is_pod)
    }

    /// Moves temporary directories out of a file system that is in memory to the system's second place for them, where
    /// that is on a disk. Below full mode nothing but the size of that file system bounds what a command takes of the
    /// daemon's memory there.
    #[must_use]
    pub fn off_memory(mut self) -> Self {
        let second = canonical(Path::new(SECOND_TEMPORARY));
        let from_memory = is_in_memory(&self.temporary) == Some(true);
        if from_memory && is_in_memory(&second) == Some(false) && is_writable(&second) {
            self.temporary = second;
        }
        self
    }
}

/// The binary that runs.
fn this_program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_default(),
    }
}

/// Where temporary files are that outlive a restart, and so on a disk, on most systems.
const SECOND_TEMPORARY: &str = "/var/tmp";

/// Whether what is written to a folder is kept in memory; `None` where it cannot be told.
fn is_in_memory(folder: &Path) -> Option<bool> {
    #[cfg(target_os = "linux")]
    {
        /// tmpfs, ramfs; from `linux/magic.h`.
        const MAGIC: [u64; 2] = [0x0102_1994, 0x8584_58f6];
        let kind = u64::try_from(rustix::fs::statfs(folder).ok()?.f_type).ok()?;
        Some(MAGIC.contains(&kind))
    }
    #[cfg(not(target_os = "linux"))]
    folder.is_dir().then_some(false)
}

/// Whether files can be made in a folder. Asked on Linux only: nowhere else is a folder known to be in memory.
fn is_writable(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Access, access};
        access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    folder.is_dir()
}

/// Starts commands. Made once, cheap to clone; finds out on first use what the machine can enforce.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    own_port: OnceLock<u16>,
    toolchains: Vec<PathBuf>,
    report: OnceCell<SandboxReport>,
    #[cfg_attr(windows, expect(dead_code, reason = "nothing is kept there"))]
    state: process::State,
}

impl Sandbox {
    /// Returns a sandbox; nothing is started or probed yet.
    pub fn new(settings: Settings) -> Self {
        let toolchains = toolchains::find(settings.home.as_deref());
        Self {
            shared: Arc::new(Shared {
                state: process::State::new(&settings),
                settings,
                own_port: OnceLock::new(),
                toolchains,
                report: OnceCell::new(),
            }),
        }
    }

    /// Names the port the daemon listens on: no command may connect to it. The first call counts.
    pub fn keep_off_port(&self, port: u16) {
        self.shared.own_port.get_or_init(|| port);
    }

    /// Directories below the home that commands may read: the compilers and package caches found there.
    pub fn toolchains(&self) -> &[PathBuf] {
        &self.shared.toolchains
    }

    /// Returns what is enforced, trying it on the first call (a few milliseconds).
    pub async fn report(&self) -> SandboxReport {
        self.probed().await.clone()
    }

    /// Returns what is enforced where it was found out already.
    pub fn known_report(&self) -> Option<&SandboxReport> {
        self.shared.report.get()
    }

    /// Returns the mode in use where it was found out already.
    pub fn known_mode(&self) -> Option<Mode> {
        self.known_report().map(|report| report.mode)
    }

    /// Starts a command in the strongest mode that works here.
    ///
    /// # Errors
    /// [`SpawnError`], when the command cannot be described to the helper, a layer cannot be applied, or the program
    /// cannot be executed. Nothing runs then.
    pub async fn spawn(&self, command: &Command) -> Result<Process, SpawnError> {
        self.spawn_when(command, std::future::ready(true)).await
    }

    /// Starts a command as [`spawn`](Self::spawn) does, once `may_begin` comes to true. What the command needs is looked for
    /// and made meanwhile.
    ///
    /// # Errors
    /// The same, and [`SpawnError::Unwanted`] where it comes to false.
    pub async fn spawn_when(
        &self,
        command: &Command,
        may_begin: impl Future<Output = bool> + Clone,
    ) -> Result<Process, SpawnError> {
        let mode = self.probed().await.mode;
        let run = process::Purpose::Run;
        process::spawn(&self.shared, command, mode, run, may_begin).await
    }

    /// Returns a new pod, for commands of the daemon's own that share loopback, a home and temporary files
    /// ([`Command::pod`]).
    pub fn pod(&self) -> Pod {
        process::pod(&self.shared, None)
    }

    /// Returns the same for commands of one user ([`Command::user`]).
    pub fn pod_of(&self, user: &str) -> Pod {
        process::pod(&self.shared, Some(user.to_owned()))
    }

    /// Tries whether commands that are users of their own ([`Settings::user_ids`]) may work in these folders, where such are
    /// asked for. Which folder cannot be mounted so is in the error.
    ///
    /// # Errors
    /// [`SpawnError`], where they cannot.
    pub async fn try_users(&self, folders: &[PathBuf]) -> Result<(), SpawnError> {
        let mode = self.probed().await.mode;
        match self.shared.settings.user_ids {
            Some(_) => process::try_users(&self.shared, mode, folders).await,
            None => Ok(()),
        }
    }

    /// Waits until the folders of all pods are removed: before the process ends, and when no more are made.
    pub async fn pods_removed(&self) {
        process::pods_removed(&self.shared).await;
    }

    /// Removes the folders of pods that an earlier process left when it was killed.
    pub async fn sweep(&self) {
        process::sweep(&self.shared).await;
    }

    /// Makes ready for commands and for finding out what is enforced, while the caller, in a runtime, does something else.
    /// What helpers are made of is `zygote`, or executed.
    pub fn expect_command(&self, zygote: Option<Zygote>) {
        process::prepare_helper(&self.shared, zygote);
    }

    async fn probed(&self) -> &SandboxReport {
        self.shared
            .report
            .get_or_init(|| async {
                let report = probe::probe(&self.shared).await;
                let temporary = &self.shared.settings.temporary;
                if report.mode < Mode::Full && is_in_memory(temporary) == Some(true) {
                    tracing::warn!(
                        folder = %temporary.display(),
                        "temporary files of commands are kept in memory, where nothing bounds them but the size of that file system; mount it with a size, or set TMPDIR to a folder on a disk"
                    );
                }
                report
            })
            .await
    }
}

/// Waits until a process that this one did not start is gone; in a thread that may wait.
///
/// # Errors
/// Where the system does not let it be waited for.
#[cfg(windows)]
pub fn wait_for_process(id: u32) -> std::io::Result<()> {
    windows::wait_for_id(id)
}

/// Takes in what became the daemon's child because it is process 1, as in a container; returns at once where it is not.
pub async fn take_in_orphans() {
    #[cfg(target_os = "linux")]
    if std::process::id() == 1
        && let Err(error) = process::supervised::children::take_in_orphans().await
    {
        tracing::error!(%error, "ended processes without a parent stay as zombies");
    }
}

/// Makes a directory that only this user can enter, and those above it where they are missing.
pub fn private_directory(path: &Path) -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)?;
    canonicalize(path)
}

/// Returns a path without links, `.` and `..`, in the form in which all programs take it: on Windows without the `\\?\` before
/// it. Does file I/O.
///
/// # Errors
/// Where nothing is there, or it cannot be looked at.
pub fn canonicalize(path: &Path) -> std::io::Result<PathBuf> {
    dunce::canonicalize(path)
}

fn canonical(path: &Path) -> PathBuf {
    canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether this looks like the inside of a container, for hints only.
pub fn is_container() -> bool {
    Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_around_pods_and_in_them_are_known() {
        let settings = Settings {
            temporary: PathBuf::from("/var/tmp"),
            ..Settings::new(None)
        };
        for (folder, expected) in [
            ("/", true),
            ("/var", true),
            ("/var/tmp", true),
            ("/var/tmp/outrigger-pod-0123", true),
            ("/var/tmp/outrigger-pod-0123/home/x", true),
            ("/var/tmp/project", false),
            ("/var/tmp/x/outrigger-pod-0123", false),
            ("/var/tmp2", false),
            ("/home/x", false),
        ] {
            assert_eq!(settings.holds_pods(Path::new(folder)), expected, "{folder}");
        }
    }

    #[test]
    fn temporary_files_of_commands_are_not_kept_in_memory_where_there_is_a_disk() {
        let storage = tempfile::tempdir().unwrap();
        let settings = |temporary: &Path| Settings {
            temporary: temporary.to_owned(),
            ..Settings::new(None)
        };
        let on_disk = settings(storage.path()).off_memory();
        let shared = Path::new("/dev/shm");
        if is_in_memory(storage.path()) != Some(false) || is_in_memory(shared) != Some(true) {
            eprintln!(
                "*** SKIPPED: temporary_files_of_commands: it takes a disk at {} and memory at {} ***",
                storage.path().display(),
                shared.display()
            );
            return;
        }
        assert_eq!(on_disk.temporary, storage.path());
        // The file is a place that nothing can be made in, for root as well.
        let file = tempfile::NamedTempFile::new_in(shared).unwrap();
        for in_memory in [shared, file.path()] {
            let moved = settings(in_memory).off_memory();
            assert_eq!(is_in_memory(&moved.temporary), Some(false), "{moved:?}");
        }
    }
}

/// Has the README's example compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

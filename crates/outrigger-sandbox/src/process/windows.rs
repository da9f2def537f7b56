//! Windows: a job object for each command, in which all that it starts is held to its limits and ends with it.
//!
//! A command is in its job before its first instruction runs, and what it starts is in it too; only what a service starts for it is not. The one handle of the
//! job is the daemon's: when the daemon is killed, Windows closes it, and by that ends the command with all its processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Exit, Process, Purpose, SpawnError};
use crate::layers::{HeldBy, Layers, LimitsReport};
use crate::windows::{
    self, Job, JobPlan, OwnToken, Streams, Token, TokenPlan, Used, block, command_line, program_of,
    wait_for_process,
};
use crate::{Command, HELPER_ARGUMENT, Mode, Shared, Stdin};

pub(super) type StdinPipe = tokio::process::ChildStdin;

/// The exit code of what the daemon ended: the system's own for a program that a console's event ended.
const KILLED: u32 = 0xC000_013A;

/// How often it is looked whether a job that was ended is empty, and for how long.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const MOST_LOOKS: u32 = 1_000;

/// What is around a command in [`Mode::Unverified`], besides its job.
const UNVERIFIED: &[&str] = &["restricted-token", "low-integrity", "off-desktop"];

#[derive(Debug)]
pub(super) struct Tree {
    job: Arc<Job>,
    /// The first process; while it is open here, its number is no other one's.
    first: Arc<OwnedHandle>,
    number: u32,
    /// What asks it to end, this program itself.
    helper: PathBuf,
    known: watch::Receiver<Option<Exit>>,
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
    let settings = &shared.settings;
    let memory = command.limits.total_memory();
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let is_held = settings.ceiling != Mode::None;
    let start = Start {
        job: JobPlan::of(&command.limits, memory, mode, is_held, processors),
        token: TokenPlan::of(mode),
        command: command.clone(),
        temporary: settings.temporary.clone(),
        helper: settings.helper.clone(),
    };
    // It opens files, and making a process takes milliseconds.
    tokio::task::spawn_blocking(move || start.begin())
        .await
        .unwrap_or_else(|error| Err(SpawnError::Helper(io::Error::other(error))))
}

/// All that it takes to start a command.
struct Start {
    job: JobPlan,
    token: TokenPlan,
    command: Command,
    temporary: PathBuf,
    helper: PathBuf,
}

impl Start {
    fn begin(mut self) -> Result<Process, SpawnError> {
        if let Some(moved) = self.command.held.iter().find(|held| held.is_moved()) {
            return Err(SpawnError::Moved(moved.path().to_owned()));
        }
        let refused = |what: &str, error: &dyn std::fmt::Display| {
            SpawnError::Refused(format!("({what}): {error}"))
        };
        let job = Job::new(&self.job).map_err(|error| refused("job object", &error))?;
        let token = self.token.token(OwnToken::open);
        let token = token.map_err(|error| refused("restricted token", &error))?;
        let temporary = self
            .private_tmp()
            .map_err(|error| refused("temporary files", &error))?;
        let begun = self.start(job, token.as_ref(), temporary.clone());
        begun.inspect_err(|_| remove(temporary.as_deref()))
    }

    fn start(
        self,
        job: Job,
        token: Option<&Token>,
        temporary: Option<PathBuf>,
    ) -> Result<Process, SpawnError> {
        let Command {
            program,
            args,
            cwd,
            env,
            stdin,
            ..
        } = &self.command;
        let failed = |reason: &dyn std::fmt::Display| SpawnError::Program {
            reason: format!("{program}: {reason}"),
        };
        let is_file = |path: &str| Path::new(path).is_file();
        let found = program_of(env, program, &is_file)
            .ok_or_else(|| failed(&io::Error::from(io::ErrorKind::NotFound)))?;
        let interpreter = windows::interpreter(env);
        let (application, line) =
            command_line(&found, args, &interpreter).map_err(|error| failed(&error))?;
        let block = block(env).map_err(|error| SpawnError::Command(error.to_string()))?;
        let cwd = cwd
            .to_str()
            .ok_or_else(|| failed(&"its folder's name is no Unicode"))?;
        let (streams, pipes) = pipes(*stdin).map_err(SpawnError::Helper)?;
        let what = (application.as_str(), line.as_str(), cwd);
        let (first, number) =
            windows::start(what, &block, &streams, token, &job).map_err(|error| failed(&error))?;
        drop(streams);
        let (job, first) = (Arc::new(job), Arc::new(first));
        let (tell, known) = watch::channel(None);
        let watched = Watched {
            job: Arc::clone(&job),
            first: Arc::clone(&first),
            temporary,
            tell,
        };
        // Without a thread to wait for it, nothing may run; dropping the job ends it.
        let thread = std::thread::Builder::new().name("command".to_owned());
        let pipes = pipes.into_tokio().map_err(SpawnError::Helper)?;
        let begun = thread.spawn(move || watched.watch());
        begun.map_err(SpawnError::Helper)?;
        Ok(Process {
            stdin: pipes.0,
            stdout: Some(pipes.1),
            stderr: Some(pipes.2),
            layers: Layers {
                unverified: match self.token {
                    TokenPlan::Own => &[],
                    TokenPlan::Restricted => UNVERIFIED,
                },
                ..Layers::default()
            },
            tree: Tree {
                job,
                first,
                number,
                helper: self.helper,
                known,
            },
        })
    }

    /// Makes the command's directory for temporary files, and names it in its environment.
    fn private_tmp(&mut self) -> io::Result<Option<PathBuf>> {
        if !self.command.private_tmp {
            return Ok(None);
        }
        let number = getrandom::u64().map_err(io::Error::other)?;
        let path = self.temporary.join(format!("outrigger-{number:016x}"));
        // Fails if it exists. The user's temporary directory is the user's alone by its access list, and so is what is made there.
        match self.token {
            TokenPlan::Own => std::fs::create_dir(&path)?,
            TokenPlan::Restricted => windows::create_low(&path.to_string_lossy())?,
        }
        let names = ["TEMP", "TMP", "TMPDIR"];
        let env = &mut self.command.env;
        env.retain(|name, _| !names.iter().any(|own| own.eq_ignore_ascii_case(name)));
        let value = path.display().to_string();
        env.extend(names.map(|name| (name.to_owned(), value.clone())));
        Ok(Some(path))
    }
}

/// The daemon's ends of the pipes of a command.
struct Pipes {
    stdin: Option<OwnedHandle>,
    stdout: OwnedHandle,
    stderr: OwnedHandle,
}

type Piped = (
    Option<StdinPipe>,
    tokio::process::ChildStdout,
    tokio::process::ChildStderr,
);

impl Pipes {
    fn into_tokio(self) -> io::Result<Piped> {
        let stdin = self.stdin.map(ChildStdin::from);
        Ok((
            stdin
                .map(tokio::process::ChildStdin::from_std)
                .transpose()?,
            tokio::process::ChildStdout::from_std(ChildStdout::from(self.stdout))?,
            tokio::process::ChildStderr::from_std(ChildStderr::from(self.stderr))?,
        ))
    }
}

fn pipes(stdin: Stdin) -> io::Result<(Streams, Pipes)> {
    let (stdout, to_stdout) = io::pipe()?;
    let (stderr, to_stderr) = io::pipe()?;
    let (from_stdin, stdin) = match stdin {
        Stdin::Null => (nothing()?, None),
        Stdin::Piped => {
            let (from_stdin, stdin) = io::pipe()?;
            (from_stdin.into(), Some(stdin.into()))
        }
    };
    let streams = Streams {
        stdin: from_stdin,
        stdout: to_stdout.into(),
        stderr: to_stderr.into(),
    };
    let pipes = Pipes {
        stdin,
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    Ok((streams, pipes))
}

/// Opens the device of which reading brings the end at once, and on which what is written is gone.
fn nothing() -> io::Result<OwnedHandle> {
    Ok(File::options().read(true).write(true).open("NUL")?.into())
}

/// What the thread has that waits for a command.
struct Watched {
    job: Arc<Job>,
    first: Arc<OwnedHandle>,
    temporary: Option<PathBuf>,
    tell: watch::Sender<Option<Exit>>,
}

impl Watched {
    /// Waits for the program, ends what it left running, and tells how it ended.
    fn watch(self) {
        let code = wait_for_process(self.first.as_handle());
        let used = self.end_all();
        let exit = Exit {
            code: code
                .ok()
                .filter(|code| *code != KILLED)
                .map(u32::cast_signed),
            signal: None,
            // In units of 100 ns.
            cpu_ms: u64::try_from(used.time / 10_000).unwrap_or_default(),
            max_rss_bytes: used.memory as u64,
        };
        remove(self.temporary.as_deref());
        // Nobody may be waiting any more.
        self.tell.send_replace(Some(exit));
    }

    /// Ends what is in the job, and waits until nothing is there: they are dying for a moment, and keep files open for it.
    fn end_all(&self) -> Used {
        let mut used = Used::default();
        for _ in 0..MOST_LOOKS {
            let Ok(now) = self.job.used() else {
                break;
            };
            used = now;
            if used.active == 0 {
                break;
            }
            if let Err(error) = self.job.terminate(KILLED) {
                tracing::warn!(%error, "what a command left running could not be ended");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        used
    }
}

/// Removes the directory for temporary files of a command that has ended.
fn remove(temporary: Option<&Path>) {
    if let Some(path) = temporary
        && let Err(error) = std::fs::remove_dir_all(path)
    {
        tracing::debug!(%error, "temporary files of a command were left behind");
    }
}

impl Process {
    /// Waits for the program's end and that of all it left running, which is ended then.
    ///
    /// Cancel-safe; gives the same answer when called again.
    pub async fn wait(&mut self) -> Exit {
        let known = self.tree.known.wait_for(Option::is_some).await;
        let exit = known.ok().and_then(|known| *known);
        // Without its thread the daemon ends.
        exit.unwrap_or(Exit {
            code: None,
            signal: None,
            cpu_ms: 0,
            max_rss_bytes: 0,
        })
    }

    /// Asks every process of the command to end, by Ctrl-Break in its console; kills them where that cannot be sent.
    pub fn terminate(&self) {
        let (job, first) = (Arc::clone(&self.tree.job), Arc::clone(&self.tree.first));
        let (helper, number) = (self.tree.helper.clone(), self.tree.number);
        let ask = move || {
            if let Err(error) = ask_to_end(&helper, number) {
                tracing::debug!(%error, "a command cannot be asked to end; it is killed");
                job.terminate(KILLED).unwrap_or_default();
            }
            drop(first);
        };
        let thread = std::thread::Builder::new().name("ask".to_owned());
        if thread.spawn(ask).is_err() {
            self.kill();
        }
    }

    /// Kills every process of the command.
    pub fn kill(&self) {
        // Fails only when there is none any more.
        self.tree.job.terminate(KILLED).unwrap_or_default();
    }
}

/// The variables without which hardly any program starts.
fn system() -> BTreeMap<String, String> {
    let root = std::env::var("SystemRoot").map(|root| ("SystemRoot".to_owned(), root));
    root.into_iter().collect()
}

/// Has this program sent Ctrl-Break to a command, from a process of its own: it takes another console.
fn ask_to_end(helper: &Path, number: u32) -> io::Result<()> {
    let plan = JobPlan::default();
    let job = Job::new(&plan)?;
    let program = helper.to_string_lossy();
    let args = [HELPER_ARGUMENT.to_owned(), number.to_string()];
    let (application, line) = command_line(&program, &args, "").map_err(io::Error::other)?;
    let block = block(&system()).map_err(io::Error::other)?;
    let streams = Streams {
        stdin: nothing()?,
        stdout: nothing()?,
        stderr: nothing()?,
    };
    let folder = std::env::temp_dir();
    let what = (
        application.as_str(),
        line.as_str(),
        &*folder.to_string_lossy(),
    );
    let (process, _) = windows::start(what, &block, &streams, None, &job)?;
    match wait_for_process(process.as_handle())? {
        0 => Ok(()),
        code => Err(io::Error::other(format!("the helper ended with {code}"))),
    }
}

/// Describes a shell that exits with 7, to try with.
pub(crate) fn trial(_shared: &Shared) -> Command {
    let env = system();
    let shell = windows::interpreter(&env);
    Command {
        args: ["/d", "/c", "exit 7"].map(str::to_owned).into(),
        env,
        ..Command::new(shell, std::env::temp_dir())
    }
}

pub(crate) async fn limits(_shared: &Shared) -> LimitsReport {
    LimitsReport {
        memory: HeldBy::Job,
        cpu: HeldBy::Job,
        processes: HeldBy::Job,
        ..LimitsReport::NONE
    }
}

#[cfg(test)]
mod tests;

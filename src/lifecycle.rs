//! What ends the daemon: a signal, the end of stdin, or the end of the process it watches.

use std::io::Read as _;
#[cfg(unix)]
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often a watched process is looked for where the system cannot tell of its end.
#[cfg(unix)]
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Why the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGTERM or SIGINT; on Windows an event of the console.
    Signal,
    /// The terminal was closed.
    TerminalClosed,
    /// Windows closes the console's window, logs the user off or shuts down: it ends the process in five seconds.
    Hurried,
    /// Whoever held the other end of stdin is gone.
    StdinClosed,
    /// The watched process is gone.
    ParentGone,
    /// An operator asked for it (`outrigger admin drain`), and the time that this gave is over or not needed.
    Asked,
    /// Its sessions may be another daemon's.
    Lost,
}

impl Ending {
    /// Whether exchanges may end by themselves for a while. With nobody left to see it an answer is not worth the wait, and
    /// where the system ends the process soon, what was said has to be kept before.
    pub fn leaves_time(self) -> bool {
        match self {
            Self::Signal | Self::TerminalClosed => true,
            Self::Hurried | Self::StdinClosed | Self::ParentGone | Self::Asked | Self::Lost => {
                false
            }
        }
    }
}

/// What a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caught {
    End,
    /// SIGHUP: the terminal is gone, or somebody wants the configuration to be read again.
    #[cfg_attr(windows, expect(dead_code, reason = "Windows has no such event"))]
    Hangup,
    /// The console's window is closed, or the session or the machine ends.
    #[cfg_attr(unix, expect(dead_code, reason = "Unix has no such event"))]
    Hurry,
}

/// Waits for the first thing that ends the daemon; calls `reload` at a SIGHUP that a terminal's end did not send.
pub async fn ending(
    signals: &mut Signals,
    stdin_closed: &CancellationToken,
    parent: Option<u32>,
    reload: impl AsyncFn(),
) -> Ending {
    tokio::select! {
        // A frontend ends stdin and sends a signal: nobody waits for an answer then.
        biased;
        () = stdin_closed.cancelled() => Ending::StdinClosed,
        () = gone(parent) => Ending::ParentGone,
        why = signals.first(reload) => why,
    }
}

impl Signals {
    /// Waits for the first one that ends the daemon; calls `reload` at a SIGHUP that a terminal's end did not send.
    pub async fn first(&mut self, reload: impl AsyncFn()) -> Ending {
        let why = loop {
            match self.next().await {
                Caught::End => break Ending::Signal,
                Caught::Hurry => break Ending::Hurried,
                Caught::Hangup if self.terminal_is_gone() => break Ending::TerminalClosed,
                Caught::Hangup => reload().await,
            }
        };
        self.asked += 1;
        why
    }

    /// Waits for the second one that asks for the end, or for one after which the system leaves no time. Where something else
    /// began the end, the first signal after it is the first: a frontend ends stdin and sends a signal.
    pub async fn second(&mut self) {
        while self.asked < 2 {
            match self.next().await {
                Caught::End => self.asked += 1,
                Caught::Hurry => return,
                // A closed terminal may send two.
                Caught::Hangup => {}
            }
        }
    }
}

/// SIGTERM, SIGINT and SIGHUP, caught from the moment that this is made.
#[cfg(unix)]
#[derive(Debug)]
pub struct Signals {
    caught: [tokio::signal::unix::Signal; 3],
    /// Whether there was a terminal then.
    had_terminal: bool,
    /// How many of them asked for the end.
    asked: u32,
}

#[cfg(unix)]
impl Signals {
    /// Catches them from now on: before the daemon makes a folder that its end removes.
    ///
    /// # Errors
    ///
    /// Where the system lets a signal not be caught.
    pub fn catch() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            caught: [
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
            ],
            had_terminal: has_terminal(),
            asked: 0,
        })
    }

    /// Waits for the next one.
    async fn next(&mut self) -> Caught {
        let [terminate, interrupt, hangup] = &mut self.caught;
        tokio::select! {
            _ = terminate.recv() => Caught::End,
            _ = interrupt.recv() => Caught::End,
            _ = hangup.recv() => Caught::Hangup,
        }
    }

    fn terminal_is_gone(&self) -> bool {
        self.had_terminal && !has_terminal()
    }
}

/// Whether one of the standard streams is a terminal that is still there: one that was closed is none any more.
#[cfg(unix)]
fn has_terminal() -> bool {
    use std::io::IsTerminal as _;

    std::io::stdin().is_terminal()
        || std::io::stdout().is_terminal()
        || std::io::stderr().is_terminal()
}

/// The events of a console: Ctrl-C, Ctrl-Break, its window closed, the session or the machine ended.
#[cfg(windows)]
#[derive(Debug)]
pub struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    end: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    logoff: tokio::signal::windows::CtrlLogoff,
    shutdown: tokio::signal::windows::CtrlShutdown,
    /// How many of them asked for the end.
    asked: u32,
}

#[cfg(windows)]
impl Signals {
    /// Catches them from now on: before the daemon makes a folder that its end removes.
    ///
    /// # Errors
    ///
    /// Where the system lets an event not be caught.
    pub fn catch() -> std::io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};

        Ok(Self {
            interrupt: ctrl_c()?,
            end: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
            asked: 0,
        })
    }

    /// Waits for the next one.
    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::End,
            _ = self.end.recv() => Caught::End,
            // Windows ends the process once its handler returns; tokio's never does.
            _ = self.close.recv() => Caught::Hurry,
            _ = self.logoff.recv() => Caught::Hurry,
            _ = self.shutdown.recv() => Caught::Hurry,
        }
    }

    fn terminal_is_gone(&self) -> bool {
        false
    }
}

/// Whether stdin is a pipe, whose end means that its owner is gone; a terminal, a file or /dev/null is not.
#[cfg(unix)]
pub fn stdin_is_a_pipe() -> bool {
    use rustix::fs::FileType;

    // Node makes its children's pipes of sockets.
    rustix::fs::fstat(rustix::stdio::stdin()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::Socket
        )
    })
}

/// Whether stdin is a pipe, whose end means that its owner is gone; a console, a file or `NUL` is not.
#[cfg(windows)]
pub fn stdin_is_a_pipe() -> bool {
    use winapi_util::{HandleRef, file};

    file::typ(HandleRef::stdin()).is_ok_and(|kind| kind.is_pipe())
}

/// Reads stdin to its end and cancels the token then.
///
/// A thread of its own: a read cannot be interrupted, and the runtime would wait for its own threads.
///
/// # Errors
///
/// Where the system has no thread left.
pub fn watch_stdin(closed: CancellationToken) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut ignored = [0; 1024];
            let mut stdin = std::io::stdin().lock();
            while stdin.read(&mut ignored).is_ok_and(|count| count > 0) {}
            closed.cancel();
        })
        .map(drop)
}

/// Waits until the process is gone; for ever where none is named.
#[cfg(unix)]
async fn gone(parent: Option<u32>) {
    let pid = parent
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else {
        return std::future::pending().await;
    };
    #[cfg(target_os = "linux")]
    if let Some(gone) = ended(pid).await {
        return gone;
    }
    while rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until the process is gone; for ever where none is named, or where it may not be waited for.
#[cfg(windows)]
async fn gone(parent: Option<u32>) {
    let Some(pid) = parent else {
        return std::future::pending().await;
    };
    let (running, ended) = tokio::sync::oneshot::channel::<()>();
    // Opened before the id can be another process's, as long as this one's parent lives.
    let watching = std::thread::Builder::new()
        .name("parent".to_owned())
        .spawn(move || match crate::sandbox::wait_for_process(pid) {
            Ok(()) => drop(running),
            // There is no such process any more.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => drop(running),
            Err(error) => {
                tracing::warn!(pid, %error, "the end of the parent cannot be waited for");
                running.send(()).unwrap_or_default();
            }
        });
    if watching.is_err() || ended.await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the process is gone; `None` where the system cannot tell.
///
/// A process handle, not the id, which another process may get; and a thread, since tokio's way to
/// wait for a handle is unsafe.
#[cfg(target_os = "linux")]
async fn ended(pid: rustix::process::Pid) -> Option<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};

    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Some(()),
        handle => handle.ok()?,
    };
    let (running, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new()
        .name("parent".to_owned())
        .spawn(move || {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            while poll(&mut handles, None) == Err(rustix::io::Errno::INTR) {}
            drop(running);
        })
        .ok()?;
    ended.await.err().map(drop)
}

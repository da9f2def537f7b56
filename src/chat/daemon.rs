//! A daemon of one's own: started as any frontend would start it, ended with the chat.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::address::Address;
use crate::arguments::ConfigArguments;
use crate::ready::{Fatal, ReadyLine, exit};
use crate::runtime::Tail;

const READY_TIME: Duration = Duration::from_secs(30);

/// How long the daemon may take to end once its stdin is closed; then it is killed. It waits for six things at most, for
/// three seconds each.
const END_TIME: Duration = Duration::from_secs(20);

/// The longest ready line, in bytes.
const LINE_BYTES: u64 = 64 * 1024;

/// Bytes of the daemon's log that are kept, to be shown where it fails.
const LOG_BYTES: usize = 64 * 1024;

/// A daemon that lives as long as this.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    /// Its end is what the daemon ends by. Not in the child, which closes it where its end is waited for.
    stdin: Option<ChildStdin>,
    pub(super) address: Address,
    /// What its configuration's check warns of.
    pub(super) warnings: Vec<String>,
    /// The end of its log.
    pub(super) log: Tail,
}

/// A daemon that was started and has not said that it is ready. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Starting {
    child: Child,
    log: Tail,
}

/// Why there is no chat.
#[derive(Debug)]
pub(super) struct Failure {
    /// What happened and what to do.
    pub(super) text: String,
    /// The exit code of the chat: the daemon's own, where it has one.
    pub(super) exit: u8,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        let exit = exit::FAILED;
        Self { text, exit }
    }
}

impl Starting {
    /// Starts a daemon. `show_log` lets its log through.
    pub(super) fn new(config: &ConfigArguments, show_log: bool) -> Result<Self, Failure> {
        let mut child = command(config, show_log)
            .and_then(|mut command| command.spawn())
            .map_err(|error| format!("the daemon could not be started: {error}"))?;
        let log = Tail::follow(child.stderr.take(), LOG_BYTES);
        Ok(Self { child, log })
    }

    /// Waits for its ready line.
    pub(super) async fn ready(&mut self) -> Result<ReadyLine, Failure> {
        let Self { child, log } = self;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let mut reader = BufReader::new(stdout).take(LINE_BYTES);
            let read = tokio::time::timeout(READY_TIME, reader.read_line(&mut line));
            // Half a line is no ready line, and says more than none.
            if read.await.is_err() {
                drop(child.kill().await);
                let text = format!("the daemon was not ready within {} s", READY_TIME.as_secs());
                return Err(with_log(text, log).into());
            }
        }
        match serde_json::from_str(&line) {
            Ok(ready) => Ok(ready),
            Err(_) => Err(failure(&line, child, log).await),
        }
    }

    /// Returns the daemon that said this.
    pub(super) fn into_daemon(self, ready: ReadyLine) -> Daemon {
        let Self { mut child, log } = self;
        let address = Address {
            url: ready.url,
            token: ready.token.map(SecretString::from),
            outlives_daemon: false,
        };
        Daemon {
            stdin: child.stdin.take(),
            child,
            address,
            warnings: ready.warnings,
            log,
        }
    }

    /// Ends it, also before it is ready: it removes what it made so far.
    pub(super) async fn end(&mut self) {
        end(&mut self.child).await;
    }
}

impl Daemon {
    /// Waits until the daemon has ended by itself; returns how, in words.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("the daemon of this chat ended: {status}"),
            Err(error) => format!("the daemon of this chat cannot be waited for: {error}"),
        }
    }

    /// Ends the daemon; `None` where it had to be killed.
    pub(super) async fn end(&mut self) -> Option<ExitStatus> {
        drop(self.stdin.take());
        end(&mut self.child).await
    }
}

/// Waits for the end of a daemon, whose stdin is closed with that.
async fn end(child: &mut Child) -> Option<ExitStatus> {
    match tokio::time::timeout(END_TIME, child.wait()).await {
        Ok(Ok(status)) => Some(status),
        _ => {
            drop(child.kill().await);
            None
        }
    }
}

/// What a daemon said that did not start.
async fn failure(line: &str, child: &mut Child, log: &Tail) -> Failure {
    let code = end(child).await.and_then(|status| status.code());
    let code = code.and_then(|code| u8::try_from(code).ok());
    Failure {
        text: match serde_json::from_str::<Fatal>(line) {
            Ok(fatal) => format!("{}\n  {}", fatal.message, fatal.hint),
            Err(_) => with_log("the daemon ended before it was ready".to_owned(), log),
        },
        exit: code
            .filter(|code| *code != exit::OK)
            .unwrap_or(exit::FAILED),
    }
}

fn command(config: &ConfigArguments, show_log: bool) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--host", "127.0.0.1", "--port", "0"]);
    if let Some(file) = &config.config {
        command.arg("--config").arg(file);
    }
    if let Some(root) = &config.project_root {
        command.arg("--project-root").arg(root);
    }
    if let Some(name) = &config.project_name {
        command.arg("--project-name").arg(name);
    }
    command
        // It makes a token up and says it on its ready line; one that was given it would not repeat.
        .env_remove("OUTRIGGER_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(match show_log {
            true => Stdio::inherit(),
            false => Stdio::piped(),
        })
        .kill_on_drop(true);
    // A Ctrl-C is for the chat, which tells the daemon what to cancel.
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// Adds what the daemon logged to a text that says that it failed.
pub(super) fn with_log(mut text: String, log: &Tail) -> String {
    let log = log.text();
    if !log.trim().is_empty() {
        text.push_str("; its log ends with:\n");
        text.push_str(log.trim_end());
    }
    text
}

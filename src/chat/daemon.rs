//! A daemon of one's own: started as any frontend would start it, ended with the chat.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::address::Address;
use crate::arguments::ConfigArguments;
use crate::ready::{Fatal, ReadyLine, exit};

/// How long the daemon may take to say that it is ready.
const READY_TIME: Duration = Duration::from_secs(30);

/// How long the daemon may take to end once its stdin is closed; then it is killed.
const END_TIME: Duration = Duration::from_secs(8);

/// The longest ready line, in bytes.
const LINE_BYTES: u64 = 64 * 1024;

/// Bytes of the daemon's log that are kept, to be shown where it fails.
const LOG_BYTES: usize = 64 * 1024;

/// A daemon that lives as long as this.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    /// Where it is.
    pub(super) address: Address,
    log: Log,
}

/// Why there is no daemon.
#[derive(Debug)]
pub(super) struct Failure {
    /// What happened and what to do.
    pub(super) text: String,
    /// The exit code of the chat: the daemon's own, where it has one.
    pub(super) exit: u8,
}

impl Failure {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            exit: exit::FAILED,
        }
    }
}

impl Daemon {
    /// Starts a daemon and waits until it is ready. `show_log` lets its log through.
    ///
    /// # Errors
    ///
    /// [`Failure`] with what the daemon said.
    pub(super) async fn start(config: &ConfigArguments, show_log: bool) -> Result<Self, Failure> {
        let mut child = command(config, show_log)
            .and_then(|mut command| command.spawn())
            .map_err(|error| Failure::new(format!("the daemon could not be started: {error}")))?;
        let log = Log::default();
        if let Some(stderr) = child.stderr.take() {
            drop(tokio::spawn(log.clone().keep(stderr)));
        }
        let line = match child.stdout.take() {
            Some(stdout) => tokio::time::timeout(READY_TIME, first_line(stdout)).await,
            None => Ok(String::new()),
        };
        let Ok(line) = line else {
            drop(child.kill().await);
            let text = format!("the daemon was not ready within {} s", READY_TIME.as_secs());
            return Err(Failure::new(log.append_to(text)));
        };
        match serde_json::from_str::<ReadyLine>(&line) {
            Ok(ready) => Ok(Self {
                child,
                address: Address {
                    url: ready.url,
                    token: ready.token.map(SecretString::from),
                    outlives_daemon: false,
                },
                log,
            }),
            Err(_) => Err(failure(&line, child, &log).await),
        }
    }

    /// Ends the daemon; `None` where it had to be killed.
    pub(super) async fn end(mut self) -> Option<ExitStatus> {
        // The end of its stdin is what it ends by.
        drop(self.child.stdin.take());
        match tokio::time::timeout(END_TIME, self.child.wait()).await {
            Ok(Ok(status)) => Some(status),
            _ => {
                drop(self.child.kill().await);
                None
            }
        }
    }

    /// Adds what the daemon logged to a text that says that it failed.
    pub(super) fn explain(&self, text: String) -> String {
        self.log.append_to(text)
    }
}

/// What a daemon said that did not start.
async fn failure(line: &str, mut child: Child, log: &Log) -> Failure {
    drop(child.stdin.take());
    let status = tokio::time::timeout(END_TIME, child.wait()).await;
    let code = match status {
        Ok(Ok(status)) => status.code(),
        _ => None,
    };
    let text = match serde_json::from_str::<Fatal>(line) {
        Ok(fatal) => format!("{}\n  {}", fatal.message, fatal.hint),
        Err(_) => log.append_to("the daemon ended before it was ready".to_owned()),
    };
    Failure {
        text,
        exit: code
            .and_then(|code| u8::try_from(code).ok())
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

async fn first_line(stdout: impl AsyncRead + Unpin) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(stdout).take(LINE_BYTES);
    // Half a line is no ready line, and says more than none.
    drop(reader.read_line(&mut line).await);
    line
}

/// The end of the daemon's log.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<VecDeque<u8>>>);

impl Log {
    /// Keeps the last [`LOG_BYTES`] bytes of what is read, until its end.
    async fn keep(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4096];
        while let Ok(count) = stderr.read(&mut chunk).await {
            let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
                return;
            };
            let mut kept = self.0.lock();
            kept.extend(bytes);
            let excess = kept.len().saturating_sub(LOG_BYTES);
            kept.drain(..excess);
        }
    }

    fn append_to(&self, mut text: String) -> String {
        let kept = self.0.lock();
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let log = String::from_utf8_lossy(&bytes);
        if !log.trim().is_empty() {
            text.push_str("; its log ends with:\n");
            text.push_str(log.trim_end());
        }
        text
    }
}

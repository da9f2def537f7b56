//! Lines from standard input, one for each request, so that nothing is read while an editor has the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use tokio::sync::mpsc;

/// The longest line, in bytes; what is longer comes in pieces.
const LINE_BYTES: u64 = 4 * 1024 * 1024;

/// The keyboard.
#[derive(Debug)]
pub(super) struct Keyboard {
    wanted: std::sync::mpsc::SyncSender<()>,
    lines: mpsc::Receiver<Option<String>>,
    is_asked: bool,
    /// Whether a person types.
    pub(super) is_terminal: bool,
}

impl Keyboard {
    /// Starts the thread that reads; a read cannot be interrupted, so it is left behind at the end.
    ///
    /// # Errors
    ///
    /// Where the system has no thread left.
    pub(super) fn new() -> io::Result<Self> {
        let (wanted, wishes) = std::sync::mpsc::sync_channel(1);
        let (typed, lines) = mpsc::channel(1);
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || {
                while wishes.recv().is_ok() {
                    if typed.blocking_send(read()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            lines,
            is_asked: false,
            is_terminal: io::stdin().is_terminal(),
        })
    }

    /// Asks for a line, unless one is asked for already. `fresh` forgets what was typed before.
    pub(super) fn ask(&mut self, fresh: bool) {
        if fresh && self.is_terminal {
            forget_typed();
        }
        if !self.is_asked {
            // The thread takes one wish at a time and has answered the one before.
            self.is_asked = self.wanted.try_send(()).is_ok();
        }
    }

    /// Waits for the line that was asked for; `None` inside is the end of the input.
    pub(super) async fn line(&mut self) -> Option<String> {
        if !self.is_asked {
            return std::future::pending().await;
        }
        let line = self.lines.recv().await;
        self.is_asked = false;
        line.flatten()
    }
}

fn read() -> Option<String> {
    let mut bytes = Vec::new();
    let mut stdin = io::stdin().lock().take(LINE_BYTES);
    match stdin.read_until(b'\n', &mut bytes) {
        Ok(count) if count > 0 => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

/// Drops what was typed and not read, so that no earlier keystroke approves a later question.
#[cfg(unix)]
fn forget_typed() {
    use rustix::termios::{QueueSelector, tcflush};

    if let Err(error) = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush) {
        tracing::debug!(%error, "typed text could not be dropped");
    }
}

#[cfg(not(unix))]
fn forget_typed() {}

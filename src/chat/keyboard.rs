//! Lines from standard input, one for each request, so that nothing is read while an editor has the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// The longest line, in bytes; what is longer comes in pieces.
const LINE_BYTES: u64 = 4 * 1024 * 1024;

/// The keyboard.
#[derive(Debug)]
pub(super) struct Keyboard {
    wanted: std::sync::mpsc::SyncSender<()>,
    lines: mpsc::Receiver<Typed>,
    is_asked: bool,
    /// Lines that were typed before this do not count.
    counts_from: Option<Instant>,
    /// Whether a person types.
    pub(super) is_terminal: bool,
}

/// A line; nothing at the end of the input.
#[derive(Debug)]
struct Typed {
    line: Option<String>,
    at: Instant,
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
                    let line = read();
                    let at = Instant::now();
                    if typed.blocking_send(Typed { line, at }).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            wanted,
            lines,
            is_asked: false,
            counts_from: None,
            is_terminal: io::stdin().is_terminal(),
        })
    }

    /// Forgets what a person typed before now, and what is typed for a while from now on.
    pub(super) fn forget(&mut self, longer: Duration) {
        if self.is_terminal {
            forget_typed();
            self.counts_from = Some(Instant::now() + longer);
        }
    }

    /// Asks for a line, unless one is asked for already.
    pub(super) fn ask(&mut self) {
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
        loop {
            let Some(Typed { line, at }) = self.lines.recv().await else {
                self.is_asked = false;
                return None;
            };
            if line.is_none() || counts(at, self.counts_from) {
                self.is_asked = false;
                return line;
            }
            // The thread has answered; it waits for the next wish.
            if self.wanted.try_send(()).is_err() {
                self.is_asked = false;
                return None;
            }
        }
    }
}

/// Whether a line counts that was typed at this moment.
fn counts(at: Instant, from: Option<Instant>) -> bool {
    from.is_none_or(|from| at >= from)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_from_a_moment_on() {
        let shown = Instant::now();
        let settled = shown + Duration::from_millis(700);
        for (at, from, expected) in [
            (shown, None, true),
            (shown, Some(settled), false),
            (shown + Duration::from_millis(699), Some(settled), false),
            (settled, Some(settled), true),
        ] {
            assert_eq!(counts(at, from), expected);
        }
    }
}

//! Lines from standard input, one for each request, so that nothing is read while an editor has the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::terminal_text;

/// The longest line, in bytes; what is longer comes in pieces.
const LINE_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Keyboard {
    /// The line that was asked for. A read cannot be interrupted; at the end it is left behind.
    reading: Option<JoinHandle<(Option<String>, Instant)>>,
    /// Lines that were typed before this do not count.
    counts_from: Option<Instant>,
    /// Whether a person types.
    pub(super) is_terminal: bool,
    /// Whether nothing is read, as if the input were at its end.
    is_closed: bool,
}

impl Keyboard {
    pub(super) fn new() -> Self {
        Self {
            reading: None,
            counts_from: None,
            is_terminal: io::stdin().is_terminal(),
            is_closed: false,
        }
    }

    /// Returns one that nobody types on, whatever standard input is.
    pub(super) fn closed() -> Self {
        Self {
            reading: None,
            counts_from: None,
            is_terminal: false,
            is_closed: true,
        }
    }

    /// Forgets what a person typed before now, and what is typed for a while from now on.
    pub(super) fn forget(&mut self, longer: Duration) {
        if self.is_terminal {
            forget_typed();
            self.counts_from = Some(Instant::now() + longer);
        }
    }

    /// Returns whether it is known that no line will come: nothing is shown then to type after.
    pub(super) fn is_at_end(&self) -> bool {
        // Whoever reads now finds out by itself.
        let is_free = !self.is_terminal && self.reading.is_none();
        self.is_closed || (is_free && at_end())
    }

    /// Asks for a line, unless one is asked for already.
    pub(super) fn ask(&mut self) {
        let (is_terminal, is_closed) = (self.is_terminal, self.is_closed);
        self.reading.get_or_insert_with(|| {
            spawn_blocking(move || {
                let line = if is_closed { None } else { read() };
                let at = Instant::now();
                // Arrow keys and pasting write sequences that are no part of what was meant.
                let shown = |line: String| terminal_text::shown(&line);
                (if is_terminal { line.map(shown) } else { line }, at)
            })
        });
    }

    /// Waits for the line that was asked for; `None` inside is the end of the input.
    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            let Some(reading) = &mut self.reading else {
                return std::future::pending().await;
            };
            let (line, at) = reading.await.unwrap_or_else(|_| (None, Instant::now()));
            self.reading = None;
            if line.is_none() || counts(at, self.counts_from) {
                return line;
            }
            self.ask();
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

/// Whether standard input has no more, without waiting for any.
#[cfg(unix)]
fn at_end() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdin = rustix::stdio::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let can_be_read = poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    can_be_read && io::stdin().lock().fill_buf().is_ok_and(<[u8]>::is_empty)
}

#[cfg(not(unix))]
fn at_end() -> bool {
    false
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

//! Writes log lines from a thread of its own, so that nobody who logs ever waits.
//!
//! A parent that gave the daemon a pipe as stderr and does not read it would otherwise stop the
//! daemon at the next line. Lines that find the queue full are counted and the loss is logged later.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::redact::Redactor;

/// Lines that may wait to be written: some seconds of `debug`.
const QUEUE_LINES: usize = 1024;
/// Longest line, in bytes; with the queue's length the bound of its memory (16 MiB).
const MAX_LINE_BYTES: usize = 16 << 10;
/// How long the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

enum Item {
    Line(String),
    /// Everything before this has been written once the sender is dropped.
    Flush(SyncSender<()>),
}

/// Starts the thread that writes to `output`.
pub(super) fn start<W: Write + Send + 'static>(
    output: W,
    redactor: Redactor,
) -> io::Result<(LogLines, LogGuard)> {
    let (queue, items) = sync_channel(QUEUE_LINES);
    let lost = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&lost);
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || write_all(output, &items, &counter))?;
    let lines = LogLines {
        queue: queue.clone(),
        lost,
        redactor,
    };
    Ok((lines, LogGuard { queue }))
}

fn write_all(mut output: impl Write, items: &Receiver<Item>, lost: &AtomicU64) {
    for item in items {
        match item {
            // Nothing is left to report that stderr is gone to.
            Item::Line(line) => drop(output.write_all(line.as_bytes())),
            Item::Flush(done) => drop((output.flush(), done)),
        }
        let lines = lost.swap(0, Ordering::Relaxed);
        if lines > 0 {
            let note = format!(
                "{{\"level\":\"WARN\",\"message\":\"{lines} log lines were lost: stderr is read too slowly\"}}\n"
            );
            drop(output.write_all(note.as_bytes()));
        }
    }
}

/// Takes lines from `tracing`.
pub(super) struct LogLines {
    queue: SyncSender<Item>,
    lost: Arc<AtomicU64>,
    redactor: Redactor,
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// `tracing` writes each event whole, with one call.
impl Write for &LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = cut(self.redactor.redact(&text).into_owned());
        match self.queue.try_send(Item::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn cut(mut line: String) -> String {
    if line.len() > MAX_LINE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
        line.push_str("…\n");
    }
    line
}

/// Waits, when it is dropped, until what was logged is written, for half a second at most.
#[must_use = "the last lines are lost when the process ends without it"]
#[derive(Debug)]
pub struct LogGuard {
    queue: SyncSender<Item>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (done, flushed) = sync_channel(0);
        if self.queue.try_send(Item::Flush(done)).is_ok() {
            // The sender is dropped once all is written: either error is the end of waiting.
            let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Sink(Sender<String>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map_err(io::Error::other)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output that takes nothing before the test lets it.
    struct Blocked {
        open: Receiver<()>,
        output: Sink,
    }

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Closed is open for good.
            let _ = self.open.recv();
            self.output.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_out_in_order_without_their_secrets() {
        let (sink, written) = channel();
        let redactor = Redactor::default();
        redactor.add("correct-horse");
        let (lines, guard) = start(Sink(sink), redactor).expect("a thread");
        for line in ["one\n", "two correct-horse\n", "three\n"] {
            (&lines).write_all(line.as_bytes()).expect("never fails");
        }
        drop(guard);
        let all: Vec<String> = written.try_iter().collect();
        assert_eq!(all, ["one\n", "two [redacted]\n", "three\n"]);
    }

    #[test]
    fn an_output_that_takes_nothing_stops_nobody_and_the_loss_is_logged() {
        let (sink, written) = channel();
        let (open, wait) = channel();
        let output = Blocked {
            open: wait,
            output: Sink(sink),
        };
        let (lines, guard) = start(output, Redactor::default()).expect("a thread");
        let extra = 10;
        for _ in 0..QUEUE_LINES + 1 + extra {
            (&lines).write_all(b"line\n").expect("never fails");
        }
        drop(open);
        let mut received = 0;
        let note = written.iter().find(|line| {
            received += usize::from(line == "line\n");
            line.contains("log lines were lost")
        });
        assert!(note.is_some_and(|note| note.contains("log lines were lost")));
        assert!(received <= QUEUE_LINES + 1);
        drop(guard);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = cut("é".repeat(MAX_LINE_BYTES));
        assert!(line.len() <= MAX_LINE_BYTES + 4 && line.ends_with("é…\n"));
    }
}

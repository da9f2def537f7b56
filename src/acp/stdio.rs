//! The protocol on stdin and stdout: a line for each message, and nothing else.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent::{self, INCOMING, OUTGOING, TooLong};
use crate::session::UserSessions;

/// How long the last lines may take.
const CLOSING: Duration = Duration::from_millis(500);

/// Serves whoever started this process, until stdin ends, which cancels `closed`, or `stop` is cancelled.
pub(crate) async fn stdio(
    sessions: UserSessions,
    closed: CancellationToken,
    stop: CancellationToken,
) {
    let most = sessions.daemon().services.config().server.max_frame_bytes;
    let (taken, lines) = mpsc::channel(INCOMING);
    let left = hung_up();
    // Left behind at the end: a read of stdin cannot be cancelled.
    drop(tokio::spawn(async move {
        let mut stdin = BufReader::new(tokio::io::stdin());
        while let Ok(Some(line)) = read_line(&mut stdin, most).await {
            // Where nothing is taken because the client reads nothing, the end of stdin is behind what it wrote.
            let given_up = async {
                left.cancelled().await;
                tokio::time::sleep(CLOSING).await;
            };
            let is_taken = tokio::select! {
                sent = taken.send(line) => sent.is_ok(),
                () = given_up => false,
            };
            if !is_taken {
                break;
            }
        }
        closed.cancel();
    }));
    let (out, to_write) = mpsc::channel(OUTGOING);
    let writing = tokio::spawn(write(to_write));
    agent::serve(sessions, lines, out, stop).await;
    // All senders are gone, so it ends with the last line; a client that does not read is not waited for.
    drop(tokio::time::timeout(CLOSING, writing).await);
}

/// Returns a token that is cancelled when nobody holds the other end of stdin any more, however much of it is unread.
fn hung_up() -> CancellationToken {
    let left = CancellationToken::new();
    let token = left.clone();
    // A thread of its own: it ends with the process.
    let watching = std::thread::Builder::new()
        .name("stdin-end".to_owned())
        .spawn(move || {
            if is_hung_up() {
                token.cancel();
            }
        });
    if let Err(error) = watching {
        tracing::warn!(%error, "the end of stdin is noticed only when all before it was taken");
    }
    left
}

/// Waits for the other end of stdin to be closed; returns false where the system cannot tell.
#[cfg(target_os = "linux")]
fn is_hung_up() -> bool {
    use rustix::event::{PollFd, PollFlags, poll};

    let stdin = rustix::stdio::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::RDHUP)];
    loop {
        match poll(&mut watched, None) {
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn is_hung_up() -> bool {
    false
}

async fn write(mut lines: mpsc::Receiver<String>) -> io::Result<()> {
    let mut stdout = tokio::io::stdout();
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        stdout.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            stdout.flush().await?;
        }
    }
    stdout.flush().await
}

/// Reads a line of at most so many bytes; of a longer one the rest is passed over. `None` at the end.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    most: usize,
) -> io::Result<Option<Result<String, TooLong>>> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let read = reader.fill_buf().await?;
        let (piece, ends, used) = match read.iter().position(|byte| *byte == b'\n') {
            Some(end) => (read.get(..end).unwrap_or_default(), true, end + 1),
            None => (read, read.is_empty(), read.len()),
        };
        is_too_long |= line.len() + piece.len() > most;
        if !is_too_long {
            line.extend_from_slice(piece);
        }
        reader.consume(used);
        if !ends {
            continue;
        }
        return Ok(match is_too_long {
            true => Some(Err(TooLong)),
            false if used == 0 && line.is_empty() => None,
            false => Some(Ok(String::from_utf8_lossy(&line).into_owned())),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_and_long_ones_passed_over() {
        let mut reader = BufReader::with_capacity(3, &b"one\n\nlonger than six\ntwo\nlast"[..]);
        let mut read = Vec::new();
        while let Some(line) = read_line(&mut reader, 6).await.unwrap() {
            read.push(line.unwrap_or_else(|TooLong| "too long".to_owned()));
        }
        assert_eq!(read, ["one", "", "too long", "two", "last"]);
    }
}

//! The audit log: one line of JSON for each tool call, with digests in the place of contents or beside their beginnings,
//! appended to a file that no tool reaches.
//!
//! Whoever records never waits: a thread writes, and what finds its queue full is counted. A file that cannot be written
//! is said once, in the log and to a client; the gap is marked as soon as a line goes through again.

mod file;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::file::LogFile;
use crate::permission::Remember;

pub use self::file::MAX_KEPT;
use parking_lot::Mutex;

/// Lines that may wait to be written: some hundred conversations ending their calls at once. At about
/// 1 KiB a line, or 10 with the beginnings of contents, this is its memory, too.
const QUEUE_LINES: usize = 1_024;

/// Longest text of a line that a model or client chose, in bytes.
const MAX_NAME: usize = 128;

/// The most bytes of a command, of an input and of a result that a line has.
const MAX_CONTENT: usize = 4 * 1024;

/// How long the end of the daemon waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How much of contents a line has. Secrets are taken out of it by whoever records it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Digests.
    #[default]
    Hash,
    /// And the command line, or the path.
    Command,
    /// And the beginnings of input and result.
    Full,
}

/// Whether a call was let run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// It was.
    Run,
    /// It was not.
    Refused,
    /// It never came to that: no such tool, an input that does not fit, a cancel.
    #[default]
    None,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// The rules: trust level, scope, class of the command.
    Policy,
    /// The user, who was asked.
    User,
    /// The user, earlier: an answer that was to be remembered.
    Remembered,
    /// Nobody could be asked (`approval.unattended = "deny"`).
    Unattended,
    /// Nobody answered in time.
    Timeout,
    /// The sandbox: a path outside the roots or on the deny list.
    Sandbox,
    /// A hook of the operator.
    Hook,
    /// The call was over before anybody decided.
    #[default]
    Nobody,
}

/// What was decided about a call, and by whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// Whether it was let run.
    pub decision: Decision,
    /// Who said so.
    pub by: By,
    /// How far the answer reaches, where it was given earlier.
    pub scope: Option<Remember>,
    /// Whether the user changed the input.
    pub edited: bool,
}

impl Ruling {
    /// It may run.
    pub fn run(by: By) -> Self {
        Self {
            decision: Decision::Run,
            by,
            ..Self::default()
        }
    }

    /// It may not.
    pub fn refused(by: By) -> Self {
        Self {
            decision: Decision::Refused,
            by,
            ..Self::default()
        }
    }

    /// The user said so earlier, in an answer that reaches so far.
    #[must_use]
    pub fn remembered(allows: bool, reach: Remember) -> Self {
        let ruling = match allows {
            true => Self::run(By::Remembered),
            false => Self::refused(By::Remembered),
        };
        Self {
            scope: Some(reach),
            ..ruling
        }
    }
}

/// What was decided about a host that a call's command asked for, which is not on `tools.bash.hosts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRuling {
    pub(crate) host: String,
    pub(crate) decision: Decision,
    pub(crate) decided_by: By,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Remember>,
}

/// All that was decided about a call.
#[derive(Clone, Debug, Default)]
pub struct Rulings {
    pub(crate) call: Ruling,
    /// Each host once.
    pub(crate) hosts: Vec<HostRuling>,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When the call was settled, RFC 3339 in UTC.
    pub(crate) time: String,
    /// Whose session it is; absent for the one user whose name is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) user: String,
    pub(crate) session: String,
    pub(crate) conversation: String,
    /// The exchange, by the id of its messages.
    pub(crate) exchange: String,
    /// The call, unique in its session.
    pub(crate) tool_id: String,
    pub(crate) tool: String,
    /// The provider instance whose model made the call.
    pub(crate) provider: String,
    pub(crate) model: String,
    /// `safe`, `warning`, `dangerous` or `blocked`.
    pub(crate) level: String,
    pub(crate) decision: Decision,
    pub(crate) decided_by: By,
    /// How far an answer reaches that was given earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Remember>,
    /// Whether the user changed the input.
    pub(crate) edited: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<HostRuling>,
    /// `success`, `error`, `denied`, `cancelled`, or `interrupted`: it ran when its daemon was killed.
    pub(crate) status: String,
    /// The sandbox mode of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: u64,
    /// How long it waited for other calls.
    pub(crate) queued_ms: u64,
    /// The command line of a call that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// The path that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The input as it was run, as compact JSON.
    pub(crate) input: Digested,
    /// The result as the model was given it.
    pub(crate) output: Digested,
}

/// A content by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Digested {
    sha256: String,
    bytes: u64,
    /// Its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Digested {
    /// Digests a content.
    pub fn of(content: &[u8]) -> Self {
        Self {
            sha256: data_encoding::HEXLOWER.encode(&Sha256::digest(content)),
            bytes: content.len() as u64,
            text: None,
        }
    }

    /// Shows its beginning; `clean` is the content without secrets.
    pub(crate) fn with_text(self, clean: &str) -> Self {
        Self {
            text: Some(beginning(clean)),
            ..self
        }
    }
}

/// Returns the first 4 KiB of a text without secrets.
pub(crate) fn beginning(clean: &str) -> String {
    let end = clean.floor_char_boundary(MAX_CONTENT);
    match clean.get(..end) {
        Some(kept) if end < clean.len() => format!("{kept}…"),
        _ => clean.to_owned(),
    }
}

/// Where lines go; clones write to the same file, the default to none.
#[derive(Clone, Debug, Default)]
pub struct Audit(Option<Arc<Open>>);

#[derive(Debug)]
struct Open {
    queue: SyncSender<Item>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines that were not written since the last one that was.
    lost: AtomicU64,
    /// What went wrong, until somebody was notified. Held for a look.
    news: Mutex<Option<String>>,
}

enum Item {
    Line(String),
    /// Everything before this was written once the sender is dropped.
    Flush(SyncSender<()>),
}

impl Audit {
    /// Opens the file, to be replaced by a new one at `max_bytes` while `keep` older ones are kept.
    ///
    /// # Errors
    ///
    /// Where the file cannot be made or opened, belongs to somebody else or is no file; or there is no thread.
    pub fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let file = LogFile::open(path, max_bytes, keep)?;
        let (queue, items) = sync_channel(QUEUE_LINES);
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_all(file, &items, &shared))?;
        Ok(Self(Some(Arc::new(Open { queue, state }))))
    }

    /// Whether there is a file at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records a call; never waits. Texts that others chose are cut to 128 bytes.
    pub fn record(&self, mut entry: Entry) {
        let Some(open) = &self.0 else { return };
        for text in [&mut entry.conversation, &mut entry.tool, &mut entry.model] {
            text.truncate(text.floor_char_boundary(MAX_NAME));
        }
        let sent = serde_json::to_string(&entry)
            .map_err(|error| error.to_string())
            .and_then(|line| {
                open.queue
                    .try_send(Item::Line(line + "\n"))
                    .map_err(|_| "it takes lines too slowly".to_owned())
            });
        if let Err(problem) = sent {
            open.state.lose(&problem);
        }
    }

    /// Returns what went wrong with the file, once.
    pub fn news(&self) -> Option<String> {
        let open = self.0.as_ref()?;
        open.state.news.lock().take()
    }

    /// Waits until what was recorded is written, for two seconds at most. Blocks.
    pub fn flush(&self) {
        let Some(open) = &self.0 else { return };
        let (done, flushed) = sync_channel(0);
        if open.queue.try_send(Item::Flush(done)).is_ok() {
            // The sender is dropped once all is written: either error is the end of waiting.
            let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl State {
    fn lose(&self, problem: &str) {
        if self.lost.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        tracing::error!(problem, "the audit log cannot be written; calls go on");
        let text = format!(
            "the audit log cannot be written ({problem}); calls go on without a record until it can, see audit.path"
        );
        *self.news.lock() = Some(text);
    }
}

fn write_all(mut file: LogFile, items: &Receiver<Item>, state: &State) {
    for item in items {
        let line = match item {
            Item::Line(line) => line,
            Item::Flush(done) => {
                file.sync();
                drop(done);
                continue;
            }
        };
        let lost = state.lost.load(Ordering::Relaxed);
        // A line of its own stands for those that are missing.
        let time = format!("{:.3}", jiff::Timestamp::now());
        let marked = match lost {
            0 => line,
            lost => format!("{{\"time\":\"{time}\",\"lost\":{lost}}}\n{line}"),
        };
        match file.append(marked.as_bytes()) {
            Ok(()) if lost > 0 => {
                state.lost.fetch_sub(lost, Ordering::Relaxed);
                tracing::warn!(lost, "the audit log is written again");
            }
            Ok(()) => {}
            Err(error) => state.lose(&error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;

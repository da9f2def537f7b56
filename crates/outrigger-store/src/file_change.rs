//! What calls did to files: what is written of a change, and how it is found again. Times are milliseconds since 1970.

use crate::{Attachment, Hash};

/// A change of a file, or of some by a command.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChange {
    /// In which conversation.
    pub conversation: String,
    /// Whose.
    pub exchange: String,
    /// Which call's; empty where none's.
    pub call: String,
    /// The folder that the file is below; empty for files of a command.
    pub root: String,
    /// Its path there; empty for files of a command.
    pub path: String,
    /// What is known of it, as its owner writes it.
    pub about: String,
    /// What changes, to be shown; empty for nothing.
    pub diff: String,
    /// The content that is replaced, where it is to be kept. A session keeps the newest ones.
    pub before: Option<Attachment>,
    /// When.
    pub at_ms: i64,
}

/// Which changes of files are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileQuery {
    /// Of this session.
    pub session: String,
    /// Only those in this conversation.
    pub conversation: Option<String>,
    /// Only those of this exchange.
    pub exchange: Option<String>,
    /// Only those of this call.
    pub call: Option<String>,
    /// Only those of this exchange and later ones.
    pub since: Option<String>,
    /// Only those written before this one, which an earlier page ended with.
    pub cursor: Option<i64>,
    /// At most so many, and no further ones after so many bytes of what is shown; 1 at least.
    pub limit: usize,
    /// See `limit`; where it is 0, nothing is read of what is shown.
    pub bytes: usize,
}

/// A change of a file as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptFile {
    /// Its place in the order in which they were written.
    pub key: i64,
    /// As it was written; without the content.
    pub change: FileChange,
    /// By what the content is had that was replaced, while it is kept.
    pub before: Option<Hash>,
}

/// A page of changes of files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilePage {
    /// The changes, the newest first.
    pub changes: Vec<KeptFile>,
    /// What to ask for the next page with; `None` where there is none.
    pub next: Option<i64>,
}

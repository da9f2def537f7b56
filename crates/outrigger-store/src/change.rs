//! What is written, and what is read back. Times are milliseconds since 1970.

use std::time::Duration;

use crate::call::{CallFacts, ToolCall};
use crate::file_change::FileChange;
use crate::usage::Usage;
use crate::user::User;

/// The SHA-256 of an attachment.
pub type Hash = [u8; 32];

/// One change of a session. The session itself is made by [`Change::Create`], which comes first.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes the session; does nothing where it is there.
    Create {
        /// The folder it works in.
        project: Option<String>,
        /// When.
        at_ms: i64,
    },
    /// Numbers of events and of ids up to these may have been seen by somebody.
    Reserve {
        /// The highest number of an event.
        seq: u64,
        /// The highest number of an id.
        ids: u64,
    },
    /// The defaults of its sends, as its owner writes them.
    Settings(String),
    /// The folder it works in.
    Project(Option<String>),
    /// Its name; one that the user gave is not replaced by the daemon's.
    Title {
        /// The name.
        title: String,
        /// Who gave it.
        by: TitleBy,
    },
    /// Whether it is put away.
    Archived {
        /// When; `None` where it is not.
        at_ms: Option<i64>,
    },
    /// Its labels, in place of those that it had.
    Labels(Vec<String>),
    /// Adds a message to the end of a conversation, which is made where there is none.
    Message {
        /// Which conversation.
        conversation: String,
        /// The message.
        message: Message,
    },
    /// The model of a conversation does not see all of it any more.
    Compacted {
        /// Which conversation.
        conversation: String,
        /// What it sees, as its owner writes it; `None` for all of it.
        compacted: Option<String>,
    },
    /// Removes messages of a conversation from this place on, and with them what its model does not see.
    Truncate {
        /// Which conversation.
        conversation: String,
        /// The first place that is free afterwards.
        from: u64,
    },
    /// Forgets a conversation: it has no messages afterwards, and nothing waits in it.
    Forget {
        /// Which conversation.
        conversation: String,
    },
    /// An exchange began, or waits no longer.
    Began(Exchange),
    /// An exchange ended, perhaps before it began.
    Ended {
        /// Which exchange.
        id: String,
        /// Whose.
        conversation: String,
        /// When.
        at_ms: i64,
        /// The number of the event that said so.
        seq: u64,
        /// That event.
        end: String,
    },
    /// How a call stands; replaces what was written of it.
    Call {
        /// The call.
        call: ToolCall,
        /// What it is found and summed by.
        facts: CallFacts,
    },
    /// A call that did not run here: it is found like others, and no sum has it.
    Imported {
        /// The call.
        call: ToolCall,
        /// What it is found by.
        facts: CallFacts,
    },
    /// What is known of a call that was settled before.
    Record {
        /// Which call.
        id: String,
        /// What is known of it, as its owner writes it.
        record: String,
    },
    /// A message says what a call came to.
    Answered {
        /// Which call.
        id: String,
    },
    /// A send waits.
    Queued(Queued),
    /// A send waits no longer.
    Unqueued {
        /// Which.
        id: String,
    },
    /// What a send was answered, so that it does not run twice.
    Sent(Sent),
    /// An answer counts for later calls.
    Rule(Rule),
    /// It counts no more, whosever it is.
    Revoke {
        /// Which.
        id: String,
    },
    /// A file is about to be changed, or a command has changed some.
    File(FileChange),
    /// A change of a file that was written, the last one of it, was not made after all.
    FileUnmade {
        /// Whose.
        exchange: String,
        /// Which call's; empty where none's.
        call: String,
        /// Which file: the folder it is below, and its path there.
        root: String,
        /// See `root`.
        path: String,
    },
    /// A request to a model was made, whether the session is kept or not.
    Used(Usage),
    /// Makes the session of another one: its messages up to a place, none copied. What counts in that one does not here,
    /// and what was done to files stays with it.
    Fork {
        /// The other session.
        from: String,
        /// Only this conversation of it, up to this place where there is one; all of them where there is none.
        part: Option<(String, Option<u64>)>,
        /// When.
        at_ms: i64,
    },
    /// Removes the session and all that is of it.
    Delete,
}

impl Change {
    /// Returns whether it makes a session.
    pub(crate) fn makes(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Fork { .. })
    }

    /// Returns whether more of the same exchange follows at once: what of an answer comes one by one is written together.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(
            self,
            Self::Message { .. }
                | Self::Call { .. }
                | Self::Record { .. }
                | Self::Answered { .. }
                | Self::Used(_)
        )
    }

    /// Returns whether it removes messages.
    pub fn removes(&self) -> bool {
        matches!(
            self,
            Self::Truncate { .. } | Self::Forget { .. } | Self::Delete
        )
    }
}

/// Who named a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TitleBy {
    /// The daemon, from its first words.
    Daemon,
    /// The user.
    User,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Whose exchange it is.
    pub exchange: String,
    /// What it says.
    pub body: Body,
    /// When.
    pub at_ms: i64,
}

/// What a message says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// As its owner writes it.
    pub text: String,
    /// The words by which it is found; empty for none.
    pub words: String,
    /// What is kept once, however often it is said.
    pub attachments: Vec<Attachment>,
}

/// Bytes that are kept once, by their hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    /// Their SHA-256.
    pub hash: Hash,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// An exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Its id.
    pub id: String,
    /// Whose.
    pub conversation: String,
    /// When it began.
    pub began_ms: i64,
    /// The event that said how it ended, with its number; `None` where it did not.
    pub end: Option<(u64, String)>,
}

/// A send that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    /// The id of its exchange.
    pub id: String,
    /// Whose.
    pub conversation: String,
    /// The send, as its owner writes it.
    pub send: String,
}

/// A send that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The id that its client gave it.
    pub id: String,
    /// Of all that it says.
    pub digest: Vec<u8>,
    /// What it was answered, as its owner writes it.
    pub answer: String,
}

/// An answer that counts for later calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its id, unlike all others.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
    /// What it says, as its owner writes it.
    pub rule: String,
}

/// Whose an answer is: with that it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A conversation's.
    Conversation(String),
    /// The session's.
    Session,
    /// Nobody's: it stays until it is revoked.
    None,
}

/// A session as it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// How often it was opened.
    pub epoch: u64,
    /// The highest number of an event that somebody may have seen.
    pub seq: u64,
    /// The highest number of an id that somebody may have seen.
    pub ids: u64,
    /// How many numbers of events after that are reserved for whoever opened it.
    pub reserved_seq: u64,
    /// The same for ids.
    pub reserved_ids: u64,
    /// The folder it works in.
    pub project: Option<String>,
    /// Its name.
    pub title: Option<String>,
    /// The defaults of its sends.
    pub settings: Option<String>,
    /// Its conversations, with their messages.
    pub conversations: Vec<Conversation>,
    /// Its last exchanges, oldest first.
    pub exchanges: Vec<Exchange>,
    /// Its last calls, oldest first.
    pub calls: Vec<ToolCall>,
    /// What waits, first come first.
    pub queued: Vec<Queued>,
    /// The last sends that were answered, oldest first.
    pub sent: Vec<Sent>,
    /// The answers that count in it and its conversations, oldest first: each one's id, and itself as its owner wrote it.
    pub rules: Vec<(String, String)>,
    /// What requests to models cost, in micro-dollars by conversation; of those that were forgotten under an empty name.
    pub spent: Vec<(String, i64)>,
}

/// A conversation as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// What its model does not see of it, as its owner wrote it.
    pub compacted: Option<String>,
    /// Its messages in order.
    pub messages: Vec<Message>,
}

/// A piece of a session that is exported: first its head, then calls, exchanges, and the messages of each conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// What is known of the session itself.
    Head(Head),
    /// A call, oldest first.
    Call(ToolCall),
    /// An exchange that ended, oldest first.
    Exchange(Exchange),
    /// A message; a conversation's in order, one conversation after the other.
    Message {
        /// Its conversation.
        conversation: String,
        /// The message, without the words by which it is found.
        message: Message,
    },
}

/// What is known of a session itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Its name.
    pub title: Option<String>,
    /// Who gave it.
    pub title_by: TitleBy,
    /// The folder it works in.
    pub project: Option<String>,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// When it was made.
    pub created_ms: i64,
    /// When it was put away.
    pub archived_ms: Option<i64>,
}

/// How much may be kept. What somebody has open is never deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// A session that did not change for so long is deleted.
    pub keep: Option<Duration>,
    /// From so many bytes on, sessions that are put away are deleted, the one that did not change for longest first. Counted
    /// is what the file holds; what is free in it is not.
    pub max_bytes: Option<u64>,
}

/// What limits came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A session was deleted.
    Deleted {
        /// Whose it was.
        user: User,
        /// Which.
        session: String,
        /// When it had changed last.
        updated_ms: i64,
        /// Whether it was too old; else there was too much.
        is_old: bool,
    },
    /// Most of the bytes that may be kept are. Told once, until it is less again.
    Filling {
        /// How many are kept.
        bytes: u64,
        /// How many may be.
        max_bytes: u64,
    },
    /// All of them are, and no session is left that may be deleted. Told once, until it is less again.
    Full {
        /// How many are kept.
        bytes: u64,
        /// How many may be.
        max_bytes: u64,
    },
}

/// How much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// Attachments.
    pub attachments: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of its log of changes (`-wal`).
    pub wal_bytes: u64,
}

//! Keeps sessions, so that they outlive the process: what was said, what ran, what waits.
//!
//! A session's changes are written in the order in which they were made, and whoever made one is told when it is safe.
//! Nothing here knows what a message means: it is a body, with the words by which it is found.
//!
//! Read next: [`Change`] (all that can be written), [`Store`] (what a store does), [`sqlite`] (the one in a file),
//! [`postgres`] (the one in a database).

#![forbid(unsafe_code)]

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod any;
mod bounds;
mod call;
mod change;
mod clock;
mod deflated;
mod file_change;
mod held;
mod listing;
pub mod postgres;
mod queue;
mod share;
mod slices;
pub mod sqlite;
mod upkeep;
mod usage;
mod user;
mod words;

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::future::BoxFuture;

pub use any::{AnyStore, UserStore};
pub use call::{
    CallFacts, CallListing, CallPage, CallStatus, Ended, KnownCall, MS_OF_DAY, OTHER, Ran, Sum,
    ToolCall,
};
pub use change::{
    Attachment, Body, Change, Conversation, Exchange, Growth, Hash, Head, Limits, Message, Owner,
    Piece, Queued, Rule, Sent, Session, Stats, TitleBy,
};
pub use file_change::{FileChange, FilePage, FileQuery, KeptFile};
pub use listing::{Cursor, Listed, Listing, Page, Snippet};
pub use usage::{MS_OF_QUARTER, Usage, UsageBy, UsageQuery, UsageSum, UsageTokens};
pub use user::User;

/// Told once when changes are safe, or that they are not yet.
pub type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// That a session is held.
pub type Held = Box<dyn Any + Send>;

/// Takes the pieces of a session that is exported, and says whether it wants more.
pub type Each = Box<dyn FnMut(Piece) -> ControlFlow<()> + Send>;

/// The changes that make a session, one after the other; an error, which is for people, unmakes it.
pub type Changes = Box<dyn Iterator<Item = Result<Change, String>> + Send>;

/// How a process holds its sessions in a database that others may have, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseFigures {
    /// Sessions that are this process's.
    pub sessions: u64,
    /// Sessions that it has taken from processes that were gone, since it began.
    pub taken: u64,
    /// How often its lease was not renewed in time.
    pub lapses: u64,
    /// How long the lease goes on without being renewed.
    pub left: Duration,
}

/// What becomes of what is written, for whoever tells people. It is told before whoever waits is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health<'a> {
    /// All is safe again.
    Well,
    /// Nothing is taken now, for this reason; it is tried again.
    Failing(&'a str),
    /// Others may take the sessions of this process soon: it could not say for long that it lives. What runs has to stop.
    Lapsing,
    /// Nothing is written any more.
    Ended(&'a Error),
    /// What a session said is not kept, nor what it says until it is read anew.
    NotKept {
        /// The session.
        session: &'a str,
        /// Why not.
        why: &'a str,
    },
}

/// Where sessions are kept: those of one user. Ids of another's are those of none.
pub trait Store: Send + Sync + fmt::Debug {
    /// Writes changes of one session together, after all that was written of it before. Returns at once.
    ///
    /// `done` is called from a thread of the store. [`Error::Failing`] says that the disk does not take them now: they
    /// are tried again with what follows, in order. That is not said where [`Store::is_one_of_several`].
    fn write(&self, session: &str, changes: Vec<Change>, done: Done);

    /// Says that somebody waits for what was given to [`write`](Self::write): it waits for nothing that may follow.
    fn hurry(&self);

    /// Writes changes of one session together, now or never: after an error none of them is written later.
    fn attempt(&self, session: &str, changes: Vec<Change>)
    -> BoxFuture<'static, Result<(), Error>>;

    /// Begins a session anew after a restart: counts its `epoch` and reserves numbers, then reads all of it.
    /// `None` where there is no such session.
    fn open(&self, session: &str) -> BoxFuture<'static, Result<Option<Session>, Error>>;

    /// Fails with [`Error::Elsewhere`] where another process has a session.
    fn is_here(&self, session: &str) -> BoxFuture<'static, Result<(), Error>>;

    /// Says that somebody has a session open, or is about to, until what this returns is dropped: no limit deletes it.
    fn hold(&self, session: &str) -> Held;

    /// Reads all of a session as it is now, without beginning it anew; `each` is called from a thread for blocking work.
    /// False where there is no such session.
    fn export(&self, session: &str, each: Each) -> BoxFuture<'static, Result<bool, Error>>;

    /// Makes a session of changes, of which the first is [`Change::Create`]: all of them, or none, and nobody sees it before.
    /// Nobody has it open. Changes are asked for on a thread for blocking work; what others write is written meanwhile.
    fn import(&self, session: &str, changes: Changes) -> BoxFuture<'static, Result<(), Error>>;

    /// Returns whether there is such a session.
    fn has(&self, session: &str) -> BoxFuture<'static, Result<bool, Error>>;

    /// Returns whether an exchange of this id is known in a session: that it began, waits, said or changed something.
    fn has_exchange(&self, session: &str, id: &str) -> BoxFuture<'static, Result<bool, Error>>;

    /// Returns a page of sessions, the one that changed last first.
    fn list(&self, wanted: Listing) -> BoxFuture<'static, Result<Page, Error>>;

    /// Returns a page of calls of all sessions, the newest first. One that waits to be run is not among them.
    fn calls(&self, wanted: CallListing) -> BoxFuture<'static, Result<CallPage, Error>>;

    /// Returns what ran from a day on, which is counted since 1970 (UTC). Deleted sessions count.
    fn ran(&self, from_day: i64) -> BoxFuture<'static, Result<Ran, Error>>;

    /// Returns what requests to models come to, those first that cost most. Deleted sessions count.
    fn usage(&self, wanted: UsageQuery) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>>;

    /// Returns the answers that are no session's, oldest first: each one's id, and itself as its owner wrote it. The last 10,000.
    fn rules(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>>;

    /// Returns a page of what calls did to files, the newest first.
    fn files(&self, wanted: FileQuery) -> BoxFuture<'static, Result<FilePage, Error>>;

    /// Returns the bytes of this hash; `None` where they are not kept.
    fn attachment(&self, hash: Hash) -> BoxFuture<'static, Result<Option<Vec<u8>>, Error>>;

    /// Returns whether so many bytes that can be done without may be given to [`write`](Self::write) now: they must not
    /// take the room of what cannot.
    fn has_room(&self, bytes: usize) -> bool;

    /// Says that [`write`](Self::write) was not answered for long. That is told as a failure is, until something is answered.
    fn is_silent(&self);

    /// Returns whether other processes may have the sessions soon where this one cannot write: what is not safe then may be
    /// lost though this process goes on.
    fn is_one_of_several(&self) -> bool;

    /// Returns the sessions of which something was said that is not safe: it waits, or was refused.
    fn not_kept(&self) -> Vec<String>;

    /// Returns how many bytes the user keeps: what is said, attached and changed, and what calls said; or a few more, where
    /// that is less than `most`. What several sessions share counts once.
    fn kept(&self, most: u64) -> BoxFuture<'static, Result<u64, Error>>;

    /// Returns how much is kept.
    fn stats(&self) -> BoxFuture<'static, Result<Stats, Error>>;

    /// Waits until everything that was given to [`write`](Self::write) is safe or given up.
    fn flush(&self) -> BoxFuture<'static, Result<(), Error>>;

    /// Waits as [`flush`](Self::flush) does, and leaves nothing of what was deleted behind. For the end of the process.
    fn close(&self) -> BoxFuture<'static, Result<(), Error>>;
}

/// Why something is not kept, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another process has the file.
    #[error(
        "{path} is in use by the process {pid}; end it, or give this one a store.path of its own"
    )]
    InUse {
        /// The lock.
        path: String,
        /// Whose it is, or "unknown".
        pid: String,
    },
    /// Another process has the session.
    #[error("the session is open at {node}; go on there, or try again in a while")]
    Elsewhere {
        /// The process.
        node: String,
        /// The address that clients are passed on to; `None` where it told none.
        url: Option<String>,
        /// After which time it is free, unless that process says before that it lives; zero where that is about to be found out.
        left: Duration,
    },
    /// This process could not be seen for too long, or another one of its name was started: others may have its sessions.
    #[error(
        "at {database} this daemon was taken for dead: it was silent for too long, or another one was started with its cluster.name, which has to be its own; what is said here from now on is not kept; start it anew"
    )]
    Taken {
        /// Which database.
        database: String,
    },
    /// There is none to be read.
    #[error("there is no store at {path}: no session was kept there yet")]
    Missing {
        /// Where it would be.
        path: String,
    },
    /// It was written by a newer version of this program.
    #[error(
        "{path} has schema {found}, and this version knows {known} at most; use the version that wrote it, or give this one a store of its own (store.path, store.url)"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// It cannot be opened or made.
    #[error("{path} cannot be opened: {problem}")]
    Open {
        /// The file or its folder.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// What is in it is no database, or not a whole one.
    #[error(
        "{path} is damaged ({problem}); end the daemon, then move the file away to begin anew, or repair it with `sqlite3 {path} .recover`"
    )]
    Corrupt {
        /// The file.
        path: String,
        /// What SQLite says.
        problem: String,
    },
    /// The disk does not take it now: full, read-only, or worse.
    #[error("the store does not take it now: {0}")]
    Failing(String),
    /// It cannot be written or read, and trying again does not help.
    #[error("the store refuses it: {0}")]
    Refused(String),
    /// What it is to be made of is not there.
    #[error("there is no such session, or no such conversation in it")]
    Unknown,
    /// It is to be made of more messages than there are.
    #[error("the conversation has {messages} messages")]
    Beyond {
        /// How many there are.
        messages: u64,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

//! Whichever store a process has.

use std::path::Path;

use futures::future::BoxFuture;

use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::{
    CallListing, CallPage, Change, Changes, Done, Each, Error, FilePage, FileQuery, Growth, Hash,
    Health, Held, Limits, Listing, Page, Ran, Session, Stats, Store, UsageQuery, UsageSum,
};

/// A store in a file or in a database. Clones share it.
#[derive(Clone, Debug)]
pub enum AnyStore {
    /// In a file.
    File(Sqlite),
    /// In a database.
    Database(Postgres),
}

/// Has whichever it is do something.
macro_rules! either {
    ($store:expr, $it:ident => $does:expr) => {
        match $store {
            Self::File($it) => $does,
            Self::Database($it) => $does,
        }
    };
}

impl AnyStore {
    /// Returns where it is, for people; without a user's name and password.
    pub fn shown(&self) -> String {
        match self {
            Self::File(store) => store.path().display().to_string(),
            Self::Database(store) => store.shown().to_owned(),
        }
    }

    /// Returns where its file is; `None` where it has none.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(store) => Some(store.path()),
            Self::Database(_) => None,
        }
    }

    /// Returns where a damaged file was moved to when this one was begun.
    pub fn moved_away(&self) -> Option<&Path> {
        match self {
            Self::File(store) => store.moved_away(),
            Self::Database(_) => None,
        }
    }

    /// Returns how many bytes the log of changes of its file had when it was looked at last; `None` where it has no file.
    pub fn log_bytes(&self) -> Option<u64> {
        match self {
            Self::File(store) => Some(store.log_bytes()),
            Self::Database(_) => None,
        }
    }

    /// Returns why what is written is not safe now; `None` where it is.
    pub fn failing(&self) -> Option<String> {
        either!(self, it => it.failing())
    }

    /// Returns why nothing is written any more; `None` where that is not so.
    pub fn ended(&self) -> Option<Error> {
        match self {
            Self::File(_) => None,
            Self::Database(store) => store.ended(),
        }
    }

    /// Has it told to `tell` what becomes of what is written.
    pub fn watch(&self, tell: impl Fn(Health<'_>) + Send + 'static) {
        either!(self, it => it.watch(tell));
    }

    /// Holds what is kept to limits from now on, and tells what comes of it.
    pub fn limit(&self, limits: Limits, tell: impl Fn(Growth) + Send + 'static) {
        either!(self, it => it.limit(limits, tell));
    }
}

impl Store for AnyStore {
    fn write(&self, session: &str, changes: Vec<Change>, done: Done) {
        either!(self, it => it.write(session, changes, done));
    }

    fn attempt(
        &self,
        session: &str,
        changes: Vec<Change>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        either!(self, it => it.attempt(session, changes))
    }

    fn open(&self, session: &str) -> BoxFuture<'static, Result<Option<Session>, Error>> {
        either!(self, it => it.open(session))
    }

    fn hold(&self, session: &str) -> Held {
        either!(self, it => it.hold(session))
    }

    fn export(&self, session: &str, each: Each) -> BoxFuture<'static, Result<bool, Error>> {
        either!(self, it => it.export(session, each))
    }

    fn import(&self, session: &str, changes: Changes) -> BoxFuture<'static, Result<(), Error>> {
        either!(self, it => it.import(session, changes))
    }

    fn has(&self, session: &str) -> BoxFuture<'static, Result<bool, Error>> {
        either!(self, it => it.has(session))
    }

    fn has_exchange(&self, session: &str, id: &str) -> BoxFuture<'static, Result<bool, Error>> {
        either!(self, it => it.has_exchange(session, id))
    }

    fn list(&self, wanted: Listing) -> BoxFuture<'static, Result<Page, Error>> {
        either!(self, it => it.list(wanted))
    }

    fn calls(&self, wanted: CallListing) -> BoxFuture<'static, Result<CallPage, Error>> {
        either!(self, it => it.calls(wanted))
    }

    fn ran(&self, from_day: i64) -> BoxFuture<'static, Result<Ran, Error>> {
        either!(self, it => it.ran(from_day))
    }

    fn usage(&self, wanted: UsageQuery) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        either!(self, it => it.usage(wanted))
    }

    fn rules(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        either!(self, it => it.rules())
    }

    fn files(&self, wanted: FileQuery) -> BoxFuture<'static, Result<FilePage, Error>> {
        either!(self, it => it.files(wanted))
    }

    fn attachment(&self, hash: Hash) -> BoxFuture<'static, Result<Option<Vec<u8>>, Error>> {
        either!(self, it => it.attachment(hash))
    }

    fn has_room(&self, bytes: usize) -> bool {
        either!(self, it => it.has_room(bytes))
    }

    fn is_silent(&self) {
        either!(self, it => it.is_silent());
    }

    fn not_kept(&self) -> Vec<String> {
        either!(self, it => it.not_kept())
    }

    fn stats(&self) -> BoxFuture<'static, Result<Stats, Error>> {
        either!(self, it => it.stats())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), Error>> {
        either!(self, it => it.flush())
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        either!(self, it => it.close())
    }
}

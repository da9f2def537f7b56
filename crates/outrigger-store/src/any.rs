//! Whichever store a process has.

use std::path::Path;

use futures::future::BoxFuture;

use crate::postgres::{Activity, Postgres, Process};
use crate::sqlite::Sqlite;
use crate::{
    CallListing, CallPage, Change, Changes, Done, Each, Error, FilePage, FileQuery, Growth, Hash,
    Health, Held, LeaseFigures, Limits, Listing, Page, Ran, Session, Stats, Store, UsageQuery,
    UsageSum, User,
};

/// A store in a file or in a database. Clones share it. What is kept there is reached by [`of`](Self::of) alone, as the
/// user has it whose it is.
#[derive(Clone, Debug)]
pub struct AnyStore(UserStore);

/// The same as one user has it. Clones share it.
#[derive(Clone, Debug)]
pub enum UserStore {
    /// In a file.
    File(Sqlite),
    /// In a database.
    Database(Postgres),
}

/// Has whichever it is do something.
macro_rules! either {
    ($store:expr, $it:ident => $does:expr) => {
        match $store {
            UserStore::File($it) => $does,
            UserStore::Database($it) => $does,
        }
    };
}

impl From<Sqlite> for AnyStore {
    fn from(store: Sqlite) -> Self {
        Self(UserStore::File(store))
    }
}

impl From<Postgres> for AnyStore {
    fn from(store: Postgres) -> Self {
        Self(UserStore::Database(store))
    }
}

impl AnyStore {
    /// Returns it as a user has it.
    pub fn of(&self, user: &User) -> UserStore {
        match &self.0 {
            UserStore::File(store) => UserStore::File(store.of(user)),
            UserStore::Database(store) => UserStore::Database(store.of(user)),
        }
    }

    /// Returns whose a session is; `None` where there is none.
    pub fn owner(&self, session: &str) -> BoxFuture<'static, Result<Option<User>, Error>> {
        either!(&self.0, it => it.owner(session))
    }

    /// Returns what requests to models of all users come to, those first that cost most.
    pub fn usage_of_all(
        &self,
        wanted: UsageQuery,
    ) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        either!(&self.0, it => it.usage_of_all(wanted))
    }

    /// Returns where it is, for people; without a user's name and password.
    pub fn shown(&self) -> String {
        match &self.0 {
            UserStore::File(store) => store.path().display().to_string(),
            UserStore::Database(store) => store.shown().to_owned(),
        }
    }

    /// Returns where its file is; `None` where it has none.
    pub fn file(&self) -> Option<&Path> {
        self.0.file()
    }

    /// Returns where a damaged file was moved to when this one was begun.
    pub fn moved_away(&self) -> Option<&Path> {
        match &self.0 {
            UserStore::File(store) => store.moved_away(),
            UserStore::Database(_) => None,
        }
    }

    /// Returns how many bytes the log of changes of its file had when it was looked at last; `None` where it has no file.
    pub fn log_bytes(&self) -> Option<u64> {
        match &self.0 {
            UserStore::File(store) => Some(store.log_bytes()),
            UserStore::Database(_) => None,
        }
    }

    /// Returns how its sessions are held; `None` where it is a file, which is one process's.
    pub fn lease(&self) -> Option<LeaseFigures> {
        match &self.0 {
            UserStore::File(_) => None,
            UserStore::Database(store) => Some(store.lease()),
        }
    }

    /// Returns the processes that have it, by their names; none of a file, which is one process's.
    pub fn processes(&self) -> BoxFuture<'static, Result<Vec<Process>, Error>> {
        match &self.0 {
            UserStore::File(_) => Box::pin(std::future::ready(Ok(Vec::new()))),
            UserStore::Database(store) => store.processes(),
        }
    }

    /// Tells other processes what users do at this one, in a version that goes up each time. A file is one process's.
    pub fn tell_activity(
        &self,
        version: u64,
        own: &[(User, Activity)],
    ) -> BoxFuture<'static, Result<(), Error>> {
        match &self.0 {
            UserStore::File(_) => Box::pin(std::future::ready(Ok(()))),
            UserStore::Database(store) => store.tell_activity(version, own),
        }
    }

    /// Tells other processes that before this version no others than these users did anything at this one.
    pub fn end_activity(
        &self,
        version: u64,
        users: &[User],
    ) -> BoxFuture<'static, Result<(), Error>> {
        match &self.0 {
            UserStore::File(_) => Box::pin(std::future::ready(Ok(()))),
            UserStore::Database(store) => store.end_activity(version, users),
        }
    }

    /// Returns what these users do at other processes; nothing is said of one who does nothing there.
    pub fn activity(
        &self,
        users: &[User],
    ) -> BoxFuture<'static, Result<Vec<(User, Activity)>, Error>> {
        match &self.0 {
            UserStore::File(_) => Box::pin(std::future::ready(Ok(Vec::new()))),
            UserStore::Database(store) => store.activity(users),
        }
    }

    /// Returns why what is written is not safe now; `None` where it is.
    pub fn failing(&self) -> Option<String> {
        either!(&self.0, it => it.failing())
    }

    /// Returns whether other processes may have its sessions soon where this one cannot write.
    pub fn is_one_of_several(&self) -> bool {
        either!(&self.0, it => it.is_one_of_several())
    }

    /// Returns why nothing is written any more; `None` where that is not so.
    pub fn ended(&self) -> Option<Error> {
        match &self.0 {
            UserStore::File(_) => None,
            UserStore::Database(store) => store.ended(),
        }
    }

    /// Has it told to `tell` what becomes of what is written.
    pub fn watch(&self, tell: impl Fn(Health<'_>) + Send + 'static) {
        either!(&self.0, it => it.watch(tell));
    }

    /// Holds what is kept to limits from now on, and tells what comes of it.
    pub fn limit(&self, limits: Limits, tell: impl Fn(Growth) + Send + 'static) {
        either!(&self.0, it => it.limit(limits, tell));
    }

    /// Returns the sessions whose last words are not kept.
    pub fn not_kept(&self) -> Vec<String> {
        self.0.not_kept()
    }

    /// Waits until everything that was given to it is safe or given up.
    pub fn flush(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.0.flush()
    }

    /// Waits as [`flush`](Self::flush) does, and leaves nothing of what was deleted behind. For the end of the process.
    pub fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.0.close()
    }
}

impl UserStore {
    /// Returns where its file is; `None` where it has none.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(store) => Some(store.path()),
            Self::Database(_) => None,
        }
    }
}

impl Store for UserStore {
    fn write(&self, session: &str, changes: Vec<Change>, done: Done) {
        either!(self, it => it.write(session, changes, done));
    }

    fn hurry(&self) {
        either!(self, it => it.hurry());
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

    fn is_here(&self, session: &str) -> BoxFuture<'static, Result<(), Error>> {
        either!(self, it => it.is_here(session))
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

    fn is_one_of_several(&self) -> bool {
        either!(self, it => it.is_one_of_several())
    }

    fn not_kept(&self) -> Vec<String> {
        either!(self, it => it.not_kept())
    }

    fn kept(&self, most: u64) -> BoxFuture<'static, Result<u64, Error>> {
        either!(self, it => it.kept(most))
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

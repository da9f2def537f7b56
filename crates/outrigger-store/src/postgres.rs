//! Sessions in a database of PostgreSQL: one task writes, others read by a pool of connections.
//!
//! - Several processes may have one database: each has sessions of its own, under a lease that it renews (`lease.rs`).
//! - The task takes all that waits into one transaction, commits, and then tells everybody.
//! - Where the server does not take a transaction, or is away, it is tried again with what came meanwhile, in order.
//! - An import is written in slices, and what others say between them.

mod activity;
mod apply;
mod checkup;
mod everyone;
mod import;
mod lease;
mod offline;
mod op;
mod open;
mod processes;
mod read;
mod schema;
mod sees;
mod server;
mod writer;

use std::sync::{Arc, mpsc as threads};
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Runtime};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::held::HeldSessions;
use crate::queue::{Gate, Job, Lasts};
use crate::share::Shares;
use crate::user::Whose;
use crate::{
    CallListing, CallPage, Change, Changes, Done, Each, Error, FilePage, FileQuery, Growth, Hash,
    Health, Held, LeaseFigures, Limits, Listing, Page, Ran, Session, Stats, Store, UsageQuery,
    UsageSum, User,
};
pub use activity::Activity;
pub use checkup::{Checkup, check_up};
use lease::Counts;
pub use lease::Node;
pub use offline::Reader;
use open::Open;
pub use processes::Process;
pub use schema::SCHEMA;
use server::{Server, described, refused};
use writer::{Work, Writer};

/// Reads at once: each has a connection.
const READERS: usize = 4;

/// How long a read waits for a connection, and how long it may take.
const PATIENCE: Duration = Duration::from_secs(20);
const READ: Duration = Duration::from_secs(60);

/// How long a read waits until what was given before is safe.
const SETTLED: Duration = Duration::from_secs(5);

/// How long the lease lasts that is not renewed; it is renewed three times as often.
const LEASE: Duration = Duration::from_secs(15);

/// How much work waits at most, beside the bound of its bytes, which is reached before: a job counts for 256 at least.
const JOBS: usize = 512 * 1024;

/// Threads of the store's own: what is read is inflated there.
const THREADS: usize = 2;

/// A store in a database, as one user has it: what another one has is not there. Clones share it.
#[derive(Clone, Debug)]
pub struct Postgres(Arc<Shared>, User);

struct Shared {
    server: Server,
    /// The number of this process.
    node: i64,
    /// How its sessions are held, and how long its lease lasts.
    counts: Arc<Counts>,
    lasts: Duration,
    is_one_of_several: bool,
    work: mpsc::Sender<Work>,
    gate: Arc<Gate>,
    held: HeldSessions,
    shares: Shares,
    /// Held by the import whose slice waits.
    slices: Mutex<()>,
    pool: Pool,
    threads: Handle,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.server.fmt(f)
    }
}

impl Postgres {
    /// Connects to the database of `url` and brings its schema up to date:
    /// `postgres://user:password@host:port/database?sslmode=verify-full`. Other processes may have it, too.
    ///
    /// Fails where it is newer than this program, or cannot be reached.
    pub fn start(url: &str, node: &Node) -> Result<Self, Error> {
        Self::begin(url, node, LEASE)
    }

    /// Says what is wrong with an address, without connecting.
    pub fn check(url: &str) -> Result<(), Error> {
        Server::read(url).map(drop)
    }

    /// The same with a lease that lasts so long.
    fn begin(url: &str, node: &Node, lasts: Duration) -> Result<Self, Error> {
        let server = Server::read(url)?;
        let failed = |problem: &dyn std::fmt::Display| server.error(problem.to_string());
        let pool = Pool::builder(server.manager())
            .max_size(READERS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .recycle_timeout(Some(PATIENCE))
            .build()
            .map_err(|error| failed(&error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let threads = runtime.handle().clone();
        let (gate, held) = (Arc::<Gate>::default(), HeldSessions::default());
        let (work, waits) = mpsc::channel(JOBS);
        let (of_writer, own) = (Arc::clone(&gate), (held.clone(), work.downgrade()));
        let (begun, has_begun) = threads::channel();
        let (of_thread, node) = (server.clone(), node.clone());
        let is_one_of_several = node.is_one_of_several;
        let counts = Arc::<Counts>::default();
        let of_lease = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("store".to_owned());
        let started = thread.spawn(move || {
            runtime.block_on(async {
                match Writer::begin(of_thread, (&node, lasts, of_lease), &of_writer, own).await {
                    Ok(mut writer) => {
                        begun.send(Ok(writer.node())).ok();
                        writer.run(waits).await;
                    }
                    Err(error) => drop(begun.send(Err(error))),
                }
            });
            runtime.shutdown_background();
        });
        started.map_err(|error| failed(&error))?;
        let node = has_begun.recv().map_err(|_| Error::Closed)??;
        let shared = Arc::new(Shared {
            server,
            node,
            counts,
            lasts,
            is_one_of_several,
            work,
            gate,
            held,
            shares: Shares::default(),
            slices: Mutex::default(),
            pool,
            threads,
        });
        Ok(Self(shared, User::default()))
    }

    /// Returns the same store as this user has it.
    pub fn of(&self, user: &User) -> Self {
        Self(Arc::clone(&self.0), user.clone())
    }

    /// Returns how its sessions are held.
    pub fn lease(&self) -> LeaseFigures {
        self.0.counts.now(self.0.lasts)
    }

    /// Returns which database it is, for people; without a user's name and password.
    pub fn shown(&self) -> &str {
        &self.0.server.shown
    }

    /// Returns why what is written is not safe now; `None` where it is.
    pub fn failing(&self) -> Option<String> {
        self.0.gate.health.lock().failing.clone()
    }

    /// Returns why nothing is written any more; `None` where that is not so.
    pub fn ended(&self) -> Option<Error> {
        self.0.gate.health.lock().ended.clone()
    }

    /// Has it told to `tell` what becomes of what is written.
    pub fn watch(&self, tell: impl Fn(Health<'_>) + Send + 'static) {
        self.0.gate.health.lock().tell = Some(Box::new(tell));
    }

    /// Holds what is kept to limits from now on, and tells what comes of it.
    pub fn limit(&self, limits: Limits, tell: impl Fn(Growth) + Send + 'static) {
        self.0
            .work
            .try_send(Work::Limit(limits, Box::new(tell)))
            .ok();
    }

    fn give(&self, mut job: Job) {
        use mpsc::error::TrySendError::{Closed, Full};
        self.0.gate.take(&mut job);
        match self.0.work.try_send(Work::Job(job)) {
            Err(Full(Work::Job(job))) => self.0.gate.turn_away(job),
            Err(Closed(Work::Job(job))) => (job.done)(Err(Error::Closed)),
            _ => {}
        }
    }

    /// Sends what is answered, and waits for that; for a place in the queue, too.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Work,
    ) -> BoxFuture<'static, Result<T, Error>> {
        use mpsc::error::TrySendError::Full;
        let (reply, answer) = oneshot::channel();
        let left = match self.0.work.try_send(work(reply)) {
            Err(Full(work)) => Some((self.0.work.clone(), work)),
            _ => None,
        };
        async move {
            if let Some((queue, work)) = left {
                queue.send(work).await.ok();
            }
            answer.await.map_err(|_| Error::Closed)?
        }
        .boxed()
    }

    /// Runs a read on a connection of its own, on the store's threads, which sees what is this user's.
    fn read<T, F, R>(&self, read: F) -> BoxFuture<'static, Result<T, Error>>
    where
        T: Send + 'static,
        F: FnOnce(Object) -> R + Send + 'static,
        R: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        self.read_of(Some(self.1.clone()), read)
    }

    /// The same of what is a user's; of everything where none is named.
    fn read_of<T, F, R>(&self, user: Option<User>, read: F) -> BoxFuture<'static, Result<T, Error>>
    where
        T: Send + 'static,
        F: FnOnce(Object) -> R + Send + 'static,
        R: Future<Output = Result<T, tokio_postgres::Error>> + Send,
    {
        let shared = Arc::clone(&self.0);
        let threads = shared.threads.clone();
        let work = async move {
            let client = shared.client(user.as_ref()).await?;
            match tokio::time::timeout(READ, read(client)).await {
                Ok(value) => value.map_err(|error| Error::Failing(described(&error))),
                Err(_) => Err(Error::Failing("it does not answer".to_owned())),
            }
        };
        // Where this is dropped nobody waits for it any more.
        let reading = AbortOnDropHandle::new(threads.spawn(work));
        async move { reading.await.map_err(|_| Error::Closed)? }.boxed()
    }

    /// Waits until what was given before is safe, or cannot be now, then reads.
    fn read_all<T, F, R>(&self, read: F) -> BoxFuture<'static, Result<T, Error>>
    where
        T: Send + 'static,
        F: FnOnce(Object) -> R + Send + 'static,
        R: Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    {
        let store = self.clone();
        async move {
            // What is not safe is not found, which is no reason to find nothing.
            tokio::time::timeout(SETTLED, store.flush()).await.ok();
            store.read(read).await
        }
        .boxed()
    }
}

impl Shared {
    /// Returns a connection that sees what is a user's; everything where none is named.
    async fn client(&self, user: Option<&User>) -> Result<Object, Error> {
        let client = self.pool.get().await;
        let client = client.map_err(|error| Error::Failing(refused(&error)))?;
        let seen = sees::by(&client, user, sees::Until::Next).await;
        seen.map_err(|error| Error::Failing(described(&error)))?;
        Ok(client)
    }
}

impl Store for Postgres {
    fn write(&self, session: &str, changes: Vec<Change>, done: Done) {
        let done = self.0.shares.note(&self.1, &changes, done);
        self.give(Job::new((&self.1, session), changes, Lasts::Long, done));
    }

    /// A transaction takes what came while the one before it was under way: nothing waits beside that.
    fn hurry(&self) {}

    fn attempt(
        &self,
        session: &str,
        changes: Vec<Change>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (reply, answer) = oneshot::channel();
        let done = Box::new(move |result| drop(reply.send(result)));
        let done = self.0.shares.note(&self.1, &changes, done);
        self.give(Job::new((&self.1, session), changes, Lasts::Once, done));
        async move { answer.await.map_err(|_| Error::Closed)? }.boxed()
    }

    fn open(&self, session: &str) -> BoxFuture<'static, Result<Option<Session>, Error>> {
        let (store, session) = (self.clone(), session.to_owned());
        async move {
            if read::is_impossible(&session) {
                return Ok(None);
            }
            let reserved = store.ask(|reply| Work::Open(store.1.clone(), session, reply));
            let reserved = open::in_time(store.0.is_one_of_several, reserved).await?;
            let Some(key) = reserved else {
                return Ok(None);
            };
            let read = async move |mut client: Object| read::session(&mut client, key).await;
            store.read(read).await.map(Some)
        }
        .boxed()
    }

    fn is_here(&self, session: &str) -> BoxFuture<'static, Result<(), Error>> {
        let (user, session, node) = (self.1.clone(), session.to_owned(), self.0.node);
        let elsewhere =
            self.read(async move |client| lease::elsewhere(&client, (&user, &session), node).await);
        let elsewhere = open::in_time(self.0.is_one_of_several, elsewhere);
        async move { elsewhere.await?.map_or(Ok(()), Err) }.boxed()
    }

    fn hold(&self, session: &str) -> Held {
        let hold = self.0.held.hold(&self.1, session);
        Box::new(Open::new(hold, self.0.work.downgrade()))
    }

    fn export(&self, session: &str, each: Each) -> BoxFuture<'static, Result<bool, Error>> {
        let (store, session) = (self.clone(), session.to_owned());
        async move {
            tokio::time::timeout(SETTLED, store.flush()).await.ok();
            let client = {
                let shared = Arc::clone(&store.0);
                let user = store.1.clone();
                let client = async move { shared.client(Some(&user)).await };
                let client = store.0.threads.spawn(client).await;
                client.map_err(|_| Error::Closed)??
            };
            let threads = store.0.threads.clone();
            let whose = (store.1.clone(), session);
            read::whole::export(threads, client, whose, each).await
        }
        .boxed()
    }

    fn import(&self, session: &str, changes: Changes) -> BoxFuture<'static, Result<(), Error>> {
        let (store, session) = (self.clone(), session.to_owned());
        let import = move || {
            let shared = &store.0;
            let whose = (&store.1, session.as_str());
            let made = import::run(&shared.work, &shared.slices, whose, changes);
            shared.shares.turn(&store.1);
            made
        };
        async move {
            let done = tokio::task::spawn_blocking(import).await;
            done.map_err(|_| Error::Closed)?
        }
        .boxed()
    }

    fn has(&self, session: &str) -> BoxFuture<'static, Result<bool, Error>> {
        let (user, session) = (self.1.clone(), session.to_owned());
        self.read_all(async move |client| read::has(&client, &user, &session).await)
    }

    fn has_exchange(&self, session: &str, id: &str) -> BoxFuture<'static, Result<bool, Error>> {
        let (user, session, id) = (self.1.clone(), session.to_owned(), id.to_owned());
        self.read_all(async move |client| read::has_exchange(&client, &user, &session, &id).await)
    }

    fn list(&self, wanted: Listing) -> BoxFuture<'static, Result<Page, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| {
            read::list::page(&client, Whose::Of(&user), &wanted).await
        })
    }

    fn calls(&self, wanted: CallListing) -> BoxFuture<'static, Result<CallPage, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| read::calls::page(&client, &user, &wanted).await)
    }

    fn ran(&self, from_day: i64) -> BoxFuture<'static, Result<Ran, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| read::calls::ran(&client, &user, from_day).await)
    }

    fn usage(&self, wanted: UsageQuery) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| {
            read::usage::sums(&client, Whose::Of(&user), &wanted).await
        })
    }

    fn rules(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| read::rules(&client, &user).await)
    }

    fn files(&self, wanted: FileQuery) -> BoxFuture<'static, Result<FilePage, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| read::files::page(&client, &user, &wanted).await)
    }

    fn attachment(&self, hash: Hash) -> BoxFuture<'static, Result<Option<Vec<u8>>, Error>> {
        let user = self.1.clone();
        self.read_all(async move |client| read::files::attachment(&client, &user, hash).await)
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.0.gate.has_room(bytes)
    }

    fn is_silent(&self) {
        self.0.gate.is_silent();
        // Whoever writes heals it when he comes to this.
        let (reply, _) = oneshot::channel();
        self.0.work.try_send(Work::Flush(reply)).ok();
    }

    fn is_one_of_several(&self) -> bool {
        self.0.is_one_of_several
    }

    fn not_kept(&self) -> Vec<String> {
        self.0.gate.not_kept()
    }

    fn kept(&self, most: u64) -> BoxFuture<'static, Result<u64, Error>> {
        let (user, share) = (self.1.clone(), self.0.shares.of(&self.1));
        let store = self.clone();
        let count = async move {
            // What waits to be written is not given again after the count. Where it cannot be, what is there counts.
            store.flush().await.ok();
            store
                .read_all(async move |client| read::kept(&client, &user).await)
                .await
        };
        async move { share.kept(most, count).await }.boxed()
    }

    fn stats(&self) -> BoxFuture<'static, Result<Stats, Error>> {
        self.read_all(async move |client| read::stats(&client).await)
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.ask(Work::Flush)
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        self.ask(Work::Close)
    }
}

#[cfg(test)]
mod tests;

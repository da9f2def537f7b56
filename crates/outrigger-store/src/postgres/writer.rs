//! The task that writes: all that waits in one transaction, of which the statements are sent without waiting for each
//! answer.
//!
//! - Each transaction begins by naming the lease it is written under: where this process was taken for dead since, nothing is
//!   written. A session is asked for by the first transaction that writes in it, and let go of when nobody has it open.
//! - Where the connection is lost while a transaction is being committed, nobody knows whether it was. The next connection
//!   asks for the number of the last one that was, before anything is tried again: nothing is written twice.

mod sessions;
mod transaction;
mod upkeep;
mod watch;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::apply::Days;
use super::lease::{Counts, Lease, Node};
use super::schema::migrate;
use super::server::{Server, described};
use crate::bounds::{BATCH, RETRY};
use crate::clock::Clock;
use crate::held::HeldSessions;
use crate::queue::{Gate, HealthState, Holes, Job, Lasts, Room, Waiting};
use crate::slices::Slice;
use crate::upkeep::{EVERY, Tell, Upkeep};
use crate::{Change, Error, Limits, User};
use transaction::{COMMIT, TRANSACTION, Trouble, silent};
use watch::Watch;

/// How often what waits is written anew where the server chose it to give way to another process's.
const GIVES_WAY: usize = 5;

pub(super) enum Work {
    Job(Job),
    /// Counts the epoch of a session; returns its key.
    Open(User, String, oneshot::Sender<Result<Option<i64>, Error>>),
    /// Writes a slice of a session that is imported, in a transaction of its own.
    Slice(Slice, oneshot::Sender<Result<(), Error>>),
    /// The import of a session goes no further.
    BreakOff(String),
    /// Somebody does not have a session open any more.
    LetGo,
    Limit(Limits, Tell),
    /// How many bytes are kept, which was counted meanwhile; `None` where that failed.
    Counted(Option<u64>),
    Flush(oneshot::Sender<Result<(), Error>>),
    /// The same for the last time: the lease ends.
    Close(oneshot::Sender<Result<(), Error>>),
}

pub(super) struct Writer {
    server: Server,
    client: Option<ClientWrapper>,
    lease: Lease,
    is_one_of_several: bool,
    watch: Watch,
    counts: Arc<Counts>,
    /// Sessions that are known to be this process's: those that are open, and some that are let go of soon.
    own_sessions: HashMap<String, User>,
    /// Whether there may be some of those.
    lets_go: bool,
    renew_at: Instant,
    /// When the limits are looked at, at the latest.
    look_at: Instant,
    /// What was not committed; whoever gave it was told so.
    backlog: VecDeque<Waiting>,
    doubt: Option<Doubt>,
    room: Arc<Room>,
    health: Arc<Mutex<HealthState>>,
    holes: Holes,
    retry: Duration,
    /// When it is tried again, where it failed.
    retry_at: Option<Instant>,
    /// Whether it was closed: the lease is not this process's any more.
    is_closed: bool,
    /// The way to itself, for what is done beside it.
    own: mpsc::WeakSender<Work>,
    clock: Clock,
    held: HeldSessions,
    /// The sessions whose import is under way.
    imports: HashSet<String>,
    upkeep: Upkeep,
    counting: Counting,
    days: Days,
}

/// How far it is counted how much is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    No,
    UnderWay,
    /// Something was removed since it began, so that it says too much.
    Stale,
}

/// A transaction of which nobody knows whether it was committed.
struct Doubt {
    batch: i64,
    /// How many of the jobs that wait are in it, the first ones.
    jobs: usize,
    refused: Vec<(usize, Error)>,
}

impl Writer {
    /// Connects for the first time, brings the schema up to date and takes a lease.
    pub(super) async fn begin(
        server: Server,
        (node, lasts, counts): (&Node, Duration, Arc<Counts>),
        gate: &Gate,
        (held, own): (HeldSessions, mpsc::WeakSender<Work>),
    ) -> Result<Self, Error> {
        let client = server
            .connect_to_write()
            .await
            .map_err(|it| server.error(it))?;
        migrate(&server, &client).await?;
        let failed = |error: tokio_postgres::Error| server.error(described(&error));
        let lease = Lease::take(&client, node, lasts).await.map_err(failed)?;
        let kept = client.query_opt("SELECT at_ms FROM clock", &[]).await;
        let kept = kept.and_then(|row| row.map(|it| it.try_get(0)).transpose());
        let mut upkeep = Upkeep::default();
        (upkeep.has_left, upkeep.has_free) = (true, false);
        let mut writer = Self {
            clock: Clock::from(kept.map_err(failed)?),
            renew_at: Instant::now() + lease.renews_after(),
            look_at: Instant::now() + EVERY,
            client: Some(client),
            watch: Watch::begin(Arc::clone(&gate.health), &counts, lease.lapses_after()),
            is_one_of_several: node.is_one_of_several,
            counts,
            own_sessions: HashMap::new(),
            lets_go: false,
            lease,
            backlog: VecDeque::new(),
            doubt: None,
            room: Arc::clone(&gate.room),
            health: Arc::clone(&gate.health),
            holes: Holes::new(gate),
            retry: RETRY[0],
            retry_at: None,
            is_closed: false,
            own,
            held,
            imports: HashSet::new(),
            upkeep,
            counting: Counting::No,
            days: Days::default(),
            server,
        };
        match writer.break_off().await {
            Ok(()) => Ok(writer),
            Err(Trouble::Refused(error)) => Err(error),
            Err(
                Trouble::Failing(problem) | Trouble::GivesWay(problem) | Trouble::InDoubt(problem),
            ) => Err(writer.server.error(problem)),
            Err(Trouble::Taken) => Err(writer.taken()),
        }
    }

    /// Returns the number of this process.
    pub(super) fn node(&self) -> i64 {
        self.lease.node
    }

    pub(super) async fn run(&mut self, mut work: mpsc::Receiver<Work>) {
        loop {
            self.renew_in_time().await;
            let is_well = self.retry_at.is_none() && self.ended().is_none();
            let next = if is_well && (self.lets_go || self.upkeep.is_due()) {
                match work.try_recv() {
                    Ok(next) => Some(next),
                    Err(mpsc::error::TryRecvError::Empty) => {
                        self.keep_up().await;
                        continue;
                    }
                    Err(mpsc::error::TryRecvError::Disconnected) => None,
                }
            } else {
                match tokio::time::timeout_at(self.wakes_at(), work.recv()).await {
                    Ok(next) => next,
                    Err(_) => {
                        self.woken().await;
                        continue;
                    }
                }
            };
            let Some(mut next) = next else {
                break;
            };
            // All that waits, up to what asks for an answer of its own.
            let other = loop {
                match next {
                    Work::Job(job) => self.backlog.push_back(job.into()),
                    other => break Some(other),
                }
                if self.backlog.len() >= BATCH {
                    break None;
                }
                match work.try_recv() {
                    Ok(more) => next = more,
                    Err(_) => break None,
                }
            };
            if matches!(other, Some(Work::Close(_))) {
                // There is no later.
                self.retry_at = None;
            }
            self.commit().await;
            match other {
                // Who asked has been told to come again.
                Some(Work::Open(_, _, reply)) if reply.is_closed() => {}
                Some(Work::Open(user, session, reply)) => {
                    drop(reply.send(self.open(&user, &session).await));
                }
                Some(Work::Slice(slice, reply)) => drop(reply.send(self.slice(&slice).await)),
                Some(Work::BreakOff(session)) => {
                    self.imports.remove(&session);
                    self.upkeep.has_left = true;
                }
                Some(Work::LetGo) => self.lets_go = true,
                Some(Work::Limit(limits, tell)) => {
                    self.upkeep.limits = limits;
                    self.upkeep.tell = Some(tell);
                    self.upkeep.look();
                }
                Some(Work::Counted(bytes)) => self.is_counted(bytes).await,
                Some(Work::Flush(reply)) => drop(reply.send(self.is_well())),
                Some(Work::Close(reply)) => {
                    self.remove_last().await;
                    self.end().await;
                    drop(reply.send(self.is_well()));
                    self.is_closed = true;
                    self.tell_ended(&Error::Closed);
                }
                Some(Work::Job(_)) | None => {}
            }
        }
        self.commit().await;
        self.end().await;
    }

    fn wakes_at(&self) -> Instant {
        let far = Instant::now() + EVERY;
        match (self.ended(), self.retry_at) {
            (Some(_), _) => far,
            (None, Some(at)) => at,
            (None, None) => self.renew_at.min(self.look_at),
        }
    }

    /// Does what is to be done though nothing is written.
    async fn woken(&mut self) {
        if self.ended().is_some() {
            return;
        }
        if self.retry_at.take().is_some() {
            self.commit().await;
            return;
        }
        if Instant::now() >= self.look_at {
            self.look_at = Instant::now() + EVERY;
            self.upkeep.look();
            if let Err(trouble) = self.break_off().await {
                self.is_troubled(trouble);
            }
        }
    }

    /// Renews the lease where that is due, however much there is to do; a connection that was given up is made anew.
    async fn renew_in_time(&mut self) {
        if self.ended().is_some() || self.retry_at.is_some() || Instant::now() < self.renew_at {
            return;
        }
        let renewed = match self.client {
            Some(_) => self.renew().await,
            None => self.connect().await,
        };
        match renewed {
            // It may have been told that it does not answer.
            Ok(()) if self.backlog.is_empty() => self.heals(),
            Ok(()) => {}
            Err(trouble) => self.is_troubled(trouble),
        }
    }

    /// Returns why nothing is written any more.
    fn ended(&self) -> Option<Error> {
        let closed = self.is_closed.then_some(Error::Closed);
        self.health.lock().ended.clone().or(closed)
    }

    /// Lets go of the lease and the connection.
    async fn end(&mut self) {
        if let Some(client) = self.client.take()
            && self.doubt.is_none()
        {
            timeout(COMMIT, self.lease.release(&client)).await.ok();
        }
    }

    fn is_well(&self) -> Result<(), Error> {
        match (self.ended(), &self.health.lock().failing) {
            (Some(ended), _) => Err(ended),
            (None, Some(problem)) => Err(Error::Failing(problem.clone())),
            (None, None) => Ok(()),
        }
    }

    /// Writes all that waits, and tells everybody: so many jobs in a transaction that it does not take long.
    async fn commit(&mut self) {
        if let Some(ended) = self.ended() {
            return self.tell_ended(&ended);
        }
        // What comes before it is time is not a reason to write all that waits once more.
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return self.tell_failing();
        }
        if self.client.is_none()
            && let Err(trouble) = self.connect().await
        {
            return self.is_troubled(trouble);
        }
        let mut gave_way = 0;
        while !self.backlog.is_empty() {
            let trouble = match self.write(self.backlog.len().min(BATCH)).await {
                Ok((jobs, refused)) => {
                    self.settle(jobs, &refused);
                    gave_way = 0;
                    continue;
                }
                Err(Trouble::GivesWay(_)) if gave_way < GIVES_WAY => {
                    gave_way += 1;
                    // What it has begun is undone with the connection.
                    self.client = None;
                    self.connect().await.err()
                }
                Err(trouble) => Some(trouble),
            };
            if let Some(trouble) = trouble {
                return self.is_troubled(trouble);
            }
        }
        self.heals();
    }

    /// Tells who waits for the first of the jobs what became of them, once they are committed.
    fn settle(&mut self, jobs: usize, refused: &[(usize, Error)]) {
        self.upkeep.committed();
        for (index, job) in self.backlog.drain(..jobs).enumerate() {
            self.upkeep.has_left |= job.changes.iter().any(Change::removes);
            self.lets_go |= !self.held.has(&job.user, &job.session);
            let problem = refused.iter().find(|(at, _)| *at == index);
            let problem = problem.map(|(_, problem)| problem);
            job.settle(problem, (&self.room, &mut self.holes, &self.health));
        }
    }

    fn heals(&mut self) {
        (self.retry, self.retry_at) = (RETRY[0], None);
        self.health.lock().set(None);
    }

    /// Tells everybody who waits that it is not safe, and tries again later what is tried for long.
    fn is_troubled(&mut self, trouble: Trouble) {
        // A connection that failed is made anew, and what it has begun is undone with it.
        self.client = None;
        match trouble {
            Trouble::Taken => {
                let ended = self.taken();
                self.health.lock().end(ended.clone());
                (self.retry_at, self.doubt) = (None, None);
                self.tell_ended(&ended);
            }
            Trouble::Failing(problem)
            | Trouble::GivesWay(problem)
            | Trouble::InDoubt(problem)
            | Trouble::Refused(Error::Failing(problem)) => self.fails(problem),
            Trouble::Refused(error) => self.fails(error.to_string()),
        }
    }

    fn taken(&self) -> Error {
        let database = self.server.shown.to_string();
        Error::Taken { database }
    }

    fn fails(&mut self, problem: String) {
        self.retry_at = Some(Instant::now() + self.retry);
        self.retry = (self.retry * 2).min(RETRY[1]);
        self.health.lock().set(Some(problem));
        self.tell_failing();
    }

    fn tell_failing(&mut self) {
        let problem = self.health.lock().failing.clone().unwrap_or_default();
        // What is tried once and may have been committed is told when that is known.
        let in_doubt = self.doubt.as_ref().map_or(0, |doubt| doubt.jobs);
        let room = &self.room;
        let mut index = 0;
        self.backlog.retain_mut(|job| {
            index += 1;
            // One that was emptied does not wait on beyond the bound of what waits.
            let is_once = job.lasts == Lasts::Once || job.is_refused && !self.is_one_of_several;
            if is_once && index <= in_doubt {
                return true;
            }
            let is_told = is_once || !self.is_one_of_several;
            if let Some(done) = job.done.take_if(|_| is_told) {
                done(Err(Error::Failing(problem.clone())));
            }
            if is_once {
                room.give_back(&job.session, &job.changes);
            }
            !is_once
        });
    }

    fn tell_ended(&mut self, ended: &Error) {
        for job in self.backlog.drain(..) {
            job.settle(Some(ended), (&self.room, &mut self.holes, &self.health));
        }
    }

    /// Connects anew, and settles what was in doubt.
    async fn connect(&mut self) -> Result<(), Trouble> {
        let client = self.server.connect_to_write().await;
        let client = client.map_err(Trouble::Failing)?;
        self.lease.bind(&client).await?;
        self.client = Some(client);
        self.renew().await?;
        if let Some(doubt) = self.doubt.take()
            && self.lease.batch >= doubt.batch
        {
            self.settle(doubt.jobs, &doubt.refused);
        }
        self.upkeep.has_left = true;
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), Trouble> {
        let Some(client) = &self.client else {
            return Ok(());
        };
        let sent = Instant::now();
        let renewed = timeout(TRANSACTION, self.lease.renew(client)).await;
        renewed.map_err(|_| silent())??;
        self.is_renewed(sent);
        Ok(())
    }

    /// Notes that the lease was renewed by what was sent at this time.
    fn is_renewed(&mut self, sent: Instant) {
        self.renew_at = sent + self.lease.renews_after();
        self.watch.renewed(sent);
        *self.counts.renewed.lock() = Some(sent);
    }

    /// Returns what is said of work that could not be done; the next commit says more where the server is away.
    fn told(&mut self, trouble: Trouble) -> Error {
        let told = match &trouble {
            Trouble::Refused(error) => return error.clone(),
            Trouble::Failing(problem) | Trouble::GivesWay(problem) | Trouble::InDoubt(problem) => {
                Error::Failing(problem.clone())
            }
            Trouble::Taken => self.taken(),
        };
        self.is_troubled(trouble);
        told
    }
}

//! The task that writes: all that waits in one transaction, of which the statements are sent without waiting for each
//! answer.
//!
//! - Each transaction begins by naming the lease it is written under: where another process has it since, nothing is written.
//! - Where the connection is lost while a transaction is being committed, nobody knows whether it was. The next connection
//!   asks for the number of the last one that was, before anything is tried again: nothing is written twice.

mod sessions;
mod transaction;
mod upkeep;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::apply::Days;
use super::schema::{Lease, migrate};
use super::server::{Server, described};
use crate::bounds::{BATCH, RETRY};
use crate::clock::Clock;
use crate::held::HeldSessions;
use crate::queue::{HealthState, Job, Lasts, NO_ROOM, Room, bytes_of};
use crate::slices::Slice;
use crate::upkeep::{EVERY, Tell, Upkeep};
use crate::{Change, Done, Error, Limits, User};
use transaction::{COMMIT, TRANSACTION, Trouble, silent};

/// What each connection that writes says first. A transaction of before, whose connection was lost, must not be waited for
/// long.
const SETTINGS: &str = "SET outrigger.everyone = 'on'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'; \
                        SET statement_timeout = '60s'";

pub(super) enum Work {
    Job(Job),
    /// Counts the epoch of a session; returns its key.
    Open(User, String, oneshot::Sender<Result<Option<i64>, Error>>),
    /// Writes a slice of a session that is imported, in a transaction of its own.
    Slice(Slice, oneshot::Sender<Result<(), Error>>),
    /// The import of a session goes no further.
    BreakOff(String),
    Limit(Limits, Tell),
    Flush(oneshot::Sender<Result<(), Error>>),
    /// The same for the last time: the lease ends.
    Close(oneshot::Sender<Result<(), Error>>),
}

pub(super) struct Writer {
    server: Server,
    client: Option<ClientWrapper>,
    lease: Lease,
    renew_at: Instant,
    /// When the limits are looked at, at the latest.
    look_at: Instant,
    /// What was not committed; whoever gave it was told so.
    backlog: Vec<Waiting>,
    doubt: Option<Doubt>,
    room: Arc<Room>,
    health: Arc<Mutex<HealthState>>,
    retry: Duration,
    /// When it is tried again, where it failed.
    retry_at: Option<Instant>,
    /// Why nothing is written any more.
    ended: Option<Error>,
    clock: Clock,
    held: HeldSessions,
    /// The sessions whose import is under way.
    imports: HashSet<String>,
    upkeep: Upkeep,
    days: Days,
}

/// A job that waits; `done` is gone once it was told that it fails.
struct Waiting {
    user: User,
    session: String,
    changes: Vec<Change>,
    done: Option<Done>,
    lasts: Lasts,
}

/// A transaction of which nobody knows whether it was committed.
struct Doubt {
    batch: i64,
    /// How many of the jobs that wait are in it, the first ones.
    jobs: usize,
    refused: Vec<(usize, Error)>,
}

impl Writer {
    /// Connects for the first time, brings the schema up to date and takes the lease.
    pub(super) async fn begin(
        server: Server,
        lasts: Duration,
        (room, health, held): (Arc<Room>, Arc<Mutex<HealthState>>, HeldSessions),
    ) -> Result<Self, Error> {
        let client = server.connect().await.map_err(|it| server.error(it))?;
        migrate(&server, &client).await?;
        let lease = Lease::take(&server, &client, lasts).await?;
        let failed = |error: tokio_postgres::Error| server.error(described(&error));
        client.batch_execute(SETTINGS).await.map_err(failed)?;
        let kept = client.query_opt("SELECT at_ms FROM clock", &[]).await;
        let kept = kept.and_then(|row| row.map(|it| it.try_get(0)).transpose());
        let mut upkeep = Upkeep::default();
        (upkeep.has_left, upkeep.has_free) = (true, false);
        let mut writer = Self {
            clock: Clock::from(kept.map_err(failed)?),
            renew_at: Instant::now() + lease.renews_after(),
            look_at: Instant::now() + EVERY,
            client: Some(client),
            lease,
            backlog: Vec::new(),
            doubt: None,
            room,
            health,
            retry: RETRY[0],
            retry_at: None,
            ended: None,
            held,
            imports: HashSet::new(),
            upkeep,
            days: Days::default(),
            server,
        };
        match writer.break_off().await {
            Ok(()) => Ok(writer),
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Failing(problem) | Trouble::InDoubt(problem)) => {
                Err(writer.server.error(problem))
            }
            Err(Trouble::Taken(node)) => Err(Error::Owned {
                database: writer.server.shown.to_string(),
                node,
            }),
        }
    }

    pub(super) async fn run(&mut self, mut work: mpsc::Receiver<Work>) {
        loop {
            self.renew_in_time().await;
            let is_well = self.retry_at.is_none() && self.ended.is_none();
            let next = if is_well && self.upkeep.is_due() {
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
                    Work::Job(job) => self.backlog.push(Waiting {
                        user: job.user,
                        session: job.session,
                        changes: job.changes,
                        done: Some(job.done),
                        lasts: job.lasts,
                    }),
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
            self.commit().await;
            match other {
                Some(Work::Open(user, session, reply)) => {
                    drop(reply.send(self.open(&user, &session).await));
                }
                Some(Work::Slice(slice, reply)) => drop(reply.send(self.slice(&slice).await)),
                Some(Work::BreakOff(session)) => {
                    self.imports.remove(&session);
                    self.upkeep.has_left = true;
                }
                Some(Work::Limit(limits, tell)) => {
                    self.upkeep.limits = limits;
                    self.upkeep.tell = Some(tell);
                    self.upkeep.look();
                }
                Some(Work::Flush(reply)) => drop(reply.send(self.is_well())),
                Some(Work::Close(reply)) => {
                    self.remove_last().await;
                    self.end().await;
                    drop(reply.send(self.is_well()));
                    self.ended.get_or_insert(Error::Closed);
                }
                Some(Work::Job(_)) | None => {}
            }
        }
        self.commit().await;
        self.end().await;
    }

    fn wakes_at(&self) -> Instant {
        let far = Instant::now() + EVERY;
        match (&self.ended, self.retry_at) {
            (Some(_), _) => far,
            (None, Some(at)) => at,
            (None, None) => self.renew_at.min(self.look_at),
        }
    }

    /// Does what is to be done though nothing is written.
    async fn woken(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if self.retry_at.take().is_some() {
            self.commit().await;
            return;
        }
        if Instant::now() >= self.look_at {
            self.look_at = Instant::now() + EVERY;
            self.upkeep.look();
        }
    }

    /// Renews the lease where that is due, however much there is to do.
    async fn renew_in_time(&mut self) {
        if self.ended.is_none()
            && self.client.is_some()
            && Instant::now() >= self.renew_at
            && let Err(trouble) = self.renew().await
        {
            self.is_troubled(trouble);
        }
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
        match (&self.ended, &self.health.lock().failing) {
            (Some(ended), _) => Err(ended.clone()),
            (None, Some(problem)) => Err(Error::Failing(problem.clone())),
            (None, None) => Ok(()),
        }
    }

    /// Writes all that waits in one transaction, and tells everybody.
    async fn commit(&mut self) {
        if self.ended.is_some() {
            return self.tell_ended();
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
        if self.backlog.is_empty() {
            return self.heals();
        }
        match self.write().await {
            Ok(refused) => {
                self.heals();
                self.settle(self.backlog.len(), &refused);
            }
            Err(trouble) => self.is_troubled(trouble),
        }
    }

    /// Tells who waits for the first of the jobs what became of them, once they are committed.
    fn settle(&mut self, jobs: usize, refused: &[(usize, Error)]) {
        self.upkeep.committed();
        for (index, job) in self.backlog.drain(..jobs).enumerate() {
            self.upkeep.has_left |= job.changes.iter().any(Change::removes);
            self.room.give_back(bytes_of(&job.changes));
            let problem = refused.iter().find(|(at, _)| *at == index);
            let result = match problem {
                None if job.lasts == Lasts::Refused => Err(Error::Refused(NO_ROOM.to_owned())),
                None => Ok(()),
                Some((_, problem)) => {
                    // A constraint says that this program erred.
                    if matches!(problem, Error::Refused(_)) {
                        tracing::error!(session_id = job.session, %problem, "changes are not kept");
                    }
                    Err(problem.clone())
                }
            };
            if let Some(done) = job.done {
                done(result);
            }
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
            Trouble::Taken(node) => {
                let ended = Error::Taken {
                    database: self.server.shown.to_string(),
                    node,
                };
                tracing::error!("{ended}");
                self.health.lock().set(Some(ended.to_string()));
                self.ended = Some(ended);
                (self.retry_at, self.doubt) = (None, None);
                self.tell_ended();
            }
            Trouble::Failing(problem)
            | Trouble::InDoubt(problem)
            | Trouble::Refused(Error::Failing(problem)) => self.fails(problem),
            Trouble::Refused(error) => self.fails(error.to_string()),
        }
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
            let is_once = job.lasts != Lasts::Long;
            if is_once && index <= in_doubt {
                return true;
            }
            if let Some(done) = job.done.take() {
                done(Err(Error::Failing(problem.clone())));
            }
            if is_once {
                room.give_back(bytes_of(&job.changes));
            }
            !is_once
        });
    }

    fn tell_ended(&mut self) {
        let Some(ended) = &self.ended else {
            return;
        };
        for job in self.backlog.drain(..) {
            self.room.give_back(bytes_of(&job.changes));
            if let Some(done) = job.done {
                done(Err(ended.clone()));
            }
        }
    }

    /// Connects anew, and settles what was in doubt.
    async fn connect(&mut self) -> Result<(), Trouble> {
        let client = self.server.connect().await.map_err(Trouble::Failing)?;
        timeout(TRANSACTION, client.batch_execute(SETTINGS))
            .await
            .map_err(|_| silent())??;
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
        self.renew_at = Instant::now() + self.lease.renews_after();
        match &self.client {
            Some(client) => timeout(TRANSACTION, self.lease.renew(client))
                .await
                .map_err(|_| silent())?
                .map_err(Trouble::from),
            None => Ok(()),
        }
    }

    /// Returns what is said of work that could not be done; the next commit says more where the server is away.
    fn told(&mut self, trouble: Trouble) -> Error {
        let told = match &trouble {
            Trouble::Refused(error) => return error.clone(),
            Trouble::Failing(problem) | Trouble::InDoubt(problem) => {
                Error::Failing(problem.clone())
            }
            Trouble::Taken(node) => Error::Taken {
                database: self.server.shown.to_string(),
                node: node.clone(),
            },
        };
        self.is_troubled(trouble);
        told
    }
}

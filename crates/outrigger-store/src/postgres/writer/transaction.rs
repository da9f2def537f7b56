//! A transaction under the lease, and what becomes of it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio::time::{Instant, timeout};

use super::super::apply::{self, Days, Ops, fork::Failure};
use super::super::lease::{Asked, Lease, Lost};
use super::super::op;
use super::super::server::{described, gives_way, is_refusal};
use super::sessions::broken_off;
use super::{Doubt, GIVES_WAY, Writer};
use crate::queue::{FOLLOWS, Waiting, follows};
use crate::{Change, Error, User};

/// How long a transaction may take, and how long its commit, before the connection is given up.
pub(super) const TRANSACTION: Duration = Duration::from_secs(60);
pub(super) const COMMIT: Duration = Duration::from_secs(30);

/// Jobs that were refused, by their place.
pub(super) type Refusals = Vec<(usize, Error)>;

/// Why a transaction was not committed.
pub(in super::super) enum Trouble {
    /// What it writes is wrong: nothing was written.
    Refused(Error),
    /// The server is not as it should be: nothing was written.
    Failing(String),
    /// The same, while it was committed.
    InDoubt(String),
    /// The server had it give way to what another process writes: nothing was written, and it can be tried again at once.
    GivesWay(String),
    /// This process was taken for dead.
    Taken,
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Server(error) => error.into(),
            Lost::Taken => Self::Taken,
        }
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        match is_refusal(&error) {
            true => Self::Refused(Error::Refused(described(&error))),
            false if gives_way(&error) => Self::GivesWay(described(&error)),
            false => Self::Failing(described(&error)),
        }
    }
}

impl Writer {
    /// Writes the first of the jobs that wait in one transaction. Returns how many, and those that were refused, by their place.
    pub(super) async fn write(&mut self, most: usize) -> Result<(usize, Refusals), Trouble> {
        let behind = self.clock.if_behind();
        let jobs: Vec<&Waiting> = self.backlog.range(..most).collect();
        let holes = self.holes.refuse(jobs.iter().copied());
        let days = &mut self.days;
        let client = self.client.as_ref().ok_or_else(silent)?;
        let batch = self.lease.batch + 1;
        let (lease, own) = (&self.lease, &self.own_sessions);
        let body = async {
            let (mut skipped, mut asked) =
                enter((client, lease, batch), &jobs, &holes, own, days).await?;
            if let Some(all) = together(&jobs, &skipped, behind, days) {
                match op::run(client, &all).await {
                    Ok(()) => return Ok((skipped, asked)),
                    Err(error) if is_refusal(&error) => {
                        // One of them is wrong: which one is found by writing each by itself.
                        client.batch_execute("ROLLBACK").await?;
                        (skipped, asked) =
                            enter((client, lease, batch), &jobs, &holes, own, days).await?;
                    }
                    Err(error) => return Err(Trouble::from(error)),
                }
            }
            let refused = one_by_one(client, &jobs, skipped, behind, days).await?;
            Ok((refused, asked))
        };
        let body = timeout(TRANSACTION, body).await;
        let (refused, asked): (Refusals, Asked) = body.map_err(|_| silent())??;
        let made = jobs.iter().enumerate();
        let made =
            made.filter(|(at, job)| job.changes.iter().any(Change::makes) && !has(&refused, *at));
        let made = made.map(|(_, job)| (job.session.clone(), job.user.clone()));
        let made: Vec<(String, User)> = made.collect();
        let jobs = jobs.len();
        let sent = Instant::now();
        match end(client, &self.lease).await {
            Ok(()) => {
                self.lease.batch = batch;
                self.is_renewed(sent);
                self.has(asked.own.into_iter().chain(made), asked.left_behind.len());
                Ok((jobs, refused))
            }
            Err(problem) => {
                self.doubt = Some(Doubt {
                    batch,
                    jobs,
                    refused,
                });
                Err(Trouble::InDoubt(problem))
            }
        }
    }

    /// Does some work in a transaction of its own; again, where it has to give way.
    pub(super) async fn transact<T>(
        &mut self,
        work: impl AsyncFn(Within<'_>) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Trouble> {
        for _ in 0..GIVES_WAY {
            match self.transact_once(&work).await {
                Err(Trouble::GivesWay(_)) => {}
                done => return done,
            }
        }
        self.transact_once(&work).await
    }

    async fn transact_once<T>(
        &mut self,
        work: &impl AsyncFn(Within<'_>) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Trouble> {
        let Some(client) = &self.client else {
            return Err(Trouble::Failing("it is not connected".to_owned()));
        };
        let batch = self.lease.batch + 1;
        let (lease, days) = (&self.lease, &mut self.days);
        let body = async {
            lease.begin(client, batch).await?;
            let within = Within {
                client,
                lease,
                days,
            };
            Ok(work(within).await?)
        };
        let done: Result<T, Trouble> = match timeout(TRANSACTION, body).await {
            Ok(done) => done,
            Err(_) => Err(silent()),
        };
        match done {
            Ok(value) => {
                let sent = Instant::now();
                end(client, lease).await.map_err(Trouble::InDoubt)?;
                self.lease.batch = batch;
                self.is_renewed(sent);
                Ok(value)
            }
            Err(trouble) => {
                let undone = client.batch_execute("ROLLBACK");
                if !matches!(timeout(COMMIT, undone).await, Ok(Ok(()))) {
                    self.client = None;
                }
                Err(trouble)
            }
        }
    }
}

/// What there is within a transaction.
pub(super) struct Within<'a> {
    pub(super) client: &'a ClientWrapper,
    pub(super) lease: &'a Lease,
    pub(super) days: &'a mut Days,
}

/// Begins a transaction, and asks for the sessions of its jobs that are not known to be this process's. Returns the jobs that
/// are not written, by their place: those that were skipped before, and those whose session another process has.
async fn enter(
    (client, lease, batch): (&ClientWrapper, &Lease, i64),
    jobs: &[&Waiting],
    skipped: &Refusals,
    own: &HashMap<String, User>,
    days: &mut Days,
) -> Result<(Refusals, Asked), Trouble> {
    lease.begin(client, batch).await?;
    let mut skipped = skipped.clone();
    let unknown = jobs
        .iter()
        .filter(|job| own.get(&job.session) != Some(&job.user));
    let wanted: BTreeSet<(&User, &str)> =
        unknown.map(|it| (&it.user, it.session.as_str())).collect();
    if wanted.is_empty() {
        return Ok((skipped, Asked::default()));
    }
    let wanted: Vec<(&User, &str)> = wanted.into_iter().collect();
    let asked = lease.ask(client, &wanted).await?;
    broken_off(client, &asked.left_behind, days).await?;
    for (session, user, elsewhere) in &asked.elsewhere {
        let theirs = jobs.iter().enumerate();
        let theirs = theirs.filter(|(_, job)| job.session == *session && job.user == *user);
        skipped.extend(theirs.map(|(index, _)| (index, elsewhere.clone())));
    }
    Ok((skipped, asked))
}

pub(super) fn silent() -> Trouble {
    Trouble::Failing("it does not answer".to_owned())
}

/// Commits; what it says otherwise leaves open whether it was.
async fn end(client: &ClientWrapper, lease: &Lease) -> Result<(), String> {
    match timeout(COMMIT, client.batch_execute(&lease.commit())).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(described(&error)),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Returns the statements of all jobs but those that are skipped; `None` where one of them asks for something first.
fn together<'a>(
    jobs: &[&'a Waiting],
    skipped: &Refusals,
    behind: Option<i64>,
    days: &mut Days,
) -> Option<Vec<op::Op<'a>>> {
    let mut all = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        if has(skipped, index) {
            continue;
        }
        all.extend(Ops::of((&job.user, &job.session), &job.changes, days)?.list);
        all.extend(behind.map(|at_ms| apply::changed(&job.session, at_ms)));
    }
    Some(all)
}

fn has(refusals: &Refusals, index: usize) -> bool {
    refusals.iter().any(|(at, _)| *at == index)
}

/// Writes each job by itself, but those that are refused already; returns all that were refused, by their place.
async fn one_by_one(
    client: &ClientWrapper,
    jobs: &[&Waiting],
    mut refused: Refusals,
    behind: Option<i64>,
    days: &mut Days,
) -> Result<Refusals, Trouble> {
    let mut holes = HashSet::new();
    for (index, job) in jobs.iter().enumerate() {
        if has(&refused, index) {
            continue;
        }
        if holes.contains(&(&job.user, &job.session)) && follows(job) {
            refused.push((index, Error::Refused(FOLLOWS.to_owned())));
            continue;
        }
        client.batch_execute("SAVEPOINT job").await?;
        let mut written =
            apply::fork::all(client, (&job.user, &job.session), &job.changes, days).await;
        if let (Ok(()), Some(at_ms)) = (&written, behind) {
            let dated = op::run(client, &[apply::changed(&job.session, at_ms)]).await;
            written = dated.map_err(Failure::from);
        }
        let problem = match written {
            Ok(()) => {
                client.batch_execute("RELEASE job").await?;
                continue;
            }
            Err(Failure::Misfit(misfit)) => misfit,
            Err(Failure::Server(error)) if is_refusal(&error) => Error::Refused(described(&error)),
            Err(Failure::Server(error)) => return Err(error.into()),
        };
        client.batch_execute("ROLLBACK TO job; RELEASE job").await?;
        if job.leaves_a_hole(&problem) {
            holes.insert((&job.user, &job.session));
        }
        refused.push((index, problem));
    }
    Ok(refused)
}

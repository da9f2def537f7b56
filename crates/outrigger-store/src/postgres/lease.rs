//! That this process lives, and which sessions it has: what makes several processes safe on one database.
//!
//! - A process has a row in `node`, with a number that no other one ever has. It renews it; all times are the server's.
//! - A session names the process that has it. Another one takes it where it names none, or one whose row is gone. A row that
//!   was not renewed in time may be removed by whoever wants one of its sessions.
//! - A transaction that writes begins by changing the own row. So it waits for whoever removes that, or the other way
//!   round; and where the row is gone, nothing is written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;

use super::op::clean;
use super::server::described;
use crate::{Error, LeaseFigures, User};

/// How a process is called to others, and where they reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// A name that no other process has at the same time. One that begins with it has all sessions of the one before, which
    /// is gone or has to go. Where there is none, the machine's name and the number of the process are shown.
    pub name: Option<String>,
    /// The address that others pass clients on to.
    pub url: Option<String>,
    /// Whether others take its sessions where it cannot say that it lives. Then nobody is told that what was written is
    /// not safe yet: who waits for it waits on.
    pub is_one_of_several: bool,
}

/// How the lease stands, for figures. It is changed by who writes.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Sessions that are this process's.
    pub(super) sessions: AtomicU64,
    /// Sessions that it has taken from processes that were gone.
    pub(super) taken: AtomicU64,
    /// How often the lease was not renewed in time.
    pub(super) lapses: AtomicU64,
    /// When what renewed it last was sent.
    pub(super) renewed: Mutex<Option<Instant>>,
}

impl Counts {
    /// Returns them as they are now, of a lease that lasts so long.
    pub(super) fn now(&self, lasts: Duration) -> LeaseFigures {
        let renewed = *self.renewed.lock();
        let since = renewed.map_or(lasts, |it| it.elapsed());
        LeaseFigures {
            sessions: self.sessions.load(Ordering::Relaxed),
            taken: self.taken.load(Ordering::Relaxed),
            lapses: self.lapses.load(Ordering::Relaxed),
            left: lasts.saturating_sub(since),
        }
    }
}

/// That this process may write.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The number of this process.
    pub(super) node: i64,
    /// The last transaction that was committed under it.
    pub(super) batch: i64,
    lasts: Duration,
}

/// What is missing where it is gone.
pub(super) enum Lost {
    Server(tokio_postgres::Error),
    /// This process was taken for dead.
    Taken,
}

impl From<tokio_postgres::Error> for Lost {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

/// What came of it that sessions were asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Those that this process has now.
    pub(super) own: Vec<(String, User)>,
    /// Those of them that a process had which is gone, by their keys.
    pub(super) left_behind: Vec<i64>,
    /// Those that another one has.
    pub(super) elsewhere: Vec<(String, User, Error)>,
}

impl Lease {
    /// Enters this process among those that write.
    pub(super) async fn take(
        client: &ClientWrapper,
        node: &Node,
        lasts: Duration,
    ) -> Result<Self, tokio_postgres::Error> {
        if let Some(name) = &node.name {
            let before = "DELETE FROM node WHERE name = $1::text";
            client.execute(before, &[name]).await?;
        }
        let name = node.name.clone().unwrap_or_else(unnamed);
        let enter = "INSERT INTO node (name, url, expires) \
                     VALUES ($1::text, $2::text, clock_timestamp() + $3::bigint * interval '1 ms') RETURNING id";
        let row = client
            .query_one(enter, &[&name, &node.url, &millis(lasts)])
            .await?;
        let lease = Self {
            node: row.try_get(0)?,
            batch: 0,
            lasts,
        };
        lease.bind(client).await?;
        Ok(lease)
    }

    /// Has the statements of a connection write what is this process's.
    pub(super) async fn bind(&self, client: &ClientWrapper) -> Result<(), tokio_postgres::Error> {
        let bind = "SELECT set_config('outrigger.node', $1::text, false)";
        client.execute(bind, &[&self.node.to_string()]).await?;
        Ok(())
    }

    /// Begins a transaction and takes the next number for it, within it: whoever takes this process for dead has to wait for
    /// the end of this transaction, or this one fails.
    pub(super) async fn begin(&self, client: &ClientWrapper, batch: i64) -> Result<(), Lost> {
        let sql = "UPDATE node SET batch = $2::bigint WHERE id = $1::bigint";
        let statement = client.prepare_cached(sql).await?;
        // Sent together.
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.node, &batch];
        let begun = client.batch_execute("BEGIN");
        let ((), updated) = futures::try_join!(begun, client.execute(&statement, &parameters))?;
        match updated {
            0 => Err(Lost::Taken),
            _ => Ok(()),
        }
    }

    /// Returns what ends a transaction: the lease lasts from here on, however long it took.
    pub(super) fn commit(&self) -> String {
        format!(
            "UPDATE node SET expires = clock_timestamp() + {} * interval '1 ms' WHERE id = {}; COMMIT",
            millis(self.lasts),
            self.node
        )
    }

    /// Renews the lease, and reads what was committed under it last: a transaction of before that is not yet at its end is
    /// waited for.
    pub(super) async fn renew(&mut self, client: &ClientWrapper) -> Result<(), Lost> {
        let sql = "UPDATE node SET expires = clock_timestamp() + $2::bigint * interval '1 ms' WHERE id = $1::bigint RETURNING batch";
        let statement = client.prepare_cached(sql).await?;
        let row = client
            .query_opt(&statement, &[&self.node, &millis(self.lasts)])
            .await?;
        self.batch = row.ok_or(Lost::Taken)?.try_get(0)?;
        Ok(())
    }

    /// Lets go of it, and of all sessions.
    pub(super) async fn release(&self, client: &ClientWrapper) {
        let sql = "DELETE FROM node WHERE id = $1::bigint";
        if let Err(error) = client.execute(sql, &[&self.node]).await {
            tracing::debug!(error = described(&error), "the lease ends by itself");
        }
    }

    /// Returns after which time it is renewed.
    pub(super) fn renews_after(&self) -> Duration {
        self.lasts / 3
    }

    /// Returns after which time without being renewed it is taken for lost here: before others may do so.
    pub(super) fn lapses_after(&self) -> Duration {
        self.lasts * 2 / 3
    }

    /// Asks for sessions of users, in a transaction under this lease. Those that are not there are in no part of the answer.
    pub(super) async fn ask(
        &self,
        client: &ClientWrapper,
        sessions: &[(&User, &str)],
    ) -> Result<Asked, tokio_postgres::Error> {
        let look = "SELECT any_session.key, any_session.id, any_session.owner, any_session.node, holder.id, holder.name, holder.url, \
                    CASE WHEN holder.expires > clock_timestamp() \
                    THEN ceil(extract(epoch FROM holder.expires - clock_timestamp()) * 1000)::bigint ELSE 0 END \
                    FROM unnest($1::text[], $2::text[]) AS wanted (id, owner) \
                    JOIN any_session ON any_session.id = wanted.id AND any_session.owner = wanted.owner AND is_whole \
                    LEFT JOIN node AS holder ON holder.id = any_session.node ORDER BY any_session.key";
        let statement = client.prepare_cached(look).await?;
        let ids: Vec<_> = sessions.iter().map(|it| clean(it.1)).collect();
        let owners: Vec<_> = sessions.iter().map(|it| clean(it.0.as_str())).collect();
        let mut asked = Asked::default();
        let (mut free, mut over) = (Vec::new(), Vec::new());
        for row in client.query(&statement, &[&ids, &owners]).await? {
            let wanted = Wanted {
                key: row.try_get(0)?,
                id: row.try_get(1)?,
                user: User::new(row.try_get(2)?),
                had_by: row.try_get(3)?,
            };
            let Some(holder) = row.try_get::<_, Option<i64>>(4)? else {
                free.push(wanted);
                continue;
            };
            if holder == self.node {
                asked.own.push((wanted.id, wanted.user));
                continue;
            }
            let left_ms: i64 = row.try_get(7)?;
            if left_ms == 0 {
                over.push(wanted);
                continue;
            }
            let elsewhere = Error::Elsewhere {
                node: row.try_get(5)?,
                url: row.try_get(6)?,
                left: Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)),
            };
            asked.elsewhere.push((wanted.id, wanted.user, elsewhere));
        }
        let removed = self.remove(client, &over).await?;
        free.extend(over.extract_if(.., |it| removed.contains(&it.had_by)));
        let lost = self.take_free(client, free, &mut asked).await?;
        let unsure = over.into_iter().chain(lost).map(|it| {
            let elsewhere = Error::Elsewhere {
                node: "another process".to_owned(),
                url: None,
                left: Duration::ZERO,
            };
            (it.id, it.user, elsewhere)
        });
        asked.elsewhere.extend(unsure);
        Ok(asked)
    }

    /// Removes the processes whose time is over that had these sessions; returns which. One whose transaction is not yet at
    /// its end is left.
    async fn remove(
        &self,
        client: &ClientWrapper,
        over: &[Wanted],
    ) -> Result<Vec<Option<i64>>, tokio_postgres::Error> {
        if over.is_empty() {
            return Ok(Vec::new());
        }
        let nodes: Vec<Option<i64>> = over.iter().map(|it| it.had_by).collect();
        let remove = "DELETE FROM node WHERE id IN (SELECT id FROM node WHERE id = ANY($1::bigint[]) \
                      AND expires <= clock_timestamp() FOR UPDATE SKIP LOCKED) RETURNING id, name";
        let statement = client.prepare_cached(remove).await?;
        let rows = client.query(&statement, &[&nodes]).await?;
        let removed = rows.iter().map(|row| {
            let name: String = row.try_get(1)?;
            tracing::warn!("{name} is taken for dead: it did not renew its lease");
            row.try_get(0).map(Some)
        });
        removed.collect()
    }

    /// Takes sessions that nobody has; returns those that somebody else took first.
    async fn take_free(
        &self,
        client: &ClientWrapper,
        mut free: Vec<Wanted>,
        asked: &mut Asked,
    ) -> Result<Vec<Wanted>, tokio_postgres::Error> {
        if free.is_empty() {
            return Ok(free);
        }
        let keys: Vec<i64> = free.iter().map(|it| it.key).collect();
        let had_by: Vec<Option<i64>> = free.iter().map(|it| it.had_by).collect();
        // Who came first has it: the row names another process by then.
        let take = "UPDATE any_session SET node = $1::bigint FROM unnest($2::bigint[], $3::bigint[]) AS seen (key, node) \
                    WHERE any_session.key = seen.key AND any_session.node IS NOT DISTINCT FROM seen.node \
                    RETURNING any_session.key";
        let statement = client.prepare_cached(take).await?;
        let parameters: [&(dyn ToSql + Sync); 3] = [&self.node, &keys, &had_by];
        let rows = client.query(&statement, &parameters).await?;
        let taken = rows.iter().map(|row| row.try_get(0));
        let taken: Vec<i64> = taken.collect::<Result<_, _>>()?;
        for it in free.extract_if(.., |it| taken.contains(&it.key)) {
            if it.had_by.is_some() {
                asked.left_behind.push(it.key);
            }
            asked.own.push((it.id, it.user));
        }
        Ok(free)
    }

    /// Removes all processes whose time is over, in a transaction under this lease.
    pub(super) async fn remove_dead(
        &self,
        client: &ClientWrapper,
    ) -> Result<(), tokio_postgres::Error> {
        let remove = "DELETE FROM node WHERE id IN (SELECT id FROM node WHERE expires <= clock_timestamp() FOR UPDATE SKIP LOCKED)";
        client.execute(remove, &[]).await.map(drop)
    }

    /// Lets go of sessions, in a transaction under this lease. One in which a call is noted as running stays this process's:
    /// whoever takes it after that notes that the call has failed.
    pub(super) async fn let_go(
        &self,
        client: &ClientWrapper,
        sessions: &[String],
    ) -> Result<(), tokio_postgres::Error> {
        let free = "UPDATE any_session SET node = NULL WHERE id = ANY($1::text[]) AND node = $2::bigint \
                    AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = any_session.key AND status = 'running')";
        let statement = client.prepare_cached(free).await?;
        client.execute(&statement, &[&sessions, &self.node]).await?;
        Ok(())
    }
}

/// A session that is asked for, as it was seen.
struct Wanted {
    key: i64,
    id: String,
    user: User,
    had_by: Option<i64>,
}

/// Returns that another process than this one has a session of a user; `None` where none has.
pub(super) async fn elsewhere(
    client: &ClientWrapper,
    (user, session): (&User, &str),
    node: i64,
) -> Result<Option<Error>, tokio_postgres::Error> {
    let find = "SELECT holder.name, holder.url, ceil(extract(epoch FROM holder.expires - clock_timestamp()) * 1000)::bigint \
                FROM any_session JOIN node AS holder ON holder.id = any_session.node WHERE any_session.id = $1::text \
                AND any_session.owner = $2::text AND holder.id <> $3::bigint AND holder.expires > clock_timestamp()";
    let find = client.prepare_cached(find).await?;
    let (session, user) = (clean(session), clean(user.as_str()));
    let Some(row) = client.query_opt(&find, &[&session, &user, &node]).await? else {
        return Ok(None);
    };
    Ok(Some(Error::Elsewhere {
        node: row.try_get(0)?,
        url: row.try_get(1)?,
        left: Duration::from_millis(u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0)),
    }))
}

/// Returns the processes that have not come to an end, as they are called to others: those that write.
pub(super) async fn living(client: &ClientWrapper) -> Result<Vec<String>, tokio_postgres::Error> {
    let sql = "SELECT name FROM outrigger.node WHERE expires > clock_timestamp() ORDER BY id";
    let rows = client.query(sql, &[]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Returns a time as the server is told it.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns how this process is called to others where it has no name.
#[cfg(unix)]
fn unnamed() -> String {
    let machine = rustix::system::uname();
    let host = machine.nodename().to_string_lossy();
    format!("the process {} on {host}", std::process::id())
}

/// Returns how this process is called to others where it has no name.
#[cfg(not(unix))]
fn unnamed() -> String {
    let host = std::env::var("COMPUTERNAME").ok();
    let host = host.unwrap_or_else(|| "an unnamed machine".to_owned());
    format!("the process {} on {host}", std::process::id())
}

//! The schema, and the lease: who may write.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;

use super::server::{Server, described};
use crate::Error;

/// The newest schema.
pub const SCHEMA: i64 = 2;

/// The steps to it. One that was released never changes.
const STEPS: [&str; SCHEMA as usize] = [include_str!("1.sql"), include_str!("2.sql")];

/// Which lock of a database those take who bring its schema up to date.
const LOCK: i64 = 0x6f75_7472_6967;

/// Whose the whole database is, while one process has all sessions.
const ALL: &str = "all";

/// Brings the schema up to date: one at a time, whole or not at all.
pub(super) async fn migrate(server: &Server, client: &ClientWrapper) -> Result<(), Error> {
    let failed = |error: tokio_postgres::Error| server.error(described(&error));
    let encoding = client.query_one("SHOW server_encoding", &[]).await;
    let encoding: String = encoding.and_then(|it| it.try_get(0)).map_err(failed)?;
    if encoding != "UTF8" {
        return Err(server.error(format!(
            "its encoding is {encoding}, and has to be UTF8: make one by CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    client.batch_execute("BEGIN").await.map_err(failed)?;
    let lock = "SELECT pg_advisory_xact_lock($1)";
    client.query(lock, &[&LOCK]).await.map_err(failed)?;
    let table = "CREATE TABLE IF NOT EXISTS schema (version BIGINT NOT NULL)";
    client.batch_execute(table).await.map_err(failed)?;
    let found = version(client).await.map_err(failed)?;
    if found > SCHEMA {
        client.batch_execute("ROLLBACK").await.ok();
        return Err(Error::Newer {
            path: server.shown.to_string(),
            found,
            known: SCHEMA,
        });
    }
    let done = usize::try_from(found).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        client.batch_execute(step).await.map_err(failed)?;
    }
    if found < SCHEMA {
        let version = "WITH old AS (DELETE FROM schema) INSERT INTO schema VALUES ($1)";
        client.execute(version, &[&SCHEMA]).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

/// Returns the schema of a database; 0 where it has none.
pub(super) async fn version(client: &ClientWrapper) -> Result<i64, tokio_postgres::Error> {
    let row = client
        .query_one("SELECT coalesce(max(version), 0) FROM schema", &[])
        .await?;
    row.try_get(0)
}

/// That this process may write.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) generation: i64,
    /// The last transaction that was committed under it.
    pub(super) batch: i64,
    lasts: Duration,
}

/// Who has the lease, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) node: String,
    pub(super) generation: i64,
    /// When it ends, in milliseconds of the server's clock.
    expires_ms: i64,
    /// How long that is.
    pub(super) left_ms: i64,
}

/// What is missing where the lease is another's.
pub(super) enum Lost {
    Server(tokio_postgres::Error),
    /// To whom it went.
    Taken(String),
}

impl From<tokio_postgres::Error> for Lost {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl Lease {
    /// Takes the lease. One that another process has ends when that one does not renew it, which is waited for.
    pub(super) async fn take(
        server: &Server,
        client: &ClientWrapper,
        lasts: Duration,
    ) -> Result<Self, Error> {
        let failed = |error: tokio_postgres::Error| server.error(described(&error));
        let node = node();
        let mut before: Option<Holder> = None;
        loop {
            let taken = client
                .query_opt(
                    "INSERT INTO lease (scope, node, generation, batch, expires) \
                     VALUES ($1, $2, 1, 0, clock_timestamp() + $3::bigint * interval '1 ms') \
                     ON CONFLICT (scope) DO UPDATE SET node = excluded.node, generation = lease.generation + 1, \
                     expires = excluded.expires WHERE lease.expires <= clock_timestamp() RETURNING generation, batch",
                    &[&ALL, &node, &millis(lasts)],
                )
                .await
                .map_err(failed)?;
            if let Some(row) = taken {
                let read = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
                let (generation, batch) = read(&row).map_err(failed)?;
                return Ok(Self {
                    generation,
                    batch,
                    lasts,
                });
            }
            let Some(holder) = holder(client).await.map_err(failed)? else {
                continue;
            };
            // It was renewed since it was looked at: whoever has it lives.
            let is_renewed = before.as_ref().is_some_and(|it| {
                (it.generation, it.expires_ms) != (holder.generation, holder.expires_ms)
            });
            if is_renewed {
                return Err(Error::Owned {
                    database: server.shown.to_string(),
                    node: holder.node,
                });
            }
            if before.is_none() {
                tracing::warn!(
                    "{} is in use by {}: waiting {} ms for its lease to end, or to be renewed",
                    server.shown,
                    holder.node,
                    holder.left_ms
                );
            }
            let left = Duration::from_millis(u64::try_from(holder.left_ms).unwrap_or(0));
            before = Some(holder);
            tokio::time::sleep(left.min(lasts / 15) + Duration::from_millis(10)).await;
        }
    }

    /// Takes the next number for a transaction, within it: the lease goes on, and what another process takes over has to
    /// wait for the end of this transaction, or this one fails.
    pub(super) async fn fence(&self, client: &ClientWrapper, batch: i64) -> Result<(), Lost> {
        let sql = "UPDATE lease SET batch = $3::bigint, expires = clock_timestamp() + $4::bigint * interval '1 ms' \
                   WHERE scope = $1::text AND generation = $2::bigint";
        let statement = client.prepare_cached(sql).await?;
        let lasts = millis(self.lasts);
        let updated = client
            .execute(&statement, &[&ALL, &self.generation, &batch, &lasts])
            .await?;
        match updated {
            0 => Err(self.lost(client).await),
            _ => Ok(()),
        }
    }

    /// Renews the lease, and reads what was committed under it last: a transaction of before that is not yet at its end is
    /// waited for.
    pub(super) async fn renew(&mut self, client: &ClientWrapper) -> Result<(), Lost> {
        let sql = "UPDATE lease SET expires = clock_timestamp() + $3::bigint * interval '1 ms' \
                   WHERE scope = $1::text AND generation = $2::bigint RETURNING batch";
        let statement = client.prepare_cached(sql).await?;
        let lasts = millis(self.lasts);
        let row = client
            .query_opt(&statement, &[&ALL, &self.generation, &lasts])
            .await?;
        match row {
            None => Err(self.lost(client).await),
            Some(row) => {
                self.batch = row.try_get(0)?;
                Ok(())
            }
        }
    }

    /// Lets go of it.
    pub(super) async fn release(&self, client: &ClientWrapper) {
        let sql = "UPDATE lease SET expires = '-infinity' WHERE scope = $1::text AND generation = $2::bigint";
        if let Err(error) = client.execute(sql, &[&ALL, &self.generation]).await {
            tracing::debug!(error = described(&error), "the lease ends by itself");
        }
    }

    /// Returns after which time it is renewed.
    pub(super) fn renews_after(&self) -> Duration {
        self.lasts / 3
    }

    async fn lost(&self, client: &ClientWrapper) -> Lost {
        match holder(client).await {
            Ok(Some(holder)) => Lost::Taken(holder.node),
            Ok(None) => Lost::Taken("nobody: its lease is gone".to_owned()),
            Err(error) => Lost::Server(error),
        }
    }
}

/// Returns who has the lease, or had it last.
pub(super) async fn holder(
    client: &ClientWrapper,
) -> Result<Option<Holder>, tokio_postgres::Error> {
    let sql = "SELECT node, generation, CASE WHEN isfinite(expires) THEN (extract(epoch FROM expires) * 1000)::bigint ELSE 0 END, \
               CASE WHEN isfinite(expires) THEN (extract(epoch FROM expires - clock_timestamp()) * 1000)::bigint ELSE 0 END \
               FROM lease WHERE scope = $1::text";
    let Some(row) = client.query_opt(sql, &[&ALL]).await? else {
        return Ok(None);
    };
    Ok(Some(Holder {
        node: row.try_get(0)?,
        generation: row.try_get(1)?,
        expires_ms: row.try_get(2)?,
        left_ms: row.try_get(3)?,
    }))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns how this process is called to others.
fn node() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.or_else(|| std::env::var("COMPUTERNAME").ok());
    let host = host.unwrap_or_else(|| "an unnamed machine".to_owned());
    format!("the process {} on {}", std::process::id(), host.trim())
}

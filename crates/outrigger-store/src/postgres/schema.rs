//! The schema, and the lease: who may write.

use std::time::{Duration, Instant};

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::server::{Server, described};
use crate::Error;

/// The newest schema.
pub const SCHEMA: i64 = 2;

/// The steps to it. One that was released never changes.
const STEPS: [&str; SCHEMA as usize] = [include_str!("1.sql"), include_str!("2.sql")];

/// What the tables are in, which is the owner's alone: nobody else can put a table or a function in their place. Each
/// connection looks names up there.
pub(super) const NAME: &str = "outrigger";

/// Which lock of a database those take who bring its schema up to date.
const LOCK: i64 = 0x6f75_7472_6967;

/// Whose the whole database is, while one process has all sessions.
const ALL: &str = "all";

/// How much longer than a lease lasts one is waited for that nobody renews.
const MARGIN: Duration = Duration::from_secs(2);

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
    let access = access(client).await.map_err(failed)?;
    if let Some(problem) = access.problem() {
        return Err(server.error(problem));
    }
    if access.is_above {
        tracing::warn!(
            "the user of store.url is a superuser, or has BYPASSRLS: row-level security does not count for it, so that the statements alone keep users apart; give the daemon a role of its own"
        );
    }
    let mut found = 0;
    if access.has_tables {
        found = version(client).await.map_err(failed)?;
    } else {
        if !access.has_schema {
            let make = "CREATE SCHEMA outrigger";
            client.batch_execute(make).await.map_err(failed)?;
        }
        let table = "CREATE TABLE schema (version BIGINT NOT NULL)";
        client.batch_execute(table).await.map_err(failed)?;
    }
    let done = known(&server.shown, found)?;
    for step in STEPS.iter().skip(done) {
        client.batch_execute(step).await.map_err(failed)?;
    }
    if found < SCHEMA {
        let version = "WITH old AS (DELETE FROM schema) INSERT INTO schema VALUES ($1)";
        client.execute(version, &[&SCHEMA]).await.map_err(failed)?;
    }
    client.batch_execute("COMMIT").await.map_err(failed)
}

/// What this user may do in a database.
pub(super) struct Access {
    pub(super) has_schema: bool,
    pub(super) has_tables: bool,
    /// Whether the schema, and all that is in it, are those of somebody who may be trusted with it.
    is_own: bool,
    /// Whether what is missing may be made, and what is there written.
    is_allowed: bool,
    /// Whether row-level security does not count for this user: then the statements alone keep users apart.
    pub(super) is_above: bool,
}

impl Access {
    /// Returns why nothing can be kept there.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = match (self.is_own, self.is_allowed, self.has_schema) {
            (false, ..) => {
                "its schema `outrigger`, or a table in it, belongs to a user who is neither that of store.url nor the owner of the database: look at who made it, and drop it where nobody needs it (DROP SCHEMA outrigger CASCADE)"
            }
            (true, true, _) => return None,
            (true, false, false) => {
                "the user of store.url may not make the schema `outrigger` in it: make this user its owner (ALTER DATABASE … OWNER TO …), or CREATE SCHEMA outrigger AUTHORIZATION …"
            }
            (true, false, true) => {
                "the user of store.url may not write in its schema `outrigger`: make this user its owner (ALTER SCHEMA outrigger OWNER TO …)"
            }
        };
        Some(problem.to_owned())
    }
}

/// Looks at what this user may do.
pub(super) async fn access(client: &ClientWrapper) -> Result<Access, tokio_postgres::Error> {
    // A superuser, and the database's owner, can do anything there anyway.
    let row = client
        .query_one(
            "WITH own AS (SELECT oid, nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'outrigger'), \
             strange AS (SELECT 1 FROM (SELECT nspowner AS owner FROM own UNION ALL \
             SELECT relowner FROM pg_catalog.pg_class JOIN own ON relnamespace = own.oid UNION ALL \
             SELECT proowner FROM pg_catalog.pg_proc JOIN own ON pronamespace = own.oid) AS found \
             JOIN pg_catalog.pg_roles AS role ON role.oid = owner \
             JOIN pg_catalog.pg_database ON datname = current_database() \
             WHERE NOT (pg_has_role(owner, 'MEMBER') OR role.rolsuper OR owner = datdba)), \
             written AS (SELECT pg_class.oid FROM pg_catalog.pg_class JOIN own ON relnamespace = own.oid \
             WHERE relname IN ('lease', 'any_session')) \
             SELECT EXISTS (SELECT 1 FROM own), EXISTS (SELECT 1 FROM written), NOT EXISTS (SELECT 1 FROM strange), \
             CASE WHEN EXISTS (SELECT 1 FROM written) \
             THEN (SELECT has_schema_privilege(oid, 'USAGE') FROM own) \
             AND (SELECT bool_and(has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')) FROM written) \
             WHEN EXISTS (SELECT 1 FROM own) \
             THEN (SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE') FROM own) \
             ELSE has_database_privilege(current_database(), 'CREATE') END, \
             (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = current_user)",
            &[],
        )
        .await?;
    Ok(Access {
        has_schema: row.try_get(0)?,
        has_tables: row.try_get(1)?,
        is_own: row.try_get(2)?,
        is_allowed: row.try_get(3)?,
        is_above: row.try_get(4)?,
    })
}

/// Returns the schema of a database that has one.
pub(super) async fn version(client: &ClientWrapper) -> Result<i64, tokio_postgres::Error> {
    let row = client
        .query_one(
            "SELECT coalesce(max(version), 0) FROM outrigger.schema",
            &[],
        )
        .await?;
    row.try_get(0)
}

/// Returns how many of the steps were made that lead to this schema, which may be none that is known here.
pub(super) fn known(shown: &str, found: i64) -> Result<usize, Error> {
    let path = shown.to_owned();
    match usize::try_from(found) {
        Ok(done) if found <= SCHEMA => Ok(done),
        Ok(_) => Err(Error::Newer {
            path,
            found,
            known: SCHEMA,
        }),
        Err(_) => Err(Error::Open {
            path,
            problem: format!(
                "its table outrigger.schema has {found}, which is no schema: put a backup in its place"
            ),
        }),
    }
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
    generation: i64,
    /// When it ends, as the server writes it.
    expires: String,
    /// How many milliseconds it goes on.
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
        let owned = |holder: Holder, advice: String| Error::Owned {
            database: server.shown.to_string(),
            node: holder.node,
            advice,
        };
        let node = node();
        let until = Instant::now() + lasts + MARGIN;
        let mut before: Option<Holder> = None;
        loop {
            if let Some(lease) = Self::take_free(client, &node, lasts)
                .await
                .map_err(failed)?
            {
                return Ok(lease);
            }
            let Some(holder) = holder(client).await.map_err(failed)? else {
                continue;
            };
            // It was renewed since it was looked at: whoever has it lives.
            let is_renewed = before.as_ref().is_some_and(|it| {
                (it.generation, &it.expires) != (holder.generation, &holder.expires)
            });
            if is_renewed {
                let advice = "end it, or give this one a store.url of its own";
                return Err(owned(holder, advice.to_owned()));
            }
            if Instant::now() >= until {
                let advice = format!(
                    "it does not renew that, and has it until {} by the server's clock: where that process is gone, DELETE FROM outrigger.lease WHERE scope = '{ALL}'",
                    holder.expires
                );
                return Err(owned(holder, advice));
            }
            if before.is_none() {
                tracing::warn!(
                    "{} is in use by {}: waiting for its lease to end, or to be renewed",
                    server.shown,
                    holder.node,
                );
            }
            let left = Duration::from_millis(u64::try_from(holder.left_ms).unwrap_or(0));
            before = Some(holder);
            tokio::time::sleep(left.min(lasts / 15) + Duration::from_millis(10)).await;
        }
    }

    /// Takes the lease where nobody has it.
    async fn take_free(
        client: &ClientWrapper,
        node: &str,
        lasts: Duration,
    ) -> Result<Option<Self>, tokio_postgres::Error> {
        let taken = client
            .query_opt(
                "INSERT INTO lease (scope, node, generation, batch, expires) \
                 VALUES ($1, $2, 1, 0, clock_timestamp() + $3::bigint * interval '1 ms') \
                 ON CONFLICT (scope) DO UPDATE SET node = excluded.node, generation = lease.generation + 1, \
                 expires = excluded.expires WHERE lease.expires <= clock_timestamp() RETURNING generation, batch",
                &[&ALL, &node, &millis(lasts)],
            )
            .await;
        let row = match taken {
            Ok(row) => row,
            // Whoever has it writes just now.
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => None,
            Err(error) => return Err(error),
        };
        let read = |row: Row| {
            Ok(Self {
                generation: row.try_get(0)?,
                batch: row.try_get(1)?,
                lasts,
            })
        };
        row.map(read).transpose()
    }

    /// Begins a transaction and takes the next number for it, within it: what another process takes over has to wait for the
    /// end of this transaction, or this one fails.
    pub(super) async fn begin(&self, client: &ClientWrapper, batch: i64) -> Result<(), Lost> {
        let sql = "UPDATE lease SET batch = $3::bigint WHERE scope = $1::text AND generation = $2::bigint";
        let statement = client.prepare_cached(sql).await?;
        // Sent together.
        let parameters: [&(dyn ToSql + Sync); 3] = [&ALL, &self.generation, &batch];
        let begun = client.batch_execute("BEGIN");
        let ((), updated) = futures::try_join!(begun, client.execute(&statement, &parameters))?;
        match updated {
            0 => Err(self.lost(client).await),
            _ => Ok(()),
        }
    }

    /// Returns what ends a transaction: the lease lasts from here on, however long it took.
    pub(super) fn commit(&self) -> String {
        format!(
            "UPDATE lease SET expires = clock_timestamp() + {} * interval '1 ms' WHERE scope = '{ALL}' AND generation = {}; COMMIT",
            millis(self.lasts),
            self.generation
        )
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
    let sql = "SELECT node, generation, expires::text, least(greatest(extract(epoch FROM \
               CASE WHEN isfinite(expires) THEN expires - clock_timestamp() \
               WHEN expires > clock_timestamp() THEN interval '1 day' ELSE interval '0' END) * 1000, 0), 86400000)::bigint \
               FROM outrigger.lease WHERE scope = $1::text";
    let Some(row) = client.query_opt(sql, &[&ALL]).await? else {
        return Ok(None);
    };
    Ok(Some(Holder {
        node: row.try_get(0)?,
        generation: row.try_get(1)?,
        expires: row.try_get(2)?,
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

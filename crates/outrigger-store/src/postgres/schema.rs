//! The schema, and who may bring it up to date.

use deadpool_postgres::ClientWrapper;

use super::server::{Server, described};
use crate::Error;

/// The newest schema.
pub const SCHEMA: i64 = 4;

/// The steps to it. One that was released never changes.
const STEPS: [&str; SCHEMA as usize] = [
    include_str!("1.sql"),
    include_str!("2.sql"),
    include_str!("3.sql"),
    include_str!("4.sql"),
];

/// What the tables are in, which is the owner's alone: nobody else can put a table or a function in their place. Each
/// connection looks names up there.
pub(super) const NAME: &str = "outrigger";

/// Which lock of a database those take who bring its schema up to date.
const LOCK: i64 = 0x6f75_7472_6967;

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
             WHERE relname IN ('schema', 'any_session')) \
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

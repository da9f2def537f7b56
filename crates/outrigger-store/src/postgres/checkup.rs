//! How a database is, for who asks why something does not work. Nothing is written.

use super::lease::living;
use super::schema::{SCHEMA, access, known, version};
use super::server::{Server, described};
use crate::Error;

/// How a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkup {
    /// Which it is, for people; without a user's name and password.
    pub shown: String,
    /// The version of the server.
    pub server: String,
    /// Its schema; `None` where it has none yet.
    pub schema: Option<i64>,
    /// The processes that keep sessions there now, as they are called to others.
    pub nodes: Vec<String>,
    /// Whether its user is a superuser, or has BYPASSRLS: then row-level security does not count.
    pub is_above: bool,
    /// Bytes of the database, with all that is in it.
    pub bytes: u64,
}

/// Looks at the database of `url`; waits for that. Fails where it cannot be reached or written, or is newer than this program.
pub fn check_up(url: &str) -> Result<Checkup, Error> {
    let server = Server::read(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| server.error(error.to_string()))?;
    runtime.block_on(look(&server))
}

async fn look(server: &Server) -> Result<Checkup, Error> {
    let failed = |error: tokio_postgres::Error| server.error(described(&error));
    let client = server.connect().await.map_err(|it| server.error(it))?;
    let row = client
        .query_one(
            "SELECT current_setting('server_version'), pg_database_size(current_database())",
            &[],
        )
        .await
        .map_err(failed)?;
    let bytes: i64 = row.try_get(1).map_err(failed)?;
    let access = access(&client).await.map_err(failed)?;
    if let Some(problem) = access.problem() {
        return Err(server.error(problem));
    }
    let (mut schema, mut nodes) = (None, Vec::new());
    if access.has_tables {
        let found = version(&client).await.map_err(failed)?;
        known(&server.shown, found)?;
        schema = Some(found);
        if found == SCHEMA {
            nodes = living(&client).await.map_err(failed)?;
        }
    }
    Ok(Checkup {
        shown: server.shown.to_string(),
        server: row.try_get(0).map_err(failed)?,
        schema,
        nodes,
        is_above: access.is_above,
        bytes: u64::try_from(bytes).unwrap_or(0),
    })
}

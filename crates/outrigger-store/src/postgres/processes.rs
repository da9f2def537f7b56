//! The processes that have a database, for whoever runs them.

use std::time::Duration;

use deadpool_postgres::Object;
use futures::future::BoxFuture;

use super::Postgres;
use crate::Error;

/// A process that keeps sessions in a database, or kept some until it died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// How it is called to others.
    pub name: String,
    /// The address that others pass clients on to; `None` where it told none.
    pub url: Option<String>,
    /// How long ago it said that it lives; `None` where that is so long ago that others may have its sessions.
    pub renewed: Option<Duration>,
    /// How many sessions are its own.
    pub sessions: u64,
    /// Whether it is this one.
    pub is_own: bool,
}

impl Postgres {
    /// Returns the processes that have this database, by their names.
    pub fn processes(&self) -> BoxFuture<'static, Result<Vec<Process>, Error>> {
        // The time that is over is not looked at: it may be infinite.
        const SQL: &str = "SELECT name, url, CASE WHEN expires > clock_timestamp() \
             THEN ceil(extract(epoch FROM expires - clock_timestamp()) * 1000)::bigint END, \
             (SELECT count(*) FROM any_session WHERE any_session.node = node.id), id = $1::bigint FROM node ORDER BY name, id";
        let (node, lasts) = (self.0.node, self.0.lasts);
        self.read_of(None, async move |client: Object| {
            let statement = client.prepare_cached(SQL).await?;
            let rows = client.query(&statement, &[&node]).await?;
            let natural = |number: i64| u64::try_from(number).unwrap_or(0);
            let process = |row: &tokio_postgres::Row| {
                let left: Option<i64> = row.try_get(2)?;
                let left = left.map(|it| Duration::from_millis(natural(it)));
                Ok(Process {
                    name: row.try_get(0)?,
                    url: row.try_get(1)?,
                    renewed: left.map(|left| lasts.saturating_sub(left)),
                    sessions: natural(row.try_get(3)?),
                    is_own: row.try_get(4)?,
                })
            };
            rows.iter().map(process).collect()
        })
    }
}

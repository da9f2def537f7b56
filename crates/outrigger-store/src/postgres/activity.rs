//! What users do at each process, for limits of a user that count for all processes together.

use std::time::Duration;

use deadpool_postgres::Object;
use futures::future::BoxFuture;

use super::Postgres;
use super::lease::millis;
use super::op::clean;
use crate::{Error, User};

/// What a user does at a process, or at several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Sessions that are there.
    pub sessions: u64,
    /// Conversations at work.
    pub exchanges: u64,
    /// What was sent in the last minute.
    pub sends: u64,
    /// How long ago the first of that was.
    pub first_send: Option<Duration>,
}

/// Writes what users do at this process, in place of what was told of them before.
const TELL: &str = "INSERT INTO activity AS old (node, owner, sessions, exchanges, sends, first_send, version) \
     SELECT $1::bigint, owner, sessions, exchanges, sends, clock_timestamp() - ago * interval '1 ms', $7::bigint \
     FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS own (owner, sessions, exchanges, sends, ago) \
     ON CONFLICT (owner, node) DO UPDATE SET (sessions, exchanges, sends, first_send, version) = \
     (excluded.sessions, excluded.exchanges, excluded.sends, excluded.first_send, excluded.version) WHERE old.version < excluded.version";

/// Takes away what was told of others than these before a version.
const END: &str = "DELETE FROM activity WHERE node = $1::bigint AND version < $3::bigint \
     AND NOT EXISTS (SELECT FROM unnest($2::text[]) AS own (owner) WHERE own.owner = activity.owner)";

/// Reads what they do at the others that live.
const READ: &str = "SELECT owner, sum(sessions)::bigint, sum(exchanges)::bigint, sum(sends)::bigint, \
     (extract(epoch FROM clock_timestamp() - min(first_send)) * 1000)::bigint \
     FROM activity JOIN node ON node.id = activity.node \
     WHERE owner = ANY($2::text[]) AND node <> $1::bigint AND expires > clock_timestamp() GROUP BY owner";

impl Postgres {
    /// Tells other processes what users do at this one. The version goes up each time, before it is looked what they do: of a user
    /// the highest one counts, in whatever order they come.
    pub fn tell_activity(
        &self,
        version: u64,
        own: &[(User, Activity)],
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (node, version) = (self.0.node, whole(version));
        let users = names(own.iter().map(|it| &it.0));
        let sessions: Vec<i64> = own.iter().map(|it| whole(it.1.sessions)).collect();
        let exchanges: Vec<i64> = own.iter().map(|it| whole(it.1.exchanges)).collect();
        let sends: Vec<i64> = own.iter().map(|it| whole(it.1.sends)).collect();
        let ago: Vec<Option<i64>> = own.iter().map(|it| it.1.first_send.map(millis)).collect();
        self.read_of(None, async move |client: Object| {
            let statement = client.prepare_cached(TELL).await?;
            client
                .execute(
                    &statement,
                    &[&node, &users, &sessions, &exchanges, &sends, &ago, &version],
                )
                .await
                .map(drop)
        })
    }

    /// Tells other processes that before this version no others than these users did anything at this one.
    pub fn end_activity(
        &self,
        version: u64,
        users: &[User],
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (node, version) = (self.0.node, whole(version));
        let users = names(users.iter());
        self.read_of(None, async move |client: Object| {
            let statement = client.prepare_cached(END).await?;
            client
                .execute(&statement, &[&node, &users, &version])
                .await
                .map(drop)
        })
    }

    /// Returns what these users do at other processes that live; nothing is said of one who does nothing there.
    pub fn activity(
        &self,
        users: &[User],
    ) -> BoxFuture<'static, Result<Vec<(User, Activity)>, Error>> {
        let (node, users) = (self.0.node, names(users.iter()));
        self.read_of(None, async move |client: Object| {
            let statement = client.prepare_cached(READ).await?;
            let rows = client.query(&statement, &[&node, &users]).await?;
            let natural = |number: i64| u64::try_from(number).unwrap_or(0);
            let activity = |row: &tokio_postgres::Row| {
                let ago: Option<i64> = row.try_get(4)?;
                let activity = Activity {
                    sessions: natural(row.try_get(1)?),
                    exchanges: natural(row.try_get(2)?),
                    sends: natural(row.try_get(3)?),
                    first_send: ago.map(|it| Duration::from_millis(natural(it))),
                };
                Ok((User::new(row.try_get(0)?), activity))
            };
            rows.iter().map(activity).collect()
        })
    }
}

/// Returns the names of users as the server has them.
fn names<'a>(users: impl Iterator<Item = &'a User>) -> Vec<String> {
    users.map(|it| clean(it.as_str()).into_owned()).collect()
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! A session that is made of another one, which is asked for first.

use deadpool_postgres::ClientWrapper;

use super::super::op::{self, Op, integer};
use super::{Days, Ops};
use crate::{Change, Error, User};

/// Why changes cannot be written.
#[derive(Debug)]
pub(in super::super) enum Failure {
    /// The server says so, or is not there.
    Server(tokio_postgres::Error),
    /// They do not fit what is there.
    Misfit(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

/// Writes the changes of one session, one after the other where one of them is a fork. In a transaction.
pub(in super::super) async fn all(
    client: &ClientWrapper,
    (user, session): (&User, &str),
    changes: &[Change],
    days: &mut Days,
) -> Result<(), Failure> {
    let mut ops = Ops::new((user, session), true);
    for change in changes {
        match change {
            Change::Fork { from, part, at_ms } => {
                ops.finish();
                op::run(client, &ops.list).await?;
                ops = Ops::new((user, session), true);
                fork(client, (user, session), (from, part.as_ref()), *at_ms).await?;
            }
            change => ops.change(change, days),
        }
    }
    ops.finish();
    Ok(op::run(client, &ops.list).await?)
}

/// Makes a session of another one's messages, of all conversations or of one, up to a place; their bodies are shared.
async fn fork(
    client: &ClientWrapper,
    (user, id): (&User, &str),
    (from, part): (&str, Option<&(String, Option<u64>)>),
    at_ms: i64,
) -> Result<(), Failure> {
    let find = "SELECT key FROM session WHERE id = $1::text AND owner = $2::text";
    let find = client.prepare_cached(find).await?;
    let Some(source) = client.query_opt(&find, &[&from, &user.as_str()]).await? else {
        return Err(Failure::Misfit(Error::Unknown));
    };
    let source: i64 = source.try_get(0)?;
    let (only, place) = match part {
        Some((conversation, before)) => {
            let end =
                "SELECT next_place FROM conversation WHERE session = $1::bigint AND id = $2::text";
            let end = client.prepare_cached(end).await?;
            let Some(end) = client.query_opt(&end, &[&source, conversation]).await? else {
                return Err(Failure::Misfit(Error::Unknown));
            };
            let end: i64 = end.try_get(0)?;
            let place = before.map_or(end, integer);
            if place > end {
                let messages = u64::try_from(end).unwrap_or(0);
                return Err(Failure::Misfit(Error::Beyond { messages }));
            }
            (Some(conversation.as_str()), place)
        }
        None => (None, i64::MAX),
    };
    let make = "INSERT INTO any_session (id, owner, project, title, title_small, title_by, settings, created_ms, updated_ms, \
                parent, seq, ids) SELECT $1::text, owner, project, title, title_small, title_by, settings, $3::bigint, \
                $3::bigint, id, 0, ids FROM session WHERE key = $2::bigint ON CONFLICT DO NOTHING RETURNING key";
    let make = client.prepare_cached(make).await?;
    let Some(made) = client.query_opt(&make, &[&id, &source, &at_ms]).await? else {
        return Ok(());
    };
    let session: i64 = made.try_get(0)?;
    let ops = [
        Op {
            sql: "INSERT INTO label (session, name) SELECT $1::bigint, name FROM label WHERE session = $2::bigint",
            parameters: vec![session.into(), source.into()],
        },
        Op {
            sql: "INSERT INTO conversation (session, id, next_place, compacted, compacted_at) \
                  SELECT $1::bigint, id, least(next_place, $4::bigint), CASE WHEN compacted_at <= $4::bigint THEN compacted END, \
                  compacted_at FROM conversation WHERE session = $2::bigint AND ($3::text IS NULL OR id = $3::text) ORDER BY key",
            parameters: vec![session.into(), source.into(), only.into(), place.into()],
        },
        Op {
            sql: "INSERT INTO message (conversation, place, body, exchange, at_ms) \
                  SELECT copy.key, message.place, message.body, message.exchange, message.at_ms FROM message \
                  JOIN conversation ON conversation.key = message.conversation AND conversation.session = $2::bigint \
                  JOIN conversation AS copy ON copy.session = $1::bigint AND copy.id = conversation.id \
                  WHERE message.place < $3::bigint",
            parameters: vec![session.into(), source.into(), place.into()],
        },
        Op {
            sql: "UPDATE any_session SET messages = (SELECT count(*) FROM message JOIN conversation \
                  ON conversation.key = message.conversation WHERE conversation.session = any_session.key) WHERE key = $1::bigint",
            parameters: vec![session.into()],
        },
    ];
    Ok(op::run(client, &ops).await?)
}

//! A session that is made of another one.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Failure, count, find, integer};
use crate::{Error, User};

/// Makes a session of another one's messages, of all conversations or of one, up to a place; their bodies are shared.
pub(super) fn fork(
    connection: &Connection,
    (user, id): (&User, &str),
    (from, part): (&str, Option<&(String, Option<u64>)>),
    at_ms: i64,
) -> Result<(), Failure> {
    let Some(source) = find(connection, user, from)? else {
        return Err(Failure::Misfit(Error::Unknown));
    };
    let (only, place) = match part {
        Some((conversation, before)) => {
            let end = end(connection, source, conversation)?;
            let place = before.map_or(end, integer);
            if place > end {
                let messages = u64::try_from(end).unwrap_or(0);
                return Err(Failure::Misfit(Error::Beyond { messages }));
            }
            (Some(conversation), place)
        }
        None => (None, i64::MAX),
    };
    let made = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO any_session (id, owner, project, title, title_by, settings, created_ms, updated_ms, parent, seq, ids) \
             SELECT ?1, owner, project, title, title_by, settings, ?3, ?3, id, 0, ids FROM session WHERE key = ?2",
        )?
        .execute(params![id, source, at_ms])?;
    let Some(session) = find(connection, user, id)?.filter(|_| made > 0) else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO label (session, name) SELECT ?1, name FROM label WHERE session = ?2",
        )?
        .execute(params![session, source])?;
    connection
        .prepare_cached(
            "INSERT INTO conversation (session, id, next_place, compacted, compacted_at) \
             SELECT ?1, id, min(next_place, ?4), CASE WHEN compacted_at <= ?4 THEN compacted END, compacted_at FROM conversation \
             WHERE session = ?2 AND (?3 IS NULL OR id = ?3)",
        )?
        .execute(params![session, source, only, place])?;
    connection
        .prepare_cached(
            "INSERT INTO message (conversation, place, body, exchange, at_ms) \
             SELECT copy.key, message.place, message.body, message.exchange, message.at_ms FROM message \
             JOIN conversation ON conversation.key = message.conversation AND conversation.session = ?2 \
             JOIN conversation AS copy ON copy.session = ?1 AND copy.id = conversation.id \
             WHERE message.place < ?3",
        )?
        .execute(params![session, source, place])?;
    Ok(count(connection, session)?)
}

/// Returns the place that the next message of a conversation gets.
fn end(connection: &Connection, session: i64, conversation: &str) -> Result<i64, Failure> {
    let end = connection
        .prepare_cached("SELECT next_place FROM conversation WHERE session = ?1 AND id = ?2")?
        .query_row(params![session, conversation], |row| row.get(0))
        .optional()?;
    end.ok_or(Failure::Misfit(Error::Unknown))
}

//! What is kept of files that calls change: the newest of each session.

use rusqlite::{Connection, params};

use super::{attachment, clear, conversation_of, integer};
use crate::FileChange;
use crate::bounds::{KEPT_CHANGES, KEPT_CONTENT};
use crate::deflated::deflated;

pub(super) fn add(
    connection: &Connection,
    session: i64,
    change: &FileChange,
) -> rusqlite::Result<()> {
    // What ends late in a conversation that was closed is forgotten with it.
    if conversation_of(connection, session, &change.conversation)?.is_none() {
        return Ok(());
    }
    let (before, bytes) = match &change.before {
        Some(before) => (Some(attachment(connection, before)?), before.bytes.len()),
        None => (None, 0),
    };
    let deflated = deflated(&change.diff);
    let diff = deflated.as_deref().unwrap_or(change.diff.as_bytes());
    connection
        .prepare_cached(
            "INSERT INTO file_change (session, conversation, exchange, call, root, path, at_ms, before, bytes, about, deflated, diff) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            session,
            change.conversation,
            change.exchange,
            change.call,
            change.root,
            change.path,
            change.at_ms,
            before,
            integer(bytes as u64),
            change.about,
            deflated.is_some(),
            diff
        ])?;
    trim(connection, session)
}

/// Removes the oldest changes where there are too many, and the oldest content where that is too much.
fn trim(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    let (count, bytes): (i64, i64) = connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM file_change WHERE session = ?1), \
             (SELECT coalesce(sum(bytes), 0) FROM file_change WHERE session = ?1 AND before IS NOT NULL)",
        )?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if count <= KEPT_CHANGES && bytes <= KEPT_CONTENT {
        return Ok(());
    }
    const OLD: &str = "key IN (SELECT key FROM file_change WHERE session = ?1 ORDER BY key DESC LIMIT -1 OFFSET ?2)";
    const TOO_MUCH: &str = "key IN (SELECT key FROM (SELECT key, sum(bytes) OVER (ORDER BY key DESC) AS kept FROM file_change \
         WHERE session = ?1 AND before IS NOT NULL) WHERE kept > ?2)";
    loosen(connection, OLD, params![session, KEPT_CHANGES])?;
    loosen(connection, TOO_MUCH, params![session, KEPT_CONTENT])?;
    connection
        .prepare_cached(&format!("DELETE FROM file_change WHERE {OLD}"))?
        .execute(params![session, KEPT_CHANGES])?;
    connection
        .prepare_cached(&format!(
            "UPDATE file_change SET before = NULL WHERE {TOO_MUCH}"
        ))?
        .execute(params![session, KEPT_CONTENT])?;
    clear(connection)
}

/// Removes the last change of a file, which was not made.
pub(super) fn unmade(
    connection: &Connection,
    session: i64,
    [exchange, call, root, path]: [&str; 4],
) -> rusqlite::Result<()> {
    let which = "key = (SELECT max(key) FROM file_change \
         WHERE session = ?1 AND exchange = ?2 AND call = ?3 AND root = ?4 AND path = ?5)";
    let parameters = params![session, exchange, call, root, path];
    remove(connection, which, parameters).map(drop)
}

/// Removes the changes in a conversation.
pub(super) fn forget(
    connection: &Connection,
    session: i64,
    conversation: &str,
) -> rusqlite::Result<()> {
    let which = "session = ?1 AND conversation = ?2";
    remove(connection, which, params![session, conversation]).map(drop)
}

/// Removes some of the changes of a session; returns how many.
pub(super) fn remove_some(
    connection: &Connection,
    session: i64,
    most: i64,
) -> rusqlite::Result<usize> {
    let which = "key IN (SELECT key FROM file_change WHERE session = ?1 LIMIT ?2)";
    remove(connection, which, params![session, most])
}

/// Notes that the content of all changes of a session goes with it.
pub(super) fn loosen_all(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    loosen(connection, "session = ?1", params![session])
}

fn remove(
    connection: &Connection,
    which: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<usize> {
    loosen(connection, which, parameters)?;
    let removed = connection
        .prepare_cached(&format!("DELETE FROM file_change WHERE {which}"))?
        .execute(parameters)?;
    clear(connection)?;
    Ok(removed)
}

/// Notes that the content of changes is named by them no more.
fn loosen(
    connection: &Connection,
    which: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT OR IGNORE INTO loose SELECT before FROM file_change WHERE before IS NOT NULL AND {which}"
    );
    connection.prepare_cached(&sql)?.execute(parameters)?;
    Ok(())
}

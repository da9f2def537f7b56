//! A session that is written in slices and seen by nobody before it is whole; and one that is removed in slices.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{calls, delete, files, one, truncate};
use crate::Change;
use crate::slices::{SLICE, SLICE_BYTES, Slice};

/// Writes a slice.
pub(in crate::sqlite) fn slice(connection: &Connection, slice: &Slice) -> rusqlite::Result<()> {
    let mut changes = slice.changes.as_slice();
    if let [Change::Create { project, at_ms }, rest @ ..] = changes {
        connection
            .prepare_cached(
                "INSERT INTO any_session (id, is_whole, project, created_ms, updated_ms, owner) VALUES (?1, 0, ?2, ?3, ?3, ?4)",
            )?
            .execute(params![slice.session, project, at_ms, slice.user.as_str()])?;
        changes = rest;
    }
    let session: i64 = connection
        .prepare_cached(
            "SELECT key FROM any_session WHERE id = ?1 AND owner = ?2 AND NOT is_whole",
        )?
        .query_row([&slice.session, slice.user.as_str()], |row| row.get(0))?;
    for change in changes {
        one(connection, (&slice.user, session), change)?;
    }
    if slice.is_last {
        calls::trim_all(connection)?;
        connection
            .prepare_cached("UPDATE any_session SET is_whole = 1 WHERE key = ?1")?
            .execute([session])?;
    }
    Ok(())
}

/// How many changes of files are removed at once: each may have a content of some megabytes.
const FILES: i64 = 8;

/// Removes about a slice of what an import wrote that broke off, or of a large session that was deleted. Returns whether
/// there was any; imports that are under way are left.
pub(in crate::sqlite) fn remove(
    connection: &Connection,
    under_way: &HashSet<String>,
) -> rusqlite::Result<bool> {
    let mut left =
        connection.prepare_cached("SELECT key, id FROM any_session WHERE NOT is_whole")?;
    let mut left = left.query([])?;
    let session = loop {
        let Some(row) = left.next()? else {
            return Ok(false);
        };
        if !under_way.contains(&row.get::<_, String>(1)?) {
            break row.get::<_, i64>(0)?;
        }
    };
    drop(left);
    let (mut removed, mut bytes) = (0, 0);
    while removed < SLICE && bytes < SLICE_BYTES {
        let Some(last) = remove_last(connection, session)? else {
            break;
        };
        removed += 1;
        bytes += last;
    }
    if removed == 0 {
        removed = files::remove_some(connection, session, FILES)?;
    }
    if removed == 0 {
        removed = connection
            .prepare_cached(
                "DELETE FROM exchange WHERE session = ?1 AND id IN (SELECT id FROM exchange WHERE session = ?1 LIMIT ?2)",
            )?
            .execute(params![session, SLICE as i64])?;
    }
    // What is left of it are its labels, answers and sends, and its calls, of which there are not many.
    if removed == 0 {
        delete(connection, session)?;
    }
    Ok(true)
}

/// Removes a conversation's last message, or the conversation where it has none; returns how many bytes that was.
fn remove_last(connection: &Connection, session: i64) -> rusqlite::Result<Option<usize>> {
    let conversation: Option<i64> = connection
        .prepare_cached("SELECT key FROM conversation WHERE session = ?1 LIMIT 1")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let Some(conversation) = conversation else {
        return Ok(None);
    };
    let last: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT message.place, length(body.data) + (SELECT coalesce(sum(length(attachment.data)), 0) FROM attached \
             JOIN attachment ON attachment.key = attached.attachment WHERE attached.body = body.key) \
             FROM message JOIN body ON body.key = message.body WHERE conversation = ?1 ORDER BY place DESC LIMIT 1",
        )?
        .query_row([conversation], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let bytes = match last {
        Some((place, bytes)) => {
            truncate(connection, conversation, place)?;
            bytes
        }
        None => {
            connection
                .prepare_cached("DELETE FROM conversation WHERE key = ?1")?
                .execute([conversation])?;
            0
        }
    };
    Ok(Some(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

//! What calls did to files.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::text;
use crate::{FileChange, FilePage, FileQuery, Hash, KeptFile, User};

pub(in crate::sqlite) fn page(
    connection: &Connection,
    user: &User,
    wanted: &FileQuery,
) -> rusqlite::Result<FilePage> {
    let limit = wanted.limit.max(1);
    let mut changes = connection.prepare_cached(
        "SELECT file_change.key, conversation, exchange, call, path, at_ms, attachment.hash, about, deflated, \
         CASE WHEN ?8 THEN diff END, root FROM file_change LEFT JOIN attachment ON attachment.key = file_change.before \
         WHERE session = (SELECT key FROM session WHERE id = ?1 AND owner = ?9) AND (?2 IS NULL OR conversation = ?2) \
         AND (?3 IS NULL OR exchange = ?3) AND (?4 IS NULL OR call = ?4) \
         AND (?5 IS NULL OR (length(exchange), exchange) >= (length(?5), ?5)) \
         AND (?6 IS NULL OR file_change.key < ?6) ORDER BY file_change.key DESC LIMIT ?7",
    )?;
    let mut rows = changes.query(params![
        wanted.session,
        wanted.conversation,
        wanted.exchange,
        wanted.call,
        wanted.since,
        wanted.cursor,
        i64::try_from(limit + 1).unwrap_or(i64::MAX),
        wanted.bytes > 0,
        user.as_str()
    ])?;
    let mut page = FilePage::default();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let has_room = page.changes.len() < limit && (wanted.bytes == 0 || bytes < wanted.bytes);
        if let Some(last) = page.changes.last().filter(|_| !has_room) {
            page.next = Some(last.key);
            break;
        }
        let change = FileChange {
            conversation: row.get(1)?,
            exchange: row.get(2)?,
            call: row.get(3)?,
            root: row.get(10)?,
            path: row.get(4)?,
            at_ms: row.get(5)?,
            about: row.get(7)?,
            diff: match wanted.bytes {
                0 => String::new(),
                _ => text(row, 8, 9)?,
            },
            before: None,
        };
        bytes += change.about.len() + change.diff.len();
        page.changes.push(KeptFile {
            key: row.get(0)?,
            change,
            before: row.get(6)?,
        });
    }
    Ok(page)
}

pub(in crate::sqlite) fn attachment(
    connection: &Connection,
    user: &User,
    hash: Hash,
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached(
            // Bytes are kept once for all users: whoever knows a hash alone gets nothing.
            "SELECT data FROM attachment WHERE hash = ?1 AND (EXISTS (SELECT 1 FROM file_change \
             JOIN session ON session.key = file_change.session \
             WHERE file_change.before = attachment.key AND session.owner = ?2) \
             OR EXISTS (SELECT 1 FROM attached JOIN message ON message.body = attached.body \
             JOIN conversation ON conversation.key = message.conversation \
             JOIN session ON session.key = conversation.session \
             WHERE attached.attachment = attachment.key AND session.owner = ?2))",
        )?
        .query_row(params![hash, user.as_str()], |row| row.get(0))
        .optional()
}

//! What each change writes. All SQL that writes is here and in the modules below.

mod calls;
mod files;
mod fork;
pub(super) mod import;
mod usage;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::bounds::{KEPT_EXCHANGES, KEPT_SENT, RESERVED_IDS, RESERVED_SEQ};
use crate::deflated::deflated;
use crate::slices::{SLICE, SLICE_BYTES};
use crate::words;
use crate::{
    Attachment, Body, Change, Error, Exchange, Message, Owner, Queued, Rule, Sent, TitleBy, User,
};

pub(super) use calls::break_off;

/// Merges pages of the index of words, so that nothing is left in it of what was removed.
pub(super) const FORGET_WORDS: &str = "INSERT INTO words (words, rank) VALUES ('merge', ?1)";

/// Why changes cannot be written.
pub(super) enum Failure {
    /// SQLite or the disk says so.
    Sqlite(rusqlite::Error),
    /// They do not fit what is there.
    Misfit(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Writes the changes of one session of a user.
pub(super) fn all(
    connection: &Connection,
    (user, id): (&User, &str),
    changes: &[Change],
) -> Result<(), Failure> {
    let mut key = find(connection, user, id)?;
    for change in changes {
        match change {
            Change::Create { project, at_ms } => {
                connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO any_session (id, owner, project, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
                    )?
                    .execute(params![id, user.as_str(), project, at_ms])?;
                key = find(connection, user, id)?;
            }
            Change::Fork { from, part, at_ms } => {
                fork::fork(connection, (user, id), (from, part.as_ref()), *at_ms)?;
                key = find(connection, user, id)?;
            }
            Change::Delete => {
                if let Some(key) = key.take() {
                    take_away(connection, key)?;
                }
            }
            Change::Revoke { id } => {
                connection
                    .prepare_cached("DELETE FROM rule WHERE id = ?1 AND owner = ?2")?
                    .execute([id.as_str(), user.as_str()])?;
            }
            Change::Used(it) => usage::add(connection, (user, id), it)?,
            // What was deleted is not written to.
            change => {
                if let Some(key) = key {
                    one(connection, (user, key), change)?;
                }
            }
        }
    }
    Ok(())
}

/// Counts the epoch of a session and reserves numbers; returns its key, `None` where there is no such session.
pub(super) fn open(
    connection: &Connection,
    user: &User,
    id: &str,
) -> rusqlite::Result<Option<i64>> {
    let key = find(connection, user, id)?;
    if let Some(key) = key {
        connection
            .prepare_cached(
                "UPDATE any_session SET epoch = epoch + 1, seq = seq + ?2, ids = ids + ?3 WHERE key = ?1",
            )?
            .execute(params![key, RESERVED_SEQ, RESERVED_IDS])?;
    }
    Ok(key)
}

/// Notes that a session, where there is one, changed at this time or later.
pub(super) fn changed(
    connection: &Connection,
    (user, id): (&User, &str),
    at_ms: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE any_session SET updated_ms = ?2 WHERE id = ?1 AND owner = ?3 AND updated_ms < ?2",
        )?
        .execute(params![id, at_ms, user.as_str()])?;
    Ok(())
}

fn find(connection: &Connection, user: &User, id: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT key FROM session WHERE id = ?1 AND owner = ?2")?
        .query_row([id, user.as_str()], |row| row.get(0))
        .optional()
}

fn one(
    connection: &Connection,
    (user, session): (&User, i64),
    change: &Change,
) -> rusqlite::Result<()> {
    match change {
        // They are about the session itself, or about none.
        Change::Create { .. }
        | Change::Fork { .. }
        | Change::Delete
        | Change::Revoke { .. }
        | Change::Used(_) => {}
        Change::Reserve { seq, ids } => {
            connection
                .prepare_cached(
                    "UPDATE any_session SET seq = max(seq, ?2), ids = max(ids, ?3) WHERE key = ?1",
                )?
                .execute(params![session, integer(*seq), integer(*ids)])?;
        }
        Change::Settings(settings) => {
            connection
                .prepare_cached("UPDATE any_session SET settings = ?2 WHERE key = ?1")?
                .execute(params![session, settings])?;
        }
        Change::Project(project) => {
            connection
                .prepare_cached("UPDATE any_session SET project = ?2 WHERE key = ?1")?
                .execute(params![session, project])?;
        }
        Change::Title { title, by } => {
            let sql = match by {
                TitleBy::User => {
                    "UPDATE any_session SET title = ?2, title_by = 'user' WHERE key = ?1"
                }
                TitleBy::Daemon => {
                    "UPDATE any_session SET title = ?2 WHERE key = ?1 AND title_by = 'daemon'"
                }
            };
            connection
                .prepare_cached(sql)?
                .execute(params![session, title])?;
        }
        Change::Archived { at_ms } => {
            connection
                .prepare_cached("UPDATE any_session SET archived_ms = ?2 WHERE key = ?1")?
                .execute(params![session, at_ms])?;
        }
        Change::Labels(labels) => {
            connection
                .prepare_cached("DELETE FROM label WHERE session = ?1")?
                .execute([session])?;
            let mut add = connection
                .prepare_cached("INSERT OR IGNORE INTO label (session, name) VALUES (?1, ?2)")?;
            for label in labels {
                add.execute(params![session, label])?;
            }
        }
        Change::Message {
            conversation,
            message,
        } => add(connection, (user, session), conversation, message)?,
        Change::Compacted {
            conversation,
            compacted,
        } => {
            connection
                .prepare_cached(
                    "UPDATE conversation SET compacted = ?3, compacted_at = next_place WHERE session = ?1 AND id = ?2",
                )?
                .execute(params![session, conversation, compacted])?;
        }
        Change::Truncate { conversation, from } => {
            calls::forget(connection, session, conversation)?;
            if let Some(conversation) = conversation_of(connection, session, conversation)? {
                truncate(connection, conversation, integer(*from))?;
                count(connection, session)?;
            }
        }
        Change::Forget { conversation } => {
            connection
                .prepare_cached("DELETE FROM queued WHERE session = ?1 AND conversation = ?2")?
                .execute(params![session, conversation])?;
            connection
                .prepare_cached("DELETE FROM rule WHERE session = ?1 AND conversation = ?2")?
                .execute(params![session, conversation])?;
            files::forget(connection, session, conversation)?;
            usage::forget(connection, session, Some(conversation))?;
            calls::forget(connection, session, conversation)?;
            if let Some(conversation) = conversation_of(connection, session, conversation)? {
                truncate(connection, conversation, 0)?;
                connection
                    .prepare_cached("DELETE FROM conversation WHERE key = ?1")?
                    .execute([conversation])?;
                count(connection, session)?;
            }
        }
        Change::Began(exchange) => began(connection, session, exchange)?,
        Change::Ended {
            id,
            conversation,
            at_ms,
            seq,
            end,
        } => {
            connection
                .prepare_cached(
                    "INSERT INTO exchange (session, id, conversation, began_ms, end_seq, end) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT (session, id) DO UPDATE SET end_seq = ?5, end = ?6",
                )?
                .execute(params![session, id, conversation, at_ms, integer(*seq), end])?;
            connection
                .prepare_cached(
                    "DELETE FROM exchange WHERE session = ?1 AND id IN (SELECT id FROM exchange \
                     WHERE session = ?1 AND end IS NOT NULL ORDER BY length(id) DESC, id DESC LIMIT -1 OFFSET ?2)",
                )?
                .execute(params![session, KEPT_EXCHANGES])?;
        }
        Change::Call { call, facts } => calls::stands(connection, (user, session), call, facts)?,
        Change::Imported { call, facts } => calls::imported(connection, session, call, facts)?,
        Change::Record { id, record } => {
            connection
                .prepare_cached("UPDATE call SET record = ?3 WHERE session = ?1 AND id = ?2")?
                .execute(params![session, id, record])?;
        }
        Change::Answered { id } => {
            connection
                .prepare_cached("UPDATE call SET result = NULL WHERE session = ?1 AND id = ?2")?
                .execute(params![session, id])?;
        }
        Change::File(change) => files::add(connection, session, change)?,
        Change::FileUnmade {
            exchange,
            call,
            root,
            path,
        } => files::unmade(connection, session, [exchange, call, root, path])?,
        Change::Queued(Queued {
            id,
            conversation,
            send,
        }) => {
            connection
                .prepare_cached(
                    "INSERT INTO queued (session, id, conversation, send) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (session, id) DO UPDATE SET send = ?4",
                )?
                .execute(params![session, id, conversation, send])?;
        }
        Change::Unqueued { id } => {
            connection
                .prepare_cached("DELETE FROM queued WHERE session = ?1 AND id = ?2")?
                .execute(params![session, id])?;
        }
        Change::Rule(Rule { id, owner, rule }) => {
            let (session, conversation) = match owner {
                Owner::Conversation(conversation) => (Some(session), Some(conversation)),
                Owner::Session => (Some(session), None),
                Owner::None => (None, None),
            };
            connection
                .prepare_cached(
                    "INSERT INTO rule (id, session, conversation, rule, owner) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![id, session, conversation, rule, user.as_str()])?;
        }
        Change::Sent(Sent { id, digest, answer }) => {
            connection
                .prepare_cached(
                    "INSERT INTO sent (session, id, digest, answer) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![session, id, digest, answer])?;
            connection
                .prepare_cached(
                    "DELETE FROM sent WHERE session = ?1 AND key <= \
                     (SELECT key FROM sent WHERE session = ?1 ORDER BY key DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute(params![session, KEPT_SENT])?;
        }
    }
    Ok(())
}

fn began(connection: &Connection, session: i64, exchange: &Exchange) -> rusqlite::Result<()> {
    let (seq, end) = match &exchange.end {
        Some((seq, end)) => (Some(integer(*seq)), Some(end)),
        None => (None, None),
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO exchange (session, id, conversation, began_ms, end_seq, end) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            session,
            exchange.id,
            exchange.conversation,
            exchange.began_ms,
            seq,
            end
        ])?;
    Ok(())
}

fn conversation_of(
    connection: &Connection,
    session: i64,
    id: &str,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT key FROM conversation WHERE session = ?1 AND id = ?2")?
        .query_row(params![session, id], |row| row.get(0))
        .optional()
}

/// Adds a message to the end of a conversation.
fn add(
    connection: &Connection,
    (user, session): (&User, i64),
    conversation: &str,
    message: &Message,
) -> rusqlite::Result<()> {
    let (key, place): (i64, i64) = connection
        .prepare_cached(
            "INSERT INTO conversation (session, id, next_place) VALUES (?1, ?2, 1) \
             ON CONFLICT (session, id) DO UPDATE SET next_place = next_place + 1 RETURNING key, next_place - 1",
        )?
        .query_row(params![session, conversation], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let body = body(connection, user, &message.body)?;
    connection
        .prepare_cached(
            "INSERT INTO message (conversation, place, body, exchange, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key, place, body, message.exchange, message.at_ms])?;
    connection
        .prepare_cached(
            "UPDATE any_session SET messages = messages + 1, updated_ms = max(updated_ms, ?2) WHERE key = ?1",
        )?
        .execute(params![session, message.at_ms])?;
    Ok(())
}

fn body(connection: &Connection, user: &User, body: &Body) -> rusqlite::Result<i64> {
    let deflated = deflated(&body.text);
    let data = deflated.as_deref().unwrap_or(body.text.as_bytes());
    let key: i64 = connection
        .prepare_cached("INSERT INTO body (deflated, data) VALUES (?1, ?2) RETURNING key")?
        .query_row(params![deflated.is_some(), data], |row| row.get(0))?;
    if !body.words.is_empty() {
        connection
            .prepare_cached("INSERT INTO words (rowid, said) VALUES (?1, ?2)")?
            .execute(params![key, words::indexed_of(user, &body.words)])?;
    }
    for it in &body.attachments {
        let attachment = attachment(connection, it)?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO attached (body, attachment) VALUES (?1, ?2)")?
            .execute([key, attachment])?;
    }
    Ok(key)
}

/// Keeps an attachment once; returns its key.
fn attachment(connection: &Connection, attachment: &Attachment) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO attachment (hash, data) VALUES (?1, ?2)")?
        .execute(params![attachment.hash, attachment.bytes])?;
    connection
        .prepare_cached("SELECT key FROM attachment WHERE hash = ?1")?
        .query_row([attachment.hash], |row| row.get(0))
}

/// Removes messages from a place on, with what nothing names any more.
fn truncate(connection: &Connection, conversation: i64, from: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO gone SELECT body FROM message WHERE conversation = ?1 AND place >= ?2",
        )?
        .execute(params![conversation, from])?;
    connection
        .prepare_cached("DELETE FROM message WHERE conversation = ?1 AND place >= ?2")?
        .execute(params![conversation, from])?;
    connection
        .prepare_cached(
            "UPDATE conversation SET next_place = min(next_place, ?2), \
             compacted = CASE WHEN compacted_at <= ?2 THEN compacted END WHERE key = ?1",
        )?
        .execute(params![conversation, from])?;
    clear(connection)
}

fn count(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE any_session SET messages = (SELECT count(*) FROM message JOIN conversation ON conversation.key = message.conversation \
             WHERE conversation.session = ?1) WHERE key = ?1",
        )?
        .execute([session])?;
    Ok(())
}

/// Deletes a session: at once where that is no more than a slice. Of a larger one nothing is seen from here on, and it is
/// removed in slices when nothing else is to do ([`import::remove`]).
pub(super) fn take_away(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    let (messages, bytes): (i64, i64) = connection
        .prepare_cached(
            "SELECT count(*), coalesce(sum(length(body.data) + (SELECT coalesce(sum(length(attachment.data)), 0) FROM attached \
             JOIN attachment ON attachment.key = attached.attachment WHERE attached.body = body.key)), 0) \
             + (SELECT coalesce(sum(bytes), 0) FROM file_change WHERE session = ?1 AND before IS NOT NULL) \
             FROM (SELECT message.body FROM conversation JOIN message ON message.conversation = conversation.key \
             WHERE conversation.session = ?1 LIMIT ?2) AS said JOIN body ON body.key = said.body",
        )?
        .query_row(params![session, SLICE as i64 + 1], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    if messages <= SLICE as i64 && bytes <= SLICE_BYTES as i64 {
        return delete(connection, session);
    }
    usage::forget(connection, session, None)?;
    // Its id is free for another one.
    connection
        .prepare_cached(
            "UPDATE any_session SET is_whole = 0, id = 'removed ' || key WHERE key = ?1",
        )?
        .execute([session])?;
    Ok(())
}

/// Removes a session with all that is of it.
fn delete(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO gone SELECT message.body FROM message \
             JOIN conversation ON conversation.key = message.conversation WHERE conversation.session = ?1",
        )?
        .execute([session])?;
    files::loosen_all(connection, session)?;
    usage::forget(connection, session, None)?;
    connection
        .prepare_cached("DELETE FROM any_session WHERE key = ?1")?
        .execute([session])?;
    clear(connection)
}

/// Removes the bodies in `gone` that no message has any more, and the attachments of theirs and in `loose` that neither a
/// body has nor a change of a file.
fn clear(connection: &Connection) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM gone WHERE EXISTS (SELECT 1 FROM message WHERE message.body = gone.body)",
        "DELETE FROM words WHERE rowid IN (SELECT body FROM gone)",
        "INSERT OR IGNORE INTO loose SELECT attachment FROM attached WHERE body IN (SELECT body FROM gone)",
        "DELETE FROM body WHERE key IN (SELECT body FROM gone)",
        "DELETE FROM attachment WHERE key IN (SELECT attachment FROM loose) \
         AND NOT EXISTS (SELECT 1 FROM attached WHERE attached.attachment = attachment.key) \
         AND NOT EXISTS (SELECT 1 FROM file_change WHERE file_change.before = attachment.key)",
        "DELETE FROM gone",
        "DELETE FROM loose",
    ] {
        connection.prepare_cached(sql)?.execute([])?;
    }
    Ok(())
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

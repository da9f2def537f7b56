//! All of a session, read piece by piece.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{labels, listed, rows, text};
use crate::user::Whose;
use crate::{Attachment, Body, Each, Exchange, Head, Listed, Message, Piece, TitleBy, ToolCall};

/// Reads a session in one snapshot; false where there is none. No more of it is held than a piece.
pub(in crate::sqlite) fn export(
    connection: &Connection,
    (whose, id): (Whose<'_>, &str),
    each: &mut Each,
) -> rusqlite::Result<bool> {
    let connection = connection.unchecked_transaction()?;
    let found = connection
        .prepare_cached(&format!(
            "SELECT key, title, title_by, project, created_ms, archived_ms FROM session WHERE id = ?1 AND {}",
            whose.says("owner", "?2")
        ))?
        .query_row(params![id, whose.name()], |row| Ok((row.get(0)?, head(row)?)))
        .optional()?;
    let Some((key, head)) = found else {
        return Ok(false);
    };
    let head = Head {
        labels: labels(&connection, id)?,
        ..head
    };
    // Whether it is wanted whole is for whoever takes it to say.
    let _ = pieces(&connection, key, head, each)?;
    Ok(true)
}

fn head(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        title: row.get(1)?,
        title_by: match row.get_ref(2)?.as_str() {
            Ok("user") => TitleBy::User,
            _ => TitleBy::Daemon,
        },
        project: row.get(3)?,
        labels: Vec::new(),
        created_ms: row.get(4)?,
        archived_ms: row.get(5)?,
    })
}

fn pieces(
    connection: &Connection,
    session: i64,
    head: Head,
    each: &mut Each,
) -> rusqlite::Result<ControlFlow<()>> {
    if each(Piece::Head(head)).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let calls =
        "SELECT id, conversation, began, record, result FROM call WHERE session = ?1 ORDER BY key";
    let call = |row: &Row<'_>| {
        Ok(Piece::Call(ToolCall {
            id: row.get(0)?,
            conversation: row.get(1)?,
            began: row.get(2)?,
            record: row.get(3)?,
            result: row.get(4)?,
        }))
    };
    let exchanges = "SELECT id, conversation, began_ms, end FROM exchange WHERE session = ?1 AND end IS NOT NULL \
                     ORDER BY length(id), id";
    let exchange = |row: &Row<'_>| {
        Ok(Piece::Exchange(Exchange {
            id: row.get(0)?,
            conversation: row.get(1)?,
            began_ms: row.get(2)?,
            // Its number is of no use to another session.
            end: Some((0, row.get(3)?)),
        }))
    };
    let messages = "SELECT conversation.id, body.deflated, body.data, message.exchange, message.at_ms, body.key FROM conversation \
                    JOIN message ON message.conversation = conversation.key JOIN body ON body.key = message.body \
                    WHERE conversation.session = ?1 ORDER BY conversation.key, message.place";
    let message = |row: &Row<'_>| {
        Ok(Piece::Message {
            conversation: row.get(0)?,
            message: Message {
                exchange: row.get(3)?,
                body: Body {
                    text: text(row, 1, 2)?,
                    words: String::new(),
                    attachments: attachments(connection, row.get(5)?)?,
                },
                at_ms: row.get(4)?,
            },
        })
    };
    let flow = run(connection, calls, session, call, each)?;
    if flow.is_break() {
        return Ok(flow);
    }
    let flow = run(connection, exchanges, session, exchange, each)?;
    if flow.is_break() {
        return Ok(flow);
    }
    run(connection, messages, session, message, each)
}

fn run(
    connection: &Connection,
    sql: &str,
    session: i64,
    piece: impl Fn(&Row<'_>) -> rusqlite::Result<Piece>,
    each: &mut Each,
) -> rusqlite::Result<ControlFlow<()>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        if each(piece(row)?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn attachments(connection: &Connection, body: i64) -> rusqlite::Result<Vec<Attachment>> {
    rows(
        connection,
        "SELECT attachment.hash, attachment.data FROM attached JOIN attachment ON attachment.key = attached.attachment \
         WHERE attached.body = ?1 ORDER BY attachment.key",
        params![body],
        |row| {
            Ok(Attachment {
                hash: row.get(0)?,
                bytes: row.get(1)?,
            })
        },
    )
}

/// Returns the session of this id, or else those whose ids begin with it, `most` at most.
pub(in crate::sqlite) fn find(
    connection: &Connection,
    id: &str,
    most: usize,
) -> rusqlite::Result<Vec<Listed>> {
    let sql = format!(
        "SELECT {} FROM session WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id <> ?1, id LIMIT ?2",
        super::LISTED
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut found = rows(connection, &sql, params![id, most], listed)?;
    if found.first().is_some_and(|first| first.id == id) {
        found.truncate(1);
    }
    for session in &mut found {
        session.labels = labels(connection, &session.id)?;
    }
    Ok(found)
}

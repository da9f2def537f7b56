//! What is read. All SQL that reads is here and in the modules below.

pub(super) mod files;

mod calls;
mod usage;
mod whole;

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, Row, Rows, params};

use super::file;
use crate::bounds::{HITS, RESERVED_IDS, RESERVED_SEQ, RULES};
use crate::user::Whose;
use crate::{
    Attachment, Body, Conversation, Cursor, Exchange, Hash, Listed, Listing, Message, Page, Queued,
    Sent, Session, Snippet, Stats, ToolCall, User, deflated, words,
};

pub(super) use calls::{page as calls, ran};
pub(super) use usage::sums as usage;
pub(super) use whole::{export, find};

/// Sessions that changed before a time, the one first that did not change for longest; of all, and of those put away.
pub(super) const BEFORE: &str =
    "SELECT key, id, updated_ms, owner FROM session WHERE updated_ms < ?1 ORDER BY updated_ms";
pub(super) const PUT_AWAY_BEFORE: &str = "SELECT key, id, updated_ms, owner FROM session WHERE archived_ms IS NOT NULL AND updated_ms < ?1 ORDER BY updated_ms";

/// Reads all of a session.
pub(super) fn session(connection: &Connection, key: i64) -> rusqlite::Result<Session> {
    let reserved = |number: i64| u64::try_from(number).unwrap_or(0);
    let (reserved_seq, reserved_ids) = (reserved(RESERVED_SEQ), reserved(RESERVED_IDS));
    // One snapshot.
    let connection = connection.unchecked_transaction()?;
    let mut session = connection.query_row(
        "SELECT epoch, seq, ids, project, title, settings FROM session WHERE key = ?1",
        [key],
        |row| {
            Ok(Session {
                epoch: natural(row, 0)?,
                seq: natural(row, 1)?.saturating_sub(reserved_seq),
                ids: natural(row, 2)?.saturating_sub(reserved_ids),
                reserved_seq,
                reserved_ids,
                project: row.get(3)?,
                title: row.get(4)?,
                settings: row.get(5)?,
                ..Session::default()
            })
        },
    )?;
    session.conversations = conversations(&connection, key)?;
    session.exchanges = rows(
        &connection,
        "SELECT id, conversation, began_ms, end_seq, end FROM exchange WHERE session = ?1 ORDER BY length(id), id",
        params![key],
        |row| {
            let seq: Option<i64> = row.get(3)?;
            let end: Option<String> = row.get(4)?;
            Ok(Exchange {
                id: row.get(0)?,
                conversation: row.get(1)?,
                began_ms: row.get(2)?,
                end: seq.map(|it| u64::try_from(it).unwrap_or(0)).zip(end),
            })
        },
    )?;
    session.calls = rows(
        &connection,
        "SELECT id, conversation, began, record, nullif(result, '') FROM call WHERE session = ?1 ORDER BY key",
        params![key],
        |row| {
            Ok(ToolCall {
                id: row.get(0)?,
                conversation: row.get(1)?,
                began: row.get(2)?,
                record: row.get(3)?,
                result: row.get(4)?,
            })
        },
    )?;
    session.queued = rows(
        &connection,
        "SELECT id, conversation, send FROM queued WHERE session = ?1 ORDER BY key",
        params![key],
        |row| {
            Ok(Queued {
                id: row.get(0)?,
                conversation: row.get(1)?,
                send: row.get(2)?,
            })
        },
    )?;
    session.sent = rows(
        &connection,
        "SELECT id, digest, answer FROM sent WHERE session = ?1 ORDER BY key",
        params![key],
        |row| {
            Ok(Sent {
                id: row.get(0)?,
                digest: row.get(1)?,
                answer: row.get(2)?,
            })
        },
    )?;
    session.rules = rows(
        &connection,
        "SELECT id, rule FROM rule WHERE session = ?1 ORDER BY key",
        params![key],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    session.spent = usage::of_session(&connection, key)?;
    Ok(session)
}

/// Returns the answers of a user that are no session's.
pub(super) fn rules(
    connection: &Connection,
    user: &User,
) -> rusqlite::Result<Vec<(String, String)>> {
    rows(
        connection,
        "SELECT id, rule FROM (SELECT key, id, rule FROM rule WHERE owner = ?2 AND session IS NULL ORDER BY key DESC LIMIT ?1) ORDER BY key",
        params![RULES, user.as_str()],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn conversations(connection: &Connection, session: i64) -> rusqlite::Result<Vec<Conversation>> {
    let found: Vec<(i64, String, Option<String>)> = rows(
        connection,
        "SELECT key, id, compacted FROM conversation WHERE session = ?1 ORDER BY key",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut conversations = Vec::with_capacity(found.len());
    for (key, id, compacted) in found {
        let mut attachments = attachments(connection, key)?;
        let messages = rows(
            connection,
            "SELECT body.deflated, body.data, message.exchange, message.at_ms, body.key FROM message \
             JOIN body ON body.key = message.body WHERE message.conversation = ?1 ORDER BY message.place",
            params![key],
            |row| {
                let body: i64 = row.get(4)?;
                Ok(Message {
                    exchange: row.get(2)?,
                    body: Body {
                        text: text(row, 0, 1)?,
                        words: String::new(),
                        attachments: attachments.remove(&body).unwrap_or_default(),
                    },
                    at_ms: row.get(3)?,
                })
            },
        )?;
        conversations.push(Conversation {
            id,
            compacted,
            messages,
        });
    }
    Ok(conversations)
}

/// Returns what the messages of a conversation have attached, by body.
fn attachments(
    connection: &Connection,
    conversation: i64,
) -> rusqlite::Result<HashMap<i64, Vec<Attachment>>> {
    let found: Vec<(i64, Hash, Vec<u8>)> = rows(
        connection,
        "SELECT DISTINCT attached.body, attachment.hash, attachment.data FROM message \
         JOIN attached ON attached.body = message.body JOIN attachment ON attachment.key = attached.attachment \
         WHERE message.conversation = ?1",
        params![conversation],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut attachments: HashMap<i64, Vec<Attachment>> = HashMap::new();
    for (body, hash, bytes) in found {
        let of_body = attachments.entry(body).or_default();
        of_body.push(Attachment { hash, bytes });
    }
    Ok(attachments)
}

pub(super) fn has(connection: &Connection, user: &User, id: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM session WHERE id = ?1 AND owner = ?2")?
        .exists([id, user.as_str()])
}

pub(super) fn owner(connection: &Connection, id: &str) -> rusqlite::Result<Option<User>> {
    let mut found = connection.prepare_cached("SELECT owner FROM session WHERE id = ?1")?;
    let mut found = found.query([id])?;
    let owner = |row: &Row<'_>| row.get::<_, String>(0).map(|name| User::new(&name));
    found.next()?.map(owner).transpose()
}

/// Returns whether an exchange is known in a session. The last ones are looked for first.
pub(super) fn has_exchange(
    connection: &Connection,
    user: &User,
    session: &str,
    id: &str,
) -> rusqlite::Result<bool> {
    const OF: &str = "SELECT 1 FROM session JOIN";
    for found in [
        "exchange ON exchange.session = session.key WHERE session.id = ?1 AND session.owner = ?3 AND exchange.id = ?2",
        "queued ON queued.session = session.key WHERE session.id = ?1 AND session.owner = ?3 AND queued.id = ?2",
        "file_change ON file_change.session = session.key WHERE session.id = ?1 AND session.owner = ?3 AND exchange = ?2",
        // What was made valid later belongs to none.
        "conversation ON conversation.session = session.key JOIN message ON message.conversation = conversation.key \
         WHERE session.id = ?1 AND session.owner = ?3 AND message.exchange = ?2 AND ?2 <> ''",
    ] {
        let sql = format!("{OF} {found}");
        if connection
            .prepare_cached(&sql)?
            .exists([session, id, user.as_str()])?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a page of sessions.
pub(super) fn list(
    connection: &Connection,
    whose: Whose<'_>,
    wanted: &Listing,
) -> rusqlite::Result<Page> {
    let mut page = match wanted.query.as_deref().filter(|query| !query.is_empty()) {
        None => newest(connection, whose, wanted),
        Some(query) => match words::of_query(query) {
            // Signs alone are nowhere to be found.
            words if words.is_empty() => Ok(Page::default()),
            words => search(connection, whose, wanted, &words),
        },
    }?;
    for session in &mut page.sessions {
        session.labels = labels(connection, &session.id)?;
    }
    Ok(page)
}

fn labels(connection: &Connection, session: &str) -> rusqlite::Result<Vec<String>> {
    rows(
        connection,
        "SELECT label.name FROM session JOIN label ON label.session = session.key WHERE session.id = ?1 ORDER BY label.name",
        params![session],
        |row| row.get(0),
    )
}

/// Of a session: whether it has so many of the labels that are joined by line breaks, which no label has.
fn has_labels(joined: &str, count: &str) -> String {
    format!(
        "(SELECT count(*) FROM label WHERE label.session = session.key \
         AND instr({joined}, char(10) || label.name || char(10)) > 0) = {count}"
    )
}

/// Returns labels as [`has_labels`] takes them; one with a line break is counted, so that no session has it.
fn joined(labels: &[String]) -> (String, i64) {
    let labels: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
    let findable = labels.iter().filter(|label| !label.contains('\n'));
    let text = findable.fold("\n".to_owned(), |text, label| text + label + "\n");
    (text, i64::try_from(labels.len()).unwrap_or(i64::MAX))
}

const LISTED: &str = "session.id, session.title, session.project, session.created_ms, session.updated_ms, session.archived_ms, session.messages, session.key";

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        id: row.get(0)?,
        title: row.get(1)?,
        project: row.get(2)?,
        created_ms: row.get(3)?,
        updated_ms: row.get(4)?,
        archived_ms: row.get(5)?,
        labels: Vec::new(),
        messages: natural(row, 6)?,
        snippet: None,
    })
}

fn newest(connection: &Connection, whose: Whose<'_>, wanted: &Listing) -> rusqlite::Result<Page> {
    let begin = wanted.cursor.unwrap_or(Cursor {
        updated_ms: i64::MAX,
        key: i64::MAX,
    });
    let limit = wanted.limit.max(1);
    let (labels, count) = joined(&wanted.labels);
    let sql = format!(
        "SELECT {LISTED} FROM session WHERE (archived_ms IS NULL) = ?1 AND (updated_ms, key) < (?2, ?3) \
         AND (?4 IS NULL OR project = ?4) AND {} AND {} ORDER BY updated_ms DESC, key DESC LIMIT ?5",
        has_labels("?6", "?7"),
        whose.says("owner", "?8")
    );
    let most = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let mut found = rows(
        connection,
        &sql,
        params![
            !wanted.archived,
            begin.updated_ms,
            begin.key,
            wanted.project,
            most,
            labels,
            count,
            whose.name()
        ],
        |row| Ok((listed(row)?, row.get::<_, i64>(7)?)),
    )?;
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    Ok(Page {
        next: last.map(|(session, key)| Cursor {
            updated_ms: session.updated_ms,
            key: *key,
        }),
        sessions: found.into_iter().map(|(session, _)| session).collect(),
    })
}

/// Returns the sessions that have the words: those in whose name they are, then those in which they are said, then those in
/// which the last of them begins a word; each by the newest message.
fn search(
    connection: &Connection,
    whose: Whose<'_>,
    wanted: &Listing,
    words: &[String],
) -> rusqlite::Result<Page> {
    let limit = wanted.limit.max(1);
    let (labels, count) = joined(&wanted.labels);
    let mut sessions: Vec<Listed> = Vec::new();
    let sql = format!(
        "SELECT {LISTED} FROM session WHERE (archived_ms IS NULL) = ?1 AND (?2 IS NULL OR project = ?2) \
         AND title IS NOT NULL AND {} AND {} ORDER BY updated_ms DESC, key DESC",
        has_labels("?3", "?4"),
        whose.says("owner", "?5")
    );
    let mut named = connection.prepare_cached(&sql)?;
    let mut named = named.query(params![
        !wanted.archived,
        wanted.project,
        labels,
        count,
        whose.name()
    ])?;
    while let Some(row) = named.next()? {
        if sessions.len() >= limit {
            break;
        }
        let title = row.get_ref(1)?.as_str().unwrap_or("").to_lowercase();
        if words.iter().all(|word| title.contains(word.as_str())) {
            sessions.push(listed(row)?);
        }
    }
    // Hit after hit, no more than the page needs: CROSS JOIN keeps the loops in this order, and a sort would read them all.
    let sql = format!(
        "SELECT {LISTED}, conversation.id, message.place, body.deflated, body.data FROM \
         (SELECT rowid AS body FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?4) AS hit \
         CROSS JOIN message ON message.body = hit.body CROSS JOIN conversation ON conversation.key = message.conversation \
         CROSS JOIN session ON session.key = conversation.session CROSS JOIN body ON body.key = hit.body \
         WHERE (session.archived_ms IS NULL) = ?2 AND (?3 IS NULL OR session.project = ?3) AND {} AND {}",
        has_labels("?5", "?6"),
        whose.says("session.owner", "?7")
    );
    let mut hits = connection.prepare_cached(&sql)?;
    for expression in words::expressions(words) {
        let expression = whose.among(&expression);
        let found = hits.query(params![
            expression,
            !wanted.archived,
            wanted.project,
            HITS,
            labels,
            count,
            whose.name()
        ])?;
        if add_hits(&mut sessions, found, limit)?.is_break() {
            break;
        }
    }
    Ok(Page {
        sessions,
        next: None,
    })
}

/// Adds the sessions that hits are in, and what is said there; breaks off where there are more than the page takes.
fn add_hits(
    sessions: &mut Vec<Listed>,
    mut hits: Rows<'_>,
    limit: usize,
) -> rusqlite::Result<ControlFlow<()>> {
    while let Some(row) = hits.next()? {
        let id = row.get_ref(0)?.as_str().unwrap_or("");
        let at = sessions.iter().position(|session| session.id == id);
        if at.is_none() {
            if sessions.len() >= limit {
                return Ok(ControlFlow::Break(()));
            }
            sessions.push(listed(row)?);
        }
        let at = at.unwrap_or(sessions.len() - 1);
        if let Some(session) = sessions.get_mut(at)
            && session.snippet.is_none()
        {
            session.snippet = Some(Snippet {
                conversation: row.get(8)?,
                place: natural(row, 9)?,
                text: text(row, 10, 11)?,
            });
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Counts the bytes of what a user has, without words by which it is found. No content is read: a row says how long it is.
pub(super) fn kept(connection: &Connection, user: &User) -> rusqlite::Result<u64> {
    const SQL: &str = "WITH own AS MATERIALIZED (SELECT key FROM session WHERE owner = ?1), \
         said AS MATERIALIZED (SELECT DISTINCT message.body FROM own JOIN conversation ON conversation.session = own.key \
         JOIN message ON message.conversation = conversation.key) \
         SELECT (SELECT coalesce(sum(octet_length(data)), 0) FROM said JOIN body ON body.key = said.body) \
         + (SELECT coalesce(sum(octet_length(data)), 0) FROM attachment WHERE key IN \
         (SELECT attachment FROM said JOIN attached ON attached.body = said.body \
         UNION SELECT before FROM own JOIN file_change ON file_change.session = own.key)) \
         + (SELECT coalesce(sum(octet_length(diff) + octet_length(about)), 0) FROM own JOIN file_change ON file_change.session = own.key) \
         + (SELECT coalesce(sum(octet_length(record) + coalesce(octet_length(result), 0)), 0) FROM own JOIN call ON call.session = own.key) \
         + (SELECT coalesce(sum(octet_length(send)), 0) FROM own JOIN queued ON queued.session = own.key)";
    connection
        .prepare_cached(SQL)?
        .query_row([user.as_str()], |row| natural(row, 0))
}

pub(super) fn stats(connection: &Connection, path: &Path) -> rusqlite::Result<Stats> {
    let count = |table: &str| -> rusqlite::Result<u64> {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| natural(row, 0))
    };
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len());
    Ok(Stats {
        sessions: count("session")?,
        // Those of an import that is under way are nobody's yet.
        messages: connection.query_row(
            "SELECT coalesce(sum(messages), 0) FROM session",
            [],
            |row| natural(row, 0),
        )?,
        attachments: count("attachment")?,
        bytes: bytes(path),
        wal_bytes: bytes(&file::with(path, "-wal")),
    })
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(parameters, row)?;
    rows.collect()
}

/// Returns the text of a body; none where it is damaged, which costs this one only.
fn text(row: &Row<'_>, deflated: usize, data: usize) -> rusqlite::Result<String> {
    let is_deflated: bool = row.get(deflated)?;
    let data = row.get_ref(data)?.as_blob_or_null()?.unwrap_or_default();
    let read = match is_deflated {
        true => deflated::inflated(data),
        false => String::from_utf8(data.to_vec()).map_err(|error| error.to_string()),
    };
    Ok(read.unwrap_or_else(|error| {
        tracing::error!(%error, "what a message says cannot be read");
        String::new()
    }))
}

fn natural(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    Ok(u64::try_from(number).unwrap_or(0))
}

//! What is read.

pub(super) mod calls;
pub(super) mod files;
pub(super) mod list;
pub(super) mod usage;
pub(super) mod whole;

use std::collections::HashMap;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use crate::bounds::{RESERVED_IDS, RESERVED_SEQ, RULES};
use crate::{
    Attachment, Body, Conversation, Exchange, Hash, Message, Queued, Sent, Session, Stats,
    ToolCall, User, deflated,
};

type Result<T> = std::result::Result<T, tokio_postgres::Error>;

/// Returns whether nothing there has this text: the server takes no NUL.
pub(super) fn is_impossible(text: &str) -> bool {
    text.contains('\0')
}

/// Reads all of a session, in one snapshot.
pub(super) async fn session(client: &mut ClientWrapper, key: i64) -> Result<Session> {
    let reserved = |number: i64| u64::try_from(number).unwrap_or(0);
    let (reserved_seq, reserved_ids) = (reserved(RESERVED_SEQ), reserved(RESERVED_IDS));
    let snapshot = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let client = &snapshot;
    let row = one(
        client,
        "SELECT epoch, seq, ids, project, title, settings FROM session WHERE key = $1::bigint",
        &[&key],
    )
    .await?;
    // Whoever deleted it since it was opened is right: it is as one that has nothing.
    let Some(row) = row else {
        return Ok(Session::default());
    };
    let mut session = Session {
        epoch: natural(&row, 0)?,
        seq: natural(&row, 1)?.saturating_sub(reserved_seq),
        ids: natural(&row, 2)?.saturating_sub(reserved_ids),
        reserved_seq,
        reserved_ids,
        project: row.try_get(3)?,
        title: row.try_get(4)?,
        settings: row.try_get(5)?,
        ..Session::default()
    };
    session.conversations = conversations(client, key).await?;
    session.exchanges = rows(
        client,
        "SELECT id, conversation, began_ms, end_seq, ending FROM exchange WHERE session = $1::bigint ORDER BY length(id), id",
        &[&key],
        |row| {
            let seq: Option<i64> = row.try_get(3)?;
            let end: Option<String> = row.try_get(4)?;
            Ok(Exchange {
                id: row.try_get(0)?,
                conversation: row.try_get(1)?,
                began_ms: row.try_get(2)?,
                end: seq.map(|it| u64::try_from(it).unwrap_or(0)).zip(end),
            })
        },
    )
    .await?;
    session.calls = rows(
        client,
        "SELECT id, conversation, began, record, nullif(result, '') FROM call WHERE session = $1::bigint ORDER BY key",
        &[&key],
        call,
    )
    .await?;
    session.queued = rows(
        client,
        "SELECT id, conversation, send FROM queued WHERE session = $1::bigint ORDER BY key",
        &[&key],
        |row| {
            Ok(Queued {
                id: row.try_get(0)?,
                conversation: row.try_get(1)?,
                send: row.try_get(2)?,
            })
        },
    )
    .await?;
    session.sent = rows(
        client,
        "SELECT id, digest, answer FROM sent WHERE session = $1::bigint ORDER BY key",
        &[&key],
        |row| {
            Ok(Sent {
                id: row.try_get(0)?,
                digest: row.try_get(1)?,
                answer: row.try_get(2)?,
            })
        },
    )
    .await?;
    session.rules = rows(
        client,
        "SELECT id, rule FROM rule WHERE session = $1::bigint ORDER BY key",
        &[&key],
        pair,
    )
    .await?;
    session.spent = usage::of_session(client, key).await?;
    snapshot.commit().await?;
    Ok(session)
}

fn call(row: &Row) -> Result<ToolCall> {
    Ok(ToolCall {
        id: row.try_get(0)?,
        conversation: row.try_get(1)?,
        began: row.try_get(2)?,
        record: row.try_get(3)?,
        result: row.try_get(4)?,
    })
}

fn pair(row: &Row) -> Result<(String, String)> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Returns the answers of a user that are no session's.
pub(super) async fn rules(client: &ClientWrapper, user: &User) -> Result<Vec<(String, String)>> {
    rows(
        client,
        "SELECT id, rule FROM (SELECT key, id, rule FROM rule WHERE owner = $2::text AND session IS NULL ORDER BY key DESC LIMIT $1::bigint) AS last \
         ORDER BY key",
        &[&RULES, &user.as_str()],
        pair,
    )
    .await
}

async fn conversations(client: &impl Client, session: i64) -> Result<Vec<Conversation>> {
    let found: Vec<(i64, String, Option<String>)> = rows(
        client,
        "SELECT key, id, compacted FROM conversation WHERE session = $1::bigint ORDER BY key",
        &[&session],
        |row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)),
    )
    .await?;
    let mut conversations = Vec::with_capacity(found.len());
    for (key, id, compacted) in found {
        let mut attachments = attachments(client, key).await?;
        let messages = rows(
            client,
            "SELECT body.deflated, body.data, message.exchange, message.at_ms, body.key FROM message \
             JOIN body ON body.key = message.body WHERE message.conversation = $1::bigint ORDER BY message.place",
            &[&key],
            |row| {
                let body: i64 = row.try_get(4)?;
                Ok(Message {
                    exchange: row.try_get(2)?,
                    body: Body {
                        text: text(row, 0, 1)?,
                        words: String::new(),
                        attachments: attachments.remove(&body).unwrap_or_default(),
                    },
                    at_ms: row.try_get(3)?,
                })
            },
        )
        .await?;
        conversations.push(Conversation {
            id,
            compacted,
            messages,
        });
    }
    Ok(conversations)
}

/// Returns what the messages of a conversation have attached, by body.
async fn attachments(
    client: &impl Client,
    conversation: i64,
) -> Result<HashMap<i64, Vec<Attachment>>> {
    let found: Vec<(i64, Attachment)> = rows(
        client,
        "SELECT attached.body, attachment.hash, attachment.data FROM attached \
         JOIN attachment ON attachment.key = attached.attachment \
         WHERE attached.body IN (SELECT body FROM message WHERE conversation = $1::bigint) ORDER BY attachment.key",
        &[&conversation],
        |row| {
            let attachment = Attachment {
                hash: hash(row, 1)?.unwrap_or_default(),
                bytes: row.try_get(2)?,
            };
            Ok((row.try_get(0)?, attachment))
        },
    )
    .await?;
    let mut attachments: HashMap<i64, Vec<Attachment>> = HashMap::new();
    for (body, attachment) in found {
        attachments.entry(body).or_default().push(attachment);
    }
    Ok(attachments)
}

pub(super) async fn has(client: &ClientWrapper, user: &User, id: &str) -> Result<bool> {
    if is_impossible(id) {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM session WHERE id = $1::text AND owner = $2::text";
    Ok(one(client, sql, &[&id, &user.as_str()]).await?.is_some())
}

pub(super) async fn owner(client: &ClientWrapper, id: &str) -> Result<Option<User>> {
    if is_impossible(id) {
        return Ok(None);
    }
    let row = one(
        client,
        "SELECT owner FROM session WHERE id = $1::text",
        &[&id],
    )
    .await?;
    row.map(|row| Ok(User::new(row.try_get(0)?))).transpose()
}

/// Returns whether an exchange is known in a session. The last ones are looked for first.
pub(super) async fn has_exchange(
    client: &ClientWrapper,
    user: &User,
    session: &str,
    id: &str,
) -> Result<bool> {
    if is_impossible(session) || is_impossible(id) {
        return Ok(false);
    }
    for sql in [
        "SELECT 1 FROM session JOIN exchange ON exchange.session = session.key WHERE session.id = $1::text AND session.owner = $3::text AND exchange.id = $2::text",
        "SELECT 1 FROM session JOIN queued ON queued.session = session.key WHERE session.id = $1::text AND session.owner = $3::text AND queued.id = $2::text",
        "SELECT 1 FROM session JOIN file_change ON file_change.session = session.key \
         WHERE session.id = $1::text AND session.owner = $3::text AND exchange = $2::text LIMIT 1",
        // What was made valid later belongs to none.
        "SELECT 1 FROM session JOIN conversation ON conversation.session = session.key \
         JOIN message ON message.conversation = conversation.key \
         WHERE session.id = $1::text AND session.owner = $3::text AND message.exchange = $2::text AND $2::text <> '' LIMIT 1",
    ] {
        if one(client, sql, &[&session, &id, &user.as_str()])
            .await?
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes are those of the tables, with what is free in them.
/// Counts the bytes of what a user has, without words by which it is found. No content is read: a row says how long it is.
pub(super) async fn kept(client: &ClientWrapper, user: &User) -> Result<u64> {
    const SQL: &str = "WITH own AS MATERIALIZED (SELECT key FROM session WHERE owner = $1::text), \
         said AS MATERIALIZED (SELECT DISTINCT message.body FROM own JOIN conversation ON conversation.session = own.key \
         JOIN message ON message.conversation = conversation.key) \
         SELECT ((SELECT coalesce(sum(octet_length(data)), 0) FROM said JOIN body ON body.key = said.body) \
         + (SELECT coalesce(sum(octet_length(data)), 0) FROM attachment WHERE key IN \
         (SELECT attachment FROM said JOIN attached ON attached.body = said.body \
         UNION SELECT before FROM own JOIN file_change ON file_change.session = own.key)) \
         + (SELECT coalesce(sum(octet_length(diff) + octet_length(about)), 0) FROM own JOIN file_change ON file_change.session = own.key) \
         + (SELECT coalesce(sum(octet_length(record) + coalesce(octet_length(result), 0)), 0) FROM own JOIN call ON call.session = own.key) \
         + (SELECT coalesce(sum(octet_length(send)), 0) FROM own JOIN queued ON queued.session = own.key))::bigint";
    match one(client, SQL, &[&user.as_str()]).await? {
        Some(row) => natural(&row, 0),
        None => Ok(0),
    }
}

pub(super) async fn stats(client: &ClientWrapper) -> Result<Stats> {
    let sql = "SELECT (SELECT count(*) FROM session), (SELECT coalesce(sum(messages), 0)::bigint FROM session), \
               (SELECT count(*) FROM attachment), \
               (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
               WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('any_session')))";
    let row = client.query_one(sql, &[]).await?;
    Ok(Stats {
        sessions: natural(&row, 0)?,
        messages: natural(&row, 1)?,
        attachments: natural(&row, 2)?,
        bytes: natural(&row, 3)?,
        wal_bytes: 0,
    })
}

/// A connection, or a transaction on one.
trait Client: Sync {
    fn ask(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<Row>>> + Send;
}

impl Client for ClientWrapper {
    async fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let statement = self.prepare_cached(sql).await?;
        self.query(&statement, parameters).await
    }
}

impl Client for deadpool_postgres::Transaction<'_> {
    async fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let statement = self.prepare_cached(sql).await?;
        self.query(&statement, parameters).await
    }
}

async fn rows<T>(
    client: &impl Client,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
    row: impl FnMut(&Row) -> Result<T> + Send,
) -> Result<Vec<T>> {
    let rows = client.ask(sql, parameters).await?;
    rows.iter().map(row).collect()
}

async fn one(
    client: &impl Client,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>> {
    Ok(client.ask(sql, parameters).await?.into_iter().next())
}

/// Returns the text of a body; none where it is damaged, which costs this one only.
fn text(row: &Row, is_deflated: usize, data: usize) -> Result<String> {
    let is_deflated: bool = row.try_get(is_deflated)?;
    let data: Option<&[u8]> = row.try_get(data)?;
    let data = data.unwrap_or_default();
    let read = match is_deflated {
        true => deflated::inflated(data),
        false => String::from_utf8(data.to_vec()).map_err(|error| error.to_string()),
    };
    Ok(read.unwrap_or_else(|error| {
        tracing::error!(%error, "what a message says cannot be read");
        String::new()
    }))
}

fn hash(row: &Row, at: usize) -> Result<Option<Hash>> {
    let bytes: Option<&[u8]> = row.try_get(at)?;
    Ok(bytes.and_then(|it| it.try_into().ok()))
}

fn natural(row: &Row, at: usize) -> Result<u64> {
    let number: i64 = row.try_get(at)?;
    Ok(u64::try_from(number).unwrap_or(0))
}

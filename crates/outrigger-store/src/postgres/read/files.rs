//! What calls did to files.

use deadpool_postgres::ClientWrapper;
use futures::TryStreamExt as _;
use tokio_postgres::types::ToSql;

use super::{Result, hash, is_impossible, one, text};
use crate::{FileChange, FilePage, FileQuery, Hash, KeptFile, User};

pub(in super::super) async fn page(
    client: &ClientWrapper,
    user: &User,
    wanted: &FileQuery,
) -> Result<FilePage> {
    let ids = [
        &wanted.conversation,
        &wanted.exchange,
        &wanted.call,
        &wanted.since,
    ];
    let ids = ids.into_iter().flatten();
    if ids.chain([&wanted.session]).any(|id| is_impossible(id)) {
        return Ok(FilePage::default());
    }
    let limit = wanted.limit.max(1);
    let statement = client
        .prepare_cached(
            "SELECT file_change.key, conversation, exchange, call, path, at_ms, attachment.hash, about, deflated, \
             CASE WHEN $8::bool THEN diff END, root FROM file_change LEFT JOIN attachment ON attachment.key = file_change.before \
             WHERE session = (SELECT key FROM session WHERE id = $1::text AND owner = $9::text) AND ($2::text IS NULL OR conversation = $2::text) \
             AND ($3::text IS NULL OR exchange = $3::text) AND ($4::text IS NULL OR call = $4::text) \
             AND ($5::text IS NULL OR (length(exchange), exchange) >= (length($5::text), $5::text)) \
             AND ($6::bigint IS NULL OR file_change.key < $6::bigint) ORDER BY file_change.key DESC LIMIT $7::bigint",
        )
        .await?;
    let most = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let with_diff = wanted.bytes > 0;
    let owner = user.as_str();
    let parameters: [&(dyn ToSql + Sync); 9] = [
        &wanted.session,
        &wanted.conversation,
        &wanted.exchange,
        &wanted.call,
        &wanted.since,
        &wanted.cursor,
        &most,
        &with_diff,
        &owner,
    ];
    // Row after row: no more of what is shown is held than the page takes.
    let rows = client.query_raw(&statement, parameters).await?;
    futures::pin_mut!(rows);
    let mut page = FilePage::default();
    let mut bytes = 0;
    while let Some(row) = rows.try_next().await? {
        let has_room = page.changes.len() < limit && (wanted.bytes == 0 || bytes < wanted.bytes);
        if let Some(last) = page.changes.last().filter(|_| !has_room) {
            page.next = Some(last.key);
            break;
        }
        let change = FileChange {
            conversation: row.try_get(1)?,
            exchange: row.try_get(2)?,
            call: row.try_get(3)?,
            root: row.try_get(10)?,
            path: row.try_get(4)?,
            at_ms: row.try_get(5)?,
            about: row.try_get(7)?,
            diff: match with_diff {
                false => String::new(),
                true => text(&row, 8, 9)?,
            },
            before: None,
        };
        bytes += change.about.len() + change.diff.len();
        page.changes.push(KeptFile {
            key: row.try_get(0)?,
            change,
            before: hash(&row, 6)?,
        });
    }
    Ok(page)
}

pub(in super::super) async fn attachment(
    client: &ClientWrapper,
    user: &User,
    hash: Hash,
) -> Result<Option<Vec<u8>>> {
    // Bytes are kept once for all users: whoever knows a hash alone gets nothing.
    let sql = "SELECT data FROM attachment WHERE hash = $1::bytea AND (EXISTS (SELECT 1 FROM file_change \
               JOIN session ON session.key = file_change.session \
               WHERE file_change.before = attachment.key AND session.owner = $2::text) \
               OR EXISTS (SELECT 1 FROM attached JOIN message ON message.body = attached.body \
               JOIN conversation ON conversation.key = message.conversation \
               JOIN session ON session.key = conversation.session \
               WHERE attached.attachment = attachment.key AND session.owner = $2::text))";
    let row = one(client, sql, &[&hash.as_slice(), &user.as_str()]).await?;
    row.map(|it| it.try_get(0)).transpose()
}

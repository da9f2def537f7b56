//! Sessions that are removed: small ones at once, large ones and imports that broke off in slices.

use deadpool_postgres::ClientWrapper;

use super::super::op::{self, Op, Param};
use super::super::sees;
use super::{Ops, Trim, session, usage};
use crate::User;
use crate::slices::{SLICE, SLICE_BYTES};

/// How many changes of files are removed at once: each may have a content of some megabytes.
const FILES: i64 = 8;

/// Deletes a session: at once where that is no more than a slice. Of a larger one nothing is seen from here on, and it is
/// removed in slices when nothing else is to do ([`some`]); its id is free for another one.
pub(super) fn take_away(ops: &mut Ops<'_>) {
    usage::forget(ops, None);
    ops.push(
        concat!(
            "WITH said AS (SELECT message.body FROM conversation JOIN message ON message.conversation = conversation.key \
             WHERE conversation.session = ",
            session!(),
            " LIMIT $3::bigint + 1), \
             size AS (SELECT count(*) AS messages, coalesce(sum(octet_length(body.data) + (SELECT coalesce(sum(octet_length(attachment.data)), 0) \
             FROM attached JOIN attachment ON attachment.key = attached.attachment WHERE attached.body = body.key)), 0) \
             + (SELECT coalesce(sum(bytes), 0) FROM file_change WHERE before IS NOT NULL AND session = ",
            session!(),
            ") AS bytes FROM said JOIN body ON body.key = said.body) \
             UPDATE any_session SET is_whole = false, id = 'removed ' || key FROM size \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool AND (size.messages > $3::bigint OR size.bytes > $4::bigint)"
        ),
        [(SLICE as i64).into(), (SLICE_BYTES as i64).into()],
    );
    delete(ops);
}

/// Removes a session with all that is of it.
fn delete(ops: &mut Ops<'_>) {
    for sql in [
        concat!(
            "INSERT INTO gone SELECT DISTINCT message.body FROM message JOIN conversation ON conversation.key = message.conversation \
             WHERE conversation.session = ",
            session!(),
            " ON CONFLICT DO NOTHING"
        ),
        concat!(
            "INSERT INTO loose SELECT DISTINCT before FROM file_change WHERE before IS NOT NULL AND session = ",
            session!(),
            " ON CONFLICT DO NOTHING"
        ),
        "DELETE FROM any_session WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
    ] {
        ops.push(sql, []);
    }
    ops.trims.insert(Trim::Gone);
}

/// Removes the bodies in `gone` that no message has any more, and the attachments of theirs and in `loose` that neither a
/// body has nor a change of a file.
pub(super) fn clear(ops: &mut Ops<'_>) {
    for sql in [
        // Another process may remove what has the same ones, or give them to something new: one of the two waits here, and
        // then sees what the other one did.
        "SELECT 1 FROM body WHERE key IN (SELECT body FROM gone) ORDER BY key FOR UPDATE",
        "WITH noted AS (DELETE FROM gone RETURNING body), \
         unsaid AS (SELECT body FROM noted WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.body = noted.body)), \
         freed AS (INSERT INTO loose SELECT DISTINCT attachment FROM attached WHERE body IN (SELECT body FROM unsaid) \
         ON CONFLICT DO NOTHING) \
         DELETE FROM body WHERE key IN (SELECT body FROM unsaid)",
        "SELECT 1 FROM attachment WHERE key IN (SELECT attachment FROM loose) ORDER BY key FOR UPDATE",
        "WITH noted AS (DELETE FROM loose RETURNING attachment) \
         DELETE FROM attachment WHERE key IN (SELECT attachment FROM noted) \
         AND NOT EXISTS (SELECT 1 FROM attached WHERE attached.attachment = attachment.key) \
         AND NOT EXISTS (SELECT 1 FROM file_change WHERE file_change.before = attachment.key)",
    ] {
        ops.of_all(sql, []);
    }
}

/// Removes about a slice of what an import wrote that broke off, or of a large session that was deleted; imports that are
/// under way are left. Returns whether there was any. In a transaction.
pub(in super::super) async fn some(
    client: &ClientWrapper,
    under_way: &[String],
) -> Result<bool, tokio_postgres::Error> {
    let statement = client
        .prepare_cached(
            "UPDATE any_session SET node = current_setting('outrigger.node')::bigint WHERE key = (SELECT key FROM any_session \
             WHERE NOT is_whole AND id <> ALL($1::text[]) AND NOT EXISTS (SELECT 1 FROM node WHERE node.id = any_session.node \
             AND node.id <> current_setting('outrigger.node')::bigint) ORDER BY key LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, owner",
        )
        .await?;
    let Some(row) = client.query_opt(&statement, &[&under_way]).await? else {
        return Ok(false);
    };
    let id: String = row.try_get(0)?;
    let user = User::new(row.try_get(1)?);
    sees::by(client, Some(&user), sees::Until::End).await?;
    let mut ops = Ops::new((&user, &id), false);
    clear(&mut ops);
    let clear = ops.list;
    // The last messages, of which the first one goes however large it is.
    for (sql, parameters) in [
        (
            concat!(
                "WITH last AS (SELECT message.conversation, message.place, message.body FROM message \
                 JOIN conversation ON conversation.key = message.conversation WHERE conversation.session = ",
                session!(),
                " ORDER BY message.conversation, message.place DESC LIMIT $3::bigint), \
                 sized AS (SELECT conversation, place, sum(octet_length(body.data) + (SELECT coalesce(sum(octet_length(attachment.data)), 0) \
                 FROM attached JOIN attachment ON attachment.key = attached.attachment WHERE attached.body = body.key)) \
                 OVER (ORDER BY conversation, place DESC) - octet_length(body.data) AS bytes FROM last JOIN body ON body.key = last.body), \
                 removed AS (DELETE FROM message USING sized WHERE message.conversation = sized.conversation \
                 AND message.place = sized.place AND (sized.bytes < $4::bigint OR (sized.conversation, sized.place) = \
                 (SELECT conversation, place FROM last ORDER BY conversation, place DESC LIMIT 1)) RETURNING message.body) \
                 INSERT INTO gone SELECT DISTINCT body FROM removed ON CONFLICT DO NOTHING"
            ),
            vec![Param::from(SLICE as i64), (SLICE_BYTES as i64).into()],
        ),
        (
            concat!(
                "WITH removed AS (DELETE FROM file_change WHERE key IN (SELECT key FROM file_change \
                 WHERE before IS NOT NULL AND session = ",
                session!(),
                " LIMIT $3::bigint) RETURNING before) INSERT INTO loose SELECT DISTINCT before FROM removed ON CONFLICT DO NOTHING"
            ),
            vec![FILES.into()],
        ),
        (
            concat!(
                "DELETE FROM exchange WHERE session = ",
                session!(),
                " AND id IN (SELECT id FROM exchange WHERE session = ",
                session!(),
                " LIMIT $3::bigint)"
            ),
            vec![(SLICE as i64).into()],
        ),
    ] {
        let mut all: Vec<Param<'_>> = vec![id.as_str().into(), false.into()];
        all.extend(parameters);
        let statement = client.prepare_cached(sql).await?;
        if client.execute_raw(&statement, all).await? > 0 {
            op::run(client, &clear).await?;
            return Ok(true);
        }
    }
    // What is left of it are its conversations, labels, answers and sends, and its calls, of which there are not many, and
    // changes of files without content.
    let mut ops = Ops::new((&user, &id), false);
    delete(&mut ops);
    ops.finish();
    op::run(client, &ops.list).await?;
    Ok(true)
}

/// Returns the statement that makes an imported session whole.
pub(in super::super) fn make_whole(session: &str) -> Op<'_> {
    Op {
        sql: "UPDATE any_session SET is_whole = true WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND NOT is_whole",
        parameters: vec![session.into()],
    }
}

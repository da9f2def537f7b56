//! What is kept of files that calls change: the newest of each session.

use std::borrow::Cow;

use super::super::op::Param;
use super::{Ops, session};
use crate::FileChange;
use crate::bounds::{KEPT_CHANGES, KEPT_CONTENT};
use crate::deflated::deflated;

/// What ends late in a conversation that was closed is forgotten with it.
pub(super) fn add<'a>(ops: &mut Ops<'a>, change: &'a FileChange) {
    let before = change.before.as_ref();
    if let Some(before) = before {
        ops.push(
            concat!(
                "INSERT INTO attachment (hash, data) SELECT $4::bytea, $5::bytea FROM conversation \
                 WHERE id = $3::text AND session = ",
                session!(),
                " ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash"
            ),
            [
                (&change.conversation).into(),
                before.hash.as_slice().into(),
                before.bytes.as_slice().into(),
            ],
        );
    }
    let deflated = deflated(&change.diff);
    let is_deflated = deflated.is_some();
    let diff = deflated.map_or(Cow::Borrowed(change.diff.as_bytes()), Cow::Owned);
    let bytes = before.map_or(0, |it| it.bytes.len());
    let hash = before.map_or(&[][..], |it| it.hash.as_slice());
    ops.push(
        concat!(
            "INSERT INTO file_change (session, conversation, exchange, call, root, path, at_ms, before, bytes, about, deflated, diff) \
             SELECT session, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, \
             (SELECT key FROM attachment WHERE hash = $9::bytea), $10::bigint, $11::text, $12::bool, $13::bytea \
             FROM conversation WHERE id = $3::text AND session = ",
            session!()
        ),
        [
            (&change.conversation).into(),
            (&change.exchange).into(),
            (&change.call).into(),
            (&change.root).into(),
            (&change.path).into(),
            change.at_ms.into(),
            hash.into(),
            Param::natural(bytes as u64),
            (&change.about).into(),
            is_deflated.into(),
            Param::Bytes(diff),
        ],
    );
}

/// Removes the oldest changes where there are too many, and the oldest content where that is too much.
pub(super) fn trim(ops: &mut Ops<'_>) {
    ops.push(
        concat!(
            "WITH old AS (DELETE FROM file_change WHERE key IN (SELECT key FROM file_change WHERE session = ",
            session!(),
            " ORDER BY key DESC OFFSET $3::bigint) RETURNING before) \
             INSERT INTO loose SELECT DISTINCT before FROM old WHERE before IS NOT NULL ON CONFLICT DO NOTHING"
        ),
        [KEPT_CHANGES.into()],
    );
    ops.push(
        concat!(
            "WITH much AS (SELECT key, before FROM (SELECT key, before, sum(bytes) OVER (ORDER BY key DESC) AS kept \
             FROM file_change WHERE before IS NOT NULL AND session = ",
            session!(),
            ") AS summed WHERE kept > $3::bigint), \
             noted AS (INSERT INTO loose SELECT DISTINCT before FROM much ON CONFLICT DO NOTHING) \
             UPDATE file_change SET before = NULL WHERE key IN (SELECT key FROM much)"
        ),
        [KEPT_CONTENT.into()],
    );
}

/// Removes the last change of a file, which was not made.
pub(super) fn unmade<'a>(ops: &mut Ops<'a>, [exchange, call, root, path]: [&'a str; 4]) {
    ops.push(
        concat!(
            "WITH removed AS (DELETE FROM file_change WHERE key = (SELECT max(key) FROM file_change \
             WHERE exchange = $3::text AND call = $4::text AND root = $5::text AND path = $6::text AND session = ",
            session!(),
            ") RETURNING before) \
             INSERT INTO loose SELECT DISTINCT before FROM removed WHERE before IS NOT NULL ON CONFLICT DO NOTHING"
        ),
        [exchange.into(), call.into(), root.into(), path.into()],
    );
}

/// Removes the changes in a conversation.
pub(super) fn forget<'a>(ops: &mut Ops<'a>, conversation: &'a str) {
    ops.push(
        concat!(
            "WITH removed AS (DELETE FROM file_change WHERE conversation = $3::text AND session = ",
            session!(),
            " RETURNING before) \
             INSERT INTO loose SELECT DISTINCT before FROM removed WHERE before IS NOT NULL ON CONFLICT DO NOTHING"
        ),
        [conversation.into()],
    );
}

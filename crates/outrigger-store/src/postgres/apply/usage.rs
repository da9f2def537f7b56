//! What is written of requests to models.

use super::super::op::Param;
use super::Ops;
use crate::Usage;
use crate::bounds::KEPT_USAGE;

/// Adds a request. It needs no session that is kept: one of none has empty names.
pub(super) fn add<'a>(ops: &mut Ops<'a>, it: &'a Usage) {
    let session = match it.conversation.is_empty() {
        true => "",
        false => ops.session,
    };
    let tokens = &it.tokens;
    ops.push_free(
        "INSERT INTO usage (at_ms, session, conversation, exchange, kind, provider, model, input, cache_read, cache_write, \
         output, micros, estimated, owner) VALUES ($1::bigint, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, \
         $9::bigint, $10::bigint, $11::bigint, $12::bigint, $13::bool, $14::text)",
        [
            it.at_ms.into(),
            session.into(),
            (&it.conversation).into(),
            (&it.exchange).into(),
            (&it.kind).into(),
            (&it.provider).into(),
            (&it.model).into(),
            Param::natural(tokens.input),
            Param::natural(tokens.cache_read),
            Param::natural(tokens.cache_write),
            Param::natural(tokens.output),
            it.micros.into(),
            it.estimated.into(),
            ops.user.as_str().into(),
        ],
    );
}

/// Removes the oldest requests, once there are more.
pub(super) fn trim(ops: &mut Ops<'_>) {
    ops.of_all(
        "DELETE FROM usage WHERE key <= (SELECT max(key) FROM usage) - $1::bigint",
        [KEPT_USAGE.into()],
    );
}

/// Takes the names of a session, or of a conversation of it, out of what it spent.
pub(super) fn forget<'a>(ops: &mut Ops<'a>, conversation: Option<&'a str>) {
    ops.push(
        "UPDATE usage SET conversation = '', exchange = '', session = CASE WHEN $3::text IS NULL THEN '' ELSE session END \
         WHERE session <> '' AND session = (SELECT id FROM any_session WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool) \
         AND ($3::text IS NULL OR conversation = $3::text)",
        [conversation.into()],
    );
}

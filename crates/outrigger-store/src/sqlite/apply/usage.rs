//! What is written of requests to models.

use rusqlite::{Connection, params};

use super::integer;
use crate::bounds::KEPT_USAGE;
use crate::{Usage, User};

/// Adds a request. It needs no session that is kept: one of none has empty names.
pub(super) fn add(
    connection: &Connection,
    (user, session): (&User, &str),
    it: &Usage,
) -> rusqlite::Result<()> {
    let session = match it.conversation.is_empty() {
        true => "",
        false => session,
    };
    let tokens = &it.tokens;
    connection
        .prepare_cached(
            "INSERT INTO usage (at_ms, session, conversation, exchange, kind, provider, model, input, cache_read, cache_write, \
             output, micros, estimated, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            it.at_ms,
            session,
            it.conversation,
            it.exchange,
            it.kind,
            it.provider,
            it.model,
            integer(tokens.input),
            integer(tokens.cache_read),
            integer(tokens.cache_write),
            integer(tokens.output),
            it.micros,
            it.estimated,
            user.as_str(),
        ])?;
    connection
        .prepare_cached("DELETE FROM usage WHERE key <= (SELECT max(key) FROM usage) - ?1")?
        .execute([KEPT_USAGE])?;
    Ok(())
}

/// Takes the names of a session, or of a conversation of it, out of what it spent.
pub(super) fn forget(
    connection: &Connection,
    session: i64,
    conversation: Option<&str>,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE usage SET conversation = '', exchange = '', session = CASE WHEN ?2 IS NULL THEN '' ELSE session END \
             WHERE session <> '' AND session = (SELECT id FROM any_session WHERE key = ?1) \
             AND (?2 IS NULL OR conversation = ?2)",
        )?
        .execute(params![session, conversation])?;
    Ok(())
}

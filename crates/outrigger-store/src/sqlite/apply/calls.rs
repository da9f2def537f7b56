//! What is written of calls: how each stands, how many are kept, and their sums.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::integer;
use crate::bounds::{KEPT_CALLS, KEPT_DAYS, KEPT_OF_ALL, NAMES};
use crate::{CallFacts, CallStatus, Ended, OTHER, Sum, ToolCall, User};

/// Writes how a call stands. Once it is settled it counts in the sums.
pub(super) fn stands(
    connection: &Connection,
    (user, session): (&User, i64),
    call: &ToolCall,
    facts: &CallFacts,
) -> rusqlite::Result<()> {
    let before: Option<String> = connection
        .prepare_cached("SELECT status FROM call WHERE session = ?1 AND id = ?2")?
        .query_row(params![session, call.id], |row| row.get(0))
        .optional()?;
    imported(connection, session, call, facts)?;
    trim_all(connection)?;
    let ran_before = before.is_none_or(|status| status == CallStatus::Running.as_str());
    if facts.status != CallStatus::Running && ran_before {
        count(connection, user, facts, call.began)?;
    }
    Ok(())
}

/// Writes how a call stands, in the place of what was written of it. One that was settled does not run again, whoever comes
/// late, and what it came to stays until a message says so. Calls of other sessions stay, however many there are.
pub(super) fn imported(
    connection: &Connection,
    session: i64,
    call: &ToolCall,
    facts: &CallFacts,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO call (session, id, conversation, tool, provider, status, at_ms, began, commands, record, result) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (session, id) DO UPDATE SET status = ?6, began = ?8, commands = ?9, record = ?10, \
             result = coalesce(?11, result) WHERE status = 'running' OR ?6 <> 'running'",
        )?
        .execute(params![
            session,
            call.id,
            call.conversation,
            facts.tool,
            facts.provider,
            facts.status.as_str(),
            facts.at_ms,
            call.began,
            facts.commands.join("\n"),
            call.record,
            call.result,
        ])?;
    // What a call came to stays until a message says so.
    connection
        .prepare_cached(
            "DELETE FROM call WHERE session = ?1 AND status <> 'running' AND result IS NULL AND key <= \
             (SELECT key FROM call WHERE session = ?1 ORDER BY key DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute(params![session, KEPT_CALLS])?;
    Ok(())
}

/// Removes the oldest calls of all sessions, once there are more.
pub(super) fn trim_all(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM call WHERE key <= (SELECT max(key) FROM call) - ?1 AND status <> 'running' AND result IS NULL",
        )?
        .execute([KEPT_OF_ALL])?;
    Ok(())
}

/// Adds a settled call to the sums of its day.
fn count(
    connection: &Connection,
    user: &User,
    facts: &CallFacts,
    began: bool,
) -> rusqlite::Result<()> {
    let day = facts.day();
    let one = |name: &str| {
        let mut sum = Sum {
            name: name.to_owned(),
            ..Sum::default()
        };
        sum.add(facts, began);
        sum
    };
    add(connection, (user, "tool", day), &one(&facts.tool))?;
    add(connection, (user, "provider", day), &one(&facts.provider))?;
    for command in &facts.commands {
        add(connection, (user, "command", day), &one(command))?;
    }
    Ok(())
}

fn add(
    connection: &Connection,
    (user, kind, day): (&User, &str, i64),
    sum: &Sum,
) -> rusqlite::Result<()> {
    let owner = user.as_str();
    let (names, has_name): (i64, bool) = connection
        .prepare_cached(
            "SELECT count(*), coalesce(max(name = ?3), 0) FROM ran WHERE kind = ?1 AND day = ?2 AND owner = ?4",
        )?
        .query_row(params![kind, day, sum.name, owner], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let name = match has_name || names < NAMES {
        true => sum.name.as_str(),
        false => OTHER,
    };
    connection
        .prepare_cached(
            "INSERT INTO ran VALUES (?15, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
             ON CONFLICT (owner, kind, day, name) DO UPDATE SET calls = calls + ?4, failed = failed + ?5, denied = denied + ?6, \
             cancelled = cancelled + ?7, began = began + ?8, duration_ms = duration_ms + ?9, \
             longest_ms = max(longest_ms, ?10), cpu_ms = cpu_ms + ?11, memory = max(memory, ?12), \
             input_bytes = input_bytes + ?13, output_bytes = output_bytes + ?14",
        )?
        .execute(params![
            kind,
            day,
            name,
            integer(sum.calls),
            integer(sum.failed),
            integer(sum.denied),
            integer(sum.cancelled),
            integer(sum.began),
            integer(sum.duration_ms),
            integer(sum.longest_ms),
            integer(sum.cpu_ms),
            integer(sum.memory),
            integer(sum.input_bytes),
            integer(sum.output_bytes),
            owner,
        ])?;
    if names == 0 {
        // By number and not by date: a clock that is wrong for an hour costs a day, not all of them.
        connection
            .prepare_cached(
                "DELETE FROM ran WHERE owner = ?3 AND kind = ?1 AND day <= \
                 (SELECT DISTINCT day FROM ran WHERE owner = ?3 AND kind = ?1 ORDER BY day DESC LIMIT 1 OFFSET ?2)",
            )?
            .execute(params![kind, KEPT_DAYS, owner])?;
    }
    Ok(())
}

/// Forgets what calls of a conversation came to: nobody asks for it any more.
pub(super) fn forget(
    connection: &Connection,
    session: i64,
    conversation: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE call SET result = NULL WHERE session = ?1 AND conversation = ?2 AND result IS NOT NULL",
        )?
        .execute(params![session, conversation])?;
    Ok(())
}

/// Notes that what ran when the process before ended has failed. Its result is empty until a message says what is known.
pub(in crate::sqlite) fn break_off(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let ended = CallStatus::Ended(Ended::Error);
    let broken: Vec<(User, CallFacts)> = {
        let mut running = transaction.prepare(
            "UPDATE call SET status = ?1, result = '' WHERE status = 'running' \
             RETURNING tool, provider, commands, at_ms, (SELECT owner FROM any_session WHERE any_session.key = call.session)",
        )?;
        let rows = running.query_map([ended.as_str()], |row| {
            let commands: String = row.get(2)?;
            let user: String = row.get(4)?;
            let facts = CallFacts {
                tool: row.get(0)?,
                provider: row.get(1)?,
                commands: commands.lines().map(str::to_owned).collect(),
                status: ended,
                at_ms: row.get(3)?,
                ..CallFacts::default()
            };
            Ok((User::new(&user), facts))
        })?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (user, facts) in &broken {
        count(&transaction, user, facts, true)?;
    }
    transaction.commit()
}

//! What is read of calls: pages of all sessions of a user, and their sums.

use rusqlite::{Connection, Row, params};

use super::{natural, rows};
use crate::bounds::NAMES;
use crate::{CallListing, CallPage, CallStatus, KnownCall, Ran, Sum, User};

/// Returns a page of calls, the newest first.
pub(in crate::sqlite) fn page(
    connection: &Connection,
    user: &User,
    wanted: &CallListing,
) -> rusqlite::Result<CallPage> {
    let mut statement = connection.prepare_cached(
        "SELECT call.key, session.id, call.record FROM call JOIN session ON session.key = call.session \
         WHERE call.key < ?1 AND (?2 IS NULL OR call.conversation = ?2) AND (?3 IS NULL OR call.provider = ?3) \
         AND (?4 IS NULL OR call.tool = ?4) AND (?5 IS NULL OR call.status = ?5) \
         AND (?6 IS NULL OR call.at_ms >= ?6) AND (?7 IS NULL OR call.at_ms < ?7) AND session.owner = ?8 ORDER BY call.key DESC",
    )?;
    let mut found = statement.query(params![
        wanted.cursor.unwrap_or(i64::MAX),
        wanted.conversation,
        wanted.provider,
        wanted.tool,
        wanted.status.map(CallStatus::as_str),
        wanted.since_ms,
        wanted.until_ms,
        user.as_str(),
    ])?;
    let mut page = CallPage::default();
    let (mut bytes, mut last) = (0_usize, None);
    while let Some(row) = found.next()? {
        let record: String = row.get(2)?;
        bytes = bytes.saturating_add(record.len());
        if page.calls.len() >= wanted.limit.max(1) || (last.is_some() && bytes > wanted.bytes) {
            page.next = last;
            break;
        }
        last = row.get(0)?;
        page.calls.push(KnownCall {
            session: row.get(1)?,
            record,
        });
    }
    Ok(page)
}

/// Returns what ran from a day on.
pub(in crate::sqlite) fn ran(
    connection: &Connection,
    user: &User,
    from_day: i64,
) -> rusqlite::Result<Ran> {
    // One snapshot.
    let connection = connection.unchecked_transaction()?;
    let by = |kind: &str| {
        rows(
            &connection,
            &format!(
                "SELECT name, {SUMS} FROM ran WHERE owner = ?4 AND kind = ?1 AND day >= ?2 GROUP BY name ORDER BY 2 DESC, 1 LIMIT ?3"
            ),
            params![kind, from_day, NAMES, user.as_str()],
            |row| sum(row, row.get(0)?),
        )
    };
    Ok(Ran {
        tools: by("tool")?,
        providers: by("provider")?,
        commands: by("command")?,
        days: rows(
            &connection,
            &format!(
                "SELECT day, {SUMS} FROM ran WHERE owner = ?2 AND kind = 'tool' AND day >= ?1 GROUP BY day ORDER BY day"
            ),
            params![from_day, user.as_str()],
            |row| sum(row, row.get::<_, i64>(0)?.to_string()),
        )?,
    })
}

const SUMS: &str = "sum(calls), sum(failed), sum(denied), sum(cancelled), sum(began), sum(duration_ms), max(longest_ms), \
     sum(cpu_ms), max(memory), sum(input_bytes), sum(output_bytes)";

fn sum(row: &Row<'_>, name: String) -> rusqlite::Result<Sum> {
    Ok(Sum {
        name,
        calls: natural(row, 1)?,
        failed: natural(row, 2)?,
        denied: natural(row, 3)?,
        cancelled: natural(row, 4)?,
        began: natural(row, 5)?,
        duration_ms: natural(row, 6)?,
        longest_ms: natural(row, 7)?,
        cpu_ms: natural(row, 8)?,
        memory: natural(row, 9)?,
        input_bytes: natural(row, 10)?,
        output_bytes: natural(row, 11)?,
    })
}

//! What is read of requests to models: sums.

use rusqlite::{Connection, Row, params};

use super::{natural, rows};
use crate::user::Whose;
use crate::{MS_OF_QUARTER, UsageBy, UsageQuery, UsageSum, UsageTokens};

/// Returns what requests come to, those that cost most first.
pub(in crate::sqlite) fn sums(
    connection: &Connection,
    whose: Whose<'_>,
    wanted: &UsageQuery,
) -> rusqlite::Result<Vec<UsageSum>> {
    let quarter = format!("at_ms / {MS_OF_QUARTER}");
    let key = match wanted.by {
        UsageBy::Quarter => quarter.as_str(),
        UsageBy::Model => "model",
        UsageBy::Provider => "provider",
        UsageBy::Conversation => "conversation",
        UsageBy::Session => "session",
        UsageBy::Kind => "kind",
        UsageBy::All => "''",
    };
    let session = match wanted.by {
        UsageBy::Conversation => "session",
        _ => "''",
    };
    rows(
        connection,
        &format!(
            "SELECT CAST({key} AS TEXT), {session}, count(*), sum(input), sum(cache_read), sum(cache_write), sum(output), \
             coalesce(sum(micros), 0), sum(micros IS NULL), sum(estimated) FROM usage WHERE at_ms >= ?1 AND at_ms < ?2 \
             AND {} GROUP BY 1, 2 ORDER BY 8 DESC, 3 DESC, 1 LIMIT ?3",
            whose.says("owner", "?4")
        ),
        params![
            wanted.since_ms,
            wanted.until_ms,
            i64::try_from(wanted.limit).unwrap_or(i64::MAX),
            whose.name()
        ],
        sum,
    )
}

/// Returns what a session spent, by conversation; what its conversations of before spent is under an empty name.
pub(super) fn of_session(
    connection: &Connection,
    session: i64,
) -> rusqlite::Result<Vec<(String, i64)>> {
    rows(
        connection,
        "SELECT conversation, coalesce(sum(micros), 0) FROM usage WHERE session <> '' \
         AND session = (SELECT id FROM any_session WHERE key = ?1) GROUP BY conversation",
        params![session],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn sum(row: &Row<'_>) -> rusqlite::Result<UsageSum> {
    Ok(UsageSum {
        key: row.get(0)?,
        session: row.get(1)?,
        requests: natural(row, 2)?,
        tokens: UsageTokens {
            input: natural(row, 3)?,
            cache_read: natural(row, 4)?,
            cache_write: natural(row, 5)?,
            output: natural(row, 6)?,
        },
        micros: row.get(7)?,
        unpriced: natural(row, 8)?,
        estimated: natural(row, 9)?,
    })
}

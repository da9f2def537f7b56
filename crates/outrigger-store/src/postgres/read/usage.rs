//! What is read of requests to models: sums.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;

use super::{Client, Result, natural, rows};
use crate::user::Whose;
use crate::{MS_OF_QUARTER, UsageBy, UsageQuery, UsageSum, UsageTokens};

/// Returns what requests come to, those that cost most first.
pub(in super::super) async fn sums(
    client: &ClientWrapper,
    whose: Whose<'_>,
    wanted: &UsageQuery,
) -> Result<Vec<UsageSum>> {
    let quarter = format!("(at_ms / {MS_OF_QUARTER})::text");
    let key = match wanted.by {
        UsageBy::Quarter => quarter.as_str(),
        UsageBy::Model => "model",
        UsageBy::Provider => "provider",
        UsageBy::Conversation => "conversation",
        UsageBy::Session => "session",
        UsageBy::Kind => "kind",
        UsageBy::All => "''::text",
    };
    let session = match wanted.by {
        UsageBy::Conversation => "session",
        _ => "''::text",
    };
    let most = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
    rows(
        client,
        &format!(
            "SELECT {key}, {session}, count(*), sum(input)::bigint, sum(cache_read)::bigint, sum(cache_write)::bigint, \
             sum(output)::bigint, coalesce(sum(micros), 0)::bigint, count(*) FILTER (WHERE micros IS NULL), \
             count(*) FILTER (WHERE estimated) FROM usage WHERE at_ms >= $1::bigint AND at_ms < $2::bigint \
             AND {} GROUP BY 1, 2 ORDER BY 8 DESC, 3 DESC, 1 LIMIT $3::bigint",
            whose.says("owner", "$4::text")
        ),
        &[&wanted.since_ms, &wanted.until_ms, &most, &whose.name()],
        sum,
    )
    .await
}

/// Returns what a session spent, by conversation; what its conversations of before spent is under an empty name.
pub(super) async fn of_session(client: &impl Client, session: i64) -> Result<Vec<(String, i64)>> {
    rows(
        client,
        "SELECT conversation, coalesce(sum(micros), 0)::bigint FROM usage WHERE session <> '' \
         AND session = (SELECT id FROM any_session WHERE key = $1::bigint) GROUP BY conversation ORDER BY conversation",
        &[&session],
        |row| Ok((row.try_get(0)?, row.try_get(1)?)),
    )
    .await
}

fn sum(row: &Row) -> Result<UsageSum> {
    Ok(UsageSum {
        key: row.try_get(0)?,
        session: row.try_get(1)?,
        requests: natural(row, 2)?,
        tokens: UsageTokens {
            input: natural(row, 3)?,
            cache_read: natural(row, 4)?,
            cache_write: natural(row, 5)?,
            output: natural(row, 6)?,
        },
        micros: row.try_get(7)?,
        unpriced: natural(row, 8)?,
        estimated: natural(row, 9)?,
    })
}

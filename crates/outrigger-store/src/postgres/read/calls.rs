//! What is read of calls: pages of all sessions of a user, and their sums.

use deadpool_postgres::ClientWrapper;
use futures::TryStreamExt as _;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Result, is_impossible, natural, rows};
use crate::bounds::NAMES;
use crate::{CallListing, CallPage, CallStatus, KnownCall, Ran, Sum, User};

/// Returns a page of calls, the newest first.
pub(in super::super) async fn page(
    client: &ClientWrapper,
    user: &User,
    wanted: &CallListing,
) -> Result<CallPage> {
    let names = [&wanted.conversation, &wanted.provider, &wanted.tool];
    if names.into_iter().flatten().any(|name| is_impossible(name)) {
        return Ok(CallPage::default());
    }
    let limit = wanted.limit.max(1);
    let statement = client
        .prepare_cached(
            "SELECT call.key, session.id, call.record FROM call JOIN session ON session.key = call.session \
             WHERE call.key < $1::bigint AND ($2::text IS NULL OR call.conversation = $2::text) \
             AND ($3::text IS NULL OR call.provider = $3::text) AND ($4::text IS NULL OR call.tool = $4::text) \
             AND ($5::text IS NULL OR call.status = $5::text) AND ($6::bigint IS NULL OR call.at_ms >= $6::bigint) \
             AND ($7::bigint IS NULL OR call.at_ms < $7::bigint) AND session.owner = $9::text ORDER BY call.key DESC LIMIT $8::bigint",
        )
        .await?;
    let cursor = wanted.cursor.unwrap_or(i64::MAX);
    let status = wanted.status.map(CallStatus::as_str);
    let most = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let owner = user.as_str();
    let parameters: [&(dyn ToSql + Sync); 9] = [
        &cursor,
        &wanted.conversation,
        &wanted.provider,
        &wanted.tool,
        &status,
        &wanted.since_ms,
        &wanted.until_ms,
        &most,
        &owner,
    ];
    // Row after row: no more records are held than the page takes.
    let found = client.query_raw(&statement, parameters).await?;
    futures::pin_mut!(found);
    let mut page = CallPage::default();
    let (mut bytes, mut last) = (0_usize, None);
    while let Some(row) = found.try_next().await? {
        let record: String = row.try_get(2)?;
        bytes = bytes.saturating_add(record.len());
        if page.calls.len() >= limit || (last.is_some() && bytes > wanted.bytes) {
            page.next = last;
            break;
        }
        last = row.try_get(0)?;
        page.calls.push(KnownCall {
            session: row.try_get(1)?,
            record,
        });
    }
    Ok(page)
}

macro_rules! sums {
    () => {
        "sum(calls)::bigint, sum(failed)::bigint, sum(denied)::bigint, sum(cancelled)::bigint, sum(began)::bigint, \
         sum(duration_ms)::bigint, max(longest_ms), sum(cpu_ms)::bigint, max(memory), sum(input_bytes)::bigint, \
         sum(output_bytes)::bigint"
    };
}

/// Returns what ran from a day on.
pub(in super::super) async fn ran(
    client: &ClientWrapper,
    user: &User,
    from_day: i64,
) -> Result<Ran> {
    let owner = user.as_str();
    let by = async |kind: &str| {
        rows(
            client,
            concat!(
                "SELECT name, ",
                sums!(),
                " FROM ran WHERE owner = $4::text AND kind = $1::text AND day >= $2::bigint GROUP BY name ORDER BY 2 DESC, 1 LIMIT $3::bigint"
            ),
            &[&kind, &from_day, &NAMES, &owner],
            |row| sum(row, row.try_get(0)?),
        )
        .await
    };
    Ok(Ran {
        tools: by("tool").await?,
        providers: by("provider").await?,
        commands: by("command").await?,
        days: rows(
            client,
            concat!(
                "SELECT day, ",
                sums!(),
                " FROM ran WHERE owner = $2::text AND kind = 'tool' AND day >= $1::bigint GROUP BY day ORDER BY day"
            ),
            &[&from_day, &owner],
            |row| sum(row, row.try_get::<_, i64>(0)?.to_string()),
        )
        .await?,
    })
}

fn sum(row: &Row, name: String) -> Result<Sum> {
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

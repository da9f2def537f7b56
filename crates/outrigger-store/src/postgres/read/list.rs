//! Pages of sessions: the newest, and those that have words.

use std::collections::BTreeSet;

use deadpool_postgres::ClientWrapper;
use futures::TryStreamExt as _;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Client, Result, is_impossible, natural, rows, text};
use crate::bounds::HITS;
use crate::user::Whose;
use crate::{Cursor, Listed, Listing, Page, Snippet, words};

macro_rules! columns {
    () => {
        "session.id, session.title, session.project, session.created_ms, session.updated_ms, session.archived_ms, \
         session.messages, session.key"
    };
}
pub(super) use columns;

/// Whether a session has each of the labels `$1`.
macro_rules! has_labels {
    () => {
        "(SELECT count(*) FROM label WHERE label.session = session.key AND label.name = ANY($1::text[])) \
         = cardinality($1::text[])"
    };
}

/// Returns a page of sessions.
pub(in super::super) async fn page(
    client: &ClientWrapper,
    whose: Whose<'_>,
    wanted: &Listing,
) -> Result<Page> {
    let labels: BTreeSet<&str> = wanted.labels.iter().map(String::as_str).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    let mut texts = labels.iter().copied().chain(wanted.project.as_deref());
    if texts.any(is_impossible) {
        return Ok(Page::default());
    }
    let mut page = match wanted.query.as_deref().filter(|query| !query.is_empty()) {
        None => newest(client, whose, wanted, &labels).await,
        Some(query) => match words::of_query(query) {
            // Signs alone are nowhere to be found.
            words if words.is_empty() => Ok(Page::default()),
            words => search(client, whose, wanted, &labels, &words).await,
        },
    }?;
    with_labels(client, &mut page.sessions).await?;
    Ok(page)
}

/// Adds the labels of sessions, sorted.
pub(super) async fn with_labels(client: &impl Client, sessions: &mut [Listed]) -> Result<()> {
    let ids: Vec<&str> = sessions.iter().map(|it| it.id.as_str()).collect();
    let found: Vec<(String, String)> = rows(
        client,
        "SELECT session.id, label.name FROM session JOIN label ON label.session = session.key \
         WHERE session.id = ANY($1::text[]) ORDER BY label.name",
        &[&ids],
        super::pair,
    )
    .await?;
    for (id, name) in found {
        if let Some(session) = sessions.iter_mut().find(|it| it.id == id) {
            session.labels.push(name);
        }
    }
    Ok(())
}

pub(super) fn listed(row: &Row) -> Result<Listed> {
    Ok(Listed {
        id: row.try_get(0)?,
        title: row.try_get(1)?,
        project: row.try_get(2)?,
        created_ms: row.try_get(3)?,
        updated_ms: row.try_get(4)?,
        archived_ms: row.try_get(5)?,
        labels: Vec::new(),
        messages: natural(row, 6)?,
        snippet: None,
    })
}

async fn newest(
    client: &ClientWrapper,
    whose: Whose<'_>,
    wanted: &Listing,
    labels: &[&str],
) -> Result<Page> {
    let begin = wanted.cursor.unwrap_or(Cursor {
        updated_ms: i64::MAX,
        key: i64::MAX,
    });
    let limit = wanted.limit.max(1);
    let most = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut found = rows(
        client,
        &format!(
            concat!(
                "SELECT ",
                columns!(),
                " FROM session WHERE (archived_ms IS NULL) = $2::bool AND (updated_ms, key) < ($3::bigint, $4::bigint) \
                 AND ($5::text IS NULL OR project = $5::text) AND {} AND ",
                has_labels!(),
                " ORDER BY updated_ms DESC, key DESC LIMIT $6::bigint"
            ),
            whose.says("owner", "$7::text")
        ),
        &[
            &labels,
            &!wanted.archived,
            &begin.updated_ms,
            &begin.key,
            &wanted.project,
            &most,
            &whose.name(),
        ],
        |row| Ok((listed(row)?, row.try_get::<_, i64>(7)?)),
    )
    .await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    Ok(Page {
        next: last.map(|(session, key)| Cursor {
            updated_ms: session.updated_ms,
            key: *key,
        }),
        sessions: found.into_iter().map(|(session, _)| session).collect(),
    })
}

/// Returns the sessions that have the words: those in whose name they are, then those in which they are said, then those in
/// which the last of them begins a word; each by the newest message.
async fn search(
    client: &ClientWrapper,
    whose: Whose<'_>,
    wanted: &Listing,
    labels: &[&str],
    words: &[String],
) -> Result<Page> {
    let limit = wanted.limit.max(1);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut sessions = rows(
        client,
        &format!(
            concat!(
                "SELECT ",
                columns!(),
                " FROM session WHERE (archived_ms IS NULL) = $2::bool AND ($3::text IS NULL OR project = $3::text) AND {} AND ",
                has_labels!(),
                " AND title_small IS NOT NULL AND (SELECT bool_and(position(word IN title_small) > 0) FROM unnest($4::text[]) AS word) \
                 ORDER BY updated_ms DESC, key DESC LIMIT $5::bigint"
            ),
            whose.says("owner", "$6::text")
        ),
        &[
            &labels,
            &!wanted.archived,
            &wanted.project,
            &words,
            &most,
            &whose.name(),
        ],
        listed,
    )
    .await?;
    let statement = client
        .prepare_cached(&format!(
            concat!(
            "SELECT ",
            columns!(),
            ", conversation.id, message.place, body.deflated, body.data FROM \
             (SELECT body AS key FROM word WHERE words @@ $4::text::tsquery AND {} ORDER BY body DESC LIMIT $5::bigint) AS hit \
             JOIN body ON body.key = hit.key JOIN message ON message.body = hit.key \
             JOIN conversation ON conversation.key = message.conversation \
             JOIN session ON session.key = conversation.session \
             WHERE (session.archived_ms IS NULL) = $2::bool AND ($3::text IS NULL OR session.project = $3::text) AND {} AND ",
            has_labels!(),
            " ORDER BY hit.key DESC, session.key"
            ),
            whose.says("owner", "$6::text"),
            whose.says("session.owner", "$6::text")
        ))
        .await?;
    for expression in words::queries(words) {
        let is_shown = !wanted.archived;
        let owner = whose.name();
        let parameters: [&(dyn ToSql + Sync); 6] = [
            &labels,
            &is_shown,
            &wanted.project,
            &expression,
            &HITS,
            &owner,
        ];
        // Hit after hit, no more than the page needs.
        let hits = client.query_raw(&statement, parameters).await?;
        futures::pin_mut!(hits);
        let mut is_full = false;
        while let Some(row) = hits.try_next().await? {
            let id: &str = row.try_get(0)?;
            let at = sessions.iter().position(|session| session.id == id);
            if at.is_none() {
                if sessions.len() >= limit {
                    is_full = true;
                    break;
                }
                sessions.push(listed(&row)?);
            }
            let at = at.unwrap_or(sessions.len() - 1);
            if let Some(session) = sessions.get_mut(at)
                && session.snippet.is_none()
            {
                session.snippet = Some(Snippet {
                    conversation: row.try_get(8)?,
                    place: natural(&row, 9)?,
                    text: text(&row, 10, 11)?,
                });
            }
        }
        if is_full {
            break;
        }
    }
    Ok(Page {
        sessions,
        next: None,
    })
}

//! All of a session, read piece by piece.

use std::ops::ControlFlow;

use deadpool_postgres::{ClientWrapper, Object};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::list::{columns, listed, with_labels};
use super::{Client, Result, hash, is_impossible, one, rows, text};
use crate::postgres::server::described;
use crate::user::Whose;
use crate::{Attachment, Body, Each, Error, Exchange, Head, Listed, Message, Piece, TitleBy, User};

/// How many messages are read at once, and how many pieces wait for whoever takes them.
const AT_ONCE: i64 = 32;
pub(in super::super) const WAITING: usize = 32;

/// Reads a session in one snapshot; false where there is none. `each` is called on a thread for blocking work.
pub(in super::super) async fn export(
    threads: Handle,
    client: Object,
    (user, session): (User, String),
    mut each: Each,
) -> std::result::Result<bool, Error> {
    let (pieces, mut taken) = mpsc::channel(WAITING);
    let taker = tokio::task::spawn_blocking(move || {
        while let Some(piece) = taken.blocking_recv() {
            if each(piece).is_break() {
                return;
            }
        }
    });
    let read = threads.spawn(async move {
        let whose = (Whose::Of(&user), session.as_str());
        pieces_of(&client, whose, &pieces).await
    });
    let read = read.await.map_err(|_| Error::Closed)?;
    taker.await.map_err(|_| Error::Closed)?;
    read.map_err(|error| Error::Failing(described(&error)))
}

/// Sends the pieces of a session, as it is now; a snapshot that is left open ends with the connection.
pub(in super::super) async fn pieces_of(
    client: &ClientWrapper,
    whose: (Whose<'_>, &str),
    pieces: &mpsc::Sender<Piece>,
) -> Result<bool> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let found = all_of(client, whose, pieces).await;
    client.batch_execute("COMMIT").await?;
    found
}

async fn all_of(
    client: &ClientWrapper,
    (whose, id): (Whose<'_>, &str),
    pieces: &mpsc::Sender<Piece>,
) -> Result<bool> {
    if is_impossible(id) {
        return Ok(false);
    }
    let sql = format!(
        "SELECT key, title, title_by, project, created_ms, archived_ms FROM session WHERE id = $1::text AND {}",
        whose.says("owner", "$2::text")
    );
    let Some(row) = one(client, &sql, &[&id, &whose.name()]).await? else {
        return Ok(false);
    };
    let labels = "SELECT label.name FROM session JOIN label ON label.session = session.key \
                  WHERE session.id = $1::text ORDER BY label.name";
    let head = Head {
        labels: rows(client, labels, &[&id], |row| row.try_get(0)).await?,
        ..head(&row)?
    };
    // Whether it is wanted whole is for whoever takes it to say.
    let _ = send_all(client, row.try_get(0)?, head, pieces).await?;
    Ok(true)
}

fn head(row: &Row) -> Result<Head> {
    Ok(Head {
        title: row.try_get(1)?,
        title_by: match row.try_get(2)? {
            "user" => TitleBy::User,
            _ => TitleBy::Daemon,
        },
        project: row.try_get(3)?,
        labels: Vec::new(),
        created_ms: row.try_get(4)?,
        archived_ms: row.try_get(5)?,
    })
}

async fn send(pieces: &mpsc::Sender<Piece>, piece: Piece) -> ControlFlow<()> {
    match pieces.send(piece).await {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

async fn send_all(
    client: &ClientWrapper,
    session: i64,
    head: Head,
    pieces: &mpsc::Sender<Piece>,
) -> Result<ControlFlow<()>> {
    if send(pieces, Piece::Head(head)).await.is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let calls = "SELECT id, conversation, began, record, result FROM call WHERE session = $1::bigint ORDER BY key";
    let calls = rows(client, calls, &[&session], super::call).await?;
    for call in calls {
        if send(pieces, Piece::Call(call)).await.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    let exchanges = "SELECT id, conversation, began_ms, ending FROM exchange WHERE session = $1::bigint AND ending IS NOT NULL \
                     ORDER BY length(id), id";
    let exchanges = rows(client, exchanges, &[&session], |row| {
        Ok(Exchange {
            id: row.try_get(0)?,
            conversation: row.try_get(1)?,
            began_ms: row.try_get(2)?,
            // Its number is of no use to another session.
            end: Some((0, row.try_get(3)?)),
        })
    })
    .await?;
    for exchange in exchanges {
        if send(pieces, Piece::Exchange(exchange)).await.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    messages(client, session, pieces).await
}

/// Sends the messages, some at once.
async fn messages(
    client: &ClientWrapper,
    session: i64,
    pieces: &mpsc::Sender<Piece>,
) -> Result<ControlFlow<()>> {
    let (mut conversation, mut place) = (i64::MIN, i64::MIN);
    loop {
        let sql = "SELECT conversation.id, body.deflated, body.data, message.exchange, message.at_ms, body.key, conversation.key, \
                   message.place FROM conversation JOIN message ON message.conversation = conversation.key \
                   JOIN body ON body.key = message.body WHERE conversation.session = $1::bigint \
                   AND (conversation.key, message.place) > ($2::bigint, $3::bigint) \
                   ORDER BY conversation.key, message.place LIMIT $4::bigint";
        let found = client
            .ask(sql, &[&session, &conversation, &place, &AT_ONCE])
            .await?;
        let Some(last) = found.last() else {
            return Ok(ControlFlow::Continue(()));
        };
        (conversation, place) = (last.try_get(6)?, last.try_get(7)?);
        for row in &found {
            let body: i64 = row.try_get(5)?;
            let attachments = "SELECT attachment.hash, attachment.data FROM attached JOIN attachment \
                               ON attachment.key = attached.attachment WHERE attached.body = $1::bigint ORDER BY attachment.key";
            let message = Message {
                exchange: row.try_get(3)?,
                body: Body {
                    text: text(row, 1, 2)?,
                    words: String::new(),
                    attachments: rows(client, attachments, &[&body], |row| {
                        Ok(Attachment {
                            hash: hash(row, 0)?.unwrap_or_default(),
                            bytes: row.try_get(1)?,
                        })
                    })
                    .await?,
                },
                at_ms: row.try_get(4)?,
            };
            let piece = Piece::Message {
                conversation: row.try_get(0)?,
                message,
            };
            if send(pieces, piece).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}

/// Returns the session of this id, or else those whose ids begin with it, `most` at most.
pub(in super::super) async fn find(
    client: &ClientWrapper,
    id: &str,
    most: usize,
) -> Result<Vec<Listed>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut found = rows(
        client,
        concat!(
            "SELECT ",
            columns!(),
            " FROM session WHERE left(id, length($1::text)) = $1::text ORDER BY id <> $1::text, id LIMIT $2::bigint"
        ),
        &[&id, &most],
        listed,
    )
    .await?;
    if found.first().is_some_and(|first| first.id == id) {
        found.truncate(1);
    }
    with_labels(client, &mut found).await?;
    Ok(found)
}

//! Clocks that jump: nothing is lost, each session is listed once, and what is not old is not deleted.

use std::time::Duration;

use super::*;
use crate::{Growth, Limits, MS_OF_DAY};

/// Milliseconds since 1970, so many days ago.
fn days_ago(days: i64) -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_millis()).unwrap() - days * MS_OF_DAY
}

/// Has the process before have believed that it is so many days ago.
fn believed(path: &Path, days: i64) {
    let other = Connection::open(path).unwrap();
    let believe = "INSERT OR REPLACE INTO clock (key, at_ms) VALUES (1, ?1)";
    other.execute(believe, [days_ago(days)]).unwrap();
}

async fn listed(store: &Sqlite) -> Vec<(String, i64)> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = Listing {
            limit: 1,
            cursor,
            ..Listing::default()
        };
        let page = store.list(page).await.unwrap();
        all.extend(page.sessions.into_iter().map(|it| (it.id, it.updated_ms)));
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

fn keep(store: &Sqlite, days: u64) -> mpsc::Receiver<Growth> {
    let (tell, told) = mpsc::channel();
    let limits = Limits {
        keep: Some(Duration::from_secs(days * 24 * 60 * 60)),
        max_bytes: None,
    };
    store.limit(limits, move |growth| drop(tell.send(growth)));
    told
}

#[tokio::test]
async fn a_clock_that_jumps_back_loses_and_doubles_nothing() {
    let (_folder, path) = place();
    let store = start(&path);
    for (session, at_ms) in [("x", 100), ("y", 200), ("x", 50), ("z", 40), ("y", 30)] {
        let text = format!("{session} {at_ms}");
        let changes = vec![create(at_ms), said("a", &text, at_ms)];
        write(&store, session, changes).unwrap();
    }
    // A session never becomes older than it was; each is on one page.
    let expected = [("y", 200), ("x", 100), ("z", 40)].map(|(id, at)| (id.to_owned(), at));
    assert_eq!(listed(&store).await, expected);
    let session = store.open("x").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["x 100", "x 50"]);
    // Of exchanges the last ones are known, by their names and not by their dates.
    let ended = |number: i64| Change::Ended {
        id: format!("m{number}"),
        conversation: "a".to_owned(),
        at_ms: -number,
        seq: 9,
        end: "end".to_owned(),
    };
    write(&store, "x", (1..=600).map(ended).collect()).unwrap();
    let session = store.open("x").await.unwrap().unwrap();
    let ids: Vec<&str> = session.exchanges.iter().map(|it| it.id.as_str()).collect();
    assert_eq!((ids[0], ids[511]), ("m89", "m600"));
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_deletes_nothing_that_is_not_old() {
    let (_folder, path) = place();
    let store = start(&path);
    for (session, days) in [("old", 600), ("recent", 401)] {
        write(&store, session, vec![create(days_ago(days))]).unwrap();
    }
    store.close().await.unwrap();
    drop(store);
    // For the process before it was 400 days ago, and nothing says that so much time went by.
    believed(&path, 400);
    let store = restart(&path);
    let told = keep(&store, 90);
    assert!(matches!(told.recv().unwrap(), Growth::Deleted { session, .. } if session == "old"));
    store.flush().await.unwrap();
    drop(keep(&store, 90));
    store.flush().await.unwrap();
    let left = listed(&store).await;
    assert_eq!(left.len(), 1, "{left:?}");
    // It is believed by and by.
    let other = Connection::open(&path).unwrap();
    let now: i64 = other
        .query_row("SELECT at_ms FROM clock", [], |row| row.get(0))
        .unwrap();
    assert!((days_ago(400)..days_ago(398)).contains(&now), "{now}");
}

#[tokio::test]
async fn what_is_said_while_the_clock_is_behind_is_not_too_old_when_it_is_right_again() {
    let (_folder, path) = place();
    start(&path).close().await.unwrap();
    // A machine that believes, without a battery for its clock, that it is 100 days earlier than when it was used last.
    drop(restart(&path));
    believed(&path, -100);
    let store = restart(&path);
    let told = keep(&store, 90);
    let said = said("a", "words", days_ago(0));
    write(&store, "s", vec![create(days_ago(0)), said]).unwrap();
    store.flush().await.unwrap();
    let updated = listed(&store).await[0].1;
    assert!(updated > days_ago(-99), "{updated}");
    drop(keep(&store, 90));
    store.flush().await.unwrap();
    assert!(told.try_recv().is_err() && listed(&store).await.len() == 1);
}

#[tokio::test]
async fn without_limits_nothing_is_deleted() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(0), said("a", "words", 0)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.limit(Limits::default(), move |growth| drop(tell.send(growth)));
    for at_ms in 0..600 {
        write(&store, "t", vec![create(at_ms), said("a", "more", at_ms)]).unwrap();
    }
    store.close().await.unwrap();
    assert!(told.try_recv().is_err());
    drop(store);
    let store = restart(&path);
    assert_eq!(found(&store, "words").await, ["s"]);
}

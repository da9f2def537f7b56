//! How much is kept: labels, limits, exports.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::*;
use crate::Piece;

/// A session that changed at this time, of so many bytes that cannot be packed.
pub(crate) fn make(store: &Kept, id: &str, at_ms: i64, bytes: usize) {
    let attachment = Attachment {
        hash: std::array::from_fn(|at| id.as_bytes()[at % id.len()]),
        bytes: vec![7; bytes],
    };
    let message = Message {
        body: Body {
            attachments: vec![attachment],
            ..message(id, at_ms).body
        },
        ..message(id, at_ms)
    };
    let said = Change::Message {
        conversation: "a".to_owned(),
        message,
    };
    write(store, id, vec![create(at_ms), said]).unwrap();
}

pub(crate) fn put_away(store: &Kept, id: &str) {
    write(store, id, vec![Change::Archived { at_ms: Some(9) }]).unwrap();
}

pub(crate) fn limit(store: &Kept, limits: Limits) -> mpsc::Receiver<Growth> {
    let (tell, told) = mpsc::channel();
    store.limit(limits, move |growth| drop(tell.send(growth)));
    told
}

async fn ids(store: &Kept) -> Vec<String> {
    let mut all = Vec::new();
    for archived in [false, true] {
        let limit = 50;
        let wanted = Listing {
            archived,
            limit,
            ..Listing::default()
        };
        let page = store.list(wanted).await.unwrap();
        all.extend(page.sessions.into_iter().map(|it| it.id));
    }
    all.sort();
    all
}

#[tokio::test]
async fn labels_are_replaced_listed_and_looked_for() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let labels = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned());
        Change::Labels(names.collect())
    };
    for (id, names) in [("x", ["a", "b"]), ("y", ["b", "ab"]), ("z", ["c", "c"])] {
        let said = said("a", "words", 1);
        write(&store, id, vec![create(1), said, labels(&names)]).unwrap();
    }
    write(&store, "z", vec![labels(&["%", "_"])]).unwrap();
    for query in [None, Some("words".to_owned())] {
        for (wanted, expected) in [
            (vec!["b"], vec!["x", "y"]),
            (vec!["b", "a"], vec!["x"]),
            (vec!["a", "a"], vec!["x"]),
            (vec!["ab"], vec!["y"]),
            (vec!["%"], vec!["z"]),
            (vec!["c"], vec![]),
            (vec!["a\nb"], vec![]),
            (vec!["'; DROP TABLE label; --"], vec![]),
        ] {
            let page = store.list(Listing {
                query: query.clone(),
                labels: wanted.iter().map(|&it| it.to_owned()).collect(),
                limit: 50,
                ..Listing::default()
            });
            let mut found: Vec<String> = page
                .await
                .unwrap()
                .sessions
                .into_iter()
                .map(|it| it.id)
                .collect();
            found.sort();
            assert_eq!(found, expected, "{wanted:?} {query:?}");
        }
    }
    let fork = Change::Fork {
        from: "y".to_owned(),
        part: None,
        at_ms: 2,
    };
    write(&store, "fork", vec![fork]).unwrap();
    let page = store
        .list(Listing {
            limit: 1,
            ..Listing::default()
        })
        .await;
    assert_eq!(page.unwrap().sessions[0].labels, ["ab", "b"]);
}

#[tokio::test]
async fn what_is_too_old_is_deleted_but_not_while_it_is_open() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    make(&store, "old", 1, 10);
    make(&store, "older", 0, 10);
    make(&store, "new", i64::MAX, 10);
    let held = store.hold("old");
    // One of the same id that is another user's is another one.
    let _other = store.of(&crate::User::new("ben")).hold("older");
    let limits = Limits {
        keep: Some(Duration::from_secs(60)),
        max_bytes: None,
    };
    let deleted = |session: &str, updated_ms| Growth::Deleted {
        user: crate::User::default(),
        session: session.to_owned(),
        updated_ms,
        is_old: true,
    };
    let told = limit(&store, limits);
    assert_eq!(told.recv(), Ok(deleted("older", 0)));
    assert_eq!(ids(&store).await, ["new", "old"]);
    // One that is begun anew is held before the one before lets go.
    let again = store.hold("old");
    drop(held);
    drop(limit(&store, limits));
    assert_eq!(ids(&store).await, ["new", "old"]);
    // That it was read holds nothing: who read it may have failed at the next step.
    store.open("old").await.unwrap().unwrap();
    drop(again);
    let told = limit(&store, limits);
    assert_eq!(told.recv(), Ok(deleted("old", 1)));
    assert_eq!(ids(&store).await, ["new"]);
}

#[tokio::test]
async fn of_too_much_the_oldest_that_were_put_away_are_deleted() {
    const BIG: usize = 2 * 1024 * 1024;
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    for (at, id) in (0..).zip(["kept", "b", "a", "open", "last"]) {
        make(&store, id, at, BIG);
        if id != "kept" {
            put_away(&store, id);
        }
    }
    let _open = store.hold("open");
    let big = BIG as u64;
    let limits = |max_bytes| Limits {
        keep: None,
        max_bytes: Some(max_bytes),
    };
    let told = limit(&store, limits(4 * big));
    for expected in ["b", "a"] {
        let Growth::Deleted {
            session, is_old, ..
        } = told.recv().unwrap()
        else {
            panic!("{expected} is not deleted");
        };
        assert_eq!((session.as_str(), is_old), (expected, false));
    }
    // Three of four are no 80 percent yet, with what else is in the file they are hardly more than three.
    let told = limit(&store, limits(3 * big + big / 2));
    assert!(matches!(told.recv().unwrap(), Growth::Filling { .. }));
    // What is left is open or not put away.
    let told = limit(&store, limits(big));
    assert!(matches!(told.recv().unwrap(), Growth::Deleted { session, .. } if session == "last"));
    assert!(matches!(told.recv().unwrap(), Growth::Full { .. }));
    assert_eq!(ids(&store).await, ["kept", "open"]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_session_is_exported_and_made_of_changes_whole_or_not_at_all() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    make(&store, "s", 5, 10);
    let changes = |last: Result<Change, String>| {
        let changes = [Ok(create(1)), Ok(said("c", "words", 2)), last];
        Box::new(changes.into_iter())
    };
    let broken = store.import("t", changes(Err("line 3 is wrong".to_owned())));
    assert_eq!(
        broken.await,
        Err(Error::Refused("line 3 is wrong".to_owned()))
    );
    assert!(!store.has("t").await.unwrap() && found(&store, "words").await.is_empty());
    let made = store.import("t", changes(Ok(Change::Labels(vec!["l".to_owned()]))));
    made.await.unwrap();
    let pieces = Arc::<Mutex<Vec<Piece>>>::default();
    let taken = Arc::clone(&pieces);
    let each = move |piece| {
        taken.lock().push(piece);
        ControlFlow::Continue(())
    };
    assert!(store.export("t", Box::new(each)).await.unwrap());
    let pieces = std::mem::take(&mut *pieces.lock());
    let [
        Piece::Head(head),
        Piece::Message {
            conversation,
            message,
        },
    ] = pieces.as_slice()
    else {
        panic!("{pieces:?}");
    };
    assert_eq!(
        (head.labels.as_slice(), head.created_ms),
        (["l".to_owned()].as_slice(), 1)
    );
    assert_eq!(
        (conversation.as_str(), message.body.text.as_str()),
        ("c", "words")
    );
    let stop = |_| ControlFlow::Break(());
    assert!(store.export("s", Box::new(stop)).await.unwrap());
    for unknown in ["", "%", "../s", "' OR 1=1; --"] {
        assert!(!store.export(unknown, Box::new(stop)).await.unwrap());
    }
    // Nobody has it open: it was made for nobody.
    let _open = store.hold("s");
    let told = limit(
        &store,
        Limits {
            keep: Some(Duration::ZERO),
            max_bytes: None,
        },
    );
    assert!(matches!(told.recv().unwrap(), Growth::Deleted { session, .. } if session == "t"));
}

//! Sessions that are imported: in slices, seen when they are whole, and gone where they never were. Large ones are deleted in
//! slices, too.

use crate::slices::{SLICE, SLICE_BYTES};
use futures::executor::block_on;

use super::super::Place;
use super::*;
use crate::{CallStatus, Ended, FileChange};

/// How many messages the session has, so that it takes some slices.
pub(crate) const MESSAGES: usize = 3 * SLICE;

/// Changes that make a session; `meanwhile` is called before each message, with its number.
pub(crate) fn changes(
    mut meanwhile: impl FnMut(usize) -> Option<String> + Send + 'static,
) -> Box<dyn Iterator<Item = Result<Change, String>> + Send> {
    let call = ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: "{}".to_owned(),
        result: None,
    };
    let first = [
        create(1),
        Change::Labels(vec!["l".to_owned()]),
        Change::Imported {
            call,
            facts: CallFacts {
                status: CallStatus::Ended(Ended::Success),
                ..CallFacts::default()
            },
        },
        Change::Began(Exchange {
            id: "m1".to_owned(),
            conversation: "a".to_owned(),
            began_ms: 5,
            end: Some((0, "{}".to_owned())),
        }),
    ];
    let messages = (0..MESSAGES).map(move |number| match meanwhile(number) {
        Some(problem) => Err(problem),
        None => {
            let conversation = ["a", "b"][number % 2].to_owned();
            Ok(Change::Message {
                conversation,
                message: with_attachment(&format!("imported {number}")),
            })
        }
    });
    Box::new(first.into_iter().map(Ok).chain(messages))
}

fn with_attachment(text: &str) -> Message {
    let mut message = message(text, 5);
    message.body.attachments = vec![Attachment {
        hash: [7; 32],
        bytes: vec![7; 10],
    }];
    message
}

/// Returns how many rows each table has that an import writes to.
pub(crate) fn rows(path: &Place) -> Vec<(&'static str, i64)> {
    let count = |table| (table, count(path, table));
    let tables = [
        "any_session",
        "label",
        "conversation",
        "message",
        "body",
        "attachment",
        "attached",
        "exchange",
        "call",
        "ran",
    ];
    tables.map(count).to_vec()
}

/// Has one session in a file that says what the imported one says, too.
pub(crate) fn with_one(path: &Place) -> Kept {
    let store = start(path);
    let said = Change::Message {
        conversation: "a".to_owned(),
        message: with_attachment("own"),
    };
    write(&store, "own", vec![create(1), said]).unwrap();
    store
}

/// On a thread for blocking work.
pub(crate) fn assert_unseen(store: &Kept) {
    let page = block_on(store.list(wanted("imported"))).unwrap();
    assert!(page.sessions.is_empty(), "{page:?}");
    assert!(!block_on(store.has("new")).unwrap());
    let each = Box::new(|_| unreachable!());
    assert!(!block_on(store.export("new", each)).unwrap());
    let stats = block_on(store.stats()).unwrap();
    assert_eq!((stats.sessions, stats.messages), (1, 1));
}

/// The same from a test.
async fn assert_not_seen(store: &Kept) {
    let store = store.clone();
    let look = tokio::task::spawn_blocking(move || assert_unseen(&store));
    look.await.unwrap();
}

#[tokio::test]
async fn what_others_say_is_safe_before_an_import_is_whole() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = with_one(&path);
    let (done, safe) = mpsc::channel();
    let other = store.clone();
    let meanwhile = move |number| {
        // In the first slice something is said, in the next one it is safe.
        if number == 1 {
            let done = done.clone();
            let done = Box::new(move |result| done.send(result).unwrap());
            other.write("own", vec![said("a", "meanwhile", 6)], done);
        }
        if number == SLICE {
            assert_eq!(safe.try_recv(), Ok(Ok(())));
        }
        None
    };
    store.import("new", changes(meanwhile)).await.unwrap();
    let session = store.open("new").await.unwrap().unwrap();
    let expected = (0..MESSAGES).step_by(2).map(|it| format!("imported {it}"));
    assert_eq!(texts(&session, "a"), expected.collect::<Vec<_>>());
    assert_eq!((session.calls.len(), session.exchanges.len()), (1, 1));
    let stats = store.stats().await.unwrap();
    assert_eq!(stats.messages, 2 + MESSAGES as u64);
    // What is there is nobody's to be written to.
    let twice = store.import("new", changes(|_| None)).await;
    assert!(matches!(twice, Err(Error::Refused(_))), "{twice:?}");
    let page = store.list(wanted("imported")).await.unwrap();
    assert_eq!(page.sessions[0].messages, MESSAGES as u64);
}

#[tokio::test]
async fn a_slice_is_shorter_where_its_changes_are_large() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let (other, (done, safe)) = (store.clone(), mpsc::channel());
    let large = move |number| {
        if number == 1 {
            let done = done.clone();
            let done = Box::new(move |result| done.send(result).unwrap());
            other.write("own", vec![create(1)], done);
        }
        if number == 3 {
            assert_eq!(safe.try_recv(), Ok(Ok(())));
        }
        Ok(said("a", &"x".repeat(SLICE_BYTES / 2), 1))
    };
    let changes = [Ok(create(1))].into_iter().chain((0..4).map(large));
    store.import("new", Box::new(changes)).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_an_import_that_is_refused_late() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = with_one(&path);
    let before = rows(&path);
    let other = store.clone();
    let meanwhile = move |number| {
        (number == MESSAGES - 1).then(|| {
            assert_unseen(&other);
            "line 9 is wrong".to_owned()
        })
    };
    let refused = store.import("new", changes(meanwhile)).await;
    assert_eq!(refused, Err(Error::Refused("line 9 is wrong".to_owned())));
    let panics = store.import(
        "other",
        changes(|number| {
            assert!(number < SLICE + 1, "as it should");
            None
        }),
    );
    assert_eq!(panics.await, Err(Error::Closed));
    // One that becomes whole is not removed with them.
    store.import("whole", changes(|_| None)).await.unwrap();
    write(&store, "whole", vec![Change::Delete]).unwrap();
    store.close().await.unwrap();
    assert_eq!(rows(&path), before);
}

/// A change of a file whose content before is so large that the session is removed in slices because of it alone.
fn large_change() -> Change {
    Change::File(FileChange {
        conversation: "a".to_owned(),
        exchange: "m1".to_owned(),
        call: "t1".to_owned(),
        root: "/p".to_owned(),
        path: "f".to_owned(),
        about: "{}".to_owned(),
        diff: String::new(),
        before: Some(Attachment {
            hash: [8; 32],
            bytes: vec![8; SLICE_BYTES + 1],
        }),
        at_ms: 5,
    })
}

#[tokio::test]
async fn a_large_session_is_gone_at_once_and_removed_in_slices() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = with_one(&path);
    let before = rows(&path);
    for long in [true, false] {
        let changes: Changes = match long {
            true => changes(|_| None),
            false => {
                let few = [create(1), said("a", "imported", 5), large_change()];
                Box::new(few.map(Ok).into_iter())
            }
        };
        store.import("new", changes).await.unwrap();
        write(&store, "new", vec![Change::Delete]).unwrap();
        assert_not_seen(&store).await;
        assert_eq!(store.open("new").await, Ok(None));
    }
    // Its id is another one's.
    write(&store, "new", vec![create(7), said("a", "again", 7)]).unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = restart(&path);
    let session = store.open("new").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["again"]);
    write(&store, "new", vec![Change::Delete]).unwrap();
    store.close().await.unwrap();
    assert_eq!(rows(&path), before);
}

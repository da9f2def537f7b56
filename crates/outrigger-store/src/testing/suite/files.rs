//! Changes of files: what is kept of them, how much, and with what it goes.

use super::*;
use crate::{FileChange, FileQuery};

/// A change of a file by a call; its content before is so many bytes, each of this number.
fn change(call: &str, bytes: usize, number: u8) -> Change {
    let before = Attachment {
        hash: [number; 32],
        bytes: vec![number; bytes],
    };
    Change::File(FileChange {
        conversation: "a".to_owned(),
        exchange: format!("m{}", call.trim_start_matches('t')),
        call: call.to_owned(),
        root: "/p".to_owned(),
        path: "f".to_owned(),
        about: "{}".to_owned(),
        diff: "-x\n".repeat(400),
        before: (bytes > 0).then_some(before),
        at_ms: 5,
    })
}

fn all() -> FileQuery {
    FileQuery {
        session: "s".to_owned(),
        limit: 10_000,
        bytes: usize::MAX,
        ..FileQuery::default()
    }
}

async fn calls(store: &Kept, wanted: FileQuery) -> Vec<String> {
    let page = store.files(wanted).await.unwrap();
    page.changes.into_iter().map(|it| it.change.call).collect()
}

#[tokio::test]
async fn changes_are_read_by_what_is_asked_for() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let changes = vec![
        create(1),
        said("a", "hi", 1),
        change("t1", 3, 1),
        change("t2", 0, 0),
        change("t10", 3, 1),
    ];
    write(&store, "s", changes).unwrap();
    let page = store.files(all()).await.unwrap();
    assert_eq!(page.changes[2].before, Some([1; 32]));
    assert_eq!(page.changes[1].before, None);
    assert_eq!(page.changes[2].change.diff, "-x\n".repeat(400));
    assert_eq!(store.attachment([1; 32]).await.unwrap(), Some(vec![1; 3]));
    assert_eq!(store.attachment([9; 32]).await.unwrap(), None);
    let some = |text: &str| Some(text.to_owned());
    for (wanted, expected) in [
        (all(), vec!["t10", "t2", "t1"]),
        (
            FileQuery {
                call: some("t2"),
                ..all()
            },
            vec!["t2"],
        ),
        (
            FileQuery {
                exchange: some("m1"),
                ..all()
            },
            vec!["t1"],
        ),
        // m10 is later than m2.
        (
            FileQuery {
                since: some("m2"),
                ..all()
            },
            vec!["t10", "t2"],
        ),
        (
            FileQuery {
                conversation: some("b"),
                ..all()
            },
            vec![],
        ),
        (
            FileQuery {
                session: "x".to_owned(),
                ..all()
            },
            vec![],
        ),
    ] {
        assert_eq!(calls(&store, wanted.clone()).await, expected, "{wanted:?}");
    }
    for first in [
        FileQuery { limit: 1, ..all() },
        FileQuery { bytes: 1, ..all() },
    ] {
        let page = store.files(first.clone()).await.unwrap();
        assert_eq!(page.changes.len(), 1);
        let cursor = page.next;
        let page = store.files(FileQuery { cursor, ..first }).await.unwrap();
        assert_eq!(page.changes[0].change.call, "t2");
    }
    let without = FileQuery { bytes: 0, ..all() };
    let page = store.files(without).await.unwrap();
    assert_eq!(
        (page.changes.len(), page.changes[0].change.diff.as_str()),
        (3, "")
    );
}

#[tokio::test]
async fn content_goes_with_the_last_that_names_it() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let attachments = async || store.stats().await.unwrap().attachments;
    let mut picture = message("look", 3);
    picture.body.attachments.push(Attachment {
        hash: [1; 32],
        bytes: vec![1; 3],
    });
    let picture = Change::Message {
        conversation: "b".to_owned(),
        message: picture,
    };
    let first = vec![create(1), said("a", "hi", 1), picture, change("t1", 3, 1)];
    write(&store, "s", first).unwrap();
    let forget = |conversation: &str| Change::Forget {
        conversation: conversation.to_owned(),
    };
    // The change still names it.
    write(&store, "s", vec![forget("b")]).unwrap();
    assert_eq!(attachments().await, 1);
    let unmade = |root: &str| Change::FileUnmade {
        exchange: "m1".to_owned(),
        call: "t1".to_owned(),
        root: root.to_owned(),
        path: "f".to_owned(),
    };
    // The file of this name in another folder is another one.
    write(&store, "s", vec![unmade("/central")]).unwrap();
    assert_eq!(attachments().await, 1);
    // Of two changes the last one was not made.
    write(&store, "s", vec![change("t1", 3, 2), unmade("/p")]).unwrap();
    let left = store.files(all()).await.unwrap().changes;
    assert_eq!(left[0].before, Some([1; 32]));
    assert_eq!(left.len(), 1);
    write(&store, "s", vec![unmade("/p")]).unwrap();
    assert_eq!(attachments().await, 0);
    write(
        &store,
        "s",
        vec![change("t2", 3, 2), forget("a"), change("t3", 3, 3)],
    )
    .unwrap();
    assert_eq!(calls(&store, all()).await, Vec::<String>::new());
    assert_eq!(attachments().await, 0);
    write(&store, "s", vec![said("a", "again", 2), change("t4", 3, 4)]).unwrap();
    // A fork has none of it.
    let fork = Change::Fork {
        from: "s".to_owned(),
        part: None,
        at_ms: 9,
    };
    write(&store, "fork", vec![fork]).unwrap();
    let of_fork = FileQuery {
        session: "fork".to_owned(),
        ..all()
    };
    assert!(calls(&store, of_fork).await.is_empty());
    write(&store, "s", vec![Change::Delete]).unwrap();
    assert_eq!(attachments().await, 0);
}

#[tokio::test]
async fn the_oldest_content_and_the_oldest_changes_go_first() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "hi", 1)]).unwrap();
    const LARGE: usize = 24 * 1024 * 1024;
    for (number, call) in [(1, "t1"), (2, "t2"), (3, "t3")] {
        write(&store, "s", vec![change(call, LARGE, number)]).unwrap();
    }
    let page = store.files(all()).await.unwrap();
    let kept: Vec<bool> = page.changes.iter().map(|it| it.before.is_some()).collect();
    assert_eq!(kept, [true, true, false]);
    assert_eq!(store.attachment([1; 32]).await.unwrap(), None);
    let many = (0..1_000).map(|_| change("t4", 1, 4)).collect();
    write(&store, "s", many).unwrap();
    let calls = calls(&store, all()).await;
    assert_eq!(calls.len(), 1_000);
    assert!(calls.iter().all(|call| call == "t4"));
    assert_eq!(store.stats().await.unwrap().attachments, 1);
}

#[tokio::test]
async fn half_of_what_may_wait_is_for_what_can_be_done_without() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    assert!(store.has_room(32 * 1024 * 1024));
    assert!(!store.has_room(33 * 1024 * 1024));
}

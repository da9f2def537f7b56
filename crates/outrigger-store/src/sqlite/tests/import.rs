//! An import during which the process is killed.

use super::suite::import::{changes, rows, with_one};
use super::*;
use crate::CallListing;
use crate::slices::SLICE;

fn assert_file_unseen(path: &Path) {
    let reader = Reader::open(path).unwrap();
    let page = reader.list(&wanted("imported")).unwrap();
    assert!(page.sessions.is_empty(), "{page:?}");
    assert!(reader.find("new", 2).unwrap().is_empty());
    assert!(!reader.export("new", Box::new(|_| unreachable!())).unwrap());
    let stats = reader.stats().unwrap();
    assert_eq!((stats.sessions, stats.messages), (1, 1));
}

#[tokio::test]
async fn nothing_is_left_of_an_import_during_which_the_process_was_killed() {
    let (folder, path) = place();
    let store = with_one(&path);
    let killed = folder.path().join("killed.db");
    let (from, to) = (path.clone(), killed.clone());
    let meanwhile = move |number| {
        if number == 2 * SLICE {
            // What the system has when the process is killed here.
            for part in ["", "-wal"] {
                std::fs::copy(file::with(&from, part), file::with(&to, part)).unwrap();
            }
            assert_file_unseen(&from);
        }
        None
    };
    let before = rows(&path);
    store.import("new", changes(meanwhile)).await.unwrap();
    assert!(rows(&killed).contains(&("any_session", 2)));
    assert_file_unseen(&killed);
    let store = start(&killed);
    assert!(!store.has("new").await.unwrap());
    let calls = store.calls(CallListing {
        limit: 1,
        ..CallListing::default()
    });
    assert!(calls.await.unwrap().calls.is_empty());
    assert_eq!(store.open("new").await, Ok(None));
    store.close().await.unwrap();
    assert_eq!(rows(&killed), before);
}

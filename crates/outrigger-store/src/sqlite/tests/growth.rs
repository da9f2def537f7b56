//! The file without a thread that writes, and what of it is free.

use super::suite::growth::{limit, make, put_away};
use super::*;
use crate::{Growth, Limits};

#[tokio::test]
async fn what_is_free_in_the_file_is_given_back() {
    const BIG: usize = 2 * 1024 * 1024;
    let (_folder, path) = place();
    let store = start(&path);
    for (at, id) in (0..).zip(["a", "b", "c", "d", "e"]) {
        make(&store, id, at, BIG);
        if id > "b" {
            put_away(&store, id);
        }
    }
    let most = 2 * BIG as u64 + BIG as u64 / 2;
    let limits = Limits {
        keep: None,
        max_bytes: Some(most),
    };
    let told = limit(&store, limits);
    for expected in ["c", "d", "e"] {
        let growth = told.recv().unwrap();
        assert!(matches!(growth, Growth::Deleted { session, .. } if session == expected));
    }
    store.close().await.unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(
        bytes < 3 * BIG as u64,
        "what is free was given back: {bytes}"
    );
}

#[tokio::test]
async fn a_file_is_looked_at_beside_who_has_it() {
    let (folder, path) = place();
    assert!(matches!(Reader::open(&path), Err(Error::Missing { .. })));
    let store = start(&path);
    for id in ["abc", "abd", "-x"] {
        make(&store, id, 1, 10);
    }
    let reader = Reader::open(&path).unwrap();
    let find = |id: &str| {
        let found = reader.find(id, 2).unwrap();
        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(find("ab"), ["abc", "abd"]);
    assert_eq!(find("abc"), ["abc"]);
    assert_eq!(find("-"), ["-x"]);
    assert!(find("%").is_empty() && find("'").is_empty());
    assert_eq!(reader.stats().unwrap().sessions, 3);
    let copy = folder.path().join("copy.db");
    reader.backup(&copy).unwrap();
    assert!(matches!(reader.backup(&copy), Err(Error::Open { .. })));
    assert!(matches!(
        reader.backup(folder.path()),
        Err(Error::Open { .. })
    ));
    let copied = Reader::open(&copy).unwrap().list(&wanted("abd")).unwrap();
    assert_eq!(copied.sessions[0].id, "abd");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(matches!(vacuum(&path), Err(Error::InUse { .. })));
    vacuum(&copy).unwrap();
    let damaged = folder.path().join("damaged.db");
    std::fs::write(&damaged, "no database").unwrap();
    assert!(matches!(Reader::open(&damaged), Err(Error::Corrupt { .. })));
    assert!(matches!(vacuum(&damaged), Err(Error::Corrupt { .. })));
    assert_eq!(std::fs::read_to_string(&damaged).unwrap(), "no database");
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&damaged, bytes).unwrap();
    assert!(matches!(
        Reader::open(&damaged),
        Err(Error::Newer { found: 99, .. })
    ));
}

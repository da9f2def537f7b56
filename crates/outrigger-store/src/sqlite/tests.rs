//! The store as its owner uses it: changes in, sessions out, whatever happens to the file between.

mod clocks;
#[cfg(target_os = "linux")]
mod disks;
mod growth;
mod import;
mod schemas;
#[expect(clippy::duplicate_mod, reason = "each store runs the same tests")]
#[path = "../testing/suite/mod.rs"]
mod suite;
mod trouble;

use std::sync::mpsc;

use super::*;
#[cfg(target_os = "linux")]
use crate::Attachment;
use crate::TitleBy;
use suite::*;

type Kept = Sqlite;
/// Where a store is.
type Place = PathBuf;

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("outrigger.db");
    (folder, path)
}

fn start(path: &Path) -> Sqlite {
    Sqlite::start(path, Sync::Normal).unwrap()
}

/// Opens it once the process before, which is this one, has let go: the lock is the thread's, which ends after the last
/// handle.
fn restart(path: &Path) -> Sqlite {
    loop {
        match Sqlite::start(path, Sync::Full) {
            Err(Error::InUse { .. }) => std::thread::yield_now(),
            started => return started.unwrap(),
        }
    }
}

/// As the tests of every store ask for it: there may be none.
fn temporary() -> Option<(tempfile::TempDir, PathBuf)> {
    Some(place())
}

/// Returns how many rows a table has.
fn count(path: &Path, table: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// Has a call be written so many calls later than it was.
fn move_call_ahead(path: &Path, id: &str, by: i64) {
    let sql = "UPDATE call SET key = key + ?2 WHERE id = ?1";
    let connection = Connection::open(path).unwrap();
    connection.execute(sql, rusqlite::params![id, by]).unwrap();
}

#[test]
fn sqlite_is_sound() {
    assert!(rusqlite::version_number() >= OLDEST_SQLITE);
}

#[tokio::test]
async fn a_long_text_is_deflated() {
    let (_folder, path) = place();
    let store = start(&path);
    let long = "word ".repeat(10_000);
    write(&store, "s", vec![create(1), said("a", &long, 6)]).unwrap();
    assert!(store.stats().await.unwrap().bytes < 200_000);
}

#[tokio::test]
async fn words_of_others_are_in_nobodys_way() {
    let (_folder, path) = place();
    let store = start(&path);
    let [anna, ben] = ["anna", "ben"].map(|name| store.of(&User::new(name)));
    write(&anna, "s", vec![create(1), said("a", "needle", 1)]).unwrap();
    // More than are looked through for one search.
    let many = (0..=crate::bounds::HITS).map(|_| said("a", "needle", 2));
    let mut many: Vec<Change> = many.collect();
    many.insert(0, create(1));
    write(&ben, "t", many).unwrap();
    assert_eq!(found(&anna, "needle").await, ["s"]);
    assert_eq!(found(&anna, "need").await, ["s"]);
    assert_eq!(found(&ben, "needle").await, ["t"]);
    assert!(found(&store, "needle").await.is_empty());
}

//! What is wrong with the file, the disk, or who else is there.

use std::sync::mpsc;

use super::*;

#[tokio::test]
async fn a_second_process_is_refused_and_the_lock_goes_with_the_first() {
    let (_folder, path) = place();
    let store = start(&path);
    let second = Sqlite::start(&path, Sync::Full).unwrap_err();
    let pid = std::process::id().to_string();
    let path_text = path.display().to_string();
    assert_eq!(
        second,
        Error::InUse {
            path: path_text,
            pid
        }
    );
    store.flush().await.unwrap();
    drop(store);
    restart(&path).flush().await.unwrap();
}

#[test]
fn a_newer_file_is_refused() {
    let (_folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("CREATE TABLE x (y)").unwrap();
    newer
        .pragma_update(None, "user_version", SCHEMA + 1)
        .unwrap();
    drop(newer);
    let refused = Sqlite::start(&path, Sync::Full).unwrap_err();
    assert!(
        matches!(refused, Error::Newer { found, .. } if found == SCHEMA + 1),
        "{refused:?}"
    );
    assert!(path.exists());
}

#[tokio::test]
async fn what_is_no_database_is_moved_away() {
    let (_folder, path) = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "not a database, but somebody's notes".repeat(9)).unwrap();
    let store = start(&path);
    let moved = store.moved_away().unwrap().to_owned();
    assert!(
        std::fs::read_to_string(moved)
            .unwrap()
            .starts_with("not a database")
    );
    write(&store, "s", vec![create(1)]).unwrap();
    assert!(store.open("s").await.unwrap().is_some());
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for name in ["outrigger.db", "outrigger.db-wal", "outrigger.db.lock"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_written_when_it_does() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let (healths, told) = mpsc::channel();
    store.watch(move |health| healths.send(health != Health::Well).unwrap());
    // Another one holds the file: as good as a disk that is full, and works for root.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let failing = write(&store, "s", vec![said("a", "meanwhile", 2)]);
    assert!(matches!(failing, Err(Error::Failing(_))), "{failing:?}");
    assert!(store.failing().is_some());
    assert!(matches!(store.open("s").await, Err(Error::Failing(_))));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [true, false]);
    write(&store, "s", vec![said("a", "after", 3)]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before", "meanwhile", "after"]);
}

#[tokio::test]
async fn what_is_tried_once_and_fails_does_not_happen_later() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fork = Change::Fork {
        from: "s".to_owned(),
        part: None,
        at_ms: 2,
    };
    let title = Change::Title {
        title: "later".to_owned(),
        by: TitleBy::User,
    };
    let (healths, health) = mpsc::channel();
    store.watch(move |health| healths.send(health != Health::Well).unwrap());
    // It takes nothing along with it.
    let (done, told) = mpsc::channel();
    let done = Box::new(move |result: Result<(), Error>| done.send(result).unwrap());
    let meanwhile = || store.write("s", vec![said("a", "meanwhile", 2)], done);
    let forked = store.attempt("t", vec![fork.clone()]);
    meanwhile();
    assert!(matches!(forked.await, Err(Error::Failing(_))));
    for change in [title.clone(), Change::Delete] {
        let failed = store.attempt("s", vec![change]).await;
        assert!(matches!(failed, Err(Error::Failing(_))), "{failed:?}");
    }
    assert!(matches!(told.recv().unwrap(), Err(Error::Failing(_))));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(health.iter().take(2).collect::<Vec<_>>(), [true, false]);
    let page = store.list(wanted("before")).await.unwrap();
    let sessions: Vec<_> = page.sessions.iter().map(|it| (&it.id, &it.title)).collect();
    assert_eq!(sessions, [(&"s".to_owned(), &None)]);
    store.attempt("t", vec![fork, title]).await.unwrap();
    let session = store.open("t").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before", "meanwhile"]);
}

/// More than may wait.
const LARGE: usize = 65 * 1024 * 1024;

#[tokio::test]
async fn a_session_that_waits_for_too_much_is_refused_until_it_is_opened_anew() {
    let (_folder, path) = place();
    let store = start(&path);
    let large = said("a", &"x".repeat(LARGE), 1);
    // Nothing waits: it is taken.
    write(&store, "s", vec![create(1), large.clone()]).unwrap();
    // The disk takes nothing, so that it waits.
    let (healths, health) = mpsc::channel();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waits = write(&store, "s", vec![large.clone()]);
    assert!(matches!(waits, Err(Error::Failing(_))), "{waits:?}");
    for (session, changes) in [
        ("t", vec![create(1), large.clone()]),
        ("t", vec![said("a", "small", 1)]),
    ] {
        let told = write(&store, session, changes);
        assert!(told.is_err(), "{told:?}");
    }
    // The others have their room.
    let fits = write(&store, "u", vec![create(1), said("a", "small", 1)]);
    assert!(matches!(fits, Err(Error::Failing(_))), "{fits:?}");
    store.watch(move |health| healths.send(health == Health::Well).unwrap());
    other.execute_batch("ROLLBACK").unwrap();
    while !health.recv().unwrap() {}
    let messages = async |session: &str| {
        let session = store.open(session).await.unwrap()?;
        Some(
            session
                .conversations
                .iter()
                .map(|it| it.messages.len())
                .sum::<usize>(),
        )
    };
    assert_eq!(messages("s").await, Some(2));
    assert_eq!(messages("u").await, Some(1));
    let refused = write(&store, "t", vec![create(1)]);
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    // What needs nothing of that is taken, and what removes.
    let labels = Change::Labels(vec!["l".to_owned()]);
    store.attempt("t", vec![labels]).await.unwrap();
    let id = "r1".to_owned();
    write(&store, "t", vec![Change::Revoke { id }]).unwrap();
    assert_eq!(messages("t").await, None);
    write(&store, "t", vec![create(1), said("a", "small", 1)]).unwrap();
    assert_eq!(messages("t").await, Some(1));
}

#[test]
fn what_is_refused_is_answered_in_its_turn() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (answers, answered) = mpsc::channel();
    let large = vec![said("a", &"x".repeat(LARGE), 1)];
    for (name, changes) in [
        ("waits", large.clone()),
        ("refused", large),
        ("after", vec![said("a", "small", 1)]),
    ] {
        let answers = answers.clone();
        let told = move |_| answers.send(name).unwrap();
        store.write("s", changes, Box::new(told));
    }
    let order: Vec<_> = answered.iter().take(3).collect();
    assert_eq!(order, ["waits", "refused", "after"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_moved_away_is_waited_for() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let (healths, told) = mpsc::channel();
    store.watch(move |health| healths.send(health != Health::Well).unwrap());
    let elsewhere = path.with_file_name("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    for _ in 0..2 {
        let failing = write(&store, "s", vec![said("a", "meanwhile", 2)]).unwrap_err();
        assert!(failing.to_string().contains("put it back"), "{failing}");
        // Not even an empty one is made, and one of somebody else's is left alone.
        std::fs::write(&path, "").unwrap();
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    std::fs::rename(&elsewhere, &path).unwrap();
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [true, false]);
    write(&store, "s", vec![said("a", "after", 3)]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    let expected = ["before", "meanwhile", "meanwhile", "after"];
    assert_eq!(texts(&session, "a"), expected);
}

#[tokio::test]
async fn a_file_that_was_emptied_is_told_and_its_log_of_changes_is_left() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    std::fs::write(&path, "").unwrap();
    let failing = write(&store, "s", vec![said("a", "after", 2)]).unwrap_err();
    assert!(failing.to_string().contains("it was emptied"), "{failing}");
    store.close().await.unwrap_err();
    let log = std::fs::metadata(path.with_file_name("outrigger.db-wal")).unwrap();
    assert!(log.len() > 0);
}

#[tokio::test]
async fn a_damaged_file_says_what_to_do() {
    let (_folder, path) = place();
    let store = start(&path);
    let text = "word ".repeat(10_000);
    write(&store, "s", vec![create(1), said("a", &text, 1)]).unwrap();
    store.close().await.unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xAA);
    std::fs::write(&path, bytes).unwrap();
    let store = restart(&path);
    let damaged = store.open("s").await.unwrap_err();
    assert!(matches!(damaged, Error::Failing(_) | Error::Corrupt { .. }));
    assert!(damaged.to_string().contains(".recover"), "{damaged}");
}

#[tokio::test]
async fn a_damaged_body_costs_itself_only() {
    let (_folder, path) = place();
    let store = start(&path);
    let long = "word ".repeat(1_000);
    let changes = [
        said("a", "first", 1),
        said("a", &long, 2),
        said("a", "last", 3),
    ];
    write(&store, "s", [vec![create(1)], changes.into()].concat()).unwrap();
    let other = Connection::open(&path).unwrap();
    let spoil = "UPDATE body SET data = zeroblob(9) WHERE deflated";
    assert_eq!(other.execute(spoil, []).unwrap(), 1);
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["first", "", "last"]);
    assert_eq!(found(&store, "word").await, ["s"]);
}

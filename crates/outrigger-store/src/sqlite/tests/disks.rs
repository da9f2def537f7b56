//! Disks that are full, read-only, slow or another machine's, and how long the log of changes gets.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// A file system of the test's own.
struct Disk(tempfile::TempDir);

impl Disk {
    /// Mounts one of so many MiB; says so where it cannot.
    fn mount(test: &str, mib: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mounted = mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], folder.path());
        if !mounted {
            println!(
                "*** SKIPPED: {test}: no file system can be mounted here, which takes root ***"
            );
        }
        mounted.then_some(Self(folder))
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("state/outrigger.db")
    }

    /// Lets nobody write any more, or again; waits for who has a file open.
    fn may_be_written(&self, may: bool) {
        let how = if may { "remount,rw" } else { "remount,ro" };
        let is_done = (0..1_000).any(|_| mount(&["-o", how], self.0.path()));
        assert!(is_done, "{how}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut command = Command::new("umount");
        command.arg("--lazy").arg(self.0.path()).status().ok();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let mut command = Command::new("mount");
    let command = command.args(arguments).arg(at).stderr(Stdio::null());
    command.status().is_ok_and(|it| it.success())
}

/// A message with so many bytes that cannot be packed, unlike those of other numbers.
fn large(number: u8, bytes: usize) -> Change {
    let mut message = message("large", 1);
    message.body.attachments.push(Attachment {
        hash: [number; 32],
        bytes: vec![number; bytes],
    });
    Change::Message {
        conversation: "a".to_owned(),
        message,
    }
}

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_full_disk_is_told_and_heals() {
    let Some(disk) = Disk::mount("a full disk", 4) else {
        return;
    };
    let store = start(&disk.store());
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let (healths, told) = mpsc::channel();
    store.watch(move |health| healths.send(health != Health::Well).unwrap());
    let filler = disk.0.path().join("filler");
    // As far as it goes: the disk is full then.
    std::fs::write(&filler, vec![0; 8 * MIB]).unwrap_err();
    for text in ["meanwhile", "and then"] {
        let failing = write(&store, "s", vec![said("a", text, 2), large(1, MIB)]);
        let failing = failing.unwrap_err();
        assert!(matches!(failing, Error::Failing(_)), "{failing}");
        assert!(failing.to_string().contains("full"), "{failing}");
    }
    // What is there is found, also where others take all room that is left.
    let mut rest = std::fs::File::create(disk.0.path().join("rest")).unwrap();
    while rest.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    assert_eq!(found(&store, "before").await, ["s"]);
    std::fs::remove_file(disk.0.path().join("rest")).unwrap();
    std::fs::remove_file(filler).unwrap();
    assert_eq!([told.recv().unwrap(), told.recv().unwrap()], [true, false]);
    let session = store.open("s").await.unwrap().unwrap();
    let expected = ["before", "meanwhile", "large", "and then", "large"];
    assert_eq!(texts(&session, "a"), expected);
}

#[tokio::test]
async fn a_read_only_disk_is_told_and_what_is_there_is_kept() {
    let Some(disk) = Disk::mount("a read-only disk", 4) else {
        return;
    };
    let store = start(&disk.store());
    write(&store, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    store.close().await.unwrap();
    drop(store);
    disk.may_be_written(false);
    // Nothing that could be written is kept, which whoever starts it is told.
    let refused = Sqlite::start(&disk.store(), Sync::Full).unwrap_err();
    assert!(matches!(refused, Error::Open { .. }), "{refused}");
    assert!(refused.to_string().contains("Read-only"), "{refused}");
    disk.may_be_written(true);
    let store = restart(&disk.store());
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_may_not_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, path) = place();
    let folder = path.parent().unwrap();
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    store.close().await.unwrap();
    drop(store);
    std::fs::remove_file(path.with_file_name("outrigger.db.lock")).ok();
    let mode = |mode| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode));
    mode(0o500).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        mode(0o700).unwrap();
        println!("*** SKIPPED: a folder that may not be written: modes do not hold root ***");
        return;
    }
    let refused = Sqlite::start(&path, Sync::Full).unwrap_err();
    mode(0o700).unwrap();
    assert!(matches!(refused, Error::Open { .. }), "{refused}");
}

#[tokio::test]
async fn without_shared_memory_there_is_no_log_of_changes() {
    let (_folder, path) = place();
    // As on a disk of this machine, on one of another, and back.
    for (round, is_foreign) in (1..).zip([false, true, true, false]) {
        let store = loop {
            match Sqlite::begin(&path, Sync::Full, |_| is_foreign) {
                Err(Error::InUse { .. }) => std::thread::yield_now(),
                begun => break begun.unwrap(),
            }
        };
        write(&store, "s", vec![create(1), said("a", "word", 1)]).unwrap();
        for part in ["outrigger.db-wal", "outrigger.db-shm"] {
            assert_eq!(path.with_file_name(part).exists(), !is_foreign, "{part}");
        }
        let session = store.open("s").await.unwrap().unwrap();
        assert_eq!(texts(&session, "a").len(), round);
        assert_eq!(found(&store, "word").await, ["s"]);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn the_log_of_changes_is_cut_once_a_slow_reader_has_ended() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    let slow = Connection::open(&path).unwrap();
    slow.execute_batch("BEGIN").unwrap();
    let count = "SELECT count(*) FROM message";
    let count = || {
        slow.query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(count(), 0);
    for number in 0..20 {
        write(&store, "s", vec![large(number, 4 * MIB)]).unwrap();
    }
    let log = path.with_file_name("outrigger.db-wal");
    let bytes = || std::fs::metadata(&log).unwrap().len();
    assert!(bytes() > 64 * MIB as u64, "{}", bytes());
    // A flush comes after what was looked at behind the commit before.
    store.flush().await.unwrap();
    assert_eq!(store.log_bytes(), bytes());
    assert_eq!(count(), 0, "it sees what was there when it began");
    slow.execute_batch("COMMIT").unwrap();
    // By itself, though nothing is written any more.
    let mut looks = tokio::time::interval(Duration::from_millis(2));
    while bytes() > 0 {
        looks.tick().await;
    }
    assert_eq!(store.stats().await.unwrap().messages, 20);
}

#[tokio::test]
async fn the_log_of_changes_stays_short_where_nobody_holds_it() {
    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    for number in 0..20 {
        write(&store, "s", vec![large(number, 4 * MIB)]).unwrap();
        store.flush().await.unwrap();
        assert!(store.log_bytes() < 64 * MIB as u64);
    }
}

#[tokio::test]
async fn a_picture_is_kept_once_however_often_it_is_said() {
    let (_folder, path) = place();
    let store = start(&path);
    for session in ["x", "y", "z"] {
        let said = std::iter::repeat_n(large(1, MIB), 10);
        write(
            &store,
            session,
            [create(1)].into_iter().chain(said).collect(),
        )
        .unwrap();
    }
    let fork = Change::Fork {
        from: "x".to_owned(),
        part: None,
        at_ms: 2,
    };
    write(&store, "fork", vec![fork]).unwrap();
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.messages, stats.attachments), (40, 1));
    store.close().await.unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 2 * MIB as u64, "{bytes}");
}

#[tokio::test]
async fn a_message_costs_the_same_in_a_long_conversation_and_so_does_a_fork() {
    let (_folder, path) = place();
    let store = start(&path);
    // Words that cannot be packed away: a kilobyte each.
    let text = |number: u64| {
        let words = (number * 100..number * 100 + 100).map(|it| {
            let scattered = it.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            format!("{:09x}", scattered >> 28)
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let many = (0..5_000).map(|number| said("a", &text(number), 1));
    write(&store, "s", [create(1)].into_iter().chain(many).collect()).unwrap();
    let grown = async |session: &str, change: Change| {
        store.flush().await.unwrap();
        let before = store.log_bytes();
        write(&store, session, vec![change]).unwrap();
        store.flush().await.unwrap();
        store.log_bytes() - before
    };
    let message = grown("s", said("a", &text(5_000), 2)).await;
    assert!(message < 256 * 1024, "{message}");
    let fork = Change::Fork {
        from: "s".to_owned(),
        part: None,
        at_ms: 2,
    };
    let fork = grown("fork", fork).await;
    // Rows that name bodies: some tens of bytes for each message, of half a thousand that it has.
    assert!(fork < 1024 * 1024, "{fork}");
}

#[tokio::test]
async fn a_list_touches_no_bodies() {
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

    let (_folder, path) = place();
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "words", 1)]).unwrap();
    let mut reader = reader(&path).unwrap();
    let refuse = |context: AuthContext<'_>| match context.action {
        AuthAction::Read {
            table_name: "body" | "message" | "attachment" | "attached" | "call" | "file_change",
            ..
        } => Authorization::Deny,
        _ => Authorization::Allow,
    };
    reader.authorizer(Some(refuse)).unwrap();
    let all = Listing {
        limit: 50,
        ..Listing::default()
    };
    assert_eq!(
        read::list(&reader, Whose::Everybodys, &all)
            .unwrap()
            .sessions
            .len(),
        1
    );
    read::list(&reader, Whose::Everybodys, &wanted("words")).unwrap_err();
}

#[test]
fn an_error_of_the_disk_says_which_one() {
    for (code, expected) in [
        (rusqlite::ffi::SQLITE_FULL, "database or disk is full"),
        (
            rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
            "disk I/O error (SQLite's extended code 4874)",
        ),
    ] {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let problem = writer::problem(Path::new("x"), &error);
        assert!(problem.to_string().contains(expected), "{problem}");
    }
}

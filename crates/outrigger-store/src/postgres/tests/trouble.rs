//! A server that is away, connections that are cut, and more than one process.

use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;

use super::*;

/// A server of its own, which may be ended.
fn own_server() -> Option<(servers::Server, String)> {
    servers::shared()?;
    let server = servers::Server::start()?;
    let database = server.database();
    Some((server, database))
}

/// Writes numbered messages of some sessions, one after the other, until it is told to stop; returns those that were
/// acknowledged, and how many there are, which are all kept sooner or later.
fn talk(store: &Postgres, stop: &mpsc::Receiver<()>) -> (Vec<usize>, usize) {
    let (done, acknowledged) = mpsc::channel();
    let mut number = 0;
    while stop.try_recv().is_err() {
        let done = done.clone();
        let told = move |result: Result<(), Error>| {
            if result.is_ok() {
                done.send(number).unwrap();
            }
        };
        let changes = vec![create(1), said("a", &format!("{number}"), 1)];
        store.write(&format!("s{}", number % 3), changes, Box::new(told));
        number += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(done);
    (acknowledged.iter().collect(), number)
}

/// Looks that each of the numbered messages is there once, and in order.
async fn assert_whole(store: &Postgres, all: usize) {
    for session in 0..3 {
        let kept = store.open(&format!("s{session}")).await.unwrap().unwrap();
        let expected = (session..all).step_by(3).map(|it| it.to_string());
        assert_eq!(texts(&kept, "a"), expected.collect::<Vec<_>>());
    }
}

/// Talks while the server is restarted, and looks that all is kept once and in order; returns how many messages were
/// acknowledged, and how many there are. `None` where there is no server.
async fn talk_while_the_server_is_restarted(node: &Node) -> Option<(usize, usize)> {
    let (mut server, database) = own_server()?;
    let store = Postgres::start(&server.url("tester", &database), node).unwrap();
    let (stop, stopped) = mpsc::channel();
    let talking = store.clone();
    let talk = std::thread::spawn(move || talk(&talking, &stopped));
    for _ in 0..3 {
        wait_until(|| store.failing().is_none());
        std::thread::sleep(Duration::from_millis(300));
        server.stop();
        wait_until(|| store.failing().is_some());
        server.go_on();
    }
    wait_until(|| store.failing().is_none());
    stop.send(()).unwrap();
    store.flush().await.unwrap();
    let (acknowledged, all) = talk.join().unwrap();
    assert_whole(&store, all).await;
    Some((acknowledged.len(), all))
}

#[tokio::test]
async fn each_change_is_kept_once_and_in_order_while_the_server_is_restarted() {
    if let Some((acknowledged, all)) = talk_while_the_server_is_restarted(&Node::default()).await {
        assert!(acknowledged > 10 && acknowledged < all);
    }
}

#[tokio::test]
async fn one_of_several_processes_is_told_of_no_change_before_it_is_safe() {
    let node = Node {
        is_one_of_several: true,
        ..Node::default()
    };
    if let Some((acknowledged, all)) = talk_while_the_server_is_restarted(&node).await {
        assert_eq!(acknowledged, all, "each was safe when it was told");
    }
}

#[tokio::test]
async fn each_change_is_kept_once_and_in_order_while_connections_are_cut() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    let (stop, stopped) = mpsc::channel();
    let talking = store.clone();
    let talk = std::thread::spawn(move || talk(&talking, &stopped));
    let (mut failures, mut cut) = (0, 0);
    while failures < 5 {
        wait_until(|| store.failing().is_none());
        let killed = place.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        cut += killed.parse::<usize>().unwrap();
        wait_until(|| store.failing().is_some() || cut > 1_000);
        failures += 1;
    }
    wait_until(|| store.failing().is_none());
    stop.send(()).unwrap();
    let (_, all) = talk.join().unwrap();
    store.flush().await.unwrap();
    assert_whole(&store, all).await;
}

/// A way to the server that can be cut on this side alone: the server goes on with what it was told.
struct Wire {
    url: String,
    _folder: tempfile::TempDir,
    ends: Arc<Mutex<Vec<(UnixStream, UnixStream)>>>,
}

impl Wire {
    fn to(place: &Place) -> Self {
        const NAME: &str = ".s.PGSQL.5432";
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string().replace('/', "%2F");
        let there = place.server.folder().join(NAME);
        let listener = UnixListener::bind(folder.path().join(NAME)).unwrap();
        let ends = Arc::<Mutex<Vec<_>>>::default();
        let all = Arc::clone(&ends);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&there).unwrap());
                let twice = || (client.try_clone().unwrap(), server.try_clone().unwrap());
                let ((mut from, mut to), (mut back, mut answers)) = (twice(), twice());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
                all.lock().push((client, server));
            }
        });
        Self {
            url: format!("postgres://tester@{here}/{}", place.database),
            _folder: folder,
            ends,
        }
    }

    fn cut(&self) {
        for (client, _) in &*self.ends.lock() {
            client.shutdown(Shutdown::Both).ok();
        }
    }
}

#[tokio::test]
async fn a_commit_of_which_nobody_knows_is_not_made_twice() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let wire = Wire::to(&place);
    let store = Postgres::start(&wire.url, &Node::default()).unwrap();
    write(&store, "s", vec![create(1)]).unwrap();
    // The server takes two seconds for each commit that adds a message, in which its connection is cut: it goes on with it
    // and answers nobody.
    place.sql(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON message DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let once = store.attempt("s", vec![said("a", "once", 2)]);
    let (done, _told) = mpsc::channel();
    store.write(
        "s",
        vec![said("a", "long", 3)],
        Box::new(move |it| drop(done.send(it))),
    );
    let state = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%COMMIT' AND state = 'active'";
    wait_until(|| place.sql(state) == "1");
    wire.cut();
    place.sql("DROP TRIGGER slow ON message");
    assert_eq!(
        once.await,
        Ok(()),
        "it was committed, and that is found out"
    );
    wait_until(|| store.failing().is_none());
    store.flush().await.unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["once", "long"]);
}

#[tokio::test]
async fn a_process_that_was_taken_for_dead_writes_nothing_any_more() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let first = start(&place);
    write(&first, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    // As after a pause of the whole machine: its time is over, and it does not know.
    place.sql("UPDATE node SET expires = '-infinity'");
    let second = start(&place);
    write(&second, "s", vec![said("a", "after", 2)]).unwrap();
    let stale = write(&first, "s", vec![said("a", "stale", 3)]);
    assert!(matches!(stale, Err(Error::Taken { .. })), "{stale:?}");
    let said_of_it = stale.unwrap_err().to_string();
    assert!(said_of_it.contains("was taken for dead"));
    for _ in 0..2 {
        assert!(matches!(first.flush().await, Err(Error::Taken { .. })));
        assert!(matches!(first.open("s").await, Err(Error::Taken { .. })));
        let tried = first.attempt("s", vec![said("a", "stale", 3)]).await;
        assert!(matches!(tried, Err(Error::Taken { .. })));
        let import = Box::new([Ok(create(1))].into_iter());
        assert!(matches!(
            first.import("new", import).await,
            Err(Error::Taken { .. })
        ));
    }
    first.close().await.unwrap_err();
    assert!(first.failing().is_some());
    let session = second.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before", "after"]);
}

#[tokio::test]
async fn nothing_is_seen_or_left_of_an_import_whose_process_is_taken_for_dead() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let first = suite::import::with_one(&place);
    let before = suite::import::rows(&place);
    let (other, second) = (place.clone(), Arc::<Mutex<Option<Postgres>>>::default());
    let started = Arc::clone(&second);
    let meanwhile = move |number| {
        if number == suite::import::MESSAGES - 1 {
            assert_eq!(count(&other, "any_session"), 2);
            other.sql("UPDATE node SET expires = '-infinity'");
            *started.lock() = Some(start(&other));
        }
        None
    };
    let broken = first.import("new", suite::import::changes(meanwhile)).await;
    assert!(matches!(broken, Err(Error::Taken { .. })), "{broken:?}");
    let second = second.lock().take().unwrap();
    assert!(!second.has("new").await.unwrap());
    assert_eq!(second.open("new").await, Ok(None));
    second.close().await.unwrap();
    assert_eq!(suite::import::rows(&place), before);
}

#[test]
fn processes_make_the_schema_at_once() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let place = place.clone();
            std::thread::spawn(move || start(&place))
        })
        .collect();
    let started: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(place.sql("SELECT version FROM schema"), SCHEMA.to_string());
    assert_eq!(check_up(&place.url()).unwrap().nodes.len(), started.len());
}

#[test]
fn a_newer_database_is_refused_and_left_as_it_is() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    drop(start(&place));
    place.sql("UPDATE schema SET version = 99");
    let refused = Postgres::start(&place.url(), &Node::default()).unwrap_err();
    assert!(
        matches!(refused, Error::Newer { found: 99, .. }),
        "{refused:?}"
    );
    let refused = check_up(&place.url()).unwrap_err();
    assert!(
        matches!(refused, Error::Newer { found: 99, .. }),
        "{refused:?}"
    );
    assert_eq!(place.sql("SELECT version FROM schema"), "99");
}

#[test]
fn what_is_said_of_a_server_that_does_not_let_in_has_no_password() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let server = place.server;
    drop(
        Postgres::start(
            &server.url("careful:right", &place.database),
            &Node::default(),
        )
        .unwrap(),
    );
    for url in [
        server.url("careful:wr0ng", &place.database),
        server.url("tester:wr0ng", "none"),
        "postgres://tester:wr0ng@127.0.0.1:1/none".to_owned(),
        "postgres://tester:wr0ng@does-not-exist.invalid/none?sslmode=disable".to_owned(),
    ] {
        let refused = Postgres::start(&url, &Node::default()).unwrap_err();
        assert!(matches!(refused, Error::Open { .. }), "{refused:?}");
        assert!(!refused.to_string().contains("wr0ng"), "{refused}");
        assert!(!format!("{refused:?}").contains("wr0ng"));
        assert!(!refused.to_string().contains("careful"), "{refused}");
    }
    let refused = Postgres::start(
        &server.url("careful:wr0ng", &place.database),
        &Node::default(),
    );
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("password authentication failed"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_change_that_is_wrong_takes_no_other_one_with_it() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    let rule = || {
        Change::Rule(crate::Rule {
            id: "r".to_owned(),
            owner: crate::Owner::None,
            rule: "{}".to_owned(),
        })
    };
    write(&store, "s", vec![create(1), rule()]).unwrap();
    let (done, told) = mpsc::channel();
    for (name, session, changes) in [
        ("before", "s", vec![said("a", "before", 2)]),
        ("wrong", "s", vec![said("a", "wrong", 2), rule()]),
        ("other", "t", vec![create(1), said("a", "other\0", 2)]),
    ] {
        let done = done.clone();
        let tell = move |result: Result<(), Error>| done.send((name, result.is_ok())).unwrap();
        store.write(session, changes, Box::new(tell));
    }
    let told: Vec<_> = told.iter().take(3).collect();
    assert_eq!(told, [("before", true), ("wrong", false), ("other", true)]);
    let session = store.open("t").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["other\0"]);
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before"]);
    assert_eq!(store.failing(), None);
}

#[test]
fn a_database_is_looked_at_beside_who_has_it() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let empty = check_up(&place.url()).unwrap();
    assert_eq!((empty.schema, empty.nodes), (None, Vec::new()));
    let store = start(&place);
    let found = check_up(&place.url()).unwrap();
    assert_eq!(found.schema, Some(SCHEMA));
    assert_eq!(found.nodes.len(), 1);
    assert!(found.nodes[0].contains(&std::process::id().to_string()));
    assert_eq!(found.shown, store.shown());
    assert!(!found.server.is_empty() && found.bytes > 0);
}

//! The lease where clocks, hands and long transactions are against it.

use std::sync::mpsc;

use super::*;
use crate::{ToolCall, User};

const SHORT: Duration = Duration::from_secs(3);

/// Starts a process of this name, to which clients are passed on at an address.
fn named(place: &Place, name: &str) -> Postgres {
    let node = Node {
        name: Some(name.to_owned()),
        url: Some(format!("http://{name}:1")),
        is_one_of_several: true,
    };
    Postgres::start(&place.url(), &node).unwrap()
}

fn is_free(place: &Place, session: &str) -> bool {
    place.sql(&format!(
        "SELECT node IS NULL FROM any_session WHERE id = '{session}'"
    )) == "t"
}

fn has_sessions(place: &Place, node: &str) -> String {
    place.sql(&format!(
        "SELECT any_session.id FROM any_session JOIN node ON node.id = any_session.node WHERE name = '{node}' ORDER BY 1"
    ))
}

/// Fails as a session does that another process has.
fn elsewhere(result: Result<(), Error>, at: &str) {
    match result {
        Err(Error::Elsewhere { node, url, .. }) if node == at => {
            assert_eq!(url, Some(format!("http://{at}:1")));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_is_one_processes_until_nobody_has_it_open_there() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (one, two) = (named(&place, "one"), named(&place, "two"));
    let held = one.hold("s");
    write(&one, "s", vec![create(1), said("a", "of one", 1)]).unwrap();
    let theirs = two.hold("t");
    write(&two, "t", vec![create(1), said("a", "of two", 1)]).unwrap();
    // It is seen by both, and written by one.
    for store in [&one, &two] {
        assert_eq!(found(store, "of").await, ["t", "s"]);
    }
    elsewhere(two.open("s").await.map(drop), "one");
    let delete = two.attempt("s", vec![Change::Delete]).await;
    elsewhere(delete, "one");
    let wanted = two.hold("s");
    elsewhere(write(&two, "s", vec![said("a", "stolen", 2)]), "one");
    assert_eq!(two.not_kept(), ["s"]);
    // Once nobody has it there it is none of that process's.
    drop(wanted);
    wait_until(|| two.not_kept().is_empty());
    write(&one, "s", vec![said("a", "more of one", 2)]).unwrap();
    drop(held);
    wait_until(|| is_free(&place, "s"));
    let held = two.hold("s");
    let session = two.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["of one", "more of one"]);
    write(&two, "s", vec![said("a", "now of two", 3)]).unwrap();
    elsewhere(one.open("s").await.map(drop), "two");
    drop((held, theirs));
}

#[tokio::test]
async fn what_one_process_wrote_in_a_session_that_nobody_has_open_is_free_for_the_next() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (one, two) = (named(&place, "one"), named(&place, "two"));
    write(&one, "s", vec![create(1)]).unwrap();
    wait_until(|| is_free(&place, "s"));
    two.attempt("s", vec![Change::Project(None)]).await.unwrap();
    wait_until(|| is_free(&place, "s"));
    one.attempt("s", vec![Change::Delete]).await.unwrap();
    assert!(!two.has("s").await.unwrap());
}

#[tokio::test]
async fn the_sessions_of_a_dead_process_are_taken_when_its_time_is_over() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let dead = named(&place, "dead");
    let _held = dead.hold("s");
    let call = ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: "{}".to_owned(),
        result: None,
    };
    write(
        &dead,
        "s",
        vec![create(1), said("a", "before", 1), stands(call)],
    )
    .unwrap();
    let next = named(&place, "next");
    let Err(Error::Elsewhere { left, .. }) = next.open("s").await else {
        panic!("it is the other one's");
    };
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
    place.sql("UPDATE node SET expires = '-infinity' WHERE name = 'dead'");
    let session = next.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before"]);
    assert_eq!(place.sql("SELECT status, result FROM call"), "error|");
    assert_eq!(has_sessions(&place, "next"), "s");
    let stale = write(&dead, "s", vec![said("a", "stale", 2)]);
    assert!(matches!(stale, Err(Error::Taken { .. })), "{stale:?}");
}

#[tokio::test]
async fn a_process_has_the_sessions_of_the_one_of_its_name_at_once() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let before = named(&place, "one");
    let _held = before.hold("s");
    write(&before, "s", vec![create(1), said("a", "before", 1)]).unwrap();
    let after = named(&place, "one");
    let session = after.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before"]);
    let stale = write(&before, "s", vec![said("a", "stale", 2)]);
    assert!(matches!(stale, Err(Error::Taken { .. })), "{stale:?}");
}

#[tokio::test]
async fn one_of_many_that_want_a_free_session_has_it() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let stores: Vec<_> = (0..4).map(|_| start(&place)).collect();
    for round in 0..20 {
        let id = format!("s{round}");
        write(&stores[0], &id, vec![create(1)]).unwrap();
        wait_until(|| is_free(&place, &id));
        let held: Vec<_> = stores.iter().map(|store| store.hold(&id)).collect();
        let opened = futures::future::join_all(stores.iter().map(|store| store.open(&id))).await;
        let have = opened.iter().filter(|it| matches!(it, Ok(Some(_)))).count();
        assert_eq!(have, 1, "{opened:?}");
        let others = opened
            .iter()
            .filter(|it| matches!(it, Err(Error::Elsewhere { .. })));
        assert_eq!(others.count(), 3, "{opened:?}");
        drop(held);
    }
}

#[tokio::test]
async fn a_user_takes_no_session_of_another_one() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (one, two) = (named(&place, "one"), named(&place, "two"));
    let [anna, ben] = [one.of(&User::new("anna")), two.of(&User::new("ben"))];
    let _held = anna.hold("s");
    write(&anna, "s", vec![create(1), said("a", "hers", 1)]).unwrap();
    assert_eq!(ben.open("s").await, Ok(None));
    ben.attempt("s", vec![Change::Delete]).await.unwrap();
    place.sql("UPDATE node SET expires = '-infinity' WHERE name = 'one'");
    assert_eq!(ben.open("s").await, Ok(None));
    // Nor was the other process taken for dead for that.
    write(&anna, "s", vec![said("a", "hers, too", 2)]).unwrap();
    assert_eq!(has_sessions(&place, "one"), "s");
}

#[tokio::test]
async fn limits_delete_no_session_that_another_process_has() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (one, two) = (named(&place, "one"), named(&place, "two"));
    let _held = one.hold("old");
    write(&one, "old", vec![create(1)]).unwrap();
    write(&one, "older", vec![create(0)]).unwrap();
    wait_until(|| is_free(&place, "older"));
    let (tell, told) = mpsc::channel();
    let limits = Limits {
        keep: Some(Duration::from_secs(60 * 60)),
        max_bytes: None,
    };
    two.limit(limits, move |growth| {
        if let Growth::Deleted { session, .. } = growth {
            tell.send(session).unwrap();
        }
    });
    assert_eq!(
        told.recv_timeout(Duration::from_secs(60)),
        Ok("older".to_owned())
    );
    two.flush().await.unwrap();
    wait_until(|| place.sql("SELECT count(*) FROM any_session") == "1");
    assert!(told.try_recv().is_err());
    assert!(one.has("old").await.unwrap());
}

#[tokio::test]
async fn what_sessions_of_two_processes_share_goes_with_the_last_one() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let (one, two) = (named(&place, "one"), named(&place, "two"));
    let picture = || {
        let mut said = message("look", 1);
        said.body.attachments.push(crate::Attachment {
            hash: [7; 32],
            bytes: vec![1; 100],
        });
        Change::Message {
            conversation: "a".to_owned(),
            message: said,
        }
    };
    // They come and go at once, and share a picture: no order of the two loses one that is said, or leaves one that is not.
    let again = |store: Postgres, name: &'static str| async move {
        for round in 0..40 {
            let id = format!("{name}{round}");
            let held = store.hold(&id);
            store
                .attempt(&id, vec![create(1), picture()])
                .await
                .unwrap();
            let kept = store.open(&id).await.unwrap().unwrap();
            let attached = &kept.conversations[0].messages[0].body.attachments;
            assert_eq!(attached.len(), 1, "{id}");
            store.attempt(&id, vec![Change::Delete]).await.unwrap();
            drop(held);
        }
    };
    futures::join!(again(one.clone(), "x"), again(two.clone(), "y"));
    for table in ["any_session", "body", "attachment", "attached"] {
        assert_eq!(count(&place, table), 0, "{table}");
    }
    // The same of a fork, which shares what is said.
    write(&one, "s", vec![create(1), picture()]).unwrap();
    let fork = Change::Fork {
        from: "s".to_owned(),
        part: None,
        at_ms: 2,
    };
    two.attempt("t", vec![fork]).await.unwrap();
    let delete = |store: &Postgres, id: &str| store.attempt(id, vec![Change::Delete]);
    let (first, second) = futures::join!(delete(&one, "s"), delete(&two, "t"));
    first.and(second).unwrap();
    for table in ["any_session", "body", "attachment"] {
        assert_eq!(count(&place, table), 0, "{table}");
    }
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_is_told_before_it_ends_and_is_well_again_after() {
    let Some((server, database)) = servers::shared().and_then(|_| {
        let server = servers::Server::start()?;
        let database = server.database();
        Some((server, database))
    }) else {
        return;
    };
    let url = server.url("tester", &database);
    let store = Postgres::begin(&url, &Node::default(), SHORT).unwrap();
    write(&store, "s", vec![create(1)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.watch(move |health| {
        let word = match health {
            Health::Failing(_) => "failing",
            Health::Lapsing => "lapsing",
            Health::Well => "well",
            _ => "other",
        };
        tell.send(word).unwrap();
    });
    server.hang();
    let next = || told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!((next(), next()), ("failing", "lapsing"));
    // What began meanwhile has to end, too.
    assert_eq!(next(), "lapsing");
    server.answer();
    let after = std::iter::repeat_with(next).find(|word| *word != "lapsing");
    assert_eq!(after, Some("well"));
    assert_eq!(store.lease().lapses, 1, "it is one");
    // Nobody wanted its sessions meanwhile: they are its own still.
    write(&store, "s", vec![said("a", "after", 2)]).unwrap();
}

#[test]
fn a_process_of_an_older_version_has_to_end_first() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    place.sql(&format!(
        "SET ROLE plain; CREATE SCHEMA outrigger; SET search_path = outrigger; CREATE TABLE schema (version BIGINT NOT NULL); \
         INSERT INTO schema VALUES (2); {} {} INSERT INTO lease VALUES ('all', 'the old one', 1, 1, now() + interval '1 day')",
        include_str!("../1.sql"),
        include_str!("../2.sql")
    ));
    let refused = Postgres::start(&place.url(), &Node::default()).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.contains("the old one has it, which is of an older version"),
        "{refused}"
    );
    place.sql("UPDATE lease SET expires = '-infinity'");
    drop(start(&place));
}

#[tokio::test]
async fn the_loss_of_the_lease_is_told_once_though_the_store_was_failing_before() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = start(&place);
    write(&store, "s", vec![create(1)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.watch(move |health| {
        let word = match health {
            Health::Failing(_) => "failing",
            Health::Well => "well",
            Health::Ended(Error::Taken { .. }) => "taken",
            _ => "other",
        };
        tell.send(word).unwrap();
    });
    place.sql("ALTER TABLE message RENAME at_ms TO at_another");
    write(&store, "s", vec![said("a", "lost", 1)]).unwrap_err();
    assert_eq!(told.recv(), Ok("failing"));
    place.sql("DELETE FROM node");
    assert_eq!(told.recv(), Ok("taken"));
    assert!(matches!(store.ended(), Some(Error::Taken { .. })));
    assert_eq!(store.not_kept(), ["s"]);
    write(&store, "t", vec![create(1)]).unwrap_err();
    store.flush().await.unwrap_err();
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_transaction_that_takes_long_does_not_cost_the_lease() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let store = Postgres::begin(&place.url(), &Node::default(), SHORT).unwrap();
    write(&store, "s", vec![create(1)]).unwrap();
    // As long as the lease, all but a little.
    place.sql(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2.8); RETURN NULL; END $$; \
         CREATE TRIGGER slow AFTER INSERT ON message FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    write(&store, "s", vec![said("a", "slow", 2)]).unwrap();
    let left = place.sql("SELECT expires > now() + interval '1 second' FROM node");
    assert_eq!(left, "t");
}

#[tokio::test]
async fn what_users_do_is_known_to_other_processes_as_long_as_theirs_lives() {
    let Some((_folder, place)) = temporary() else {
        return;
    };
    let stores = ["one", "two", "three"].map(|name| named(&place, name));
    let [one, two, three] = &stores;
    let users = ["anna", "ben", ""].map(User::new);
    let [anna, ben, nobody] = &users;
    let does = |sessions, exchanges, sends, seconds: Option<u64>| Activity {
        sessions,
        exchanges,
        sends,
        first_send: seconds.map(Duration::from_secs),
    };
    let known = async |store: &Postgres| {
        let mut known = store.activity(&users).await.unwrap();
        known.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        let seconds = known.iter_mut().map(|(user, it)| {
            it.first_send = it
                .first_send
                .map(|ago| Duration::from_secs(ago.as_secs() / 1000 * 1000));
            (user.clone(), *it)
        });
        seconds.collect::<Vec<_>>()
    };
    assert!(known(one).await.is_empty());
    let of_one = [
        (anna.clone(), does(1, 0, 2, Some(4_000))),
        (ben.clone(), does(1, 1, 0, None)),
    ];
    one.tell_activity(1, &of_one).await.unwrap();
    two.tell_activity(1, &[(anna.clone(), does(2, 1, 3, Some(9_000)))])
        .await
        .unwrap();
    three
        .tell_activity(1, &[(nobody.clone(), does(7, 0, 0, None))])
        .await
        .unwrap();
    let all = |of_anna: Activity| {
        vec![
            (nobody.clone(), does(7, 0, 0, None)),
            (anna.clone(), of_anna),
            (ben.clone(), does(1, 1, 0, None)),
        ]
    };
    assert_eq!(known(two).await, all(does(1, 0, 2, Some(4_000))));
    // What others do comes together; what one does itself is not among it.
    assert_eq!(
        known(three).await[0],
        (anna.clone(), does(3, 1, 5, Some(9_000)))
    );
    assert_eq!(known(three).await.len(), 2);
    assert!(one.activity(&[]).await.unwrap().is_empty());
    // What comes late does not count, and what was told since is not taken away.
    one.tell_activity(0, &[(ben.clone(), does(9, 9, 9, None))])
        .await
        .unwrap();
    one.end_activity(1, &[]).await.unwrap();
    assert_eq!(known(two).await, all(does(1, 0, 2, Some(4_000))));
    // Those who do nothing any more are not there.
    one.end_activity(2, std::slice::from_ref(ben))
        .await
        .unwrap();
    assert_eq!(
        known(three).await[0],
        (anna.clone(), does(2, 1, 3, Some(9_000)))
    );
    one.end_activity(3, &[]).await.unwrap();
    assert_eq!(known(three).await.len(), 1);
    // One that died does nothing, and one that was taken for dead says nothing more.
    let ends = "UPDATE node SET expires = '-infinity' WHERE name = 'three'";
    // It may renew its lease meanwhile.
    while !known(two).await.is_empty() {
        place.sql(ends);
    }
    place.sql("DELETE FROM node WHERE name = 'three'");
    assert_eq!(count(&place, "activity"), 1);
    let told = three
        .tell_activity(2, &[(ben.clone(), does(1, 0, 0, None))])
        .await;
    assert!(matches!(told, Err(Error::Failing(_))), "{told:?}");
    // The wall of its rows.
    let seen = "SET ROLE plain; SET outrigger.owner = 'ben'; SELECT count(*) FROM activity";
    assert_eq!(place.sql(seen), "0");
}

//! What every store does as its owner uses it: changes in, sessions out. Whoever includes it says where a store is
//! (`temporary`), how it is started there (`start`, `restart`) and looked into (`count`, `move_call_ahead`).

mod calls;
mod files;
mod fork;
pub(super) mod growth;
pub(super) mod import;
mod search;
mod usage;
mod users;

use std::sync::mpsc;

use super::{Kept, count, move_call_ahead, restart, start, temporary};
use crate::{
    Attachment, Body, CallFacts, Change, Changes, Cursor, Error, Exchange, Growth, Health, Limits,
    Listing, Message, Owner, Page, Queued, Rule, Sent, Session, Store as _, TitleBy, ToolCall,
};

/// Writes and waits until it is safe.
pub(super) fn write(store: &Kept, session: &str, changes: Vec<Change>) -> Result<(), Error> {
    let (done, result) = mpsc::channel();
    store.write(session, changes, Box::new(move |it| done.send(it).unwrap()));
    result.recv().unwrap()
}

pub(super) fn create(at_ms: i64) -> Change {
    Change::Create {
        project: Some("/work".to_owned()),
        at_ms,
    }
}

pub(super) fn message(text: &str, at_ms: i64) -> Message {
    Message {
        exchange: "m1".to_owned(),
        body: Body {
            text: text.to_owned(),
            words: text.to_owned(),
            attachments: Vec::new(),
        },
        at_ms,
    }
}

pub(super) fn said(conversation: &str, text: &str, at_ms: i64) -> Change {
    Change::Message {
        conversation: conversation.to_owned(),
        message: message(text, at_ms),
    }
}

pub(super) fn stands(call: ToolCall) -> Change {
    Change::Call {
        call,
        facts: CallFacts::default(),
    }
}

pub(super) fn texts(session: &Session, conversation: &str) -> Vec<String> {
    let mut found = session.conversations.iter();
    let found = found.find(|it| it.id == conversation);
    let messages = found.map(|it| it.messages.as_slice()).unwrap_or_default();
    messages.iter().map(|it| it.body.text.clone()).collect()
}

pub(super) fn wanted(query: &str) -> Listing {
    Listing {
        query: Some(query.to_owned()),
        limit: 50,
        ..Listing::default()
    }
}

pub(super) async fn found(store: &Kept, query: &str) -> Vec<String> {
    let page = store.list(wanted(query)).await.unwrap();
    page.sessions.into_iter().map(|it| it.id).collect()
}

#[tokio::test]
async fn what_was_written_is_read_after_a_restart() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let long = "word ".repeat(10_000);
    let exchange = Exchange {
        id: "m1".to_owned(),
        conversation: "a".to_owned(),
        began_ms: 5,
        end: None,
    };
    let call = ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: "{}".to_owned(),
        result: None,
    };
    let queued = Queued {
        id: "m2".to_owned(),
        conversation: "a".to_owned(),
        send: "{}".to_owned(),
    };
    let sent = Sent {
        id: "c1".to_owned(),
        digest: vec![1, 2],
        answer: "{}".to_owned(),
    };
    let attached = Attachment {
        hash: [7; 32],
        bytes: vec![1, 2, 3],
    };
    {
        let store = start(&path);
        let mut with_picture = message("look", 7);
        with_picture.body.attachments.push(attached.clone());
        write(
            &store,
            "s",
            vec![
                create(1),
                Change::Reserve { seq: 100, ids: 50 },
                Change::Settings("x".to_owned()),
                said("a", "hello", 5),
                said("a", &long, 6),
                Change::Message {
                    conversation: "b".to_owned(),
                    message: with_picture,
                },
                Change::Began(exchange.clone()),
                stands(call.clone()),
                Change::Queued(queued.clone()),
                Change::Sent(sent.clone()),
            ],
        )
        .unwrap();
    }
    let store = restart(&path);
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(session.epoch, 2);
    assert_eq!((session.seq, session.ids), (100, 50));
    assert_eq!(session.project.as_deref(), Some("/work"));
    assert_eq!(session.settings.as_deref(), Some("x"));
    assert_eq!(texts(&session, "a"), ["hello", &long]);
    let [_, b] = session.conversations.as_slice() else {
        panic!("two conversations");
    };
    assert_eq!(b.messages[0].body.attachments, [attached]);
    assert_eq!(session.exchanges, [exchange]);
    assert_eq!(session.calls, [call]);
    assert_eq!(session.queued, [queued]);
    assert_eq!(session.sent, [sent]);
    assert_eq!(store.open("s").await.unwrap().unwrap().epoch, 3);
    assert_eq!(store.open("other").await.unwrap(), None);
}

#[tokio::test]
async fn what_ends_replaces_what_was_written_before() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let began = |id: &str| {
        Change::Began(Exchange {
            id: id.to_owned(),
            conversation: "a".to_owned(),
            began_ms: 1,
            end: None,
        })
    };
    let call = |began, result: Option<&str>| ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began,
        record: "{}".to_owned(),
        result: result.map(str::to_owned),
    };
    let queued = Queued {
        id: "m2".to_owned(),
        conversation: "a".to_owned(),
        send: "{}".to_owned(),
    };
    let changes = vec![
        create(1),
        began("m1"),
        stands(call(false, None)),
        Change::Queued(queued),
        Change::Ended {
            id: "m1".to_owned(),
            conversation: "a".to_owned(),
            at_ms: 2,
            seq: 9,
            end: "end".to_owned(),
        },
        stands(call(true, Some("done"))),
        Change::Unqueued {
            id: "m2".to_owned(),
        },
    ];
    write(&store, "s", changes).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(session.exchanges[0].end, Some((9, "end".to_owned())));
    assert_eq!(session.calls, [call(true, Some("done"))]);
    assert!(session.queued.is_empty());
}

#[tokio::test]
async fn the_last_exchanges_are_remembered_and_all_that_run() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let ended = |number: i64| Change::Ended {
        id: format!("m{number}"),
        conversation: "a".to_owned(),
        at_ms: number,
        seq: 9,
        end: "end".to_owned(),
    };
    let runs = Change::Began(Exchange {
        id: "m0".to_owned(),
        conversation: "a".to_owned(),
        began_ms: 0,
        end: None,
    });
    let changes = [create(1), runs].into_iter().chain((1..=600).map(ended));
    write(&store, "s", changes.collect()).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    let ids: Vec<&str> = session.exchanges.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), 513);
    assert_eq!((ids[0], ids[1], ids[512]), ("m0", "m89", "m600"));
}

#[tokio::test]
async fn messages_are_removed_from_a_place_on_with_all_that_is_only_theirs() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let mut picture = message("look", 3);
    picture.body.attachments.push(Attachment {
        hash: [1; 32],
        bytes: vec![0; 100],
    });
    let picture = Change::Message {
        conversation: "a".to_owned(),
        message: picture,
    };
    let changes = vec![
        create(1),
        said("a", "first", 1),
        said("a", "second", 2),
        picture.clone(),
    ];
    write(&store, "s", changes).unwrap();
    let truncate = Change::Truncate {
        conversation: "a".to_owned(),
        from: 1,
    };
    write(&store, "s", vec![truncate, said("a", "other", 4)]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["first", "other"]);
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.messages, stats.attachments), (2, 0));
    assert!(found(&store, "second").await.is_empty());
    assert_eq!(found(&store, "other").await, ["s"]);

    let forget = Change::Forget {
        conversation: "a".to_owned(),
    };
    write(&store, "s", vec![picture, forget]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert!(session.conversations.is_empty());
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.messages, stats.attachments), (0, 0));
}

#[tokio::test]
async fn an_answer_goes_with_whose_it_is_or_stays_until_it_is_revoked() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let rule = |id: &str, owner| {
        Change::Rule(Rule {
            id: id.to_owned(),
            owner,
            rule: format!("rule {id}"),
        })
    };
    let revoke = |id: &str| Change::Revoke { id: id.to_owned() };
    let changes = vec![
        create(1),
        said("a", "one", 1),
        rule("r1", Owner::Conversation("a".to_owned())),
        rule("r2", Owner::Conversation("b".to_owned())),
        rule("r3", Owner::Session),
        rule("r4", Owner::None),
        rule("r5", Owner::None),
    ];
    {
        let store = start(&path);
        write(&store, "s", changes).unwrap();
    }
    let store = restart(&path);
    let texts =
        |rules: Vec<(String, String)>| rules.into_iter().map(|(_, rule)| rule).collect::<Vec<_>>();
    let of = async |session: &str| texts(store.open(session).await.unwrap().unwrap().rules);
    assert_eq!(of("s").await, ["rule r1", "rule r2", "rule r3"]);
    assert_eq!(texts(store.rules().await.unwrap()), ["rule r4", "rule r5"]);
    let fork = Change::Fork {
        from: "s".to_owned(),
        part: None,
        at_ms: 2,
    };
    write(&store, "f", vec![fork]).unwrap();
    assert_eq!(of("f").await, Vec::<String>::new());
    let forget = Change::Forget {
        conversation: "a".to_owned(),
    };
    write(&store, "s", vec![forget]).unwrap();
    assert_eq!(of("s").await, ["rule r2", "rule r3"]);
    // Also of a session that the store does not have.
    write(
        &store,
        "new",
        vec![revoke("r4"), revoke("r3"), revoke("r9")],
    )
    .unwrap();
    assert_eq!(of("s").await, ["rule r2"]);
    assert_eq!(store.open("new").await.unwrap(), None);
    write(&store, "s", vec![Change::Delete, rule("r6", Owner::None)]).unwrap();
    assert_eq!(
        store.rules().await.unwrap(),
        [("r5".to_owned(), "rule r5".to_owned())]
    );
}

#[tokio::test]
async fn what_was_deleted_is_not_written_to() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    write(&store, "s", vec![create(1), said("a", "hi", 1)]).unwrap();
    write(&store, "s", vec![Change::Delete, said("a", "late", 2)]).unwrap();
    write(&store, "s", vec![said("a", "later", 3)]).unwrap();
    assert_eq!(store.open("s").await.unwrap(), None);
    assert_eq!(store.stats().await.unwrap().messages, 0);
}

#[tokio::test]
async fn sessions_are_listed_in_pages_the_last_changed_first() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    for number in 0..7 {
        let id = format!("s{number}");
        // Two at each moment.
        write(&store, &id, vec![create(number / 2)]).unwrap();
    }
    let archived = Change::Archived { at_ms: Some(1) };
    write(&store, "s3", vec![archived]).unwrap();
    let mut wanted = Listing {
        limit: 4,
        ..Listing::default()
    };
    let first = store.list(wanted.clone()).await.unwrap();
    wanted.cursor = first.next;
    let shown = first.next.unwrap().to_string();
    assert_eq!(Cursor::read(&shown), first.next);
    let second = store.list(wanted.clone()).await.unwrap();
    let ids =
        |page: &Page| -> Vec<String> { page.sessions.iter().map(|it| it.id.clone()).collect() };
    assert_eq!(ids(&first), ["s6", "s5", "s4", "s2"]);
    assert_eq!(ids(&second), ["s1", "s0"]);
    assert_eq!(second.next, None);
    for made_up in [
        "",
        "-",
        "1",
        "x-1",
        "1-",
        "1-x",
        "'; DROP TABLE session; --",
    ] {
        assert_eq!(Cursor::read(made_up), None, "{made_up}");
    }
    let put_away = Listing {
        archived: true,
        limit: 9,
        ..Listing::default()
    };
    assert_eq!(ids(&store.list(put_away).await.unwrap()), ["s3"]);
    let elsewhere = Listing {
        project: Some("/other".to_owned()),
        limit: 9,
        ..Listing::default()
    };
    assert!(store.list(elsewhere).await.unwrap().sessions.is_empty());
}

#[tokio::test]
async fn a_name_that_the_user_gave_stays() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let title = |title: &str, by| Change::Title {
        title: title.to_owned(),
        by,
    };
    write(
        &store,
        "s",
        vec![create(1), title("first words", TitleBy::Daemon)],
    )
    .unwrap();
    write(&store, "s", vec![title("mine", TitleBy::User)]).unwrap();
    write(&store, "s", vec![title("other words", TitleBy::Daemon)]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(session.title.as_deref(), Some("mine"));
}

#[tokio::test]
async fn what_follows_what_was_refused_is_not_written_and_that_is_told_before() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let rule = || {
        Change::Rule(Rule {
            id: "r".to_owned(),
            owner: Owner::None,
            rule: "{}".to_owned(),
        })
    };
    write(&store, "s", vec![create(1), said("a", "before", 1), rule()]).unwrap();
    let (tell, told) = mpsc::channel();
    let heard = tell.clone();
    store.watch(move |health| match health {
        Health::NotKept { session, .. } => heard.send(format!("lost {session}")).unwrap(),
        other => heard.send(format!("{other:?}")).unwrap(),
    });
    for (name, session, changes) in [
        ("wrong", "s", vec![said("a", "wrong", 2), rule()]),
        ("after", "s", vec![said("a", "after", 3)]),
        ("other", "t", vec![create(1), said("a", "other", 3)]),
    ] {
        let tell = tell.clone();
        let done =
            move |it: Result<(), Error>| tell.send(format!("{name} {}", it.is_ok())).unwrap();
        store.write(session, changes, Box::new(done));
    }
    let told: Vec<String> = told.iter().take(4).collect();
    assert_eq!(told, ["lost s", "wrong false", "after false", "other true"]);
    let later = write(&store, "s", vec![said("a", "later", 4)]);
    assert!(matches!(later, Err(Error::Refused(_))), "{later:?}");
    assert_eq!(store.not_kept(), ["s"]);
    assert_eq!(store.failing(), None);
    // Another user who asks for it gets nothing, and changes nothing.
    let ben = store.of(&crate::User::new("ben"));
    assert_eq!(ben.open("s").await, Ok(None));
    let still = write(&store, "s", vec![said("a", "still", 4)]);
    assert!(matches!(still, Err(Error::Refused(_))), "{still:?}");
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before"]);
    write(&store, "s", vec![said("a", "anew", 5)]).unwrap();
    assert!(store.not_kept().is_empty());
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(texts(&session, "a"), ["before", "anew"]);
}

#[tokio::test]
async fn a_store_that_is_silent_is_told_as_one_that_fails_until_it_answers() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    write(&store, "s", vec![create(1)]).unwrap();
    let (tell, told) = mpsc::channel();
    store.watch(move |health| tell.send(health == Health::Well).unwrap());
    store.is_silent();
    assert!(!told.recv().unwrap());
    assert!(told.recv().unwrap());
    assert_eq!(store.failing(), None);
}

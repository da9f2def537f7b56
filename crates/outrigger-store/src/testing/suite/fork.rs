//! Sessions made of others, and which exchanges are known in one.

use super::*;

#[tokio::test]
async fn a_fork_shares_what_was_said_and_outlives_its_source() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let changes = vec![
        create(1),
        said("a", "one", 1),
        said("a", "two", 2),
        said("b", "elsewhere", 3),
    ];
    write(&store, "s", changes).unwrap();
    let fork = |part: Option<(&str, Option<u64>)>| Change::Fork {
        from: "s".to_owned(),
        part: part.map(|(id, place)| (id.to_owned(), place)),
        at_ms: 9,
    };
    write(&store, "f", vec![fork(Some(("a", Some(1))))]).unwrap();
    write(&store, "g", vec![fork(None)]).unwrap();
    // As many as there are, all of one conversation, and none.
    for (part, expected) in [
        (("a", Some(2)), vec!["one", "two"]),
        (("a", None), vec!["one", "two"]),
        (("a", Some(0)), vec![]),
    ] {
        write(&store, "part", vec![fork(Some(part))]).unwrap();
        let made = store.open("part").await.unwrap().unwrap();
        assert_eq!(texts(&made, "a"), expected);
        write(&store, "part", vec![Change::Delete]).unwrap();
    }
    for (part, expected) in [
        (("a", Some(3)), Error::Beyond { messages: 2 }),
        (("c", Some(0)), Error::Unknown),
        (("c", None), Error::Unknown),
    ] {
        let refused = write(&store, "part", vec![fork(Some(part))]);
        assert_eq!(refused, Err(expected));
        assert!(!store.has("part").await.unwrap());
    }
    assert_eq!(count(&path, "body"), 3, "none is copied");
    write(&store, "s", vec![Change::Delete]).unwrap();
    assert_eq!(store.open("s").await.unwrap(), None);
    let fork = store.open("f").await.unwrap().unwrap();
    assert_eq!(texts(&fork, "a"), ["one"]);
    assert_eq!(fork.conversations.len(), 1);
    let whole = store.open("g").await.unwrap().unwrap();
    assert_eq!(texts(&whole, "a"), ["one", "two"]);
    assert_eq!(texts(&whole, "b"), ["elsewhere"]);
    write(&store, "g", vec![Change::Delete]).unwrap();
    assert_eq!(count(&path, "body"), 1);
    let unknown = Change::Fork {
        from: "nobody".to_owned(),
        part: None,
        at_ms: 1,
    };
    let refused = write(&store, "h", vec![unknown]);
    assert_eq!(refused, Err(Error::Unknown));
}

#[tokio::test]
async fn an_exchange_is_known_by_whatever_is_of_it() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let began = Change::Began(Exchange {
        id: "m2".to_owned(),
        conversation: "a".to_owned(),
        began_ms: 1,
        end: None,
    });
    let queued = Change::Queued(Queued {
        id: "m3".to_owned(),
        conversation: "a".to_owned(),
        send: "{}".to_owned(),
    });
    let repaired = Change::Message {
        conversation: "a".to_owned(),
        message: Message {
            exchange: String::new(),
            ..message("x", 1)
        },
    };
    let changes = vec![create(1), said("a", "one", 1), began, queued, repaired];
    write(&store, "s", changes).unwrap();
    write(&store, "other", vec![create(1)]).unwrap();
    for (session, id, expected) in [
        ("s", "m1", true),
        ("s", "m2", true),
        ("s", "m3", true),
        ("s", "m4", false),
        ("s", "", false),
        ("s", "' OR 1=1; --", false),
        ("other", "m1", false),
        ("nobody", "m1", false),
    ] {
        let is_known = store.has_exchange(session, id).await.unwrap();
        assert_eq!(is_known, expected, "{session} {id}");
    }
}

#[tokio::test]
async fn what_a_model_does_not_see_goes_with_the_messages_that_there_were() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let compacted = || Change::Compacted {
        conversation: "default".to_owned(),
        compacted: Some("two".to_owned()),
    };
    let changes = vec![
        create(1),
        said("default", "one", 1),
        said("default", "two", 2),
        compacted(),
        said("default", "three", 3),
    ];
    write(&store, "a", changes).unwrap();
    for (name, before, expected) in [
        ("all", None, Some("two")),
        ("then", Some(2), Some("two")),
        ("before", Some(1), None),
    ] {
        let (from, part) = ("a".to_owned(), Some(("default".to_owned(), before)));
        write(
            &store,
            name,
            vec![Change::Fork {
                from,
                part,
                at_ms: 9,
            }],
        )
        .unwrap();
        let fork = store.open(name).await.unwrap().unwrap();
        let found = fork.conversations[0].compacted.as_deref();
        assert_eq!(found, expected, "{name}");
    }
    for (from, expected) in [(2, Some("two")), (1, None)] {
        let conversation = "default".to_owned();
        write(&store, "a", vec![Change::Truncate { conversation, from }]).unwrap();
        let session = store.open("a").await.unwrap().unwrap();
        let found = session.conversations[0].compacted.as_deref();
        assert_eq!(found, expected, "{from}");
    }
}

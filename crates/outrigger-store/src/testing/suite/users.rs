//! Two users of one store: what one has is not there for the other, however it is asked for.

use super::*;
use crate::{
    CallListing, CallStatus, Ended, FileChange, FileQuery, Usage, UsageBy, UsageQuery, UsageTokens,
    User,
};

const PICTURE: [u8; 32] = [9; 32];
const BEFORE: [u8; 32] = [8; 32];

/// Something of all that a session has.
fn secret() -> Vec<Change> {
    let mut picture = message("secret words", 5);
    picture.body.attachments.push(Attachment {
        hash: PICTURE,
        bytes: vec![1, 2, 3],
    });
    let call = ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: "secret".to_owned(),
        result: None,
    };
    vec![
        create(1),
        Change::Title {
            title: "A secret name".to_owned(),
            by: TitleBy::User,
        },
        Change::Labels(vec!["secret".to_owned()]),
        Change::Message {
            conversation: "a".to_owned(),
            message: picture,
        },
        Change::Began(Exchange {
            id: "m1".to_owned(),
            conversation: "a".to_owned(),
            began_ms: 5,
            end: None,
        }),
        Change::Call {
            call,
            facts: CallFacts {
                tool: "secret_tool".to_owned(),
                provider: "p".to_owned(),
                commands: vec!["secret_command".to_owned()],
                status: CallStatus::Ended(Ended::Success),
                at_ms: 5,
                ..CallFacts::default()
            },
        },
        Change::Rule(Rule {
            id: "r1".to_owned(),
            owner: Owner::None,
            rule: "secret".to_owned(),
        }),
        Change::File(FileChange {
            conversation: "a".to_owned(),
            exchange: "m1".to_owned(),
            call: "t1".to_owned(),
            root: "/project".to_owned(),
            path: "secret.txt".to_owned(),
            about: "{}".to_owned(),
            diff: "-secret".to_owned(),
            before: Some(Attachment {
                hash: BEFORE,
                bytes: b"secret".to_vec(),
            }),
            at_ms: 5,
        }),
        Change::Used(Usage {
            at_ms: 5,
            conversation: "a".to_owned(),
            exchange: "m1".to_owned(),
            kind: "turn".to_owned(),
            provider: "p".to_owned(),
            model: "secret".to_owned(),
            tokens: UsageTokens::default(),
            micros: Some(100),
            estimated: false,
        }),
    ]
}

fn usage(by: UsageBy) -> UsageQuery {
    UsageQuery {
        since_ms: 0,
        until_ms: i64::MAX,
        by,
        limit: 10,
    }
}

/// Returns all that a store says of the session and its user's other things, by what was asked for.
async fn seen(store: &Kept) -> Vec<(&'static str, bool)> {
    let listed = async |listing: Listing| {
        let page = store.list(listing).await.unwrap();
        !page.sessions.is_empty()
    };
    let calls = CallListing {
        limit: 10,
        bytes: 1_000,
        ..CallListing::default()
    };
    let files = FileQuery {
        session: "s".to_owned(),
        limit: 10,
        bytes: 1_000,
        ..FileQuery::default()
    };
    let all = Listing {
        limit: 10,
        ..Listing::default()
    };
    let labelled = Listing {
        labels: vec!["secret".to_owned()],
        ..all.clone()
    };
    let found = std::sync::Arc::new(parking_lot::Mutex::new(0));
    let pieces = std::sync::Arc::clone(&found);
    let each = Box::new(move |_| {
        *pieces.lock() += 1;
        std::ops::ControlFlow::Continue(())
    });
    let is_exported = store.export("s", each).await.unwrap();
    let ran = store.ran(0).await.unwrap();
    let mut seen = vec![
        ("has", store.has("s").await.unwrap()),
        ("has_exchange", store.has_exchange("s", "m1").await.unwrap()),
        ("list", listed(all).await),
        ("by label", listed(labelled).await),
        ("by name", listed(wanted("secret name")).await),
        ("by words", listed(wanted("secret words")).await),
        ("calls", !store.calls(calls).await.unwrap().calls.is_empty()),
        ("tools", !ran.tools.is_empty()),
        ("providers", !ran.providers.is_empty()),
        ("commands", !ran.commands.is_empty()),
        ("days", !ran.days.is_empty()),
        ("rules", !store.rules().await.unwrap().is_empty()),
        (
            "files",
            !store.files(files).await.unwrap().changes.is_empty(),
        ),
        (
            "picture",
            store.attachment(PICTURE).await.unwrap().is_some(),
        ),
        ("before", store.attachment(BEFORE).await.unwrap().is_some()),
        ("export", is_exported && *found.lock() > 0),
    ];
    for (name, by) in [
        ("by quarter", UsageBy::Quarter),
        ("by model", UsageBy::Model),
        ("by provider", UsageBy::Provider),
        ("by conversation", UsageBy::Conversation),
        ("by session", UsageBy::Session),
        ("by kind", UsageBy::Kind),
        ("all together", UsageBy::All),
    ] {
        seen.push((name, !store.usage(usage(by)).await.unwrap().is_empty()));
    }
    seen
}

#[tokio::test]
async fn what_one_user_has_is_not_there_for_another() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let [anna, ben] = ["anna", "ben"].map(|name| store.of(&User::new(name)));
    write(&anna, "s", secret()).unwrap();
    assert!(seen(&anna).await.iter().all(|(_, is_seen)| *is_seen));
    // The one of no name is a user as others are.
    for other in [&ben, &store] {
        for (what, is_seen) in seen(other).await {
            assert!(!is_seen, "{what}");
        }
        assert_eq!(other.open("s").await.unwrap(), None);
    }
    // Whatever is written in its name changes nothing.
    let before = anna.open("s").await.unwrap().unwrap();
    let fork = |from: &str| Change::Fork {
        from: from.to_owned(),
        part: None,
        at_ms: 9,
    };
    for change in [
        create(7),
        Change::Settings("mine".to_owned()),
        Change::Project(Some("/mine".to_owned())),
        Change::Title {
            title: "mine".to_owned(),
            by: TitleBy::User,
        },
        Change::Archived { at_ms: Some(9) },
        Change::Labels(Vec::new()),
        said("a", "mine", 9),
        Change::Truncate {
            conversation: "a".to_owned(),
            from: 0,
        },
        Change::Forget {
            conversation: "a".to_owned(),
        },
        Change::Reserve {
            seq: 1_000_000,
            ids: 1_000_000,
        },
        Change::Record {
            id: "t1".to_owned(),
            record: "mine".to_owned(),
        },
        Change::Unqueued {
            id: "m2".to_owned(),
        },
        Change::Revoke {
            id: "r1".to_owned(),
        },
        Change::Delete,
    ] {
        write(&ben, "s", vec![change.clone()]).unwrap();
        ben.attempt("s", vec![change]).await.unwrap();
    }
    let stolen = ben.attempt("f", vec![fork("s")]).await;
    assert_eq!(stolen, Err(Error::Unknown));
    assert!(!ben.has("f").await.unwrap());
    let changes = || -> Changes { Box::new([Ok(create(1)), Ok(said("a", "mine", 2))].into_iter()) };
    assert!(ben.import("s", changes()).await.is_err());
    let after = anna.open("s").await.unwrap().unwrap();
    let reopened = Session {
        epoch: before.epoch + 1,
        seq: before.seq + before.reserved_seq,
        ids: before.ids + before.reserved_ids,
        ..before
    };
    assert_eq!(after, reopened);
    assert!(seen(&anna).await.iter().all(|(_, is_seen)| *is_seen));
    // Sums are each one's own, and a name of one is not in the way of another's.
    write(&ben, "t", vec![create(1), secret().remove(5)]).unwrap();
    let tools = async |store: &Kept| {
        let tools = store.ran(0).await.unwrap().tools.into_iter();
        tools.map(|it| (it.name, it.calls)).collect::<Vec<_>>()
    };
    assert_eq!(tools(&ben).await, [("secret_tool".to_owned(), 1)]);
    assert_eq!(tools(&anna).await, [("secret_tool".to_owned(), 1)]);
    // A fork is its user's, and what is deleted of one is left of the other.
    write(&anna, "f", vec![fork("s")]).unwrap();
    assert!(anna.has("f").await.unwrap() && !ben.has("f").await.unwrap());
    write(&anna, "s", vec![Change::Delete]).unwrap();
    assert!(!anna.has("s").await.unwrap() && ben.has("t").await.unwrap());
}

#[tokio::test]
async fn no_session_has_an_id_that_cannot_be() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let id = "a\0b";
    assert_eq!(store.open(id).await, Ok(None));
    assert_eq!(store.has(id).await, Ok(false));
    assert_eq!(store.has_exchange(id, "m1").await, Ok(false));
    let each = |_| std::ops::ControlFlow::Continue(());
    assert_eq!(store.export(id, Box::new(each)).await, Ok(false));
}

/// A message with a picture of so many bytes; those of the same letter are the same.
fn picture(letter: u8, bytes: usize) -> Change {
    let mut said = message("look", 5);
    said.body.attachments.push(Attachment {
        hash: [letter; 32],
        bytes: vec![letter; bytes],
    });
    Change::Message {
        conversation: "a".to_owned(),
        message: said,
    }
}

#[tokio::test]
async fn what_a_user_keeps_is_counted_and_less_when_it_is_removed() {
    const PICTURE_BYTES: u64 = 100_000;
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let all = start(&path);
    let (anna, ben) = (all.of(&User::new("anna")), all.of(&User::new("ben")));
    // Counted anew each time.
    let kept = async |store: &Kept| store.kept(0).await.unwrap();
    assert_eq!((kept(&anna).await, kept(&ben).await), (0, 0));
    // A secret has bytes of each kind.
    write(&anna, "s", secret()).unwrap();
    let small = kept(&anna).await;
    assert!((30..2_000).contains(&small), "{small}");
    let about = async |store: &Kept, pictures: u64| {
        let kept = kept(store).await;
        let least = pictures * PICTURE_BYTES;
        assert!((least..least + 5_000).contains(&kept), "{kept} {pictures}");
    };
    let large = |letter| picture(letter, PICTURE_BYTES as usize);
    // The same picture twice, once more in a fork, and at another user.
    write(&anna, "p", vec![create(1), large(1), large(1), large(2)]).unwrap();
    about(&anna, 2).await;
    let fork = Change::Fork {
        from: "p".to_owned(),
        part: None,
        at_ms: 2,
    };
    write(&anna, "fork", vec![fork]).unwrap();
    about(&anna, 2).await;
    write(&ben, "b", vec![create(1), large(1)]).unwrap();
    about(&ben, 1).await;
    about(&anna, 2).await;
    // What a change of a file replaced, and what a call said.
    let replaced = Change::File(FileChange {
        conversation: "a".to_owned(),
        exchange: "m1".to_owned(),
        call: "t1".to_owned(),
        root: "/project".to_owned(),
        path: "large.txt".to_owned(),
        about: "{}".to_owned(),
        diff: String::new(),
        before: Some(Attachment {
            hash: [3; 32],
            bytes: vec![3; PICTURE_BYTES as usize],
        }),
        at_ms: 5,
    });
    let call = stands(ToolCall {
        id: "t1".to_owned(),
        conversation: "a".to_owned(),
        began: true,
        record: "r".repeat(PICTURE_BYTES as usize),
        result: None,
    });
    write(&ben, "b", vec![replaced, call]).unwrap();
    about(&ben, 3).await;
    // What the source of a fork had is kept as long as the fork is.
    write(&anna, "p", vec![Change::Delete]).unwrap();
    about(&anna, 2).await;
    write(&anna, "fork", vec![Change::Delete]).unwrap();
    assert_eq!(kept(&anna).await, small);
    about(&ben, 3).await;
    // An import that is under way is nobody's; one that was made counts at once, though it was not written by this.
    let changes = [create(1), large(1)].map(Ok);
    let made = anna.import("made", Box::new(changes.into_iter()));
    made.await.unwrap();
    about(&anna, 1).await;
    write(&anna, "made", vec![Change::Delete]).unwrap();
    // Far from what one may, it is added up: more than it is by what is packed, never less.
    let before = anna.kept(u64::MAX).await.unwrap();
    write(&anna, "q", vec![create(1), large(4)]).unwrap();
    let added = anna.kept(u64::MAX).await.unwrap();
    assert!(added >= before + PICTURE_BYTES, "{before} {added}");
    assert!(kept(&anna).await <= added);
    all.close().await.unwrap();
}

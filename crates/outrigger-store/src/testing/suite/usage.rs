//! Requests to models: each is kept once, in sums by what is asked for, and outlives its session without its name.

use super::*;
use crate::{MS_OF_QUARTER, Usage, UsageBy, UsageQuery, UsageTokens};

fn used(at_ms: i64, conversation: &str, model: &str, micros: Option<i64>) -> Change {
    Change::Used(Usage {
        at_ms,
        conversation: conversation.to_owned(),
        exchange: "m1".to_owned(),
        kind: "turn".to_owned(),
        provider: "p".to_owned(),
        model: model.to_owned(),
        tokens: UsageTokens {
            input: 10,
            cache_read: 4,
            cache_write: 2,
            output: 5,
        },
        micros,
        estimated: micros.is_none(),
    })
}

async fn sums(store: &Kept, by: UsageBy, since_ms: i64) -> Vec<(String, String, u64, i64)> {
    let wanted = UsageQuery {
        since_ms,
        until_ms: i64::MAX,
        by,
        limit: 10,
    };
    let sums = store.usage(wanted).await.unwrap().into_iter();
    sums.map(|it| (it.session, it.key, it.requests, it.micros))
        .collect()
}

fn row(session: &str, key: &str, requests: u64, micros: i64) -> (String, String, u64, i64) {
    (session.to_owned(), key.to_owned(), requests, micros)
}

#[tokio::test]
async fn requests_are_summed_by_what_is_asked_for_and_outlive_their_session_without_its_name() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = restart(&path);
    write(
        &store,
        "s",
        vec![
            Change::Create {
                project: None,
                at_ms: 1,
            },
            said("a", "hi", 1),
            used(0, "a", "large", Some(100)),
            used(MS_OF_QUARTER, "a", "large", Some(50)),
            used(MS_OF_QUARTER + 1, "b", "small", Some(7)),
            used(MS_OF_QUARTER + 2, "b", "unknown", None),
        ],
    )
    .unwrap();
    // Of a session that is not kept.
    write(&store, "nobody", vec![used(3, "", "small", Some(1))]).unwrap();
    assert_eq!(
        sums(&store, UsageBy::Model, 0).await,
        [
            row("", "large", 2, 150),
            row("", "small", 2, 8),
            row("", "unknown", 1, 0)
        ]
    );
    assert_eq!(
        sums(&store, UsageBy::Conversation, 0).await,
        [
            row("s", "a", 2, 150),
            row("s", "b", 2, 7),
            row("", "", 1, 1)
        ]
    );
    assert_eq!(
        sums(&store, UsageBy::Quarter, 0).await,
        [row("", "0", 2, 101), row("", "1", 3, 57)]
    );
    assert_eq!(
        sums(&store, UsageBy::All, MS_OF_QUARTER).await,
        [row("", "", 3, 57)]
    );
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(session.spent, [("a".to_owned(), 150), ("b".to_owned(), 7)]);

    let conversation = "b".to_owned();
    write(&store, "s", vec![Change::Forget { conversation }]).unwrap();
    let session = store.open("s").await.unwrap().unwrap();
    assert_eq!(session.spent, [(String::new(), 7), ("a".to_owned(), 150)]);
    write(&store, "s", vec![Change::Delete]).unwrap();
    assert_eq!(
        sums(&store, UsageBy::Conversation, 0).await,
        [row("", "", 5, 158)]
    );
    let all = UsageQuery {
        since_ms: 0,
        until_ms: i64::MAX,
        by: UsageBy::All,
        limit: 1,
    };
    let all = &store.usage(all).await.unwrap()[0];
    assert_eq!((all.unpriced, all.estimated), (1, 1));
    assert_eq!(
        (all.tokens.input, all.tokens.cache_read, all.tokens.output),
        (50, 20, 25)
    );
}

#[tokio::test]
async fn the_name_of_a_large_session_goes_with_it_too() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = restart(&path);
    // It is removed in slices, later.
    growth::make(&store, "s", 1, crate::slices::SLICE_BYTES + 1);
    write(&store, "s", vec![used(0, "a", "large", Some(100))]).unwrap();
    write(&store, "s", vec![Change::Delete]).unwrap();
    assert_eq!(
        sums(&store, UsageBy::Conversation, 0).await,
        [row("", "", 1, 100)]
    );
}

//! What is found by its words.

use super::*;

#[tokio::test]
async fn words_are_found_whatever_stands_around_them() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    write(
        &store,
        "old",
        vec![create(1), said("a", "The café opens", 1)],
    )
    .unwrap();
    write(
        &store,
        "new",
        vec![create(2), said("a", "a CAFE closes", 2)],
    )
    .unwrap();
    let title = Change::Title {
        title: "Names of (cafes)".to_owned(),
        by: TitleBy::User,
    };
    write(&store, "named", vec![create(3), title]).unwrap();
    for (query, expected) in [
        ("cafe", vec!["named", "new", "old"]),
        ("caf", vec!["named", "new", "old"]),
        ("closes cafe", vec!["new"]),
        ("opens", vec!["old"]),
        ("\"opens\" OR NOT (cafe)", vec![]),
        ("cafe AND", vec![]),
        ("opens*", vec!["old"]),
        ("words:opens", vec![]),
        ("'; DROP TABLE words; --", vec![]),
        // Without a query, and with one that has no word.
        ("", vec!["named", "new", "old"]),
        ("\"*^-", vec![]),
    ] {
        assert_eq!(found(&store, query).await, expected, "{query}");
    }
    let page = store.list(wanted("opens")).await.unwrap();
    let snippet = page.sessions[0].snippet.as_ref().unwrap();
    assert_eq!((snippet.conversation.as_str(), snippet.place), ("a", 0));
    assert_eq!(snippet.text, "The café opens");
}

#[tokio::test]
async fn words_are_found_where_no_space_stands_between_them() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let text = "明日は東京タワーへ行きます";
    write(&store, "s", vec![create(1), said("a", text, 1)]).unwrap();
    for (query, is_found) in [
        ("東京", true),
        ("タワー", true),
        ("行きます 東京", true),
        ("京東", false),
        ("東タ", false),
    ] {
        assert_eq!(found(&store, query).await == ["s"], is_found, "{query}");
    }
}

#[tokio::test]
async fn a_word_comes_before_what_it_begins() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    for (at_ms, (id, text)) in [
        ("old", "a cat sleeps"),
        ("other", "a category"),
        ("new", "the cat wakes"),
        ("newest", "cats sleep"),
    ]
    .into_iter()
    .enumerate()
    {
        let at_ms = i64::try_from(at_ms).unwrap();
        write(&store, id, vec![create(at_ms), said("a", text, at_ms)]).unwrap();
    }
    for (query, limit, expected) in [
        ("cat", 50, vec!["new", "old", "newest", "other"]),
        ("cat", 3, vec!["new", "old", "newest"]),
        ("cat", 1, vec!["new"]),
        ("a cat", 50, vec!["old", "other"]),
        ("cat sleep", 50, vec!["old"]),
    ] {
        let wanted = Listing {
            limit,
            ..wanted(query)
        };
        let page = store.list(wanted).await.unwrap();
        let found: Vec<_> = page.sessions.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(found, expected, "{query} {limit}");
        assert!(page.sessions.iter().all(|it| it.snippet.is_some()));
    }
}

//! Requests about kept sessions: lists, search, names, what is put away, deleted and forked.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Has a session in which this was said and answered.
async fn said(daemon: &Daemon, provider: &Provider, text: &str, answer: &str) -> Client {
    provider.then(Turn::text(answer));
    let mut client = daemon.connect().await;
    client.say(text).await;
    client.until("chat:stream-end").await;
    client
}

/// Returns the ids of a page.
async fn listed(client: &mut Client, mut wanted: Value) -> Vec<String> {
    wanted["type"] = json!("session:list");
    let answer = client.ask(wanted).await;
    let sessions = answer["payload"]["sessions"].as_array();
    let sessions = sessions.unwrap_or_else(|| panic!("{answer}"));
    let ids = sessions.iter().map(|it| it["sessionId"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

#[tokio::test]
async fn sessions_are_listed_and_found_by_what_was_said() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let first = said(
        &daemon,
        &provider,
        "Fix the login page",
        "done: a typo in Café",
    )
    .await;
    let mut second = said(&daemon, &provider, "Write a poem", "Roses are red").await;
    let (one, two) = (first.session(), second.session());
    assert_eq!(
        listed(&mut second, json!({})).await,
        [two.clone(), one.clone()]
    );
    for (query, expected) in [
        ("login", vec![one.clone()]),
        ("cafe", vec![one.clone()]),
        ("red ros", vec![two.clone()]),
        ("login poem", vec![]),
        ("\" OR 1=1; --", vec![]),
    ] {
        let wanted = json!({"query": query});
        assert_eq!(listed(&mut second, wanted).await, expected, "{query}");
    }
    let found = second
        .ask(json!({"type": "session:list", "query": "typo"}))
        .await;
    let found = &found["payload"]["sessions"][0];
    assert_eq!(found["title"], "Fix the login page");
    assert_eq!(found["live"], true);
    assert_eq!(found["messages"], 2);
    assert_eq!(found["snippet"]["text"], "done: a typo in Café");
    assert_eq!(found["snippet"]["place"], 1);
    assert_eq!(found["project"], daemon.project().to_str().unwrap());
    // A page, and the next one.
    let page = second
        .ask(json!({"type": "session:list", "limit": 1}))
        .await;
    let cursor = page["payload"]["nextCursor"].clone();
    assert_eq!(
        listed(&mut second, json!({"limit": 1, "cursor": cursor})).await,
        [one]
    );
    for limit in [0, 201] {
        let refused = second
            .ask(json!({"type": "session:list", "limit": limit}))
            .await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    }
    for cursor in ["", "made up", "1-", "'; DROP TABLE session; --"] {
        let list = json!({"type": "session:list", "cursor": cursor});
        let refused = second.ask(list).await;
        let message = refused["payload"]["message"].as_str().unwrap();
        assert!(message.contains("field `cursor`"), "{refused}");
    }
}

#[tokio::test]
async fn a_session_is_named_put_away_and_deleted() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let first = said(&daemon, &provider, "one", "1").await;
    let mut second = said(&daemon, &provider, "two", "2").await;
    let (one, two) = (first.session(), second.session());
    let rename = json!({"type": "session:rename", "sessionId": one, "title": "  Mine  "});
    let renamed = second.ask(rename).await;
    assert_eq!(renamed["type"], "session:rename-result", "{renamed}");
    let page = second
        .ask(json!({"type": "session:list", "query": "mine"}))
        .await;
    assert_eq!(page["payload"]["sessions"][0]["title"], "Mine");
    second.ask(json!({"type": "session:archive"})).await;
    assert_eq!(listed(&mut second, json!({})).await, [one.as_str()]);
    assert_eq!(
        listed(&mut second, json!({"archived": true})).await,
        [two.as_str()]
    );
    second
        .ask(json!({"type": "session:archive", "archived": false}))
        .await;
    assert_eq!(listed(&mut second, json!({})).await.len(), 2);
    for refused in [
        json!({"type": "session:rename", "title": " "}),
        json!({"type": "session:rename", "title": "a\nb"}),
        json!({"type": "session:rename", "title": "x".repeat(201)}),
        json!({"type": "session:delete", "sessionId": two}),
        json!({"type": "session:fork", "before": 0}),
    ] {
        let answer = second.ask(refused).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
    }
    for unknown in ["../../etc/passwd", "'; DROP TABLE session; --", ""] {
        for kind in [
            "session:rename",
            "session:archive",
            "session:delete",
            "session:fork",
        ] {
            let request = json!({"type": kind, "sessionId": unknown, "title": "x"});
            let answer = second.ask(request).await;
            assert_eq!(answer["payload"]["code"], "session_not_found", "{answer}");
        }
    }
    let deleted = second
        .ask(json!({"type": "session:delete", "sessionId": one}))
        .await;
    assert_eq!(deleted["type"], "session:delete-result", "{deleted}");
    assert_eq!(listed(&mut second, json!({})).await, [two]);
    assert!(
        listed(&mut second, json!({"query": "mine"}))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_session_is_deleted_with_what_runs_in_it() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    first.say("go").await;
    pause.reached().await;
    let one = first.session();
    let mut second = daemon.connect().await;
    let deleted = second
        .ask(json!({"type": "session:delete", "sessionId": one}))
        .await;
    assert_eq!(deleted["type"], "session:delete-result", "{deleted}");
    assert!(listed(&mut second, json!({})).await.is_empty());
    let code = loop {
        if let Err(code) = first.next_or_close().await {
            break code;
        }
    };
    assert_eq!(code, 4002);
    let third = Client::connect(&daemon, &format!("?session={one}&after=0")).await;
    assert_eq!(third.seen[0]["payload"]["resumed"], false);
}

#[tokio::test]
async fn a_fork_goes_on_from_a_message_and_leaves_the_other_as_it_is() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut first = said(&daemon, &provider, "one", "1").await;
    provider.then(Turn::text("2"));
    first.say("two").await;
    first.until("chat:stream-end").await;
    for (part, code, said) in [
        (json!({"before": 5}), "invalid_payload", "4 messages"),
        (json!({"before": 0}), "invalid_payload", "`before`"),
        (
            json!({"conversationId": "other", "before": 1}),
            "conversation_not_found",
            "\"other\"",
        ),
    ] {
        let mut fork = part.clone();
        fork["type"] = json!("session:fork");
        let refused = first.ask(fork).await;
        assert_eq!(refused["payload"]["code"], code, "{refused}");
        let message = refused["payload"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{refused}");
    }
    let forked = first
        .ask(json!({"type": "session:fork", "before": 2}))
        .await;
    let fork = forked["payload"]["sessionId"].as_str().unwrap().to_owned();
    let mut second = Client::connect(&daemon, &format!("?session={fork}&after=0")).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], true);
    // Nobody has seen anything of it, so it begins with what was said.
    let history = second.until("chat:history-result").await;
    let said = history["payload"]["messages"].as_array().unwrap();
    let said: Vec<&Value> = said.iter().map(|it| &it["content"]).collect();
    assert_eq!(said, ["one", "1"]);
    provider.then(Turn::text("other"));
    second.say("another two").await;
    second.until("chat:stream-end").await;
    let asked = provider.requests().pop().unwrap();
    let messages = asked["messages"].as_array().unwrap();
    let last: Vec<&Value> = messages.iter().skip(1).map(|it| &it["content"]).collect();
    assert_eq!(last, ["one", "1", "another two"]);
    let history = first.ask(json!({"type": "chat:history"})).await;
    assert_eq!(history["payload"]["messages"].as_array().unwrap().len(), 4);
    let whole = first.ask(json!({"type": "session:fork"})).await;
    assert_eq!(whole["type"], "session:fork-result", "{whole}");
    assert_eq!(listed(&mut first, json!({})).await.len(), 3);
}

#[tokio::test]
async fn what_is_told_as_failed_is_not_done_later() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut first = said(&daemon, &provider, "one", "1").await;
    let mut second = said(&daemon, &provider, "two", "2").await;
    let (one, two) = (first.session(), second.session());
    let both = listed(&mut second, json!({})).await;
    let away = daemon.store().with_file_name("away");
    std::fs::rename(daemon.store(), &away).unwrap();
    for request in [
        json!({"type": "session:fork", "sessionId": one}),
        json!({"type": "session:rename", "sessionId": one, "title": "later"}),
        json!({"type": "session:archive", "sessionId": two}),
        json!({"type": "session:delete", "sessionId": one}),
    ] {
        let failed = second.ask(request).await;
        let message = failed["payload"]["message"].as_str().unwrap();
        assert!(message.contains("nothing was changed"), "{failed}");
    }
    std::fs::rename(&away, daemon.store()).unwrap();
    while second.until("session:notice").await["payload"]["code"] != "store_healed" {}
    assert_eq!(listed(&mut second, json!({})).await, both);
    let named = json!({"query": "later"});
    assert!(listed(&mut second, named).await.is_empty());
    // Nor was it ended.
    let pong = first.ask(json!({"type": "session:ping"})).await;
    assert_eq!(pong["type"], "session:ping-result", "{pong}");
}

#[tokio::test]
async fn without_a_store_these_requests_are_refused() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"store": {"enabled": false}})).await;
    let mut client = daemon.connect().await;
    let refused = client.ask(json!({"type": "session:list"})).await;
    assert_eq!(refused["payload"]["code"], "forbidden", "{refused}");
}

#[tokio::test]
async fn nothing_of_a_deleted_session_is_in_the_files_after_an_orderly_end() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::start(&provider).await;
    let first = said(&daemon, &provider, "the word is xylophone", "heard").await;
    let mut second = said(&daemon, &provider, "something that stays", "yes").await;
    let one = first.session();
    second
        .ask(json!({"type": "session:delete", "sessionId": one}))
        .await;
    let folder = daemon.project().with_file_name("state");
    drop(daemon.stdin.take());
    daemon.child.wait().await.unwrap();
    let files = std::fs::read_dir(folder).unwrap();
    let files: Vec<Vec<u8>> = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    let has = |words: &str| {
        let words = words.as_bytes();
        let mut pieces = files.iter().flat_map(|file| file.windows(words.len()));
        pieces.any(|piece| piece == words)
    };
    assert!(has("something that stays"));
    assert!(!has("xylophone"));
}

#[tokio::test]
async fn a_socket_goes_from_one_session_to_another() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let first = said(&daemon, &provider, "one", "1").await.session();
    let daemon = daemon.after_kill().await;
    let mut client = said(&daemon, &provider, "two", "2").await;
    let second = client.session();
    // What cannot be opened leaves the socket where it is.
    for (id, code) in [
        (json!("nobody"), "session_not_found"),
        (json!("../../etc/passwd"), "session_not_found"),
        (json!("'; DROP TABLE session; --"), "session_not_found"),
        (json!(""), "session_not_found"),
        (json!("x".repeat(100_000)), "session_not_found"),
        (json!(7), "invalid_payload"),
        (json!(second), "invalid_payload"),
    ] {
        let refused = client
            .ask(json!({"type": "session:open", "sessionId": id}))
            .await;
        assert_eq!(refused["payload"]["code"], code, "{refused}");
    }
    let history = client.ask(json!({"type": "chat:history"})).await;
    assert!(history.to_string().contains("two"), "{history}");
    // A kept one, on the socket that was used.
    let opened = client
        .ask(json!({"type": "session:open", "sessionId": first}))
        .await;
    assert_eq!(opened["type"], "session:ready", "{opened}");
    assert_eq!(opened["payload"]["sessionId"], first);
    assert_eq!(opened["payload"]["resumed"], true);
    assert!(opened.get("seq").is_none(), "{opened}");
    let told = client.until("chat:history-result").await;
    assert!(told.to_string().contains("one"), "{told}");
    provider.then(Turn::text("3"));
    client.say("three").await;
    client.until("chat:stream-end").await;
    // And back to the one that lives on, with what was missed alone.
    let last = client
        .seen
        .iter()
        .rposition(|it| it["payload"]["sessionId"] == first)
        .unwrap();
    let before = client.seen[..last]
        .iter()
        .filter_map(|it| it["seq"].as_u64())
        .next_back();
    let back = json!({"type": "session:open", "sessionId": second, "lastSeq": before});
    let opened = client.ask(back).await;
    assert_eq!(opened["payload"]["sessionId"], second, "{opened}");
    client.ask(json!({"type": "session:ping"})).await;
    let after = client.seen.iter().rposition(|it| *it == opened).unwrap();
    assert_eq!(client.seen[after + 1]["type"], "session:ping-result");
    // One that is open elsewhere is taken over; a deleted one is gone.
    let mut other = daemon.connect().await;
    other
        .ask(json!({"type": "session:open", "sessionId": second}))
        .await;
    assert_eq!(client.closed().await, 4001);
    other
        .ask(json!({"type": "session:delete", "sessionId": first}))
        .await;
    let refused = other
        .ask(json!({"type": "session:open", "sessionId": first}))
        .await;
    assert_eq!(refused["payload"]["code"], "session_not_found", "{refused}");
}

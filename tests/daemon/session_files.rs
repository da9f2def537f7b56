//! Sessions as files over the socket, their labels, and what those hear of who show a list.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Dice, Provider};

/// Has a session in which this was said and answered.
async fn said(daemon: &Daemon, provider: &Provider, text: &str) -> Client {
    provider.then(Turn::text("yes"));
    let mut client = daemon.connect().await;
    client.say(text).await;
    client.until("chat:stream-end").await;
    client
}

/// Reads a whole session in pieces of so many bytes.
async fn exported(client: &mut Client, session: &str, format: &str, limit: u64) -> String {
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let wanted = json!({"type": "session:export", "sessionId": session, "format": format, "offset": offset, "limit": limit});
        let answer = client.ask(wanted).await;
        let piece = &answer["payload"];
        assert_eq!(piece["offset"], offset, "{answer}");
        text += piece["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        match piece["nextOffset"].as_u64() {
            Some(next) => offset = next,
            None => {
                assert_eq!(piece["totalBytes"], text.len());
                return text;
            }
        }
    }
}

/// Returns a file without when its session was made.
fn without_time(file: &str) -> Vec<Value> {
    let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    lines[0]["session"]["createdAt"] = Value::Null;
    lines
}

fn code(answer: &Value) -> &str {
    answer["payload"]["code"].as_str().unwrap_or("")
}

#[tokio::test]
async fn a_session_is_exported_and_made_again_and_goes_on() {
    let provider = Provider::start().await;
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    provider.then(Turn::call("bash", &json!({"command": "echo büro"})));
    let mut client = said(&daemon, &provider, "lök at it").await;
    let one = client.session();
    client
        .ask(json!({"type": "session:label", "labels": ["shop", "b"]}))
        .await;
    // Pieces of a few bytes, none within a character.
    let file = exported(&mut client, &one, "jsonl", 100).await;
    assert!(file.contains("lök") && file.contains("büro"), "{file}");
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let (last, first) = lines.split_last().unwrap();
    for (part, text) in (0..).zip(first) {
        let piece = json!({"type": "session:import", "part": part, "text": text, "more": true});
        let taken = client.ask(piece).await;
        assert_eq!(taken["payload"], json!({"part": part}));
    }
    let piece = json!({"type": "session:import", "part": first.len(), "text": last});
    let made = client.ask(piece).await;
    let two = made["payload"]["sessionId"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"));
    assert_ne!(two, one);
    assert_eq!(made["payload"]["messages"], 4);
    let again = exported(&mut client, two, "jsonl", 1 << 20).await;
    assert_eq!(without_time(&file), without_time(&again));
    let markdown = exported(&mut client, two, "markdown", 1 << 20).await;
    assert!(
        markdown.contains("# lök at it\n") && markdown.contains("- **bash**"),
        "{markdown}"
    );
    // It is a session as any other, with new ids.
    let mut second = Client::connect(&daemon, &format!("?session={two}&after=0")).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], true);
    assert_eq!(
        second.seen[0]["payload"]["project"]["root"],
        daemon.project().to_str().unwrap()
    );
    provider.then(Turn::text("and on"));
    second.say("go on").await;
    let end = second.until("chat:stream-end").await;
    let asked = provider.requests().pop().unwrap();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 6, "{asked}");
    assert!(
        !file.contains(&end["payload"]["messageId"].to_string()),
        "{end}"
    );
    assert!(second.all("chat:error").is_empty());
}

#[tokio::test]
async fn what_runs_is_exported_as_what_is_known() {
    let provider = Provider::start().await;
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    provider.then(Turn::call("bash", &json!({"command": "sleep 600"})));
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:tool-start").await;
    let session = client.session();
    let file = exported(&mut client, &session, "jsonl", 1 << 20).await;
    assert!(
        file.contains("no result: this call had none when"),
        "{file}"
    );
    let made = client
        .ask(json!({"type": "session:import", "text": file}))
        .await;
    assert_eq!(made["payload"]["messages"], 3, "{made}");
}

#[tokio::test]
async fn an_export_is_of_one_moment_and_of_one_session() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = said(&daemon, &provider, "hello").await;
    let export = |offset: u64| json!({"type": "session:export", "offset": offset, "limit": 10});
    for refused in [
        export(10),
        json!({"type": "session:export", "limit": 0}),
        json!({"type": "session:export", "format": "pdf"}),
    ] {
        let answer = client.ask(refused).await;
        assert_eq!(code(&answer), "invalid_payload", "{answer}");
    }
    let total = client.ask(export(0)).await["payload"]["totalBytes"].clone();
    provider.then(Turn::text("again"));
    client.say("more").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.ask(export(10)).await["payload"]["totalBytes"], total);
    let beyond = client.ask(export(1 << 40)).await;
    assert_eq!(
        (&beyond["payload"]["text"], &beyond["payload"]["offset"]),
        (&json!(""), &total)
    );
    assert_eq!(
        code(&client.ask(export(10)).await),
        "invalid_payload",
        "it was read to its end"
    );
    for unknown in ["../../etc/passwd", "'; DROP TABLE session; --", ""] {
        let answer = client
            .ask(json!({"type": "session:export", "sessionId": unknown}))
            .await;
        assert_eq!(code(&answer), "session_not_found", "{answer}");
        let answer = client
            .ask(json!({"type": "session:label", "sessionId": unknown, "labels": []}))
            .await;
        assert_eq!(code(&answer), "session_not_found", "{answer}");
    }
}

#[tokio::test]
async fn a_file_that_is_none_makes_no_session() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = said(&daemon, &provider, "hello").await;
    let session = client.session();
    let file = exported(&mut client, &session, "jsonl", 1 << 20).await;
    let (cut, rest) = file.split_at(file.len() / 2);
    let lies = file.replacen(
        "\"role\":\"assistant\"",
        "\"role\":\"tool\",\"toolCallId\":\"t9\"",
        1,
    );
    let import = |part: u64, text: &str, more: bool| json!({"type": "session:import", "part": part, "text": text, "more": more});
    for (piece, expected) in [
        (import(0, "", false), "line 1: it ends before"),
        (import(0, "#!/bin/sh", false), "line 1: it is no session"),
        (import(0, cut, false), "line "),
        (import(0, &lies, false), "the result of \"t9\""),
        (import(1, &file, false), "`part`: 0 would be next, not 1"),
    ] {
        let answer = client.ask(piece).await;
        assert_eq!(code(&answer), "invalid_payload", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message} is not {expected}");
    }
    // A piece that is not the next one: the file begins anew.
    client.ask(import(0, cut, true)).await;
    assert_eq!(
        code(&client.ask(import(2, "", true)).await),
        "invalid_payload"
    );
    assert_eq!(
        code(&client.ask(import(1, "", true)).await),
        "invalid_payload"
    );
    // And it goes with its socket.
    client.ask(import(0, cut, true)).await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let rest = import(1, rest, false);
    assert_eq!(code(&client.ask(rest).await), "invalid_payload");
    let listed = client.ask(json!({"type": "session:list"})).await;
    assert_eq!(listed["payload"]["sessions"].as_array().unwrap().len(), 1);
    let whole = client.ask(import(0, &file, false)).await;
    assert_eq!(whole["type"], "session:import-result", "{whole}");
}

#[tokio::test]
async fn files_that_are_not_finished_are_few() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let begin = json!({"type": "session:import", "text": "{", "more": true});
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = daemon.connect().await;
        assert_eq!(
            client.ask(begin.clone()).await["type"],
            "session:import-result"
        );
        clients.push(client);
    }
    let mut fifth = daemon.connect().await;
    assert_eq!(code(&fifth.ask(begin.clone()).await), "rate_limited");
    // One that is begun anew takes the place of its own.
    assert_eq!(
        clients[0].ask(begin.clone()).await["type"],
        "session:import-result"
    );
    drop(clients);
    crate::support::eventually("a place is free", async || {
        fifth.ask(begin.clone()).await["type"] == "session:import-result"
    })
    .await;
}

#[tokio::test]
async fn labels_sort_and_who_asked_hears_what_changes() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut watching = daemon.connect().await;
    watching
        .ask(json!({"type": "session:configure", "layers": ["stream", "sessions"]}))
        .await;
    let mut client = said(&daemon, &provider, "hello there").await;
    let session = client.session();
    let began = watching.until("session:updated").await;
    assert_eq!(began["payload"]["sessionId"], session);
    let titled = match began["payload"]["title"].is_null() {
        true => watching.until("session:updated").await,
        false => began,
    };
    assert_eq!(titled["payload"]["title"], "hello there", "{titled}");
    for refused in [
        json!([""]),
        json!(["a\nb"]),
        json!(["x".repeat(65)]),
        Value::from_iter(0..17),
    ] {
        let answer = client
            .ask(json!({"type": "session:label", "labels": refused}))
            .await;
        assert_eq!(code(&answer), "invalid_payload", "{answer}");
    }
    let label = json!({"type": "session:label", "labels": [" shop", "b", "b"]});
    assert_eq!(
        client.ask(label).await["payload"],
        json!({"sessionId": session})
    );
    let listed = async |client: &mut Client, labels: Value| {
        let answer = client
            .ask(json!({"type": "session:list", "labels": labels}))
            .await;
        answer["payload"]["sessions"].clone()
    };
    let found = listed(&mut client, json!(["shop"])).await;
    assert_eq!(found[0]["labels"], json!(["b", "shop"]));
    assert_eq!(listed(&mut client, json!(["shop", "c"])).await, json!([]));
    client
        .ask(json!({"type": "session:archive", "archived": true}))
        .await;
    client
        .ask(json!({"type": "session:rename", "title": "Mine"}))
        .await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|it: &Value| it["title"] != "Mine") {
        heard.push(watching.until("session:updated").await["payload"].clone());
    }
    assert!(
        heard.iter().any(|it| it["labels"] == json!(["b", "shop"])),
        "{heard:?}"
    );
    assert!(heard.iter().any(|it| it["archived"] == true), "{heard:?}");
    watching
        .ask(json!({"type": "session:delete", "sessionId": session}))
        .await;
    let deleted = watching.until("session:updated").await;
    assert_eq!(deleted["payload"]["deleted"], true, "{deleted}");
    assert!(client.all("session:updated").is_empty(), "it did not ask");
}

#[tokio::test]
async fn beyond_max_bytes_what_was_put_away_goes_and_nothing_else() {
    let provider = Provider::start().await;
    let more = json!({"store": {"max_bytes": "16MiB"}});
    let daemon = Daemon::with(&provider, more).await;
    // What cannot be packed, and each its own.
    let dice = Dice::new();
    let long = || -> String {
        let numbers = std::iter::repeat_with(|| format!("{:016x}", dice.roll(u64::MAX)));
        numbers.take(400_000).collect()
    };
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = said(&daemon, &provider, &long()).await;
        client.ask(json!({"type": "session:archive"})).await;
        clients.push(client);
    }
    // All three are open, so none was deleted.
    let mut watching = daemon.connect().await;
    watching
        .ask(json!({"type": "session:configure", "layers": ["sessions"]}))
        .await;
    let oldest = clients[0].session();
    drop(clients);
    let listed = json!({"type": "session:list", "archived": true});
    let sessions = watching.ask(listed.clone()).await;
    assert_eq!(sessions["payload"]["sessions"].as_array().unwrap().len(), 3);
    // At the next start nobody has them open.
    let mut daemon = daemon.after_end().await;
    let mut watching = daemon.connect().await;
    crate::support::eventually("the oldest is deleted", async || {
        let sessions = watching.ask(listed.clone()).await;
        let ids = sessions["payload"]["sessions"].as_array().unwrap().clone();
        assert!(ids.len() >= 2, "{sessions}");
        !ids.iter().any(|it| it["sessionId"] == oldest)
    })
    .await;
    drop(daemon.stdin.take());
    daemon.child.wait().await.unwrap();
    let mut log = daemon.log().into_iter();
    assert!(
        log.any(|line| line.to_string().contains(&oldest)),
        "the log says which"
    );
}

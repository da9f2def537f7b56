//! What ran, of this session and of all: over restarts and deleted sessions, in sum, and for other programs.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

const SECRET: &str = "sk-canary-0123456789abcdef";

async fn autonomous(provider: &Provider) -> Daemon {
    let more = json!({"chat": {"trust_level": "autonomous"}});
    Daemon::with(provider, more).await
}

/// Runs calls of one turn to their end.
async fn run(client: &mut Client, provider: &Provider, calls: &[(&str, Value)]) {
    provider.then(Turn::calls(calls)).then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

async fn ask(client: &mut Client, kind: &str, mut wanted: Value) -> Value {
    wanted["type"] = json!(kind);
    client.ask(wanted).await
}

/// Returns the records of a page of all sessions.
async fn records(client: &mut Client, mut wanted: Value) -> Vec<Value> {
    wanted["scope"] = json!("daemon");
    let answer = ask(client, "tool:history", wanted).await;
    let records = answer["payload"]["executions"].as_array();
    records.unwrap_or_else(|| panic!("{answer}")).clone()
}

/// Returns the inputs of the same.
async fn inputs(client: &mut Client, wanted: Value) -> Vec<String> {
    let records = records(client, wanted).await;
    let input = |it: &Value| it["input"]["command"].as_str().unwrap_or("-").to_owned();
    records.iter().map(input).collect()
}

async fn metrics(client: &mut Client, wanted: Value) -> Value {
    ask(client, "tool:metrics", wanted).await["payload"].clone()
}

/// Returns each sum as its name, its calls and how many of them failed.
fn sums(list: &Value) -> Vec<(String, u64, u64)> {
    let sum = |it: &Value| {
        let number = |name: &str| it[name].as_u64().unwrap();
        let name = it["name"].as_str().unwrap().to_owned();
        (name, number("count"), number("failed"))
    };
    list.as_array().unwrap().iter().map(sum).collect()
}

fn named(sums: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    let sums = sums.iter();
    sums.map(|(name, calls, failed)| ((*name).to_owned(), *calls, *failed))
        .collect()
}

#[tokio::test]
async fn all_sessions_are_there_after_a_restart_and_sums_outlive_a_session() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut first = daemon.connect().await;
    run(&mut first, &provider, &[bash("echo one")]).await;
    run(&mut first, &provider, &[bash("cd . && false")]).await;
    let mut second = daemon.connect().await;
    run(&mut second, &provider, &[bash("echo two")]).await;
    let (one, two) = (first.session(), second.session());
    // Each has its own, unless it asks for all.
    let own = ask(&mut second, "tool:history", json!({})).await;
    assert_eq!(own["payload"]["executions"].as_array().unwrap().len(), 1);
    let daemon = daemon.after_kill().await;
    let mut third = daemon.connect().await;
    let all = records(&mut third, json!({})).await;
    let whose: Vec<&Value> = all.iter().map(|it| &it["sessionId"]).collect();
    assert_eq!(whose, [two.as_str(), one.as_str(), one.as_str()]);
    assert_eq!(all[1]["commands"], json!(["cd", "false"]));
    assert_eq!(all[1]["exitCode"], 1);
    for (wanted, expected) in [
        (json!({}), vec!["echo two", "cd . && false", "echo one"]),
        (json!({"status": "error"}), vec!["cd . && false"]),
        (json!({"toolName": "git"}), vec![]),
        (json!({"provider": "nobody"}), vec![]),
        (
            json!({"conversationId": "default", "limit": 1}),
            vec!["echo two"],
        ),
        (
            json!({"since": all[1]["startedAt"], "until": all[0]["startedAt"]}),
            vec!["cd . && false"],
        ),
        (json!({"until": "1999-01-01T00:00:00Z"}), vec![]),
        (json!({"status": "queued"}), vec![]),
    ] {
        let found = inputs(&mut third, wanted.clone()).await;
        assert_eq!(found, expected, "{wanted}");
    }
    let mut wanted = json!({"scope": "daemon", "limit": 2});
    let page = ask(&mut third, "tool:history", wanted.clone()).await;
    wanted["cursor"] = page["payload"]["nextCursor"].clone();
    assert_eq!(inputs(&mut third, wanted).await, ["echo one"]);
    let expected = |sums_of: &Value| {
        assert_eq!(sums(&sums_of["tools"]), named(&[("bash", 3, 1)]));
        assert_eq!(sums(&sums_of["providers"]), named(&[("test", 3, 1)]));
        let commands = named(&[("echo", 2, 0), ("cd", 1, 1), ("false", 1, 1)]);
        assert_eq!(sums(&sums_of["commands"]), commands);
        let bytes = sums_of["tools"][0]["outputBytes"].as_u64();
        assert!(bytes >= Some(8), "{sums_of}");
        assert!(sums_of["tools"][0]["maxRssBytes"].is_u64(), "{sums_of}");
    };
    expected(&metrics(&mut third, json!({"scope": "daemon", "days": 2})).await);
    let own = metrics(&mut third, json!({})).await;
    assert_eq!(own["tools"], json!([]));
    let deleted = ask(&mut third, "session:delete", json!({"sessionId": one})).await;
    assert_eq!(deleted["type"], "session:delete-result", "{deleted}");
    assert_eq!(inputs(&mut third, json!({})).await, ["echo two"]);
    expected(&metrics(&mut third, json!({"scope": "daemon"})).await);
    // And a session's own sums reach over the restart, too.
    let mut again = Client::connect(&daemon, &format!("?session={two}&after=0")).await;
    let own = metrics(&mut again, json!({"days": 1})).await;
    assert_eq!(sums(&own["commands"]), named(&[("echo", 1, 0)]));
    assert!(
        own["tools"][0]["meanDurationMs"].as_f64().unwrap() > 0.0,
        "{own}"
    );
}

#[tokio::test]
async fn a_call_that_runs_is_seen_from_another_session_and_fails_with_the_daemon() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    provider.then(Turn::call(
        "bash",
        &json!({"command": "echo begun; sleep 600"}),
    ));
    let mut first = daemon.connect().await;
    first.say("go").await;
    first.until("chat:tool-delta").await;
    let mut second = daemon.connect().await;
    let running = json!({"status": "running"});
    let found = records(&mut second, running.clone()).await;
    assert_eq!(found[0]["status"], "running");
    assert_eq!(
        found[0]["stdoutBytes"], 6,
        "as its session has it: {found:?}"
    );
    let sum = metrics(&mut second, json!({"scope": "daemon"})).await;
    assert_eq!((&sum["running"], &sum["queued"]), (&json!(1), &json!(0)));
    assert_eq!(sum["tools"], json!([]));
    let daemon = daemon.after_kill().await;
    let mut third = daemon.connect().await;
    assert!(records(&mut third, running).await.is_empty());
    let failed = records(&mut third, json!({"status": "error"})).await;
    assert_eq!(failed[0]["status"], "error");
    let sum = metrics(&mut third, json!({"scope": "daemon"})).await;
    assert_eq!(sum["running"], 0);
    assert_eq!(
        sums(&sum["commands"]),
        named(&[("echo", 1, 1), ("sleep", 1, 1)])
    );
}

#[tokio::test]
async fn a_command_in_the_background_has_its_end_in_the_record() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut first = daemon.connect().await;
    let input =
        json!({"command": "while [ ! -e go ]; do sleep 0.01; done; exit 3", "background": true});
    run(&mut first, &provider, &[("bash", input)]).await;
    let mut second = daemon.connect().await;
    let found = records(&mut second, json!({})).await;
    assert_eq!(found[0]["background"]["status"], "running", "{found:?}");
    daemon.file("go", "");
    let ended = |event: &Value| event["payload"]["background"]["status"] == "exited";
    while !ended(&first.until("tool:background").await) {}
    let daemon = daemon.after_kill().await;
    let mut third = daemon.connect().await;
    let found = records(&mut third, json!({})).await;
    assert_eq!(found[0]["background"]["exitCode"], 3, "{found:?}");
}

/// Reads a table as RFC 4180 has it.
fn table(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut chars, mut is_quoted) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !is_quoted, "{text}");
    rows
}

#[tokio::test]
async fn an_export_is_one_text_in_pieces_without_secrets_and_formulas() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let hostile = format!("echo \"a,b\"\necho {SECRET}");
    provider
        .then(Turn::calls(&[bash(&hostile)]))
        .then(Turn::text("done"));
    let send = json!({"type": "chat:send", "conversationId": "=1+1", "content": "go"});
    client.send(send).await;
    client.until("chat:stream-end").await;
    run(&mut client, &provider, &[("@nothing", json!({}))]).await;
    for scope in ["session", "daemon"] {
        let (mut csv, mut lines) = (String::new(), String::new());
        for (format, text) in [("csv", &mut csv), ("jsonl", &mut lines)] {
            let mut wanted = json!({"format": format, "scope": scope, "limit": 1});
            loop {
                let answer = ask(&mut client, "tool:export", wanted.clone()).await;
                let piece = &answer["payload"];
                assert_eq!(piece["format"], format, "{answer}");
                assert_eq!(piece["records"], 1);
                text.push_str(piece["text"].as_str().unwrap());
                match piece.get("nextCursor") {
                    Some(next) => wanted["cursor"] = next.clone(),
                    None => break,
                }
            }
        }
        let rows = table(&csv);
        assert_eq!(rows.len(), 3, "{csv}");
        let column = |name: &str| rows[0].iter().position(|it| it == name).unwrap();
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        assert_eq!(rows[2][column("conversationId")], "'=1+1");
        assert_eq!(rows[1][column("toolName")], "'@nothing");
        assert_eq!(rows[2][column("sessionId")], client.session());
        let clean = hostile.replace(SECRET, "[redacted]");
        let input: Value = serde_json::from_str(&rows[2][column("input")]).unwrap();
        assert_eq!(input["command"], clean);
        let read: Vec<Value> = lines
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1]["input"]["command"], clean);
        assert_eq!(read[1]["conversationId"], "=1+1");
        assert_eq!(read[1]["sessionId"], client.session());
    }
}

#[tokio::test]
async fn what_is_no_request_is_said() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    for (kind, wanted, word) in [
        ("tool:history", json!({"scope": "world"}), "scope"),
        (
            "tool:history",
            json!({"scope": "daemon", "cursor": "x"}),
            "cursor",
        ),
        (
            "tool:history",
            json!({"scope": "daemon", "limit": 0}),
            "limit",
        ),
        (
            "tool:history",
            json!({"scope": "daemon", "since": "now"}),
            "since",
        ),
        ("tool:metrics", json!({"scope": 7}), "scope"),
        ("tool:metrics", json!({"days": 0}), "days"),
        (
            "tool:metrics",
            json!({"scope": "daemon", "days": 801}),
            "days",
        ),
        ("tool:export", json!({}), "format"),
        ("tool:export", json!({"format": "xml"}), "format"),
        (
            "tool:export",
            json!({"format": "csv", "until": "x"}),
            "until",
        ),
    ] {
        let answer = ask(&mut client, kind, wanted).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{message}");
    }
    let more = json!({"store": {"enabled": false}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    for (kind, wanted) in [
        ("tool:history", json!({"scope": "daemon"})),
        ("tool:metrics", json!({"scope": "daemon"})),
        ("tool:export", json!({"scope": "daemon", "format": "csv"})),
    ] {
        let answer = ask(&mut client, kind, wanted).await;
        assert_eq!(answer["payload"]["code"], "forbidden", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(message.contains("store.enabled"), "{message}");
    }
    let own = ask(&mut client, "tool:export", json!({"format": "csv"})).await;
    assert_eq!(own["payload"]["records"], 0, "{own}");
}

#[tokio::test]
async fn the_last_thousand_calls_of_a_session_are_kept_and_all_are_counted() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    for turn in 0..11 {
        let calls: Vec<_> = (0..100)
            .map(|number| ("nothing", json!({ "command": format!("{turn}-{number}") })))
            .collect();
        run(&mut client, &provider, &calls).await;
    }
    let daemon = daemon.after_end().await;
    let mut client = daemon.connect().await;
    let found = inputs(&mut client, json!({"limit": 1000})).await;
    assert_eq!(found.len(), 1_000);
    assert!(!found.iter().any(|it| it.starts_with("0-")), "{found:?}");
    let sum = metrics(&mut client, json!({"scope": "daemon"})).await;
    assert_eq!(sums(&sum["tools"]), named(&[("nothing", 1_100, 1_100)]));
    // None of them ran.
    assert_eq!(sum["tools"][0]["meanDurationMs"], 0.0);
}

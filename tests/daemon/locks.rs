//! Calls that change files wait for each other, what reads goes on, and what a command changed is told.

mod waiting;

use serde_json::{Value, json};

use crate::approval::approve;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// A command that may change files: it says where another one is at work beside it, and ends when `go` is there.
const ALONE: &str = "mkdir busy || echo together; touch began; \
                     while [ ! -e go ]; do sleep 0.01; done; rmdir busy; echo done";

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

fn write(path: &str) -> (&'static str, Value) {
    ("file_write", json!({"path": path, "content": "new"}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("file_read", json!({ "path": path }))
}

/// A daemon that asks for nothing, and whose model says "done" where no turn is left.
async fn autonomous(turns: Vec<Turn>, more: Value) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    for turn in turns {
        provider.then(turn);
    }
    provider.by_rule(|_| Turn::text("done"));
    let mut config = json!({"chat": {"trust_level": "autonomous"}});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let daemon = Daemon::with(&provider, config).await;
    let client = daemon.connect().await;
    (daemon, client, provider)
}

async fn say_in(client: &mut Client, conversation: &str) {
    client
        .send(json!({"type": "chat:send", "content": "go", "conversationId": conversation}))
        .await;
}

/// Has a command run in the conversation `a`, and the calls `t2` and `t3` of `b` wait for it; `next` is the call after them.
async fn two_that_wait(next: (&'static str, Value)) -> (Daemon, Client, Provider) {
    let turns = vec![
        Turn::calls(&[bash(ALONE)]),
        Turn::calls(&[bash("touch never"), bash("touch never")]),
        Turn::calls(&[next]),
    ];
    let (daemon, mut client, provider) = autonomous(turns, json!({})).await;
    say_in(&mut client, "a").await;
    until_runs(&mut client, &daemon).await;
    say_in(&mut client, "b").await;
    until(&mut client, |client| {
        ["t2", "t3"].iter().all(|id| queued(client, id).is_some())
    })
    .await;
    (daemon, client, provider)
}

/// The results of a turn's 200 calls, as the model is given them.
fn two_hundred_results(provider: &Provider) -> Vec<String> {
    let request = &provider.requests()[1];
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    let results: Vec<_> = results
        .map(|result| result["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(results.len(), 200);
    results
}

async fn until(client: &mut Client, holds: impl Fn(&Client) -> bool) {
    while !holds(client) {
        client.next().await;
    }
}

async fn until_ends(client: &mut Client, exchanges: usize) {
    until(client, |client| {
        client.all("chat:stream-end").len() >= exchanges
    })
    .await;
}

/// Why a call waits, the last time it said so.
fn queued(client: &Client, tool_id: &str) -> Option<String> {
    let states = client.all("chat:state");
    let mut waits = states
        .iter()
        .filter(|state| state["state"] == "tool-queued" && state["toolId"] == tool_id);
    waits
        .next_back()
        .map(|state| state["reason"].as_str().unwrap().to_owned())
}

fn result(client: &Client, tool_id: &str) -> Option<Value> {
    let results = client.all("chat:tool-result");
    results
        .into_iter()
        .find(|result| result["toolId"] == tool_id)
}

async fn until_runs(client: &mut Client, daemon: &Daemon) {
    until(client, |client| {
        let states = client.all("chat:state");
        states
            .iter()
            .any(|state| state["state"] == "tool-executing")
    })
    .await;
    crate::support::eventually("the command's begin", async || {
        daemon.project().join("began").exists()
    })
    .await;
}

#[tokio::test]
async fn commands_and_writes_wait_for_a_command_and_reads_do_not() {
    let turns = vec![
        Turn::calls(&[bash(ALONE)]),
        Turn::calls(&[bash(ALONE), bash(ALONE), write("w")]),
        Turn::calls(&[
            bash("cat notes"),
            read("notes"),
            ("file_search", json!({"pattern": "text"})),
        ]),
    ];
    let (daemon, mut client, _provider) = autonomous(turns, json!({})).await;
    daemon.file("notes", "text\n");
    say_in(&mut client, "a").await;
    until_runs(&mut client, &daemon).await;
    say_in(&mut client, "b").await;
    until(&mut client, |client| {
        let mut waits = ["t2", "t3", "t4"].iter();
        waits.all(|id| queued(client, id).is_some())
    })
    .await;
    // More calls wait than may run at once, and those that read run all the same.
    say_in(&mut client, "c").await;
    until(&mut client, |client| {
        let mut reads = ["t5", "t6", "t7"].iter();
        reads.all(|id| result(client, id).is_some())
    })
    .await;
    for id in ["t2", "t3", "t4"] {
        let reason = queued(&client, id).unwrap();
        let expected = "waits for t1 bash of conversation \"a\", which may change files";
        assert!(reason.starts_with(expected), "{id} {reason}");
        assert!(result(&client, id).is_none(), "{id}");
    }
    daemon.file("go", "");
    until_ends(&mut client, 3).await;
    for id in ["t1", "t2", "t3", "t4", "t5", "t6", "t7"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["status"], "success", "{result}");
        assert!(!result.to_string().contains("together"), "{result}");
    }
}

#[tokio::test]
async fn a_call_that_is_asked_for_holds_nothing() {
    let provider = Provider::start().await;
    provider
        .then(Turn::calls(&[bash("touch a")]))
        .then(Turn::calls(&[write("w")]))
        .by_rule(|_| Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for (conversation, questions) in [("a", 1), ("b", 2)] {
        say_in(&mut client, conversation).await;
        until(&mut client, |client| {
            client.all("chat:tool-confirm").len() == questions
        })
        .await;
    }
    client.send(approve(&json!("t2"), &json!({}))).await;
    until_ends(&mut client, 1).await;
    assert_eq!(result(&client, "t2").unwrap()["status"], "success");
    assert_eq!(queued(&client, "t2"), None);
    client.send(approve(&json!("t1"), &json!({}))).await;
    until_ends(&mut client, 2).await;
    assert_eq!(result(&client, "t1").unwrap()["status"], "success");
}

#[tokio::test]
async fn calls_of_a_session_with_a_client_come_first() {
    let turns = vec![
        Turn::calls(&[bash(ALONE)]),
        Turn::calls(&[bash("echo alone >> order")]),
        Turn::calls(&[bash("echo attended >> order")]),
    ];
    let (daemon, mut first, _provider) = autonomous(turns, json!({})).await;
    say_in(&mut first, "a").await;
    until_runs(&mut first, &daemon).await;
    let mut alone = daemon.connect().await;
    say_in(&mut alone, "a").await;
    until(&mut alone, |client| queued(client, "t1").is_some()).await;
    let resumed = alone.seen[0]["payload"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    drop(alone);
    let mut attended = daemon.connect().await;
    say_in(&mut attended, "a").await;
    until(&mut attended, |client| queued(client, "t1").is_some()).await;
    daemon.file("go", "");
    until_ends(&mut attended, 1).await;
    let mut again = Client::connect(&daemon, &format!("?session={resumed}&after=0")).await;
    until_ends(&mut again, 1).await;
    let order = std::fs::read_to_string(daemon.project().join("order")).unwrap();
    assert_eq!(order, "attended\nalone\n");
}

#[tokio::test]
async fn a_cancel_while_it_waits_gives_its_place_up() {
    let (daemon, mut client, _provider) = two_that_wait(write("w")).await;
    client
        .send(json!({"type": "chat:cancel", "conversationId": "b"}))
        .await;
    until_ends(&mut client, 1).await;
    for id in ["t2", "t3"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["metadata"]["cancelled"], true, "{result}");
        assert_eq!(result["result"], "cancelled before it ran");
    }
    say_in(&mut client, "c").await;
    until(&mut client, |client| queued(client, "t4").is_some()).await;
    let reason = queued(&client, "t4").unwrap();
    // Nobody but the one that runs.
    assert!(reason.ends_with("which may change files"), "{reason}");
    daemon.file("go", "");
    until_ends(&mut client, 3).await;
    assert_eq!(result(&client, "t4").unwrap()["status"], "success");
    assert!(!daemon.project().join("never").exists());
}

#[tokio::test]
async fn who_wants_that_has_commands_side_by_side() {
    let meet = |own: &str, other: &str| {
        format!("touch {own}; while [ ! -e {other} ]; do sleep 0.01; done; echo met")
    };
    let turns = vec![Turn::calls(&[
        bash(&meet("a", "c")),
        bash(&meet("b", "a")),
        ("own", json!({})),
    ])];
    let more = json!({"tools": {
        "bash": {"parallel": true, "timeout": "10m"},
        "custom": {"own": {"description": "Meets.", "shell": meet("c", "b"), "timeout": "10m"}},
    }});
    let (_daemon, mut client, _provider) = autonomous(turns, more).await;
    say_in(&mut client, "a").await;
    until_ends(&mut client, 1).await;
    for id in ["t1", "t2", "t3"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["result"], "met\n", "{result}");
    }
}

#[tokio::test]
async fn two_hundred_calls_of_a_turn_have_their_own_results_in_order() {
    let calls: Vec<_> = (0..200)
        .map(|number| match number % 8 {
            0 => bash(&format!("echo {number} >> log; echo ran {number}")),
            1 => write(&format!("made/{number}")),
            _ => read(&format!("notes/{number}")),
        })
        .collect();
    let (daemon, mut client, provider) = autonomous(vec![Turn::calls(&calls)], json!({})).await;
    for number in 0..200 {
        daemon.file(format!("notes/{number}"), format!("note {number}\n"));
    }
    say_in(&mut client, "a").await;
    until_ends(&mut client, 1).await;
    assert_eq!(client.all("chat:tool-result").len(), 200);
    for (number, content) in two_hundred_results(&provider).iter().enumerate() {
        let expected = match number % 8 {
            0 => format!("ran {number}\n"),
            1 => format!("made/{number}: "),
            _ => format!("note {number}\n"),
        };
        assert!(content.contains(&expected), "{number} {content:?}");
    }
    let log = std::fs::read_to_string(daemon.project().join("log")).unwrap();
    assert_eq!(log.lines().count(), 25, "{log:?}");
}

#[tokio::test]
async fn two_hundred_calls_of_a_turn_are_each_asked_for_and_have_their_results_in_order() {
    let provider = Provider::start().await;
    let calls: Vec<_> = (0..200)
        .map(|number| match number % 2 {
            0 => bash(&format!("touch ran/{number}; echo ran {number}")),
            _ => write(&format!("made/{number}")),
        })
        .collect();
    provider.then(Turn::calls(&calls)).then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("ran/here", "");
    let mut client = daemon.connect().await;
    say_in(&mut client, "a").await;
    // No question waits for the answer to another one.
    until(&mut client, |client| {
        client.all("chat:tool-confirm").len() == 200
    })
    .await;
    let questions = client.all("chat:tool-confirm");
    let asked: Vec<&str> = questions
        .iter()
        .map(|question| question["toolId"].as_str().unwrap())
        .collect();
    let ids: Vec<String> = (1..=200).map(|number| format!("t{number}")).collect();
    assert_eq!(asked, ids);
    assert!(client.all("chat:tool-result").is_empty());
    // From the last to the first, so that they cannot end in the order of the calls; every tenth may not run.
    for (number, id) in ids.iter().enumerate().rev() {
        let verdict = match number % 10 {
            0 => json!({"approved": false}),
            _ => json!({}),
        };
        client.send(approve(&json!(id), &verdict)).await;
    }
    until_ends(&mut client, 1).await;
    assert_eq!(client.all("chat:tool-result").len(), 200);
    for (number, content) in two_hundred_results(&provider).iter().enumerate() {
        let (expected, file) = match number % 2 {
            0 => (format!("ran {number}\n"), format!("ran/{number}")),
            _ => (format!("made/{number}: "), format!("made/{number}")),
        };
        let denied = number % 10 == 0;
        assert_eq!(content.contains(&expected), !denied, "{number} {content:?}");
        assert_eq!(daemon.project().join(file).exists(), !denied, "{number}");
        let own = result(&client, &ids[number]).unwrap();
        assert_eq!(own["metadata"]["denied"] == true, denied, "{own}");
    }
}

#[tokio::test]
async fn what_a_command_changed_is_told_and_must_be_read_again() {
    let turns = vec![
        Turn::calls(&[read("kept"), read("other"), read("gone")]),
        Turn::calls(&[bash(
            "echo more >> kept; rm gone; mkdir -p new build; echo x | tee new/file build/out > /dev/null",
        )]),
        Turn::calls(&[write("kept"), write("other"), write("gone")]),
        Turn::calls(&[read("kept")]),
        Turn::calls(&[write("kept")]),
        Turn::calls(&[bash("cat kept")]),
        Turn::calls(&[bash("for n in $(seq 300); do echo $n > new/$n; done")]),
    ];
    let (daemon, mut client, _provider) = autonomous(turns, json!({})).await;
    for (name, content) in [
        ("kept", "text\n"),
        ("other", "text\n"),
        ("gone", "text\n"),
        (".gitignore", "build/\n"),
    ] {
        daemon.file(name, content);
    }
    say_in(&mut client, "a").await;
    until_ends(&mut client, 1).await;
    let result = |id| result(&client, id).unwrap();
    assert_eq!(
        result("t4")["metadata"]["changed"],
        json!({"files": [
            {"path": "gone", "change": "deleted"},
            {"path": "kept", "change": "modified"},
            {"path": "new/file", "change": "created"},
        ]})
    );
    for (id, status, says) in [
        ("t5", "error", "read it again"),
        ("t6", "success", ""),
        ("t7", "error", "deleted by someone else"),
        ("t9", "success", ""),
    ] {
        let result = result(id);
        assert_eq!(result["status"], status, "{result}");
        assert!(
            result["result"].as_str().unwrap().contains(says),
            "{result}"
        );
    }
    // What only reads is not looked after.
    assert_eq!(result("t10")["metadata"].get("changed"), None);
    let many = result("t11")["metadata"]["changed"].clone();
    assert_eq!(many["files"].as_array().unwrap().len(), 200);
    assert_eq!(many["more"], 100);
}

#[tokio::test]
async fn calls_of_a_turn_that_concern_the_same_file_come_in_their_order() {
    let provider = Provider::start().await;
    provider
        .then(Turn::calls(&[read("asked")]))
        .then(Turn::calls(&[
            write("asked"),
            read("notes"),
            bash("cat asked >> log"),
            read("asked"),
        ]))
        .by_rule(|_| Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("asked", "old");
    daemon.file("notes", "text\n");
    let mut client = daemon.connect().await;
    say_in(&mut client, "a").await;
    until(&mut client, |client| {
        client.all("chat:tool-confirm").len() == 2
    })
    .await;
    // The later one first.
    client.send(approve(&json!("t4"), &json!({}))).await;
    until(&mut client, |client| {
        let waits = ["t4", "t5"].iter().all(|id| queued(client, id).is_some());
        waits && result(client, "t3").is_some()
    })
    .await;
    for id in ["t4", "t5"] {
        let reason = "waits for t2 file_write, which comes first";
        assert_eq!(queued(&client, id).as_deref(), Some(reason));
        assert_eq!(result(&client, id), None);
    }
    client.send(approve(&json!("t2"), &json!({}))).await;
    until_ends(&mut client, 1).await;
    for id in ["t2", "t4", "t5"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["status"], "success", "{result}");
    }
    let read = result(&client, "t5").unwrap()["result"].to_string();
    assert!(read.contains("new"), "{read}");
    let log = std::fs::read_to_string(daemon.project().join("log")).unwrap();
    assert_eq!(log, "new");
}

/// Whatever reads: a file, a search, a command that is proven to only read.
#[tokio::test]
async fn what_reads_comes_after_what_the_turn_wrote_before_it_and_before_what_it_writes_later() {
    let turns = vec![
        Turn::calls(&[
            bash("cat gate > a"),
            read("a"),
            ("file_search", json!({"pattern": "first"})),
            bash("cat a"),
        ]),
        Turn::calls(&[bash("cat gate a"), write("a"), bash("cat a")]),
    ];
    let (daemon, mut client, _provider) = autonomous(turns, json!({})).await;
    daemon.file("a", "old");
    let gate = daemon.project().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    say_in(&mut client, "a").await;
    for (waiting, through, expected) in [
        (
            &["t2", "t3", "t4"][..],
            "first",
            &[("t2", "first"), ("t3", "first"), ("t4", "first")][..],
        ),
        (
            &["t6", "t7"],
            "second ",
            &[("t5", "second first"), ("t7", "new")],
        ),
    ] {
        until(&mut client, |client| {
            waiting.iter().all(|id| queued(client, id).is_some())
        })
        .await;
        // It opens once the call reads it.
        tokio::fs::write(&gate, through).await.unwrap();
        for (id, expected) in expected {
            until(&mut client, |client| result(client, id).is_some()).await;
            let result = result(&client, id).unwrap();
            let said = result["result"].as_str().unwrap();
            assert!(said.contains(expected), "{id}: {result}");
        }
    }
}

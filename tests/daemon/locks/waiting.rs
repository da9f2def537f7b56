//! Calls that wait: in which order they run, what ends the wait, and what waits whatever the settings say.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{
    ALONE, autonomous, bash, queued, result, say_in, two_that_wait, until, until_ends, until_runs,
};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, eventually};
use crate::telemetry::{figure, get};

const CANCELLED: &str = "cancelled before it ran";

#[tokio::test]
async fn conversations_take_turns_where_each_has_many_commands() {
    const EACH: usize = 6;
    // The first calls of the session are those of `a`.
    let ids = |conversation: &str| {
        let before = if conversation == "a" { 0 } else { EACH };
        (1..=EACH).map(move |number| format!("t{}", before + number))
    };
    let calls = |conversation: &str| {
        let line =
            |id: String| format!("echo {id} >> order; while [ ! -e go/{id} ]; do sleep 0.01; done");
        let calls: Vec<_> = ids(conversation).map(|id| bash(&line(id))).collect();
        Turn::calls(&calls)
    };
    let turns = vec![calls("a"), calls("b")];
    let (daemon, mut client, _provider) = autonomous(turns, json!({})).await;
    for conversation in ["a", "b"] {
        say_in(&mut client, conversation).await;
        // All but the one that runs.
        until(&mut client, |client| {
            let waiting = ids(conversation).filter(|id| queued(client, id).is_some());
            waiting.count() >= EACH - usize::from(conversation == "a")
        })
        .await;
    }
    let order = daemon.project().join("order");
    let began = || std::fs::read_to_string(&order).unwrap_or_default();
    for number in 0..2 * EACH {
        eventually("the next command", async || {
            began().ends_with('\n') && began().lines().count() > number
        })
        .await;
        let began = began();
        let running = began.lines().next_back().unwrap();
        let (own, other) = match number % 2 {
            0 => ("a", "b"),
            _ => ("b", "a"),
        };
        let is_own = ids(own).any(|id| id == running);
        assert!(is_own, "none of {own:?} is number {number} of {began:?}");
        // The next one has its place before the end of this one lets its own conversation have another.
        if number + 1 < 2 * EACH {
            let for_this = format!("waits for {running} bash of conversation \"{own}\"");
            until(&mut client, |client| {
                let mut reasons = ids(other).filter_map(|id| queued(client, &id));
                reasons.any(|reason| reason.starts_with(&for_this))
            })
            .await;
        }
        daemon.file(format!("go/{running}"), "");
    }
    until_ends(&mut client, 2).await;
    for id in ids("a").chain(ids("b")) {
        assert_eq!(result(&client, &id).unwrap()["status"], "success", "{id}");
    }
}

/// How many calls wait in the whole daemon.
async fn waiting(daemon: &Daemon) -> f64 {
    let text = get(daemon, "/metrics", &daemon.token).await;
    figure(&text, "outrigger_tool_calls_queued")
}

/// Waits until so many calls wait in the whole daemon.
async fn until_waiting(daemon: &Daemon, calls: u32) {
    eventually("the number of calls that wait", async || {
        (waiting(daemon).await - f64::from(calls)).abs() < f64::EPSILON
    })
    .await;
}

/// Asserts that a call waits for the one that runs, and for no other.
fn waits_for_it_alone(client: &Client, id: &str) {
    let reason = queued(client, id).unwrap();
    assert!(reason.ends_with("which may change files"), "{reason}");
}

#[tokio::test]
async fn what_waits_in_a_conversation_that_is_closed_never_runs() {
    let (daemon, mut client, provider) = two_that_wait(bash("touch after")).await;
    until_waiting(&daemon, 2).await;
    let close = json!({"type": "chat:close", "conversationId": "b"});
    let closed = client.ask(close).await;
    assert_eq!(closed["payload"]["closed"], true, "{closed}");
    until_ends(&mut client, 1).await;
    assert_eq!(client.all("chat:stream-end")[0]["stopReason"], "cancelled");
    for id in ["t2", "t3"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["result"], CANCELLED, "{result}");
        assert_eq!(result["metadata"]["cancelled"], true, "{result}");
    }
    until_waiting(&daemon, 0).await;
    say_in(&mut client, "c").await;
    until(&mut client, |client| queued(client, "t4").is_some()).await;
    waits_for_it_alone(&client, "t4");
    daemon.file("go", "");
    until_ends(&mut client, 3).await;
    assert_eq!(result(&client, "t4").unwrap()["status"], "success");
    assert!(daemon.project().join("after").exists());
    assert!(!daemon.project().join("never").exists());
    // The model is not asked on behalf of what is closed.
    assert_eq!(provider.requests().len(), 5);
}

#[tokio::test]
async fn what_waits_in_a_session_whose_client_is_gone_for_good_never_runs() {
    let turns = vec![
        Turn::calls(&[bash(ALONE)]),
        Turn::calls(&[bash("touch never"), bash("touch never")]),
        Turn::calls(&[bash("touch after")]),
    ];
    let soon = json!({"session": {"resume_grace": "1ms"}});
    let (daemon, mut client, _provider) = autonomous(turns, soon).await;
    say_in(&mut client, "a").await;
    until_runs(&mut client, &daemon).await;
    let mut gone = daemon.connect().await;
    let session = gone.session();
    say_in(&mut gone, "a").await;
    until(&mut gone, |client| {
        ["t1", "t2"].iter().all(|id| queued(client, id).is_some())
    })
    .await;
    until_waiting(&daemon, 2).await;
    drop(gone);
    until_waiting(&daemon, 0).await;
    say_in(&mut client, "b").await;
    until(&mut client, |client| queued(client, "t2").is_some()).await;
    waits_for_it_alone(&client, "t2");
    daemon.file("go", "");
    until_ends(&mut client, 2).await;
    assert!(daemon.project().join("after").exists());
    assert!(!daemon.project().join("never").exists());
    // Whoever opens the session later finds that they did not run, and why.
    let mut again = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    until_ends(&mut again, 1).await;
    assert_eq!(again.all("chat:stream-end")[0]["stopReason"], "cancelled");
    let history = again
        .ask(json!({"type": "chat:history", "conversationId": "a"}))
        .await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    for id in ["t1", "t2"] {
        let has_result = |message: &Value| {
            let text = message.to_string();
            text.contains(&format!("\"{id}\"")) && text.contains(CANCELLED)
        };
        assert!(messages.iter().any(has_result), "{id} {history}");
    }
}

/// Runs a program that has to succeed.
fn run(program: &str, words: &[&str], folder: &Path) {
    let done = Command::new(program)
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{program} {words:?} {done:?}");
}

fn commit(words: &[&str]) -> (&'static str, Value) {
    let mut args = vec!["commit", "-q", "--allow-empty"];
    args.extend(words);
    ("git", json!({ "args": args }))
}

#[tokio::test]
async fn who_has_commands_side_by_side_has_no_two_changes_of_a_repository_so() {
    // The first one has begun as long as nobody writes its message.
    let turns = vec![
        Turn::calls(&[commit(&["-F", "message"])]),
        Turn::calls(&[commit(&["-m", "second"]), bash("touch beside")]),
    ];
    let more = json!({"tools": {"bash": {"parallel": true}}});
    let (daemon, mut client, _provider) = autonomous(turns, more).await;
    let project = daemon.project();
    run("git", &["init", "-q"], &project);
    run("git", &["config", "user.name", "n"], &project);
    run("git", &["config", "user.email", "e@example.org"], &project);
    run("mkfifo", &["message"], &project);
    say_in(&mut client, "a").await;
    until(&mut client, |client| {
        let states = client.all("chat:state");
        states.iter().any(|it| it["state"] == "tool-executing")
    })
    .await;
    say_in(&mut client, "b").await;
    until(&mut client, |client| {
        let is_settled =
            queued(client, "t2").or_else(|| result(client, "t2").map(|it| it.to_string()));
        is_settled.is_some() && result(client, "t3").is_some()
    })
    .await;
    assert!(
        result(&client, "t2").is_none(),
        "{:?}",
        result(&client, "t2")
    );
    let reason = queued(&client, "t2").unwrap();
    assert_eq!(
        reason,
        "waits for t1 git of conversation \"a\", which may change files"
    );
    assert_eq!(result(&client, "t3").unwrap()["status"], "success");
    assert_eq!(queued(&client, "t3"), None);
    // Opened only where somebody reads it: the one that waits for it.
    let message = project.join("message");
    let written = tokio::task::spawn_blocking(move || std::fs::write(message, "first\n"));
    crate::support::within("the first commit", written, String::new)
        .await
        .unwrap()
        .unwrap();
    until_ends(&mut client, 2).await;
    for id in ["t1", "t2"] {
        let result = result(&client, id).unwrap();
        assert_eq!(result["status"], "success", "{result}");
    }
    let log = Command::new("git")
        .args(["log", "--format=%s"])
        .current_dir(&project)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout), "second\nfirst\n");
}

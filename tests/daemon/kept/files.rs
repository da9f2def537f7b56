//! Files that are another daemon's, newer, no store, or damaged; how the file is looked at from outside; and what never
//! goes into it.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use super::{history, resume, said};
use crate::support::provider::Turn;
use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Daemon, Provider, within};
use crate::telemetry::get;

pub(super) async fn run(arguments: &[&str], config: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    command.args(arguments).arg("--config").arg(config);
    command.env_remove("RUST_LOG").output().await.unwrap()
}

/// Starts a daemon that does not come to be ready; returns its exit code and what it says.
pub(super) async fn refused(config: &Path) -> (Option<i32>, Value) {
    let output = run(&["serve"], config).await;
    let line = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(&line).unwrap())
}

/// Returns what `outrigger doctor` finds about the store: the state and the text.
pub(super) async fn doctor(config: &Path) -> (String, String) {
    let output = run(&["doctor", "--json"], config).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|it| it["check"] == "store").unwrap();
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    (text("state"), text("message") + &text("advice"))
}

/// Has something kept, and ends the daemon in order; its folder stays.
async fn kept(provider: &Provider) -> (tempfile::TempDir, String) {
    provider.then(Turn::text("hello"));
    let mut daemon = Daemon::start(provider).await;
    let mut client = daemon.connect().await;
    client.say("hi").await;
    client.until("chat:stream-end").await;
    drop(daemon.stdin.take());
    (daemon.left().await, client.session())
}

#[tokio::test]
async fn a_file_that_another_daemon_has_is_refused_and_looked_at() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello")).then(Turn::text("there"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("hi").await;
    client.until("chat:stream-end").await;
    let config = daemon.project().with_file_name("config.json");
    let (code, said) = refused(&config).await;
    assert_eq!((code, &said["code"]), (Some(3), &json!("state_in_use")));
    let whose = format!("the process {}", daemon.pid);
    assert!(said["message"].as_str().unwrap().contains(&whose), "{said}");
    let (state, text) = doctor(&config).await;
    assert_eq!(state, "warning", "{text}");
    assert!(text.contains(&whose) && text.contains("schema 3"), "{text}");
    assert!(text.contains("is refused (state_in_use)"), "{text}");
    // The first one does not mind.
    client.say("and").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("session:notice"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_as_it_is() {
    let provider = Provider::start().await;
    let (folder, _) = kept(&provider).await;
    let store = folder.path().join("state/outrigger.db");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&store, &bytes).unwrap();
    let config = folder.path().join("config.json");
    let (code, said) = refused(&config).await;
    assert_eq!((code, &said["code"]), (Some(3), &json!("store")));
    assert!(said["message"].as_str().unwrap().contains("has schema 99"));
    assert_eq!(doctor(&config).await.0, "failed");
    assert_eq!(std::fs::read(&store).unwrap(), bytes);
}

#[tokio::test]
async fn a_file_that_is_no_store_is_moved_away_and_one_that_is_damaged_stays() {
    let provider = Provider::start().await;
    let (folder, session) = kept(&provider).await;
    let store = folder.path().join("state/outrigger.db");
    let config = folder.path().join("config.json");
    assert_eq!(doctor(&config).await.0, "ok");
    let whole = std::fs::read(&store).unwrap();
    // The pages of its tables, but for the one that says which there are.
    let mut bytes = whole.clone();
    bytes[8 * 4096..].fill(0xAA);
    std::fs::write(&store, &bytes).unwrap();
    let (state, text) = doctor(&config).await;
    assert_eq!(state, "failed", "{text}");
    assert!(
        text.contains("damaged") && text.contains(".recover"),
        "{text}"
    );
    assert_eq!(std::fs::read(&store).unwrap(), bytes);

    std::fs::write(&store, "somebody's notes").unwrap();
    assert_eq!(doctor(&config).await.0, "failed");
    provider.then(Turn::text("anew"));
    let daemon = Daemon::begin(folder, &[]).await.unwrap();
    let mut client = resume(&daemon, &session, 0).await;
    assert_eq!(client.seen[0]["payload"]["persistent"], true);
    client.say("hi").await;
    client.until("chat:stream-end").await;
    let state = store.parent().unwrap();
    let names = std::fs::read_dir(state).unwrap();
    let moved = names
        .map(|it| it.unwrap().path())
        .find(|it| it.to_str().unwrap().contains(".damaged-"));
    assert_eq!(std::fs::read(moved.unwrap()).unwrap(), b"somebody's notes");
}

#[tokio::test]
async fn a_daemon_that_could_not_keep_the_last_words_ends_with_its_own_exit_code() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let mut daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("first").await;
    client.until("chat:stream-end").await;
    // Somebody else writes for as long as the daemon lives.
    let store = rusqlite::Connection::open(daemon.store()).unwrap();
    store
        .busy_timeout(std::time::Duration::from_mins(1))
        .unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    client
        .send(json!({"type": "chat:send", "content": "second"}))
        .await;
    client
        .find(|frame| frame["payload"]["code"] == "store_failed")
        .await;
    drop(daemon.stdin.take());
    let ended = within("the end", daemon.child.wait(), String::new).await;
    assert_eq!(ended.unwrap().code(), Some(6));
    let folder = daemon.left().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lost = log.lines().find(|line| line.contains("not_kept"));
    let lost = lost.expect("what is lost is said");
    assert!(lost.contains(&client.session()), "{lost}");
}

#[tokio::test]
async fn who_asks_by_a_daemon_of_its_own_is_told_that_nothing_could_be_kept() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::start(&provider).await;
    drop(daemon.stdin.take());
    let store = daemon.store();
    let folder = daemon.left().await;
    let store = rusqlite::Connection::open(store).unwrap();
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    provider.then(Turn::text("hello there"));
    let config = folder.path().join("config.json");
    let asked = within("an answer", run(&["run", "hello"], &config), String::new).await;
    let said = String::from_utf8_lossy(&asked.stderr);
    assert_eq!(asked.stdout, b"hello there\n", "{said}");
    assert!(said.contains("could not be kept"), "{said}");
    assert_eq!(asked.status.code(), Some(6), "{said}");
}

#[tokio::test]
async fn deltas_are_not_written() {
    const DELTAS: usize = 300;
    let server = Server::start().await;
    let chunk = |delta: Value, finish: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!("data: {}\n\n", json!({"choices": choices}))
    };
    // One after the other, or some would come to be one.
    let deltas = (0..DELTAS).fold(Answer::stream(Wire::Chat), |answer, number| {
        let delta = json!({"content": format!("{number} ")});
        answer.frames(&[chunk(delta, Value::Null)]).shown()
    });
    let end = [
        chunk(json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let url = server.case("counts", Wire::Chat, vec![deltas.frames(&end)]);
    let mut settings = Wire::Chat.settings(&url);
    settings["api_key"] = json!("key-of-nobody");
    settings["model"] = json!("test-model");
    let provider = Provider::start().await;
    let more = json!({"chat": {"provider": "counts"}, "providers": {"counts": settings}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("count").await;
    for _ in 0..DELTAS {
        client.until("chat:text-delta").await;
        server.shown("counts");
    }
    client.until("chat:stream-end").await;
    let figures = get(&daemon, "/metrics", &daemon.token).await;
    let log = figures
        .lines()
        .find_map(|line| line.strip_prefix("outrigger_store_wal_bytes "));
    let log: usize = log.unwrap().parse().unwrap();
    // A commit is two pages of 4 KiB at least.
    assert!((1..DELTAS * 4096).contains(&log), "{log}");
    assert_eq!(history(&mut client).await.len(), 2);
}

#[tokio::test]
async fn what_a_provider_demands_back_is_there_after_a_restart() {
    let server = Server::start().await;
    let signature = "c2lnbmF0dXJlIG9mIHdoYXQgd2FzIHRob3VnaHQ+/w==";
    let answer = |blocks: &[Block]| {
        let frames = Wire::Anthropic.frames(blocks);
        Answer::stream(Wire::Anthropic).frames(&frames)
    };
    let call = Block::call("call_1", "file_read", json!({"path": "a.txt"}));
    let answers = vec![
        answer(&[Block::thinking("I  think\n…", signature), call]),
        answer(&[Block::text("read")]),
    ];
    let url = server.case("thinks", Wire::Anthropic, answers);
    let mut settings = Wire::Anthropic.settings(&url);
    settings["api_key"] = json!("key-of-nobody");
    settings["model"] = json!("claude-opus-5-5");
    let provider = Provider::start().await;
    let more = json!({"chat": {"provider": "thinks"}, "providers": {"thinks": settings}});
    let daemon = Daemon::with(&provider, more).await;
    daemon.file("a.txt", "content\n");
    let mut client = daemon.connect().await;
    client.say("read").await;
    client.until("chat:stream-end").await;
    let before = server.requests("thinks").pop().unwrap();
    let daemon = daemon.after_kill().await;
    let mut client = resume(&daemon, &client.session(), 0).await;
    client.say("again").await;
    client.until("chat:stream-end").await;
    let after = server.requests("thinks").pop().unwrap();
    let turn = |request: &Value| request["messages"][1]["content"].clone();
    assert!(turn(&before).to_string().contains(signature), "{before}");
    assert_eq!(turn(&after)[0], turn(&before)[0]);
    let said = said(&[("user", "read")]);
    assert_eq!(history(&mut client).await[..1], said);
}

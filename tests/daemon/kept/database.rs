//! Sessions that are kept in a database of PostgreSQL: as in the file.

#[expect(
    dead_code,
    clippy::print_stdout,
    reason = "the crate's own tests use all of it; and it says aloud what is skipped"
)]
#[path = "../../../crates/outrigger-store/testing/postgres.rs"]
pub(super) mod servers;

use serde_json::{Value, json};

use super::files::{doctor, refused, run};
use super::{history, resume, said};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, within};
use crate::telemetry::get;

/// Returns the address of a new database, with a password that nobody may see; `None` where there is no PostgreSQL.
pub(crate) fn database() -> Option<String> {
    let server = servers::shared()?;
    Some(server.url("careful:right", &server.database()))
}

#[tokio::test]
async fn a_session_in_a_database_goes_on_after_the_daemon_was_killed() {
    let Some(url) = database() else {
        return;
    };
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let more = json!({"store": {"url": url}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    assert_eq!(first.seen[0]["payload"]["persistent"], true);
    let session = first.session();
    first.say("my name is Ada").await;
    let last = first.until("chat:stream-end").await["seq"]
        .as_u64()
        .unwrap();

    // Beside it: others look at the database, too.
    let config = daemon.project().with_file_name("config.json");
    let (state, text) = doctor(&config).await;
    assert_eq!(state, "ok", "{text}");
    let whose = format!("the process {}", daemon.pid);
    assert!(text.contains(&whose) && text.contains("schema 4"), "{text}");
    let listed = run(&["sessions", "list", "--json"], &config).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["sessionId"], json!(session));
    let shown = run(&["sessions", "show", &session], &config).await;
    assert!(String::from_utf8_lossy(&shown.stdout).contains("my name is Ada"));
    let vacuum = run(&["sessions", "vacuum"], &config).await;
    assert!(String::from_utf8_lossy(&vacuum.stderr).contains("autovacuum"));
    for arguments in [
        ["config", "show"].as_slice(),
        &["sessions", "stats"],
        &["doctor"],
    ] {
        let output = run(arguments, &config).await;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!said.contains("careful:right"), "{arguments:?}: {said}");
    }

    let daemon = daemon.after_kill().await;
    provider.then(Turn::text("Ada"));
    let mut second = resume(&daemon, &session, last).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], true);
    assert_eq!(second.seen[0]["payload"]["epoch"], 2);
    let expected = said(&[("user", "my name is Ada"), ("assistant", "hello")]);
    assert_eq!(history(&mut second).await, expected);
    second.say("what is it?").await;
    second.until("chat:stream-end").await;
    let asked = provider.requests().pop().unwrap();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 4, "{asked}");

    // In order it lets go at once, and what others may then do is done.
    let daemon = daemon.after_end().await;
    let mut third = resume(&daemon, &session, 0).await;
    assert_eq!(history(&mut third).await.len(), 4);
}

#[tokio::test]
async fn a_daemon_without_its_database_says_so_and_not_the_password() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let config = daemon.project().with_file_name("config.json");
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    for (url, code) in [
        ("postgres://me:zq9x@127.0.0.1:1/none", "store"),
        ("postgres://me:zq@9x@127.0.0.1:1/none", "configuration"),
        ("mysql://me:zq9x@127.0.0.1:1/none", "configuration"),
    ] {
        settings["store"]["url"] = json!(url);
        std::fs::write(&config, settings.to_string()).unwrap();
        let (_, refusal) = refused(&config).await;
        assert_eq!(refusal["code"], json!(code), "{refusal}");
        let refusal = refusal.to_string();
        assert!(
            !refusal.contains("zq9") && !refusal.contains("9x@"),
            "{refusal}"
        );
        let (state, text) = doctor_or_refusal(&config).await;
        assert_ne!(state, "ok", "{text}");
        assert!(!text.contains("zq9") && !text.contains("9x@"), "{text}");
    }
}

#[tokio::test]
async fn a_daemon_whose_database_is_away_says_so_and_names_what_is_lost() {
    let Some(mut server) = servers::shared().and_then(|_| servers::Server::start()) else {
        return;
    };
    let url = server.url("tester", &server.database());
    let provider = Provider::start().await;
    provider.then(Turn::text("hello")).then(Turn::text("there"));
    let mut daemon = Daemon::with(&provider, json!({"store": {"url": url}})).await;
    let mut client = daemon.connect().await;
    client.say("hi").await;
    client.until("chat:stream-end").await;
    let listed = client.ask(json!({"type": "session:list"})).await;
    assert_eq!(listed["type"], "session:list-result", "{listed}");
    assert!(
        get(&daemon, "/metrics", &daemon.token)
            .await
            .contains("outrigger_store_up 1")
    );
    server.stop();
    client.say("again").await;
    client
        .find(|frame| frame["payload"]["code"] == "store_failed")
        .await;
    client.until("chat:stream-end").await;
    let refused = client.ask(json!({"type": "session:list"})).await;
    assert_eq!(refused["payload"]["code"], "store_unavailable", "{refused}");
    assert!(
        get(&daemon, "/metrics", &daemon.token)
            .await
            .contains("outrigger_store_up 0")
    );
    drop(daemon.stdin.take());
    let ended = within("the end", daemon.child.wait(), String::new).await;
    assert_eq!(ended.unwrap().code(), Some(6));
    let folder = daemon.left().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lost = log.lines().find(|line| line.contains("is lost in"));
    let lost = lost.expect("what is lost is said");
    assert!(lost.contains(&client.session()), "{lost}");
}

/// Returns what `outrigger doctor` says, whether it comes to the store or not.
async fn doctor_or_refusal(config: &std::path::Path) -> (String, String) {
    let output = run(&["doctor", "--json"], config).await;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let state = if output.status.success() {
        "ok"
    } else {
        "failed"
    };
    (state.to_owned(), text)
}

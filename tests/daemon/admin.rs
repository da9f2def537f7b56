//! What an operator asks a running daemon: who works where, what runs, what it costs; and that it end in order.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::lifecycle::signal;
use crate::support::{Answering, Client, Daemon, Provider, eventually, within};
use crate::telemetry::{get, sent};

fn admin(daemon: &Daemon, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    let url = format!("http://127.0.0.1:{}", daemon.port);
    command.arg("admin").args(words).args(["--url", &url]);
    command.env("OUTRIGGER_TOKEN", &daemon.token);
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command.kill_on_drop(true);
    command
}

/// Returns what it prints, where it succeeds.
pub(crate) async fn printed(daemon: &Daemon, words: &[&str]) -> String {
    let output = admin(daemon, words).output();
    let output = within("an answer", output, String::new).await.unwrap();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{problem}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the body of an answer, with its status.
pub(crate) fn split(answer: &str) -> (u16, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn an_operator_sees_who_works_where_and_what_it_costs_and_no_word() {
    let Answering {
        mut client,
        pause,
        daemon,
        provider: _provider,
    } = Answering::begin().await;
    let sessions = printed(&daemon, &["sessions", "--json"]).await;
    assert!(!sessions.contains("first"), "{sessions}");
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let [session] = sessions["sessions"].as_array().unwrap().as_slice() else {
        panic!("{sessions}");
    };
    let project = daemon.project();
    assert_eq!(session["state"], "running");
    assert_eq!(session["user"], "default");
    assert_eq!(session["sockets"], 1);
    assert_eq!(session["project"], project.to_str().unwrap());
    assert_eq!(session["inputTokens"], 0);
    pause.go_on();
    client.until("chat:stream-end").await;
    let token = &daemon.token;
    let (status, sessions) = split(&get(&daemon, "/admin/sessions", token).await);
    let session = &sessions["sessions"][0];
    assert_eq!((status, &session["state"]), (200, &json!("idle")));
    assert_eq!(
        (&session["inputTokens"], &session["outputTokens"]),
        (&json!(10), &json!(5))
    );
    let users: Value = serde_json::from_str(&printed(&daemon, &["users", "--json"]).await).unwrap();
    let user = &users["users"][0];
    assert_eq!(
        (&user["user"], &user["sessions"], &user["inputTokens"]),
        (&json!("default"), &json!(1), &json!(10))
    );
    let table = printed(&daemon, &["nodes"]).await;
    let node = session["node"].as_str().unwrap();
    assert!(table.contains(node) && table.contains("ready"), "{table}");
    let table = printed(&daemon, &["sessions"]).await;
    let id = session["sessionId"].as_str().unwrap();
    assert!(table.contains(id) && table.contains("idle"), "{table}");
}

#[tokio::test]
async fn who_may_not_drive_may_not_operate() {
    let provider = Provider::start().await;
    let observer = "observer-0123456789-0123456789";
    let daemon = Daemon::with(&provider, json!({"server": {"observer_token": observer}})).await;
    for (token, expected) in [
        ("wrong", 401),
        (observer, 403),
        (daemon.token.as_str(), 200),
    ] {
        for path in ["/admin/sessions", "/admin/users", "/admin/nodes"] {
            let (status, body) = split(&get(&daemon, path, token).await);
            assert_eq!(status, expected, "{path}: {body}");
        }
    }
    for (token, expected) in [
        (observer, "this is for operators"),
        ("wrong", "--token-file"),
    ] {
        let mut command = admin(&daemon, &["drain"]);
        command.env("OUTRIGGER_TOKEN", token);
        let output = command.output().await.unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(problem.contains(expected), "{problem}");
        assert_eq!(output.status.code(), Some(1));
    }
    assert!(
        get(&daemon, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 200")
    );
}

#[tokio::test]
async fn how_long_a_drain_may_take_is_read_whatever_the_body_is_called() {
    let Answering {
        pause,
        mut daemon,
        client: _client,
        provider: _provider,
    } = Answering::begin().await;
    let drain = async |body: &str, kind: &str| {
        let (token, length) = (&daemon.token, body.len());
        let head = format!(
            "POST /admin/drain HTTP/1.1\r\nAuthorization: Bearer {token}\r\nHost: localhost\r\nContent-Length: {length}{kind}"
        );
        split(&sent(&daemon, &head, body).await)
    };
    for wrong in [
        "{}}",
        "[700]",
        r#"{"within": 5}"#,
        r#"{"withinMs": "5"}"#,
        r#"{"withinMs": -1}"#,
    ] {
        let (status, body) = drain(wrong, "").await;
        assert_eq!(
            (status, &body["code"]),
            (400, &json!("invalid_body")),
            "{wrong}: {body}"
        );
    }
    assert!(
        get(&daemon, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let form = "\r\nContent-Type: application/x-www-form-urlencoded";
    let (status, body) = drain(r#"{"withinMs": 600000}"#, form).await;
    assert_eq!((status, &body["withinMs"]), (202, &json!(600_000)));
    pause.go_on();
    assert_eq!(daemon.child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_daemon_that_drains_lets_what_runs_end_and_takes_nothing_new() {
    let Answering {
        mut client,
        pause,
        mut daemon,
        provider: _provider,
    } = Answering::begin().await;
    let draining = admin(&daemon, &["drain", "--within", "1h"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("503", async || {
        get(&daemon, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 503")
    })
    .await;
    let (_, nodes) = split(&get(&daemon, "/admin/nodes", &daemon.token).await);
    assert_eq!(nodes["nodes"][0]["state"], "draining");
    assert_eq!(nodes["nodes"][0]["running"], 1);
    assert_eq!(Client::reach(&daemon, "").await.err(), Some(0));
    let more = json!({"type": "chat:send", "content": "more"});
    let refused = client.ask(more).await;
    assert_eq!(refused["payload"]["code"], "shutting_down");
    pause.go_on();
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn", "{end}");
    let ended = within("the end", daemon.child.wait(), String::new).await;
    assert!(ended.unwrap().success());
    let output = within("the operator", draining.wait_with_output(), String::new);
    let output = output.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"it has ended\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1 exchange runs, for 1h at most"), "{said}");
}

#[tokio::test]
async fn a_signal_during_a_drain_shortens_it_and_what_was_said_is_kept() {
    let Answering {
        mut client,
        pause: _pause,
        mut daemon,
        provider: _provider,
    } = Answering::with(json!({"shutdown": {"grace": "100ms"}})).await;
    printed(&daemon, &["drain", "--within", "1h", "--no-wait"]).await;
    eventually("503", async || {
        get(&daemon, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 503")
    })
    .await;
    signal(&daemon, "TERM");
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled", "{end}");
    assert_eq!(client.closed().await, 1001);
    let ended = within("the end", daemon.child.wait(), String::new).await;
    assert_eq!(ended.unwrap().code(), Some(0));
}

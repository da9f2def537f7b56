//! How the daemon starts and ends, and that nothing it started outlives it.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Sends a raw request and returns the answer's status and body.
async fn http(daemon: &Daemon, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port))
        .await
        .unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

#[tokio::test]
async fn only_the_right_token_host_and_origin_get_in() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let token = &daemon.token;
    for (line, status, code) in [
        (
            "GET /healthz HTTP/1.1\r\nHost: evil.example".to_owned(),
            200,
            "ok",
        ),
        (
            "GET /readyz HTTP/1.1\r\nHost: localhost".to_owned(),
            200,
            "ok",
        ),
        (
            "GET /readyz HTTP/1.1\r\nHost: evil.example".to_owned(),
            403,
            "host_not_allowed",
        ),
        (
            format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{upgrade}"),
            401,
            "unauthorized",
        ),
        (
            format!("GET /ws?token={token}&projct=/x HTTP/1.1\r\nHost: localhost\r\n{upgrade}"),
            400,
            "unknown_parameter",
        ),
        (
            format!("GET /ws?token=wrong HTTP/1.1\r\nHost: localhost\r\n{upgrade}"),
            401,
            "unauthorized",
        ),
        (
            format!(
                "GET /ws?token={token} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n{upgrade}"
            ),
            401,
            "unauthorized",
        ),
        (
            format!(
                "GET /ws HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nAuthorization: Bearer {token}\r\n{upgrade}"
            ),
            403,
            "origin_not_allowed",
        ),
        (
            format!(
                "GET /ws HTTP/1.1\r\nHost: evil.example:{}\r\nAuthorization: Bearer {token}\r\n{upgrade}",
                daemon.port
            ),
            403,
            "host_not_allowed",
        ),
    ] {
        let (got, answer) = http(&daemon, &line).await;
        assert_eq!(got, status, "{line}: {answer}");
        assert!(answer.contains(code), "{line}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control"));
    }
    // What is no WebSocket, and other methods.
    let sent = format!("Host: localhost\r\nAuthorization: Bearer {token}");
    for (line, status, code) in [
        ("GET /ws", 400, "no_websocket"),
        ("GET /acp", 400, "no_websocket"),
        ("GET /ws?text=1&text=0", 400, "invalid_parameter"),
        ("POST /readyz", 405, "method_not_allowed"),
        ("DELETE /admin/drain", 405, "method_not_allowed"),
        ("POST /healthz", 405, "method_not_allowed"),
        ("POST /", 405, "method_not_allowed"),
        ("GET /nothing", 404, "not_found"),
    ] {
        let (got, answer) = http(&daemon, &format!("{line} HTTP/1.1\r\n{sent}")).await;
        assert_eq!(got, status, "{line}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], code, "{line}");
        let has_methods = answer.to_lowercase().contains("\r\nallow: ");
        assert_eq!(has_methods, status == 405, "{line}: {answer}");
    }
    let (got, _) = http(&daemon, "DELETE /admin/drain HTTP/1.1\r\nHost: localhost").await;
    assert_eq!(got, 401, "without a token");
    // The three ways to bring a token, over real handshakes.
    for (query, header) in [
        (String::new(), format!("Authorization: Bearer {token}")),
        (
            String::new(),
            format!("Sec-WebSocket-Protocol: outrigger.v1, bearer.{token}"),
        ),
        (format!("?token={token}"), "X-Nothing: 1".to_owned()),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", daemon.port))
            .await
            .unwrap();
        let request =
            format!("GET /ws{query} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n{upgrade}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = vec![0; 300];
        let count = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..count]).into_owned();
        assert!(head.starts_with("HTTP/1.1 101"), "{header}: {head}");
        assert_eq!(
            head.to_lowercase()
                .contains("sec-websocket-protocol: outrigger.v1\r\n"),
            header.contains("outrigger.v1"),
            "{head}"
        );
        assert!(!head.contains(token.as_str()));
    }
}

/// Starts a command that outlives everything it can, and returns a word found in its command line.
async fn with_a_stubborn_command(client: &mut Client, provider: &Provider) -> String {
    static COMMANDS: AtomicU32 = AtomicU32::new(0);

    let number = COMMANDS.fetch_add(1, Ordering::Relaxed);
    let word = format!("77{:05}.{number}", std::process::id() % 100_000);
    let command = format!(
        "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP INT; sleep {word}' & echo started; sleep {word}"
    );
    provider.then(Turn::call("bash", &json!({ "command": command })));
    client.say("go").await;
    client.until("chat:tool-delta").await;
    eventually("a stubborn process", async || is_running(&word)).await;
    word
}

fn is_running(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("sleep") && line.contains(word) && !line.contains("trap")
        })
    })
}

/// Waits until no process with the word is left.
async fn until_gone(word: &str) {
    eventually("the end of all processes", async || !is_running(word)).await;
}

fn autonomous() -> Value {
    json!({"chat": {"trust_level": "autonomous"}, "shutdown": {"grace": "100ms"}})
}

#[tokio::test]
async fn the_end_of_stdin_ends_the_daemon_and_its_commands() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::with(&provider, autonomous()).await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    drop(daemon.stdin.take());
    let status = daemon.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
    until_gone(&word).await;
}

#[tokio::test]
async fn sigterm_cancels_what_runs_and_exits_with_0() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::with(&provider, autonomous()).await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    signal(&daemon, "TERM");
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    loop {
        if let Err(code) = client.next_or_close().await {
            assert_eq!(code, 1001);
            break;
        }
    }
    let status = daemon.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
    until_gone(&word).await;
}

#[tokio::test]
async fn who_speaks_during_the_last_moments_is_answered_and_hears_the_end() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::with(&provider, autonomous()).await;
    let mut client = daemon.connect().await;
    with_a_stubborn_command(&mut client, &provider).await;
    signal(&daemon, "TERM");
    // One request after the other until the socket closes: most likely some come when the session takes none any more.
    let ping = json!({"type": "session:ping", "id": "p"}).to_string();
    let code = 'open: loop {
        client.message(Message::text(&ping)).await.ok();
        loop {
            match client.next_or_close().await {
                Ok(frame) if frame["replyTo"] == "p" => break,
                Ok(_) => {}
                Err(code) => break 'open code,
            }
        }
    };
    assert_eq!(code, 1001);
    let refused = client.all("session:error");
    assert!(refused.iter().all(|error| error["code"] == "shutting_down"));
    assert_eq!(client.all("chat:tool-result").len(), 1);
    assert_eq!(client.all("chat:stream-end")[0]["stopReason"], "cancelled");
    assert_eq!(daemon.child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn kill_9_of_the_daemon_leaves_no_process() {
    let provider = Provider::start().await;
    let mut daemon = Daemon::with(&provider, autonomous()).await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    signal(&daemon, "KILL");
    daemon.child.wait().await.unwrap();
    until_gone(&word).await;
}

pub(crate) fn signal(daemon: &Daemon, name: &str) {
    send(daemon.child.id().unwrap(), name);
}

pub(crate) fn send(pid: u32, name: &str) {
    let pid = pid.to_string();
    let sent = Command::new("kill")
        .args(["-s", name, &pid])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Waits until a process is gone; one that nobody waited for has no command line any more.
async fn until_dead(pid: u32) {
    let runs = || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    eventually("the end of a process", async || !runs()).await;
}

#[tokio::test]
async fn kill_9_of_the_parent_ends_the_daemon_and_its_commands() {
    // The parent holds the other end of the daemon's stdin, as a frontend does, and has no time to let go.
    const PARENT: &str =
        r#"mkfifo "$1.pipe"; "$0" serve --config "$1" <"$1.pipe" & exec 3>"$1.pipe"; wait"#;

    let provider = Provider::start().await;
    let mut daemon = Daemon::by(&provider, autonomous(), |config| {
        let mut parent = tokio::process::Command::new("sh");
        let program = env!("CARGO_BIN_EXE_outrigger");
        parent.args(["-c", PARENT, program]).arg(config);
        parent
    })
    .await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    assert_ne!(daemon.child.id(), Some(daemon.pid));
    signal(&daemon, "KILL");
    daemon.child.wait().await.unwrap();
    until_dead(daemon.pid).await;
    until_gone(&word).await;
}

#[tokio::test]
async fn the_end_of_the_watched_process_ends_the_daemon_and_its_commands() {
    let provider = Provider::start().await;
    let mut watched = tokio::process::Command::new("sleep")
        .arg("86400")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = watched.id().unwrap();
    let mut daemon = Daemon::by(&provider, autonomous(), |config| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command.args(["serve", "--parent-pid", &pid.to_string(), "--config"]);
        command.arg(config);
        command
    })
    .await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    send(pid, "KILL");
    watched.wait().await.unwrap();
    let status = daemon.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
    until_gone(&word).await;
}

#[tokio::test]
async fn a_second_signal_ends_at_once_with_nothing_left() {
    let provider = Provider::start().await;
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "shutdown": {"grace": "10m"},
        "log": {"format": "json"},
    });
    let mut daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let word = with_a_stubborn_command(&mut client, &provider).await;
    signal(&daemon, "TERM");
    // Two signals of one sort that come together are one.
    eventually("the log's line of the shutdown", async || {
        let log = daemon.log();
        log.iter().any(|line| line["message"] == "shutting down")
    })
    .await;
    signal(&daemon, "TERM");
    let status = daemon.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
    until_gone(&word).await;
}

#[tokio::test]
async fn a_signal_right_after_the_ready_line_is_no_accident() {
    let provider = Provider::start().await;
    for name in ["TERM", "INT", "TERM", "INT", "TERM", "INT"] {
        let mut daemon = Daemon::start(&provider).await;
        signal(&daemon, name);
        assert_eq!(daemon.child.wait().await.unwrap().code(), Some(0), "{name}");
    }
}

#[tokio::test]
async fn two_daemons_do_not_disturb_each_other() {
    let (one, other) = (Provider::start().await, Provider::start().await);
    let mut first = Daemon::with(&one, autonomous()).await;
    let second = Daemon::with(&other, autonomous()).await;
    assert_ne!(first.port, second.port);
    let mut lost = first.connect().await;
    let mut kept = second.connect().await;
    let first_word = with_a_stubborn_command(&mut lost, &one).await;
    let second_word = with_a_stubborn_command(&mut kept, &other).await;
    signal(&first, "KILL");
    first.child.wait().await.unwrap();
    until_gone(&first_word).await;
    assert!(is_running(&second_word));
    kept.ask(json!({"type": "chat:cancel"})).await;
    let end = kept.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    until_gone(&second_word).await;
    other.then(Turn::text("still here"));
    kept.say("go").await;
    kept.until("chat:stream-end").await;
    assert_eq!(kept.text_said(), "still here");
}

#[tokio::test]
async fn nobody_is_called_at_the_start() {
    let provider = Provider::start().await;
    let watched = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    watched.set_nonblocking(true).unwrap();
    let url = format!("http://{}", watched.local_addr().unwrap());
    let more = json!({
        "providers": {
            "test": {"base_url": url},
            "ollama": {"base_url": url},
        },
        "tools": {"web_search": {"searxng_url": url}},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.ask(json!({"type": "session:state"})).await;
    client.ask(json!({"type": "provider:list"})).await;
    client.ask(json!({"type": "tool:list"})).await;
    let called = watched.accept().map_err(|error| error.kind());
    assert_eq!(called.unwrap_err(), std::io::ErrorKind::WouldBlock);
    // Asked for its models it does call, so the watch works.
    let ask = json!({"type": "model:list", "provider": "test", "id": 1});
    client.send(ask).await;
    eventually("a connection", async || watched.accept().is_ok()).await;
}

#[tokio::test]
async fn a_running_exchange_may_end_by_itself_at_shutdown() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    let mut daemon = Daemon::with(&provider, json!({"shutdown": {"grace": "60s"}})).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    pause.reached().await;
    signal(&daemon, "TERM");
    // Whoever asks meanwhile gets an error, and nothing new is begun.
    let ready = "GET /readyz HTTP/1.1\r\nHost: localhost";
    while http(&daemon, ready).await.0 != 503 {}
    let upgrade = format!(
        "GET /ws?token={} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        daemon.token
    );
    let (status, body) = http(&daemon, &upgrade).await;
    assert!(status == 503 && body.contains(r#""draining""#), "{body}");
    let refused = client
        .ask(json!({"type": "chat:send", "content": "more"}))
        .await;
    assert_eq!(refused["payload"]["code"], "shutting_down");
    pause.go_on();
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(daemon.child.wait().await.unwrap().code(), Some(0));
}

/// Runs the program to its end and returns exit code and the line on stdout.
fn fatal(arguments: &[&str], environment: &[(&str, &str)], stdin: &str) -> (Option<i32>, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .arg("serve")
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).ok();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code(),
        serde_json::from_str(text.trim()).unwrap_or(Value::Null),
    )
}

#[test]
fn each_reason_not_to_start_has_its_exit_code_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "[servr]\nport = 1\n[server]\nport = \"x\"\n").unwrap();

    let (code, line) = fatal(&["--project-root", root, "--port", &port], &[], "");
    assert_eq!((code, &line["code"]), (Some(3), &json!("port_in_use")));
    assert!(line["message"].as_str().unwrap().contains(&port));

    let (code, line) = fatal(
        &["--config", config.to_str().unwrap(), "--project-root", root],
        &[],
        "",
    );
    assert_eq!((code, &line["event"]), (Some(2), &json!("fatal")));
    let message = line["message"].as_str().unwrap();
    assert!(
        message.contains("servr") && message.contains("server.port"),
        "{message}"
    );

    let (code, line) = fatal(
        &["--host", "0.0.0.0", "--port", "0", "--project-root", root],
        &[],
        "",
    );
    assert_eq!(code, Some(2));
    assert!(line["hint"].as_str().unwrap().contains("OUTRIGGER_TOKEN"));

    let (code, line) = fatal(
        &["--token-stdin", "--project-root", root, "--port", "0"],
        &[],
        "\n",
    );
    assert_eq!(code, Some(2), "{line}");
}

#[test]
fn whoever_asks_for_a_text_is_told_in_one_why_the_daemon_does_not_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .args(["serve", "--ready", "text", "--config", "/no/such/file.toml"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text.starts_with("outrigger: "), "{text}");
    assert!(text.contains("/no/such/file.toml"), "{text}");
}

#[test]
fn bad_arguments_are_said_in_a_line_too() {
    for (arguments, part) in [
        (&["--nope"][..], "--nope"),
        (&["--port", "99999"][..], "99999"),
        (&["--token", "x"][..], "--token"),
    ] {
        let (code, line) = fatal(arguments, &[], "");
        assert_eq!(code, Some(2));
        assert_eq!(
            (&line["event"], &line["code"]),
            (&json!("fatal"), &json!("configuration"))
        );
        let message = line["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    // Who asks for help waits for no line.
    let (code, line) = fatal(&["--help"], &[], "");
    assert_eq!((code, line), (Some(0), Value::Null));
}

#[test]
fn a_given_token_is_not_repeated_and_the_ready_file_goes_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready.json");
    let token = "a-token-that-was-given-to-it";
    let (code, line) = fatal(
        &[
            "--token-stdin",
            "--project-root",
            folder.path().to_str().unwrap(),
            "--port",
            "0",
            "--ready-file",
            file.to_str().unwrap(),
        ],
        // Not the store of whoever runs the tests.
        &[("OUTRIGGER_STORE__ENABLED", "false")],
        &format!("{token}\n"),
    );
    assert_eq!((code, &line["event"]), (Some(0), &json!("ready")));
    assert!(line.get("token").is_none());
    assert!(!file.exists());
}

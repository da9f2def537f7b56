//! The other commands of the program: the chat with a daemon of its own or a running one, and those
//! that look at a daemon from outside.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::mcp::Fake;
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// A home with an empty project and no settings: the built-in demonstration answers.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("project")).unwrap();
    home
}

fn outrigger(home: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    command
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        // Whatever runs on the machine of the test.
        .env("OUTRIGGER_CHAT__DETECT_OLLAMA", "")
        .current_dir(home.path().join("project"))
        .kill_on_drop(true);
    command
}

/// Runs a command to its end with these lines on its stdin.
async fn typed(command: &mut Command, lines: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).await.unwrap();
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn one_question_has_its_answer_on_stdout_and_nothing_else() {
    let home = home();
    let output = typed(outrigger(&home).args(["chat", "good", "morning"]), "").await;
    let (answer, aside) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{aside}");
    assert!(answer.contains("> good morning\n"), "{answer}");
    assert!(
        !answer.contains("──") && aside.contains("── done · 1 turn"),
        "{aside}"
    );
    assert!(
        !aside.contains('\u{1b}'),
        "no colours without a terminal: {aside}"
    );
}

#[tokio::test]
async fn one_question_waits_for_the_tools_of_servers() {
    let (home, fake) = (home(), Fake::new());
    std::fs::write(
        home.path().join("script.yaml"),
        r#"{"steps": [{"when": {"offers": ["mcp__fake__echo"]}, "play": [{"text": "it is there"}]}, {"play": [{"text": "it is missing"}]}]}"#,
    )
    .unwrap();
    let script = home.path().join("script.yaml");
    let config = json!({
        "providers": {"scripted": {"kind": "scripted", "script": script}},
        "mcpServers": {"fake": fake.config(&[]), "broken": {"command": "there-is-no-such-program"}},
    });
    let file = home.path().join("config.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = outrigger(&home);
    command.args(["chat", "--config"]).arg(&file).arg("hi");
    let output = typed(&mut command, "").await;
    let (answer, aside) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{aside}");
    assert_eq!(answer.trim(), "it is there", "{aside}");
}

#[tokio::test]
async fn a_conversation_asks_before_a_command_runs() {
    let home = home();
    let lines = "demo\nn not now\n/history\n/nonsense\n/quit\n";
    let output = typed(outrigger(&home).arg("chat"), lines).await;
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for words in [
        "? t2 wants to run bash\n  command: ls -la\n",
        "– t2 bash",
        "you: demo\n",
        "there is no command /nonsense",
    ] {
        assert!(shown.contains(words), "{words:?} is not in:\n{shown}");
    }
    assert!(!shown.contains("▸ t2 bash  "), "it never ran:\n{shown}");
}

#[tokio::test]
async fn a_daemon_that_does_not_start_is_explained() {
    let home = home();
    let output = typed(
        outrigger(&home).args(["chat", "--config", "missing.toml", "hi"]),
        "",
    )
    .await;
    assert_eq!(output.status.code(), Some(2));
    let aside = text(&output.stderr);
    assert!(aside.contains("missing.toml"), "{aside}");
    assert_eq!(text(&output.stdout), "");
}

#[tokio::test]
async fn a_running_daemon_is_talked_to_with_its_token() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let home = home();
    let url = format!("ws://127.0.0.1:{}/ws", daemon.port);
    let ask = async |token: &str| {
        let mut command = outrigger(&home);
        command.args(["chat", "--url", &url, "hi"]);
        typed(command.env("OUTRIGGER_TOKEN", token), "").await
    };
    let refused = ask("wrong").await;
    assert_eq!(refused.status.code(), Some(1));
    let aside = text(&refused.stderr);
    assert!(aside.contains("token"), "{aside}");

    let mut nowhere = outrigger(&home);
    nowhere.args(["chat", "--url", "ws://127.0.0.1:9/ws", "hi"]);
    let aside = text(&typed(&mut nowhere, "").await.stderr);
    assert!(aside.contains("start the daemon"), "{aside}");

    provider.then(Turn::text("Hello."));
    let answered = ask(&daemon.token).await;
    assert_eq!(
        answered.status.code(),
        Some(0),
        "{}",
        text(&answered.stderr)
    );
    assert_eq!(text(&answered.stdout), "Hello.\n");

    provider.then(Turn::plain(401, "application/json", "{}"));
    let failed = ask(&daemon.token).await;
    assert_eq!(failed.status.code(), Some(1));
    let aside = text(&failed.stderr);
    assert!(
        aside.contains("error: ") && aside.contains("── failed"),
        "{aside}"
    );
}

/// The body of an answer to a GET.
async fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body.to_owned()
}

#[tokio::test]
async fn a_daemon_is_looked_at_from_outside() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let home = home();
    let place = format!("http://127.0.0.1:{}", daemon.port);
    let alive = typed(outrigger(&home).args(["healthcheck", "--url", &place]), "").await;
    assert_eq!(
        (alive.status.code(), text(&alive.stdout)),
        (Some(0), "ok\n".to_owned())
    );

    let served: Value = serde_json::from_str(&get(daemon.port, "/schema.json").await).unwrap();
    let written = typed(outrigger(&home).args(["schema", "--out", "schemas"]), "").await;
    assert_eq!(written.status.code(), Some(0));
    let schemas = home.path().join("project/schemas");
    let read = |name: &str| std::fs::read_to_string(schemas.join(name)).unwrap();
    let written: Value = serde_json::from_str(&read("protocol.schema.json")).unwrap();
    assert_eq!(served, written);
    let served: Value = serde_json::from_str(&get(daemon.port, "/asyncapi.json").await).unwrap();
    let written: Value = serde_json::from_str(&read("asyncapi.json")).unwrap();
    assert_eq!(served, written);
    assert_eq!(
        read("protocol.ts"),
        include_str!("../../clients/typescript/src/protocol.ts")
    );
}

#[tokio::test]
async fn flags_may_stand_before_another_command_that_has_them() {
    let home = home();
    let mut command = outrigger(&home);
    command.args(["--project-name", "config", "config", "show", "--json"]);
    let output = typed(&mut command, "").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(shown["project.name"]["value"], "config", "{shown}");
    let mut command = outrigger(&home);
    command.args(["--config", "a", "--port", "1", "config", "show"]);
    let output = typed(&mut command, "").await;
    assert_eq!(output.status.code(), Some(2));
    // Nobody waits for a daemon's line.
    assert_eq!(text(&output.stdout), "");
    let aside = text(&output.stderr);
    assert!(aside.contains("unexpected argument '--port'"), "{aside}");
}

#[tokio::test]
async fn a_provider_that_there_is_not_is_answered_with_those_there_are() {
    let home = home();
    let mut command = outrigger(&home);
    command.args(["chat", "--provider", "nope", "hi"]);
    let aside = text(&typed(&mut command, "").await.stderr);
    assert!(
        aside.contains("there is no provider `nope`; there are: scripted"),
        "{aside}"
    );
}

/// What `config show --json` prints with this variable set.
async fn shown(home: &TempDir, variable: &str, value: &str) -> Value {
    let mut command = outrigger(home);
    command
        .env(variable, value)
        .args(["config", "show", "--json"]);
    let output = typed(&mut command, "").await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[tokio::test]
async fn the_configuration_is_shown_with_its_sources() {
    let shown = shown(&home(), "OUTRIGGER_SERVER__PORT", "4999").await;
    assert_eq!(
        shown["server.port"],
        json!({"value": 4999, "source": "environment variable OUTRIGGER_SERVER__PORT"})
    );
}

#[tokio::test]
async fn the_hosts_that_a_package_manager_stands_for_are_shown() {
    let home = home();
    let settings = home.path().join(".cargo");
    std::fs::create_dir(&settings).unwrap();
    std::fs::write(
        settings.join("config.toml"),
        "[registries]\nours = { index = \"sparse+https://me:word@crates.example/index/\" }\n",
    )
    .unwrap();
    let hosts = r#"["api.example", "cargo"]"#;
    let shown = shown(&home, "OUTRIGGER_TOOLS__BASH__HOSTS", hosts).await;
    assert_eq!(
        shown["tools.bash.hosts"]["value"],
        json!(["api.example", "cargo"])
    );
    assert_eq!(
        shown["tools.bash.hosts (cargo)"],
        json!({"value": ["crates.example"], "source": "its own settings on this machine"})
    );
    assert_eq!(
        shown["tools.bash.hosts (cargo, as commands are told)"]["value"],
        json!(["CARGO_REGISTRIES_OURS_INDEX=sparse+https://crates.example/index/"])
    );
}

#[tokio::test]
async fn doctor_says_what_is_wrong_and_what_to_do() {
    let home = home();
    let output = typed(
        outrigger(&home)
            .env("OUTRIGGER_SERVER__PORT", "0")
            .env(
                "OUTRIGGER_TOOLS__WEB_SEARCH__SEARXNG_URL",
                "http://127.0.0.1:9",
            )
            .args(["doctor", "--json"]),
        "",
    )
    .await;
    let report: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report:#}");
    let state = |check: &str| {
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|found| found["check"] == check);
        found.map(|found| found["state"].clone())
    };
    assert_eq!(state("configuration"), Some(json!("ok")));
    assert_eq!(state("project"), Some(json!("ok")));
    assert_eq!(state("provider"), Some(json!("warning")));
    assert_eq!(state("searxng"), Some(json!("failed")));
    // What each layer is, or what brings it.
    #[cfg(target_os = "linux")]
    for layer in ["namespaces", "landlock", "seccomp", "cgroup"] {
        let checks = report["checks"].as_array().unwrap();
        let found = checks.iter().find(|found| found["check"] == layer);
        let found = found.unwrap();
        assert!(
            found["state"] == "ok" || found["advice"].is_string(),
            "{found}"
        );
    }
}

#[tokio::test]
async fn doctor_prints_the_profile_and_checks_nothing() {
    let home = home();
    let mut command = outrigger(&home);
    let output = typed(command.args(["doctor", "--apparmor-profile"]), "").await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = include_str!("../../config/apparmor/outrigger");
    assert_eq!(text(&output.stdout), expected);
}

#[tokio::test]
async fn what_needs_no_project_works_in_the_home_directory() {
    let home = home();
    for arguments in [
        ["config", "show"].as_slice(),
        ["doctor", "--json"].as_slice(),
    ] {
        let mut command = outrigger(&home);
        command.current_dir(home.path()).args(arguments);
        command.env("OUTRIGGER_SERVER__PORT", "0");
        let output = typed(&mut command, "").await;
        let (shown, aside) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {shown}{aside}"
        );
        assert!(
            format!("{shown}{aside}").contains("can be no project"),
            "{shown}{aside}"
        );
    }
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let port = daemon.port.to_string();
    let asked: [(&[&str], &str); 2] = [(&[], &port), (&["--port", &port], "1")];
    for (arguments, configured) in asked {
        let mut command = outrigger(&home);
        command.current_dir(home.path()).arg("healthcheck");
        command.args(arguments);
        command.env("OUTRIGGER_SERVER__PORT", configured);
        let alive = typed(&mut command, "").await;
        assert_eq!(alive.status.code(), Some(0), "{}", text(&alive.stderr));
    }

    // So does a daemon, which ends with its input here.
    let mut command = outrigger(&home);
    command
        .current_dir(home.path())
        .args(["serve", "--port", "0"]);
    let ended = typed(&mut command, "").await;
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
}

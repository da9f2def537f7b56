//! The audit log: one line a call, whatever became of it, and nothing that was said.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

const SECRET: &str = "sk-canary-0123456789abcdef";

/// A daemon with an audit log beside its project, and a client.
async fn audited(more: Value) -> (tempfile::TempDir, PathBuf, Daemon, Client, Provider) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/audit.log");
    let provider = Provider::start().await;
    let mut config = json!({"audit": {"path": path}});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let daemon = Daemon::with(&provider, config).await;
    let client = daemon.connect().await;
    (folder, path, daemon, client, provider)
}

/// Reads lines until there are so many.
pub(crate) async fn lines(path: &Path, count: usize) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    eventually("a line of the audit log", async || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        found = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        found.len() >= count
    })
    .await;
    found
}

fn bash(command: &str) -> Turn {
    Turn::call("bash", &json!({ "command": command }))
}

async fn answer(client: &mut Client, more: Value) {
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    let mut frame = json!({"type": "chat:tool-approve", "toolId": confirm["toolId"]});
    for (key, value) in more.as_object().unwrap() {
        frame[key] = value.clone();
    }
    client.ask(frame).await;
}

#[tokio::test]
async fn every_call_has_one_line_that_says_who_decided() {
    let (_folder, path, daemon, mut client, provider) = audited(json!({})).await;
    daemon.file("a.txt", "hello\n");
    for turn in [
        Turn::call("file_read", &json!({"path": "a.txt"})),
        bash(&format!("echo {SECRET}; exit 3")),
        bash("touch denied"),
        bash("echo theirs"),
        bash("mkdir -p made"),
        bash("mkdir -p made"),
        bash("sudo ls"),
        Turn::call("no_such_tool", &json!({})),
        Turn::call("bash", &json!({"comand": 1})),
        Turn::call("file_read", &json!({"path": "/etc/passwd"})),
    ] {
        provider.then(turn);
    }
    client.say("go").await;
    answer(&mut client, json!({"approved": true})).await;
    answer(&mut client, json!({"approved": false})).await;
    answer(
        &mut client,
        json!({"approved": true, "input": {"command": "echo ours"}}),
    )
    .await;
    answer(
        &mut client,
        json!({"approved": true, "remember": "session"}),
    )
    .await;
    client.until("chat:stream-end").await;
    let found = lines(&path, 10).await;
    let said: Vec<String> = found
        .iter()
        .map(|line| {
            format!(
                "{} {} {} {} {}",
                line["tool"].as_str().unwrap(),
                line["level"].as_str().unwrap(),
                line["decision"].as_str().unwrap(),
                line["decidedBy"].as_str().unwrap(),
                line["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "file_read safe run policy success",
            "bash warning run user error",
            "bash warning refused user denied",
            "bash safe run user success",
            "bash warning run user success",
            "bash warning run remembered success",
            "bash blocked refused policy denied",
            "no_such_tool warning none nobody error",
            "bash dangerous none nobody error",
            "file_read safe refused sandbox denied",
        ]
    );
    assert_eq!(found[1]["exitCode"], 3);
    assert!(found[1]["sandbox"].is_string());
    assert_eq!(found[3]["edited"], true);
    assert_eq!(found[5]["scope"], "session");
    assert!(found[4]["scope"].is_null());
    for (line, number) in found.iter().zip(1..) {
        assert_eq!(line["toolId"], format!("t{number}"));
        assert_eq!(line["exchange"], "m1");
        assert_eq!(line["conversation"], "default");
        assert_eq!(line["session"], client.seen[0]["payload"]["sessionId"]);
        assert_eq!(line["input"]["sha256"].as_str().unwrap().len(), 64);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    for word in [
        SECRET,
        "echo",
        "hello",
        "passwd",
        &daemon.token,
        "test-key-0123456789",
    ] {
        assert!(!text.contains(word), "{word}");
    }
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn nobody_there_late_and_cancelled_are_told_apart() {
    let unattended = json!({"approval": {"unattended": "deny"}});
    let late = json!({"approval": {"timeout": "1ms"}});
    for (more, by) in [(unattended, "unattended"), (late, "timeout")] {
        let (_folder, path, _daemon, mut client, provider) = audited(more).await;
        provider.then(bash("make")).then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
        let found = lines(&path, 1).await;
        assert_eq!(found[0]["decidedBy"], by, "{found:?}");
        assert_eq!(found[0]["decision"], "refused");
    }
    let (_folder, path, _daemon, mut client, provider) = audited(json!({})).await;
    provider.then(bash("make"));
    client.say("go").await;
    client.until("chat:tool-confirm").await;
    client.send(json!({"type": "chat:cancel"})).await;
    client.until("chat:stream-end").await;
    let found = lines(&path, 1).await;
    assert_eq!(found[0]["decidedBy"], "nobody", "{found:?}");
    assert_eq!(found[0]["status"], "cancelled");
}

#[tokio::test]
async fn a_full_disk_is_said_once_and_stops_nothing() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"audit": {"path": "/dev/full"}})).await;
    daemon.file("a.txt", "hello\n");
    let mut client = daemon.connect().await;
    // The line is written beside the call, so the word of its failure comes with a later one.
    while client.all("session:notice").is_empty() {
        provider
            .then(Turn::call("file_read", &json!({"path": "a.txt"})))
            .then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
    }
    for _ in 0..3 {
        provider
            .then(Turn::call("file_read", &json!({"path": "a.txt"})))
            .then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
    }
    let notices = client.all("session:notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0]["code"], "audit_failed");
    assert!(
        notices[0]["message"]
            .as_str()
            .unwrap()
            .contains("No space left")
    );
    assert!(
        client
            .all("chat:tool-result")
            .iter()
            .all(|result| result["status"] == "success")
    );
}

#[tokio::test]
async fn an_operator_reads_what_ran_and_no_secret() {
    let long = format!("echo {}", "x".repeat(6_000));
    let calls = || {
        [
            bash(&format!(
                "echo {SECRET} test-key-0123456789; MY_PASSWORD=tiger true; echo said"
            )),
            Turn::call("file_read", &json!({"path": "a.txt"})),
            Turn::call("git", &json!({"args": ["log", "-1", SECRET]})),
            Turn::call("no_such_tool", &json!({"command": 7, "args": [7]})),
            bash(&long),
        ]
    };
    for content in ["hash", "command", "full"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let provider = Provider::start().await;
        let more = json!({
            "audit": {"path": path, "content": content},
            "chat": {"trust_level": "autonomous"},
        });
        let daemon = Daemon::with(&provider, more).await;
        daemon.file("a.txt", format!("hello\n{SECRET}\n"));
        let mut client = daemon.connect().await;
        for turn in calls() {
            provider.then(turn);
        }
        provider.then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
        let found = lines(&path, calls().len()).await;
        let fields =
            |name: &str| -> Vec<Value> { found.iter().map(|it| it[name].clone()).collect() };
        let [commands, paths] = ["command", "path"].map(fields);
        if content == "hash" {
            assert!(
                commands.iter().chain(&paths).all(Value::is_null),
                "{found:?}"
            );
        } else {
            let start = commands[4].as_str().unwrap();
            assert!(long.starts_with(start.trim_end_matches('…')) && start.ends_with('…'));
            assert_eq!(start.len(), 4_096 + '…'.len_utf8());
            assert_eq!(
                commands[..4],
                [
                    json!("echo [redacted] [redacted]; MY_PASSWORD=[redacted] true; echo said"),
                    Value::Null,
                    json!("git log -1 [redacted]"),
                    Value::Null,
                ]
            );
            assert_eq!(paths[1], "a.txt");
        }
        let texts = |it: &Value| [it["input"]["text"].clone(), it["output"]["text"].clone()];
        if content == "full" {
            let [input, output] = texts(&found[0]);
            let input: Value = serde_json::from_str(input.as_str().unwrap()).unwrap();
            assert_eq!(input["command"], commands[0]);
            assert!(output.as_str().unwrap().contains("said"), "{output}");
            assert!(texts(&found[1])[1].as_str().unwrap().contains("hello"));
            assert!(texts(&found[4])[0].as_str().unwrap().ends_with('…'));
        } else {
            assert!(
                found.iter().flat_map(texts).all(|it| it.is_null()),
                "{found:?}"
            );
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for secret in [SECRET, "test-key-0123456789", "tiger", &daemon.token] {
            assert!(!text.contains(secret), "{content}: {secret}");
        }
    }
}

/// Starts a daemon with this audit log; its exit code and what it said.
fn refused(path: &Path, project: &Path) -> (Option<i32>, String) {
    let config = project.parent().unwrap().join("config.json");
    let text = json!({
        "server": {"port": 0}, "audit": {"path": path},
        "project": {"root": project, "central": project.parent().unwrap().join("central")},
    });
    std::fs::write(&config, text.to_string()).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .args(["serve", "--config"])
        .arg(&config)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout),
    )
}

#[test]
fn where_tools_could_change_it_there_is_no_audit_log_and_no_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::os::unix::fs::symlink(&project, folder.path().join("way")).unwrap();
    for name in [
        "project/audit.log",
        "project/new/audit.log",
        "way/audit.log",
        "central/audit.log",
    ] {
        let (code, said) = refused(&folder.path().join(name), &project);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains("audit.path"), "{name}: {said}");
    }
    let (code, said) = refused(Path::new("/proc/nothing/audit.log"), &project);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot be opened"), "{said}");
}

//! `outrigger run`: one prompt for a script, with the answer on stdout and what came of it in the exit code.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::approval::bash;
use super::hosts;
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, eventually};

const DEADLINE: Duration = Duration::from_secs(60);

/// What a run printed, and its exit code.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs it beside a daemon; `stdin` is what it may read.
async fn run(daemon: &Daemon, arguments: &[&str], stdin: &str) -> Ran {
    client("run", daemon, arguments, stdin).await
}

/// Runs this command beside a daemon.
async fn client(command: &str, daemon: &Daemon, arguments: &[&str], stdin: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .arg(command)
        .args(["--url", &format!("http://127.0.0.1:{}", daemon.port)])
        .args(arguments)
        .env_clear()
        .env("OUTRIGGER_TOKEN", &daemon.token)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(stdin.as_bytes()).await.unwrap();
    drop(input);
    ran(child.wait_with_output()).await
}

/// Waits for its end.
async fn ran(child: impl Future<Output = std::io::Result<Output>>) -> Ran {
    let output = tokio::time::timeout(DEADLINE, child)
        .await
        .expect("the run did not end")
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[tokio::test]
async fn the_answer_is_all_that_stdout_has() {
    let provider = Provider::start().await;
    provider.then(Turn::call("file_list", &json!({})));
    provider.then(Turn::text("It is empty."));
    let daemon = Daemon::start(&provider).await;
    let ran = run(&daemon, &["what", "is", "here?"], "").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.out, "It is empty.\n");
    assert!(provider.requests()[0].to_string().contains("what is here?"));
}

#[tokio::test]
async fn a_prompt_comes_from_stdin_too() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("read"));
    let daemon = Daemon::start(&provider).await;
    for arguments in [&["-"][..], &[]] {
        let ran = run(&daemon, arguments, "two\nlines\n").await;
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "read\n"),
            "{}",
            ran.err
        );
    }
    for request in provider.requests() {
        assert!(request.to_string().contains(r"two\nlines"), "{request}");
    }
    let ran = run(&daemon, &["-"], " \n").await;
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("the prompt is empty"), "{}", ran.err);
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn each_event_is_a_line_of_json_where_that_is_wanted() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let daemon = Daemon::start(&provider).await;
    let ran = run(&daemon, &["--json", "hi"], "").await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let frames: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = frames.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(types.first(), Some(&"session:ready"));
    assert!(types.contains(&"chat:text-delta"), "{types:?}");
    let end = frames.iter().find(|it| it["type"] == "chat:stream-end");
    assert_eq!(end.unwrap()["payload"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn the_exit_code_says_what_came_of_it() {
    let pricing = json!({"input": 0, "output": 1000});
    let call = || Turn::call("bash", &json!({"command": "touch it"}));
    let refused = || Turn::plain(401, "application/json", r#"{"error":{"message":"no"}}"#);
    let input = json!({"description": "d", "prompt": "do it", "profile": "fix"});
    let task = Turn::call("task", &input);
    let cases: [(Vec<Turn>, Value, i32, &str); 4] = [
        (
            vec![call(), Turn::text("Without it, then.")],
            json!({}),
            4,
            "1 call was refused",
        ),
        (
            // The task's call, not the one that began it.
            vec![
                task,
                call(),
                Turn::text("Nobody answers."),
                Turn::text("Without it."),
            ],
            json!({"tasks": {"profiles": ["fix"]},
                "workflows": {"fix": {"tool_permissions": {"bash": {"allowed": true}}}}}),
            4,
            "1 call was refused",
        ),
        (vec![refused()], json!({}), 1, "error"),
        (
            // What the first request is expected to cost does not fit.
            Vec::new(),
            json!({"providers": {"test": {"pricing": pricing}},
                "budget": {"session": 0.006, "on_reach": "stop"}}),
            5,
            "may cost",
        ),
    ];
    for (turns, settings, code, words) in cases {
        let provider = Provider::start().await;
        let requests = turns.len();
        for turn in turns {
            provider.then(turn);
        }
        let daemon = Daemon::with(&provider, settings).await;
        let ran = run(&daemon, &["go"], "y\n").await;
        assert_eq!(provider.requests().len(), requests, "{}", ran.err);
        assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{}", ran.err);
        // What stdin has is no answer to a question.
        assert!(!daemon.project().join("it").exists());
    }
}

#[tokio::test]
async fn a_host_that_nobody_could_be_asked_about_has_the_exit_code_of_a_call() {
    let connect = |host: &str| format!("cat < /dev/tcp/{host}/443");
    let both = [connect("one.invalid"), connect("two.invalid")].join("; ");
    for unattended in ["ask", "deny"] {
        let provider = Provider::start().await;
        for line in [&both, &connect("one.invalid")] {
            provider.then(bash(line));
        }
        provider.then(Turn::text("Without them, then."));
        let mut settings = hosts::settings(&["listed.invalid"]);
        settings["approval"] = json!({ "unattended": unattended });
        let daemon = Daemon::with(&provider, settings).await;
        if !hosts::is_full(&daemon.connect().await) {
            return;
        }
        let ran = run(&daemon, &["go"], "").await;
        let said = "2 hosts (one.invalid, two.invalid) were refused, since nobody could be asked: \
                    `tools.bash.hosts`";
        assert!(ran.err.contains(said), "{unattended}: {}", ran.err);
        assert_eq!(ran.code, Some(4), "{unattended}: {}", ran.err);
    }
}

#[tokio::test]
async fn a_prompt_is_shown_only_where_somebody_may_answer() {
    for (command, stdin, is_shown) in [
        ("run", "", false),
        ("chat", "", false),
        ("chat", "y\n", true),
    ] {
        let provider = Provider::start().await;
        provider
            .then(Turn::call("bash", &json!({"command": "touch it"})))
            .then(Turn::text("done"));
        let daemon = Daemon::start(&provider).await;
        let ran = client(command, &daemon, &["go"], stdin).await;
        assert!(ran.err.contains("t1 wants to run bash"), "{}", ran.err);
        assert_eq!(ran.err.contains("y yes, n no"), is_shown, "{}", ran.err);
        assert_eq!(daemon.project().join("it").exists(), is_shown);
    }
}

/// Runs it with a daemon of its own, whose home is this folder.
async fn alone(home: &Path, arguments: &[&str]) -> Ran {
    let child = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .arg("run")
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    ran(child).await
}

#[tokio::test]
async fn a_project_that_was_named_and_is_not_there_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let ran = alone(home.path(), &["--project-root", "/no/such/folder", "hi"]).await;
    assert_eq!(ran.code, Some(2));
    let why = "outrigger: --project-root /no/such/folder: there is no such directory\n";
    assert_eq!(ran.err, why);
}

#[tokio::test]
async fn what_its_own_daemon_warns_of_is_said_before_the_answer() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.toml");
    let hook = "[hooks.a]\non = 'before_tool'\ntools = ['bsh']\ncommand = '/bin/true'\n";
    std::fs::write(&config, hook).unwrap();
    let [config, project] = [config.as_path(), home.path()].map(|it| it.to_str().unwrap());
    let arguments = ["--config", config, "--project-root", project, "hi"];
    let ran = alone(home.path(), &arguments).await;
    let warning = "outrigger: warning: hooks.a.tools: ";
    assert!(ran.err.contains(warning), "{}", ran.err);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// What its own daemon plays: it begins to answer, and goes on for long.
const ENDLESS: &str = "steps: [{play: [{text: begun}, {pause: 600s}, {text: over}]}]";

/// Returns the state of a process, and its parent; `None` where there is no such process.
#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have anything in it.
    let mut rest = stat.rsplit(')').next()?.split_whitespace();
    Some((rest.next()?.to_owned(), rest.next()?.parse().ok()?))
}

/// Returns the process that another one started as its daemon; `None` where there is none.
#[cfg(target_os = "linux")]
fn daemon_of(parent: u32) -> Option<u32> {
    let is_child = |pid: &u32| stat(*pid).is_some_and(|(_, of)| of == parent);
    let mut entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.find_map(|entry| entry.file_name().to_str()?.parse().ok().filter(is_child))
}

/// Starts a program with an endless daemon of its own, by a line of the shell that ends with it; returns it, and its daemon, once
/// something was said.
#[cfg(target_os = "linux")]
async fn with_endless_daemon(home: &Path, before: &str, command: &[&str]) -> (Child, u32) {
    let [config, script] = ["config.toml", "endless.yaml"].map(|name| home.join(name));
    std::fs::write(&script, ENDLESS).unwrap();
    let provider = format!(
        "[providers.a]\nkind = 'scripted'\nscript = '{}'\n",
        script.display()
    );
    std::fs::write(&config, provider).unwrap();
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{before}exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_outrigger"))
        .args(command)
        .arg("--config")
        .arg(&config)
        .arg("--project-root")
        .arg(home)
        .arg("hi")
        .env_clear()
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = [0; 1];
    // The first that is said comes from its daemon: this one talks to it.
    let first = async {
        match command {
            ["chat"] => child.stderr.as_mut().unwrap().read(&mut said).await,
            _ => child.stdout.as_mut().unwrap().read(&mut said).await,
        }
    };
    let first = tokio::time::timeout(DEADLINE, first).await;
    assert_eq!(first.expect("nothing was said").unwrap(), 1);
    let daemon = daemon_of(child.id().unwrap()).expect("it has a daemon");
    (child, daemon)
}

#[cfg(target_os = "linux")]
async fn kill(process: u32, signal: &str) {
    let mut kill = Command::new("/bin/kill");
    kill.args(["-s", signal, &process.to_string()]);
    assert!(kill.status().await.unwrap().success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_signal_ends_its_own_daemon_before_it_ends_itself() {
    let home = tempfile::tempdir().unwrap();
    for command in [&["run", "--json"][..], &["chat"]] {
        for (before, signals, code) in [
            ("", &["TERM"][..], Some(143)),
            ("", &["HUP"], Some(129)),
            // As `nohup` has it.
            ("trap '' HUP; ", &["HUP", "TERM"], Some(143)),
            ("", &["KILL"], None),
        ] {
            let (mut child, daemon) = with_endless_daemon(home.path(), before, command).await;
            for signal in signals {
                kill(child.id().unwrap(), signal).await;
            }
            let status = tokio::time::timeout(DEADLINE, child.wait()).await;
            let status = status.expect("it did not end").unwrap();
            // Nobody may have waited for one whose parent is gone.
            let is_there = || stat(daemon).is_some_and(|(state, _)| state != "Z");
            match code {
                Some(_) => assert!(
                    !is_there(),
                    "{command:?} {signals:?}: its daemon is there yet"
                ),
                None => eventually("the end of its daemon", async || !is_there()).await,
            }
            assert_eq!(status.code(), code, "{command:?} {signals:?}");
        }
    }
}

/// Nobody starts it again, so there is nothing to wait for.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_its_own_daemon_dies_it_ends_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let (child, daemon) = with_endless_daemon(home.path(), "", &["run", "--json"]).await;
    kill(daemon, "KILL").await;
    let ended = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
    let ended = ended.expect("it did not end").unwrap();
    let aside = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{aside}");
    assert!(
        aside.contains("the daemon of this chat ended: signal: 9"),
        "{aside}"
    );
}

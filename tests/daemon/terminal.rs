//! `outrigger chat` in a real terminal, and what it says where there is none.
//!
//! The terminal is made by `script` of util-linux, which every Debian has.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

mod sessions;

/// How long something is waited for that has to appear.
const DEADLINE: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_outrigger");

/// A terminal with a program in it, and what it has shown.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl Terminal {
    /// Starts `outrigger` with these arguments and variables.
    fn start(home: &TempDir, arguments: &str, variables: &[(&str, &str)]) -> Self {
        Self::run(home, &format!("exec {PROGRAM} {arguments}"), variables)
    }

    /// Starts a command of the shell.
    fn run(home: &TempDir, shell: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new("script");
        command
            .args(["--quiet", "--return", "--command"])
            .arg(shell)
            .arg("/dev/null")
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("NO_COLOR", "1")
            .envs(variables.iter().copied())
            .current_dir(home.path().join("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        Self {
            keys: child.stdin.take().unwrap(),
            screen: child.stdout.take().unwrap(),
            child,
            shown: String::new(),
        }
    }

    async fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Reads on until this is shown; returns what came until then and forgets it.
    async fn until(&mut self, words: &str) -> String {
        let reading = async {
            let mut bytes = [0; 4096];
            loop {
                if let Some(at) = self.shown.find(words) {
                    let rest = self.shown.split_off(at + words.len());
                    return std::mem::replace(&mut self.shown, rest);
                }
                let count = self.screen.read(&mut bytes).await.unwrap();
                assert!(count > 0, "it ended before {words:?}: {}", self.shown);
                self.shown
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        };
        match tokio::time::timeout(DEADLINE, reading).await {
            Ok(seen) => seen,
            Err(_) => panic!("{words:?} was not shown: {}", self.shown),
        }
    }

    /// Waits for the end; returns the exit code and what was shown since.
    async fn end(mut self) -> (i32, String) {
        let ending = async {
            let mut bytes = Vec::new();
            // A terminal whose program is gone ends with an error of its own.
            drop(self.screen.read_to_end(&mut bytes).await);
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
            self.child.wait().await.unwrap().code().unwrap()
        };
        let code = tokio::time::timeout(DEADLINE, ending)
            .await
            .expect("the chat did not end");
        (code, self.shown)
    }
}

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("project")).unwrap();
    home
}

/// A daemon whose model runs these commands, and a terminal that chats with it.
async fn chat(settings: Value, commands: &[&str]) -> (Terminal, Daemon, Provider, TempDir) {
    let provider = Provider::start().await;
    for command in commands {
        provider.then(Turn::call("bash", &json!({ "command": command })));
    }
    provider.then(Turn::text("All said."));
    let daemon = Daemon::with(&provider, settings).await;
    let home = home();
    // The page's address, with the token in it.
    let arguments = format!(
        "chat --url 'http://127.0.0.1:{}/#token={}'",
        daemon.port, daemon.token
    );
    let mut terminal = Terminal::start(&home, &arguments, &[]);
    terminal.until("> ").await;
    (terminal, daemon, provider, home)
}

#[tokio::test]
async fn what_is_typed_before_a_question_can_be_answered_does_not_answer_it() {
    let (mut terminal, daemon, _provider, _home) =
        chat(json!({}), &["touch first", "touch second"]).await;
    // Typed ahead, with the message.
    terminal.keys("go\ny\na\n").await;
    terminal.until("wants to run bash").await;
    terminal.until("y yes, n no").await;
    assert!(!daemon.project().join("first").exists());
    terminal.keys("n not this one\n").await;
    terminal.until("wants to run bash").await;
    terminal.until("y yes, n no").await;
    terminal.keys("y\n").await;
    terminal.until("All said.").await;
    assert!(!daemon.project().join("first").exists());
    assert!(daemon.project().join("second").exists());
    terminal.until("\n> ").await;
    terminal.keys("/quit\n").await;
    assert_eq!(terminal.end().await.0, 0);
}

#[tokio::test]
async fn a_line_for_a_question_that_lapsed_is_not_sent() {
    // Enough for the question to be shown on a busy machine.
    let settings = json!({"approval": {"timeout": "8s", "max_timeout": "8s"}});
    let (mut terminal, _daemon, provider, _home) = chat(settings, &["touch first"]).await;
    terminal.keys("go\n").await;
    terminal.until("y yes, n no").await;
    // Begun, and not ended in time.
    terminal.keys("n not today").await;
    terminal.until("nobody answered in time").await;
    terminal.until("\n> ").await;
    let asked = provider.requests().len();
    terminal.keys("y\n").await;
    terminal.until("it is dropped, not sent").await;
    terminal.until("> ").await;
    assert_eq!(provider.requests().len(), asked);
    terminal.keys("/quit\n").await;
    assert_eq!(terminal.end().await.0, 0);
}

#[tokio::test]
async fn an_input_is_edited_on_the_line() {
    let (mut terminal, daemon, _provider, _home) = chat(json!({}), &["touch first"]).await;
    terminal.keys("go\n").await;
    terminal.until("y yes, n no").await;
    terminal.keys("e {\"command\":\"touch edited\"}\n").await;
    terminal.until("All said.").await;
    assert!(daemon.project().join("edited").exists());
    assert!(!daemon.project().join("first").exists());
}

#[tokio::test]
async fn a_terminal_is_as_it_was_after_a_signal() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let home = home();
    for (signal, code) in [("TERM", "143"), ("HUP", "129")] {
        let (port, token) = (daemon.port, &daemon.token);
        let chat = format!("{PROGRAM} chat --url http://127.0.0.1:{port}/#token={token}");
        let shell = format!(
            "sh -c 'echo \"pid $$.\"; exec {chat}'; echo \"code $?\"; stty -a; echo \"seen\""
        );
        let mut terminal = Terminal::run(&home, &shell, &[("TERM", "xterm")]);
        let shown = terminal.until(".").await;
        let pid = shown.trim_end_matches('.').rsplit(' ').next().unwrap();
        let pid = pid.to_owned();
        terminal.until("> ").await;
        let kill = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.await.unwrap().success());
        let shown = terminal.until("code ").await;
        // No more bracketed paste.
        assert!(shown.contains("\x1b[?2004l"), "{signal}: {shown:?}");
        let left = terminal.until("seen").await;
        assert!(left.starts_with(code), "{signal}: {left}");
        assert!(
            left.contains(" icanon") && left.contains(" echo "),
            "{signal}: {left}"
        );
        terminal.end().await;
    }
}

#[tokio::test]
async fn the_end_of_the_daemon_is_said() {
    let (mut terminal, mut daemon, _provider, _home) = chat(json!({}), &[]).await;
    drop(daemon.stdin.take());
    assert!(daemon.child.wait().await.unwrap().success());
    terminal.until("connecting again").await;
    // Ctrl-C twice ends the waiting.
    terminal.keys("\u{3}").await;
    terminal.until("Ctrl-C again").await;
    terminal.keys("\u{3}").await;
    assert_eq!(terminal.end().await.0, 1);
}

#[tokio::test]
async fn a_start_in_a_terminal_is_for_people_and_one_elsewhere_for_programs() {
    let home = home();
    let mut terminal = Terminal::start(&home, "--port 0 --log-format json", &[]);
    terminal.until("is ready.").await;
    for row in [
        "page      http://127.0.0.1:",
        "socket    ws://127.0.0.1:",
        "project   /",
        "sandbox   ",
        "provider  scripted, which plays a demonstration",
        "Ctrl-C ends it.",
    ] {
        terminal.until(row).await;
    }
    assert!(!terminal.shown.contains("\"event\""), "{}", terminal.shown);
    terminal.keys("\u{3}").await;
    assert_eq!(terminal.end().await.0, 0);

    let mut terminal = Terminal::start(&home, "--port 0 --ready json", &[]);
    terminal.until("{\"event\":\"ready\"").await;
    terminal.keys("\u{3}").await;
    assert_eq!(terminal.end().await.0, 0);
}

/// Runs a chat without a terminal, to its end.
async fn piped(home: &TempDir, arguments: &[&str], token: &str) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("OUTRIGGER_TOKEN", token)
        .current_dir(home.path().join("project"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, command.output())
        .await
        .expect("the chat did not end")
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[tokio::test]
async fn a_call_that_nobody_could_be_asked_about_has_an_exit_code() {
    let provider = Provider::start().await;
    provider.then(Turn::call("bash", &json!({"command": "touch it"})));
    provider.then(Turn::text("Without it, then."));
    let daemon = Daemon::start(&provider).await;
    let url = format!("http://127.0.0.1:{}", daemon.port);
    let (code, said) = piped(&home(), &["chat", "--url", &url, "hi"], &daemon.token).await;
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("1 call was refused, since nobody could be asked"),
        "{said}"
    );
    assert!(said.contains("--trust-level"), "{said}");
    let requests = provider.requests();
    let sent = requests.last().unwrap().to_string();
    assert!(sent.contains("nobody was there to be asked"), "{sent}");
    assert!(!sent.contains("the user denied"), "{sent}");
    assert!(!daemon.project().join("it").exists());
}

#[tokio::test]
async fn a_chat_with_a_daemon_that_runs_names_its_project() {
    let provider = Provider::start().await;
    let allowed = tempfile::tempdir().unwrap();
    let (one, other) = (allowed.path().join("one"), allowed.path().join("other"));
    std::fs::create_dir(&one).unwrap();
    std::fs::write(one.join("here.txt"), "of the project one").unwrap();
    let daemon = Daemon::with(
        &provider,
        json!({"project": {"allowed": [format!("{}/*", allowed.path().display())]}}),
    )
    .await;
    let url = format!("http://127.0.0.1:{}", daemon.port);
    provider.then(Turn::call("file_read", &json!({"path": "here.txt"})));
    provider.then(Turn::text("I have read it."));
    let root = one.to_str().unwrap();
    let arguments = ["run", "--url", &url, "--project-root", root, "read it"];
    let (code, said) = piped(&home(), &arguments, &daemon.token).await;
    assert_eq!(code, Some(0), "{said}");
    let requests = provider.requests();
    let sent = requests.last().unwrap().to_string();
    assert!(sent.contains("of the project one"), "{sent}");
    // One that is not there is said, and nothing is sent.
    let root = other.to_str().unwrap();
    let arguments = ["run", "--url", &url, "--project-root", root, "read it"];
    let (code, said) = piped(&home(), &arguments, &daemon.token).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(root), "{said}");
    assert_eq!(provider.requests().len(), requests.len());
    // What is the daemon's business alone is refused.
    let arguments = ["run", "--url", &url, "--project-name", "x", "read it"];
    let (code, said) = piped(&home(), &arguments, &daemon.token).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--project-name"), "{said}");
}

#[tokio::test]
async fn a_missing_or_wrong_token_is_explained_to_people() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let url = format!("http://127.0.0.1:{}", daemon.port);
    for token in ["", "wrong-wrong-wrong-wrong"] {
        let (code, said) = piped(&home(), &["chat", "--url", &url, "hi"], token).await;
        assert_eq!(code, Some(1), "{said}");
        for words in ["OUTRIGGER_TOKEN", "--token-file"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("Authorization"), "{said}");
    }
}

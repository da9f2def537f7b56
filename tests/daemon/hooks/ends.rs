//! Hooks end in time, with all that they started, whatever they do.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{shell, with};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, eventually};

/// More than a pipe holds.
const LARGE: usize = 300_000;

/// A hook outside of the sandbox, whose processes can be looked at.
fn outside(line: &str, timeout: &str) -> Value {
    let mut hook = shell("before_tool", line);
    (hook["sandbox"], hook["timeout"]) = (json!("off"), json!(timeout));
    hook
}

/// Waits until the process is gone whose id is in a file.
async fn is_gone(file: &Path) {
    let id = std::fs::read_to_string(file).unwrap();
    let process = PathBuf::from(format!("/proc/{}", id.trim()));
    let is_gone = async || {
        let stat = std::fs::read_to_string(process.join("stat"));
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    };
    eventually("the end of what the hook started", is_gone).await;
}

#[tokio::test]
async fn one_that_does_not_read_or_never_stops_writing_ends_in_time() {
    for (line, problem) in [
        ("sleep 1000", Some("it took longer than 300ms")),
        (
            "trap '' TERM HUP; while :; do sleep 1; done",
            Some("it took longer than 300ms"),
        ),
        ("yes", Some("its answer is longer than")),
        ("exec yes >&2", Some("its answer is longer than")),
        ("exit 0", None),
        ("sleep 1000 & exit 0", None),
    ] {
        let mut hook = shell("before_tool", line);
        hook["timeout"] = json!(if problem.is_none_or(|it| it.starts_with("its")) {
            "1m"
        } else {
            "300ms"
        });
        let provider = Provider::start().await;
        let content = "x".repeat(LARGE);
        provider
            .then(Turn::call(
                "file_write",
                &json!({"path": "a.txt", "content": content}),
            ))
            .then(Turn::text("done"));
        let mut config = with(&json!({ "h": hook }));
        config["approval"] = json!({"policy": "allow_all"});
        let daemon = Daemon::with(&provider, config).await;
        let mut client = daemon.connect().await;
        client.say("go").await;
        client.until("chat:stream-end").await;
        let result = client.all("chat:tool-result")[0]["result"].to_string();
        match problem {
            Some(problem) => assert!(result.contains(problem), "{line}: {result}"),
            None => assert!(daemon.project().join("a.txt").exists(), "{line}: {result}"),
        }
    }
}

#[tokio::test]
async fn what_it_started_ends_with_it() {
    // One that answers and leaves a child, one that is too late with its child, and one that is cancelled.
    for (line, timeout, cancels) in [
        ("sleep 1000 & echo $! > child", "1m", false),
        ("sleep 1000 & echo $! > child; wait", "500ms", false),
        ("sleep 1000 & echo $! > child; wait", "5m", true),
    ] {
        let provider = Provider::start().await;
        provider
            .then(Turn::call("bash", &json!({"command": "echo ran"})))
            .then(Turn::text("done"));
        let hooks = json!({ "h": outside(line, timeout) });
        let daemon = Daemon::with(&provider, with(&hooks)).await;
        let child = daemon.project().join("child");
        let mut client = daemon.connect().await;
        client.say("go").await;
        if cancels {
            let has_begun =
                async || std::fs::read_to_string(&child).is_ok_and(|it| it.ends_with('\n'));
            client.unread(eventually("the hook", has_begun)).await;
            client.ask(json!({"type": "chat:cancel"})).await;
        }
        let end = client.until("chat:stream-end").await["payload"].clone();
        let reason = if cancels { "cancelled" } else { "end_turn" };
        assert_eq!(end["stopReason"], reason, "{line}");
        is_gone(&child).await;
    }
}

#[tokio::test]
async fn nothing_is_looked_for_in_the_project_for_one_that_is_not_confined_and_no_secret_is_told() {
    let key = "test-key-0123456789";
    for (line, told) in [
        (format!("echo {key} >&2; exit 2"), "refused: [redacted]"),
        (
            format!("echo {key} >&2; exit 1"),
            "it ended with 1; what it wrote is in the daemon's log",
        ),
        (format!("echo '{{\"note\":\"{key}\"}}'"), "`h`: [redacted]]"),
    ] {
        let provider = Provider::start().await;
        provider
            .then(Turn::call("bash", &json!({"command": "echo ran"})))
            .then(Turn::text("done"));
        let hooks = json!({ "h": outside(&line, "1m") });
        let daemon = Daemon::with(&provider, with(&hooks)).await;
        let mut client = daemon.connect().await;
        client.say("go").await;
        client.until("chat:stream-end").await;
        let requests = json!(provider.requests()).to_string();
        assert!(requests.contains(told), "{line}: {requests}");
        let seen = json!(client.seen).to_string();
        assert!(
            !requests.contains(key) && !seen.contains(key),
            "{line}: {seen}"
        );
        assert!(!json!(daemon.log()).to_string().contains(key));
    }
}

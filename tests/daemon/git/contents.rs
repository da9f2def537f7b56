//! Files of the deny list: `git` refuses them by name and excludes them from what it shows.

use serde_json::json;

use super::{call, git, plain_git, repository};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

const KEY: &str = "THE-PRIVATE-KEY";

#[tokio::test]
async fn history_shows_no_file_of_the_deny_list() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    for name in ["server.key", "deploy/.env", ".env"] {
        daemon.file(name, format!("{KEY}\n"));
    }
    daemon.file("src/secret.rs", "fn harmless() {}\n");
    plain_git(&project, &["add", "-A"]);
    plain_git(&project, &["commit", "-qm", "third"]);
    std::fs::remove_file(project.join("server.key")).unwrap();
    plain_git(&project, &["commit", "-qam", "fourth"]);
    let mut client = daemon.connect().await;
    for words in [
        &["log", "-p"][..],
        &["log", "-p", "HEAD"],
        &["log", "-p", "--", "s*"],
        &["log", "--patch", "--", "serv*"],
        &["log", "-u", "--all"],
        &["log", "-U1"],
        &["reflog", "-p"],
        &["show", "HEAD"],
        &["show", "HEAD~1"],
        &["show", "HEAD~1", "--", "*e*"],
        &["diff", "HEAD~2"],
        &["diff", "HEAD~2", "HEAD~1", "--", ":(glob)**"],
        &["grep", KEY, "HEAD~1"],
        &["grep", "--cached", KEY],
        &["grep", "-h", "-e", KEY],
        &["grep", KEY, "--", "*e*", ":/"],
        &["grep", "-i", "the-", "HEAD~1", "HEAD", "--", ":(glob)**"],
        &["diff-tree", "-p", "HEAD~2", "HEAD~1"],
        &["diff-tree", "-p", "--root", "-r", "HEAD~1", "--", "*e*"],
        &["reflog", "show", "--stat"],
    ] {
        let result = call(&provider, &mut client, words).await;
        let shown = result["result"].as_str().unwrap();
        assert!(!shown.contains(KEY), "{words:?} {shown}");
        assert!(!shown.contains("fatal"), "{words:?} {shown}");
    }
    let shown = call(&provider, &mut client, &["show", "HEAD~1"]).await;
    let shown = shown["result"].as_str().unwrap();
    assert!(shown.contains("harmless"), "{shown}");
    let log = call(&provider, &mut client, &["log", "--format=%s"]).await;
    assert_eq!(log["result"], "fourth\nthird\nsecond\nfirst\n");
    assert_eq!(client.all("chat:error").len(), 0);
    // No option can be added to a line of bash: one that names such a file is asked for.
    for line in [
        "git log -p -- '*.env'",
        "git show HEAD~1:server.key",
        "git log -L1,1:server.key",
        "git log -p -- server.key",
    ] {
        provider
            .then(Turn::call("bash", &json!({"command": line})))
            .then(Turn::text("done"));
        client
            .send(json!({"type": "chat:send", "content": "go", "trustLevel": "guided"}))
            .await;
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        assert_ne!(confirm["danger"]["level"], "safe", "{line}");
        client
            .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
            .await;
        client.until("chat:stream-end").await;
    }
}

/// Files of the deny list that git would read for an option, and say what is in them.
#[tokio::test]
async fn no_option_has_git_read_a_file_of_the_deny_list() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    daemon.file(".env", format!("{KEY}\n"));
    let mut client = daemon.connect().await;
    for words in [
        &["add", "--pathspec-from-file=.env"][..],
        &["config", "-f", ".env", "--list"],
        &["commit", "--allow-empty", "-F", ".env"],
    ] {
        provider.then(git(words));
        let before = client.all("chat:error").len();
        client
            .send(json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"}))
            .await;
        client.until("chat:stream-end").await;
        let errors = client.all("chat:error");
        assert_eq!(errors[before]["code"], "sandbox_violation", "{words:?}");
    }
}

/// A checkout may change hooks in the work tree, and so may a patch of the model's; settings that are included may not be.
#[tokio::test]
async fn hooks_that_a_call_changed_are_told_of_and_included_settings_stay() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let project = daemon.project();
    daemon.file("tools/hooks/pre-commit", "good\n");
    daemon.file("shared.gitconfig", "[core]\n");
    plain_git(&project, &["init", "-q"]);
    plain_git(&project, &["add", "."]);
    plain_git(&project, &["commit", "-qm", "first"]);
    plain_git(&project, &["config", "core.hooksPath", "tools/hooks"]);
    plain_git(&project, &["config", "include.path", "../shared.gitconfig"]);
    let patch = |path: &str, old: &str, new: &str| {
        format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n")
    };
    daemon.file("a.patch", patch("tools/hooks/pre-commit", "good", "evil"));
    daemon.file("b.patch", patch("shared.gitconfig", "[core]", "[evil]"));
    let result = call(&provider, &mut client, &["apply", "a.patch"]).await;
    let changed = &result["metadata"]["settingsChanged"];
    assert_eq!(*changed, json!(["tools/hooks"]), "{result}");
    if client.seen[0]["payload"]["sandbox"]["mode"] == "full" {
        call(&provider, &mut client, &["apply", "b.patch"]).await;
        let shared = std::fs::read_to_string(project.join("shared.gitconfig")).unwrap();
        assert_eq!(shared, "[core]\n");
    }
}

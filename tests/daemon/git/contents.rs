//! Files for secrets, which git must not show: from history, from what is staged, or because it read them for an option.

use serde_json::json;

use super::{call, configure, git, plain_git, repository};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// A secret that was committed is in the history, where nothing masks it.
#[tokio::test]
async fn history_shows_no_secrets_unasked() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    daemon.file("server.key", "THE-PRIVATE-KEY\n");
    daemon.file("prod.env/db-secret.json", "THE-PRIVATE-KEY\n");
    daemon.file(".env", "THE-PRIVATE-KEY\n");
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
        &["show", "HEAD"],
        &["show", "HEAD~1"],
        &["show", "HEAD~1", "--", "*e*"],
        &["diff", "HEAD~2"],
        &["diff", "HEAD~2", "HEAD~1", "--", ":(glob)**"],
    ] {
        let result = call(&provider, &mut client, words).await;
        let shown = result["result"].as_str().unwrap();
        assert!(!shown.contains("THE-PRIVATE-KEY"), "{words:?} {shown}");
        assert!(!shown.contains("fatal"), "{words:?} {shown}");
    }
    // What only says "secret" in its name, and what git says besides contents, is there as ever.
    let shown = call(&provider, &mut client, &["show", "HEAD~1"]).await;
    assert!(
        shown["result"].as_str().unwrap().contains("harmless"),
        "{shown}"
    );
    let log = call(&provider, &mut client, &["log", "--format=%s"]).await;
    assert_eq!(log["result"], "fourth\nthird\nsecond\nfirst\n");
    // Asked for were the three patterns that a secret's name may fit; they show none either.
    assert_eq!(client.all("chat:tool-confirm").len(), 3);
    assert_eq!(client.all("chat:error").len(), 0);
    // In a line of bash nothing can be left out: it is asked for.
    for line in [
        "git log -p -- '*.env'",
        "git log -p -- 's*'",
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

/// However the words are put, so that a pathspec is lost or means nothing.
#[tokio::test]
async fn no_order_of_words_has_history_show_a_secret() {
    const KEY: &str = "THE-PRIVATE-KEY";
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    daemon.file(".env", format!("{KEY}\n"));
    daemon.file("-L", "a name\n");
    daemon.file("--no-index", "a name\n");
    plain_git(&project, &["add", "-A"]);
    plain_git(&project, &["commit", "-qm", "third"]);
    let mut client = daemon.connect().await;
    for words in [
        &["log", "-p", "--", "-L", "."][..],
        &["log", "-p", "--", ".", "--no-index"],
        &["log", "-p", "-S", "-L"],
        &["log", "-p", "--end-of-options", "HEAD", "--", "-L", "."],
        &["log", "-p", "--until"],
        &["log", "-p", "-I"],
        &["log", "-p", "--anchored"],
        &["log", "-p", "--full-diff"],
        &["log", "-p", "--full-diff", "--", "a.txt"],
        &["log", "--no-ind", "-p"],
        &["diff", "HEAD~1", "--", "--no-index", "."],
        &["diff", "HEAD~1", "-S", "--no-index"],
        &["reflog", "-p"],
        &["show", "HEAD", "--", "-L", "."],
    ] {
        provider.then(git(words)).then(Turn::text("done"));
        client
            .send(json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"}))
            .await;
        client.until("chat:stream-end").await;
        let results = client.all("chat:tool-result");
        let told = results.last().unwrap()["result"].to_string();
        assert!(!told.contains(KEY), "{words:?} {told}");
    }
    assert_eq!(client.all("chat:tool-result").len(), 14);
    assert_eq!(client.all("chat:tool-confirm").len(), 0);
}

/// What shows contents without pathspecs, and files that git reads to say what is in them.
#[tokio::test]
async fn no_option_has_git_show_a_secret() {
    const KEY: &str = "THE-PRIVATE-KEY";
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    for name in [".env", "secret.bak", "my_secret_file", "credentials.old"] {
        daemon.file(name, format!("{KEY}\n"));
    }
    plain_git(&project, &["add", "-A"]);
    plain_git(&project, &["commit", "-qm", "third"]);
    for name in [".env", "secret.bak", "my_secret_file", "credentials.old"] {
        daemon.file(name, format!("{KEY} 2\n"));
    }
    plain_git(&project, &["add", "-A"]);
    configure(&project, "commit.verbose", "true");
    configure(&project, "stash.showPatch", "true");
    let mut client = daemon.connect().await;
    let calls = [
        &["status", "-v"][..],
        &["commit", "--dry-run"],
        &["commit", "--dry-run", "-v"],
        &["reset", "-p", "HEAD~1"],
        &["diff", "--cached"],
        &["log", "-p"],
        &["show"],
        &["cat-file", "--batch", "--batch-all-objects"],
        &["stash"],
        &["stash", "show"],
        &["stash", "show", "-p"],
        &["stash", "show", "--color"],
        &["log", "--follow", "-p", "a.txt"],
        &["add", "--pathspec-from-file=.env"],
        &["config", "-f", ".env", "--list"],
        &["commit", "--allow-empty", "-F", ".env"],
    ];
    for words in calls {
        // A file that is read for an option ends the exchange, and the model says nothing more.
        let ends = words.iter().any(|word| word.contains(".env"));
        provider.then(git(words));
        if !ends {
            provider.then(Turn::text("done"));
        }
        let before = client.all("chat:tool-result").len();
        client
            .send(json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous"}))
            .await;
        client.until("chat:stream-end").await;
        let results = client.all("chat:tool-result");
        assert_eq!(client.all("chat:error").is_empty(), !ends, "{words:?}");
        let told = json!(results.get(before..)).to_string();
        assert!(!told.contains(KEY), "{words:?} {told}");
    }
}

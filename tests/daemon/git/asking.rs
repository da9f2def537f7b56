//! Which calls of git the user is asked for, and what those are told that cannot succeed.

use serde_json::json;

use super::{git, output, perform, plain_git, repository};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Calls that only read, as people make them.
const READING: &[&str] = &[
    "blame -L 1,1 a.txt",
    "branch -a",
    "branch --contains HEAD",
    "branch -vv",
    "cat-file -p HEAD:a.txt",
    "check-ignore -v left-out.txt",
    "count-objects -vH",
    "describe --tags --always",
    "diff-tree --no-commit-id --name-only -r HEAD",
    "diff-tree -p HEAD~1 HEAD",
    "for-each-ref --sort=-committerdate --format=%(refname:short) refs/heads",
    "grep -e two -A 2",
    "grep -in TWO HEAD -- a.txt",
    "grep two",
    "ls-files --others --exclude-standard",
    "ls-tree -r --name-only HEAD",
    "merge-base HEAD HEAD~1",
    "name-rev HEAD",
    "reflog",
    "reflog -n 2 --date=iso",
    "reflog show main",
    "remote -v",
    "rev-list --count HEAD",
    "rev-parse --abbrev-ref HEAD",
    "shortlog -sne HEAD",
    "show-ref --heads --hash",
    "stash list",
    "stash show",
    "stash show --name-only stash@{0}",
    "tag",
    "tag -l v* --sort=-creatordate",
    "worktree list --porcelain",
];

/// Calls beside these that run something, write, or show contents without a pathspec.
const ASKED: &[&str] = &[
    "diff-tree --stdin -p",
    "diff-tree --output=shown.txt HEAD~1 HEAD",
    "for-each-ref --format=%(signature)",
    "grep --no-index two",
    "grep --recurse-submodules two",
    "grep --untracked two",
    "grep -e two HEAD:src",
    "grep -f a.txt two",
    "log --format=%GG",
    "reflog delete HEAD@{1}",
    "reflog expire --all",
    "shortlog --output=shown.txt HEAD",
    "stash drop",
    "stash list -p",
    "stash show -p",
    "worktree add tree",
    "worktree prune",
];

async fn is_asked(provider: &Provider, client: &mut Client, words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    let before = client.all("chat:tool-confirm").len();
    let result = super::call(provider, client, &words).await;
    let asked = client.all("chat:tool-confirm").len() > before;
    assert!(asked || result["status"] == "success", "{words:?} {result}");
    asked
}

#[tokio::test]
async fn what_only_reads_is_not_asked_for_and_what_stands_beside_it_is() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    plain_git(&project, &["tag", "v1"]);
    plain_git(&project, &["stash"]);
    daemon.file(".git/info/exclude", "left-out.txt\n");
    let mut client = daemon.connect().await;
    let mode = &client.seen[0]["payload"]["sandbox"]["mode"];
    if mode != "full" && mode != "fallback" {
        println!("*** SKIPPED: what git is asked for: no sandbox keeps files apart here ***");
        return;
    }
    let mut wrong = Vec::new();
    for (calls, expected) in [(READING, false), (ASKED, true)] {
        for words in calls {
            if is_asked(&provider, &mut client, words).await != expected {
                wrong.push(*words);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A setting that stays as it is needs no question; what can be changed has one.
#[tokio::test]
async fn settings_that_stay_as_they_are_are_not_asked_for() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    if client.seen[0]["payload"]["sandbox"]["mode"] != "full" {
        println!("*** SKIPPED: settings that are not asked for: the sandbox is not full here ***");
        return;
    }
    let before = output(&daemon.project(), &["config", "--local", "--list"]);
    for (words, refused) in [
        (&["config", "user.name", "Ada Lovelace"][..], true),
        (&["config", "set", "user.name", "Ada"], true),
        (&["config", "--unset", "core.bare"], true),
        (&["remote", "add", "origin", "https://example.org/x"], true),
        (&["remote", "set-url", "origin", "x"], true),
        (&["config", "user.name"], false),
        (&["config", "--list"], false),
        (&["config", "set", "-f", "own.cfg", "a.b", "c"], false),
        (&["config", "-f", "own.cfg", "a.b", "d"], false),
    ] {
        let asked = client.all("chat:tool-confirm").len();
        let result = super::call(&provider, &mut client, words).await;
        let text = result["result"].as_str().unwrap();
        let says = text.contains("read-only here") && text.contains("terminal of their own");
        assert_eq!(says, refused, "{words:?} {result}");
        let was_asked = client.all("chat:tool-confirm").len() > asked;
        assert_eq!(was_asked, !refused, "{words:?} {result}");
    }
    let after = output(&daemon.project(), &["config", "--local", "--list"]);
    assert_eq!(before, after);
    let own = std::fs::read_to_string(daemon.project().join("own.cfg")).unwrap();
    assert!(own.contains("b = d"), "{own}");
}

#[tokio::test]
async fn a_remote_that_is_not_configured_is_said_to_be_that() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    let remotes = "no remote of that name is configured";
    for (words, network, expected) in [
        (&["push", "origin", "main"][..], false, remotes),
        (&["push", "origin", "main"], true, remotes),
        (&["fetch", "nowhere"], false, remotes),
        (&["pull", "origin", "main"], true, remotes),
        (&["push"], true, remotes),
        (
            &["fetch", "https://example.org/x"],
            false,
            "ask for it with `network`",
        ),
    ] {
        let turn = Turn::call("git", &json!({ "args": words, "network": network }));
        let result = perform(&provider, &mut client, turn).await;
        let text = result["result"].as_str().unwrap();
        assert!(text.contains(expected), "{words:?} {text}");
    }
}

/// What is asked for may run: the reason does not say that it may not.
#[tokio::test]
async fn the_reason_of_a_question_is_true_of_a_call_that_then_runs() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    let turn = git(&["tag", "-a", "v2", "-m", "two"]);
    let result = perform(&provider, &mut client, turn).await;
    let confirm = client.all("chat:tool-confirm")[0].to_string();
    assert!(confirm.contains("not known to only read"), "{confirm}");
    assert!(!confirm.contains("not allowed"), "{confirm}");
    // Whoever tests may have no name for git; then it is that which is said.
    let text = result["result"].as_str().unwrap();
    assert!(
        result["status"] == "success" || text.contains("who commits"),
        "{result}"
    );
}

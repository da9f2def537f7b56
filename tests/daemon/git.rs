//! The `git` tool in repositories that would have git run something.

mod asking;
mod contents;
mod everyday;
mod remotes;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Runs git as the user would, with nothing switched off; for making repositories, and to show that an attack works.
fn plain_git(folder: &Path, words: &[&str]) {
    Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.org"])
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PAGER", "cat")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// Makes a repository with two commits, a change that is not committed, and a program that leaves a mark.
fn repository(daemon: &Daemon) {
    let project = daemon.project();
    daemon.file("a.txt", "one\n");
    plain_git(&project, &["init", "-q"]);
    plain_git(&project, &["add", "a.txt"]);
    plain_git(&project, &["commit", "-q", "-m", "first"]);
    daemon.file("a.txt", "two\n");
    plain_git(&project, &["commit", "-qam", "second"]);
    daemon.file("a.txt", "three\n");
    daemon.file(
        "evil",
        "#!/bin/sh\necho x >> \"$(dirname \"$0\")/ran\"\ncat \"$1\" 2>/dev/null\nexit 0\n",
    );
    let evil = project.join("evil");
    std::fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

fn git(words: &[&str]) -> Turn {
    Turn::call("git", &json!({ "args": words }))
}

/// Has git called, approves it where that is asked for, and returns the result.
async fn call(provider: &Provider, client: &mut Client, words: &[&str]) -> Value {
    perform(provider, client, git(words)).await
}

/// Has the model make one call, approves it where that is asked for, and returns the result.
async fn perform(provider: &Provider, client: &mut Client, turn: Turn) -> Value {
    provider.then(turn).then(Turn::text("done"));
    client.say("go").await;
    let before = client.all("chat:tool-result").len();
    loop {
        let frame = client.next().await;
        if frame["type"] == "chat:tool-confirm" {
            let id = &frame["payload"]["toolId"];
            client
                .send(json!({"type": "chat:tool-approve", "toolId": id, "approved": true}))
                .await;
        } else if frame["type"] == "chat:stream-end" {
            break;
        }
    }
    let results = client.all("chat:tool-result");
    let errors = client.all("chat:error");
    results
        .get(before)
        .unwrap_or_else(|| panic!("{errors:?}"))
        .clone()
}

#[tokio::test]
async fn reading_runs_at_once_and_says_what_it_came_to() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    let result = call(&provider, &mut client, &["log", "--format=%s"]).await;
    assert_eq!(result["result"], "second\nfirst\n", "{result}");
    assert_eq!(result["metadata"]["exitCode"], 0);
    assert!(result["metadata"]["sandbox"].is_string());
    assert_eq!(client.all("chat:tool-confirm").len(), 0);
    let status = call(&provider, &mut client, &["status", "--porcelain"]).await;
    assert!(
        status["result"].as_str().unwrap().contains(" M a.txt"),
        "{status}"
    );
    let diff = call(&provider, &mut client, &["diff"]).await;
    assert!(
        diff["result"].as_str().unwrap().contains("+three"),
        "{diff}"
    );
    let failed = call(&provider, &mut client, &["show", "no-such-thing"]).await;
    assert_eq!(failed["status"], "error");
    assert_eq!(failed["metadata"]["exitCode"], 128);
    let history = client.ask(json!({"type": "tool:history"})).await;
    assert_eq!(
        history["payload"]["executions"][0]["danger"]["level"], "safe",
        "{history}"
    );
}

#[tokio::test]
async fn what_changes_something_asks_and_then_runs() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    provider
        .then(git(&["add", "a.txt"]))
        .then(Turn::text("done"));
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["toolName"], "git");
    assert_eq!(confirm["danger"]["level"], "warning", "{confirm}");
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": true}))
        .await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-result")[0]["status"], "success");
    let status = call(&provider, &mut client, &["status", "--porcelain"]).await;
    assert!(
        status["result"].as_str().unwrap().contains("M  a.txt"),
        "{status}"
    );
}

#[tokio::test]
async fn a_read_only_scope_has_only_what_reads() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    for (words, status) in [(&["log"][..], "success"), (&["reset", "--hard"], "error")] {
        provider.then(git(words)).then(Turn::text("done"));
        client
            .send(json!({"type": "chat:send", "content": "go", "toolPermissions": {}}))
            .await;
        let before = client.all("chat:tool-result").len();
        client.until("chat:stream-end").await;
        let result = client.all("chat:tool-result")[before].clone();
        assert_eq!(result["status"], status, "{words:?} {result}");
    }
    assert_eq!(
        std::fs::read_to_string(daemon.project().join("a.txt")).unwrap(),
        "three\n"
    );
}

/// A repository's way to have something run: how it is set up, and the calls that would do it.
struct Trap {
    name: &'static str,
    set: fn(&Path),
    calls: &'static [&'static [&'static str]],
}

fn configure(project: &Path, key: &str, value: &str) {
    plain_git(project, &["config", key, value]);
}

const TRAPS: &[Trap] = &[
    Trap {
        name: "a monitor of files",
        set: |project| configure(project, "core.fsmonitor", "./evil"),
        calls: &[&["status"], &["diff"], &["ls-files", "-m"]],
    },
    Trap {
        name: "an external diff",
        set: |project| configure(project, "diff.external", "./evil"),
        calls: &[&["diff"], &["diff", "HEAD~1"]],
    },
    Trap {
        name: "a diff driver",
        set: |project| {
            configure(project, "diff.x.command", "./evil");
            std::fs::write(project.join(".gitattributes"), "*.txt diff=x\n").unwrap();
        },
        calls: &[&["diff"], &["diff", "HEAD~1"]],
    },
    Trap {
        name: "a text converter",
        set: |project| {
            configure(project, "diff.x.textconv", "./evil");
            std::fs::write(project.join(".gitattributes"), "*.txt diff=x\n").unwrap();
        },
        calls: &[
            &["diff"],
            &["log", "-p"],
            &["show"],
            &["blame", "a.txt"],
            &["grep", "two"],
            &["diff-tree", "-p", "HEAD~1", "HEAD"],
        ],
    },
    Trap {
        name: "a converter in the repository's own attributes",
        set: |project| {
            configure(project, "diff.x.textconv", "./evil");
            std::fs::create_dir_all(project.join(".git/info")).unwrap();
            std::fs::write(project.join(".git/info/attributes"), "*.txt diff=x\n").unwrap();
        },
        calls: &[&["show"], &["log", "-p", "--stat"], &["reflog", "-p"]],
    },
    Trap {
        name: "settings in a file of the project",
        set: |project| {
            std::fs::write(project.join("more"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
            configure(project, "include.path", "../more");
        },
        calls: &[&["status"]],
    },
    Trap {
        name: "a checker of signatures",
        set: |project| {
            configure(project, "gpg.program", "./evil");
            configure(project, "gpg.openpgp.program", "./evil");
            configure(project, "log.showSignature", "true");
            signed_commit(project);
        },
        calls: &[
            &["log"],
            &["show"],
            &["for-each-ref", "--format=%(signature)"],
            &["reflog"],
            &["shortlog", "HEAD"],
        ],
    },
    Trap {
        name: "an alias of a name that is git's",
        set: |project| {
            configure(project, "alias.status", "!./evil");
            configure(project, "alias.log", "!./evil");
            configure(project, "alias.st", "!./evil");
        },
        calls: &[&["status"], &["log"], &["st"]],
    },
    Trap {
        name: "a submodule with a monitor of its own",
        set: submodule,
        calls: &[&["status"], &["diff"]],
    },
    Trap {
        name: "an object that is fetched when it is looked for",
        set: |project| {
            plain_git(project, &["config", "extensions.partialClone", "origin"]);
            configure(project, "remote.origin.promisor", "true");
            configure(project, "remote.origin.url", "ext::./evil");
            configure(project, "protocol.ext.allow", "always");
        },
        calls: &[&["show", "1234567890123456789012345678901234567890"]],
    },
    Trap {
        name: "a driver for merges that are shown",
        set: |project| {
            configure(project, "merge.x.driver", "./evil");
            std::fs::write(project.join(".gitattributes"), "*.txt merge=x\n").unwrap();
            plain_git(project, &["checkout", "-qf", "-b", "side", "HEAD~1"]);
            std::fs::write(project.join("a.txt"), "four\n").unwrap();
            plain_git(project, &["commit", "-qam", "side"]);
            plain_git(project, &["merge", "-q", "main"]);
            plain_git(project, &["commit", "-qam", "merged"]);
            configure(project, "log.diffMerges", "remerge");
        },
        calls: &[&["log", "-m", "-p"], &["show", "-m"]],
    },
    Trap {
        name: "a pager",
        set: |project| {
            configure(project, "core.pager", "./evil");
            configure(project, "pager.log", "./evil");
        },
        calls: &[&["log"], &["diff"]],
    },
];

/// A commit that says that it is signed, so that whoever shows it wants to check.
fn signed_commit(project: &Path) {
    let tree = output(project, &["rev-parse", "HEAD^{tree}"]);
    let text = format!(
        "tree {tree}\nauthor n <e> 1700000000 +0000\ncommitter n <e> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\nsigned\n"
    );
    std::fs::write(project.join("object"), text).unwrap();
    let id = output(project, &["hash-object", "-t", "commit", "-w", "object"]);
    plain_git(project, &["update-ref", "HEAD", &id]);
}

fn output(project: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(words)
        .current_dir(project)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A submodule whose own settings name a program: a git of its own reads them.
fn submodule(project: &Path) {
    let inner = project.join("inner");
    std::fs::create_dir(&inner).unwrap();
    plain_git(&inner, &["init", "-q"]);
    std::fs::write(inner.join("b.txt"), "one\n").unwrap();
    plain_git(&inner, &["add", "b.txt"]);
    plain_git(&inner, &["commit", "-qm", "first"]);
    plain_git(project, &["submodule", "add", "./inner", "inner"]);
    plain_git(project, &["commit", "-qm", "inner"]);
    let evil = project.join("evil").display().to_string();
    plain_git(&inner, &["config", "core.fsmonitor", &evil]);
    plain_git(project, &["config", "submodule.inner.ignore", "none"]);
    std::fs::write(inner.join("b.txt"), "two\n").unwrap();
}

#[tokio::test]
async fn what_a_hostile_repository_names_is_not_run() {
    let mut wrong = Vec::new();
    for trap in TRAPS {
        let provider = Provider::start().await;
        let daemon = Daemon::start(&provider).await;
        repository(&daemon);
        let project = daemon.project();
        (trap.set)(&project);
        let mark = project.join("ran");
        let forget = || std::fs::remove_file(&mark).unwrap_or_default();
        // git as the user runs it falls into the trap, or this would show nothing.
        forget();
        for words in trap.calls {
            plain_git(&project, words);
            if trap.name == "a pager" {
                // Pagers run on terminals alone; what is to be seen is that ours is none.
                std::fs::write(&mark, "x").unwrap();
            }
        }
        if !mark.exists() {
            wrong.push(format!("{}: not even run by a plain git", trap.name));
        }
        forget();
        let mut client = daemon.connect().await;
        for words in trap.calls {
            let result = call(&provider, &mut client, words).await;
            if mark.exists() {
                wrong.push(format!("{}: {words:?}: {result}", trap.name));
            }
            forget();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// To a line of bash no option can be added: it only reads where the settings name no program.
#[tokio::test]
async fn a_line_of_bash_runs_unasked_where_no_settings_name_a_program() {
    let settings: [(&str, &str); 5] = [
        ("diff.external", "./evil"),
        ("diff.x.textconv", "./evil"),
        ("diff.x.command", "./evil"),
        ("filter.x.clean", "./evil"),
        ("include.path", "../more"),
    ];
    let provider = Provider::start().await;
    let more = json!({"approval": {"auto_approve_safe_commands": true}});
    let daemon = Daemon::with(&provider, more).await;
    repository(&daemon);
    daemon.file(".gitattributes", "*.txt diff=x filter=x\n");
    let project = daemon.project();
    let mut client = daemon.connect().await;
    let confined = client.seen[0]["payload"]["sandbox"]["mode"] == "full";
    let lines = ["git status", "git diff", "git log -p", "cd src; git show"];
    daemon.file("src/b.rs", "");
    for line in lines {
        for setting in std::iter::once(None).chain(settings.map(Some)) {
            if let Some((key, value)) = setting {
                configure(&project, key, value);
            }
            provider
                .then(Turn::call("bash", &json!({"command": line})))
                .then(Turn::text("done"));
            let before = client.all("chat:tool-confirm").len();
            client.say("go").await;
            if setting.is_some() {
                let confirm = client.until("chat:tool-confirm").await["payload"].clone();
                assert_eq!(confirm["rules"][0]["rule"], "git-settings", "{confirm}");
                client
                    .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
                    .await;
            }
            client.until("chat:stream-end").await;
            if setting.is_none() && confined {
                assert_eq!(client.all("chat:tool-confirm").len(), before, "{line}");
            }
            if let Some((key, _)) = setting {
                plain_git(&project, &["config", "--unset", key]);
            }
        }
    }
    assert!(!project.join("ran").exists());
}

/// Filters have names of their own and cannot be switched off: what may run one is asked for.
#[tokio::test]
async fn a_filter_of_the_repository_does_not_run_unasked() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    let mark = project.join("ran");
    daemon.file(".gitattributes", "*.txt filter=x\n");
    let mut client = daemon.connect().await;
    let confined = client.seen[0]["payload"]["sandbox"]["mode"] != "none";
    for setting in [
        None,
        Some("filter.x.process"),
        Some("filter.x.clean"),
        Some("include.path"),
    ] {
        if let Some(key) = setting {
            configure(
                &project,
                key,
                &format!("sh -c 'echo x > {}; cat'", mark.display()),
            );
        }
        daemon.file("a.txt", format!("changed {setting:?}\n"));
        for words in [&["status"][..], &["diff"]] {
            provider.then(git(words)).then(Turn::text("done"));
            let before = client.all("chat:tool-confirm").len();
            client.say("go").await;
            if setting.is_some() {
                let confirm = client.until("chat:tool-confirm").await["payload"].clone();
                let rules = confirm["rules"].to_string();
                assert!(!confined || rules.contains("git-filters"), "{confirm}");
                client
                    .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
                    .await;
            }
            client.until("chat:stream-end").await;
            if setting.is_none() && confined {
                assert_eq!(client.all("chat:tool-confirm").len(), before, "{words:?}");
            }
        }
        if let Some(key) = setting {
            plain_git(&project, &["config", "--unset", key]);
        }
    }
    assert!(!mark.exists());
}

/// Once they are approved they run, inside.
#[tokio::test]
async fn a_filter_of_the_repository_is_confined() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let project = daemon.project();
    let beside = project.parent().unwrap().join("beside");
    let filter = format!("sh -c 'echo x > {}; cat'", beside.display());
    configure(&project, "filter.x.clean", &filter);
    daemon.file(".gitattributes", "*.txt filter=x\n");
    daemon.file("a.txt", "changed\n");
    plain_git(&project, &["diff"]);
    assert!(beside.exists(), "not even run by a plain git");
    std::fs::remove_file(&beside).unwrap();
    daemon.file("a.txt", "changed again\n");
    let mut client = daemon.connect().await;
    let mode = client.seen[0]["payload"]["sandbox"]["mode"]
        .as_str()
        .unwrap()
        .to_owned();
    call(&provider, &mut client, &["status"]).await;
    call(&provider, &mut client, &["diff"]).await;
    assert!(!beside.exists(), "a filter wrote outside in mode {mode}");
}

#[tokio::test]
async fn without_a_sandbox_even_reading_is_asked_for() {
    let provider = Provider::start().await;
    let more = json!({"tools": {"bash": {"sandbox": "off"}}, "approval": {"auto_approve_safe_commands": true}});
    let daemon = Daemon::with(&provider, more).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    for turn in [
        git(&["status"]),
        Turn::call("bash", &json!({"command": "git status"})),
    ] {
        provider.then(turn).then(Turn::text("done"));
        client.say("go").await;
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        assert_eq!(confirm["danger"]["level"], "warning", "{confirm}");
        client
            .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
            .await;
        client.until("chat:stream-end").await;
    }
}

#[tokio::test]
async fn a_path_outside_ends_the_exchange() {
    for words in [
        &["diff", "--no-index", "/etc/passwd", "a.txt"][..],
        &["-C", "..", "status"],
        &["log", "--output=/tmp/outrigger-git-output"],
        &["show", "HEAD:.env"],
        &["log", "-p", "*.key"],
        &["log", "-L1,1:server.key"],
        &["log", "-L", "1,1:server.key"],
    ] {
        let provider = Provider::start().await;
        let daemon = Daemon::start(&provider).await;
        repository(&daemon);
        let mut client = daemon.connect().await;
        provider.then(git(words));
        client.say("go").await;
        client.until("chat:stream-end").await;
        assert_eq!(
            client.all("chat:error")[0]["code"],
            "sandbox_violation",
            "{words:?}"
        );
    }
    assert!(!Path::new("/tmp/outrigger-git-output").exists());
}

#[tokio::test]
async fn the_strictest_scope_grants_no_network() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    repository(&daemon);
    let mut client = daemon.connect().await;
    provider
        .then(Turn::call(
            "git",
            &json!({"args": ["status"], "network": true}),
        ))
        .then(Turn::text("done"));
    client
        .send(json!({"type": "chat:send", "content": "go", "toolPermissions": {}}))
        .await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
        .await;
    client.until("chat:stream-end").await;
}

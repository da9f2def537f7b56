//! Secrets of the project against the tools: through `bash` as a model calls it, and through the file tools.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// What no tool may show.
const SECRET: &str = "THE-SECRET-OF-THE-PROJECT";

async fn world(more: Value) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, more).await;
    for path in [
        ".env",
        ".docker/config.json",
        ".config/gcloud/token.db",
        ".kube/config",
        "sub/server.key",
    ] {
        daemon.file(path, SECRET);
    }
    daemon.file("plain.txt", "plain\n");
    let client = daemon.connect().await;
    (daemon, client, provider)
}

/// Whether the daemon's commands run in mode `full`, in which files are hidden from them.
fn is_full(client: &Client) -> bool {
    client.seen[0]["payload"]["sandbox"]["mode"] == "full"
}

/// Has the model run a line, which the user approves, and returns the result.
async fn run(provider: &Provider, client: &mut Client, line: &str) -> Value {
    call(provider, client, "bash", json!({ "command": line })).await
}

/// The same for any tool.
pub(crate) async fn call(
    provider: &Provider,
    client: &mut Client,
    tool: &str,
    input: Value,
) -> Value {
    provider
        .then(Turn::call(tool, &input))
        .then(Turn::text("done"));
    let before = client.all("chat:tool-result").len();
    client.say("go").await;
    loop {
        let frame = client.next().await;
        if frame["type"] == "chat:stream-end" {
            return client.all("chat:tool-result")[before].clone();
        }
        if frame["type"] == "chat:tool-confirm" {
            let answer = json!({"type": "chat:tool-approve", "toolId": frame["payload"]["toolId"], "approved": true});
            client.send(answer).await;
        }
    }
}

#[tokio::test]
async fn keys_for_tests_in_packages_are_no_secrets() {
    let (_daemon, mut client, provider) = world(json!({})).await;
    if !is_full(&client) {
        return;
    }
    for (line, expected) in [
        (
            "mkdir -p node_modules/tls lib/site-packages/certifi && echo public | tee node_modules/tls/server.key lib/site-packages/certifi/cacert.pem",
            "public",
        ),
        (
            "cat node_modules/tls/server.key lib/site-packages/certifi/cacert.pem",
            "public\npublic\n",
        ),
        ("rm -r node_modules lib && echo removed", "removed"),
    ] {
        let result = run(&provider, &mut client, line).await;
        let said = result["result"].as_str().unwrap();
        assert!(said.starts_with(expected), "{line}: {result}");
    }
}

#[tokio::test]
async fn a_secret_is_hidden_from_bash_wherever_it_is() {
    let (daemon, mut client, provider) = world(json!({})).await;
    if !is_full(&client) {
        return;
    }
    for line in [
        "cat .env; cat sub/server.key; cat .kube/config",
        "mv .docker dk; cat dk/config.json",
        "cat dk/config.json",
        "mv .config conf; cat conf/gcloud/*",
        "cat conf/gcloud/token.db; ls -a conf/gcloud",
        "mv .kube k; cp -r k k2; cat k2/*",
        "cat k/config",
        "ln .env hard.txt; cat hard.txt",
        "grep -r THE-SECRET . ; find . -type f -exec cat {} +",
        "chmod 755 .env sub; cat .env",
        "cp .env copy; cat copy",
        "ln -s .env link; cat link",
    ] {
        let result = run(&provider, &mut client, line).await;
        assert!(!result.to_string().contains(SECRET), "{line}: {result}");
    }
    // Links that others made, and what was there when the command started.
    std::fs::hard_link(
        daemon.project().join(".env"),
        daemon.project().join("theirs.txt"),
    )
    .unwrap();
    let result = run(&provider, &mut client, "cat theirs.txt plain.txt").await;
    assert!(!result.to_string().contains(SECRET), "{result}");
    assert!(
        result["result"].as_str().unwrap().contains("plain"),
        "{result}"
    );
    for path in ["theirs.txt", "dk/config.json", "conf/gcloud/token.db"] {
        provider
            .then(Turn::call("file_read", &json!({ "path": path })))
            .then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
        let errors = client.all("chat:error");
        assert_eq!(
            errors.last().unwrap()["code"],
            "sandbox_violation",
            "{path}"
        );
    }
}

#[tokio::test]
async fn depth_hides_no_secret_from_bash_less() {
    let (daemon, mut client, provider) = world(json!({})).await;
    if !is_full(&client) {
        return;
    }
    let deep = "d/".repeat(70) + ".env";
    daemon.file(&deep, SECRET);
    let result = run(&provider, &mut client, &format!("cat {deep}; echo end")).await;
    assert!(!result.to_string().contains(SECRET), "{result}");
    assert!(
        result["result"].as_str().unwrap().contains("end"),
        "{result}"
    );
}

#[tokio::test]
async fn a_key_in_two_pieces_or_in_colours_is_not_streamed() {
    let (_daemon, mut client, provider) = world(json!({})).await;
    // The key of the test's own provider.
    for line in [
        "printf test-key-; sleep 0.3; echo 0123456789",
        "printf 'test-key-\\033[1m0123456789\\n'",
        "printf test-key-0123456789",
    ] {
        run(&provider, &mut client, line).await;
    }
    let streamed: String = client
        .all("chat:tool-delta")
        .iter()
        .map(|delta| delta["chunk"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(streamed.matches("[redacted]").count(), 3, "{streamed}");
    assert!(!streamed.contains("0123456789"), "{streamed}");
}

#[tokio::test]
async fn a_link_that_leads_away_is_refused_before_anybody_is_asked() {
    for (tool, input) in [
        ("file_write", json!({"path": "out", "content": "x"})),
        ("file_write", json!({"path": "out/new", "content": "x"})),
        ("file_write", json!({"path": "denied", "content": "x"})),
        (
            "file_edit",
            json!({"path": "denied", "oldText": "a", "newText": "b"}),
        ),
        ("file_read", json!({"path": "out"})),
        ("file_read", json!({"path": "denied"})),
    ] {
        let (daemon, mut client, provider) = world(json!({})).await;
        let outside = daemon.project().parent().unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, daemon.project().join("out")).unwrap();
        std::os::unix::fs::symlink(".env", daemon.project().join("denied")).unwrap();
        provider
            .then(Turn::call(tool, &input))
            .then(Turn::text("done"));
        client.say("go").await;
        loop {
            let frame = client.next().await;
            assert_ne!(frame["type"], "chat:tool-confirm", "{tool} {input}");
            if frame["type"] == "chat:stream-end" {
                break;
            }
        }
        let errors = client.all("chat:error");
        assert_eq!(
            errors.last().unwrap()["code"],
            "sandbox_violation",
            "{tool} {input}"
        );
    }
}

#[tokio::test]
async fn hooks_in_the_work_tree_are_read_only_and_settings_of_others_are_reported() {
    let (daemon, mut client, provider) = world(json!({})).await;
    let project = daemon.project();
    git(&project, "init -q");
    git(&project, "config core.hooksPath tools/githooks");
    daemon.file("tools/githooks/pre-commit", "good\n");
    daemon.file(".husky/pre-commit", "good\n");
    let result = run(
        &provider,
        &mut client,
        "echo evil > tools/githooks/pre-commit; echo evil > tools/githooks/pre-push; echo evil > .husky/pre-commit; mkdir -p .husky/_; echo evil > .husky/_/h",
    )
    .await;
    let read = |path: &str| std::fs::read_to_string(project.join(path)).unwrap_or_default();
    assert_eq!(read("tools/githooks/pre-commit"), "good\n", "{result}");
    assert_eq!(read(".husky/pre-commit"), "good\n");
    assert_eq!(read("tools/githooks/pre-push") + &read(".husky/_/h"), "");
    assert!(
        result["result"].as_str().unwrap().contains(".husky"),
        "{result}"
    );
    for (line, name) in [
        ("mkdir .vscode; echo '{}' > .vscode/tasks.json", ".vscode"),
        (
            "mkdir -p .claude/x; echo '{}' > .claude/x/settings.json",
            ".claude",
        ),
        ("echo '{}' > .mcp.json", ".mcp.json"),
        ("echo 'echo hi' > .envrc", ".envrc"),
        ("echo more >> .envrc", ".envrc"),
    ] {
        let result = run(&provider, &mut client, line).await;
        let text = result["result"].as_str().unwrap();
        assert!(
            text.contains("warning") && text.contains(name),
            "{line} {result}"
        );
        assert_eq!(
            result["metadata"]["settingsChanged"],
            json!([name]),
            "{line} {result}"
        );
    }
    let calm = run(&provider, &mut client, "echo x > new.txt; cat .envrc").await;
    assert!(calm["metadata"]["settingsChanged"].is_null(), "{calm}");
    let is_logged = daemon
        .log()
        .iter()
        .any(|line| line.to_string().contains(".mcp.json"));
    assert!(is_logged);
}

/// git in the test's own hands.
fn git(folder: &std::path::Path, line: &str) -> String {
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("git -c user.name=n -c user.email=e@example.org {line}"),
        ])
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_tracked_secret_is_hidden_and_git_works_all_the_same() {
    let (daemon, mut client, provider) = world(json!({})).await;
    if !is_full(&client) {
        return;
    }
    let project = daemon.project();
    git(&project, "init -q");
    git(&project, "config user.name n");
    git(&project, "config user.email e@example.org");
    git(&project, "add sub/server.key plain.txt");
    git(&project, "commit -qm first");
    daemon.file("plain.txt", "changed\n");
    let words = json!({"args": ["status", "--porcelain", "-uno"]});
    let status = call(&provider, &mut client, "git", words).await;
    assert_eq!(status["result"], " M plain.txt\n", "{status}");
    let words = json!({"args": ["commit", "-qam", "second"]});
    let commit = call(&provider, &mut client, "git", words).await;
    assert_eq!(commit["metadata"]["exitCode"], 0, "{commit}");
    let cat = run(&provider, &mut client, "git status; cat sub/server.key").await;
    assert!(!cat.to_string().contains(SECRET), "{cat}");
    // A name in the index says nothing: this content is in no object of git's.
    let object = git(&project, "hash-object -w plain.txt");
    let line = format!(
        "git update-index --add --cacheinfo 100644,{},.env && git add .env",
        object.trim()
    );
    run(&provider, &mut client, &line).await;
    run(&provider, &mut client, "git add .env; git commit -am third").await;
    daemon.file("sub/server.key", format!("{SECRET} changed"));
    let words = json!({"args": ["add", "sub/server.key"]});
    call(&provider, &mut client, "git", words).await;
    assert!(!git(&project, "show :.env").contains(SECRET));
    assert!(!git(&project, "show :sub/server.key").contains("changed"));
}

/// Where nothing hides a secret from commands, one under another name is asked for like the name itself.
#[tokio::test]
async fn a_line_that_shows_a_secret_under_another_name_is_asked_for() {
    let more = json!({"tools": {"bash": {"sandbox": "off"}}, "approval": {"auto_approve_safe_commands": true}});
    let (daemon, mut client, provider) = world(more).await;
    let project = daemon.project();
    std::fs::hard_link(project.join(".env"), project.join("link.txt")).unwrap();
    run(&provider, &mut client, "mv sub/server.key renamed.txt").await;
    for (line, asks) in [
        ("cat plain.txt", false),
        ("cat .env", true),
        ("cat link.txt", true),
        ("cat /etc/hostname", true),
        ("cat ../plain.txt", true),
        ("head -n 1 < link.txt", true),
        ("cat renamed.txt", true),
        ("wc -l plain.txt renamed.txt", true),
        ("cat plain.txt", false),
    ] {
        let before = client.all("chat:tool-confirm").len();
        run(&provider, &mut client, line).await;
        let asked = client.all("chat:tool-confirm").len() > before;
        assert_eq!(asked, asks, "{line}");
    }
    let read = call(&provider, &mut client, "file_list", json!({})).await;
    assert!(
        read["result"].as_str().unwrap().contains("plain.txt"),
        "{read}"
    );
}

/// Helpers are forks of the daemon's first moment, and their commands see what started them.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn helpers_have_neither_the_arguments_nor_the_environment_of_the_daemon() {
    const NAME: &str = "outrigger __sandbox-exec";
    let (daemon, mut client, provider) = world(json!({})).await;
    let line = "tr '\\0' '\\n' </proc/1/cmdline; echo; tr '\\0' '\\n' </proc/1/environ; echo end";
    let result = run(&provider, &mut client, line).await;
    if is_full(&client) {
        let text = result["result"].as_str().unwrap();
        assert!(text.contains(NAME), "{text}");
        assert!(!text.contains("serve") && !text.contains("PATH="), "{text}");
    }
    let zygote = zygote_of(daemon.pid);
    let line = std::fs::read(format!("/proc/{zygote}/cmdline")).unwrap();
    assert_eq!(String::from_utf8_lossy(&line).trim_end_matches('\0'), NAME);
    // Nobody but root may look.
    if let Ok(environment) = std::fs::read(format!("/proc/{zygote}/environ")) {
        let rest = String::from_utf8_lossy(&environment);
        assert!(!rest.contains('='), "{rest}");
    }
}

/// Without the fork the program is executed, and again where somebody killed that.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_helpers_are_forks_of_is_replaced_and_taken_in_when_somebody_kills_it() {
    let (daemon, mut client, provider) = world(json!({})).await;
    for _ in 0..2 {
        let zygote = zygote_of(daemon.pid);
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-9", &zygote]).status().unwrap().success());
        let left = std::path::PathBuf::from(format!("/proc/{zygote}"));
        eventually("the end of what was killed", async || !left.exists()).await;
        // One helper of it may wait already.
        for _ in 0..2 {
            let result = run(&provider, &mut client, "echo well").await;
            assert_eq!(result["result"], "well\n", "{result}");
        }
    }
}

/// Returns the number of the process that helpers of a daemon are forks of.
#[cfg(target_os = "linux")]
fn zygote_of(pid: u32) -> String {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    // Each thread has children of its own.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let paths = threads.map(|it| it.unwrap().path().join("children"));
    let children: String = paths.map(|it| read(it.display().to_string())).collect();
    let mut children = children.split_whitespace();
    let zygote = children.find(|it| read(format!("/proc/{it}/cmdline")).contains("__sandbox-exec"));
    zygote.expect("a zygote").to_owned()
}

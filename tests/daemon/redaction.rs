//! What the model reads of output: what a terminal would show, less secrets, and nothing else less.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::mcp::{Fake, until_state, with_fake};
use crate::secrets::call;
use crate::support::{Client, Daemon, Provider};

fn text(result: &Value) -> &str {
    result["result"].as_str().unwrap()
}

/// What was streamed of one stream of output.
fn streamed(client: &Client) -> String {
    let deltas = client.all("chat:tool-delta");
    let chunks = deltas.iter().map(|delta| delta["chunk"].as_str().unwrap());
    chunks.collect()
}

#[tokio::test]
async fn tabs_reach_the_model_through_bash_git_and_mcp() {
    let (_fake, daemon, mut client, provider) = with_fake(vec![], &["tabs"], &json!({})).await;
    until_state(&mut client, "fake", "ready").await;
    daemon.file("Makefile", "a\nb\nc\nd\ne\n");
    for words in [
        vec!["init", "-q"],
        vec!["add", "."],
        vec![
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@example.org",
            "commit",
            "-qm",
            "first",
        ],
    ] {
        let status = Command::new("git")
            .args(words)
            .current_dir(daemon.project())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null())
            .status();
        assert!(status.unwrap().success());
    }
    daemon.file("Makefile", "all:\n\tcc x\n");
    for (tool, input, wanted) in [
        (
            "bash",
            json!({"command": "printf 'a\\tb\\n'; cat Makefile"}),
            "a\tb\nall:\n\tcc x\n",
        ),
        (
            "git",
            json!({"args": ["diff", "--numstat"]}),
            "2\t5\tMakefile\n",
        ),
        (
            "mcp__fake__echo",
            json!({"text": "x"}),
            "\nall:\n\tcc x\n100 %\n",
        ),
    ] {
        let result = call(&provider, &mut client, tool, input).await;
        assert!(text(&result).ends_with(wanted), "{tool}: {result}");
        let sent = provider.requests().pop().unwrap()["messages"].to_string();
        let written = serde_json::to_string(wanted).unwrap();
        assert!(sent.contains(written.trim_matches('"')), "{tool}: {sent}");
    }
}

#[tokio::test]
async fn a_progress_bar_costs_the_model_its_last_state() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let line = "for i in $(seq 1 3000); do printf '\\rfetch %4d/3000' $i; done; echo; echo end";
    let result = call(&provider, &mut client, "bash", json!({ "command": line })).await;
    assert_eq!(text(&result), "fetch 3000/3000\nend\n");
    assert_eq!(result["metadata"]["totalBytes"], 3_000 * 16 + 5);
}

#[tokio::test]
async fn a_flood_does_not_open_a_private_key() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let line = "yes x | head -c 200000; echo '-----BEGIN PRIVATE KEY-----'; \
                echo SECRETHALF; yes x | head -c 20000; echo SECRETHALF; \
                echo '-----END PRIVATE KEY-----'; yes y | head -c 10; echo after";
    let result = call(&provider, &mut client, "bash", json!({ "command": line })).await;
    assert!(!text(&result).contains("SECRETHALF"));
    assert!(
        text(&result).ends_with("[redacted]\ny\ny\ny\ny\ny\nafter\n"),
        "{result}"
    );
    assert_eq!(result["metadata"]["redacted"], 1);
    let streamed = streamed(&client);
    assert!(!streamed.contains("SECRETHALF") && streamed.contains("[redacted]"));
    let wanted = json!({"type": "tool:output", "toolId": result["toolId"], "offset": 190_000});
    let kept = client.ask(wanted).await["payload"]["text"].to_string();
    assert!(
        !kept.contains("SECRETHALF") && kept.contains("[redacted]"),
        "{kept}"
    );
}

#[tokio::test]
async fn ordinary_words_are_shown_and_secrets_stay_in_their_files() {
    const FILE: &str = "mode: production\nkey: hunter2-hunter2\nwords: my own words\nend\n";
    let (fake, provider) = (Fake::new(), Provider::start().await);
    let mut server = fake.config(&[]);
    server["env"] = json!({
        "NODE_ENV": "production",
        "API_TOKEN": "hunter2-hunter2",
        "PHRASE": {"value": "my own words", "secret": true},
    });
    let daemon = Daemon::with(&provider, json!({"mcpServers": {"fake": server}})).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "fake", "ready").await;
    daemon.file("config.yaml", FILE);
    let on_disk = || std::fs::read_to_string(daemon.project().join("config.yaml")).unwrap();

    let read = call(
        &provider,
        &mut client,
        "file_read",
        json!({"path": "config.yaml"}),
    )
    .await;
    let shown = "mode: production\nkey: [redacted]\nwords: [redacted]\nend\n";
    assert!(text(&read).starts_with(shown), "{read}");
    assert_eq!(read["metadata"]["redacted"], 2);
    let offered = provider.requests()[0]["tools"].to_string();
    assert!(!offered.contains("hunter2"), "{offered}");
    assert!(offered.contains("does echo with [redacted]"), "{offered}");

    for (tool, input, why) in [
        (
            "file_write",
            json!({"path": "config.yaml", "content": shown.replace("end", "fin")}),
            "in line 2",
        ),
        (
            "file_edit",
            json!({"path": "config.yaml", "oldText": "key: [redacted]", "newText": "key: x"}),
            "`oldText`",
        ),
        (
            "file_edit",
            json!({"path": "config.yaml", "oldText": "end", "newText": "other: [redacted]"}),
            "in line 4",
        ),
    ] {
        let refused = call(&provider, &mut client, tool, input).await;
        assert_eq!(refused["status"], "error", "{refused}");
        assert!(text(&refused).contains(why), "{refused}");
        assert!(text(&refused).contains("[redacted]"), "{refused}");
        assert_eq!(on_disk(), FILE);
    }
    let edit = json!({"path": "config.yaml", "oldText": "end", "newText": "fin"});
    let edited = call(&provider, &mut client, "file_edit", edit).await;
    assert_eq!(edited["status"], "success", "{edited}");
    assert_eq!(on_disk(), FILE.replace("end", "fin"));
    let new = json!({"path": "log.js", "content": "log(\"[redacted]\")\n"});
    let written = call(&provider, &mut client, "file_write", new).await;
    assert_eq!(written["status"], "success", "{written}");
    let own = std::fs::read_to_string(daemon.project().join("log.js")).unwrap();
    assert_eq!(own, "log(\"[redacted]\")\n");
}

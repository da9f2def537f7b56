//! Several users of one daemon: who is let in and as whom, and that nobody reaches what is another one's.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

mod attacks;
mod caps;
mod commands;
mod editors;
mod limits;
mod reach;
mod tokens;

/// A daemon with users, each of whom has a folder.
struct Users {
    daemon: Daemon,
    /// The key that tokens are signed with, and what was taken back.
    key: PathBuf,
    revoked: PathBuf,
    work: PathBuf,
    _folders: TempDir,
}

/// Runs the program; returns what it printed.
async fn outrigger(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_outrigger"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Users {
    async fn start(provider: &Provider, more: Value) -> Self {
        Self::start_with(provider, more, |_| Vec::new()).await
    }

    /// The same with variables of the environment, which are made for the folder that all is in.
    async fn start_with(
        provider: &Provider,
        more: Value,
        environment: impl FnOnce(&Path) -> Vec<(&'static str, PathBuf)>,
    ) -> Self {
        let folders = tempfile::tempdir().unwrap();
        let root = folders.path().canonicalize().unwrap();
        let work = root.join("work");
        for name in ["anna", "ben"] {
            std::fs::create_dir_all(work.join(name)).unwrap();
            std::fs::write(work.join(name).join("plan.txt"), format!("only for {name}")).unwrap();
        }
        let (key, keys, revoked) = (
            root.join("key"),
            root.join("keys.json"),
            root.join("revoked"),
        );
        std::fs::write(&keys, outrigger(&["token", "key", shown(&key)]).await).unwrap();
        std::fs::write(&revoked, "").unwrap();
        obey(provider);
        let folder = Daemon::folder(provider, configuration(&root, &more));
        let environment = environment(&root);
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, it)| (*name, shown(it)))
            .collect();
        let Ok(daemon) = Daemon::begin(folder, &environment).await else {
            panic!("the daemon is not ready");
        };
        Self {
            daemon,
            key,
            revoked,
            work,
            _folders: folders,
        }
    }

    /// Starts another daemon with the same users.
    async fn another(&self, provider: &Provider, more: Value) -> Daemon {
        let root = self.key.parent().unwrap();
        Daemon::with(provider, configuration(root, &more)).await
    }

    /// Makes a token as a person does; more arguments say more of it.
    async fn token(&self, name: &str, ttl: &str, more: &[&str]) -> String {
        let mut arguments = vec!["token", "create", "--key", shown(&self.key), "--sub", name];
        arguments.extend(["--ttl", ttl]);
        arguments.extend(more);
        if !more.contains(&"--iss") {
            arguments.extend(["--iss", "tests"]);
        }
        outrigger(&arguments).await
    }

    /// The token of a user who works in a folder of its own.
    async fn own_token(&self, name: &str) -> String {
        let folder = self.work.join(name);
        self.token(name, "1h", &["--root", shown(&folder)]).await
    }

    /// Connects a user in its own folder.
    async fn connect(&self, name: &str) -> Client {
        let token = self.own_token(name).await;
        let query = format!("?project={}", shown(&self.work.join(name)));
        let client = Client::reach_by(&self.daemon, &query, &token).await;
        client.expect("a user is let in")
    }
}

/// Returns the configuration of a daemon whose users are those of a folder.
fn configuration(root: &Path, more: &Value) -> Value {
    let jwt = json!({"keys": root.join("keys.json"), "issuer": "tests", "clock_skew": "0s", "revoked": root.join("revoked")});
    let mut config = json!({
        "auth": {"jwt": jwt},
        "project": {"allowed": [root.join("work/*")]},
        "approval": {"remember": "always"},
    });
    for (section, values) in more.as_object().unwrap() {
        match section.as_str() {
            "limits" => config["auth"]["limits"] = values.clone(),
            section => config[section] = values.clone(),
        }
    }
    config
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Has the model make the call that a user asks for, and say no more.
fn obey(provider: &Provider) {
    provider.by_rule(|last| {
        let content = &last["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str());
        match text.and_then(|text| text.split_once("call: ")) {
            Some((_, call)) if last["role"] == "user" => {
                // A task is told more below.
                let call = call.lines().next().unwrap_or_default();
                let call: Value = serde_json::from_str(call).unwrap();
                Turn::call(call["tool"].as_str().unwrap(), &call["input"])
            }
            _ => Turn::text("done"),
        }
    });
}

/// Has the model make a call, which the user approves for good, and waits for the end.
async fn run(client: &mut Client, tool: &str, input: &Value) -> Value {
    let call = json!({"tool": tool, "input": input});
    client
        .say(&format!("a needle that is hard to find; call: {call}"))
        .await;
    let asked = client
        .find(|it| it["type"] == "chat:tool-confirm" || it["type"] == "chat:stream-end")
        .await;
    if asked["type"] == "chat:tool-confirm" {
        client
            .send(json!({
                "type": "chat:tool-approve", "toolId": asked["payload"]["toolId"], "approved": true,
                "remember": "always",
            }))
            .await;
        client.until("chat:stream-end").await;
    }
    client.all("chat:tool-result").pop().unwrap_or_default()
}

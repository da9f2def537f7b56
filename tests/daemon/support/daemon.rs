//! A daemon of the test's own, in a project folder of its own.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::{Client, Provider};

/// A running daemon; killed when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    /// Kept open: its end ends the daemon.
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) port: u16,
    pub(crate) token: String,
    /// The daemon's own process, which `child` is unless another program started it.
    pub(crate) pid: u32,
    /// Where the console page is.
    pub(crate) console: Option<String>,
    /// What its ready line warns of.
    pub(crate) warnings: Value,
    folder: TempDir,
}

impl Daemon {
    /// Starts a daemon whose default provider is the scripted one.
    pub(crate) async fn start(provider: &Provider) -> Self {
        Self::with(provider, json!({})).await
    }

    /// Starts a daemon with more configuration, merged over the test's own.
    pub(crate) async fn with(provider: &Provider, more: Value) -> Self {
        Self::by(provider, more, |config| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
            command.args(["serve", "--config"]).arg(config);
            command
        })
        .await
    }

    /// Starts a daemon by a command of the test's own, which gets the configuration's path.
    pub(crate) async fn by(
        provider: &Provider,
        more: Value,
        command: impl FnOnce(&Path) -> Command,
    ) -> Self {
        let folder = Self::folder(provider, more);
        let command = command(&folder.path().join("config.json"));
        Self::launch(folder, command).await.expect("it is ready")
    }

    /// Makes the folder of a daemon, with its configuration.
    pub(crate) fn folder(provider: &Provider, more: Value) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let mut config = json!({
            "server": { "port": 0 },
            "project": { "root": project, "central": folder.path().join("central") },
            "store": { "path": folder.path().join("state/outrigger.db"), "sync": "normal" },
            "chat": { "provider": "test" },
            // A busy machine takes longer than what is short enough for a user.
            "approval": { "timeout": "10m" },
            "tools": { "timeout": "10m", "bash": { "timeout": "10m" } },
            "providers": { "test": {
                "kind": "openai", "wire": "chat", "base_url": provider.url(),
                "api_key": "test-key-0123456789", "model": "test-model", "max_retries": 0,
            } },
        });
        merge(&mut config, more);
        let file = folder.path().join("config.json");
        std::fs::write(&file, config.to_string()).unwrap();
        folder
    }

    /// Kills it as nothing it could prepare for, and starts it anew with all that it left.
    pub(crate) async fn after_kill(mut self) -> Self {
        self.kill().await;
        self.anew().await
    }

    /// Kills it as nothing it could prepare for.
    pub(crate) async fn kill(&mut self) {
        self.child.start_kill().unwrap();
        self.child.wait().await.unwrap();
    }

    /// Returns whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it in order, and starts it anew.
    pub(crate) async fn after_end(mut self) -> Self {
        drop(self.stdin.take());
        self.child.wait().await.unwrap();
        self.anew().await
    }

    /// Waits until it ends by itself; returns the folder with all that it left.
    pub(crate) async fn left(mut self) -> TempDir {
        self.child.wait().await.unwrap();
        self.folder
    }

    async fn anew(self) -> Self {
        let begun = Self::begin(self.folder, &[]).await;
        begun.expect("it is ready")
    }

    /// Starts a daemon in a folder that is there, with more in its environment. The folder comes back where the daemon
    /// ended before it was ready.
    pub(crate) async fn begin(
        folder: TempDir,
        environment: &[(&str, &str)],
    ) -> Result<Self, TempDir> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
        let file = folder.path().join("config.json");
        command.args(["serve", "--config"]).arg(file);
        command.envs(environment.iter().copied());
        Self::launch(folder, command).await
    }

    async fn launch(folder: TempDir, mut command: Command) -> Result<Self, TempDir> {
        let mut child = command
            .env_remove("RUST_LOG")
            // The tests' own, of which a daemon says that it does not read it.
            .env_remove("OUTRIGGER_RECORDINGS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match std::env::var_os("OUTRIGGER_TEST_LOG") {
                Some(_) => Stdio::inherit(),
                None => std::fs::File::create(folder.path().join("log"))
                    .unwrap()
                    .into(),
            })
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let line = BufReader::new(stdout).lines().next_line().await.unwrap();
        let Some(line) = line else {
            child.wait().await.unwrap();
            return Err(folder);
        };
        let ready: Value = serde_json::from_str(&line).unwrap();
        if ready["event"] != "ready" {
            // Beside its log, for whoever looks why.
            std::fs::write(folder.path().join("fatal"), &line).unwrap();
            child.wait().await.unwrap();
            return Err(folder);
        }
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            port: u16::try_from(ready["port"].as_u64().unwrap()).unwrap(),
            // It is not told where it was given.
            token: ready["token"].as_str().unwrap_or_default().to_owned(),
            pid: u32::try_from(ready["pid"].as_u64().unwrap()).unwrap(),
            console: ready["console"].as_str().map(str::to_owned),
            warnings: ready["warnings"].clone(),
            folder,
        })
    }

    /// Where its log is.
    pub(crate) fn log_file(&self) -> std::path::PathBuf {
        self.folder.path().join("log")
    }

    /// What it has logged so far, line by line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log_file()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Changes its configuration file.
    pub(crate) fn reconfigure(&self, change: impl FnOnce(&mut Value)) {
        let file = self.folder.path().join("config.json");
        let mut config = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        change(&mut config);
        std::fs::write(file, config.to_string()).unwrap();
    }

    /// Returns the file that sessions are kept in.
    pub(crate) fn store(&self) -> std::path::PathBuf {
        self.folder.path().join("state/outrigger.db")
    }

    /// The project's folder.
    pub(crate) fn project(&self) -> std::path::PathBuf {
        self.folder.path().join("project")
    }

    /// Puts a file into the project.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Connects a client, which has read its `session:ready`.
    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self, "").await
    }
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

//! What a conversation's commands find again: its home, caches of the user's, and further folders.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually, within};

/// A home of the user's, with a place for temporary files beside it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in [
            "home/.npm/_cacache",
            "home/.cargo/registry",
            "home/shared",
            "home/library",
            "temporary",
        ] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        fs::write(place.path().join("home/.npm/_cacache/package"), "right").unwrap();
        for folder in ["shared", "library"] {
            fs::write(
                place.path().join("home").join(folder).join(".env"),
                "KEY=of-the-user",
            )
            .unwrap();
            fs::write(place.path().join("home").join(folder).join("file"), folder).unwrap();
        }
        Self(place)
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    async fn daemon(&self, provider: &Provider, bash: Value) -> Daemon {
        let more = json!({"chat": {"trust_level": "autonomous"}, "tools": {"bash": bash}});
        Daemon::by(provider, more, |config| self.command(config)).await
    }

    fn command(&self, config: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command
            .args(["serve", "--config"])
            .arg(config)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("temporary"));
        command
    }

    fn pods(&self) -> usize {
        let entries = fs::read_dir(self.path("temporary")).unwrap().flatten();
        let is_pod = |name: &str| name.starts_with("outrigger-pod-");
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_pod))
            .count()
    }
}

/// Runs a line in a conversation; returns what the model reads.
async fn run(client: &mut Client, provider: &Provider, conversation: &str, line: &str) -> String {
    provider
        .then(Turn::call("bash", &json!({ "command": line })))
        .then(Turn::text("done"));
    client
        .send(json!({"type": "chat:send", "conversationId": conversation, "content": "go"}))
        .await;
    loop {
        let frame = client.next().await;
        match frame["type"].as_str() {
            // What names secrets is asked for at every trust level.
            Some("chat:tool-confirm") => {
                let id = &frame["payload"]["toolId"];
                let verdict = json!({"type": "chat:tool-approve", "toolId": id, "approved": true});
                client.send(verdict).await;
            }
            Some("chat:stream-end") => break,
            _ => {}
        }
    }
    let request = provider.requests().pop().unwrap();
    let results = request["messages"].as_array().unwrap().clone();
    let result = results
        .iter()
        .rev()
        .find(|message| message["role"] == "tool");
    result.unwrap()["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_home_lasts_as_long_as_its_conversation_and_is_nobody_elses() {
    let (home, provider) = (Home::new(), Provider::start().await);
    let daemon = home
        .daemon(&provider, json!({"caches": ["npm", "pip"]}))
        .await;
    let mut client = daemon.connect().await;
    let line = "cat ~/.npm/_cacache/package; echo wrong > ~/.npm/_cacache/package; echo a > ~/kept; echo b > /tmp/kept";
    assert_eq!(run(&mut client, &provider, "one", line).await, "right");
    let line = "cat ~/kept /tmp/kept ~/.npm/_cacache/package";
    assert_eq!(
        run(&mut client, &provider, "one", line).await,
        "a\nb\nwrong\n"
    );
    let line = "ls ~ /tmp; cat ~/.npm/_cacache/package";
    let other = run(&mut client, &provider, "two", line).await;
    assert!(
        !other.contains("kept") && other.ends_with("right"),
        "{other}"
    );
    // That of the first look at the machine may go a moment later.
    eventually("two homes", async || home.pods() == 2).await;
    client
        .ask(json!({"type": "chat:close", "conversationId": "one"}))
        .await;
    eventually("the home of the one is gone", async || home.pods() == 1).await;
    let package = home.path("home/.npm/_cacache/package");
    assert_eq!(fs::read_to_string(package).unwrap(), "right");
    let request = provider.requests().pop().unwrap().to_string();
    let named = "The user's caches are there: npm, cargo; what is added";
    assert!(request.contains(named), "{request}");
    let log = daemon.log();
    let missing = log
        .iter()
        .filter(|line| line.to_string().contains("there is nothing of pip"));
    assert_eq!(missing.count(), 1);
}

/// Somebody who has used Cargo has the folder that it downloads to, and nobody else.
#[tokio::test]
async fn what_cargo_and_go_download_to_can_be_added_to_unasked() {
    let (home, provider) = (Home::new(), Provider::start().await);
    fs::create_dir_all(home.path("home/go/pkg/sumdb")).unwrap();
    let daemon = home.daemon(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    let line = "echo new > ~/.cargo/registry/crate; echo new > ~/go/pkg/sumdb/latest; ls -A ~/.npm; cat ~/.cargo/registry/crate ~/go/pkg/sumdb/latest";
    let said = run(&mut client, &provider, "one", line).await;
    assert!(
        said.contains("No such file") && said.starts_with("new\nnew\n"),
        "{said}"
    );
    assert!(!home.path("home/.cargo/registry/crate").exists());
    let request = provider.requests().pop().unwrap().to_string();
    let named = "The user's caches are there: cargo, go; what is added";
    assert!(request.contains(named), "{request}");
}

/// A command has another home, in which Cargo does not find the settings.
#[tokio::test]
async fn commands_are_told_which_registries_the_user_set() {
    let (home, provider) = (Home::new(), Provider::start().await);
    let settings =
        "[registries]\nours = { index = \"sparse+https://me:word@crates.example/index/\" }\n";
    fs::write(home.path("home/.cargo/config.toml"), settings).unwrap();
    let line = "echo ${CARGO_REGISTRIES_OURS_INDEX-none}";
    for (hosts, expected) in [
        (json!(["cargo"]), "sparse+https://crates.example/index/\n"),
        (json!(["crates.example"]), "none\n"),
    ] {
        let daemon = home.daemon(&provider, json!({"hosts": hosts})).await;
        let mut client = daemon.connect().await;
        let said = run(&mut client, &provider, "one", line).await;
        assert_eq!(said, expected, "{hosts}");
    }
}

#[tokio::test]
async fn an_orderly_end_leaves_no_home() {
    let (home, provider) = (Home::new(), Provider::start().await);
    for way in ["end of stdin", "SIGTERM", "both"] {
        let mut daemon = home.daemon(&provider, json!({})).await;
        let mut client = daemon.connect().await;
        // Few files: the end waits some seconds, and a slow disk may need them for a thousand.
        let line = "mkdir -p ~/a/b; seq 20 | split -l 1 - ~/a/b/; echo kept";
        assert_eq!(run(&mut client, &provider, "one", line).await, "kept\n");
        provider
            .then(Turn::call(
                "bash",
                &json!({"command": "sleep 600", "background": true}),
            ))
            .then(Turn::text("done"));
        client.say("go").await;
        client.until("chat:stream-end").await;
        match way {
            "SIGTERM" => crate::lifecycle::signal(&daemon, "TERM"),
            "both" => {
                drop(daemon.stdin.take());
                crate::lifecycle::signal(&daemon, "TERM");
            }
            _ => drop(daemon.stdin.take()),
        }
        let status = daemon.child.wait().await.unwrap();
        assert_eq!((status.code(), home.pods()), (Some(0), 0), "{way}");
        let log = daemon.log();
        let hurried = log
            .iter()
            .any(|line| line.to_string().contains("a second signal"));
        assert!(!hurried, "{way}");
    }
}

#[tokio::test]
async fn a_signal_before_the_ready_line_ends_the_start_and_leaves_nothing() {
    let home = Home::new();
    fs::create_dir(home.path("project")).unwrap();
    // A database that takes the connection and says nothing: the daemon waits for it.
    let database = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u@{}/d", database.local_addr().unwrap());
    let config = home.path("config.json");
    let text = json!({
        "project": {"root": home.path("project")},
        "server": {"port": 0},
        "store": {"url": url},
    });
    fs::write(&config, text.to_string()).unwrap();
    let mut command = home.command(&config);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let daemon = command.kill_on_drop(true).spawn().unwrap();
    let _connection = within("a connection", database.accept(), String::new)
        .await
        .unwrap();
    crate::lifecycle::send(daemon.id().unwrap(), "TERM");
    let output = within("the end", daemon.wait_with_output(), String::new).await;
    let output = output.unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b""[..]));
    assert_eq!(fs::read_dir(home.path("temporary")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_cannot_be_used_is_on_the_ready_line() {
    let (home, provider) = (Home::new(), Provider::start().await);
    fs::write(home.path("sessions.db"), "no database, ".repeat(500)).unwrap();
    let more = json!({"store": {"path": home.path("sessions.db")}});
    let daemon = Daemon::by(&provider, more, |config| {
        let mut command = home.command(config);
        command.env("TMPDIR", home.path("missing"));
        command
    })
    .await;
    let warnings = daemon.warnings.to_string();
    for expected in ["was no database; it is", "sessions.db.", "set TMPDIR"] {
        assert!(warnings.contains(expected), "{warnings}");
    }
}

#[tokio::test]
async fn a_command_that_fills_the_home_is_ended_and_says_what_to_do() {
    let (home, provider) = (Home::new(), Provider::start().await);
    let daemon = home
        .daemon(&provider, json!({"limits": {"disk": "2MiB"}}))
        .await;
    let mut client = daemon.connect().await;
    let line = "head -c 8M /dev/zero > ~/big; sleep 600";
    let result = run(&mut client, &provider, "one", line).await;
    assert!(
        result.contains("[killed: the home, the temporary files"),
        "{result}"
    );
    assert!(
        result.contains("of 2 MiB at most") && result.contains("tools.bash.limits.disk"),
        "{result}"
    );
    let line = "rm ~/big; echo freed; head -c 1M /dev/zero > ~/small";
    assert_eq!(run(&mut client, &provider, "one", line).await, "freed\n");
}

#[tokio::test]
async fn further_folders_are_given_to_commands_without_their_secrets() {
    let (home, provider) = (Home::new(), Provider::start().await);
    let bash = json!({"read_write": ["~/shared"], "read_only": [home.path("home/library")]});
    let daemon = home.daemon(&provider, bash).await;
    let mut client = daemon.connect().await;
    let line = "cat ~/shared/file ~/library/file; echo new > ~/shared/new; echo no > ~/library/new; cat ~/shared/.env ~/library/.env; mv ~/shared/.env ~/shared/seen";
    let said = run(&mut client, &provider, "one", line).await;
    assert!(said.contains("sharedlibrary\n"), "{said}");
    assert!(
        said.contains("Read-only file system") && said.contains("cannot move"),
        "{said}"
    );
    // Their secrets are empty.
    assert!(!said.contains("of-the-user"), "{said}");
    assert_eq!(
        fs::read_to_string(home.path("home/shared/new")).unwrap(),
        "new\n"
    );
    assert!(!home.path("home/library/new").exists());
    // A folder that is another one by now is given to nobody.
    fs::rename(home.path("home/shared"), home.path("home/old")).unwrap();
    fs::create_dir(home.path("home/shared")).unwrap();
    let said = run(&mut client, &provider, "one", "ls ~/shared").await;
    assert!(
        said.contains("no longer the folder that was opened"),
        "{said}"
    );
}

#[tokio::test]
async fn temporary_files_are_kept_out_of_the_project() {
    let home = Home::new();
    fs::create_dir_all(home.path("project/tmp")).unwrap();
    let config = home.path("config.json");
    let text = json!({"project": {"root": home.path("project")}, "server": {"port": 0}});
    fs::write(&config, text.to_string()).unwrap();
    let mut command = home.command(&config);
    command.env("TMPDIR", home.path("project/tmp"));
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("set TMPDIR"),
        "{said}"
    );
}

#[tokio::test]
async fn a_folder_that_is_not_for_commands_ends_the_start() {
    let home = Home::new();
    fs::create_dir(home.path("home/.ssh")).unwrap();
    fs::create_dir(home.path("project")).unwrap();
    for (bash, key, named) in [
        (
            json!({"read_write": ["~/.ssh"]}),
            "tools.bash.read_write",
            "~/.ssh",
        ),
        (
            json!({"read_only": ["/etc/ssl"]}),
            "tools.bash.read_only",
            "/etc/ssl",
        ),
        (
            json!({"read_write": [home.path("temporary")]}),
            "tools.bash.read_write",
            "temporary files of conversations",
        ),
        (
            json!({"caches": ["npm", "carg"]}),
            "tools.bash.caches",
            "npm, cargo, go",
        ),
    ] {
        let config = home.path("config.json");
        let text = json!({"project": {"root": home.path("project")}, "tools": {"bash": bash}});
        fs::write(&config, text.to_string()).unwrap();
        let mut command = home.command(&config);
        let output = command.stdin(Stdio::null()).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(key) && said.contains(named), "{key}: {said}");
    }
}

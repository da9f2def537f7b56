//! What the git tool reaches over the network.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{perform, plain_git, repository};
use crate::support::own_network::{self, OTHER_MACHINE, OwnNetwork};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// The port of git's own protocol, which commands may reach.
const PORT: u16 = 9418;

/// A server of repositories.
pub(super) struct Server {
    process: Child,
    pub(super) url: String,
}

impl Server {
    pub(super) async fn start(folder: &Path, address: &str) -> Self {
        let process = Command::new("git")
            .args(["daemon", "--export-all", "--reuseaddr"])
            .arg("--enable=receive-pack")
            .arg(format!("--port={PORT}"))
            .arg(format!("--listen={address}"))
            .arg(format!("--base-path={}", folder.display()))
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = async || TcpStream::connect((address, PORT)).await.is_ok();
        eventually("a server of repositories", answers).await;
        Self {
            process,
            url: format!("git://{address}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn list(url: &str) -> Turn {
    let words = ["ls-remote", url];
    Turn::call("git", &json!({ "args": words, "network": true }))
}

/// Enters a network of the test's own, and returns a folder with a repository `work.git` that has a branch.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn enter(test: &str) -> Option<tempfile::TempDir> {
    match own_network::enter(test) {
        OwnNetwork::Entered => {}
        OwnNetwork::Done => return None,
        OwnNetwork::None => {
            println!("*** SKIPPED: {test}: no namespaces here ***");
            return None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    plain_git(folder.path(), &["init", "-q", "--bare", "work.git"]);
    plain_git(folder.path(), &["clone", "-q", "work.git", "clone"]);
    let clone = folder.path().join("clone");
    plain_git(&clone, &["commit", "-q", "--allow-empty", "-m", "first"]);
    plain_git(&clone, &["push", "-q", "origin", "HEAD:main"]);
    Some(folder)
}

async fn start(provider: &Provider, bash: Value) -> (Daemon, Client) {
    let daemon = Daemon::with(provider, json!({"tools": {"bash": bash}})).await;
    repository(&daemon);
    let client = daemon.connect().await;
    assert_eq!(client.seen[0]["payload"]["sandbox"]["mode"], "full");
    (daemon, client)
}

/// Asserts that git is shown the branch of the server's repository.
async fn reaches(provider: &Provider, client: &mut Client, server: &Server) {
    let url = format!("{}/work.git", server.url);
    let result = perform(provider, client, list(&url)).await;
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("refs/heads/main"), "{result}");
}

#[tokio::test]
async fn with_the_network_git_reaches_other_machines_and_nothing_on_this_one() {
    let name = "git::remotes::with_the_network_git_reaches_other_machines_and_nothing_on_this_one";
    let Some(folder) = enter(name) else { return };
    let server = Server::start(folder.path(), OTHER_MACHINE).await;
    let provider = Provider::start().await;
    let (_daemon, mut client) = start(&provider, json!({})).await;
    reaches(&provider, &mut client, &server).await;

    let here = TcpListener::bind(("127.0.0.1", PORT)).unwrap();
    here.set_nonblocking(true).unwrap();
    for url in [
        "git://127.0.0.1/x.git",
        "git://localhost/x.git",
        "git://169.254.169.254/x.git",
    ] {
        let result = perform(&provider, &mut client, list(url)).await;
        assert_eq!(result["status"], "error", "{url} {result}");
        let reached = here.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(reached, Err(std::io::ErrorKind::WouldBlock), "{url}");
    }
}

#[tokio::test]
async fn hosts_are_asked_for_one_by_one_for_git_too() {
    let name = "git::remotes::hosts_are_asked_for_one_by_one_for_git_too";
    let Some(folder) = enter(name) else { return };
    let server = Server::start(folder.path(), OTHER_MACHINE).await;
    let provider = Provider::start().await;
    let hosts = json!({"hosts": ["listed.invalid", OTHER_MACHINE]});
    let (_daemon, mut client) = start(&provider, hosts).await;
    reaches(&provider, &mut client, &server).await;
    let asked: Vec<Value> = client.all("chat:tool-confirm");
    assert!(asked.iter().all(|it| it["host"].is_null()), "{asked:?}");

    provider
        .then(list("git://one.invalid/x.git"))
        .then(Turn::text("done"));
    client.say("go").await;
    loop {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        let verdict = json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "host": confirm["host"], "approved": true});
        client.send(verdict).await;
        if confirm["host"] == "one.invalid" {
            break;
        }
    }
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results.last().unwrap()["status"], "error", "{results:?}");
}

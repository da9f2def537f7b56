//! The daemon as the first process of a container, with nothing above it.

use std::fs;
use std::io;
use std::process::Command as Blocking;

use serde_json::json;
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, eventually};

/// What nobody finds in the daemon's memory of its start.
const CANARY: &str = "canary-0123456789";

/// Starts the daemon as process 1 of a namespace; `None` where this machine allows none.
async fn first_process(provider: &Provider) -> Option<Daemon> {
    let options = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    if !Blocking::new("unshare")
        .args(options)
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        return None;
    }
    let more = json!({"tools": {"bash": {"sandbox": "off"}}});
    let daemon = Daemon::by(provider, more, |config| {
        let mut command = Command::new("unshare");
        command
            .args(options)
            .arg(env!("CARGO_BIN_EXE_outrigger"))
            .args(["serve", "--config"])
            .arg(config)
            .env("SOME_API_KEY", CANARY)
            .env("SOME_PLACE", CANARY.to_uppercase());
        command
    })
    .await;
    assert_eq!(daemon.pid, 1);
    Some(daemon)
}

/// The children of a process and its threads, by the host's numbers, with the state of each.
fn children(process: u32) -> Vec<(u32, char)> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let list = |thread: io::Result<fs::DirEntry>| {
        fs::read_to_string(thread.ok()?.path().join("children")).ok()
    };
    let numbers: String = threads.into_iter().flatten().filter_map(list).collect();
    let state = |number: &str| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        Some((number.parse().ok()?, rest.chars().next()?))
    };
    numbers.split_whitespace().filter_map(state).collect()
}

#[tokio::test]
async fn it_takes_in_orphans_forgets_its_environment_and_ends_by_a_signal() {
    let provider = Provider::start().await;
    let Some(mut daemon) = first_process(&provider).await else {
        eprintln!("skipped: no namespaces here");
        return;
    };
    let above = daemon.child.id().unwrap();
    let own = children(above)[0].0;
    // Root may look; an ordinary user may not, since the process is not dumpable.
    if let Ok(environment) = fs::read(format!("/proc/{own}/environ")) {
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(environment.contains("SOME_API_KEY="), "{environment}");
        assert!(
            environment.contains(&CANARY.to_uppercase()),
            "{environment}"
        );
        assert!(!environment.contains(CANARY), "{environment}");
    }
    let fifo = daemon.project().join("end");
    assert!(
        Blocking::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    // It ends neither the daemon, its supervisor nor that one's parent, and has a process that ends when the test says so.
    let line = "for them in 1 -1 $PPID $(ps -o ppid= -p $PPID); do ! kill -9 $them || echo $them > sent; done; \
                setsid sh -c 'echo > left; read x < end' & until [ -s left ]; do :; done; sleep 600";
    let mut client = daemon.connect().await;
    provider
        .then(Turn::call("bash", &json!({"command": line})))
        .then(Turn::text("done"));
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": true}))
        .await;
    client.until("chat:tool-start").await;
    let left = daemon.project().join("left");
    eventually("a process of the command", async || left.exists()).await;
    assert!(!daemon.project().join("sent").exists());
    let zygote = children(own)[0].0;
    let orphans = || {
        let mut others = children(own);
        others.retain(|it| it.0 != zygote);
        others
    };
    // From outside, where nothing keeps a supervisor alive.
    let mut helpers = children(zygote).into_iter();
    let supervisor = helpers.find(|it| !children(it.0).is_empty()).unwrap().0;
    let killed = Blocking::new("kill")
        .args(["-9", &supervisor.to_string()])
        .status();
    assert!(killed.unwrap().success());
    client.until("chat:stream-end").await;
    eventually("an orphan of the daemon", async || !orphans().is_empty()).await;
    tokio::task::spawn_blocking(move || fs::write(fifo, "x\n").unwrap())
        .await
        .unwrap();
    eventually("no child of the daemon", async || orphans().is_empty()).await;
    let ended = Blocking::new("kill").arg(own.to_string()).status();
    assert!(ended.unwrap().success());
    let status = daemon.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0));
}

//! What outlives a loss of power: with `store.sync = "full"` the disk has what a frame says before the frame leaves. Seen
//! by `strace`, which the daemon is started under.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// What the daemon had the system do, in order.
#[derive(Debug, PartialEq)]
enum Step {
    /// The disk has the log of changes.
    Synced,
    /// A frame of this type leaves.
    Left(&'static str),
}

/// Answered once all that was written before is safe: what is synced after it is of what comes next.
const MARK: &str = "session:list-result";

const FRAMES: [&str; 3] = [MARK, "chat:send-result", "chat:stream-end"];

#[tokio::test]
async fn the_disk_has_what_a_frame_says_before_it_leaves() {
    if Command::new("strace").arg("-V").output().await.is_err() {
        println!("*** SKIPPED: what the disk has before a frame leaves: there is no strace ***");
        return;
    }
    for (sync, expected) in [("full", true), ("normal", false)] {
        let provider = Provider::start().await;
        let text = json!({"content": "two"});
        let (turn, mut pause) = Turn::paused(&[text], &[], "stop");
        provider.then(Turn::text("one")).then(turn);
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let more = json!({"store": {"sync": sync}});
        let mut daemon = Daemon::by(&provider, more, |config| {
            let mut command = Command::new("strace");
            let calls = "trace=fsync,fdatasync,write,writev,sendto,sendmsg";
            // A slow disk: what does not wait for it leaves before it is done.
            let slow = "inject=fsync,fdatasync:delay_enter=20000";
            command.args(["-f", "-y", "-s", "65536", "-e", calls, "-e", slow, "-o"]);
            command.arg(&trace).arg(env!("CARGO_BIN_EXE_outrigger"));
            command.args(["serve", "--config"]).arg(config);
            command
        })
        .await;
        let mut client = daemon.connect().await;
        let list = json!({"type": "session:list"});
        // The first makes the session.
        client.say("first").await;
        client.until("chat:stream-end").await;
        client.ask(list.clone()).await;
        client
            .send(json!({"type": "chat:send", "id": "second", "content": "second"}))
            .await;
        client.until("chat:send-result").await;
        pause.reached().await;
        client.ask(list).await;
        pause.go_on();
        client.until("chat:stream-end").await;
        drop(client);
        drop(daemon.stdin.take());
        daemon.child.wait().await.unwrap();
        let steps = steps(&trace);
        for frame in &FRAMES[1..] {
            let last = |steps: &[Step], frame: &'static str| {
                let found = steps.iter().rposition(|step| *step == Step::Left(frame));
                found.unwrap_or_else(|| panic!("{frame} did not leave: {steps:?}"))
            };
            let at = last(&steps, frame);
            let since = last(&steps[..at], MARK);
            let is_synced = steps[since..at].contains(&Step::Synced);
            assert_eq!(is_synced, expected, "{sync} {frame}: {steps:?}");
        }
    }
}

/// Reads a trace. What a thread is busy with while another one acts is in two lines: it is over at the second, but for what
/// leaves, which does so at the first.
fn steps(trace: &Path) -> Vec<Step> {
    let text = std::fs::read(trace).unwrap();
    let text = String::from_utf8_lossy(&text);
    let (mut steps, mut begun) = (Vec::new(), HashMap::new());
    for line in text.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(call) = call.strip_suffix("<unfinished ...>") {
            steps.extend(left(call));
            begun.insert(thread, call);
        } else if let Some((_, rest)) = call.split_once(" resumed>") {
            let whole = [begun.remove(thread).unwrap_or_default(), rest].concat();
            steps.extend(done(&whole));
        } else {
            steps.extend(left(call));
            steps.extend(done(call));
        }
    }
    steps
}

/// The file of a call, as `-y` writes it: `write(7<socket:[123]>, …`.
fn file(call: &str) -> Option<(&str, &str)> {
    let (name, rest) = call.split_once('(')?;
    let file = rest.split_once('<')?.1.split_once('>')?.0;
    Some((name, file))
}

fn left(call: &str) -> Option<Step> {
    let (name, _) = file(call)?;
    let is_sent = name.starts_with("write") || name.starts_with("send");
    let is_frame = |kind: &&&str| call.contains(&format!("\\\"type\\\":\\\"{kind}\\\""));
    let kind = FRAMES.iter().find(is_frame).filter(|_| is_sent)?;
    Some(Step::Left(kind))
}

fn done(call: &str) -> Option<Step> {
    let (name, file) = file(call)?;
    let is_log = matches!(name, "fsync" | "fdatasync") && file.ends_with("-wal");
    is_log.then_some(Step::Synced)
}

//! What outlives a loss of power: with `store.sync = "full"` the disk has what a frame says before the frame leaves. Seen
//! by `strace`, which the daemon is started under.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// What the daemon asked the system for, in order.
#[derive(Debug, PartialEq)]
enum Step {
    /// Bytes came from a socket.
    Came(String),
    /// The disk has the log of changes.
    Synced,
    /// A frame of this type leaves by a socket.
    Left(String, String),
}

const FRAMES: [&str; 2] = ["chat:send-result", "chat:stream-end"];

#[tokio::test]
async fn the_disk_has_what_a_frame_says_before_it_leaves() {
    if Command::new("strace").arg("-V").output().await.is_err() {
        println!("*** SKIPPED: what the disk has before a frame leaves: there is no strace ***");
        return;
    }
    for (sync, expected) in [("full", true), ("normal", false)] {
        let provider = Provider::start().await;
        provider.then(Turn::text("one")).then(Turn::text("two"));
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let more = json!({"store": {"sync": sync}});
        let mut daemon = Daemon::by(&provider, more, |config| {
            let mut command = Command::new("strace");
            let calls =
                "trace=fsync,fdatasync,read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg";
            command.args(["-f", "-y", "-s", "65536", "-e", calls, "-o"]);
            command.arg(&trace).arg(env!("CARGO_BIN_EXE_outrigger"));
            command.args(["serve", "--config"]).arg(config);
            command
        })
        .await;
        let mut client = daemon.connect().await;
        // The first makes the session and the file.
        for text in ["first", "second"] {
            let send = json!({"type": "chat:send", "id": text, "content": text});
            client.send(send).await;
            client.until("chat:stream-end").await;
        }
        drop(client);
        drop(daemon.stdin.take());
        daemon.child.wait().await.unwrap();
        let steps = steps(&trace);
        for frame in FRAMES {
            let is_it = |step: &Step| matches!(step, Step::Left(kind, _) if kind == frame);
            let at = steps.iter().rposition(is_it).unwrap();
            let Step::Left(_, socket) = &steps[at] else {
                continue;
            };
            // Since the frame before it left, and what it answers came.
            let begins = |step: &Step| match step {
                Step::Came(from) => frame == FRAMES[0] && from == socket,
                Step::Left(kind, _) => frame == FRAMES[1] && kind == FRAMES[0],
                Step::Synced => false,
            };
            let from = steps[..at].iter().rposition(begins).unwrap();
            let is_synced = steps[from..at].contains(&Step::Synced);
            assert_eq!(
                is_synced,
                expected,
                "{sync} {frame}: {:?}",
                &steps[from..=at]
            );
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
    let (name, file) = file(call)?;
    let is_sent = name.starts_with("write") || name.starts_with("send");
    let is_frame = |kind: &&&str| call.contains(&format!("\\\"{kind}\\\""));
    let kind = FRAMES.iter().find(is_frame).filter(|_| is_sent)?;
    Some(Step::Left((*kind).to_owned(), file.to_owned()))
}

fn done(call: &str) -> Option<Step> {
    let (name, file) = file(call)?;
    let came = call.rsplit_once(" = ")?.1.parse::<u64>().unwrap_or(0) > 0;
    match name {
        "fsync" | "fdatasync" => file.ends_with("-wal").then_some(Step::Synced),
        "read" | "readv" | "recvfrom" | "recvmsg" if came && file.contains("socket") => {
            Some(Step::Came(file.to_owned()))
        }
        _ => None,
    }
}

//! The daemon is killed again and again, after any frame. Judged from outside: what was acknowledged is there once, every
//! call has a result, and nothing ran twice.

use std::path::Path;

use serde_json::json;

use super::judge::{Known, check_file, is_idle, judge, say};
use super::places::{self, Place};
use super::resume;
use crate::support::provider::Turn;
use crate::support::{Daemon, Dice, Provider};

/// How often it is killed; more where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does.
fn rounds() -> usize {
    match std::env::var_os("OUTRIGGER_FULL_TESTS") {
        Some(_) => 1_000,
        None => 12,
    }
}

/// The most frames that are read before it is killed.
const MOST_FRAMES: u64 = 40;

#[tokio::test]
async fn nothing_is_lost_or_doubled_however_often_the_daemon_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    killed_again_and_again(&folder.path().join("outrigger.db"), rounds()).await;
}

/// The other sort of file system, whichever the temporary folder is on; in the full size of the tests both are tried.
#[tokio::test]
async fn nor_on_the_other_sort_of_file_system() {
    let temporary = std::env::temp_dir();
    let other = match places::is_in_memory(&temporary) {
        true => Place::Disk,
        false => Place::Memory,
    };
    if std::env::var_os("OUTRIGGER_FULL_TESTS").is_none() {
        println!("*** SKIPPED: kills on {other}: OUTRIGGER_FULL_TESTS is not set ***");
        return;
    }
    match other.folder() {
        Some(folder) => {
            killed_again_and_again(&folder.path().join("outrigger.db"), rounds()).await;
        }
        None => println!("*** SKIPPED: kills on {other}: there is none here ***"),
    }
}

async fn killed_again_and_again(store: &Path, rounds: usize) {
    let provider = Provider::start().await;
    provider.by_rule(|last| match last["role"].as_str() {
        Some("user") => {
            let said = last["content"].as_str().unwrap_or("many");
            let line = format!("echo '{said}' >> marks; echo 'marked {said}'");
            Turn::call("bash", &json!({"command": line}))
        }
        _ => Turn::text("done"),
    });
    let more = json!({"chat": {"trust_level": "autonomous"}, "store": {"path": store}});
    let mut daemon = Daemon::with(&provider, more).await;
    let dice = Dice::new();
    let (mut known, mut next) = (Known::default(), 0);
    let mut client = daemon.connect().await;
    let session = client.session();
    // The first is kept for sure: a session in which nothing was acknowledged may be gone.
    client.send(say(next, "queue")).await;
    known.sent.insert(next, false);
    while !known.sent[&0] {
        client.next().await;
        known.catch_up(&client);
    }
    for _ in 0..rounds {
        for _ in 0..=dice.roll(3) {
            next += 1;
            let how = if dice.roll(2) == 0 { "queue" } else { "steer" };
            known.sent.insert(next, false);
            client.send(say(next, how)).await;
        }
        for _ in 0..=dice.roll(MOST_FRAMES) {
            let frame = client.next().await;
            // Nothing else may come by itself.
            if frame["type"] == "chat:stream-end" {
                break;
            }
        }
        known.catch_up(&client);
        daemon = daemon.after_kill().await;
        client = resume(&daemon, &session, known.last_seq).await;
        known.taken = 0;
    }
    // What waits goes on with the next send; at the end nothing waits and nothing runs.
    next += 1;
    known.sent.insert(next, false);
    client.send(say(next, "queue")).await;
    client.until("chat:send-result").await;
    while !is_idle(&mut client).await {
        client.next().await;
    }
    known.catch_up(&client);
    assert!(known.sent[&next]);
    judge(&mut client, &daemon, &known).await;
    check_file(store);
}

//! Has the process die as by `kill -9`, right before or right after one of its commits: what a test then finds is what
//! a client may find.
//!
//! Only where debug assertions are on: what is shipped has none of it (`.ci/dist` looks).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rustix::process::{Signal, getpid, kill_process};

/// When: `before N` or `after N`, counted from 1 over the life of the process.
const VARIABLE: &str = "STORE_DIES_AT_COMMIT";

/// How long it takes to die, in which what is said too early gets out: a commit may take as long.
const LINGER: Duration = Duration::from_millis(50);

/// Commits so far that had something to write, those that go on included.
static COMMITS: AtomicU64 = AtomicU64::new(0);

/// Watches the commits of a connection, where the variable says when to die.
pub(super) fn watch(connection: &mut Connection) -> rusqlite::Result<()> {
    let Ok(when) = std::env::var(VARIABLE) else {
        return Ok(());
    };
    let (side, number) = when.split_once(' ').unwrap_or_default();
    let (is_before, number) = (side == "before", number.parse::<u64>().unwrap_or(0));
    connection.commit_hook(Some(move || {
        let commits = COMMITS.fetch_add(1, Ordering::Relaxed) + 1;
        if is_before && commits >= number {
            die();
        }
        false
    }))?;
    // Called once the commit is in the log of changes, before anybody is told.
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, _| {
        if !is_before && COMMITS.load(Ordering::Relaxed) >= number {
            die();
        }
        Ok(())
    }))
}

fn die() {
    std::thread::sleep(LINGER);
    kill_process(getpid(), Signal::KILL).ok();
}

//! The end of a daemon: what runs is ended, what was said is kept, and then the clients know.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::lifecycle::Ending;
use crate::sandbox;
use crate::session::Daemon;
use crate::store::{self, AnyStore};

/// How many sessions are named whose last words are lost.
const NAMED: usize = 20;

/// How a daemon ended that was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "whoever started it is to know whether anything is lost"]
pub enum Outcome {
    /// All that was said is kept, or was not to be.
    Kept,
    /// What was said last in some session is lost; the log says in which.
    NotKept,
}

/// Waits until an operator asks for the end, and then until nothing runs or the operator's time is over.
pub(super) async fn drained(daemon: &Daemon) {
    let within = daemon.drain.asked().await;
    let exchanges = &daemon.services.exchanges;
    tracing::info!(?within, left = exchanges.len(), "draining");
    daemon.draining.cancel();
    exchanges.close();
    if tokio::time::timeout(within, exchanges.wait())
        .await
        .is_err()
    {
        tracing::info!(left = exchanges.len(), "the operator's time is over");
    }
}

/// Lets exchanges end by themselves for a while, then ends them, and closes the sockets only when
/// their clients can know.
pub(super) async fn drain(
    daemon: &Daemon,
    why: Ending,
    stdin_closed: &CancellationToken,
    close: &CancellationToken,
    moments: Duration,
) {
    let grace = daemon.services.config().shutdown_grace;
    let exchanges = &daemon.services.exchanges;
    exchanges.close();
    if why.leaves_time() {
        tokio::select! {
            () = exchanges.wait() => {}
            () = tokio::time::sleep(grace) => {}
            // Nobody waits for an answer any more.
            () = stdin_closed.cancelled() => {}
        }
        let left = exchanges.len();
        if left > 0 {
            tracing::info!(left, "exchanges are cancelled");
        }
    }
    sandbox::output::hurry();
    daemon.stop.cancel();
    end_soon(exchanges, "exchanges", moments).await;
    // Nobody calls them any more.
    daemon.mcp.shut_down();
    // What clients are told last is held back until it is in the store.
    settle(daemon.store.as_ref().map(|store| store.flush()), moments).await;
    close.cancel();
    daemon.tasks.close();
    end_soon(&daemon.tasks, "tasks", moments).await;
    // All that the sessions had to say is said.
    settle(daemon.store.as_ref().map(|store| store.close()), moments).await;
    // Theirs were the last.
    let removed = daemon.pods_removed.clone();
    if tokio::time::timeout(moments, removed).await.is_err() {
        tracing::info!("files of conversations are left; the next start removes them");
    }
}

/// Waits until the store has all that was said so far.
async fn settle(work: Option<BoxFuture<'static, Result<(), store::Error>>>, moments: Duration) {
    let Some(work) = work else {
        return;
    };
    match tokio::time::timeout(moments, work).await {
        Ok(Ok(())) => {}
        Ok(Err(problem)) => tracing::error!("not all that was said is in the store: {problem}"),
        Err(_) => tracing::error!("not all that was said is in the store: it does not answer"),
    }
}

/// Returns whether all that was said is kept, and says of which sessions the last words are lost.
pub(super) fn outcome(store: &AnyStore) -> Outcome {
    let lost = store.not_kept();
    if lost.is_empty() {
        return Outcome::Kept;
    }
    let named = lost.iter().take(NAMED).map(String::as_str);
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match lost.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    tracing::error!(
        code = "not_kept",
        "what was said last is lost in the sessions {named}{more}: {} did not take it; what it had before is kept",
        store.shown()
    );
    Outcome::NotKept
}

async fn end_soon(tasks: &TaskTracker, what: &str, moments: Duration) {
    let ended = tokio::time::timeout(moments, tasks.wait()).await;
    if ended.is_err() {
        tracing::warn!(left = tasks.len(), "{what} did not end in time");
    }
}

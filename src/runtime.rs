//! Helpers around the async runtime: work that takes long, deadlines that may be absent, and ends of streams.

mod stopwatch;
mod tail;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use stopwatch::Stopwatch;
pub(crate) use tail::Tail;

/// From this size on, in bytes, reading a text blocks the thread in place: at 10 to 40 ns a byte it would hold up other
/// tasks for milliseconds.
const LARGE: usize = 256 * 1024;

/// Reads `text` by `work`. While a large one is read, the thread's other tasks run on another thread.
pub fn block_in_place_if_large<T>(text: &str, work: impl FnOnce(&str) -> T) -> T {
    match text.len() {
        LARGE.. => block_in_place(|| work(text)),
        _ => work(text),
    }
}

/// Does work that blocks. The thread's other tasks run on another thread meanwhile, where the runtime has several.
pub fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let has_others = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    match has_others {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// Waits until the deadline; for ever where there is none.
pub async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits until one of these is cancelled; for ever where there is none.
pub(crate) async fn any_cancelled(tokens: Vec<CancellationToken>) {
    let waits = tokens.iter().map(|token| Box::pin(token.cancelled()));
    match tokens.is_empty() {
        true => std::future::pending().await,
        false => drop(futures::future::select_all(waits).await),
    }
}

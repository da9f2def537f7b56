//! Waits with an end: what never comes is a failure with a name.

use std::future::Future;
use std::time::Duration;

/// How long something that must happen soon may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How often a condition is looked at that nobody announces.
const INTERVAL: Duration = Duration::from_millis(2);

/// Waits for a future; fails with what `seen` returns where it does not end in time.
pub(crate) async fn within<T>(
    what: &str,
    future: impl Future<Output = T>,
    seen: impl FnOnce() -> String,
) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} did not come within {PATIENCE:?}; {}", seen()),
    }
}

/// Waits until the condition holds, for what can only be looked at: files, processes, figures.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let holds = async {
        let mut interval = tokio::time::interval(INTERVAL);
        while !condition().await {
            interval.tick().await;
        }
    };
    within(what, holds, String::new).await;
}

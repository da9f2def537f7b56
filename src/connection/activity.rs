//! How long nothing has come from a client.
//!
//! Counted in what its connection read, not in messages: a large frame may take minutes to come over a
//! slow line, and no pong fits inside it.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// How long a client may be silent, pongs included.
const SILENCE: Duration = Duration::from_secs(45);

/// When something came last, noted by whoever reads the connection.
#[derive(Debug)]
pub struct LastActivity {
    began: Instant,
    /// Milliseconds from there.
    last: AtomicU64,
}

impl Default for LastActivity {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            last: AtomicU64::new(0),
        }
    }
}

impl LastActivity {
    /// Notes that something came.
    pub fn note(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Waits for what is to come; `None` where the client is silent for too long.
    pub(super) async fn unless_silent<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        let mut coming = pin!(coming);
        loop {
            let deadline = self.last() + SILENCE;
            match timeout_at(deadline, &mut coming).await {
                Ok(come) => return Some(come),
                Err(_) if self.last() + SILENCE <= Instant::now() => return None,
                // Bytes came, and no whole message.
                Err(_) => {}
            }
        }
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_may_take_its_time_as_long_as_some_of_it_comes() {
        let activity = LastActivity::default();
        let upload = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(40)).await;
                activity.note();
            }
            "whole"
        };
        assert_eq!(activity.unless_silent(upload).await, Some("whole"));
        let began = Instant::now();
        let nothing = activity.unless_silent(std::future::pending::<()>()).await;
        assert_eq!((nothing, began.elapsed()), (None, SILENCE));
    }
}

//! How long a client has shown no sign of life.
//!
//! Counted in what its connection read, not in messages: a large frame may take minutes to come over a
//! slow line, and no pong fits inside it.

use std::pin::pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// How long a client may be silent, pongs included.
const SILENCE: Duration = Duration::from_secs(45);

/// When there was a sign last, noted by whoever reads and writes the connection.
#[derive(Debug)]
pub struct LastActivity(Mutex<Instant>);

impl Default for LastActivity {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl LastActivity {
    /// Notes a sign of life.
    pub fn note(&self) {
        *self.0.lock() = Instant::now();
    }

    #[cfg(test)]
    pub(crate) fn last(&self) -> Instant {
        *self.0.lock()
    }

    /// Waits for what is to come; `None` where the client is silent for too long.
    pub(crate) async fn unless_silent<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        let mut coming = pin!(coming);
        loop {
            let deadline = *self.0.lock() + SILENCE;
            match timeout_at(deadline, &mut coming).await {
                Ok(come) => return Some(come),
                Err(_) if *self.0.lock() + SILENCE <= Instant::now() => return None,
                // Bytes came, and no whole message.
                Err(_) => {}
            }
        }
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

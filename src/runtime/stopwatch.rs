//! A time limit that stands still while the user is asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use parking_lot::Mutex;

/// A limit beyond this is none; clocks do not reach as far as a client's number may.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A limit that can be paused; several pauses may overlap.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    state: Mutex<State>,
    resumed: Notify,
    /// Those that stand still with it.
    around: Vec<Arc<Self>>,
}

#[derive(Debug)]
struct State {
    deadline: Instant,
    paused: Option<(u32, Instant)>,
}

/// Time stands still while this lives.
#[derive(Debug)]
pub(crate) struct Pause<'a> {
    watch: &'a Stopwatch,
    _around: Vec<Self>,
}

impl Stopwatch {
    pub(crate) fn start(limit: Duration) -> Self {
        Self::within(limit, Vec::new())
    }

    /// Starts one within others: while it is paused, they are.
    pub(crate) fn within(limit: Duration, around: Vec<Arc<Self>>) -> Self {
        Self {
            state: Mutex::new(State {
                deadline: Instant::now() + limit.min(FAR),
                paused: None,
            }),
            resumed: Notify::new(),
            around,
        }
    }

    pub(crate) fn pause(&self) -> Pause<'_> {
        let mut state = self.state.lock();
        state.paused = match state.paused {
            Some((count, since)) => Some((count + 1, since)),
            None => Some((1, Instant::now())),
        };
        Pause {
            watch: self,
            _around: self.around.iter().map(|watch| watch.pause()).collect(),
        }
    }

    pub(crate) async fn expired(&self) {
        loop {
            let (deadline, paused) = {
                let state = self.state.lock();
                (state.deadline, state.paused.is_some())
            };
            if paused {
                self.resumed.notified().await;
            } else if Instant::now() >= deadline {
                return;
            } else {
                tokio::time::sleep_until(deadline).await;
            }
        }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut state = self.watch.state.lock();
        match state.paused {
            Some((1, since)) => {
                state.deadline += since.elapsed();
                state.paused = None;
            }
            Some((count, since)) => state.paused = Some((count - 1, since)),
            None => {}
        }
        drop(state);
        self.watch.resumed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_do_not_count() {
        let begin = Instant::now();
        let watch = Stopwatch::start(Duration::from_secs(10));
        let ask = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            let first = watch.pause();
            let second = watch.pause();
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(first);
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(second);
        };
        tokio::join!(ask, watch.expired());
        assert_eq!(begin.elapsed().as_secs(), 210);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_within_pauses_what_is_around_it() {
        let begin = Instant::now();
        let outer = Arc::new(Stopwatch::start(Duration::from_secs(10)));
        let ask = async {
            let inner = Stopwatch::within(Duration::from_secs(5), vec![Arc::clone(&outer)]);
            tokio::time::sleep(Duration::from_secs(4)).await;
            let pause = inner.pause();
            tokio::time::sleep(Duration::from_secs(100)).await;
            drop(pause);
            inner.expired().await;
            assert_eq!(begin.elapsed().as_secs(), 105);
        };
        tokio::join!(ask, outer.expired());
        assert_eq!(begin.elapsed().as_secs(), 110);
    }
}

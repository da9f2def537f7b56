//! What was read of the web lately: pages, `robots.txt` of sites, answers of search engines. Bounded in number, age and size.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Most bytes of all that is kept in one cache.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Values by their names; the oldest goes first.
pub(super) struct Cache<T> {
    most: usize,
    time_to_live: Duration,
    /// Held for a look, never across an await.
    kept: Mutex<VecDeque<Kept<T>>>,
}

struct Kept<T> {
    name: String,
    since: Instant,
    bytes: usize,
    value: Arc<T>,
}

impl<T> Cache<T> {
    pub(super) fn new(most: usize, time_to_live: Duration) -> Self {
        Self {
            most,
            time_to_live,
            kept: Mutex::default(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<T>> {
        let mut kept = self.kept.lock();
        self.age(&mut kept);
        let found = kept.iter().find(|it| it.name == name)?;
        Some(Arc::clone(&found.value))
    }

    /// Keeps a value of so many bytes; one that is too large for the cache is not kept.
    pub(super) fn put(&self, name: &str, value: &Arc<T>, bytes: usize) {
        let mut kept = self.kept.lock();
        self.age(&mut kept);
        kept.retain(|it| it.name != name);
        if bytes > MAX_BYTES || self.time_to_live.is_zero() {
            return;
        }
        let mut all: usize = kept.iter().map(|it| it.bytes).sum();
        while kept.len() >= self.most || all + bytes > MAX_BYTES {
            let Some(oldest) = kept.pop_front() else {
                break;
            };
            all -= oldest.bytes;
        }
        kept.push_back(Kept {
            name: name.to_owned(),
            since: Instant::now(),
            bytes,
            value: Arc::clone(value),
        });
    }

    fn age(&self, kept: &mut VecDeque<Kept<T>>) {
        kept.retain(|it| it.since.elapsed() < self.time_to_live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes_first() {
        let cache = Cache::new(2, Duration::from_secs(10));
        let put = |name: &str, bytes| cache.put(name, &Arc::new(()), bytes);
        let has = |name: &str| cache.get(name).is_some();
        put("a", 1);
        put("b", 1);
        put("a", 1);
        put("c", 1);
        assert_eq!((has("a"), has("b"), has("c")), (true, false, true));
        put("d", MAX_BYTES);
        assert_eq!((has("a"), has("c"), has("d")), (false, false, true));
        put("e", MAX_BYTES + 1);
        assert_eq!((has("d"), has("e")), (true, false));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!has("d"));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_where_nothing_lives() {
        let cache = Cache::new(2, Duration::ZERO);
        cache.put("a", &Arc::new(()), 1);
        assert!(cache.get("a").is_none());
    }
}

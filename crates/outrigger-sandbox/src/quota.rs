//! What the folders of a pod may hold together: a command that makes them hold more is ended.
//!
//! Counting costs a look at every file. So while a command runs, the free space of the file system is looked at, and files
//! are counted where it fell by more than what is left; and where that takes next to nothing, or was not done for
//! some seconds: others may have freed space meanwhile.
//! A file that is open and has no name any more is not counted.

#[cfg(target_os = "linux")]
mod count;

/// The folders of a pod hold more than they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overfull {
    /// What they hold; `None` where that are too many files, or too deep ones, to be counted.
    pub bytes: Option<u64>,
    /// What they may hold.
    pub limit: u64,
    /// Whether the command was ended for it. Otherwise it ended by itself.
    pub is_killed: bool,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{Quota, Watch};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use parking_lot::Mutex;
    use tokio::time::sleep;

    use super::{Overfull, count};

    /// How often the free space is looked at.
    const EVERY: Duration = Duration::from_secs(1);

    /// The same where the folders are too full: a short command should not get far.
    const EVERY_WHILE_OVER: Duration = Duration::from_millis(100);

    /// How long a count holds, in times of what it took: a hundredth of the time is for counting.
    const SHARE: u32 = 100;

    /// How long it holds at most: others may have made room on the disk, and hidden by that what a command wrote. A tenth of
    /// the time may be for counting then, and no more.
    const MOST: Duration = Duration::from_secs(10);
    const LEAST_SHARE: u32 = 10;

    /// How long it holds at least where the folders are too full, in times of what it took.
    const SHARE_WHILE_OVER: u32 = 4;

    #[derive(Debug)]
    pub(crate) struct Quota {
        /// The folder with all of them, and the lock that says that somebody needs it.
        top: File,
        limit: u64,
        /// Locked while files are counted, by threads that may wait.
        state: Mutex<State>,
        /// The commands that run, by a number that grows.
        running: Mutex<BTreeSet<u64>>,
        next: AtomicU64,
        /// What there was at the last look.
        size: AtomicU64,
    }

    #[derive(Debug, Clone, Copy)]
    struct State {
        count: Count,
        when: Instant,
        took: Duration,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Count {
        /// `None` where not all can be counted.
        bytes: Option<u64>,
        /// Free bytes of the file system then.
        free: u64,
    }

    impl Count {
        /// Returns what is compared. More than any limit where not all can be counted, and then the more, the less is free.
        fn size(self) -> u64 {
            self.bytes.unwrap_or(u64::MAX - self.free)
        }
    }

    impl State {
        fn is_due(&self, free: u64, limit: u64, age: Duration) -> bool {
            let Count { free: before, .. } = self.count;
            let is_moved = match limit.checked_sub(self.count.size()) {
                Some(left) => before.saturating_sub(free) > left,
                None => free != before && age >= self.took * SHARE_WHILE_OVER,
            };
            is_moved || age >= (self.took * SHARE).min(MOST.max(self.took * LEAST_SHARE))
        }
    }

    impl Quota {
        /// Begins with an empty folder. Does file I/O.
        pub(crate) fn new(top: File, limit: u64) -> io::Result<Self> {
            let state = State {
                count: Count {
                    bytes: Some(0),
                    free: free(&top)?,
                },
                when: Instant::now(),
                took: Duration::ZERO,
            };
            Ok(Self {
                top,
                limit,
                state: Mutex::new(state),
                running: Mutex::default(),
                next: AtomicU64::default(),
                size: AtomicU64::default(),
            })
        }

        /// Returns how many bytes there are, no more than there may be: counted anew unless that was done a moment ago. Blocks.
        pub(crate) fn held(&self) -> u64 {
            let is_due = |state: &State, _| state.when.elapsed() >= state.took * SHARE_WHILE_OVER;
            self.counted(is_due).size().min(self.limit)
        }

        /// Returns how much there is, counted anew where it may be more by now. Blocks.
        fn look(&self) -> Count {
            self.counted(|state, free| state.is_due(free, self.limit, state.when.elapsed()))
        }

        /// Returns how much there is, counted anew where `is_due` says so of the last count and what is free now.
        fn counted(&self, is_due: impl Fn(&State, u64) -> bool) -> Count {
            let mut state = self.state.lock();
            // What cannot be looked at now is looked at the next time.
            if let Ok(free) = free(&self.top)
                && is_due(&state, free)
            {
                let when = Instant::now();
                let bytes = count::bytes(&self.top, count::Bounds::default());
                let count = Count { bytes, free };
                *state = State {
                    count,
                    when,
                    took: when.elapsed(),
                };
            }
            self.size.store(state.count.size(), Ordering::Relaxed);
            state.count
        }
    }

    fn free(top: &File) -> io::Result<u64> {
        let system = rustix::fs::fstatvfs(top)?;
        Ok(system.f_bfree.saturating_mul(system.f_frsize))
    }

    /// A command that runs in a pod.
    #[derive(Debug)]
    pub(crate) struct Watch {
        quota: Arc<Quota>,
        number: u64,
        /// The least there was since it began.
        least: u64,
    }

    impl Watch {
        pub(crate) fn new(quota: Arc<Quota>) -> Self {
            let number = quota.next.fetch_add(1, Ordering::Relaxed);
            quota.running.lock().insert(number);
            Self {
                least: quota.size.load(Ordering::Relaxed),
                quota,
                number,
            }
        }

        /// Returns once the command has to end: there is more than there may be, and it became more while this one ran. One
        /// that makes room goes on. Of several the last that began ends first, since nobody can tell which one it is.
        pub(crate) async fn exceeded(&mut self) -> Overfull {
            // Not only what there is by now: it may have written already.
            self.least = self.least.min(self.look().await.size());
            loop {
                sleep(match self.least > self.quota.limit {
                    true => EVERY_WHILE_OVER,
                    false => EVERY,
                })
                .await;
                let now = self.look().await;
                match self.grown_to(now) {
                    Some(overfull) if self.is_last() => {
                        return Overfull {
                            is_killed: true,
                            ..overfull
                        };
                    }
                    Some(_) => self.least = now.size(),
                    None => self.least = self.least.min(now.size()),
                }
            }
        }

        /// Says whether there is too much now that it has ended by itself, and became more while it ran.
        pub(crate) async fn at_its_end(&self) -> Option<Overfull> {
            let now = self.look().await;
            self.grown_to(now)
        }

        fn grown_to(&self, now: Count) -> Option<Overfull> {
            let is_more = now.size() > self.quota.limit && now.size() > self.least;
            is_more.then_some(Overfull {
                bytes: now.bytes,
                limit: self.quota.limit,
                is_killed: false,
            })
        }

        fn is_last(&self) -> bool {
            self.quota.running.lock().last() == Some(&self.number)
        }

        async fn look(&self) -> Count {
            let quota = Arc::clone(&self.quota);
            let before = Count {
                bytes: Some(self.least),
                free: 0,
            };
            let looked = tokio::task::spawn_blocking(move || quota.look());
            looked.await.unwrap_or(before)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.quota.running.lock().remove(&self.number);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn files_are_counted_where_there_may_be_too_much() {
            const LIMIT: u64 = 1_000;
            // The last count took a second; seconds since then.
            for (bytes, before, free, age, expected) in [
                (Some(0), 5_000, 5_000, 9, false),
                (Some(0), 5_000, 4_000, 9, false),
                (Some(0), 5_000, 3_999, 0, true),
                (Some(0), 5_000, 9_000, 9, false),
                (Some(900), 5_000, 4_900, 9, false),
                (Some(900), 5_000, 4_899, 0, true),
                (Some(1_000), 5_000, 5_000, 9, false),
                (Some(1_000), 5_000, 4_999, 0, true),
                // Others may have made room.
                (Some(0), 5_000, 5_000, 10, true),
                // Too full: whatever changes may have made it more, or less. Not all the time is for counting.
                (Some(1_001), 5_000, 5_000, 9, false),
                (Some(1_001), 5_000, 4_999, 3, false),
                (Some(1_001), 5_000, 4_999, 4, true),
                (Some(1_001), 5_000, 5_001, 4, true),
                (None, 5_000, 5_000, 9, false),
                (None, 5_000, 4_999, 4, true),
            ] {
                let state = State {
                    count: Count {
                        bytes,
                        free: before,
                    },
                    when: Instant::now(),
                    took: Duration::from_secs(1),
                };
                let is_due = state.is_due(free, LIMIT, Duration::from_secs(age));
                assert_eq!(is_due, expected, "{bytes:?} {before} {free} {age}");
            }
        }

        #[test]
        fn what_cannot_be_counted_is_more_than_any_limit_and_grows_as_space_goes() {
            let count = |bytes, free| Count { bytes, free }.size();
            assert!(count(None, 5_000) > count(Some(1 << 60), 5_000));
            assert!(count(None, 4_999) > count(None, 5_000));
        }
    }
}

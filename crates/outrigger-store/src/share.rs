//! How many bytes each user keeps: counted in the store now and then, and between that added up.
//!
//! A count looks at a row of all that a user has. So it is made where the sum may have reached what somebody asks about,
//! where something was removed since, and where it is old; of one user one at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Mutex as Turns;

use crate::queue::bytes_of;
use crate::{Change, Done, Error, User};

/// How long a count holds: other processes that have the same database may have written since.
const FRESH: Duration = Duration::from_secs(60);

/// How long a count holds where there is too much and nothing was written or removed here since, in times of what it took.
const PART: u32 = 10;

/// The most users of whom a count is remembered; of one more, all are counted anew.
const MAX_USERS: usize = 10_000;

/// What is known of all users.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<HashMap<User, Arc<Share>>>);

/// What is known of a user.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Bytes that were given to be written since the process began.
    given: AtomicU64,
    /// How often something was written of which it is not known how many bytes it is, or was removed.
    turned: AtomicU64,
    counted: Turns<Option<Counted>>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    bytes: u64,
    /// What was given and turned before.
    given: u64,
    turned: u64,
    when: Instant,
    took: Duration,
}

impl Shares {
    /// Returns what is known of a user.
    pub(crate) fn of(&self, user: &User) -> Arc<Share> {
        let mut users = self.0.lock();
        if let Some(known) = users.get(user) {
            return Arc::clone(known);
        }
        if users.len() >= MAX_USERS {
            users.clear();
        }
        Arc::clone(users.entry(user.clone()).or_default())
    }

    fn known(&self, user: &User) -> Option<Arc<Share>> {
        self.0.lock().get(user).map(Arc::clone)
    }

    /// Notes that a user has more or less by what nobody counted.
    pub(crate) fn turn(&self, user: &User) {
        if let Some(share) = self.known(user) {
            share.turn();
        }
    }

    /// Adds changes of a user that are given to be written; returns what is to be called when they are. Of a user whom nobody
    /// asks about there is nothing to add to.
    pub(crate) fn note(&self, user: &User, changes: &[Change], done: Done) -> Done {
        let Some(share) = self.known(user) else {
            return done;
        };
        share.given.fetch_add(
            u64::try_from(bytes_of(changes)).unwrap_or(u64::MAX),
            Ordering::AcqRel,
        );
        if !changes.iter().any(turns) {
            return done;
        }
        Box::new(move |result| {
            share.turn();
            done(result);
        })
    }
}

impl Share {
    /// Notes that there is more or less by what nobody counted.
    fn turn(&self) {
        self.turned.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how many bytes the user keeps, or a few more. `count` counts them; it is asked where they may be `most` or
    /// more.
    pub(crate) async fn kept(
        &self,
        most: u64,
        count: impl Future<Output = Result<u64, Error>>,
    ) -> Result<u64, Error> {
        let mut counted = self.counted.lock().await;
        if let Some(bytes) = counted.as_ref().and_then(|it| self.since(it, most)) {
            return Ok(bytes);
        }
        // Before the count: what is written meanwhile may be in it or not.
        let (given, turned) = (
            self.given.load(Ordering::Acquire),
            self.turned.load(Ordering::Acquire),
        );
        let when = Instant::now();
        let bytes = count.await?;
        *counted = Some(Counted {
            bytes,
            given,
            turned,
            when,
            took: when.elapsed(),
        });
        Ok(bytes)
    }

    /// Returns how many there are where a count still holds.
    fn since(&self, counted: &Counted, most: u64) -> Option<u64> {
        if self.turned.load(Ordering::Acquire) != counted.turned {
            return None;
        }
        let added = self
            .given
            .load(Ordering::Acquire)
            .saturating_sub(counted.given);
        let bytes = counted.bytes.saturating_add(added);
        let holds = match (bytes < most, added) {
            (true, _) => FRESH,
            (false, 0) => counted.took.saturating_mul(PART),
            // What was added may be less by what is packed, and what there was before.
            (false, _) => return None,
        };
        (counted.when.elapsed() < holds).then_some(bytes)
    }
}

/// Returns whether a change removes something, or writes what others have.
fn turns(change: &Change) -> bool {
    matches!(
        change,
        Change::Delete | Change::Forget { .. } | Change::Truncate { .. } | Change::Fork { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: &str = "anna";

    async fn kept(share: &Share, most: u64, there_are: u64) -> u64 {
        share.kept(most, async { Ok(there_are) }).await.unwrap()
    }

    fn give(shares: &Shares, change: Change) {
        let done = Box::new(|_| {});
        shares.note(&User::new(ANNA), &[change], done)(Ok(()));
    }

    #[tokio::test]
    async fn a_count_holds_until_there_may_be_too_much_or_something_is_removed() {
        let shares = Shares::default();
        let share = shares.of(&User::new(ANNA));
        assert_eq!(kept(&share, 1_000, 10).await, 10);
        // It is not counted again.
        assert_eq!(kept(&share, 1_000, 20).await, 10);
        give(&shares, Change::Settings(String::new()));
        let added = kept(&share, 1_000, 20).await;
        assert!((11..1_000).contains(&added), "{added}");
        let ben = User::new("ben");
        shares.note(&ben, &[Change::Delete], Box::new(|_| {}))(Ok(()));
        assert!(shares.known(&ben).is_none(), "nobody asked about him");
        for removes in [
            Change::Delete,
            Change::Forget {
                conversation: "a".to_owned(),
            },
        ] {
            give(&shares, removes);
            assert_eq!(kept(&share, 1_000, 30).await, 30);
            assert_eq!(kept(&share, 1_000, 40).await, 30);
            // Another one gives another number.
            share.turn();
            assert_eq!(kept(&share, 1_000, 5).await, 5);
        }
        // What could not be counted is counted the next time.
        share.turn();
        let failed = async { Err(Error::Closed) };
        assert_eq!(share.kept(1_000, failed).await, Err(Error::Closed));
        assert_eq!(kept(&share, 1_000, 7).await, 7);
    }

    #[test]
    fn a_count_that_took_long_is_not_made_again_at_once() {
        let share = Share::default();
        let of = |bytes, took: u64, ago: u64| Counted {
            bytes,
            given: 0,
            turned: 0,
            when: Instant::now()
                .checked_sub(Duration::from_secs(ago))
                .unwrap(),
            took: Duration::from_secs(took),
        };
        for (bytes, took, ago, expected) in [
            (9, 1, 0, Some(9)),
            (9, 1, 30, Some(9)),
            (9, 1, 61, None),
            (10, 1, 5, Some(10)),
            (10, 1, 11, None),
            (10, 0, 0, None),
        ] {
            let found = share.since(&of(bytes, took, ago), 10);
            assert_eq!(found, expected, "{bytes} {took} {ago}");
        }
        share.given.store(1, Ordering::Release);
        assert_eq!(share.since(&of(9, 1, 0), 11), Some(10));
        assert_eq!(share.since(&of(9, 1, 0), 10), None);
    }
}

//! How much a user does at once, in a minute and on the disk, and whether that is more than the operator lets each have.
//!
//! What the user does at other daemons of the same database counts, too, as far as it is known here: `told` says it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use outrigger_store::User;
use outrigger_store::postgres::Activity;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::sandbox::Pod;

const MINUTE: Duration = Duration::from_secs(60);

/// How often daemons of one database tell each other what users do.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// What each user does: as long as one of its sessions is there, and a minute after what it sent.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    users: Mutex<HashMap<User, Arc<Quota>>>,
    /// The version of what was told other daemons last.
    version: AtomicU64,
}

impl Quotas {
    /// Returns that of a user.
    pub(crate) fn of(&self, user: &User) -> Arc<Quota> {
        let mut users = self.users.lock();
        retain(&mut users);
        Arc::clone(users.entry(user.clone()).or_default())
    }

    /// Returns those of all who have sessions, are about to, or had one in the last minute.
    pub(crate) fn present(&self) -> Vec<(User, Arc<Quota>)> {
        let mut users = self.users.lock();
        retain(&mut users);
        let present = users.iter();
        present
            .map(|(user, quota)| (user.clone(), Arc::clone(quota)))
            .collect()
    }

    /// Returns the version of what other daemons are told next. It is taken before it is looked what that is: so a higher
    /// version knows all that those before it know.
    pub(crate) fn next_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Takes away who has nothing here any more: as many are left as have sessions, or sent something in the last minute.
fn retain(users: &mut HashMap<User, Arc<Quota>>) {
    users.retain(|_, quota| Arc::strong_count(quota) > 1 || quota.activity().sends > 0);
}

/// Hooks of one user that are asked at once, of those of the whole daemon; further ones wait.
const HOOKS: usize = 3;

/// Requests of one user that wait for providers and MCP servers at once, of those of the whole daemon.
const SIDE_REQUESTS: u64 = 4;

/// Of the places of the daemon those that one user has at most.
#[derive(Debug)]
struct HookPlaces(Semaphore);

impl Default for HookPlaces {
    fn default() -> Self {
        Self(Semaphore::new(HOOKS))
    }
}

/// What a user does.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    hooks: HookPlaces,
    side_requests: AtomicUsize,
    /// When something was sent in the last minute; no more than are allowed.
    sends: Mutex<VecDeque<Instant>>,
    sessions: AtomicUsize,
    exchanges: AtomicUsize,
    /// What the user does at other daemons, and when that was told.
    elsewhere: Mutex<Option<(Activity, Instant)>>,
    /// How many bytes the user may keep by what was granted, as long as anybody has that: the least counts.
    disk: Mutex<Vec<Weak<u64>>>,
    /// What commands of conversations share, as long as those are there.
    pods: Mutex<Vec<Weak<OnceLock<Pod>>>>,
}

/// One of what is counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Quota>, fn(&Quota) -> &AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::AcqRel);
    }
}

impl Quota {
    /// Counts a send. Fails where there were as many in the last minute as may be, with how long that lasts.
    pub(crate) fn send(&self, most: Option<u64>) -> Result<(), Duration> {
        let Some(most) = most else {
            return Ok(());
        };
        let now = Instant::now();
        let elsewhere = self.elsewhere();
        let mut sends = self.sends.lock();
        end_minute(&mut sends, now);
        if (sends.len() as u64).saturating_add(elsewhere.sends) < most {
            sends.push_back(now);
            return Ok(());
        }
        let first = sends.front().map(|first| now - *first);
        let left = first.max(elsewhere.first_send);
        let left = left.map_or(MINUTE, |ago| MINUTE.saturating_sub(ago));
        Err(match elsewhere.sends {
            0 => left,
            // What is over at another daemon is known here once that one has told it.
            _ => left.max(EVERY),
        })
    }

    /// Counts a session; `None` where there are as many here as may be.
    pub(crate) fn session(self: &Arc<Self>, most: Option<u64>) -> Option<Counted> {
        self.count(|quota| &quota.sessions, most)
    }

    /// Counts a conversation at work, or a task; `None` where there are as many as may be.
    pub(crate) fn exchange(self: &Arc<Self>, most: Option<u64>) -> Option<Counted> {
        let most = most.map(|most| most.saturating_sub(self.elsewhere().exchanges));
        self.count(|quota| &quota.exchanges, most)
    }

    /// Returns what the user does here.
    pub(crate) fn activity(&self) -> Activity {
        let now = Instant::now();
        let mut sends = self.sends.lock();
        end_minute(&mut sends, now);
        Activity {
            sessions: self.sessions.load(Ordering::Acquire) as u64,
            exchanges: self.exchanges.load(Ordering::Acquire) as u64,
            sends: sends.len() as u64,
            first_send: sends.front().map(|first| now - *first),
        }
    }

    /// Notes what the user does at other daemons.
    pub(crate) fn told(&self, activity: Activity) {
        *self.elsewhere.lock() = Some((activity, Instant::now()));
    }

    /// Returns whether there are more sessions than may be, those at other daemons counted.
    pub(crate) fn has_too_many_sessions(&self, most: Option<u64>) -> bool {
        let all = self
            .activity()
            .sessions
            .saturating_add(self.elsewhere().sessions);
        most.is_some_and(|most| all > most)
    }

    /// Returns what the user does at other daemons, as far as it was told.
    fn elsewhere(&self) -> Activity {
        let Some((told, at)) = *self.elsewhere.lock() else {
            return Activity::default();
        };
        let since = at.elapsed();
        // Nothing that was sent then counts after a minute, whatever was sent since.
        let (sends, first_send) = match since < MINUTE {
            true => (told.sends, told.first_send.map(|ago| ago + since)),
            false => (0, None),
        };
        Activity {
            sends,
            first_send,
            ..told
        }
    }

    /// Counts a request that waits for a provider or an MCP server; `None` where there are as many as may be.
    pub(crate) fn side_request(self: &Arc<Self>) -> Option<Counted> {
        self.count(|quota| &quota.side_requests, Some(SIDE_REQUESTS))
    }

    /// Returns the user's places for hooks, of those of the daemon.
    pub(crate) fn hooks(&self) -> &Semaphore {
        &self.hooks.0
    }

    /// Has the user keep no more bytes than this as long as anybody has it.
    pub(crate) fn grant_disk(&self, granted: Option<&Arc<u64>>) {
        let mut known = self.disk.lock();
        let granted = granted.map(Arc::downgrade);
        let is_new = |it: &Weak<u64>| granted.as_ref().is_none_or(|new| !new.ptr_eq(it));
        // As many as tokens of the user are in use.
        known.retain(|it| it.strong_count() > 0 && is_new(it));
        known.extend(granted.clone());
    }

    /// Returns how many bytes the user may keep, where the configuration says so many.
    pub(crate) fn disk(&self, configured: Option<u64>) -> Option<u64> {
        let granted = self.disk.lock();
        let granted = granted.iter().filter_map(Weak::upgrade).map(|it| *it);
        granted.chain(configured).min()
    }

    /// Counts what a conversation's commands leave in its home, as long as that is there.
    pub(crate) fn count_home(&self, pod: &Arc<OnceLock<Pod>>) {
        let mut pods = self.pods.lock();
        // As many as conversations are there.
        pods.retain(|pod| pod.strong_count() > 0);
        pods.push(Arc::downgrade(pod));
    }

    /// Returns how many bytes those homes hold.
    pub(crate) async fn homes(&self) -> u64 {
        let pods: Vec<Pod> = {
            let pods = self.pods.lock();
            let pods = pods.iter().filter_map(Weak::upgrade);
            pods.filter_map(|pod| pod.get().cloned()).collect()
        };
        let mut bytes = 0_u64;
        // One after the other: other users' commands need the disk, too.
        for pod in pods {
            bytes = bytes.saturating_add(pod.held().await);
        }
        bytes
    }

    fn count(
        self: &Arc<Self>,
        which: fn(&Self) -> &AtomicUsize,
        most: Option<u64>,
    ) -> Option<Counted> {
        let one_more = |now: usize| {
            let has_room = most.is_none_or(|most| (now as u64) < most);
            has_room.then_some(now + 1)
        };
        let counted = which(self).fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        counted.ok().map(|_| Counted(Arc::clone(self), which))
    }
}

/// Takes away what was sent more than a minute ago.
fn end_minute(sends: &mut VecDeque<Instant>, now: Instant) {
    let is_over = |at: &Instant| now.duration_since(*at) >= MINUTE;
    while sends.front().is_some_and(is_over) {
        sends.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_a_part_of_the_daemons_places() {
        let quotas = Quotas::default();
        let [ann, ben] = ["ann", "ben"].map(|name| quotas.of(&User::new(name)));
        let asked: Vec<_> = (0..SIDE_REQUESTS).map(|_| ann.side_request()).collect();
        assert!(asked.iter().all(Option::is_some) && ann.side_request().is_none());
        assert!(ben.side_request().is_some(), "they are its own");
        drop(asked);
        assert!(ann.side_request().is_some());
        let mut hooks = Vec::new();
        for _ in 0..HOOKS {
            hooks.push(ann.hooks().try_acquire().unwrap());
        }
        assert!(ann.hooks().try_acquire().is_err(), "one more waits");
        assert!(ben.hooks().try_acquire().is_ok());
        hooks.pop();
        assert!(ann.hooks().try_acquire().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_so_many_sends() {
        let quota = Quota::default();
        for _ in 0..3 {
            assert_eq!(quota.send(Some(3)), Ok(()));
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(quota.send(Some(3)), Err(Duration::from_secs(30)));
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(quota.send(Some(3)), Ok(()));
        assert_eq!(quota.send(Some(3)), Err(Duration::from_secs(10)));
        assert_eq!(quota.send(None), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_is_not_over_with_the_last_session() {
        let quotas = Quotas::default();
        let anna = User::new("anna");
        assert_eq!(quotas.of(&anna).send(Some(1)), Ok(()));
        // Nobody has it now.
        assert_eq!(quotas.of(&anna).send(Some(1)), Err(MINUTE));
        assert_eq!(quotas.present().len(), 1);
        tokio::time::sleep(MINUTE).await;
        assert!(quotas.present().is_empty());
        assert_eq!(quotas.of(&anna).send(Some(1)), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_done_at_other_daemons_counts() {
        let quota = Arc::<Quota>::default();
        quota.told(Activity {
            sessions: 1,
            exchanges: 2,
            sends: 2,
            first_send: Some(Duration::from_secs(20)),
        });
        let _session = quota.session(Some(2)).unwrap();
        assert!(quota.has_too_many_sessions(Some(1)) && !quota.has_too_many_sessions(Some(2)));
        assert!(quota.exchange(Some(2)).is_none());
        assert_eq!(quota.send(Some(3)), Ok(()));
        // The first of them was over there.
        assert_eq!(quota.send(Some(3)), Err(Duration::from_secs(40)));
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(quota.send(Some(3)), Err(EVERY));
        let activity = quota.activity();
        let first_send = Some(Duration::from_secs(40));
        assert_eq!(
            activity,
            Activity {
                sessions: 1,
                exchanges: 0,
                sends: 1,
                first_send
            }
        );
        quota.told(Activity::default());
        assert!(!quota.has_too_many_sessions(Some(1)) && quota.exchange(Some(1)).is_some());
        assert_eq!(quota.send(Some(3)), Ok(()));
        tokio::time::sleep(MINUTE).await;
        assert_eq!(quota.activity().sends, 0);
        // Where nothing was told for long, what was sent there is over.
        quota.told(Activity {
            sends: 3,
            ..Activity::default()
        });
        assert_eq!(quota.send(Some(3)), Err(MINUTE));
        tokio::time::sleep(MINUTE).await;
        assert_eq!(quota.send(Some(3)), Ok(()));
        assert!(!quota.has_too_many_sessions(None));
    }

    #[test]
    fn what_is_counted_is_the_users_own_and_ends() {
        let quotas = Quotas::default();
        let (anna, ben) = (quotas.of(&User::new("anna")), quotas.of(&User::new("ben")));
        let first = anna.session(Some(1));
        assert!(first.is_some() && anna.session(Some(1)).is_none());
        assert!(ben.session(Some(1)).is_some() && anna.session(None).is_some());
        drop(first);
        assert!(quotas.of(&User::new("anna")).session(Some(1)).is_some());
        let running = anna.exchange(Some(1));
        assert!(running.is_some() && anna.exchange(Some(1)).is_none());
        assert!(anna.exchange(Some(2)).is_some() && ben.exchange(Some(1)).is_some());
        drop(running);
        assert!(anna.exchange(Some(1)).is_some());
    }

    #[test]
    fn a_user_may_keep_the_least_of_what_was_granted() {
        let quota = Quota::default();
        assert_eq!((quota.disk(None), quota.disk(Some(9))), (None, Some(9)));
        let (much, little) = (Arc::new(20), Arc::new(5));
        quota.grant_disk(Some(&much));
        assert_eq!((quota.disk(None), quota.disk(Some(9))), (Some(20), Some(9)));
        quota.grant_disk(Some(&little));
        quota.grant_disk(Some(&much));
        quota.grant_disk(None);
        assert_eq!(quota.disk(Some(9)), Some(5));
        drop(little);
        assert_eq!(quota.disk(None), Some(20));
    }

    #[test]
    fn of_those_that_come_at_once_as_many_are_let_in_as_may_be() {
        let quota = Arc::<Quota>::default();
        for _ in 0..100 {
            let begin = std::sync::Barrier::new(8);
            let come = || {
                begin.wait();
                let counted = quota.session(Some(3));
                begin.wait();
                counted.is_some()
            };
            let let_in = std::thread::scope(|scope| {
                let come: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
                let come = come.into_iter().map(|it| it.join().unwrap());
                come.filter(|is_in| *is_in).count()
            });
            assert_eq!(let_in, 3);
        }
    }
}

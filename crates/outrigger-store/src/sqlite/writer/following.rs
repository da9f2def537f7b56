//! What goes into one transaction: all that waits, and of one answer what comes within a moment.

use std::sync::mpsc;
use std::time::Instant;

use super::super::queue::Work;
use crate::bounds::{BATCH, LINGER};
use crate::queue::Waiting;

/// The jobs that go with one, up to what asks for an answer of its own.
pub(super) struct Following<'a> {
    work: &'a mpsc::Receiver<Work>,
    until: Instant,
    /// Whether all that there is so far may wait for more.
    may_wait: bool,
    other: Option<Work>,
}

impl<'a> Following<'a> {
    /// Returns what follows a job, which may wait for that or not.
    pub(super) fn new(work: &'a mpsc::Receiver<Work>, may_wait: bool) -> Self {
        Self {
            work,
            until: Instant::now() + LINGER,
            may_wait,
            other: None,
        }
    }

    /// Returns the next job, where so many wait; waits for it as long as all of them may.
    pub(super) fn next(&mut self, waiting: usize) -> Option<Waiting> {
        if waiting >= BATCH || self.other.is_some() {
            return None;
        }
        loop {
            let there = self.work.try_recv().ok();
            let next = there.or_else(|| {
                let left = self.until.saturating_duration_since(Instant::now());
                self.may_wait.then(|| self.work.recv_timeout(left).ok())?
            });
            match next? {
                Work::Job(job) => {
                    self.may_wait = self.may_wait && job.may_wait();
                    return Some(job.into());
                }
                // What is there goes along all the same: there may be many who wait.
                Work::Now => self.may_wait = false,
                other => {
                    self.other = Some(other);
                    return None;
                }
            }
        }
    }

    /// Returns what came instead of a job.
    pub(super) fn other(self) -> Option<Work> {
        self.other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Job, Lasts};
    use crate::{Change, User};

    fn job(change: Change) -> Work {
        let session = (&User::default(), "s");
        Work::Job(Job::new(session, vec![change], Lasts::Long, Box::new(drop)))
    }

    fn answered() -> Work {
        job(Change::Answered {
            id: "t1".to_owned(),
        })
    }

    /// Waits as long as this test may, but for what comes.
    fn patient(work: &mpsc::Receiver<Work>) -> Following<'_> {
        Following {
            until: Instant::now() + std::time::Duration::from_secs(600),
            ..Following::new(work, true)
        }
    }

    #[test]
    fn what_is_urgent_waits_for_nothing() {
        let (send, work) = mpsc::channel();
        assert!(Following::new(&work, false).next(1).is_none());
        send.send(answered()).unwrap();
        let mut following = Following::new(&work, false);
        assert!(following.next(1).is_some());
        assert!(following.next(2).is_none());
        assert!(following.other().is_none());
    }

    #[test]
    fn what_follows_at_once_goes_along_until_something_is_urgent() {
        let (send, work) = mpsc::channel();
        let mut following = patient(&work);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                send.send(answered()).unwrap();
                send.send(job(Change::Settings(String::new()))).unwrap();
            });
            assert!(following.next(1).is_some());
            assert!(following.next(2).is_some());
        });
        // Nobody has to hold it up any more.
        assert!(following.next(3).is_none());
    }

    #[test]
    fn whoever_waits_is_not_held_up() {
        let (send, work) = mpsc::channel();
        let mut following = patient(&work);
        for sent in [Work::Now, answered(), Work::Now, answered()] {
            send.send(sent).unwrap();
        }
        // In one commit, whoever of them waits.
        assert!(following.next(1).is_some());
        assert!(following.next(BATCH).is_none());
        assert!(following.next(2).is_some());
        assert!(following.next(3).is_none());
        assert!(following.other().is_none());
        let mut following = patient(&work);
        send.send(Work::BreakOff(String::new())).unwrap();
        send.send(answered()).unwrap();
        assert!(following.next(1).is_none());
        assert!(following.next(1).is_none());
        assert!(matches!(following.other(), Some(Work::BreakOff(_))));
        drop(send);
        let mut following = patient(&work);
        assert!(following.next(1).is_some());
        assert!(following.next(2).is_none());
    }

    #[test]
    fn a_moment_ends() {
        let (_send, work) = mpsc::channel();
        assert!(Following::new(&work, true).next(1).is_none());
    }
}

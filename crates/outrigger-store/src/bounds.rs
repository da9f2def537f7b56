//! How much every store keeps, and how much it does at once.

use std::time::Duration;

/// The most jobs in one transaction.
pub(crate) const BATCH: usize = 256;

/// How long a change waits for those that follow it, where nobody waits for it ([`Change::may_wait`](crate::Change::may_wait)):
/// less than a screen takes for a picture.
pub(crate) const LINGER: Duration = Duration::from_millis(5);

/// How long to wait before what failed is tried again: from the first of these to the last.
pub(crate) const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// How many numbers of events, and of ids, are reserved when a session is opened: none of them was seen by anybody.
pub(crate) const RESERVED_SEQ: i64 = 10_000;
pub(crate) const RESERVED_IDS: i64 = 100;

/// How many exchanges that ended and how many sends of a session are remembered.
pub(crate) const KEPT_EXCHANGES: i64 = 512;
pub(crate) const KEPT_SENT: i64 = 256;

/// How many calls of a session are kept, and how many of all sessions: the last ones. One that runs is never removed.
pub(crate) const KEPT_CALLS: i64 = 1_000;
pub(crate) const KEPT_OF_ALL: i64 = 50_000;

/// How many days have sums, the last ones: two years and some.
pub(crate) const KEPT_DAYS: i64 = 800;

/// How many names of a kind a day has, the rest is summed under [`OTHER`](crate::OTHER); and how many are read, those with
/// the most calls.
pub(crate) const NAMES: i64 = 200;

/// How many requests to models are kept, the last ones: some 150 MB.
pub(crate) const KEPT_USAGE: i64 = 1_000_000;

/// How many changes of files a session keeps.
pub(crate) const KEPT_CHANGES: i64 = 1_000;

/// How many bytes of replaced content a session keeps; the oldest goes first, and the change stays without it.
pub(crate) const KEPT_CONTENT: i64 = 64 * 1024 * 1024;

/// How many of the messages that have the words are looked through for sessions, the newest first.
pub(crate) const HITS: i64 = 20_000;

/// Answers of no session that are read, the newest; more than are ever kept.
pub(crate) const RULES: i64 = 10_000;

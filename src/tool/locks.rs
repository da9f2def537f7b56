//! Locks on files between calls, daemon-wide: shared for reading, exclusive for writing.
//!
//! A call asks for all of its claims at once and takes a ticket. It is let in as soon as no *earlier* ticket, waiting or
//! let in, has a conflicting claim: so there is no circle, and nobody starves. The one rule for callers: a call that holds
//! a [`Guard`] does not acquire a second one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Claim;

/// The locks of the daemon; clones are the same locks.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Its mutex is held for a look at it, never across an await.
    table: Arc<Mutex<Table>>,
    /// Woken whenever a ticket is gone.
    released: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    next_ticket: u64,
    tickets: BTreeMap<u64, Ticket>,
}

#[derive(Debug)]
struct Ticket {
    holder: String,
    claims: Vec<Claim>,
}

/// Claims that were granted; dropping it releases them.
#[derive(Debug)]
#[must_use = "dropping the guard releases the claims"]
pub struct Guard {
    locks: Locks,
    ticket: u64,
}

impl Locks {
    /// Waits until no earlier call has a conflicting claim, and holds the claims until the guard is
    /// dropped.
    ///
    /// `holder` describes the call to those that wait for it, e.g. `t3 file_write src/a.rs`.
    /// Dropping the future gives its place in the queue up.
    pub async fn acquire(&self, holder: &str, claims: Vec<Claim>) -> Guard {
        let holder = holder.to_owned();
        let guard = {
            let mut table = self.table.lock();
            let ticket = table.next_ticket;
            table.next_ticket += 1;
            table.tickets.insert(ticket, Ticket { holder, claims });
            let locks = self.clone();
            Guard { locks, ticket }
        };
        loop {
            // Made before the look, so that no release between the two is missed.
            let released = self.released.notified();
            if self.table.lock().is_free(guard.ticket) {
                return guard;
            }
            released.await;
        }
    }

    /// Returns the holders that these claims would have to wait for now, the earliest first.
    pub fn blockers(&self, claims: &[Claim]) -> Vec<String> {
        let table = self.table.lock();
        let tickets = table.tickets.values();
        let against = tickets.filter(|ticket| conflict(&ticket.claims, claims));
        against.map(|ticket| ticket.holder.clone()).collect()
    }
}

impl Table {
    /// Whether no earlier ticket stands against this one.
    fn is_free(&self, number: u64) -> bool {
        self.tickets.get(&number).is_none_or(|ticket| {
            let mut earlier = self.tickets.range(..number);
            earlier.all(|(_, earlier)| !conflict(&earlier.claims, &ticket.claims))
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.locks.table.lock().tickets.remove(&self.ticket);
        self.locks.released.notify_waiters();
    }
}

fn conflict(a: &[Claim], b: &[Claim]) -> bool {
    a.iter().any(|one| {
        b.iter()
            .any(|other| one.file == other.file && (one.exclusive || other.exclusive))
    })
}

#[cfg(test)]
mod tests;

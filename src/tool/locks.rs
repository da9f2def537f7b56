//! Locks on files between calls, daemon-wide: shared for reading, exclusive for writing.
//!
//! A call asks for all of its claims at once and takes a ticket. It is let in as soon as no *earlier*
//! ticket, waiting or let in, has a claim that conflicts with one of its own. This cannot deadlock:
//! a call waits for earlier tickets only, so there is no circle; and it holds nothing while it
//! waits, for its claims are granted together. It starves nobody: a reader that comes after a
//! waiting writer waits behind it. The one rule for callers: a call that holds a [`Guard`] does not
//! acquire a second one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::Claim;

/// The locks of the daemon; clones are the same locks.
///
/// The table's mutex is held for a look at it, never across an await.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    table: Arc<Mutex<Table>>,
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
    /// Tells the call that it is let in; `None` once it was told.
    waiting: Option<oneshot::Sender<()>>,
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
        let (guard, granted) = self.take_ticket(holder, claims);
        // The sender is dropped with the ticket only, and the ticket with this guard.
        if granted.await.is_err() {
            tracing::error!("a file lock's ticket was lost");
        }
        guard
    }

    /// Returns the holders that these claims would have to wait for now, the earliest first.
    pub fn blockers(&self, claims: &[Claim]) -> Vec<String> {
        let table = self.table();
        table
            .tickets
            .values()
            .filter(|ticket| conflict(&ticket.claims, claims))
            .map(|ticket| ticket.holder.clone())
            .collect()
    }

    fn take_ticket(&self, holder: &str, claims: Vec<Claim>) -> (Guard, oneshot::Receiver<()>) {
        let (sender, granted) = oneshot::channel();
        let mut table = self.table();
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        table.tickets.insert(
            ticket,
            Ticket {
                holder: holder.to_owned(),
                claims,
                waiting: Some(sender),
            },
        );
        table.let_in();
        drop(table);
        let locks = self.clone();
        (Guard { locks, ticket }, granted)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    /// Lets every waiting call in that no earlier one stands against.
    fn let_in(&mut self) {
        let free: Vec<u64> = self
            .tickets
            .iter()
            .filter(|(_, ticket)| ticket.waiting.is_some())
            .filter(|(number, ticket)| {
                self.tickets
                    .range(..**number)
                    .all(|(_, earlier)| !conflict(&earlier.claims, &ticket.claims))
            })
            .map(|(number, _)| *number)
            .collect();
        for number in free {
            let waiting = self
                .tickets
                .get_mut(&number)
                .and_then(|ticket| ticket.waiting.take());
            // A call that is gone drops its guard, which takes its ticket away.
            if let Some(waiting) = waiting
                && waiting.send(()).is_err()
            {
                tracing::trace!(number, "a queued call is gone");
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut table = self.locks.table();
        table.tickets.remove(&self.ticket);
        table.let_in();
    }
}

/// Whether two calls claim the same file and one of them for writing.
fn conflict(a: &[Claim], b: &[Claim]) -> bool {
    a.iter().any(|one| {
        b.iter()
            .any(|other| one.file == other.file && (one.exclusive || other.exclusive))
    })
}

#[cfg(test)]
mod tests;

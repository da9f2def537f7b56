//! Locks between calls, daemon-wide: a file is shared for reading and exclusive for writing, and what may write any file
//! excludes all that writes.
//!
//! A call asks for all of its claims at once and takes a ticket. It is let in as soon as no ticket that is let in, or comes
//! before it, has a conflicting claim: so there is no circle. Calls come in the order of their tickets, but those of sessions
//! with a client before the others, which wait as long as such calls come. The one rule for callers: a call that holds a
//! [`Ticket`] does not take a second one.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Claim;
use crate::message::{ConversationId, SessionId, ToolId};

/// The locks of the daemon; clones are the same locks.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Its mutex is held for a look at it, never across an await.
    table: Arc<Mutex<Table>>,
    /// Woken whenever a ticket is gone, and whenever the order changes.
    released: Arc<Notify>,
}

/// Which call has a ticket, for those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The call's session.
    pub session: SessionId,
    /// Its conversation there.
    pub conversation: ConversationId,
    /// The call.
    pub call: ToolId,
    /// The name of its tool.
    pub tool: String,
}

#[derive(Debug, Default)]
struct Table {
    next_ticket: u64,
    tickets: BTreeMap<u64, Entry>,
    /// Sessions whose client is gone: one entry for each [`Away`].
    unattended: HashSet<SessionId>,
}

#[derive(Debug)]
struct Entry {
    holder: Holder,
    claims: Vec<Claim>,
    is_granted: bool,
}

/// Has the calls of a session come after those of sessions with a client, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it says that there is a client"]
pub struct Away {
    locks: Locks,
    session: SessionId,
}

/// A place in the queue, and what is claimed from [`granted`](Self::granted) on; dropping it gives both up.
#[derive(Debug)]
#[must_use = "dropping the ticket gives the claims up"]
pub struct Ticket {
    locks: Locks,
    number: u64,
}

impl Locks {
    /// Queues for these claims.
    pub fn queue(&self, holder: Holder, claims: Vec<Claim>) -> Ticket {
        let mut table = self.table.lock();
        let number = table.next_ticket;
        table.next_ticket += 1;
        let entry = Entry {
            holder,
            claims,
            is_granted: false,
        };
        table.tickets.insert(number, entry);
        let locks = self.clone();
        Ticket { locks, number }
    }

    /// Says in words what this holder would have to wait for if it asked for these claims now; `None` where for nothing.
    pub fn obstacle(&self, holder: &Holder, claims: &[Claim]) -> Option<String> {
        self.table.lock().obstacle(u64::MAX, holder, claims)
    }

    /// Takes note that a session has no client, one `Away` at a time.
    pub fn away(&self, session: &SessionId) -> Away {
        self.table.lock().unattended.insert(session.clone());
        self.released.notify_waiters();
        let (locks, session) = (self.clone(), session.clone());
        Away { locks, session }
    }
}

impl Ticket {
    /// Says in words what the ticket still waits for; `None` where it holds its claims.
    pub fn obstacle(&self) -> Option<String> {
        let mut table = self.locks.table.lock();
        if table.grant(self.number) {
            return None;
        }
        let own = table.tickets.get(&self.number)?;
        table.obstacle(self.number, &own.holder, &own.claims)
    }

    /// Waits until no call before this one has a conflicting claim. The claims are held from then on until the ticket is
    /// dropped.
    pub async fn granted(&self) {
        loop {
            // Made before the look, so that no release between the two is missed.
            let released = self.locks.released.notified();
            if self.locks.table.lock().grant(self.number) {
                return;
            }
            released.await;
        }
    }
}

impl Table {
    /// Returns the tickets before this one with a claim against one of these, the earliest first.
    fn against<'a>(
        &'a self,
        number: u64,
        own: &Holder,
        claims: &'a [Claim],
    ) -> impl Iterator<Item = (&'a Holder, Conflict)> {
        let place = self.place(number, own);
        let others = self.tickets.iter();
        let before = others.filter(move |(number, entry)| {
            entry.is_granted || self.place(**number, &entry.holder) < place
        });
        before.filter_map(move |(_, entry)| {
            Some((&entry.holder, Conflict::among(claims, &entry.claims)?))
        })
    }

    /// Returns what the order is by.
    fn place(&self, number: u64, holder: &Holder) -> (bool, u64) {
        (self.unattended.contains(&holder.session), number)
    }

    /// Lets a ticket in if nothing is against it; returns whether it is.
    fn grant(&mut self, number: u64) -> bool {
        let is_free = |own: &Entry| {
            let mut against = self.against(number, &own.holder, &own.claims);
            own.is_granted || against.next().is_none()
        };
        let is_granted = self.tickets.get(&number).is_some_and(is_free);
        if let Some(own) = self.tickets.get_mut(&number) {
            own.is_granted = is_granted;
        }
        is_granted
    }

    fn obstacle(&self, number: u64, own: &Holder, claims: &[Claim]) -> Option<String> {
        let mut against = self.against(number, own, claims);
        let (holder, conflict) = against.next()?;
        let others = match against.count() {
            0 => String::new(),
            1 => ", and for 1 other call".to_owned(),
            more => format!(", and for {more} other calls"),
        };
        let (call, does) = (holder.seen_by(own), conflict.word());
        Some(format!("waits for {call}, which {does}{others}"))
    }
}

impl Holder {
    /// Names the call to another one's user. What is in another session is none of theirs, but for that it is there.
    fn seen_by(&self, other: &Self) -> String {
        let Self { call, tool, .. } = self;
        if self.session != other.session {
            format!("a call of {tool} in another session")
        } else if self.conversation != other.conversation {
            format!(
                "{call} {tool} of conversation {:?}",
                self.conversation.as_str()
            )
        } else {
            format!("{call} {tool}")
        }
    }
}

/// Returns whether these cannot be held beside each other.
pub fn exclude(one: &[Claim], other: &[Claim]) -> bool {
    Conflict::among(one, other).is_some()
}

/// Returns whether one of these writes what another one of those may read or write: in one turn, their calls run one after the
/// other. Locks let more run side by side.
pub fn meet(one: &[Claim], other: &[Claim]) -> bool {
    let meets = |own: &Claim, other: &Claim| {
        (own.writes() || other.writes()) && overlap(own.paths(), other.paths())
    };
    one.iter()
        .any(|own| other.iter().any(|other| meets(own, other)))
}

/// What a claim is to another one that cannot be held beside it.
#[derive(Clone, Copy)]
enum Conflict {
    WritesTree,
    WritesSomeFile,
    WritesSameFile,
    ReadsSameFile,
}

impl Conflict {
    /// Returns the first conflict of these with those.
    fn among(claims: &[Claim], others: &[Claim]) -> Option<Self> {
        claims.iter().find_map(|own| {
            let mut others = others.iter();
            others.find_map(|other| Self::between(own, other))
        })
    }

    fn between(own: &Claim, other: &Claim) -> Option<Self> {
        use Claim::{Read, ReadTree, Write, WriteTree};
        match (own, other) {
            (WriteTree(own), WriteTree(other)) if overlap(own, other) => Some(Self::WritesTree),
            (Write(file), WriteTree(tree)) if is_below(file, tree) => Some(Self::WritesTree),
            (WriteTree(tree), Write(file)) if is_below(file, tree) => Some(Self::WritesSomeFile),
            (Read(own) | Write(own), Write(other)) if own == other => Some(Self::WritesSameFile),
            (Write(own), Read(other)) if own == other => Some(Self::ReadsSameFile),
            (Read(_) | ReadTree(_) | Write(_) | WriteTree(_), _) => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::WritesTree => "may change files",
            Self::WritesSomeFile => "changes a file",
            Self::WritesSameFile => "changes the same file",
            Self::ReadsSameFile => "reads the same file",
        }
    }
}

fn overlap(own: &[String], other: &[String]) -> bool {
    own.iter().any(|it| is_below(it, other)) || other.iter().any(|it| is_below(it, own))
}

/// Whether a path is one of these folders or below one of them.
fn is_below(path: &str, folders: &[String]) -> bool {
    folders
        .iter()
        .any(|folder| Path::new(path).starts_with(folder))
}

impl Drop for Away {
    fn drop(&mut self) {
        self.locks.table.lock().unattended.remove(&self.session);
        self.locks.released.notify_waiters();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.locks.table.lock().tickets.remove(&self.number);
        self.locks.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests;

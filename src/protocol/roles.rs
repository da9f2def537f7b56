//! Several sockets on one session: which one is which, and what each may do.

use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a socket may do on its session.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SocketRole {
    /// It looks: events, and requests that change nothing.
    Observer,
    /// It also answers questions, gives them time, and stops what runs.
    Approver,
    /// It does everything. There is one at a time.
    Driver,
}

impl SocketRole {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Approver => "approver",
            Self::Driver => "driver",
        }
    }
}

/// Payload of `session:roles`: who is on the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRoles {
    /// Whether somebody drives.
    pub driver: bool,
    /// How many approve.
    pub approvers: usize,
    /// How many observe.
    pub observers: usize,
    /// The role of the socket that gets this, where it is told to that one alone: at its beginning, and when its role is
    /// another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SocketRole>,
}

/// Payload of `session:resynced`: the end of a resync that one socket alone gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resynced {
    /// The number up to which the socket has everything now.
    pub seq: u64,
}

/// Payload of `session:take-over-result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOver {
    /// The role of this socket now.
    pub role: SocketRole,
}

/// A connection of a client. The client keeps its name over its connections, so two of these are the same where the name is.
#[derive(Clone, Copy, Debug)]
pub struct SocketId {
    name: u64,
    /// Which of all connections it is, in the order in which they were asked for.
    connection: u64,
}

impl SocketId {
    /// Returns the id of a new connection of the client that calls itself this; of a client that nobody else is where it
    /// gives no name.
    pub(crate) fn new(name: Option<&str>) -> Self {
        let connection = next_connection();
        let name = name.map(|name| {
            let digest: [u8; 32] = Sha256::digest(name).into();
            let [a, b, c, d, e, f, g, h, ..] = digest;
            u64::from_be_bytes([a, b, c, d, e, f, g, h])
        });
        Self {
            name: name.unwrap_or(connection),
            connection,
        }
    }

    /// Returns the id of a connection of the same client that begins now.
    pub(crate) fn again(self) -> Self {
        Self {
            connection: next_connection(),
            ..self
        }
    }

    /// Returns the id of the same connection without the name: of a client that nobody else is.
    pub(crate) fn without_name(self) -> Self {
        Self {
            name: self.connection,
            ..self
        }
    }

    /// Returns whether this is the same connection, not another one of the same client.
    pub(crate) fn is_connection(self, other: Self) -> bool {
        self.connection == other.connection
    }

    /// Returns whether this connection was asked for after the other one.
    pub(crate) fn is_after(self, other: Self) -> bool {
        self.connection > other.connection
    }
}

fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl PartialEq for SocketId {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SocketId {}

impl std::hash::Hash for SocketId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

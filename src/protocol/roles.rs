//! Several sockets on one session: what each may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

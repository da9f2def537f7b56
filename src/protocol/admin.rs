//! What operators are answered over HTTP, below `/admin/`: who works where, and what that costs. It has no words of users.

use serde::{Deserialize, Serialize};

use super::status::SessionStateName;
use crate::message::{Money, SessionId};

/// Answer to `GET /admin/sessions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsReport {
    /// Sessions that live, the oldest first.
    pub sessions: Vec<SessionRow>,
    /// How many there are besides that did not answer in time.
    #[serde(default)]
    pub unanswered: usize,
    /// The nodes that did not answer, whose sessions are not among these.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// A session that lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its id.
    pub session_id: SessionId,
    /// Whose it is; `default` where the daemon knows one user.
    pub user: String,
    /// The node that has it.
    pub node: String,
    /// The folder that it works in; absent where it has no project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// How it stands.
    pub state: SessionStateName,
    /// How many sockets are on it.
    pub sockets: usize,
    /// How many conversations live in it.
    pub conversations: usize,
    /// Tokens of input since `since`, as providers counted them.
    pub input_tokens: u64,
    /// Likewise of output.
    pub output_tokens: u64,
    /// What it has cost in all, by the prices that are known.
    pub spent_usd: Money,
    /// Since when it lives on this node, in UTC: it was begun then, or begun anew.
    pub since: String,
}

/// Answer to `GET /admin/users`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsersReport {
    /// Users with sessions that live, by their names.
    pub users: Vec<UserRow>,
    /// The nodes that did not answer, whose sessions are not counted.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// What a user's sessions that live come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRow {
    /// Whose.
    pub user: String,
    /// How many sessions.
    pub sessions: usize,
    /// How many of them run or wait for an answer.
    pub running: usize,
    /// Tokens of input of these sessions.
    pub input_tokens: u64,
    /// Tokens of output.
    pub output_tokens: u64,
    /// What they have cost.
    pub spent_usd: Money,
}

/// Answer to `GET /admin/nodes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodesReport {
    /// The nodes that have the same database, by their names; one where the daemon is alone.
    pub nodes: Vec<NodeRow>,
    /// Those that are not among them, where the database does not say which there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// A node: one daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Its name: `cluster.name`, or that of its machine or of its pod.
    pub node: String,
    /// Whether it is the one that answers.
    #[serde(default)]
    pub here: bool,
    /// Where the others reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its version; absent where it did not answer, as `running` and `since` are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it takes new work.
    pub state: NodeState,
    /// How many sessions live there; of one that did not answer, how many are its own in the database.
    pub sessions: usize,
    /// How many exchanges run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<usize>,
    /// Since when it runs, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How long ago it renewed its lease in the database, in milliseconds; absent without one, and where it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_ms: Option<u64>,
}

/// Whether a node takes new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It does.
    Ready,
    /// It lets what runs come to its end, and then ends.
    Draining,
    /// It did not answer, or nobody knows where to ask it. Its lease holds.
    Unknown,
    /// Its lease is over: others may take its sessions.
    Gone,
}

/// Body of `POST /admin/drain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainWanted {
    /// How long what runs may take, in milliseconds, up to a day; `shutdown.grace` where it is absent.
    #[serde(default)]
    pub within_ms: Option<u64>,
}

/// Answer to `POST /admin/drain`. The first that asks says how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draining {
    /// How long what runs may take from the first such request on, in milliseconds.
    pub within_ms: u64,
    /// How many exchanges run now.
    pub running: usize,
}

//! What is known of a command that runs in the background of a conversation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackgroundId, ToolId};

/// The tool that starts commands, also in the background.
pub const BASH: &str = "bash";

/// The tools for commands in the background. They go with `bash`: allowed, offered and switched off with it.
pub const WITH_BASH: [&str; 2] = ["bash_output", "bash_kill"];

/// The tool that reads a skill. It goes with skills: a conversation without any does not have it.
pub const SKILL: &str = "skill";

/// A command in the background of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundCommand {
    /// Its id.
    pub id: BackgroundId,
    /// The call that started it, by which `tool:output` has its output and `tool:cancel` ends it.
    pub tool_id: ToolId,
    /// The command line, or the beginning of a long one.
    pub command: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// How it stands.
    pub status: BackgroundStatus,
    /// Ports of the conversation's own loopback on which it began to listen, in that order; none once it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ListeningPort>,
    /// Its exit code, once it has ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl BackgroundCommand {
    /// Returns whether it runs.
    pub fn is_running(&self) -> bool {
        self.status == BackgroundStatus::Running
    }
}

impl fmt::Display for BackgroundCommand {
    /// Says how it stands, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stands = match self.status {
            BackgroundStatus::Running => return write!(f, "{} is running", self.id),
            BackgroundStatus::Exited => "has ended",
            BackgroundStatus::Killed => "was ended",
            BackgroundStatus::TimedOut => "was ended after its time limit",
        };
        write!(f, "{} {stands}: ", self.id)?;
        match (self.exit_code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => f.write_str("no status"),
        }
    }
}

/// A port on which a command in the background began to listen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListeningPort {
    /// The TCP port, on the conversation's own loopback.
    pub port: u16,
    /// Where this machine's loopback leads to it, such as `http://127.0.0.1:5173/`; absent where `tool:expose` did not ask
    /// for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// How a command in the background stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackgroundStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Exited,
    /// It was ended: by `bash_kill`, by a client, or with its conversation.
    Killed,
    /// It was ended after its time limit.
    TimedOut,
}

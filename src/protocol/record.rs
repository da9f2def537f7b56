//! Execution records: what became of each tool call, and their sums.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::Outcome;
use crate::message::{BackgroundCommand, ConversationId, Danger, SessionId, ToolCategory, ToolId};

/// What is known of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionRecord {
    /// Which call.
    pub tool_id: ToolId,
    /// Which session's, where records of all were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Whose.
    pub conversation_id: ConversationId,
    /// The provider instance whose model made it.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// The provider's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_call_id: Option<String>,
    /// The tool's name.
    pub tool_name: String,
    /// The input; as approved, where it was asked. After a restart of the daemon, and of other sessions, the long texts of
    /// one of more than 16 KiB are cut.
    pub input: Map<String, Value>,
    /// Bytes of the input as JSON.
    #[serde(default)]
    pub input_bytes: u64,
    /// The commands that it runs, each once and eight at most: a program, with its subcommand where it has such
    /// (`cargo test`), never its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What sort of tool it is.
    pub category: ToolCategory,
    /// How much harm it may do.
    pub danger: Danger,
    /// Whether and how the user was asked.
    pub approval: Approval,
    /// How it stands.
    pub status: ExecutionStatus,
    /// A command's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Bytes of standard output, or of the result where there is no command.
    pub stdout_bytes: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
    /// Whether the model got less than all.
    pub truncated: bool,
    /// How long it ran.
    pub duration_ms: u64,
    /// How long it waited for other calls.
    pub queued_ms: u64,
    /// The sandbox mode that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// The command that it started in the background, which may go on after the call was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<BackgroundCommand>>,
    /// When the model had made it, RFC 3339.
    pub started_at: String,
}

/// Whether and how the user was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Whether the user was asked.
    pub asked: bool,
    /// How the question was settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How long the user took.
    pub waited_ms: u64,
}

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionStatus {
    /// It waits, for the user or for another call.
    Queued,
    /// It runs.
    Running,
    /// It worked.
    Success,
    /// It failed.
    Error,
    /// It was refused.
    Denied,
    /// It was cancelled.
    Cancelled,
}

/// What a command used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Largest resident set in bytes.
    pub max_rss_bytes: u64,
}

/// Payload of `tool:metrics-result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMetrics {
    /// Sums by tool, by name.
    pub tools: Vec<Sums>,
    /// Sums by provider instance, by name.
    pub providers: Vec<Sums>,
    /// Sums by day (UTC) on which the model made the calls, such as `2026-11-20`, the first one first.
    #[serde(default)]
    pub days: Vec<Sums>,
    /// Sums by command, those with the most calls first, 50 at most. A call with several counts for each of them, with all
    /// that it took.
    #[serde(default)]
    pub commands: Vec<Sums>,
    /// Calls that run now.
    pub running: usize,
    /// Calls that wait now.
    pub queued: usize,
}

/// Counts of settled calls, and what they took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sums {
    /// The tool's, the provider's or the command's name, or the day.
    pub name: String,
    /// Settled calls.
    pub count: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were refused.
    pub denied: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// `failed` by `count`, 0 to 1.
    pub failure_rate: f64,
    /// Mean run time of those that ran.
    pub mean_duration_ms: f64,
    /// Longest run time.
    pub max_duration_ms: u64,
    /// Processor time of commands, in milliseconds.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Largest resident set of a command, in bytes.
    #[serde(default)]
    pub max_rss_bytes: u64,
    /// Bytes of the inputs as JSON.
    #[serde(default)]
    pub input_bytes: u64,
    /// Bytes of the outputs.
    #[serde(default)]
    pub output_bytes: u64,
}

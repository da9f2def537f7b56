//! What is known of a tool call while it runs and when it has ended, for every layer up to the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BackgroundId, TaskFacts};

/// What the last line of a unified diff begins with that was cut: by it a reader knows that there was more.
pub(crate) const CUT_DIFF: &str = "[the diff is cut ";

/// Returns whether a unified diff is not all of the change.
pub(crate) fn is_cut_diff(unified: &str) -> bool {
    unified.lines().any(|line| line.starts_with(CUT_DIFF))
}

/// Which stream a piece of live output belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OutputStream {
    /// A command's standard output.
    Stdout,
    /// A command's standard error.
    Stderr,
    /// Progress that a tool reports.
    Progress,
}

/// Facts about a call's outcome, as they apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// A command's exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The time limit ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The user, or the end of the exchange, ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// It was refused, by the user or by a rule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// It was refused since it would have had to be asked about and nobody was there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// Nobody answered in time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// Hosts that it did not reach, since the user would have had to be asked and nobody was there, or answered in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered_hosts: Vec<String>,
    /// The command in the background that the call started, read or ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundId>,
    /// The output was longer than the cap.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Bytes of output altogether.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Of these, bytes of standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_bytes: Option<u64>,
    /// Bytes of output left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// How many places of the result show the mask `[redacted]` in place of a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<u64>,
    /// The file, relative to its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A unified diff of what was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Who answered: a search engine, an MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How many results there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_count: Option<u64>,
    /// The results as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Value>,
    /// Settings of the project that a command made or changed and that an editor, shell or agent runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings_changed: Vec<String>,
    /// Which of the project's files are other than before a command, by itself or by what ran beside it. Absent where
    /// none is, and where it only reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedFiles>,
    /// Direct answers of a search engine, and what it has in a box beside the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// What went wrong though there is a result: an engine that was tried first and failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How the task went that the call began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<TaskFacts>>,
    /// The sandbox mode a command ran in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Processor time of a command in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Largest resident set of a command in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
}

impl Metadata {
    /// Returns whether a call without success is no fault: a search without a match, or a call that was not run because
    /// of an answer, or of none.
    pub fn is_no_fault(&self) -> bool {
        let found_nothing = self.result_count == Some(0) && !self.timed_out;
        found_nothing || self.denied || self.expired || self.cancelled
    }
}

/// Files of the project that are other than they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangedFiles {
    /// Up to 200 of them, in the order of their paths. What ignore files leave out is not told, nor are folders such as
    /// `node_modules`.
    pub files: Vec<ChangedFile>,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// Not all files were looked at: the project has too many, or its disk is too slow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// A file that is other than it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// Its path below the project, `/` between components.
    pub path: String,
    /// What became of it.
    pub change: FileChange,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileChange {
    /// It was not there.
    Created,
    /// Its content, its rights, or the whole file is another.
    Modified,
    /// It is gone.
    Deleted,
}

//! Payloads of `session:` events: who is there, what is enforced, what is wrong. Answers are `answer`'s.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{OnViolation, SessionId, TrustLevel};
use crate::protocol::code::SessionCode;
use crate::protocol::command::Layer;
use crate::protocol::trust::InstructionFile;

/// Payload of `session:ready`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    /// Version of the contract: 1.
    pub protocol_version: u32,
    /// Version of the daemon.
    pub daemon_version: String,
    /// The session's id, to resume it by.
    pub session_id: SessionId,
    /// Whether this is an earlier session going on.
    pub resumed: bool,
    /// How long what runs goes on after the session's last socket, in milliseconds; without a store, also how long the
    /// session can be resumed.
    pub resume_grace_ms: u64,
    /// Whether the session is kept: it can be resumed after the daemon was started anew, too.
    #[serde(default)]
    pub persistent: bool,
    /// How often the session was begun, the first time included: it was begun anew where it is more than before.
    #[serde(default = "first")]
    pub epoch: u64,
    /// The session's trust level.
    pub trust_level: TrustLevel,
    /// What becomes of an exchange in which a call's path leaves the project or is denied.
    #[serde(default)]
    pub on_violation: OnViolation,
    /// The folder the model works in; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Why there is no project, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_error: Option<String>,
    /// What is enforced here.
    pub sandbox: Sandbox,
    /// The provider instances.
    pub providers: Vec<ReadyProvider>,
    /// Names of the tools there are.
    pub tools: Vec<String>,
    /// The layers of events that are sent.
    pub layers: Vec<Layer>,
    /// What this daemon offers beyond the first release of the contract; a client that does not know one ignores it.
    #[serde(default)]
    pub features: Vec<String>,
    /// Names of the workflows there are; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// Files of the user's own and of the project's folder whose words the model is told as the user's, as they were when the
    /// session began; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionFile>,
    /// Whether the socket's token is an operator's, who may ask what is below `/admin/`; with a number in the session, whether
    /// that of whoever began it is. Absent where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operator: bool,
}

fn first() -> u64 {
    1
}

impl Ready {
    /// Returns where the model works, for people.
    pub fn place(&self) -> String {
        match &self.project {
            Some(project) => project.root.display().to_string(),
            None => "no project".to_owned(),
        }
    }
}

/// The folder the model works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// Its absolute path.
    pub root: PathBuf,
    /// Absolute path of its central storage.
    pub central: PathBuf,
}

/// What is enforced here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sandbox {
    /// `full`, `fallback`, `limits`, `unverified` (on macOS and Windows, where it was asked for: nobody tried it on a real
    /// machine) or `none`.
    pub mode: String,
    /// Who keeps paths within the roots: the `kernel`, or the `process` itself.
    pub paths: String,
    /// The layers around commands.
    pub commands: Vec<String>,
    /// Whether commands reach the network: `off`, `on` or `unenforced`.
    pub network: String,
    /// Which addresses of loopback a command has that did not ask for the network: `own` (one that its conversation's commands
    /// share), `none` (it can neither connect nor listen) or `machine` (nothing keeps it from the machine's); absent from older
    /// daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback: Option<String>,
    /// How much of Landlock the kernel has, where it is one of the layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<Landlock>,
    /// What commands are held to; absent from older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<SandboxLimits>,
}

/// What commands are held to, and by what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxLimits {
    /// The version of control groups in use, 1 or 2; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u8>,
    /// Memory, in bytes.
    pub memory: SandboxLimit,
    /// Processor time, in percent of one processor; absent where none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<SandboxLimit>,
    /// Processes and threads.
    pub processes: SandboxLimit,
    /// Largest file, in bytes.
    pub file_size: SandboxLimit,
    /// What the conversation's home, temporary files and additions to caches hold together, in bytes; absent from older
    /// daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<SandboxLimit>,
    /// Why control groups do not hold all of it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A limit of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLimit {
    /// How much; absent where nothing enforces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// What enforces it: `cgroup` (all processes of a command together), `rlimit` (each by itself), `job` (Windows, all together),
    /// `daemon` (which counts, and ends a command that makes it more) or `none`.
    pub by: String,
}

/// How much of Landlock the kernel has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Landlock {
    /// Its version (ABI).
    pub abi: u8,
    /// What stays open for want of a newer kernel: `ports`, `devices`, `signals`.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// A provider instance in `session:ready`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyProvider {
    /// Its name in the configuration.
    pub id: String,
    /// Whether it has what it needs to be asked.
    pub configured: bool,
}

/// Payload of `session:error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionError {
    /// What is wrong, for programs.
    pub code: SessionCode,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// After how many milliseconds the same may be asked again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl SessionError {
    /// Returns an error of this code.
    pub fn new(code: SessionCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
        }
    }
}

/// Payload of `session:updated`: what is other than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdated {
    /// Which session.
    pub session_id: SessionId,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it is put away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// All its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// When, RFC 3339.
    pub updated_at: String,
    /// Whether there is no such session any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

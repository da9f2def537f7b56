//! Hooks: programs and endpoints of the operator that are asked at certain points.

use std::time::Duration;

use globset::GlobSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SandboxPolicy;

/// One hook, checked.
#[derive(Clone, Debug)]
pub struct HookConfig {
    /// What the operator calls it.
    pub name: String,
    /// When it is asked.
    pub on: HookPoint,
    /// For which tools; `None` for all.
    pub tools: Option<GlobSet>,
    /// What is asked.
    pub target: HookTarget,
    /// How long it may take.
    pub timeout: Duration,
    /// What becomes of it where the hook fails.
    pub on_failure: OnFailure,
}

impl HookConfig {
    /// Returns the address of an endpoint; `None` for a program.
    pub fn endpoint(&self) -> Option<&str> {
        match &self.target {
            HookTarget::Endpoint(url) => Some(url),
            HookTarget::Program { .. } => None,
        }
    }

    /// Returns whether it is asked at a point, about a tool where it is one's.
    pub fn is_asked(&self, on: HookPoint, tool: Option<&str>) -> bool {
        let is_its = |set: &GlobSet| tool.is_some_and(|tool| set.is_match(tool));
        self.on == on && self.tools.as_ref().is_none_or(is_its)
    }
}

/// What a hook is.
#[derive(Clone, Debug)]
pub enum HookTarget {
    /// A program, which reads JSON from its standard input and may write some to its standard output.
    Program {
        /// The program, without a shell.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Whether it runs in the sandbox.
        sandbox: SandboxPolicy,
        /// Whether it may use the network.
        network: bool,
    },
    /// An endpoint that JSON is sent to, with POST.
    Endpoint(String),
}

/// When a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// Before a message of the user is taken.
    BeforeSend,
    /// Before a call is judged.
    BeforeTool,
    /// Before the model reads what a call came to.
    AfterTool,
    /// Before the model's last answer ends an exchange.
    Stop,
    /// Before a conversation is compacted.
    Compact,
}

/// What becomes of it where a hook fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// As if it had refused.
    Refuse,
    /// As if it had not been asked.
    Continue,
}

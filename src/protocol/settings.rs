//! Settings that change while the daemon runs, and where each value comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{OnViolation, TrustLevel};
use crate::permission::{Limits, PermissionMap};

/// Payload of `search:configure`. The key is never echoed or logged.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchConfigure {
    /// Where SearXNG is; empty for none.
    #[serde(alias = "searxng_url", skip_serializing_if = "Option::is_none")]
    pub searxng_url: Option<String>,
    /// Key of the Brave Search API; empty for none.
    #[serde(alias = "brave_api_key", skip_serializing_if = "Option::is_none")]
    pub brave_api_key: Option<String>,
}

impl std::fmt::Debug for SearchConfigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchConfigure").finish_non_exhaustive()
    }
}

/// Payload of `search:configure-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchConfigured {
    /// Where SearXNG is; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searxng_url: Option<String>,
    /// Whether there is a key of the Brave Search API.
    pub brave: bool,
}

/// Payload of `config:get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConfigGet {
    /// A key such as `chat.model`, or a part of one such as `chat`; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Payload of `config:get-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigValues {
    /// Every value, in the order of the keys.
    pub values: Vec<ConfigValue>,
}

/// A value of the configuration that is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigValue {
    /// The key, with dots between its parts.
    pub key: String,
    /// The value; `"***"` for a secret, null where the key came later and waits for a restart.
    pub value: Value,
    /// Where it comes from, in words: a file, a variable of the environment, a flag, `search:configure`, or `default`.
    pub source: String,
    /// Whether a change of it counts without a restart (`config:reload`).
    pub live: bool,
    /// What was read last, where that is another value, which waits for a restart; null where the key is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Value>,
}

/// Payload of `config:reload-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReloaded {
    /// Keys with another value, which counts from now on.
    pub changed: Vec<String>,
    /// Keys with another value that counts when the daemon is started anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart: Vec<String>,
    /// What is valid but probably not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Payload of `workflow:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workflows {
    /// Every workflow, in the order of the names.
    pub workflows: Vec<WorkflowInfo>,
}

/// What there is to know of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowInfo {
    /// Its name.
    pub name: String,
    /// Whether a client put it there; else it is the operator's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put: bool,
    /// How much is done without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// Provider instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limits of an exchange.
    pub limits: Limits,
    /// Names of the tools that it offers here.
    pub tools: Vec<String>,
}

/// Payload of `workflow:put`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowPut {
    /// Its name, 1 to 64 bytes.
    pub name: String,
    /// What it is; absent takes away one that was put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowWanted>,
}

/// A workflow as a client gives it. What is absent is as without a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowWanted {
    /// System prompt.
    #[serde(alias = "system_prompt", skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// How much is done without asking.
    #[serde(alias = "trust_level", skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// What becomes of an exchange in which a path leaves the project or is denied.
    #[serde(alias = "on_violation", skip_serializing_if = "Option::is_none")]
    pub on_violation: Option<OnViolation>,
    /// Provider instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limits of an exchange.
    pub limits: Limits,
    /// What tools may do; empty means those that only read.
    #[serde(alias = "tool_permissions")]
    pub tool_permissions: PermissionMap,
}

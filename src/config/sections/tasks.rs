//! The section `[tasks]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::units::Span;

/// A second and an hour, in milliseconds: how long a task may take.
const LEAST: u64 = 1_000;
const MOST: u64 = 60 * 60 * 1_000;

/// The profile that is there always: it only reads.
pub const EXPLORE: &str = "explore";

/// Tasks: pieces of work that a model hands to another one, by the tool `task`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TasksConfig {
    /// Whether models may begin tasks.
    pub enabled: bool,
    /// The model of tasks whose profile names none, as `PROVIDER/MODEL`; empty for that of the exchange which begins them.
    pub model: String,
    /// Workflows that tasks may have as their profile, besides `explore`, which only reads: their prompt, model, limits and
    /// permissions count, and never more than the exchange around the task may do.
    pub profiles: Vec<String>,
    /// How long a task may take, waiting for the user not counted; 1s to 1h.
    #[serde(with = "Span::<LEAST, MOST>")]
    pub timeout: Duration,
}

impl TasksConfig {
    /// Returns the names of all profiles.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.profiles.clone();
        if !names.iter().any(|name| name == EXPLORE) {
            names.insert(0, EXPLORE.to_owned());
        }
        names
    }

    /// Returns the provider and the model of tasks whose profile names none; `None` for those of the exchange around it.
    pub fn own_model(&self) -> Option<(&str, &str)> {
        self.model.split_once('/')
    }
}

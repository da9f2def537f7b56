//! The section `[project]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::word;

/// The folder the model works in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProjectConfig {
    /// The project's folder. It must exist and be neither `/`, the home directory, one above it,
    /// nor a directory of the system; otherwise the daemon has no project, and no tools that need one.
    pub(crate) root: PathBuf,
    /// The project's name; empty for the folder's. It is one part of a path: no `/`.
    pub(crate) name: String,
    /// The project's central storage, a second folder that its tools may read and write, for what is not to lie in the project. Empty for `~/outrigger/projects/{name}`; of two folders of one name the second has `~/outrigger/projects/NAME-DIGEST`.
    pub(crate) central: PathBuf,
    /// Folders that a session may name as its project instead, e.g. `["~/src/*"]`: globs over absolute paths without
    /// links. A wildcard matches no name that begins with a dot.
    pub(crate) allowed: Vec<String>,
    /// Names of files with standing instructions: of each folder the first one that is there. They are told the model as the
    /// user's words, never as the system's. Those of the user's own, in the folder of the configuration, are read without a question.
    pub(crate) instructions: Vec<String>,
    /// Folders of a project with skills: each skill is a folder in one of them with a `SKILL.md`. The user's own are in `skills` in
    /// the folder of the configuration.
    pub(crate) skills: Vec<String>,
    /// Whether such files of a project are read, and its skills: `off`; `ask`, once for each content, before the model is told it; `on`.
    #[serde(deserialize_with = "word")]
    pub(crate) instructions_trust: InstructionsTrust,
}

/// Whether what a project says to a model is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstructionsTrust {
    /// It is not.
    Off,
    /// Where the user says yes to its very content.
    #[default]
    Ask,
    /// It is.
    On,
}

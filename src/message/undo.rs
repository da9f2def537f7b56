//! A change of a file, and what it takes to undo it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The SHA-256 of a file's content.
pub type ContentHash = [u8; 32];

/// A change of a file that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The folder that it is below, absolute and without links.
    pub root: String,
    /// Its path there, `/` between components.
    pub path: String,
    /// What is there.
    pub before: Before,
    /// What is to be there; `None` for nothing.
    pub after: Option<ContentHash>,
    /// A unified diff of the two; empty where one is no text.
    pub diff: String,
}

/// What a file is before it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// There is none.
    Missing,
    /// It has this content.
    Content {
        /// The content.
        bytes: Vec<u8>,
        /// Its mode bits, where it is about to be removed.
        mode: Option<u32>,
    },
    /// It is larger than what is read whole.
    TooLarge,
}

/// Why a file is not put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NotReverted {
    /// Somebody has changed it since, or something else is in its place.
    Changed,
    /// It is gone.
    Gone,
    /// It is as it was before.
    Unchanged,
    /// What it held was larger than what is kept, is too old, or could not be kept then.
    NotKept,
    /// A command changed it, of which no content is kept.
    Command,
    /// It lies in a folder that the session does not work in now.
    Elsewhere,
    /// The system, or a rule about what tools may write, does not let it be written.
    Failed,
}

//! What is known of a session when its journal begins.

use super::{EVENTS, IDS, restored};

/// What is known of a session when its journal begins.
#[derive(Debug)]
pub(crate) struct Known {
    /// Whether the store has it.
    pub is_made: bool,
    pub has_title: bool,
    pub project: Option<String>,
    /// The highest numbers of events and ids that are reserved.
    pub seq: u64,
    pub ids: u64,
}

impl Known {
    /// Returns what is known of a session that nobody has used.
    pub(crate) fn new(project: Option<String>) -> Self {
        Self {
            is_made: false,
            has_title: false,
            project,
            seq: EVENTS.0,
            ids: IDS.0,
        }
    }

    /// Returns what is known of one that the store has.
    pub(crate) fn of(restored: &restored::Restored) -> Self {
        Self {
            is_made: true,
            has_title: restored.title.is_some(),
            project: restored.project.clone(),
            seq: restored.seq + restored.reserved_seq,
            ids: restored.ids + restored.reserved_ids,
        }
    }
}

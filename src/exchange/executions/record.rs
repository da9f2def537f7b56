//! How a record is kept: of a call of which nothing more comes as JSON, which takes half the room.

use std::borrow::Cow;
use std::sync::Arc;

use crate::protocol::record::ExecutionRecord;
use crate::store::{json, restored};

#[derive(Clone, Debug)]
pub(super) enum KeptRecord {
    /// Of a call that is open, or whose command goes on in the background.
    Whole(Box<ExecutionRecord>),
    Packed(Arc<str>),
}

impl KeptRecord {
    pub(super) fn packed(record: &ExecutionRecord) -> Self {
        Self::Packed(json(record).into())
    }

    /// Returns the record; `None`, with a line of the log, where its JSON cannot be read, which nothing is known to bring
    /// about.
    pub(super) fn read(&self) -> Option<Cow<'_, ExecutionRecord>> {
        match self {
            Self::Whole(record) => Some(Cow::Borrowed(record)),
            Self::Packed(text) => restored::read(text, "the record of a call").map(Cow::Owned),
        }
    }
}

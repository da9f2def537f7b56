//! Calls whose input is still streaming: a client knows of them, and they are not open yet.

use parking_lot::Mutex;

use crate::message::ToolId;

/// The calls of one turn of a conversation, as many as the model began.
#[derive(Debug, Default)]
pub struct AnnouncedCalls(Mutex<Vec<ToolId>>);

impl AnnouncedCalls {
    /// Notes a call that the model begins.
    pub fn begin(&self, id: ToolId) {
        self.0.lock().push(id);
    }

    /// Forgets the calls of a turn that is over.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns the calls begun, oldest first; some may be open by now.
    pub fn ids(&self) -> Vec<ToolId> {
        self.0.lock().clone()
    }
}

//! What changes of files take to be undone, on its way into the session's journal.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::executions::Executions;
use crate::message::Undo;
use crate::store::Journal;
use crate::store::files::Author;
use crate::telemetry::Redactor;
use crate::tool::undo::Keep;

/// Keeps it for one call, or for what the user puts back.
pub(crate) struct Keeper {
    pub journal: Journal,
    /// Takes secrets out of what is shown of a change; what is put back has them.
    pub redactor: Redactor,
    pub executions: Arc<Executions>,
    pub author: Author,
}

impl Keep for Keeper {
    fn keep(&self, mut undo: Undo) {
        undo.diff = self.redactor.redact(&undo.diff).into_owned();
        // In one commit with the call, of which it is not written yet that it began.
        let call = self.author.call.as_ref();
        let record = call.and_then(|id| self.executions.get(id));
        self.journal.file(&self.author, record.as_ref(), undo);
        // There is one wherever tools run.
        if let Ok(runtime) = Handle::try_current() {
            runtime.block_on(self.journal.settled());
        }
    }

    fn unmade(&self, root: &str, path: &str) {
        self.journal.file_unmade(&self.author, root, path);
    }
}

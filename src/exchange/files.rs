//! What changes of files take to be undone, on its way into the session's journal.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::executions::Executions;
use crate::message::Undo;
use crate::sandbox::paths::PathError;
use crate::store::Journal;
use crate::store::files::Author;
use crate::telemetry::Redactor;
use crate::tool::undo::Keep;

/// What is said where it cannot be kept.
const NOT_KEPT: &str = "the store of sessions does not take what the file was before, and another daemon may have this session soon; nothing was written";

/// Keeps it for one call, or for what the user puts back.
pub(crate) struct Keeper {
    pub journal: Journal,
    /// Takes secrets out of what is shown of a change; what is put back has them.
    pub redactor: Redactor,
    pub executions: Arc<Executions>,
    pub author: Author,
}

impl Keep for Keeper {
    fn keep(&self, mut undo: Undo) -> Result<(), PathError> {
        undo.diff = self.redactor.redact(&undo.diff).into_owned();
        // In one commit with the call, of which it is not written yet that it began.
        let call = self.author.call.as_ref();
        let record = call.and_then(|id| self.executions.get(id));
        self.journal.file(&self.author, record.as_ref(), undo);
        // There is one wherever tools run.
        let is_kept = Handle::try_current().is_ok_and(|it| it.block_on(self.journal.settled()));
        match is_kept {
            true => Ok(()),
            false => Err(PathError::Failed(NOT_KEPT.to_owned())),
        }
    }

    fn unmade(&self, root: &str, path: &str) {
        self.journal.file_unmade(&self.author, root, path);
    }
}

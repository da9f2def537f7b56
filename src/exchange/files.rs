//! What changes of files take to be undone, on its way into the session's journal.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::executions::Executions;
use crate::message::Undo;
use crate::sandbox::paths::PathError;
use crate::store::Journal;
use crate::store::files::Author;
use crate::telemetry::Redactor;
use crate::tool::undo::Keep;

/// What is said where it cannot be kept.
const NOT_KEPT: &str = "the store of sessions does not take what the file was before, and another daemon may have this session soon; nothing was written";

/// What is said where its call was cancelled while it was kept.
const CANCELLED: &str = "cancelled; nothing was written";

/// Keeps it for one call, or for what the user puts back.
pub(crate) struct Keeper {
    pub journal: Journal,
    /// Takes secrets out of what is shown of a change; what is put back has them.
    pub redactor: Redactor,
    pub executions: Arc<Executions>,
    pub author: Author,
    /// Cancelled where the change is not to be made any more.
    pub cancel: CancellationToken,
}

impl Keep for Keeper {
    fn keep(&self, mut undo: Undo) -> Result<(), PathError> {
        // Its session may be over.
        if self.cancel.is_cancelled() {
            return Err(PathError::Failed(CANCELLED.to_owned()));
        }
        undo.diff = self.redactor.redact(&undo.diff).into_owned();
        // In one commit with the call, of which it is not written yet that it began.
        let call = self.author.call.as_ref();
        let record = call.and_then(|id| self.executions.get(id));
        self.journal.file(&self.author, record.as_ref(), undo);
        let settled = self.cancel.run_until_cancelled(self.journal.settled());
        // There is one wherever tools run.
        let settled = Handle::try_current().ok().map(|it| it.block_on(settled));
        match settled {
            _ if self.cancel.is_cancelled() => Err(PathError::Failed(CANCELLED.to_owned())),
            Some(Some(true)) => Ok(()),
            _ => Err(PathError::Failed(NOT_KEPT.to_owned())),
        }
    }

    fn unmade(&self, root: &str, path: &str) {
        self.journal.file_unmade(&self.author, root, path);
    }
}

//! Texts of a project's files, for a client in this process that shows changes whole.

use std::sync::Arc;

use crate::sandbox::deny::Access;
use crate::telemetry::Redactor;
use crate::tool::visible;
use crate::tool::workspace::Workspace;

/// The files of a project.
pub(crate) struct ProjectFiles {
    workspace: Arc<Workspace>,
    redactor: Redactor,
}

impl ProjectFiles {
    pub(super) fn new(workspace: Arc<Workspace>, redactor: Redactor) -> Self {
        Self {
            workspace,
            redactor,
        }
    }

    /// Returns a file's text as differences show it: without secrets, with what is invisible escaped, its lines ended by line
    /// feeds. `None` where a tool may not read it, where it is no UTF-8, and where it has more than `most` bytes.
    pub(crate) async fn text(&self, path: String, most: usize) -> Option<String> {
        let (workspace, redactor) = (Arc::clone(&self.workspace), self.redactor.clone());
        let read = tokio::task::spawn_blocking(move || {
            let roots = workspace.exec().ok()?.roots();
            let target = roots.map(&path, Access::Read).ok()?;
            let bytes = roots.locate(&target, Access::Read).ok()?.read().ok()?;
            let text = String::from_utf8(bytes).ok()?;
            if text.len() > most {
                return None;
            }
            Some(visible(&redactor.redact(&text.replace("\r\n", "\n"))))
        });
        read.await.ok()?
    }
}

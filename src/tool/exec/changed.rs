//! Which files of the project a command changed, for whoever is shown its result.

use std::sync::Arc;

use super::Exec;
use crate::message::{ChangedFile, ChangedFiles, FileChange};
use crate::sandbox::paths::{Change, Changes, Tree};
use crate::telemetry::Redactor;

impl Exec {
    /// Looks at the project's files, before a command.
    pub(in super::super) async fn tree(&self) -> Option<Tree> {
        let roots = Arc::clone(&self.roots);
        let look = tokio::task::spawn_blocking(move || roots.tree());
        look.await.ok()
    }

    /// Says what is other than it was before; `None` where nothing is.
    pub(in super::super) async fn changed_since(
        &self,
        before: Option<Tree>,
        redactor: &Redactor,
    ) -> Option<ChangedFiles> {
        let incomplete = ChangedFiles {
            incomplete: true,
            ..ChangedFiles::default()
        };
        let Some(before) = before.filter(Tree::is_complete) else {
            return Some(incomplete);
        };
        let roots = Arc::clone(&self.roots);
        let compare = move || roots.tree().changed_since(&before);
        match tokio::task::spawn_blocking(compare).await {
            Ok(changes) => told(changes, redactor),
            Err(_) => Some(incomplete),
        }
    }
}

fn told(changes: Changes, redactor: &Redactor) -> Option<ChangedFiles> {
    let told = ChangedFiles {
        more: u64::try_from(changes.more).ok().filter(|more| *more > 0),
        incomplete: !changes.complete,
        files: changes
            .named
            .into_iter()
            .map(|(path, change)| ChangedFile {
                // A command may call a file what it likes.
                path: redactor.redact(&path).into_owned(),
                change: match change {
                    Change::Created => FileChange::Created,
                    Change::Modified => FileChange::Modified,
                    Change::Deleted => FileChange::Deleted,
                },
            })
            .collect(),
    };
    (told.incomplete || !told.files.is_empty()).then_some(told)
}

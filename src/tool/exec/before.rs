//! What there was before a program, and what is other after its end.

use std::sync::Arc;

use super::Exec;
use crate::message::{ChangedFile, ChangedFiles, FileChange};
use crate::sandbox::paths::{Change, Changes, Settings, Tree};
use crate::telemetry::Redactor;

/// What is compared with after a program's end.
pub(super) struct Before {
    /// What editors, shells and agents run by.
    pub(super) settings: Settings,
    /// The project's files, where it is asked which of them the program changed.
    pub(super) tree: Option<Tree>,
}

impl Exec {
    /// Looks at what a program is compared with, at the project's files where it `changes` them.
    pub(super) async fn before(&self, changes: bool) -> Before {
        let tree = async {
            match changes {
                true => Some(self.tree().await),
                false => None,
            }
        };
        let (settings, tree) = tokio::join!(self.settings(), tree);
        Before { settings, tree }
    }

    /// Looks at what editors, shells and agents run by.
    pub(super) async fn settings(&self) -> Settings {
        let roots = Arc::clone(&self.roots);
        tokio::task::spawn_blocking(move || roots.settings())
            .await
            .unwrap_or_default()
    }

    async fn tree(&self) -> Tree {
        let roots = Arc::clone(&self.roots);
        tokio::task::spawn_blocking(move || roots.tree())
            .await
            .unwrap_or_default()
    }

    /// Says which files are other than they were before; `None` where none is, or nobody asked.
    pub(super) async fn changed_since(
        &self,
        before: Option<Tree>,
        redactor: &Redactor,
    ) -> Option<ChangedFiles> {
        let before = before?;
        let incomplete = ChangedFiles {
            incomplete: true,
            ..ChangedFiles::default()
        };
        if !before.is_complete() {
            return Some(incomplete);
        }
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

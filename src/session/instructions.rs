//! What a session says at its begin of the files whose words its model is told as the user's.

use std::sync::Arc;
use std::time::Duration;

use super::projects;
use super::sessions::Daemon;
use crate::config::InstructionsTrust;
use crate::exchange::instructions::{key_of, of_user, shown};
use crate::instructions;
use crate::protocol::trust::InstructionFile;
use crate::tool::workspace::Workspace;

/// How long a session that begins waits for these files: a file system on a network may never answer. They are read again
/// before each exchange.
const PATIENCE: Duration = Duration::from_secs(2);

impl Daemon {
    /// Returns the user's own file and that of the project's folder, where they are read at all.
    pub(super) async fn instructions(&self, workspace: &Arc<Workspace>) -> Vec<InstructionFile> {
        let config = self.services.config();
        let redactor = self.services.redactor.clone();
        let (rules, folder) = (self.rules.clone(), projects::folder(workspace));
        let workspace = Arc::clone(workspace);
        let read = tokio::task::spawn_blocking(move || {
            let settings = &config.project.instructions;
            let mut found = Vec::new();
            found.extend(of_user(settings, &workspace, &redactor));
            if settings.trust != InstructionsTrust::Off
                && let Ok(exec) = workspace.exec()
            {
                let names = &settings.names;
                found.extend(instructions::of_folder(exec.roots(), "", names, &redactor));
            }
            let is_trusted = |words: &instructions::Words| {
                let most = config.approval.remember;
                words.is_users
                    || settings.trust == InstructionsTrust::On
                    || rules.trust_words(folder.as_deref(), &key_of(words), most)
            };
            // Why one cannot be taken is said before an exchange that would be told of it.
            let found = found.into_iter().flatten();
            found
                .map(|words| shown(&words, is_trusted(&words)))
                .collect()
        });
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::error!(%error, "reading instructions ended early");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }
}

//! What a command is given below folders that the daemon holds, opened from them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::SpawnError;
use crate::layers::Step;
use crate::policy::MAX_PLACES;
use crate::{Command, Held};

/// Opens them on a thread that may wait for files, and refuses a held folder that is not at its path any more.
pub(super) async fn open(command: &Command) -> Result<Vec<(PathBuf, OwnedFd)>, SpawnError> {
    if command.held.is_empty() {
        return Ok(Vec::new());
    }
    let held = command.held.clone();
    let mut wanted = Vec::new();
    let required = command.read_write.iter().chain([&command.cwd]);
    let required = required.map(|path| (path, true));
    let optional = command.read_only.iter().map(|path| (path, false));
    for (path, is_required) in required.chain(optional) {
        let is_new = wanted.iter().all(|(other, _)| other != path);
        if is_new && held.iter().any(|folder| path.starts_with(folder.path())) {
            wanted.push((path.clone(), is_required));
        }
    }
    let opened = tokio::task::spawn_blocking(move || {
        if let Some(folder) = held.iter().find(|folder| folder.is_moved()) {
            return Err(SpawnError::Moved(folder.path().to_owned()));
        }
        if wanted.len() > MAX_PLACES {
            return Err(SpawnError::refused(
                Step::Prepare,
                format_args!(
                    "a command is given {MAX_PLACES} folders of the project and its central storage at most"
                ),
            ));
        }
        let mut places = Vec::with_capacity(wanted.len());
        for (path, is_required) in wanted {
            match Held::open(&path, &held) {
                Ok(place) => places.push((path, place)),
                // What is only read may be missing.
                Err(error) if !is_required && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(SpawnError::refused(Step::Prepare, error)),
            }
        }
        Ok(places)
    });
    opened
        .await
        .unwrap_or_else(|error| Err(SpawnError::Helper(io::Error::other(error))))
}

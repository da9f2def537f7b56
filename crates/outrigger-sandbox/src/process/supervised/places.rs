//! What a command is given below folders that the daemon holds, opened from them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use super::SpawnError;
use crate::layers::Step;
use crate::policy::MAX_PLACES;
use crate::{Command, held};

/// Open places, by their paths.
#[derive(Debug)]
pub(super) struct Places(Vec<(PathBuf, OwnedFd)>);

impl Places {
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(_, place)| place.as_fd())
    }
}

/// Opens them, on a thread that may wait for files.
///
/// # Errors
///
/// [`SpawnError::Moved`] where a held folder is not at its path any more; [`SpawnError::Refused`] where one of the places
/// cannot be opened.
pub(super) async fn open(command: &Command) -> Result<Places, SpawnError> {
    if command.held.is_empty() {
        return Ok(Places(Vec::new()));
    }
    let held = command.held.clone();
    let mut wanted = Vec::new();
    let required = command.read_write.iter().chain([&command.cwd]);
    let wished = command.read_only.iter();
    for (path, is_required) in required
        .map(|path| (path, true))
        .chain(wished.map(|path| (path, false)))
    {
        let is_new = wanted.iter().all(|(other, _)| other != path);
        if is_new && held::within(path, &held).is_some() {
            wanted.push((path.clone(), is_required));
        }
    }
    let opened = tokio::task::spawn_blocking(move || {
        if let Some(folder) = held::moved(&held) {
            return Err(SpawnError::Moved(folder.path().to_owned()));
        }
        if wanted.len() > MAX_PLACES {
            return Err(refused(format!(
                "a command is given {MAX_PLACES} folders of the project and its central storage at most"
            )));
        }
        let mut places = Vec::with_capacity(wanted.len());
        for (path, is_required) in wanted {
            match held::open(&path, &held) {
                Ok(place) => places.push((path, place)),
                // What is only read may be missing.
                Err(error) if !is_required && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused(error.to_string())),
            }
        }
        Ok(Places(places))
    });
    opened
        .await
        .unwrap_or_else(|error| Err(SpawnError::Helper(io::Error::other(error))))
}

fn refused(reason: String) -> SpawnError {
    let step = Step::Prepare;
    SpawnError::Refused { step, reason }
}

//! What no file tool writes: what commands see read-only, by the same finder and the same answer of git.

use std::io;
use std::path::{Path, PathBuf};

use super::{Cache, Pinned, PlaceholderKind, protect};
use crate::GitAccess;

/// Returns the files and folders in these roots that git takes programs or settings from, also those that are not there
/// yet; links are not followed. Looks at files and may wait for git; for a thread that may block.
///
/// # Errors
/// Where git does not say what its settings name, and never did, or where what is there cannot be looked at.
pub(crate) fn unwritten(roots: &[PathBuf], home: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    // Without what the settings name: a command cannot make the folders above a missing one, a file tool may.
    let protection = protect(roots, &[], GitAccess::ReadOnly, &[])?;
    let pins = protection.pins.into_iter();
    let read_only = pins.filter(|pin| pin.what == Pinned::ReadOnly);
    let taken = protection.placeholders.into_iter();
    let mut places: Vec<_> = read_only.map(|pin| pin.path).collect();
    places.extend(taken.map(|placeholder| placeholder.path));
    for root in roots {
        places.extend(named(root, home)?);
    }
    Ok(places)
}

/// Returns the folder of hooks and the further files that a root's settings name, also outside of it. The same holds.
pub(crate) fn named(root: &Path, home: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    let references = Cache::known().wait_for(root, home)?;
    Ok(references.named.clone())
}

/// Whether a file of settings is as long as one of ours.
pub(crate) fn may_be_placeholder(bytes: u64) -> bool {
    let ours = PlaceholderKind::Settings.content().map(<[u8]>::len);
    ours.and_then(|ours| u64::try_from(ours).ok()) == Some(bytes)
}

/// Whether a file of settings is one of ours.
pub(crate) fn is_placeholder(content: &[u8]) -> bool {
    PlaceholderKind::Settings.content() == Some(content)
}

//! How the text of a path is read on this system, and compared with a root's.

use std::path::{Path, PathBuf};

use super::PathError;
#[cfg(windows)]
use super::failure::outside;
#[cfg(windows)]
use super::windows::{self, Refused};

/// Brings a path into the form in which it is compared and walked; refuses one that means nothing below any root.
#[cfg(not(windows))]
#[expect(clippy::unnecessary_wraps, reason = "paths are refused on Windows")]
pub(super) fn read(path: PathBuf, _requested: &str) -> Result<PathBuf, PathError> {
    Ok(path)
}

/// Returns the path below a root; `None` where it is not below it.
#[cfg(not(windows))]
pub(super) fn below(path: &Path, root: &Path) -> Option<PathBuf> {
    path.strip_prefix(root).ok().map(Path::to_owned)
}

/// Refuses names below a root that lead elsewhere than they say.
#[cfg(not(windows))]
#[expect(clippy::unnecessary_wraps, reason = "names are refused on Windows")]
pub(super) fn check(_relative: &Path, _requested: &str) -> Result<(), PathError> {
    Ok(())
}

/// Whether a path as it was requested can only be a folder.
pub(super) fn is_folder(requested: &str) -> bool {
    let is_separator = |letter| letter == '/' || cfg!(windows) && letter == '\\';
    let bare = requested.strip_suffix('.').unwrap_or(requested);
    bare.ends_with(is_separator)
}

#[cfg(windows)]
pub(super) fn read(path: PathBuf, requested: &str) -> Result<PathBuf, PathError> {
    let text = path.into_os_string().into_string();
    let text = text.map_err(|_| outside(requested))?;
    let written = windows::read(&text).map_err(|refused| failure(refused, requested))?;
    Ok(PathBuf::from(written.text()))
}

#[cfg(windows)]
pub(super) fn below(path: &Path, root: &Path) -> Option<PathBuf> {
    let read = |path: &Path| windows::read(path.to_str()?).ok();
    let names = windows::below(&read(path)?, &read(root)?)?;
    Some(names.iter().collect())
}

#[cfg(windows)]
pub(super) fn check(relative: &Path, requested: &str) -> Result<(), PathError> {
    let text = relative.to_str().ok_or_else(|| outside(requested))?;
    let written = windows::read(text).map_err(|refused| failure(refused, requested))?;
    if written.drive.is_some() {
        return Err(outside(requested));
    }
    windows::check(&written.names).map_err(|refused| failure(refused, requested))
}

#[cfg(windows)]
fn failure(refused: Refused, requested: &str) -> PathError {
    match refused {
        Refused::Outside => outside(requested),
        Refused::Name { name, why } => PathError::Forbidden(format!(
            "path {requested:?} may not be used: {name:?}: {why}"
        )),
    }
}

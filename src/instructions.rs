//! Files with standing instructions, as they are read: those of a project, by handles inside of its folder, and the user's own.
//!
//! What is read here is told the model as the user's words, once the user has said yes to it (`exchange/instructions.rs`). It
//! is read once: what was shown and what is told are the same text, whatever the file holds later.

mod own;
pub(crate) mod skills;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Found, PathError, RootName, Roots};
use crate::telemetry::Redactor;
use crate::terminal_text::visible;

/// The largest file of instructions, in bytes: more than anybody reads before saying yes.
pub(crate) const MAX_BYTES: usize = 32 * 1024;

/// What a file says, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// Its path as it is named to people and models: below the project, or absolute where it is the user's own.
    pub path: String,
    /// Its absolute path, by which an answer is kept.
    pub absolute: String,
    /// Whether it is the user's own.
    pub is_users: bool,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: usize,
    /// What it says, as it is shown and told: without secrets, what is invisible escaped.
    pub text: String,
}

impl Words {
    /// Returns its folder, as that is named to people and models.
    pub(crate) fn folder(&self) -> String {
        let folder = Path::new(&self.path).parent();
        folder.unwrap_or(Path::new("")).display().to_string()
    }
}

/// Reads the instructions of a folder of the project, which is named by its path below it and empty for the project's own: the
/// first of the names that is there. `None` where there is none, or it says nothing. Fails with why it cannot be taken.
pub(crate) fn of_folder(
    roots: &Roots,
    folder: &str,
    names: &[String],
    redactor: &Redactor,
) -> Option<Result<Words, String>> {
    let read = names.iter().find_map(|name| {
        let path = match folder {
            "" => name.clone(),
            folder => format!("{folder}/{name}"),
        };
        of_project(roots, &path, redactor)
    });
    read.filter(says_something)
}

/// Reads a file of the project; `None` where there is none.
pub(crate) fn of_project(
    roots: &Roots,
    path: &str,
    redactor: &Redactor,
) -> Option<Result<Words, String>> {
    let read = || -> Result<Option<Vec<u8>>, PathError> {
        // Whatever its folder is called, it is below the project.
        let target = roots.map(&format!("./{path}"), Access::Read)?;
        let located = roots.locate(&target, Access::Read)?;
        if matches!(located.found(), Found::Missing | Found::Folder(_)) {
            return Ok(None);
        }
        let bytes = bounded(located.open()?);
        let bytes = bytes.map_err(|error| PathError::Failed(error.to_string()))?;
        Ok(Some(bytes))
    };
    let root = roots.path(RootName::Project);
    let words = match read() {
        Ok(None) => return None,
        Ok(Some(bytes)) => words(path, &root.join(path), &bytes, redactor),
        Err(error) => Err(format!("{path}: {error}")),
    };
    // Names are the project's: nothing in them is hidden, or moves what is read.
    let words = words.map_err(|problem| visible(&problem));
    Some(words)
}

/// Reads the user's own instructions, which are the user's to link to wherever they are outside of the project.
pub(crate) fn of_user(
    folder: &Path,
    names: &[String],
    roots: Option<&Roots>,
    redactor: &Redactor,
) -> Option<Result<Words, String>> {
    let read = |name| own::of_own(&folder.join(name), roots, redactor);
    names.iter().find_map(read).filter(says_something)
}

/// Reads a file of the user's own, wherever it is.
fn read_own(path: &Path, redactor: &Redactor) -> Result<Words, String> {
    let shown = path.display().to_string();
    let bytes = File::open(path).and_then(bounded);
    let bytes = bytes.map_err(|error| format!("{shown}: {error}"))?;
    Ok(Words {
        is_users: true,
        ..words(&shown, path, &bytes, redactor)?
    })
}

/// Returns a path as it is named below a folder; `None` where it is not below it, or no text.
fn below(path: &Path, folder: &Path) -> Option<String> {
    let below = path.strip_prefix(folder).ok()?;
    let parts = below.components().map(|part| part.as_os_str().to_str());
    Some(parts.collect::<Option<Vec<&str>>>()?.join("/"))
}

/// Reads a file, and one byte more than it may have.
fn bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn words(path: &str, absolute: &Path, bytes: &[u8], redactor: &Redactor) -> Result<Words, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!(
            "{path}: it is larger than {} KiB, and none of it is told; make it shorter",
            MAX_BYTES / 1024
        ));
    }
    let text = str::from_utf8(bytes)
        .map_err(|_| format!("{path}: it is no UTF-8 text, and none of it is told"))?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    Ok(Words {
        path: visible(path),
        absolute: absolute.to_string_lossy().into_owned(),
        is_users: false,
        sha256: data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)),
        bytes: bytes.len(),
        text: visible(&redactor.redact(&text)),
    })
}

fn says_something(words: &Result<Words, String>) -> bool {
    words
        .as_ref()
        .map_or(true, |words| !words.text.trim().is_empty())
}

#[cfg(test)]
mod tests;

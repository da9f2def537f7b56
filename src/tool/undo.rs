//! What a change of a file takes to be undone: it is kept before the change is made, and put back when the user asks
//! for it.
//!
//! A file is put back in the way in which tools write: from an open root, through no link, as a whole.

use std::path::{Path, PathBuf};

use super::diff::compare;
use super::seen::Fingerprint;
use super::text::decode;
use crate::message::{Before, ContentHash, NotReverted, Undo};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{Located, PathError, RootName, Roots};

/// Where it is kept.
pub trait Keep: Send + Sync {
    /// Keeps what a change takes to be undone. Blocks until that is safe, or things go on without; for a thread that may.
    ///
    /// Fails where the change must not be made.
    fn keep(&self, undo: Undo) -> Result<(), PathError>;

    /// The change of this file, kept last, was not made after all.
    fn unmade(&self, root: &str, path: &str);
}

/// Where nothing is kept.
impl Keep for () {
    fn keep(&self, _: Undo) -> Result<(), PathError> {
        Ok(())
    }

    fn unmade(&self, _: &str, _: &str) {}
}

/// Makes a change that can be undone: what it takes is kept, then `change` makes it.
///
/// Fails where the file is no longer `before` by then, or where the change fails; then nothing was changed.
pub(super) fn undoable(
    keep: &dyn Keep,
    located: &Located<'_>,
    undo: Undo,
    change: impl FnOnce() -> Result<(), PathError>,
) -> Result<(), PathError> {
    let (root, path) = (undo.root.clone(), undo.path.clone());
    let before = State::of(&undo.before);
    let kept = keep.keep(undo);
    // The disk may have taken its time.
    let is_same = kept.and_then(|()| Ok(State::of(&look(located)?) == before));
    let changed = is_same.and_then(|is_same| match is_same {
        true => change(),
        false => Err(PathError::Failed(format!(
            "file {path:?} was changed by someone else at this moment; nothing was written; read it again"
        ))),
    });
    if changed.is_err() {
        keep.unmade(&root, &path);
    }
    changed
}

/// What a file is, to be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Content(ContentHash),
    TooLarge,
}

impl State {
    fn of(before: &Before) -> Self {
        match before {
            Before::Missing => Self::Missing,
            Before::Content { bytes, .. } => Self::Content(Fingerprint::of(bytes).hash()),
            Before::TooLarge => Self::TooLarge,
        }
    }

    fn is(self, hash: Option<ContentHash>) -> bool {
        match self {
            Self::Missing => hash.is_none(),
            Self::Content(content) => hash == Some(content),
            Self::TooLarge => false,
        }
    }
}

fn look(located: &Located<'_>) -> Result<Before, PathError> {
    match located.read() {
        Ok(bytes) => Ok(Before::Content { bytes, mode: None }),
        Err(PathError::Missing(_)) => Ok(Before::Missing),
        Err(PathError::TooLarge(_)) => Ok(Before::TooLarge),
        Err(error) => Err(error),
    }
}

/// A file to be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The folder that it is below, as in [`Undo`].
    pub root: String,
    /// Its path there.
    pub path: String,
    /// What it may hold now: what the changes that are undone have left, each of them; `None` for no file.
    pub left: Vec<Option<ContentHash>>,
    /// What it is to hold; `None` for no file.
    pub content: Option<Content>,
}

/// What a file is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its mode bits, where it is made anew.
    pub mode: Option<u32>,
}

/// Why a file stays as it is; for the user.
pub type Left = (NotReverted, String);

/// Returns the identity of a file for locks; `None` where the session does not work in its folder.
pub fn identity(roots: &Roots, root: &str, path: &str) -> Option<String> {
    Some(roots.identity(root_of(roots, root)?, path))
}

/// Puts a file back where it is what a tool has left, and keeps what that takes to be undone. Blocks; for a thread that
/// may.
pub fn put_back(roots: &Roots, wanted: &PutBack, keep: &dyn Keep) -> Result<(), Left> {
    let PutBack {
        root,
        path,
        left,
        content,
    } = wanted;
    let Some(name) = root_of(roots, root) else {
        let text = format!("it lies in {root}, where the session does not work now");
        return Err((NotReverted::Elsewhere, text));
    };
    let failed = |error: PathError| (NotReverted::Failed, error.to_string());
    // What looks like the home directory is a name here.
    let requested = match name {
        RootName::Project => format!("./{path}"),
        RootName::Central | RootName::Further(_) => roots.spelling(name, path),
    };
    let misled = || {
        let text = "a link leads elsewhere in its place";
        (NotReverted::Changed, text.to_owned())
    };
    // There was none when it was written. Where it leads outside, that is a rule's word, and no reason for the user.
    let refused = |error: PathError| match has_link(root, path) {
        true => misled(),
        false => failed(error),
    };
    let target = roots.map(&requested, Access::Write).map_err(refused)?;
    let located = roots.locate(&target, Access::Write).map_err(refused)?;
    if (located.root(), located.relative()) != (name, path) {
        return Err(misled());
    }
    let mut before = look(&located).map_err(failed)?;
    let (now, goal) = (State::of(&before), content.as_ref());
    let after = goal.map(|it| Fingerprint::of(&it.bytes).hash());
    if now.is(after) {
        let text = "it is as it was before";
        return Err((NotReverted::Unchanged, text.to_owned()));
    }
    if !left.iter().any(|hash| now.is(*hash)) {
        return Err(match now {
            State::Missing => (NotReverted::Gone, "it is gone".to_owned()),
            State::Content(_) | State::TooLarge => {
                (NotReverted::Changed, "it was changed since".to_owned())
            }
        });
    }
    let diff = difference(path, &before, goal);
    if let (Before::Content { mode, .. }, None) = (&mut before, goal) {
        *mode = located.mode();
    }
    let undo = Undo {
        root: root.clone(),
        path: path.clone(),
        before,
        after,
        diff,
    };
    let change = || match goal {
        Some(content) => located.restore(&content.bytes, content.mode),
        None => located.remove(),
    };
    undoable(keep, &located, undo, change).map_err(failed)
}

/// Returns whether the file, or a folder that it was in, is a link by now. For words alone: nothing is let in by it.
fn has_link(root: &str, path: &str) -> bool {
    let mut at = PathBuf::from(root);
    Path::new(path).components().any(|part| {
        at.push(part);
        at.is_symlink()
    })
}

fn difference(path: &str, before: &Before, after: Option<&Content>) -> String {
    let old = match before {
        Before::Missing => Some(None),
        Before::Content { bytes, .. } => decode(bytes).ok().map(Some),
        Before::TooLarge => None,
    };
    let new = match after {
        None => Some(String::new()),
        Some(content) => decode(&content.bytes).ok().map(|text| text.content),
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            let old = old.as_ref().map(|text| text.content.as_str());
            compare(path, old, &new).text
        }
        _ => String::new(),
    }
}

/// Returns which of the folders that file tools write in this is.
fn root_of(roots: &Roots, root: &str) -> Option<RootName> {
    let mut names = [RootName::Project, RootName::Central].into_iter();
    names.find(|name| roots.path(*name) == Path::new(root))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

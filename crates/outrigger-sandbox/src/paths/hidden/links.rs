//! Where links with a secret's name lead: what they name is as secret as they are.
//!
//! Looked at anew for each command: what a link leads to changes without the link's own folder.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::super::secrets::{Identity, Known};
use super::super::walk::{Found, Located};
use super::super::{RootName, Roots, Target};
use super::{MAX_DEPTH, MAX_ENTRIES};
use crate::deny;

/// Deepest folder on the way that a link leads: it may begin and end as deep as anything is looked at.
const MAX_WAY: usize = 2 * MAX_DEPTH;

/// A link that makes a secret of what it leads to, or of what is in it.
pub(super) struct Link {
    pub(super) root: RootName,
    pub(super) path: PathBuf,
    /// Whether it lies in a folder that is secret as a whole.
    pub(super) in_secret: bool,
}

impl Link {
    fn is_secret(&self) -> bool {
        self.in_secret || deny::hidden(&self.path.to_string_lossy())
    }
}

impl Roots {
    /// Adds what the links lead to, and what it makes a secret of; tells whether a folder is among it that was not known.
    ///
    /// What is outside the roots is no command's to read, and what is not there is nobody's.
    pub(super) fn add_linked(&self, links: &[Link], known: &mut Known) -> bool {
        let mut found_folder = false;
        for link in links {
            let Some(located) = self.led_to(link.root, &link.path) else {
                continue;
            };
            if link.is_secret() {
                found_folder |= add(&located, known);
            } else if let Found::Folder(folder) = located.found() {
                for below in secrets_within(folder, &link.path) {
                    let located = self.led_to(link.root, &below);
                    found_folder |= located.is_some_and(|located| add(&located, known));
                }
            }
        }
        found_folder
    }

    fn led_to(&self, root: RootName, path: &Path) -> Option<Located<'_>> {
        let target = Target {
            root,
            relative: path.to_owned(),
            shown: path.to_string_lossy().into_owned(),
            folder: false,
        };
        self.lead(&target, MAX_WAY, true).ok()
    }
}

/// The entries that are secrets by the name of the folder, which is that of a link.
fn secrets_within(folder: &Dir, link: &Path) -> Vec<PathBuf> {
    let entries = folder.entries().into_iter().flatten().flatten();
    let below = entries
        .take(MAX_ENTRIES)
        .map(|entry| link.join(entry.file_name()));
    let is_secret = |path: &PathBuf| {
        let path = path.to_string_lossy();
        deny::hidden(&path) || deny::hidden_folder(&path)
    };
    below.filter(is_secret).collect()
}

/// Adds one; tells whether it is a folder that was not known.
fn add(located: &Located<'_>, known: &mut Known) -> bool {
    let found = match located.found() {
        // A root itself is never hidden: nothing could be run in it.
        Found::Folder(_) if located.relative() == "." => None,
        Found::Folder(folder) => {
            let metadata = folder.dir_metadata().ok();
            metadata.map(|it| (Identity::of_open(folder, &it), it.is_dir()))
        }
        Found::File => {
            let metadata = located.parent.symlink_metadata(&located.name).ok();
            metadata.map(|it| (Identity::of(&it), it.is_dir()))
        }
        Found::Missing | Found::Other(_) => None,
    };
    let Some((identity, is_folder)) = found else {
        return false;
    };
    let is_new = !known.holds(identity);
    known.add(identity);
    is_new && is_folder
}

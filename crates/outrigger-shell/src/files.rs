//! Files that a line writes, downloads or unpacks.
//!
//! They are on the disk: what a subshell or a shell string does to them is there for the rest of the line, so all
//! scopes of a line share them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::expand::UNKNOWN;
use super::paths::{plain_glob, same_name};
use super::table::wildcard;

/// Most files that are kept in mind; later ones count as not known.
const MAX_STORED: usize = 64;

/// Stands for every name that is not known.
const UNKNOWN_NAME: &str = "\u{1a}";

/// What the line did to files so far; a clone is the same files.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Rc<RefCell<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Names, without their directories, of files that hold what was downloaded or decoded.
    downloads: HashSet<String>,
    /// A whole tree was downloaded or unpacked: what is run by its path may be of it.
    cloned: bool,
    /// Files that the line writes, with what it writes where that is known.
    stored: Vec<(String, Option<Rc<str>>)>,
}

impl Files {
    /// Keeps in mind that the file holds what was downloaded or decoded.
    pub(super) fn download(&self, path: &str) {
        let name = last_part(path).to_owned();
        self.0.borrow_mut().downloads.insert(name);
    }

    /// Whether the file, or one that the pattern matches, may hold what was downloaded or decoded.
    pub(super) fn is_download(&self, path: &str) -> bool {
        let name = last_part(path);
        let known = &self.0.borrow().downloads;
        let pattern = plain_glob(name);
        !name.is_empty()
            && (known.contains(name)
                || pattern.contains(['*', '?'])
                    && known.iter().any(|known| wildcard(&pattern, known)))
    }

    /// Keeps in mind that a whole tree was brought from elsewhere, or not.
    pub(super) fn bring_tree(&self, brought: bool) {
        self.0.borrow_mut().cloned |= brought;
    }

    pub(super) fn has_tree(&self) -> bool {
        self.0.borrow().cloned
    }

    /// Keeps in mind what is written to a file.
    pub(super) fn store(&self, path: &str, text: Option<String>) {
        let stored = &mut self.0.borrow_mut().stored;
        if stored.len() < MAX_STORED && !path.starts_with("/dev/") {
            stored.push((path.to_owned(), text.map(Rc::from)));
        }
    }

    /// Returns each text that the line wrote to the file; `None` for one that is not known.
    pub(super) fn texts(&self, path: &str) -> Vec<Option<Rc<str>>> {
        let stored = &self.0.borrow().stored;
        let pattern = plain_glob(last_part(path));
        let named = |name: &str| {
            same_name(name, path)
                || pattern.contains(['*', '?']) && wildcard(&pattern, last_part(name))
        };
        let texts = stored.iter().filter(|(name, _)| named(name));
        texts.map(|(_, text)| text.clone()).collect()
    }
}

/// Returns the last part of a path; a dynamic one, whatever it is, may be any other dynamic one.
fn last_part(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.contains(UNKNOWN) {
        UNKNOWN_NAME
    } else {
        name
    }
}

//! Files that git runs by its settings: the folder of `core.hooksPath`, and further files of settings. Their names are in
//! no list, so they are found each time before a file is written, and before and after a command.

use std::ffi::OsStr;
#[cfg(not(target_os = "linux"))]
use std::io;
use std::path::Path;
#[cfg(not(target_os = "linux"))]
use std::path::PathBuf;

use cap_std::fs::Dir;

use super::failure::forbidden;
use super::walk::MAX_DEPTH;
use super::{Found, Located, PathError, RootName, Roots, Target, without_parents};
use crate::deny::{Access, RUN_BY_GIT, fold};
#[cfg(target_os = "linux")]
use crate::git::{is_placeholder, may_be_placeholder, named, unwritten};

/// Returns nothing: on this system git is not asked.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "git may fail on Linux")]
fn unwritten(_roots: &[PathBuf], _home: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    Ok(Vec::new())
}

#[cfg(not(target_os = "linux"))]
fn is_placeholder(_content: &[u8]) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn may_be_placeholder(_bytes: u64) -> bool {
    false
}

/// Whether a file of so many bytes is none of the user's, but holds a name while a command runs.
pub(super) fn holds_a_name(dir: &Dir, name: &OsStr, bytes: u64) -> bool {
    may_be_placeholder(bytes) && dir.read(name).is_ok_and(|content| is_placeholder(&content))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "git may fail on Linux")]
fn named(_root: &Path, _home: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    Ok(Vec::new())
}

impl Roots {
    /// Refuses a file that git runs, by the path that was asked for and by where that leads.
    pub(super) fn check_git(
        &self,
        target: &Target,
        located: &Located<'_>,
    ) -> Result<(), PathError> {
        let mut roots = vec![RootName::Project, located.root];
        roots.dedup();
        let roots: Vec<_> = roots
            .iter()
            .map(|root| self.path(*root).to_owned())
            .collect();
        let places = unwritten(&roots, self.home.as_deref()).map_err(|error| {
            PathError::Failed(format!(
                "path {:?} cannot be written: {error}",
                located.shown
            ))
        })?;
        let written = [
            (target.root, fold(&target.shown)),
            (located.root, fold(&located.relative)),
        ];
        let places = places.iter().flat_map(|place| self.names_of(place));
        for (root, place) in places {
            let place = fold(&place);
            let place = Path::new(&place);
            let is_in = |(of, path): &(RootName, String)| {
                // Of names that are folded, so not by the file system's.
                *of == root && Path::new(path).starts_with(place)
            };
            if written.iter().any(is_in) {
                return Err(forbidden(&located.shown, Access::Write, RUN_BY_GIT));
            }
        }
        Ok(())
    }

    /// Returns what git's settings name in the project and what is there, as paths in it; nothing where git does not say.
    pub(super) fn named_by_git(&self) -> Vec<String> {
        let places = named(self.path(RootName::Project), self.home.as_deref());
        let places = places.unwrap_or_default();
        let places = places.iter().flat_map(|place| self.names_of(place));
        let in_project = places.filter(|(root, _)| *root == RootName::Project);
        let names = in_project.map(|(_, name)| name);
        names.filter(|name| !self.runs_nothing(name)).collect()
    }

    /// Whether an empty folder or a placeholder of a command that runs is there, or nothing.
    fn runs_nothing(&self, name: &str) -> bool {
        let target = Target {
            root: RootName::Project,
            relative: name.into(),
            shown: name.to_owned(),
            folder: false,
        };
        let Ok(led) = self.lead(&target, MAX_DEPTH, false) else {
            return false;
        };
        match &led.found {
            Found::Missing => true,
            Found::Folder(dir) => dir.entries().is_ok_and(|mut all| all.next().is_none()),
            Found::File => led.read().is_ok_and(|content| is_placeholder(&content)),
            Found::Other(_) => false,
        }
    }

    /// Returns a place by its own path and by where that leads, as far as either is in a root and not all of it.
    fn names_of(&self, place: &Path) -> Vec<(RootName, String)> {
        let Some((root, relative)) = self.strip(place, false) else {
            return Vec::new();
        };
        let Some(shown) = without_parents(&relative) else {
            return Vec::new();
        };
        let target = Target {
            root,
            relative,
            shown,
            folder: false,
        };
        // A link that leads to nothing yet is followed, too: what is made there is what git finds.
        let led = self.lead(&target, MAX_DEPTH, false).ok();
        let led = led.map(|led| (led.root, led.relative));
        let mut names = vec![(root, target.shown)];
        names.extend(led);
        names.retain(|(_, name)| !name.is_empty());
        names
    }
}

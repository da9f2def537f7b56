//! From a mapped path to handles, one component at a time.
//!
//! The kernel's `..` is never used, the walk goes back to the handle it came from. A link is read and its target mapped
//! like a request, so an absolute link that points inside works and one that points outside is refused by its text.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata};

use super::super::deny::{self, Access};
use super::failure::{failed, forbidden, missing, outside, was_swapped, word_for};
use super::form;
use super::{EntryKind, PathError, Root, RootName, Roots, Target, join, or_dot};

/// Most symbolic links followed for one path; the kernel's own limit. A name that changed between
/// two looks at it counts as well, so that nobody can keep a walk busy.
const MAX_LINKS: usize = 40;

/// Deepest folder walked to; each level holds a handle open meanwhile.
pub(super) const MAX_DEPTH: usize = 128;

const UP: &str = "..";

/// Where a path leads, with the handle of its folder.
#[derive(Debug)]
pub struct Located<'a> {
    pub(super) roots: &'a Roots,
    pub(super) root: RootName,
    /// The folder that holds it, or the deepest one there is where folders are missing.
    pub(super) parent: Dir,
    pub(super) missing: Vec<OsString>,
    /// Its name in its folder; empty for a root itself.
    pub(super) name: OsString,
    pub(super) relative: String,
    /// The path as it was asked for, for texts.
    pub(super) shown: String,
    pub(super) found: Found,
}

/// What is at the end of a path.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Missing,
    /// A regular file, by a look that opening it repeats.
    File,
    /// A folder, opened.
    Folder(Dir),
    /// Something that is neither; the word for it.
    Other(&'static str),
}

impl Located<'_> {
    /// Returns the root it is below.
    pub fn root(&self) -> RootName {
        self.root
    }

    /// Returns the path that was walked, below its root; `"."` for the root itself.
    pub fn relative(&self) -> &str {
        or_dot(&self.relative)
    }

    /// Returns what is at the end of the path.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Returns the identity of what was found, for locks and memory.
    pub fn identity(&self) -> String {
        self.roots.identity(self.root, &self.relative)
    }
}

impl Roots {
    /// Walks a mapped path and tells where it leads; changes nothing. Refused is what leads outside the roots or onto the
    /// deny list, and what goes through a file, a missing folder, a loop of links or too deep; and for writing, what git
    /// runs by its settings, for which git may be waited for.
    pub fn locate(&self, target: &Target, access: Access) -> Result<Located<'_>, PathError> {
        let located = self.lead(target, MAX_DEPTH, false)?;
        let denied = match (&located.found, access) {
            (Found::Folder(_), Access::Look) => deny::denied_folder(&located.relative, access),
            _ => deny::denied(&located.relative, access),
        };
        if let Some(reason) = denied {
            return Err(forbidden(&located.shown, access, reason));
        }
        if access == Access::Write {
            self.check_git(target, &located)?;
        }
        Ok(located)
    }

    /// The same without the deny list; `deepest` is how many folders deep it goes, `further` whether links may lead to the
    /// folders for commands.
    pub(super) fn lead(
        &self,
        target: &Target,
        deepest: usize,
        further: bool,
    ) -> Result<Located<'_>, PathError> {
        let mut walk = Walk {
            roots: self,
            root: self.root(target.root),
            above: Vec::new(),
            names: Vec::new(),
            ahead: VecDeque::new(),
            links: 0,
            deepest,
            further,
            shown: self.spelling(target.root, target.relative()),
        };
        walk.plan(&target.relative);
        walk.run(target.folder)
    }
}

struct Walk<'a> {
    roots: &'a Roots,
    root: &'a Root,
    /// Handles of the folders walked into, and their names.
    above: Vec<Dir>,
    names: Vec<OsString>,
    /// Names that are still to be walked into; `..` is the folder above.
    ahead: VecDeque<OsString>,
    links: usize,
    deepest: usize,
    further: bool,
    shown: String,
}

impl<'a> Walk<'a> {
    fn plan(&mut self, path: &Path) {
        for component in path.components().rev() {
            if matches!(component, Component::Normal(_) | Component::ParentDir) {
                self.ahead.push_front(component.as_os_str().to_owned());
            }
        }
    }

    fn run(mut self, folder: bool) -> Result<Located<'a>, PathError> {
        while let Some(name) = self.ahead.pop_front() {
            if name == UP {
                self.go_up()?;
                continue;
            }
            let Some(metadata) = self.look(&name)? else {
                return self.end_missing(name, folder);
            };
            match EntryKind::of(metadata.file_type()) {
                EntryKind::Link => self.follow(name)?,
                EntryKind::Folder => self.enter(name)?,
                _ if folder || !self.ahead.is_empty() => {
                    self.names.push(name);
                    return Err(PathError::Failed(format!(
                        "path {:?} goes through {:?}, which is not a folder",
                        self.shown,
                        join(&self.names)
                    )));
                }
                EntryKind::File => return self.located(name, Vec::new(), Found::File),
                EntryKind::Other => {
                    let found = Found::Other(word_for(&metadata));
                    return self.located(name, Vec::new(), found);
                }
            }
        }
        self.end_at_folder()
    }

    fn here(&self) -> &Dir {
        self.above.last().unwrap_or(&self.root.dir)
    }

    fn go_up(&mut self) -> Result<(), PathError> {
        self.names.pop();
        match self.above.pop() {
            Some(_) => Ok(()),
            None => Err(outside(&self.shown)),
        }
    }

    fn look(&self, name: &OsString) -> Result<Option<Metadata>, PathError> {
        match self.here().symlink_metadata(name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&self.shown, &error)),
        }
    }

    fn enter(&mut self, name: OsString) -> Result<(), PathError> {
        self.check_depth(self.above.len() + 1)?;
        match self.here().open_dir_nofollow(&name) {
            Ok(dir) => {
                self.above.push(dir);
                self.names.push(name);
                Ok(())
            }
            Err(error) if was_swapped(&error) => self.look_again(name),
            Err(error) => Err(failed(&self.shown, &error)),
        }
    }

    fn follow(&mut self, name: OsString) -> Result<(), PathError> {
        let target = match self.here().read_link_contents(&name) {
            Ok(target) => target,
            Err(error) if was_swapped(&error) => return self.look_again(name),
            Err(error) => return Err(failed(&self.shown, &error)),
        };
        self.count_link()?;
        let target = form::read(target, &self.shown)?;
        if !target.is_absolute() {
            form::check(&target, &self.shown)?;
            self.plan(&target);
            return Ok(());
        }
        let (root, rest) = self.roots.strip(&target, self.further).ok_or_else(|| {
            PathError::Forbidden(format!(
                "path {:?} leads through a link to a place outside the project and its central storage",
                self.shown
            ))
        })?;
        form::check(&rest, &self.shown)?;
        self.root = self.roots.root(root);
        self.above.clear();
        self.names.clear();
        self.plan(&rest);
        Ok(())
    }

    /// Takes the same step once more, for what was there a moment ago is something else now.
    fn look_again(&mut self, name: OsString) -> Result<(), PathError> {
        self.ahead.push_front(name);
        self.count_link()
    }

    fn count_link(&mut self) -> Result<(), PathError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathError::Failed(format!(
                "path {:?} goes through more than {MAX_LINKS} symbolic links, or a loop of them",
                self.shown
            )));
        }
        Ok(())
    }

    fn end_missing(mut self, name: OsString, folder: bool) -> Result<Located<'a>, PathError> {
        let mut names = vec![name];
        names.extend(std::mem::take(&mut self.ahead));
        if folder || names.iter().any(|name| name == UP) {
            return Err(missing(&self.shown));
        }
        self.check_depth(self.names.len() + names.len())?;
        let name = names.pop().unwrap_or_default();
        self.located(name, names, Found::Missing)
    }

    fn check_depth(&self, depth: usize) -> Result<(), PathError> {
        if depth > self.deepest {
            return Err(PathError::Failed(format!(
                "path {:?} is more than {} folders deep",
                self.shown, self.deepest
            )));
        }
        Ok(())
    }

    fn end_at_folder(mut self) -> Result<Located<'a>, PathError> {
        let dir = self.cloned(self.here())?;
        let name = self.names.pop().unwrap_or_default();
        self.above.pop();
        self.located(name, Vec::new(), Found::Folder(dir))
    }

    fn located(
        mut self,
        name: OsString,
        missing: Vec<OsString>,
        found: Found,
    ) -> Result<Located<'a>, PathError> {
        let parent = match self.above.pop() {
            Some(dir) => dir,
            None => self.cloned(&self.root.dir)?,
        };
        let mut names = self.names;
        names.extend(missing.iter().cloned());
        if !name.is_empty() {
            names.push(name.clone());
        }
        Ok(Located {
            roots: self.roots,
            root: self.root.name,
            parent,
            missing,
            name,
            relative: join(&names),
            shown: self.shown,
            found,
        })
    }

    fn cloned(&self, dir: &Dir) -> Result<Dir, PathError> {
        dir.try_clone().map_err(|error| failed(&self.shown, &error))
    }
}

//! The two folders that tools may touch, and the way from a requested path to a handle below them.
//!
//! A requested path is first mapped to a root by its text alone ([`Roots::map`]); then [`Roots::locate`] walks it from the
//! root's handle, one component at a time: a link is read, its target mapped anew and walked in the same way. So nothing
//! that others do to the folders meanwhile leads outside. What is found is read and replaced through [`Located`] only.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parking_lot::Mutex;

use super::Held;
use super::deny::{self, Access};
use failure::{forbidden, outside};
use secrets::Known;

mod changes;
mod contents;
mod failure;
mod form;
mod hidden;
mod ignored;
mod replace;
mod root;
mod secrets;
mod settings;
mod tree;
mod unwritten;
mod walk;
#[cfg(any(windows, test))]
mod windows;

pub use changes::{Change, Changes, MAX_NAMED, Tree};
pub use contents::MAX_FILE_BYTES;
pub use failure::PathError;
pub use root::{RootsError, of_the_system, refused_to_commands};
pub use settings::Settings;
pub use tree::{Entry, EntryKind, Step, Visited};
pub use walk::{Found, Located};

/// Longest path accepted, in bytes: Linux's own limit.
const MAX_PATH_BYTES: usize = 4096;

/// Longest component accepted, in bytes: the limit of all common file systems.
const MAX_NAME_BYTES: usize = 255;

/// Ways in which models spell the home directory.
const HOME_SPELLINGS: &[&str] = match cfg!(windows) {
    true => &["~", "$HOME", "${HOME}", "%USERPROFILE%", "$env:USERPROFILE"],
    false => &["~", "$HOME", "${HOME}"],
};

/// What stands between the names of a path.
const SEPARATORS: &[char] = match cfg!(windows) {
    true => &['/', '\\'],
    false => &['/'],
};

/// Which of the two folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootName {
    /// The folder the user works in.
    Project,
    /// The project's folder in central storage.
    Central,
    /// A further folder for commands, by its number. No tool for files reaches it.
    Further(usize),
}

/// What commands may do in a further folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// They read what is there.
    ReadOnly,
    /// They change it.
    ReadWrite,
}

/// The folders that tools may touch.
#[derive(Debug)]
pub struct Roots {
    project: Root,
    central: Root,
    further: Vec<(Root, Reach)>,
    home: Option<PathBuf>,
    /// Locked for a walk or one question, never across an await.
    secrets: Mutex<Known>,
}

#[derive(Debug)]
struct Root {
    name: RootName,
    dir: Arc<Dir>,
    path: PathBuf,
    /// Every absolute path it is known by, the canonical one included.
    spellings: Vec<PathBuf>,
    hidden: hidden::Memory,
}

/// A requested path that was mapped to a root by its text; nothing was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    root: RootName,
    /// Below the root, `..` kept: what it means depends on the links on the way.
    relative: PathBuf,
    /// Below the root with `..` taken away, `/` between components; empty for the root itself.
    shown: String,
    /// It ends with a slash, so that it can only be a folder.
    folder: bool,
}

impl Target {
    /// Returns the root it is below.
    pub fn root(&self) -> RootName {
        self.root
    }

    /// Returns the path below its root, `/` between components; `"."` for the root itself.
    pub fn relative(&self) -> &str {
        or_dot(&self.shown)
    }
}

/// Returns a path below a root as it is shown; the root itself has a name, too.
fn or_dot(relative: &str) -> &str {
    if relative.is_empty() { "." } else { relative }
}

/// Files that commands are to find nothing at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Absolute canonical paths of files and folders.
    pub paths: Vec<PathBuf>,
    /// The entries `.git` of both roots and of folders in them, but for those in what is hidden.
    pub repositories: Vec<PathBuf>,
    /// Whether everything was looked at; where not, nothing may run, since secrets could be seen.
    pub complete: bool,
}

impl Roots {
    /// Opens both roots; the central one is created where it is missing. Refused are folders that are too much to hand
    /// out: `/`, the home directory (for which `~` stands) or one above it, a system directory, a folder of credentials.
    pub fn open(project: &Path, central: &Path, home: Option<&Path>) -> Result<Self, RootsError> {
        root::create_central(central)?;
        Ok(Self {
            project: Root::open(RootName::Project, project, home)?,
            central: Root::open(RootName::Central, central, home)?,
            further: Vec::new(),
            home: home.map(Path::to_owned),
            secrets: Mutex::default(),
        })
    }

    /// Adds further folders for commands. Tools for files do not reach them, and secrets are hidden in them, too.
    pub fn with_further(mut self, folders: &[(PathBuf, Reach)]) -> Result<Self, RootsError> {
        for (path, reach) in folders {
            let name = RootName::Further(self.further.len());
            let root = Root::open(name, path, self.home.as_deref())?;
            self.further.push((root, *reach));
        }
        Ok(self)
    }

    /// Returns the further folders as they are open.
    pub fn further(&self) -> impl Iterator<Item = (Held, Reach)> {
        let held = |root: &Root| Held::new(&root.path, Arc::clone(&root.dir));
        self.further
            .iter()
            .map(move |(root, reach)| (held(root), *reach))
    }

    /// Whether an absolute path lies in a further folder, by its text.
    pub fn is_in_further(&self, path: &Path) -> bool {
        let mut spellings = self.further.iter().flat_map(|(root, _)| &root.spellings);
        spellings.any(|spelling| path.starts_with(spelling))
    }

    /// Returns a root's path without symbolic links.
    pub fn path(&self, root: RootName) -> &Path {
        &self.root(root).path
    }

    /// Returns both roots as they are open, for commands that work in them.
    pub fn held(&self) -> Vec<Held> {
        [&self.project, &self.central]
            .map(|root| Held::new(&root.path, Arc::clone(&root.dir)))
            .into()
    }

    /// Returns whether both are open on the same folders, wherever those are by now.
    pub fn is_same(&self, other: &Self) -> bool {
        let held = self.held();
        held.iter()
            .zip(&other.held())
            .all(|(one, other)| one.is_same(other))
    }

    /// Returns whether both folders are still at their paths, with no link on the way.
    pub fn is_in_place(&self) -> bool {
        !self.held().iter().any(Held::is_moved)
    }

    /// Maps a requested path to a root, by its text alone; refuses what is outside both roots or on the deny list.
    ///
    /// Relative paths are below the project; absolute ones must begin with a root, component by component; `~` is the
    /// home directory.
    pub fn map(&self, requested: &str, access: Access) -> Result<Target, PathError> {
        check_text(requested)?;
        let path = form::read(self.expand_home(requested)?, requested)?;
        let outside = || outside(requested);
        let (root, relative) = if path.is_absolute() {
            self.strip(&path, false).ok_or_else(outside)?
        } else {
            (RootName::Project, path)
        };
        form::check(&relative, requested)?;
        let shown = without_parents(&relative).ok_or_else(outside)?;
        let denied = match access {
            Access::Read | Access::Write => deny::denied(&shown, access),
            // Whether it is a folder is not known before it was looked at.
            Access::Look => deny::denied_folder(&shown, access),
        };
        if let Some(reason) = denied {
            return Err(forbidden(requested, access, reason));
        }
        Ok(Target {
            root,
            relative,
            shown,
            folder: form::is_folder(requested),
        })
    }

    /// Returns the way a file is named to the model: relative in the project, absolute elsewhere.
    pub fn spelling(&self, root: RootName, relative: &str) -> String {
        match root {
            RootName::Project => relative.to_owned(),
            RootName::Central | RootName::Further(_) => {
                self.root(root).path.join(relative).to_string_lossy().into()
            }
        }
    }

    /// Returns the identity of a file for locks and memory: absolute, folded.
    pub fn identity(&self, root: RootName, relative: &str) -> String {
        let absolute = self.root(root).path.join(relative);
        deny::fold(&absolute.to_string_lossy())
    }

    /// Returns the identities of the folders that commands may change.
    pub fn changeable(&self) -> Vec<String> {
        let further = self.further.iter().zip(0..);
        let further = further.filter(|((_, reach), _)| *reach == Reach::ReadWrite);
        let further = further.map(|(_, number)| RootName::Further(number));
        let roots = [RootName::Project, RootName::Central]
            .into_iter()
            .chain(further);
        roots.map(|root| self.identity(root, "")).collect()
    }

    fn root(&self, name: RootName) -> &Root {
        match name {
            RootName::Project => &self.project,
            RootName::Central => &self.central,
            // There is no such number but those that were given to one.
            RootName::Further(number) => {
                let further = self.further.get(number);
                further.map_or(&self.central, |(root, _)| root)
            }
        }
    }

    /// Returns the root that an absolute path is below; `further` says whether those for commands count.
    fn strip(&self, path: &Path, further: bool) -> Option<(RootName, PathBuf)> {
        let further = self
            .further
            .iter()
            .map(|(root, _)| root)
            .filter(move |_| further);
        [&self.project, &self.central]
            .into_iter()
            .chain(further)
            .flat_map(|root| root.spellings.iter().map(move |spelling| (root, spelling)))
            .filter_map(|(root, spelling)| {
                let rest = form::below(path, spelling)?;
                Some((spelling.components().count(), root.name, rest))
            })
            .max_by_key(|(length, ..)| *length)
            .map(|(_, name, rest)| (name, rest))
    }

    /// Puts the home directory where its sign is; a folder `~` in the project helps nobody.
    fn expand_home(&self, requested: &str) -> Result<PathBuf, PathError> {
        let separators = SEPARATORS;
        let (first, rest) = requested.split_once(separators).unwrap_or((requested, ""));
        if !HOME_SPELLINGS.contains(&first) {
            return Ok(PathBuf::from(requested));
        }
        match &self.home {
            Some(home) => Ok(home.join(rest.trim_start_matches(separators))),
            None => Err(outside(requested)),
        }
    }
}

impl Root {
    fn open(name: RootName, path: &Path, home: Option<&Path>) -> Result<Self, RootsError> {
        let (canonical, given) = root::check(path, home)?;
        let dir = Dir::open_ambient_dir(&canonical, ambient_authority())
            .map_err(|source| RootsError::unusable(path, &source))?;
        let mut spellings = vec![canonical.clone(), given];
        spellings.dedup();
        Ok(Self {
            name,
            dir: Arc::new(dir),
            path: canonical,
            spellings,
            hidden: hidden::Memory::default(),
        })
    }
}

/// Returns a path with the links of what exists of it resolved. Does file I/O.
pub fn real_path(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|above| {
            let real = crate::canonicalize(above).ok()?;
            Some(real.join(path.strip_prefix(above).ok()?))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// Refuses what no system call should ever see.
fn check_text(requested: &str) -> Result<(), PathError> {
    let problem = if requested.is_empty() {
        "is empty; give a path below the project".to_owned()
    } else if requested.contains('\0') {
        "has a NUL character".to_owned()
    } else if requested.len() > MAX_PATH_BYTES {
        format!(
            "has {} bytes; at most {MAX_PATH_BYTES} are possible",
            requested.len()
        )
    } else if requested
        .split(SEPARATORS)
        .any(|name| name.len() > MAX_NAME_BYTES)
    {
        format!("has a component of more than {MAX_NAME_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(PathError::Failed(format!("the path {problem}")))
}

/// Takes `.` and `..` away by text; `None` where that leaves the root.
fn without_parents(relative: &Path) -> Option<String> {
    let mut names: Vec<OsString> = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(names.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(join(&names))
}

/// Joins names to a path as it is shown and judged: `/` between them on every system.
fn join(names: &[OsString]) -> String {
    names
        .iter()
        .map(|name| name.to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

//! What depends on the project: its folders, what runs in them, and the tools there are for it.
//!
//! A session owns an `Arc` of its workspace, and whatever needs the project takes it from there. Sessions on the same
//! folder share one, which is dropped with the last of them. [`Workspaces::open`] checks a folder that a client names as
//! the daemon's own is checked at the start, and that the operator allows it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Weak};

use outrigger_store::User;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::exec::Exec;
use super::{Registry, core};
use crate::config::{Current, Project, Projects, ToolsConfig, central};
use crate::notices::Notices;
use crate::sandbox::paths::{RootName, Roots};
use crate::sandbox::{self, Sandbox};

/// The most projects, besides the daemon's own, that sessions work in at once: each holds open folders, and remembers
/// what its tree hides.
const MAX_WORKSPACES: usize = 64;

/// The most of them that are there for one of several users.
const MAX_OF_A_USER: usize = 16;

/// The most folders that are opened at a time: a file system that hangs holds a thread for as long as it does.
const MAX_OPENING: usize = 8;

/// Everything that depends on the project.
pub struct Workspace {
    place: Result<Place, String>,
    /// The tools there are.
    pub registry: Arc<Registry>,
}

struct Place {
    project: Project,
    exec: Exec,
}

/// Why a folder is not opened as a project; reads as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// The operator does not allow it.
    #[error("{0}")]
    Forbidden(String),
    /// It can be no project, or not now.
    #[error("{0}")]
    Unusable(String),
    /// Sessions work in too many projects.
    #[error(
        "sessions work in {} projects already; close one of them first",
        MAX_WORKSPACES
    )]
    TooMany,
    /// Those of one user do.
    #[error(
        "sessions of this user work in {} projects already; close one of them first",
        MAX_OF_A_USER
    )]
    TooManyOfUser,
}

/// What every workspace of a daemon is made of.
pub struct Common {
    /// Limits and settings of tools.
    pub tools: ToolsConfig,
    /// The daemon's own project, and the folders that sessions may name.
    pub projects: Projects,
    /// What confines commands.
    pub sandbox: Sandbox,
    /// The daemon's own environment, of which little is passed on.
    pub environment: BTreeMap<String, String>,
    /// Values that are never passed on.
    pub secrets: Vec<String>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Files of the daemon's that no tool may reach, without links, and what they are: the audit log, the store of sessions.
    pub own_files: Vec<(PathBuf, &'static str)>,
}

/// The workspaces of a daemon.
pub struct Workspaces {
    common: Common,
    own: Arc<Workspace>,
    /// The tools that need no project: every session has them.
    everywhere: Arc<Registry>,
    /// Those besides the daemon's own, as long as sessions use them, each with who opened it; held for a look at them.
    others: Mutex<Vec<(Weak<Workspace>, User)>>,
    opening: Arc<Semaphore>,
}

impl Workspace {
    /// Makes one without a project; `why` says so.
    pub fn without_project(why: String, everywhere: &Arc<Registry>) -> Self {
        Self {
            place: Err(why),
            registry: Arc::new(Registry::beside(everywhere, [])),
        }
    }

    /// Returns the project, or why there is none.
    pub fn project(&self) -> Result<&Project, &str> {
        let place = self.place.as_ref();
        place.map(|place| &place.project).map_err(String::as_str)
    }

    /// Returns what programs are run with in the project, or why there is none.
    pub fn exec(&self) -> Result<&Exec, &str> {
        let place = self.place.as_ref();
        place.map(|place| &place.exec).map_err(String::as_str)
    }

    fn is_in(&self, roots: &Roots) -> bool {
        self.exec().is_ok_and(|exec| exec.roots().is_same(roots))
    }
}

impl Workspaces {
    /// Makes the daemon's own workspace in its open folders, or without a project where there are none.
    pub fn new(
        mut common: Common,
        own: Result<Arc<Roots>, String>,
        settings: &Current,
        notices: &Notices,
    ) -> Self {
        let everywhere = core::everywhere(&common.tools, settings, notices);
        let everywhere = Arc::new(Registry::new(everywhere));
        if let Some(path) = common.environment.get_mut("PATH") {
            *path = outside(path, &common.projects);
        }
        let project = match &common.projects.own {
            Ok(project) => own.map(|roots| (project.clone(), roots)),
            Err(why) => Err(why.clone()),
        };
        let own = match project {
            Ok((project, roots)) => common.workspace(project, &roots, &everywhere),
            Err(why) => Workspace::without_project(why, &everywhere),
        };
        Self {
            common,
            own: Arc::new(own),
            everywhere,
            others: Mutex::default(),
            opening: Arc::new(Semaphore::new(MAX_OPENING)),
        }
    }

    /// Returns that of the daemon's own project.
    pub fn own(&self) -> &Arc<Workspace> {
        &self.own
    }

    /// Returns the tools that need no project.
    pub fn everywhere(&self) -> &Arc<Registry> {
        &self.everywhere
    }

    /// Returns a place for [`open`](Self::open), to be held until that is done; `None` where too many are being opened.
    pub fn place_to_open(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.opening).try_acquire_owned().ok()
    }

    /// Opens the project that a client of a user names by its absolute path. Looks at files; to be called within a runtime.
    pub fn open(&self, user: &User, named: &str) -> Result<Arc<Workspace>, NotOpened> {
        let folder = folder(named)?;
        if self.own.project().is_ok_and(|own| own.root == folder) {
            return Ok(Arc::clone(&self.own));
        }
        // Before the file system is asked: whoever may not name a folder learns nothing of it.
        self.common.allow(&folder)?;
        let project = self.common.project(folder)?;
        let roots = self.common.roots(&project)?;
        let find = |others: &mut Vec<(Weak<Workspace>, User)>| {
            others.retain(|(other, _)| other.strong_count() > 0);
            let mut open = others.iter().filter_map(|(other, _)| other.upgrade());
            open.find(|other| other.is_in(&roots))
        };
        if let Some(known) = find(&mut self.others.lock()) {
            return Ok(known);
        }
        let made = self.common.workspace(project, &roots, &self.everywhere);
        let made = Arc::new(made);
        {
            let mut others = self.others.lock();
            // Another session may have been faster.
            if let Some(known) = find(&mut others) {
                return Ok(known);
            }
            if others.len() >= MAX_WORKSPACES {
                return Err(NotOpened::TooMany);
            }
            let own = others.iter().filter(|(_, by)| by == user).count();
            // The one without a name is the only one, or operates the daemon.
            if *user != User::default() && own >= MAX_OF_A_USER {
                return Err(NotOpened::TooManyOfUser);
            }
            others.push((Arc::downgrade(&made), user.clone()));
        }
        // What an earlier daemon left half-written when it was killed.
        tokio::task::spawn_blocking(move || roots.sweep());
        Ok(made)
    }
}

impl Common {
    fn workspace(
        &self,
        project: Project,
        roots: &Arc<Roots>,
        everywhere: &Arc<Registry>,
    ) -> Workspace {
        let exec = Exec::new(
            self.sandbox.clone(),
            Arc::clone(roots),
            self.environment.clone(),
            &self.secrets.iter().map(String::as_str).collect::<Vec<_>>(),
            self.tools.output_cap,
        )
        .limited(self.tools.bash.limits.of_commands());
        let tools = core::of_project(&self.tools, roots, &exec, self.home.as_deref());
        Workspace {
            place: Ok(Place { project, exec }),
            registry: Arc::new(Registry::beside(everywhere, tools)),
        }
    }

    fn allow(&self, folder: &Path) -> Result<(), NotOpened> {
        let allowed = &self.projects.allowed;
        if allowed.contains(folder) {
            return Ok(());
        }
        Err(NotOpened::Forbidden(match allowed.is_empty() {
            true => "sessions may name no project here; the operator allows folders with project.allowed, e.g. [\"~/src/*\"]".to_owned(),
            false => format!(
                "{} is not among the folders that the operator allows as projects (project.allowed)",
                folder.display()
            ),
        }))
    }

    /// Returns an allowed folder as a project, with a central storage of its own.
    fn project(&self, root: PathBuf) -> Result<Project, NotOpened> {
        let shown = root.display();
        let unusable = |why: &str| Err(NotOpened::Unusable(format!("{shown} {why}")));
        match sandbox::canonicalize(&root) {
            Err(error) => {
                return unusable(&format!("cannot be used as a project: {error}"));
            }
            Ok(real) if real != root => {
                let why = "is a link, or a part of the path is one; name the folder by its path without links";
                return unusable(why);
            }
            Ok(_) if !root.is_dir() => return unusable("is no folder"),
            Ok(_) => {}
        }
        let Some(storage) = &self.projects.storage else {
            return unusable(
                "has no place for its central storage: there is no home directory; set project.central",
            );
        };
        let own = self.projects.own.as_ref().ok();
        let mut kept = std::iter::once(storage).chain(own.map(|own| &own.central));
        if kept.any(|kept| overlap(&root, kept)) {
            return unusable("holds central storage of projects, or lies in it");
        }
        let mut own_files = self.own_files.iter();
        if let Some((_, what)) = own_files.find(|(file, _)| file.starts_with(&root)) {
            return unusable(&format!("holds {what}, which no tool may reach"));
        }
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        Ok(Project {
            central: central::of_folder(storage, &root),
            name: name.into_owned(),
            root,
        })
    }

    /// Opens the folders of a project, and makes sure that they are those that were checked.
    fn roots(&self, project: &Project) -> Result<Arc<Roots>, NotOpened> {
        let roots = Roots::open(&project.root, &project.central, self.home.as_deref());
        let roots = roots.and_then(|roots| roots.with_further(&self.tools.bash.further()));
        let roots = roots.map_err(|error| NotOpened::Unusable(error.to_string()))?;
        let root = roots.path(RootName::Project);
        if root != project.root || !roots.is_in_place() {
            return Err(NotOpened::Unusable(format!(
                "{} was changed while it was opened; name it again",
                project.root.display()
            )));
        }
        let settings = sandbox::Settings::new(None).off_memory();
        if settings.holds_pods(root) {
            return Err(NotOpened::Unusable(format!(
                "{} holds temporary files of conversations, which are in {}",
                root.display(),
                settings.temporary.display()
            )));
        }
        if overlap(root, roots.path(RootName::Central)) {
            return Err(NotOpened::Unusable(format!(
                "{} holds its own central storage, or lies in it",
                root.display()
            )));
        }
        Ok(Arc::new(roots))
    }
}

/// Returns the path that a client names, as it stands there but for slashes and dots that say nothing.
fn folder(named: &str) -> Result<PathBuf, NotOpened> {
    let path: PathBuf = Path::new(named).components().collect();
    let is_plain = !named.chars().any(char::is_control)
        && path.is_absolute()
        && path.components().all(|part| part != Component::ParentDir);
    match is_plain {
        true => Ok(path),
        false => Err(NotOpened::Unusable(format!(
            "{named:?} is no project; name a folder by its absolute path, without .. and control characters"
        ))),
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns a search path without what lies in a project: the model of one session may write there what a command of
/// another would run.
fn outside(path: &str, projects: &Projects) -> String {
    let own = projects.own.as_ref().ok();
    let is_outside = |directory: &&str| {
        let directory = Path::new(directory);
        let real = sandbox::canonicalize(directory);
        let real = real.unwrap_or_else(|_| directory.to_owned());
        !own.is_some_and(|own| real.starts_with(&own.root)) && !projects.allowed.covers(&real)
    };
    path.split(':')
        .filter(is_outside)
        .collect::<Vec<_>>()
        .join(":")
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

//! Further folders and caches for commands: nothing of the system, of other programs, or of the daemon's own.

use std::path::{Path, PathBuf};

use super::super::error::one_of;
use super::super::{BashConfig, MCP_STATES, Projects};
use super::findings::Findings;
use crate::sandbox::Settings;
use crate::sandbox::caches;
use crate::sandbox::paths::{real_path, refused_to_commands};

/// Most folders of one key: each is opened for each command.
const MAX_FOLDERS: usize = 16;

const READ_ONLY: [&str; 3] = ["tools", "bash", "read_only"];
const READ_WRITE: [&str; 3] = ["tools", "bash", "read_write"];

/// Checks them, and makes the folders absolute and canonical.
pub(super) fn check(
    bash: &mut BashConfig,
    project: &Projects,
    logs: [(Option<PathBuf>, &'static str); 3],
    findings: &mut Findings<'_>,
) {
    let mut taken = Taken {
        own: own(project, logs, findings),
        project: project.own.as_ref().ok().map(|own| own.root.clone()),
        central: project.own.as_ref().ok().map(|own| real_path(&own.central)),
        settings: Settings::new(None).off_memory(),
        named: Vec::new(),
        writable: Vec::new(),
    };
    bash.read_write = taken.folders(&READ_WRITE, &bash.read_write, findings);
    taken.writable.clone_from(&bash.read_write);
    bash.read_only = taken.folders(&READ_ONLY, &bash.read_only, findings);
    // The user's own skills have scripts, which run as any command does. Nothing else of that folder is reached.
    // Where it is a link it stays theirs alone.
    let skills = project
        .instructions
        .user
        .as_ref()
        .map(|user| real_path(user).join("skills"));
    bash.read_only
        .extend(skills.filter(|folder| folder.is_dir() && real_path(folder) == *folder));
    for name in &bash.caches {
        if !caches::names().any(|known| known == name) {
            let names: Vec<_> = caches::names().collect();
            let message = format!(
                "{name:?} is no cache that is known; {}",
                one_of(name, names)
            );
            findings.refuse(&["tools", "bash", "caches"], message);
        }
    }
}

/// What a folder must not be.
struct Taken {
    /// What the daemon keeps, or is told by, and what that is.
    own: Vec<(PathBuf, &'static str)>,
    project: Option<PathBuf>,
    central: Option<PathBuf>,
    settings: Settings,
    named: Vec<PathBuf>,
    /// Those that commands may change, once they are known.
    writable: Vec<PathBuf>,
}

impl Taken {
    fn folders(
        &mut self,
        key: &[&str],
        given: &[PathBuf],
        findings: &mut Findings<'_>,
    ) -> Vec<PathBuf> {
        if given.len() > MAX_FOLDERS {
            let message = format!("{} folders; allowed: {MAX_FOLDERS}", given.len());
            findings.refuse(key, message);
            return Vec::new();
        }
        let mut folders = Vec::new();
        for path in given {
            let folder = findings.absolute(path);
            match self.refusal(path, &folder, findings.sources.home.as_deref()) {
                None => {
                    // Without a slash at its end.
                    let folder: PathBuf = folder.components().collect();
                    self.named.push(folder.clone());
                    folders.push(folder);
                }
                Some(reason) => {
                    let message = format!("folder {}: {reason}", path.display());
                    findings.refuse(key, message);
                }
            }
        }
        folders
    }

    fn refusal(&self, given: &Path, folder: &Path, home: Option<&Path>) -> Option<String> {
        if !given.is_absolute() && !given.starts_with("~") {
            return Some("give it from the root on, or from the home (`~/…`)".to_owned());
        }
        if let Some(reason) = refused_to_commands(folder, home) {
            return Some(reason);
        }
        let around = |path: &Path| path.starts_with(folder);
        let own = self
            .own
            .iter()
            .find(|(path, _)| around(path) || folder.starts_with(path));
        if let Some((path, what)) = own {
            let path = path.display();
            return Some(format!(
                "{what} ({path}) is there, which no command may reach"
            ));
        }
        if self.settings.holds_pods(folder) {
            return Some(
                "it holds temporary files of conversations; name a folder beside them".to_owned(),
            );
        }
        if self.central.as_deref().is_some_and(around) {
            return Some("the central storage is in it; name a folder beside that".to_owned());
        }
        let mut roots = self.project.iter().chain(&self.central);
        if roots.any(|root| folder.starts_with(root)) {
            return Some(
                "it is in the project or its central storage, which commands reach anyway"
                    .to_owned(),
            );
        }
        if self.named.iter().any(|named| named == folder) {
            return Some("it is named twice".to_owned());
        }
        let around = self.writable.iter().find(|other| folder.starts_with(other));
        around.map(|other| {
            let other = other.display();
            format!("{other} of read_write is around it, where commands may change it")
        })
    }
}

/// Lists what the daemon keeps and what it is told by, as paths without links.
fn own(
    project: &Projects,
    logs: [(Option<PathBuf>, &'static str); 3],
    findings: &Findings<'_>,
) -> Vec<(PathBuf, &'static str)> {
    let sources = findings.sources;
    let files = sources.environment.starting_with("");
    let files = files.filter(|(name, _)| name.ends_with("_FILE"));
    let files = files.map(|(_, path)| (Some(PathBuf::from(path)), "what a variable names"));
    let states = project.storage.as_ref().map(|it| it.join(MCP_STATES));
    [
        (sources.config_file.clone(), "the configuration"),
        (sources.user_directory.clone(), "the configuration"),
        (sources.token_file.clone(), "the token"),
        (sources.record.clone(), "what is recorded"),
        (states, "what MCP servers keep"),
    ]
    .into_iter()
    .chain(files)
    .chain(logs)
    .filter_map(|(path, what)| {
        let path = path.filter(|path| !path.as_os_str().is_empty())?;
        Some((real_path(&sources.working_directory.join(path)), what))
    })
    .collect()
}

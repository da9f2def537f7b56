//! The project's folder: what it may be, its name, its central storage.

use std::path::{Path, PathBuf};

use super::super::ProjectConfig;
use super::super::origin::Origin;
use super::findings::Findings;
use crate::sandbox::paths::of_the_system;

/// Longest part of a path on the file systems there are, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Checks `[project]`; `None` where the root is none.
pub(super) fn check(
    settings: &ProjectConfig,
    findings: &mut Findings<'_>,
) -> Option<ProjectConfig> {
    let root = root(&settings.root, findings);
    let name = name(settings.name.trim(), root.as_deref(), findings);
    let central = central(settings.central.to_string_lossy().trim(), &name, findings);
    let (root, central) = (root?, central?);
    if root.starts_with(&central) {
        findings.refuse(
            &["project", "central"],
            "the central storage must be neither the project's folder nor around it",
        );
        return None;
    }
    Some(ProjectConfig {
        root,
        name,
        central,
    })
}

fn root(text: &Path, findings: &mut Findings<'_>) -> Option<PathBuf> {
    let path = findings.absolute(text);
    let mut refuse = |message: &str| {
        let message = format!("{message}: {}", path.display());
        findings.refuse(&["project", "root"], message);
        None
    };
    let Ok(root) = path.canonicalize() else {
        return refuse("there is no such directory");
    };
    if !root.is_dir() {
        return refuse("it is not a directory");
    }
    if of_the_system(&root).is_some() {
        let message = "a directory of the system can be no project; name a folder of your own";
        return unfit(root, message, findings);
    }
    let home = findings.sources.home.as_deref();
    if home.is_some_and(|home| is_around(&root, home)) {
        return unfit(
            root,
            "the home directory, or one above it, can be no project; name a folder inside",
            findings,
        );
    }
    findings.derive(
        &["project", "root"],
        root.to_string_lossy(),
        findings.merged.origin(&["project", "root"]),
    );
    Some(root)
}

/// Refuses a folder; where nobody named it and no project is needed, a warning is enough.
fn unfit(root: PathBuf, message: &str, findings: &mut Findings<'_>) -> Option<PathBuf> {
    let path = &["project", "root"];
    let message = format!("{message}: {}", root.display());
    let is_named = findings.merged.origin(path) != Origin::Default;
    if is_named || !findings.sources.project_is_optional {
        findings.refuse(path, message);
        return None;
    }
    findings.warnings.push(format!("project.root: {message}"));
    Some(root)
}

fn is_around(directory: &Path, home: &Path) -> bool {
    let real = home.canonicalize();
    home.starts_with(directory) || real.is_ok_and(|home| home.starts_with(directory))
}

fn name(given: &str, root: Option<&Path>, findings: &mut Findings<'_>) -> String {
    let folder = root.and_then(Path::file_name).unwrap_or_default();
    let name = match given {
        "" => folder.to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    let is_part = !matches!(name.as_str(), "." | "..")
        && name.len() <= MAX_NAME_BYTES
        && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control());
    if !is_part {
        findings.refuse(
            &["project", "name"],
            "allowed: one part of a path, without / and \\, of at most 255 bytes",
        );
    }
    if given.is_empty() {
        let origin = Origin::Derived("the folder's name");
        findings.derive(&["project", "name"], name.as_str(), origin);
    }
    name
}

fn central(given: &str, name: &str, findings: &mut Findings<'_>) -> Option<PathBuf> {
    let path = &["project", "central"];
    if !given.is_empty() {
        let central = findings.absolute(given);
        if of_the_system(&central).is_some() {
            findings.refuse(path, "a directory of the system can be no storage");
        }
        if findings.sources.home.as_deref() == Some(central.as_path()) {
            findings.refuse(path, "the home directory itself can be no storage");
        }
        return Some(central);
    }
    let Some(home) = findings.sources.home.as_deref() else {
        findings.refuse(path, "must be set, because there is no home directory");
        return None;
    };
    let central = home.join("outrigger").join("projects").join(name);
    let origin = Origin::Derived("in the home directory");
    findings.derive(path, central.to_string_lossy(), origin);
    Some(central)
}

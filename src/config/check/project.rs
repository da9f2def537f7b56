//! The project's folder: what it may be, its name, its central storage; and those that sessions may name.

use std::path::{Path, PathBuf};

use super::super::central;
use super::super::origin::Origin;
use super::super::sections::ProjectConfig;
use super::super::{AllowedFolders, Instructions, Project, Projects};
use super::findings::Findings;
use crate::sandbox::paths::of_the_system;

/// Longest part of a path on the file systems there are, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The most names of files with instructions: each is looked for in each folder.
const MAX_INSTRUCTIONS: usize = 8;

/// What there is to do about a folder that can be no project.
const ADVICE: &str =
    "start the daemon in a project's folder, or name one with project.root (--project-root)";

/// Checks `[project]`. A folder that cannot be used is a warning: the daemon has no project then.
pub(super) fn check(settings: &ProjectConfig, findings: &mut Findings<'_>) -> Projects {
    let root = root(&settings.root, findings);
    let name = name(settings.name.trim(), root.as_deref().ok(), findings);
    let given = settings.central.to_string_lossy().trim().to_owned();
    let central = match given.as_str() {
        "" => None,
        given => Some(given_central(given, findings)),
    };
    let storage = storage(central.as_deref(), findings.sources.home.as_deref());
    let own = root.map(|root| Project {
        central: central.unwrap_or_else(|| derived_central(&name, &root, findings)),
        root,
        name,
    });
    match &own {
        Ok(own) if own.root.starts_with(&own.central) => findings.refuse(
            &["project", "central"],
            "the central storage must be neither the project's folder nor around it",
        ),
        Ok(_) => {}
        Err(why) => findings.warnings.push(format!("project.root: {why}")),
    }
    let mut allowed = AllowedFolders::default();
    for pattern in &settings.allowed {
        if let Err(why) = allowed.add(pattern.trim(), findings.sources.home.as_deref()) {
            findings.refuse(&["project", "allowed"], format!("{pattern:?}: {why}"));
        }
    }
    let instructions = instructions(settings, own.as_ref().ok(), findings);
    Projects {
        own,
        allowed,
        storage,
        instructions,
    }
}

fn instructions(
    settings: &ProjectConfig,
    own: Option<&Project>,
    findings: &mut Findings<'_>,
) -> Instructions {
    let names: Vec<String> = settings
        .instructions
        .iter()
        .map(|name| name.trim().to_owned())
        .collect();
    if names.len() > MAX_INSTRUCTIONS || !names.iter().all(|name| !name.is_empty() && is_part(name))
    {
        findings.refuse(
            &["project", "instructions"],
            format!("allowed: {MAX_INSTRUCTIONS} names of files at most, without / and \\"),
        );
    }
    let skills: Vec<String> = settings
        .skills
        .iter()
        .map(|it| it.trim().trim_matches('/').to_owned())
        .collect();
    if skills.len() > MAX_INSTRUCTIONS
        || !skills.iter().all(|folder| {
            folder
                .split('/')
                .all(|part| !part.is_empty() && is_part(part))
        })
    {
        findings.refuse(
            &["project", "skills"],
            format!("allowed: {MAX_INSTRUCTIONS} folders below the project at most, without .."),
        );
    }
    let user = findings.sources.user_directory.clone();
    // What lies in a project is that project's.
    let is_outside = |folder: &PathBuf| own.is_none_or(|own| !is_within(folder, &own.root));
    Instructions {
        names,
        skills,
        trust: settings.instructions_trust,
        user: user.filter(is_outside),
    }
}

fn is_within(folder: &Path, root: &Path) -> bool {
    let real = crate::sandbox::canonicalize(folder);
    folder.starts_with(root) || real.is_ok_and(|folder| folder.starts_with(root))
}

/// Returns whether a name is one part of a path.
fn is_part(name: &str) -> bool {
    !matches!(name, "." | "..")
        && name.len() <= MAX_NAME_BYTES
        && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
}

/// Returns the folder, or why it can be no project.
fn root(text: &Path, findings: &mut Findings<'_>) -> Result<PathBuf, String> {
    let path = findings.absolute(text);
    let unfit = |path: &Path, why: &str| Err(format!("{}: {why}; {ADVICE}", path.display()));
    let Ok(root) = crate::sandbox::canonicalize(&path) else {
        return unfit(&path, "there is no such directory");
    };
    if !root.is_dir() {
        return unfit(&path, "it is not a directory");
    }
    if of_the_system(&root).is_some() {
        return unfit(&root, "a directory of the system can be no project");
    }
    let home = findings.sources.home.as_deref();
    if home.is_some_and(|home| is_around(&root, home)) {
        let why = "the home directory, or one above it, can be no project";
        return unfit(&root, why);
    }
    findings.derive(
        &["project", "root"],
        root.to_string_lossy(),
        findings.merged.origin(&["project", "root"]),
    );
    Ok(root)
}

fn is_around(directory: &Path, home: &Path) -> bool {
    let real = crate::sandbox::canonicalize(home);
    home.starts_with(directory) || real.is_ok_and(|home| home.starts_with(directory))
}

fn name(given: &str, root: Option<&Path>, findings: &mut Findings<'_>) -> String {
    let folder = root.and_then(Path::file_name).unwrap_or_default();
    let name = match given {
        "" => folder.to_string_lossy().into_owned(),
        name => name.to_owned(),
    };
    if !is_part(&name) {
        findings.refuse(
            &["project", "name"],
            "allowed: one part of a path, without / and \\, of at most 255 bytes",
        );
    }
    if given.is_empty() && root.is_some() {
        let origin = Origin::Derived("the folder's name");
        findings.derive(&["project", "name"], name.as_str(), origin);
    }
    name
}

fn given_central(given: &str, findings: &mut Findings<'_>) -> PathBuf {
    let path = &["project", "central"];
    let central = findings.absolute(given);
    if of_the_system(&central).is_some() {
        findings.refuse(path, "a directory of the system can be no storage");
    }
    if findings.sources.home.as_deref() == Some(central.as_path()) {
        findings.refuse(path, "the home directory itself can be no storage");
    }
    central
}

fn derived_central(name: &str, root: &Path, findings: &mut Findings<'_>) -> PathBuf {
    let path = &["project", "central"];
    let Some(home) = findings.sources.home.as_deref() else {
        findings.refuse(path, "must be set, because there is no home directory");
        return PathBuf::new();
    };
    let central = central::of_name(home, name, root);
    let origin = Origin::Derived("in the home directory");
    findings.derive(path, central.to_string_lossy(), origin);
    central
}

/// Returns where other projects have their central storage: beside the one that was named, or in the home directory.
fn storage(central: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let beside = central.and_then(|central| {
        let mut name = central.file_name()?.to_owned();
        name.push(".projects");
        Some(central.with_file_name(name))
    });
    beside.or_else(|| home.map(central::in_home))
}

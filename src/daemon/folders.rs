//! The folders that the daemon works in: opened once, and looked at before anybody needs them.

use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, central};
use crate::process::{self, SET_TMPDIR};
use crate::ready::Fatal;
use crate::sandbox::paths::{Reach, RootName, Roots};

/// Opens the folders of the daemon's own project; says why there is none.
pub(super) fn roots(config: &Config, home: Option<&Path>) -> Result<Arc<Roots>, String> {
    let project = config.project.own.as_ref().map_err(String::clone)?;
    if let Some(home) = home {
        central::claim(home, project)
            .inspect_err(|why| tracing::warn!("there is no project: {why}"))?;
    }
    let roots = Roots::open(&project.root, &project.central, home);
    let roots = roots.and_then(|roots| roots.with_further(&config.tools.bash.further()));
    roots.map(Arc::new).map_err(|error| {
        // It names the folder: that of the project, or the central one.
        let why = format!("{error}; set project.root (--project-root) and project.central");
        tracing::warn!("there is no project: {why}");
        why
    })
}

/// Refuses temporary files in a root: there the commands of a conversation would reach the homes of others.
pub(super) fn keep_apart_temporary(temporary: &Path, roots: &Roots) -> Result<(), Fatal> {
    let own = [RootName::Project, RootName::Central];
    if own
        .iter()
        .all(|root| !temporary.starts_with(roots.path(*root)))
    {
        return Ok(());
    }
    Err(Fatal::configuration(
        format!(
            "temporary files would be in {}, where the commands of one conversation reach those of others",
            temporary.display()
        ),
        "set TMPDIR to a folder outside the project and its central storage",
    ))
}

/// Returns what would show only when a tool fails: which folders cannot be written.
pub(super) fn unwritable(temporary: &Path, roots: Option<&Roots>) -> Vec<String> {
    let temporary = process::unwritable(temporary).map(|why| {
        format!(
            "temporary files cannot be made in {} ({why}): commands will fail; {SET_TMPDIR}",
            temporary.display()
        )
    });
    let roots = roots.map_or_else(Vec::new, unwritable_roots);
    temporary.into_iter().chain(roots).collect()
}

fn unwritable_roots(roots: &Roots) -> Vec<String> {
    let own = [
        ("project", roots.path(RootName::Project).to_owned()),
        ("central storage", roots.path(RootName::Central).to_owned()),
    ];
    let further = roots
        .further()
        .filter(|(_, reach)| *reach == Reach::ReadWrite);
    let further =
        further.map(|(folder, _)| ("folder of tools.bash.read_write", folder.path().to_owned()));
    let unwritable = own.into_iter().chain(further).filter_map(|(what, folder)| {
        let why = process::unwritable(&folder)?;
        Some(format!(
            "the {what} {} cannot be written ({why}): tools that change files will fail there; change its owner or mode, or start the daemon as its owner",
            folder.display()
        ))
    });
    unwritable.collect()
}

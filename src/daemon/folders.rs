//! The folders that the daemon works in: opened once, and looked at before anybody needs them.

use std::path::Path;
use std::sync::Arc;

use crate::config::{Config, central};
use crate::process;
use crate::ready::Fatal;
use crate::sandbox;
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
pub(super) fn keep_apart_temporary(roots: &Roots) -> Result<(), Fatal> {
    let temporary = sandbox::Settings::new(None).off_memory().temporary;
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

/// Says at the start what would show only when a tool fails: that a folder cannot be written.
pub(super) fn warn_of_unwritable(roots: &Roots) {
    let own = [
        ("project", roots.path(RootName::Project).to_owned()),
        ("central storage", roots.path(RootName::Central).to_owned()),
    ];
    let further = roots
        .further()
        .filter(|(_, reach)| *reach == Reach::ReadWrite);
    let further =
        further.map(|(folder, _)| ("folder of tools.bash.read_write", folder.path().to_owned()));
    for (what, folder) in own.into_iter().chain(further) {
        if let Some(why) = process::unwritable(&folder) {
            tracing::warn!(
                "the {what} {} cannot be written ({why}): tools that change files will fail there; \
                 change its owner or mode, or start the daemon as its owner",
                folder.display()
            );
        }
    }
}

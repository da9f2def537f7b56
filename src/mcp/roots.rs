//! The folders that a server is told of when it asks for its roots.
//!
//! A program is told of the folder that it runs for, which is the daemon's own project or that of the one session which it
//! serves, and of those that the operator names for it: many take what they are told for all that they may touch, whatever
//! their arguments say. One that serves several sessions runs in the daemon's project and hears of no other, whoever works
//! where. An endpoint is told of none: it serves everybody, may be anywhere, and a path of this machine is no business of its.

#![expect(
    deprecated,
    reason = "roots are on their way out of the protocol; servers of today still ask for them"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rmcp::model::{ListRootsResult, Root};
use rmcp::service::{Peer, RoleClient};
use tokio::sync::watch;

/// The most folders that a server is told of.
const MAX_ROOTS: usize = 32;

/// What a server is told; clones are the same.
#[derive(Clone)]
pub(super) struct Roots(Option<Arc<watch::Sender<Folders>>>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Folders {
    project: Option<PathBuf>,
    named: Vec<PathBuf>,
}

impl Roots {
    /// Of a program that runs for this folder, where there is one.
    pub(super) fn of_program(project: Option<PathBuf>) -> Self {
        let folders = Folders {
            project,
            named: Vec::new(),
        };
        Self(Some(Arc::new(watch::Sender::new(folders))))
    }

    /// Of an endpoint.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Whether the server may ask.
    pub(super) fn are_told(&self) -> bool {
        self.0.is_some()
    }

    /// Returns what a server that asks is told; `None` where it may not ask.
    pub(super) fn list(&self) -> Option<ListRootsResult> {
        let Folders { project, named } = self.0.as_ref()?.borrow().clone();
        let folders = project.iter().chain(&named).take(MAX_ROOTS);
        Some(ListRootsResult::new(
            folders.filter_map(|folder| root(folder)).collect(),
        ))
    }

    /// Takes the folder of another project.
    pub(super) fn set_project(&self, folder: Option<&Path>) {
        self.change(|folders| folders.project = folder.map(Path::to_owned));
    }

    /// Takes the folders that the operator names for the program.
    pub(super) fn set_named(&self, named: Vec<PathBuf>) {
        self.change(|folders| folders.named = named);
    }

    fn change(&self, change: impl FnOnce(&mut Folders)) {
        if let Some(sender) = &self.0 {
            sender.send_if_modified(|folders| {
                let before = folders.clone();
                change(folders);
                *folders != before
            });
        }
    }

    /// Tells a server of changes over one connection: never returns.
    pub(super) async fn run(&self, peer: &Peer<RoleClient>) {
        let info = peer.peer_info();
        // The newer era has no such message: there a server asks whenever it needs them.
        let is_older = info.is_none_or(|info| info.protocol_version.has_initialize());
        if let Some(sender) = self.0.as_ref().filter(|_| is_older) {
            let mut changes = sender.subscribe();
            while changes.changed().await.is_ok() {
                if let Err(error) = peer.notify_roots_list_changed().await {
                    tracing::debug!(%error, "an MCP server is not told of its other roots");
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

fn root(folder: &Path) -> Option<Root> {
    let uri = reqwest::Url::from_file_path(folder).ok()?;
    let root = Root::new(uri.as_str());
    Some(match folder.file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_of_its_folder_and_an_endpoint_of_nothing() {
        let roots = Roots::of_program(Some(PathBuf::from("/home/ada/my shop")));
        let told = roots.list().unwrap().roots;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].uri, "file:///home/ada/my%20shop");
        assert_eq!(told[0].name.as_deref(), Some("my shop"));
        roots.set_named(vec![PathBuf::from("/srv/data"); 2 * MAX_ROOTS]);
        assert_eq!(roots.list().unwrap().roots.len(), MAX_ROOTS);
        roots.set_named(Vec::new());
        roots.set_project(None);
        assert!(roots.list().unwrap().roots.is_empty());
        let none = Roots::none();
        none.set_project(Some(Path::new("/home/ada")));
        assert!(none.list().is_none() && !none.are_told());
    }
}

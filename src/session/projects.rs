//! The project of a session: the daemon's own, or one that a client names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Session;
use super::daemon::Daemon;
use super::resolve::invalid;
use super::tasks::SessionTools;
use crate::protocol::SessionCode;
use crate::protocol::event::{Project, SessionError};
use crate::tool::client;
use crate::tool::workspace::{NotOpened, Workspace};
use crate::users::Grant;

/// How long a folder may take to be opened: a file system on a network may never answer.
const OPENING: Duration = Duration::from_secs(10);

/// Why a session has no project, whose user may not work in the daemon's own.
const NAME_ONE: &str = "the daemon's own project is not among the folders that this socket's token is for; name one of those with `project`";

impl Daemon {
    /// Returns what a new session works in, and the error where that is not what was asked for. It is no other project
    /// then, but none.
    pub(super) async fn workspace(
        &self,
        grant: &Grant,
        named: Option<&str>,
    ) -> (Arc<Workspace>, Option<SessionError>) {
        let none = |why: &str| {
            let everywhere = self.workspaces.everywhere();
            Arc::new(Workspace::without_project(why.to_owned(), everywhere))
        };
        let Some(named) = named else {
            let own = self.workspaces.own();
            let is_theirs = own.project().is_ok_and(|it| grant.allows_folder(&it.root));
            return match is_theirs || grant.roots.is_none() {
                true => (Arc::clone(own), None),
                false => (none(NAME_ONE), None),
            };
        };
        match self.open(grant, named).await {
            Ok(workspace) => (workspace, None),
            Err(refused) => (none(&refused.message), Some(refused)),
        }
    }

    async fn open(&self, grant: &Grant, named: &str) -> Result<Arc<Workspace>, SessionError> {
        // Before anything is looked at: whoever may not name a folder learns nothing of it.
        if !grant.allows_folder(Path::new(named)) {
            let message = format!(
                "field `project`: {named} is not below the folders that this socket's token is for"
            );
            return Err(SessionError::new(SessionCode::Forbidden, message));
        }
        let Some(place) = self.workspaces.place_to_open() else {
            let message = "field `project`: too many folders are being opened; name it again";
            return Err(SessionError::new(SessionCode::RateLimited, message));
        };
        let (workspaces, folder) = (Arc::clone(&self.workspaces), named.to_owned());
        let user = grant.user.clone();
        let opening = tokio::task::spawn_blocking(move || {
            let _until_done = place;
            workspaces.open(&user, &folder)
        });
        match tokio::time::timeout(OPENING, opening).await {
            Ok(Ok(opened)) => opened.map_err(|error| not_opened(&error)),
            Ok(Err(error)) => {
                tracing::error!(%error, "opening a project ended early");
                let message = "field `project`: opening the folder failed; see the log";
                Err(SessionError::new(SessionCode::Internal, message))
            }
            Err(_) => Err(invalid(format!(
                "field `project`: the file system did not answer within {} s; try again",
                OPENING.as_secs()
            ))),
        }
    }
}

impl Session {
    /// Opens the project that a client names, where the session may work there from now on.
    pub(super) async fn project_to_work_in(
        &self,
        named: &str,
    ) -> Result<Arc<Workspace>, SessionError> {
        let workspace = self.daemon.open(&self.grant, named).await?;
        let is_other = !Arc::ptr_eq(&workspace, &self.shared.workspace);
        if is_other && !self.conversations.is_empty() {
            return Err(invalid(
                "field `project`: the session has conversations, which stay in the project they began in; close them with chat:close, or connect another session",
            ));
        }
        Ok(workspace)
    }

    /// Has conversations work in this project from now on.
    pub(super) fn work_in(&mut self, workspace: Arc<Workspace>) {
        if Arc::ptr_eq(&workspace, &self.shared.workspace) {
            return;
        }
        let root = root(&workspace);
        self.shared.journal.project(root);
        self.shared.memory.move_to(folder(&workspace));
        // They were the other one's.
        self.ready.instructions.clear();
        let tools = SessionTools::new(&workspace.registry, &self.services.settings);
        let client_tools = self.client_tools.all();
        tools.of_tasks.replace(client::ORIGIN, client_tools);
        (self.tools_of_tasks, self.shared.tools) = (tools.of_tasks, tools.all);
        let folder = workspace.project().ok().map(|it| it.root.as_path());
        self.daemon.mcp.set_root(&self.shared.id, folder);
        self.shared.workspace = workspace;
        self.leave_elsewhere();
    }
}

/// Returns the folder of a project, as text.
pub(super) fn root(workspace: &Workspace) -> Option<String> {
    let project = workspace.project().ok()?;
    Some(project.root.display().to_string())
}

/// Returns the folder of a project by which its answers are kept; `None` of one whose path is no text: that could be
/// another one's.
pub(super) fn folder(workspace: &Workspace) -> Option<String> {
    let project = workspace.project().ok()?;
    project.root.to_str().map(str::to_owned)
}

/// Returns a project as clients are shown it, and why there is none.
pub(super) fn shown(workspace: &Workspace) -> (Option<Project>, Option<String>) {
    match workspace.project() {
        Ok(project) => {
            let project = Project {
                name: project.name.clone(),
                root: project.root.clone(),
                central: project.central.clone(),
            };
            (Some(project), None)
        }
        Err(why) => (None, Some(why.to_owned())),
    }
}

fn not_opened(error: &NotOpened) -> SessionError {
    let code = match error {
        NotOpened::Forbidden(_) => SessionCode::Forbidden,
        NotOpened::Unusable(_) => SessionCode::InvalidPayload,
        NotOpened::TooMany | NotOpened::TooManyOfUser => SessionCode::RateLimited,
    };
    SessionError::new(code, format!("field `project`: {error}"))
}

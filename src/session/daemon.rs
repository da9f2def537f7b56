//! What a daemon has, and what it gives to each session.

use std::sync::Arc;

use futures::future::{BoxFuture, Shared};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approvals::PendingRules;
use super::defaults::Defaults;
use super::imports::Imports;
use super::line::Line;
use super::reload::Reloadable;
use super::resolve::LAYERS;
use super::tasks::SessionTools;
use super::tenure::Tenure;
use super::{DrainRequest, projects, providers};
use crate::config::{Config, ExposePolicy};
use crate::exchange::context::Services;
use crate::exchange::memory::RulesOfUsers;
use crate::message::SessionId;
use crate::notices::Notices;
use crate::protocol::event::{Ready, Sandbox};
use crate::protocol::{CLIENT_TOOLS, EXPOSED_PORTS, FEATURES, TASKS};
use crate::provider::registry::Providers;
use crate::store::{AnyStore, Updates};
use crate::tool::workspace::{Workspace, Workspaces};
use crate::units::millis;
use crate::users::Grant;
use crate::users::quota::Quotas;
use crate::webhooks::Webhooks;

/// What one daemon has, made by `daemon::build` and handed down.
pub struct Daemon {
    pub(crate) services: Services,
    pub(crate) providers: Providers,
    pub(crate) mcp: Arc<crate::mcp::Mcp>,
    pub(crate) notices: Notices,
    /// Another program that is told how sessions stand, where there is one.
    pub(crate) webhooks: Option<Arc<Webhooks>>,
    /// Where the configuration comes from, where it can be read again.
    pub(crate) reloadable: Option<Reloadable>,
    /// Where sessions are kept; nowhere where there is none.
    pub(crate) store: Option<AnyStore>,
    /// Why there is none.
    pub(crate) not_kept: String,
    /// What users said that counts in all their sessions, or in those of a project.
    pub(crate) rules: RulesOfUsers,
    /// What changes about those sessions.
    pub(crate) updates: Updates,
    /// What each user does.
    pub(crate) quotas: Quotas,
    /// Sessions that are being imported.
    pub(crate) imports: Imports,
    /// Those who come back to sessions of the store.
    pub(crate) line: Arc<Line>,
    /// Permits for titles that models are asked for: [`MAX_TITLES`](super::MAX_TITLES).
    pub(crate) titles: Arc<Semaphore>,
    /// The projects that sessions work in.
    pub(crate) workspaces: Arc<Workspaces>,
    /// Done when the folders of all conversations' commands are removed.
    pub(crate) pods_removed: Shared<BoxFuture<'static, ()>>,
    /// What the sandbox enforces here, found out once and off the way to ready.
    pub(crate) sandbox: Shared<BoxFuture<'static, Sandbox>>,
    /// Permits for requests to providers that are not turns, and to MCP servers: [`MAX_SIDE_REQUESTS`].
    pub(crate) side_requests: Arc<Semaphore>,
    /// The same for requests of operators.
    pub(crate) operator_requests: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    /// For how long it may have sessions.
    pub(crate) tenure: Tenure,
    /// Cancelled when nothing new is begun.
    pub(crate) draining: CancellationToken,
    /// Whether an operator wants that.
    pub(crate) drain: DrainRequest,
    /// Cancelled when everything has to end.
    pub(crate) stop: CancellationToken,
}

impl Daemon {
    /// Returns whether what is said is kept.
    pub(super) fn keeps(&self) -> bool {
        let store = self.store.as_ref();
        store.is_some_and(|store| store.ended().is_none())
    }

    pub(super) async fn ready(
        &self,
        session_id: SessionId,
        workspace: &Arc<Workspace>,
        grant: &Grant,
        rules: &PendingRules,
    ) -> Ready {
        // Each of them takes as long as it takes.
        let ((), sandbox, instructions) = tokio::join!(
            self.find_first_provider(),
            self.sandbox.clone(),
            self.instructions(workspace, &grant.user, rules),
        );
        let settings = &self.services.settings;
        let config = &settings.now();
        let (project, project_error) = projects::shown(workspace);
        Ready {
            protocol_version: crate::protocol::PROTOCOL_VERSION,
            daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id,
            resumed: false,
            resume_grace_ms: millis(config.session.resume_grace),
            persistent: self.keeps(),
            epoch: 1,
            trust_level: config.chat.trust_level.min(grant.most_trust),
            on_violation: Defaults::on_violation(
                config.workflows.get(&config.chat.workflow),
                config,
            ),
            project,
            project_error,
            sandbox,
            providers: providers::ready(&self.providers),
            tools: SessionTools::new(&workspace.registry, settings).all.names(),
            layers: LAYERS.to_vec(),
            features: features(config),
            workflows: workflows(config),
            instructions,
            operator: grant.may_operate(),
        }
    }
}

pub(super) fn workflows(config: &Config) -> Vec<String> {
    config.workflows.keys().cloned().collect()
}

/// Returns what this daemon offers beyond the first release of the contract, less what its operator switched off.
pub(super) fn features(config: &Config) -> Vec<String> {
    let is_off = |feature: &str| match feature {
        EXPOSED_PORTS => config.tools.bash.expose == ExposePolicy::Off,
        CLIENT_TOOLS => !config.tools.client.enabled,
        TASKS => !config.tasks.enabled,
        _ => false,
    };
    let features = FEATURES.into_iter().filter(|it| !is_off(it));
    features.map(str::to_owned).collect()
}

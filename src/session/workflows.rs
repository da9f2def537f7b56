//! Workflows: what there are, and those that clients add where the operator lets them.

use std::sync::Arc;

use super::resolve::invalid;
use super::{Session, scope};
use crate::config::{Config, workflow_name_problem};
use crate::permission::scope::Permissions;
use crate::permission::{Scope, Workflow};
use crate::protocol::SessionCode;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::settings::{WorkflowInfo, WorkflowPut, WorkflowWanted, Workflows};

/// The most workflows that clients put beside the configuration's.
const MAX_PUT: usize = 64;

/// The longest system prompt of such a workflow, in bytes.
const MAX_PROMPT_BYTES: usize = 64 * 1024;

impl Session {
    /// Returns what workflows there are.
    pub(super) fn workflows(&self) -> Workflows {
        let settings = &self.daemon.services.settings;
        let config = settings.now();
        let tools = self.shared.tools.snapshot();
        let workflows = config.workflows.iter().map(|(name, workflow)| {
            let scope = Scope::new(Some(&workflow.permissions), None).ok();
            let offered = tools.values().map(|tool| tool.spec());
            let offered = offered.filter(|spec| scope.as_ref().is_some_and(|it| it.allows(spec)));
            WorkflowInfo {
                name: name.clone(),
                put: settings.is_put(name),
                trust_level: workflow.trust_level,
                provider: workflow.provider.clone(),
                model: workflow.model.clone(),
                limits: workflow.limits,
                tools: offered.map(|spec| spec.name.clone()).collect(),
            }
        });
        Workflows {
            workflows: workflows.collect(),
        }
    }

    /// Takes a workflow of a client, where the operator lets clients.
    pub(super) fn put_workflow(&self, wanted: WorkflowPut) -> Result<Event, SessionError> {
        let services = &self.daemon.services;
        let config = services.config();
        let forbidden = |message: &str| SessionError::new(SessionCode::Forbidden, message);
        if !config.session.allow_workflow_put {
            return Err(forbidden(
                "clients may not add workflows here; the operator allows it with session.allow_workflow_put = true",
            ));
        }
        let WorkflowPut { name, workflow } = wanted;
        if let Some(problem) = workflow_name_problem(&name) {
            return Err(invalid(format!("field `name`: {problem}")));
        }
        let workflow = workflow.map(|wanted| self.checked_workflow(wanted, &config));
        let workflow = workflow.transpose()?;
        if !services.settings.put_workflow(&name, workflow, MAX_PUT) {
            return Err(forbidden(&format!(
                "the workflow `{name}` is the operator's, or clients have put {MAX_PUT} already"
            )));
        }
        Ok(Event::WorkflowPutResult(self.workflows()))
    }

    fn checked_workflow(
        &self,
        wanted: WorkflowWanted,
        config: &Config,
    ) -> Result<Workflow, SessionError> {
        if wanted
            .system_prompt
            .as_ref()
            .is_some_and(|it| it.len() > MAX_PROMPT_BYTES)
        {
            return Err(invalid(format!(
                "field `workflow.systemPrompt` has more than {MAX_PROMPT_BYTES} bytes"
            )));
        }
        if let Some(provider) = &wanted.provider
            && self.daemon.providers.get(provider).is_none()
        {
            return Err(super::providers::no_provider(
                "field `workflow.provider`: ",
                provider,
                &self.daemon.providers,
            ));
        }
        // For its errors: a name of a tool that there cannot be.
        scope::scope(None, Some(&wanted.tool_permissions), config)?;
        let permissions = Permissions::new(&wanted.tool_permissions);
        let permissions =
            permissions.map_err(|it| invalid(format!("field `workflow.toolPermissions`: {it}")))?;
        Ok(Workflow {
            system_prompt: wanted.system_prompt.filter(|it| !it.trim().is_empty()),
            trust_level: wanted.trust_level,
            on_violation: wanted.on_violation,
            provider: wanted.provider,
            model: wanted.model,
            limits: wanted.limits,
            permissions: Arc::new(permissions),
        })
    }
}

//! What a session's client configured for the sends to come. Pure.

use super::resolve::{is_looser, is_more, is_other, refuse_locked};
use crate::config::Config;
use crate::message::{OnViolation, TrustLevel};
use crate::permission::{ApprovalPolicy, Workflow};
use crate::protocol::answer::Configured;
use crate::protocol::budget::SessionBudget;
use crate::protocol::command::{Configure, Layer};
use crate::protocol::event::SessionError;

/// A session's own settings; the configuration's where absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    pub(super) trust_level: Option<TrustLevel>,
    /// What becomes of what the user would be asked.
    pub(super) approval_policy: Option<ApprovalPolicy>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// Named workflow; empty for none.
    pub workflow: String,
    /// How much the session may spend.
    pub budget: Option<SessionBudget>,
}

impl Defaults {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            trust_level: None,
            approval_policy: None,
            provider: None,
            model: None,
            workflow: config.chat.workflow.clone(),
            budget: None,
        }
    }

    /// Returns what a client configured, so that it can be configured anew.
    pub(crate) fn configured(&self, config: &Config) -> Configure {
        let workflow = Some(&self.workflow).filter(|it| **it != config.chat.workflow);
        Configure {
            trust_level: self.trust_level,
            approval_policy: self.approval_policy,
            provider: self.provider.clone(),
            model: self.model.clone(),
            workflow: workflow.cloned(),
            budget: self.budget,
            ..Configure::default()
        }
    }

    pub(super) fn trust(&self, workflow: Option<&Workflow>, config: &Config) -> TrustLevel {
        self.trust_level
            .or_else(|| workflow.and_then(|workflow| workflow.trust_level))
            .unwrap_or(config.chat.trust_level)
    }

    /// Returns what becomes of calls that the user would be asked about.
    pub(super) fn policy(&self, config: &Config) -> ApprovalPolicy {
        let policy = self.approval_policy.unwrap_or(config.approval.policy);
        match policy {
            ApprovalPolicy::Ask if config.approval.auto_approve_safe_commands => {
                ApprovalPolicy::AutoApproveSafe
            }
            policy => policy,
        }
    }

    /// Returns what becomes of an exchange in a workflow in which a path leaves the roots or is denied.
    pub(crate) fn on_violation(workflow: Option<&Workflow>, config: &Config) -> OnViolation {
        workflow
            .and_then(|workflow| workflow.on_violation)
            .unwrap_or(config.tools.on_violation)
    }

    /// Takes a client's settings; `provider` is the one that answers where nobody names one.
    /// Where the operator locked a key, nothing is changed.
    pub(crate) fn configure(
        &mut self,
        wanted: &Configure,
        config: &Config,
        provider: &str,
    ) -> Result<(), SessionError> {
        let chat = &config.chat;
        let changes = [
            ("chat.trust_level", is_looser(wanted.trust_level, config)),
            (
                "approval.policy",
                wanted
                    .approval_policy
                    .is_some_and(|policy| policy.is_looser(config.approval.policy)),
            ),
            ("chat.provider", is_other(&wanted.provider, provider)),
            ("chat.model", is_other(&wanted.model, &chat.model)),
            ("chat.workflow", is_other(&wanted.workflow, &chat.workflow)),
            (
                "budget.session",
                wanted
                    .budget
                    .and_then(SessionBudget::wanted)
                    .is_some_and(|most| is_more(most, config.budget.session)),
            ),
        ];
        refuse_locked(&changes, config)?;
        self.budget = wanted.budget.or(self.budget);
        self.trust_level = wanted.trust_level.or(self.trust_level);
        self.approval_policy = wanted.approval_policy.or(self.approval_policy);
        if let Some(provider) = &wanted.provider {
            if self.provider.as_ref() != Some(provider) {
                self.model = None;
            }
            self.provider = Some(provider.clone());
        }
        if let Some(model) = &wanted.model {
            self.model = Some(model.clone()).filter(|model| !model.is_empty());
        }
        if let Some(workflow) = &wanted.workflow {
            self.workflow.clone_from(workflow);
        }
        Ok(())
    }

    /// Returns the values now in force; `provider` is the one that answers where nobody names one.
    pub(crate) fn in_force(
        &self,
        config: &Config,
        provider: &str,
        layers: Vec<Layer>,
        input_requests: bool,
    ) -> Configured {
        let workflow = config.workflows.get(&self.workflow);
        Configured {
            trust_level: self.trust(workflow, config),
            approval_policy: self.policy(config),
            on_violation: Self::on_violation(workflow, config),
            provider: self.provider.clone().unwrap_or_else(|| provider.to_owned()),
            model: self
                .model
                .clone()
                .unwrap_or_else(|| config.chat.model.clone()),
            workflow: self.workflow.clone(),
            layers,
            input_requests,
            project: None,
            project_error: None,
            ephemeral: true,
            budget: None,
        }
    }
}

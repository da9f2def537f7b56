//! What a session's client configured for the sends to come. Pure.

use super::resolve::{check_model, is_looser, is_more, is_other, refuse_locked};
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

    /// Returns them less what the operator's configuration, as it is now, does not leave to clients: it may have been
    /// tightened and locked since they were chosen. `provider` is the one that answers where nobody names one.
    pub(super) fn allowed(&self, config: &Config, provider: &str) -> Self {
        let is_locked = |key: &str| config.session.is_locked(key);
        let mut allowed = self.clone();
        if is_locked("chat.trust_level") && is_looser(self.trust_level, config) {
            allowed.trust_level = None;
        }
        if is_locked("approval.policy") && is_looser_policy(self.approval_policy, config) {
            allowed.approval_policy = None;
        }
        if is_locked("chat.provider") && is_other(&self.provider, provider) {
            // A model belongs to its provider.
            (allowed.provider, allowed.model) = (None, None);
        }
        if is_locked("chat.model") && is_other(&self.model, &config.chat.model) {
            allowed.model = None;
        }
        if is_locked("chat.workflow") {
            allowed.workflow.clone_from(&config.chat.workflow);
        }
        allowed
    }

    pub(super) fn trust(&self, workflow: Option<&Workflow>, config: &Config) -> TrustLevel {
        self.trust_level
            .or_else(|| workflow.and_then(|workflow| workflow.trust_level))
            .unwrap_or(config.chat.trust_level)
    }

    /// Returns what becomes of calls that the user would be asked about.
    pub(super) fn policy(&self, config: &Config) -> ApprovalPolicy {
        self.approval_policy
            .unwrap_or_else(|| configured_policy(config))
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
        check_model(wanted.model.as_deref())?;
        let chat = &config.chat;
        let changes = [
            ("chat.trust_level", is_looser(wanted.trust_level, config)),
            (
                "approval.policy",
                is_looser_policy(wanted.approval_policy, config),
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
        trust_questions: bool,
    ) -> Configured {
        let allowed = self.allowed(config, provider);
        let workflow = config.workflows.get(&allowed.workflow);
        let chosen = allowed.provider.clone();
        let provider = chosen.unwrap_or_else(|| provider.to_owned());
        let instance = config.providers.iter().find(|it| it.id == provider);
        let own = instance.map(|it| it.model.clone());
        Configured {
            trust_level: allowed.trust(workflow, config),
            approval_policy: allowed.policy(config),
            on_violation: Self::on_violation(workflow, config),
            provider,
            provider_model: own.filter(|model| !model.is_empty()),
            model: allowed.model.unwrap_or_else(|| config.chat.model.clone()),
            workflow: allowed.workflow,
            layers,
            input_requests,
            trust_questions,
            project: None,
            project_error: None,
            ephemeral: true,
            budget: None,
        }
    }
}

/// Returns what becomes of such calls where no client chose.
fn configured_policy(config: &Config) -> ApprovalPolicy {
    match config.approval.policy {
        // The older key for it.
        ApprovalPolicy::Ask if config.approval.auto_approve_safe_commands => {
            ApprovalPolicy::AutoApproveSafe
        }
        policy => policy,
    }
}

fn is_looser_policy(wanted: Option<ApprovalPolicy>, config: &Config) -> bool {
    wanted.is_some_and(|policy| policy.is_looser(configured_policy(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_locked_later_counts_no_more_where_it_is_looser_or_another() {
        let mut config = crate::config::for_tests();
        config.chat.trust_level = TrustLevel::Guided;
        config.approval.policy = ApprovalPolicy::DenyAll;
        let chosen = Defaults {
            trust_level: Some(TrustLevel::Autonomous),
            approval_policy: Some(ApprovalPolicy::AllowAll),
            provider: Some("other".to_owned()),
            model: Some("m".to_owned()),
            workflow: "w".to_owned(),
            budget: None,
        };
        let counts = |chosen: &Defaults, config: &Config| {
            let allowed = chosen.allowed(config, "own");
            (
                allowed.trust(None, config),
                allowed.policy(config),
                [allowed.provider, allowed.model].map(Option::unwrap_or_default),
                allowed.workflow,
            )
        };
        let open = counts(&chosen, &config);
        assert_eq!(open.0, TrustLevel::Autonomous);
        assert_eq!(open.1, ApprovalPolicy::AllowAll);
        assert_eq!(
            (open.2.concat(), open.3),
            ("otherm".to_owned(), "w".to_owned())
        );
        let keys = [
            "chat.trust_level",
            "approval.policy",
            "chat.provider",
            "chat.workflow",
        ];
        config.session.locked = keys.map(str::to_owned).to_vec();
        let locked = counts(&chosen, &config);
        assert_eq!(locked.0, TrustLevel::Guided);
        assert_eq!(locked.1, ApprovalPolicy::DenyAll);
        assert_eq!(
            (locked.2.concat(), locked.3),
            (String::new(), String::new())
        );
        // What is tighter stays.
        config.approval.policy = ApprovalPolicy::AllowAll;
        let tighter = Defaults {
            trust_level: Some(TrustLevel::Supervised),
            approval_policy: Some(ApprovalPolicy::Ask),
            ..chosen
        };
        let locked = counts(&tighter, &config);
        assert_eq!(
            (locked.0, locked.1),
            (TrustLevel::Supervised, ApprovalPolicy::Ask)
        );
        config.session.locked = vec!["chat.model".to_owned()];
        assert_eq!(counts(&tighter, &config).2.concat(), "other");
    }

    #[test]
    fn the_older_key_for_safe_commands_counts_where_no_client_chose() {
        let mut config = crate::config::for_tests();
        config.approval.auto_approve_safe_commands = true;
        let mut defaults = Defaults::new(&config);
        assert_eq!(defaults.policy(&config), ApprovalPolicy::AutoApproveSafe);
        defaults.approval_policy = Some(ApprovalPolicy::Ask);
        assert_eq!(defaults.policy(&config), ApprovalPolicy::Ask);
        // It is no loosening to choose what is in force.
        config.session.locked = vec!["approval.policy".to_owned()];
        let wanted = Configure {
            approval_policy: Some(ApprovalPolicy::AutoApproveSafe),
            ..Configure::default()
        };
        assert_eq!(defaults.configure(&wanted, &config, "p"), Ok(()));
    }
}

//! What a session has settled for its conversations, and what the operator does not let it. Pure.

use crate::config::Config;
use crate::message::{OnViolation, TrustLevel};
use crate::permission::Workflow;
use crate::protocol::SessionCode;
use crate::protocol::answer::Configured;
use crate::protocol::command::{ChatSend, Configure, Layer};
use crate::protocol::event::SessionError;

/// The layers of a session that asked for none.
pub(crate) const LAYERS: [Layer; 2] = [Layer::Stream, Layer::State];

/// A session's own settings; the configuration's where absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    trust_level: Option<TrustLevel>,
    configured_trust: TrustLevel,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// Named workflow; empty for none.
    pub workflow: String,
}

impl Defaults {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            trust_level: None,
            configured_trust: config.chat.trust_level,
            provider: None,
            model: None,
            workflow: config.chat.workflow.clone(),
        }
    }

    pub(crate) fn trust(&self, workflow: Option<&Workflow>) -> TrustLevel {
        self.trust_level
            .or_else(|| workflow.and_then(|workflow| workflow.trust_level))
            .unwrap_or(self.configured_trust)
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
        let keys = [
            ("chat.provider", &wanted.provider, provider),
            ("chat.model", &wanted.model, chat.model.as_str()),
            ("chat.workflow", &wanted.workflow, chat.workflow.as_str()),
        ];
        allow(wanted.trust_level, &keys, config)?;
        self.trust_level = wanted.trust_level.or(self.trust_level);
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

    /// Checks a send against the keys that the operator locked; `provider` is the one that answers where nobody
    /// names one.
    pub(crate) fn allow_send(
        &self,
        send: &ChatSend,
        config: &Config,
        provider: &str,
    ) -> Result<(), SessionError> {
        let chat = &config.chat;
        let keys = [
            ("chat.provider", &send.provider, provider),
            ("chat.model", &send.model, chat.model.as_str()),
            ("chat.workflow", &send.workflow, chat.workflow.as_str()),
            (
                "chat.system_prompt",
                &send.system_prompt,
                chat.system_prompt.as_str(),
            ),
        ];
        allow(send.trust_level, &keys, config)
    }

    /// Returns the values now in force; `provider` is the one that answers where nobody names one.
    pub(crate) fn in_force(
        &self,
        config: &Config,
        provider: &str,
        layers: Vec<Layer>,
    ) -> Configured {
        let workflow = config.workflows.get(&self.workflow);
        Configured {
            trust_level: self.trust(workflow),
            on_violation: Self::on_violation(workflow, config),
            provider: self.provider.clone().unwrap_or_else(|| provider.to_owned()),
            model: self
                .model
                .clone()
                .unwrap_or_else(|| config.chat.model.clone()),
            workflow: self.workflow.clone(),
            layers,
            // The session's, not a default of what it sends.
            input_requests: false,
        }
    }
}

/// Returns the layers to send where a client wants these.
pub(crate) fn layers(wanted: &[Layer]) -> Vec<Layer> {
    let mut layers: Vec<Layer> = wanted
        .iter()
        .copied()
        .filter(|layer| *layer != Layer::Exchange)
        .collect();
    layers.sort_unstable();
    layers.dedup();
    layers
}

/// Fails where the operator locked the trust level and `trust` is looser, or locked one of the keys, each with what is
/// wanted and what is configured, and another value is wanted.
fn allow(
    trust: Option<TrustLevel>,
    keys: &[(&str, &Option<String>, &str)],
    config: &Config,
) -> Result<(), SessionError> {
    let freedom = |trust| match trust {
        TrustLevel::Supervised => 0,
        TrustLevel::Guided => 1,
        TrustLevel::Autonomous => 2,
    };
    let looser = trust.is_some_and(|trust| freedom(trust) > freedom(config.chat.trust_level));
    let other = keys
        .iter()
        .filter(|(_, wanted, configured)| wanted.as_ref().is_some_and(|it| it != configured))
        .map(|(key, ..)| *key);
    let mut changed = looser
        .then_some("chat.trust_level")
        .into_iter()
        .chain(other);
    match changed.find(|key| config.session.is_locked(key)) {
        Some(key) => Err(SessionError::new(
            SessionCode::Forbidden,
            format!("`{key}` is locked by the operator's configuration (session.locked)"),
        )),
        None => Ok(()),
    }
}

//! What a session has settled for its conversations, and what the operator does not let it. Pure.

use std::time::Duration;

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
        let changes = [
            ("chat.trust_level", is_looser(wanted.trust_level, config)),
            ("chat.provider", is_other(&wanted.provider, provider)),
            ("chat.model", is_other(&wanted.model, &chat.model)),
            ("chat.workflow", is_other(&wanted.workflow, &chat.workflow)),
        ];
        refuse_locked(&changes, config)?;
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

/// Checks a send against the keys that the operator locked; `provider` is the one that answers where nobody names one.
///
/// A limit that the send's workflow has cannot be widened by the send.
pub(super) fn allow_send(
    send: &ChatSend,
    workflow: Option<&Workflow>,
    config: &Config,
    provider: &str,
) -> Result<(), SessionError> {
    let (chat, limits) = (&config.chat, send.limits);
    let theirs = workflow.map(|workflow| workflow.limits).unwrap_or_default();
    let turns = limits.max_turns.filter(|_| theirs.max_turns.is_none());
    let reserve = limits.context_reserve;
    let reserve = reserve.filter(|_| theirs.context_reserve.is_none());
    let timeout = limits.timeout_ms.filter(|_| theirs.timeout_ms.is_none());
    let timeout = timeout.map(Duration::from_millis);
    let is_longer = |than: Duration| timeout.is_some_and(|timeout| timeout > than);
    let changes = [
        ("chat.trust_level", is_looser(send.trust_level, config)),
        ("chat.provider", is_other(&send.provider, provider)),
        ("chat.model", is_other(&send.model, &chat.model)),
        ("chat.workflow", is_other(&send.workflow, &chat.workflow)),
        (
            "chat.system_prompt",
            is_other(&send.system_prompt, &chat.system_prompt),
        ),
        (
            "chat.max_turns",
            turns.is_some_and(|turns| turns > chat.max_turns),
        ),
        (
            "chat.context_reserve",
            reserve.is_some_and(|reserve| reserve < chat.context_reserve),
        ),
        ("chat.timeout_plain", is_longer(chat.timeout_plain)),
        ("chat.timeout_tools", is_longer(chat.timeout_tools)),
    ];
    refuse_locked(&changes, config)
}

fn is_other(wanted: &Option<String>, configured: &str) -> bool {
    wanted.as_ref().is_some_and(|wanted| wanted != configured)
}

fn is_looser(trust: Option<TrustLevel>, config: &Config) -> bool {
    let freedom = |trust| match trust {
        TrustLevel::Supervised => 0,
        TrustLevel::Guided => 1,
        TrustLevel::Autonomous => 2,
    };
    trust.is_some_and(|trust| freedom(trust) > freedom(config.chat.trust_level))
}

/// Fails where the operator locked one of the keys that are changed.
fn refuse_locked(changes: &[(&str, bool)], config: &Config) -> Result<(), SessionError> {
    let is_refused = |(key, changed): &&(&str, bool)| *changed && config.session.is_locked(key);
    match changes.iter().find(is_refused) {
        Some((key, _)) => Err(SessionError::new(
            SessionCode::Forbidden,
            format!("`{key}` is locked by the operator's configuration (session.locked)"),
        )),
        None => Ok(()),
    }
}

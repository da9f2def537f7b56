//! What a session has settled for its conversations, and what the operator does not let it. Pure.

use crate::config::Config;
use crate::message::{OnViolation, TrustLevel};
use crate::permission::Workflow;
use crate::protocol::SessionCode;
use crate::protocol::answer::Configured;
use crate::protocol::command::{ChatSend, Configure, Layer};
use crate::protocol::event::SessionError;

/// The layers of a session that asked for none.
pub const LAYERS: [Layer; 2] = [Layer::Stream, Layer::State];

/// A session's own settings; the configuration's where absent.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    trust_level: Option<TrustLevel>,
    configured_trust: TrustLevel,
    /// Provider instance.
    pub provider: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Named workflow; empty for none.
    pub workflow: String,
}

impl Defaults {
    /// Returns a fresh session's.
    pub fn new(config: &Config) -> Self {
        Self {
            trust_level: None,
            configured_trust: config.chat.trust_level,
            provider: None,
            model: None,
            workflow: config.chat.workflow.clone(),
        }
    }

    /// Returns the trust level of an exchange in a workflow.
    pub fn trust(&self, workflow: Option<&Workflow>) -> TrustLevel {
        self.trust_level
            .or_else(|| workflow.and_then(|workflow| workflow.trust_level))
            .unwrap_or(self.configured_trust)
    }

    /// Returns what becomes of an exchange in a workflow in which a path leaves the roots or is denied.
    pub fn on_violation(workflow: Option<&Workflow>, config: &Config) -> OnViolation {
        workflow
            .and_then(|workflow| workflow.on_violation)
            .unwrap_or(config.tools.on_violation)
    }

    /// Takes a client's settings; `provider` is the one that answers where nobody names one.
    ///
    /// # Errors
    ///
    /// `forbidden` where the operator locked a key; nothing is changed then.
    pub fn configure(
        &mut self,
        wanted: &Configure,
        config: &Config,
        provider: &str,
    ) -> Result<(), SessionError> {
        if let Some(trust) = wanted.trust_level {
            allow_trust(trust, config)?;
        }
        allow(
            "chat.provider",
            wanted.provider.as_deref(),
            provider,
            config,
        )?;
        allow(
            "chat.model",
            wanted.model.as_deref(),
            &config.chat.model,
            config,
        )?;
        allow(
            "chat.workflow",
            wanted.workflow.as_deref(),
            &config.chat.workflow,
            config,
        )?;
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
    ///
    /// # Errors
    ///
    /// `forbidden`, naming the key.
    pub fn allow_send(
        &self,
        send: &ChatSend,
        config: &Config,
        provider: &str,
    ) -> Result<(), SessionError> {
        if let Some(trust) = send.trust_level {
            allow_trust(trust, config)?;
        }
        let chat = &config.chat;
        allow("chat.provider", send.provider.as_deref(), provider, config)?;
        allow("chat.model", send.model.as_deref(), &chat.model, config)?;
        allow(
            "chat.workflow",
            send.workflow.as_deref(),
            &chat.workflow,
            config,
        )?;
        allow(
            "chat.system_prompt",
            send.system_prompt.as_deref(),
            &chat.system_prompt,
            config,
        )
    }

    /// Returns the values now in force; `provider` is the one that answers where nobody names one.
    pub fn in_force(&self, config: &Config, provider: &str, layers: Vec<Layer>) -> Configured {
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
pub fn layers(wanted: &[Layer]) -> Vec<Layer> {
    let mut layers: Vec<Layer> = wanted
        .iter()
        .copied()
        .filter(|layer| *layer != Layer::Exchange)
        .collect();
    layers.sort_unstable();
    layers.dedup();
    layers
}

/// Fails where the operator locked the trust level and `wanted` is looser.
fn allow_trust(wanted: TrustLevel, config: &Config) -> Result<(), SessionError> {
    let freedom = |trust| match trust {
        TrustLevel::Supervised => 0,
        TrustLevel::Guided => 1,
        TrustLevel::Autonomous => 2,
    };
    let looser = freedom(wanted) > freedom(config.chat.trust_level);
    if looser && config.session.is_locked("chat.trust_level") {
        return Err(forbidden("chat.trust_level"));
    }
    Ok(())
}

fn allow(
    key: &str,
    wanted: Option<&str>,
    configured: &str,
    config: &Config,
) -> Result<(), SessionError> {
    match wanted {
        Some(wanted) if wanted != configured && config.session.is_locked(key) => {
            Err(forbidden(key))
        }
        _ => Ok(()),
    }
}

fn forbidden(key: &str) -> SessionError {
    SessionError {
        code: SessionCode::Forbidden,
        message: format!("`{key}` is locked by the operator's configuration (session.locked)"),
    }
}

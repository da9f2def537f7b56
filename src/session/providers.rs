//! Requests about providers.

use secrecy::{ExposeSecret as _, SecretString};

use super::{Daemon, Session};
use crate::config::NamedValue;
use crate::exchange::failure;
use crate::message::{Model, Notice, Severity};
use crate::notices::To;
use crate::protocol::event::{Event, ReadyProvider, SessionError};
use crate::protocol::{RequestId, SessionCode, answer, command};
use crate::provider::registry::{Found, Providers};
use crate::telemetry::Redactor;

impl Session {
    pub(super) fn configure_provider(
        &self,
        wanted: command::ProviderConfigure,
    ) -> Result<Event, SessionError> {
        let config = &self.daemon.services.config();
        if config.session.locks_providers() {
            return Err(SessionError::new(
                SessionCode::Forbidden,
                "`providers` is locked by the operator's configuration (session.locked)",
            ));
        }
        if let Some(key) = &wanted.api_key {
            if !key.trim().chars().all(|c| c.is_ascii_graphic()) {
                return Err(SessionError::new(
                    SessionCode::InvalidPayload,
                    "field `apiKey` holds white space or characters that no header can carry",
                ));
            }
            for secret in NamedValue::from(key.as_str()).secrets("api_key") {
                self.daemon.services.redactor.add(secret.expose_secret());
            }
        }
        let key = wanted.api_key.map(SecretString::from);
        self.daemon
            .providers
            .configure(&wanted.provider, key, wanted.base_url.as_deref())
            .map(|info| {
                Event::ProviderConfigureResult(answer::ProviderConfigured {
                    provider: info.id,
                    configured: info.configured,
                })
            })
            .map_err(|problem| {
                let code = match problem {
                    crate::provider::registry::ConfigureError::Unknown { .. } => {
                        SessionCode::ProviderNotFound
                    }
                    crate::provider::registry::ConfigureError::BaseUrl { .. } => {
                        SessionCode::InvalidPayload
                    }
                };
                SessionError::new(code, problem.to_string())
            })
    }

    /// Answers with whether a provider takes its key.
    pub(super) fn validate(&self, name: &str, id: Option<&RequestId>) {
        let Some(provider) = self.daemon.providers.get(name) else {
            return self.answer(
                id,
                Event::SessionError(no_provider("", name, &self.daemon.providers)),
            );
        };
        let name = name.to_owned();
        let redactor = self.daemon.services.redactor.clone();
        self.answer_later(id, async move {
            let outcome = provider.validate().await;
            let (code, message) = match &outcome {
                Ok(()) => (None, None),
                Err(problem) => (
                    Some(failure::meaning(problem.kind).0),
                    Some(redactor.redact(&problem.message).into_owned()),
                ),
            };
            Event::ProviderValidateResult(answer::ProviderValidated {
                provider: name,
                ok: outcome.is_ok(),
                code,
                message,
            })
        });
    }

    /// Answers with the models of one provider, or of all that are configured.
    pub(super) fn models(&self, name: Option<String>, id: Option<&RequestId>) {
        let one = name.is_some();
        let names: Vec<String> = match name {
            Some(name) => vec![name],
            None => {
                let all = self.daemon.providers.list().into_iter();
                all.filter(|it| it.configured).map(|it| it.id).collect()
            }
        };
        let mut chosen = Vec::new();
        for name in names {
            match self.daemon.providers.find(&name) {
                Some(instance) => chosen.push((name, instance)),
                None => {
                    let error = no_provider("", &name, &self.daemon.providers);
                    return self.answer(id, Event::SessionError(error));
                }
            }
        }
        let events = self.shared.events.clone();
        let redactor = self.daemon.services.redactor.clone();
        self.answer_later(id, async move {
            let answers = chosen.iter().map(|(name, instance)| async move {
                (name, instance, instance.provider.models().await)
            });
            let mut models = Vec::new();
            for (name, instance, answer) in futures::future::join_all(answers).await {
                match answer {
                    // The operator knows better what they pay.
                    Ok(more) => models.extend(more.into_iter().map(|model| Model {
                        pricing: instance.config.pricing.or(model.pricing),
                        ..model
                    })),
                    Err(problem) if one => {
                        let code = failure::meaning(problem.kind).0.into();
                        let message = unlisted(name, &problem.to_string(), &redactor);
                        return Event::SessionError(SessionError::new(code, message));
                    }
                    Err(problem) => {
                        events.emit(Event::SessionNotice(Notice {
                            severity: Severity::Warning,
                            code: "models_unlisted".to_owned(),
                            message: unlisted(name, &problem.message, &redactor),
                        }));
                    }
                }
            }
            Event::ModelListResult(answer::Models { models })
        });
    }
}

/// Returns the provider instances as `session:ready` has them.
pub(super) fn ready(providers: &Providers) -> Vec<ReadyProvider> {
    providers
        .list()
        .into_iter()
        .map(|info| ReadyProvider {
            id: info.id,
            configured: info.configured,
        })
        .collect()
}

/// Says why a provider's models are not known, in its words but for secrets of the daemon.
fn unlisted(provider: &str, message: &str, redactor: &Redactor) -> String {
    let message = redactor.redact(message);
    format!("provider `{provider}` did not list its models: {message}")
}

/// Says that there is no such provider, and which there are; `place` says where it was named.
pub(super) fn no_provider(place: &str, name: &str, providers: &Providers) -> SessionError {
    let known: Vec<String> = providers.list().into_iter().map(|it| it.id).collect();
    SessionError::new(
        SessionCode::ProviderNotFound,
        format!(
            "{place}there is no provider `{name}`; there are: {}",
            known.join(", ")
        ),
    )
}

impl Daemon {
    /// Looks for the first time for a provider that nobody configured; does nothing where that was done.
    pub(crate) async fn find_first_provider(&self) {
        let found = self.providers.detect_first().await;
        self.announce_provider(found);
    }

    /// Looks for it where none was found before.
    pub(super) async fn find_provider(&self) {
        let found = self.providers.detect().await;
        self.announce_provider(found);
    }

    fn announce_provider(&self, found: Option<Found>) {
        let Some(Found { info, model }) = found else {
            return;
        };
        let message = format!(
            "an Ollama at {} answers from now on, with {model} where no model is named: no provider is configured, and chat.detect_ollama names that place",
            info.base_url
        );
        self.notices
            .send(To::Operators, Severity::Info, "provider_found", message);
    }
}

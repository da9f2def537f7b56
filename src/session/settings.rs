//! Requests about settings: what they are, where they come from, and those that change while the daemon runs.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::Session;
use super::reload::NO_SOURCES;
use super::resolve::{invalid, refuse_locked};
use crate::config::{KeyState, NamedValue, Shown, is_live};
use crate::http::checked_url;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::settings::{
    ConfigGet, ConfigValue, ConfigValues, SearchConfigure, SearchConfigured,
};
use crate::protocol::{RequestId, SessionCode};

impl Session {
    pub(super) fn configure_search(&self, wanted: SearchConfigure) -> Result<Event, SessionError> {
        let services = &self.daemon.services;
        refuse_locked(&[("tools.web_search", true)], &services.config())?;
        let SearchConfigure {
            searxng_url,
            brave_api_key,
        } = wanted;
        let searxng_url = searxng_url.map(|url| url.trim().trim_end_matches('/').to_owned());
        // An empty one is none.
        if let Some(url) = searxng_url.as_deref().filter(|url| !url.is_empty())
            && let Err(problem) = checked_url(url)
        {
            return Err(invalid(format!("field `searxngUrl` {problem}")));
        }
        if let Some(key) = &brave_api_key {
            if !key.trim().chars().all(|c| c.is_ascii_graphic()) {
                return Err(invalid(
                    "field `braveApiKey` holds white space or characters that no header can carry",
                ));
            }
            for secret in NamedValue::from(key.as_str()).secrets("api_key") {
                services.redactor.add(secret.expose_secret());
            }
        }
        let brave_api_key = brave_api_key.map(|key| key.trim().to_owned());
        services.settings.search_by(searxng_url, brave_api_key);
        let config = services.config();
        let search = &config.tools.web_search;
        Ok(Event::SearchConfigureResult(SearchConfigured {
            searxng_url: search.searxng_url.clone(),
            brave: search.brave_api_key.is_some(),
        }))
    }

    pub(super) fn get_config(&self, wanted: &ConfigGet) -> Result<Event, SessionError> {
        let Some(reloadable) = &self.daemon.reloadable else {
            return Err(invalid(format!("config:get: {NO_SOURCES}")));
        };
        let readings = reloadable.readings.lock();
        let key = wanted.key.as_deref().unwrap_or_default();
        let is_wanted = |known: &str| {
            let rest = known.strip_prefix(key);
            key.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let settings = &self.daemon.services.settings;
        let now = settings.now();
        let states = readings.keys().filter(|it| is_wanted(it.key));
        let values: Vec<ConfigValue> = states
            .map(|state| {
                let live = is_live(state.key, &now, &now);
                config_value(&state, live, settings.set_by_client(state.key))
            })
            .collect();
        if values.is_empty() {
            return Err(invalid(format!(
                "config:get: there is no key {key:?}; without `key` all are listed"
            )));
        }
        Ok(Event::ConfigGetResult(ConfigValues { values }))
    }

    /// Answers when the configuration was read again.
    pub(super) fn reload_config(&self, id: Option<&RequestId>) {
        let daemon = Arc::clone(&self.daemon);
        self.answer_later(id, async move {
            match daemon.reload().await {
                Ok(reloaded) => Event::ConfigReloadResult(reloaded),
                Err(problem) => {
                    Event::SessionError(SessionError::new(SessionCode::ConfigInvalid, problem))
                }
            }
        });
    }
}

/// Returns a value as clients get it; `set` is what one of them has put in its place.
fn config_value(state: &KeyState<'_>, live: bool, set: Option<Value>) -> ConfigValue {
    let shown = state.in_force.or(state.last);
    let source = shown.map(|it| it.origin.to_string());
    let value = |shown: Option<&Shown>| {
        let value = shown.map(|it| it.value.clone());
        value.unwrap_or_default()
    };
    let (value, source, waits) = match set {
        Some(set) => (set, Some("search:configure".to_owned()), None),
        None => {
            let waits = state.differs.then(|| value(state.last));
            (value(state.in_force), source, waits)
        }
    };
    ConfigValue {
        key: state.key.to_owned(),
        value,
        source: source.unwrap_or_default(),
        live,
        pending: waits,
    }
}

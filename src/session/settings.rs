//! Requests about settings: what they are, where they come from, and those that change while the daemon runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::resolve::{invalid, refuse_locked};
use super::sessions::Daemon;
use super::{Session, scope};
use crate::config::{Config, KeyState, NamedValue, Reading, Shown, concerns, is_live, load};
use crate::message::Severity;
use crate::permission::scope::Permissions;
use crate::permission::{Scope, Workflow};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::settings::{
    ConfigGet, ConfigReloaded, ConfigValue, ConfigValues, SearchConfigure, SearchConfigured,
    WorkflowInfo, WorkflowPut, Workflows,
};
use crate::protocol::{RequestId, SessionCode};

/// The longest name of a workflow, in bytes: as in the configuration.
const MAX_NAME_BYTES: usize = 64;

/// The most workflows that clients put beside the configuration's.
const MAX_PUT: usize = 64;

/// The longest system prompt of such a workflow, in bytes.
const MAX_PROMPT_BYTES: usize = 64 * 1024;

impl Session {
    pub(super) fn configure_search(&self, wanted: SearchConfigure) -> Result<Event, SessionError> {
        let services = &self.daemon.services;
        refuse_locked(&[("tools.web_search", true)], &services.config())?;
        let SearchConfigure {
            searxng_url,
            brave_api_key,
        } = wanted;
        let searxng_url = searxng_url.map(|url| url.trim().trim_end_matches('/').to_owned());
        if let Some(problem) = searxng_url.as_deref().and_then(url_problem) {
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
        let readings = self.daemon.readings.lock();
        let Some(readings) = &*readings else {
            return Err(invalid(
                "config:get: this daemon was started without sources of a configuration",
            ));
        };
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

    pub(super) fn list_workflows(&self) -> Event {
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
        Event::WorkflowListResult(Workflows {
            workflows: workflows.collect(),
        })
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
        let fits = (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control);
        if !fits {
            return Err(invalid(format!(
                "field `name` has 1 to {MAX_NAME_BYTES} bytes"
            )));
        }
        let workflow = workflow.map(|wanted| {
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
            scope::scope(None, Some(&wanted.tool_permissions), &config)?;
            let permissions = Permissions::new(&wanted.tool_permissions);
            let permissions = permissions
                .map_err(|it| invalid(format!("field `workflow.toolPermissions`: {it}")))?;
            Ok(Workflow {
                system_prompt: wanted.system_prompt.filter(|it| !it.trim().is_empty()),
                trust_level: wanted.trust_level,
                on_violation: wanted.on_violation,
                provider: wanted.provider,
                model: wanted.model,
                limits: wanted.limits,
                permissions: Arc::new(permissions),
            })
        });
        let workflow = workflow.transpose()?;
        if !services.settings.put_workflow(&name, workflow, MAX_PUT) {
            return Err(forbidden(&format!(
                "the workflow `{name}` is the operator's, or clients have put {MAX_PUT} already"
            )));
        }
        Ok(self.list_workflows_as(Event::WorkflowPutResult))
    }

    fn list_workflows_as(&self, answer: fn(Workflows) -> Event) -> Event {
        match self.list_workflows() {
            Event::WorkflowListResult(workflows) => answer(workflows),
            other => other,
        }
    }
}

/// Returns what is wrong with an address, where it is not empty.
fn url_problem(url: &str) -> Option<&'static str> {
    if url.is_empty() {
        return None;
    }
    match reqwest::Url::parse(url) {
        Err(_) => Some("is no URL"),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("has to begin with http:// or https://")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Some("must not hold a user name or password")
        }
        Ok(_) => None,
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

impl Daemon {
    /// Reads the configuration again and puts in force what may change while the daemon runs. An error says what is wrong
    /// with it; then nothing is changed.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<ConfigReloaded, String> {
        let daemon = Arc::clone(self);
        // In a task of its own: it is never left half done because the session that asked for it ends.
        let work = self
            .tasks
            .spawn(async move { daemon.reload_alone().await })
            .await;
        work.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn reload_alone(&self) -> Result<ConfigReloaded, String> {
        let Some(sources) = self.sources.clone() else {
            return Err("this daemon was started without sources of a configuration".to_owned());
        };
        // One at a time: the later one reads the later file.
        let _alone = self.reloading.lock().await;
        let loaded = tokio::task::spawn_blocking(move || load(&sources)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        let loaded = loaded.map_err(|errors| errors.to_string())?;
        let new = loaded.config;
        for secret in new.secrets() {
            self.services.redactor.add(secret.expose_secret());
        }
        let before = self.services.config();
        let (changed, restart) = {
            let mut readings = self.readings.lock();
            let reading = Reading::new(&new, loaded.origins);
            let keys = readings.as_mut().map(|it| it.read(reading));
            let (mut changed, mut restart): (Vec<String>, Vec<String>) = keys
                .unwrap_or_default()
                .into_iter()
                .partition(|key| is_live(key, &before, &new));
            self.services.settings.apply(&new, &changed);
            for id in self.configure_providers(&before, &new, &changed) {
                let is_its =
                    |key: &mut String| concerns(std::slice::from_ref(key), &["providers", &id]);
                restart.extend(changed.extract_if(.., is_its));
            }
            if let Some(readings) = readings.as_mut() {
                readings.put_in_force(&changed);
            }
            (changed, restart)
        };
        self.change_servers(&before, &new, &changed).await;
        let said = |keys: &[String], end: &str| match keys.is_empty() {
            true => String::new(),
            false => format!("{} {end}", keys.join(", ")),
        };
        let parts = [
            said(&changed, "counts from now on"),
            said(&restart, "counts when the daemon is started anew"),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        let message = match parts.is_empty() {
            true => "the configuration was read again; nothing is other than before".to_owned(),
            false => format!("the configuration was read again: {}", parts.join("; ")),
        };
        self.notices
            .send(Severity::Info, "config_reloaded", message);
        Ok(ConfigReloaded {
            changed,
            restart,
            warnings: loaded.warnings,
        })
    }

    /// Gives provider instances the keys and addresses that are other than before; one that is gone forgets its key.
    /// Returns those that do not take them.
    fn configure_providers(&self, before: &Config, new: &Config, keys: &[String]) -> Vec<String> {
        let mut refused = Vec::new();
        for id in before.providers.iter().map(|it| &it.id) {
            let has = |part: &str| concerns(keys, &["providers", id, part]);
            if !has("api_key") && !has("base_url") {
                continue;
            }
            let provider = new.providers.iter().find(|it| it.id == *id);
            let key = provider.and_then(|it| it.api_key.clone());
            let key = key.unwrap_or_else(|| SecretString::from(""));
            let moved = provider.filter(|_| has("base_url"));
            let base_url = moved.map(|it| it.base_url.as_str());
            if let Err(problem) = self.providers.configure(id, Some(key), base_url) {
                tracing::warn!(provider = id, %problem, "not changed until the daemon is started anew");
                refused.push(id.clone());
            }
        }
        refused
    }

    /// Starts MCP servers anew that are other than before, starts those that are new, and ends those that are gone: one
    /// after the other, so that what was read later is started later.
    async fn change_servers(&self, before: &Config, new: &Config, keys: &[String]) {
        let names = before.mcp.servers.keys().chain(new.mcp.servers.keys());
        let names: BTreeSet<&String> = names.collect();
        let is_other = |name: &&String| concerns(keys, &["mcp", "servers", name]);
        for name in names.into_iter().filter(is_other) {
            // There may be none of that name.
            drop(self.mcp.remove(name).await);
            if self.stop.is_cancelled() {
                return;
            }
            if let Some(config) = new.mcp.servers.get(name)
                && let Err(error) = self.mcp.add(name, config.clone())
            {
                tracing::warn!(server = name, %error, "an MCP server is not started");
            }
        }
    }
}

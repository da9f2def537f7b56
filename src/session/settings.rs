//! Requests about settings: what they are, where they come from, and those that change while the daemon runs.

use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::resolve::{invalid, refuse_locked};
use super::sessions::Daemon;
use super::{Session, scope};
use crate::config::{NamedValue, changed, is_live, load, names_below};
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
        let loaded = self.daemon.loaded.lock();
        let Some(loaded) = &*loaded else {
            return Err(invalid(
                "config:get: this daemon was started without sources of a configuration",
            ));
        };
        let key = wanted.key.as_deref().unwrap_or_default();
        let is_wanted = |known: &str| {
            let rest = known.strip_prefix(key);
            key.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let values = loaded.shown.iter().filter(|shown| is_wanted(&shown.key));
        let values: Vec<ConfigValue> = values
            .map(|shown| ConfigValue {
                key: shown.key.clone(),
                value: shown.value.clone(),
                source: shown.origin.to_string(),
                live: is_live(&shown.key),
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

impl Daemon {
    /// Reads the configuration again and takes over what may change while it runs. An error says what is wrong with it;
    /// then nothing is changed.
    pub(crate) async fn reload(&self) -> Result<ConfigReloaded, String> {
        let Some(sources) = self.sources.clone() else {
            return Err("this daemon was started without sources of a configuration".to_owned());
        };
        // One at a time: the later one reads the later file.
        let _alone = self.reloading.lock().await;
        let loaded = tokio::task::spawn_blocking(move || load(&sources)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        let loaded = loaded.map_err(|errors| errors.to_string())?;
        let new = super::sessions::LastLoaded {
            config: loaded.config,
            shown: loaded.origins,
        };
        for secret in new.config.secrets() {
            self.services.redactor.add(secret.expose_secret());
        }
        let keys = {
            let mut last = self.loaded.lock();
            let keys = match &*last {
                Some(old) => changed((&old.config, &old.shown), (&new.config, &new.shown)),
                None => Vec::new(),
            };
            self.services.settings.take(&new.config, &keys);
            self.take_providers(&new.config, &keys);
            self.take_servers(&new.config, &keys);
            *last = Some(new);
            keys
        };
        let (changed, restart): (Vec<String>, Vec<String>) =
            keys.into_iter().partition(|key| is_live(key));
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

    /// Gives provider instances the keys and addresses that are other than before.
    fn take_providers(&self, new: &crate::config::Config, keys: &[String]) {
        for id in names_below(keys, "providers") {
            let has = |part: &str| keys.contains(&format!("providers.{id}.{part}"));
            let provider = new.providers.iter().find(|provider| provider.id == id);
            let Some(provider) = provider.filter(|_| has("api_key") || has("base_url")) else {
                continue;
            };
            let key = provider
                .api_key
                .clone()
                .unwrap_or_else(|| String::new().into());
            let base_url = has("base_url").then_some(provider.base_url.as_str());
            if let Err(problem) = self.providers.configure(&id, Some(key), base_url) {
                tracing::warn!(provider = id, %problem, "not taken over");
            }
        }
    }

    /// Starts MCP servers anew that are other than before, starts those that are new, and ends those that are gone.
    fn take_servers(&self, new: &crate::config::Config, keys: &[String]) {
        for name in names_below(keys, "mcp.servers") {
            let mcp = Arc::clone(&self.mcp);
            let config = new.mcp.servers.get(&name).cloned();
            self.tasks.spawn(async move {
                // There may be none of that name.
                drop(mcp.remove(&name).await);
                if let Some(config) = config
                    && let Err(error) = mcp.add(&name, config)
                {
                    tracing::warn!(server = name, %error, "an MCP server is not started");
                }
            });
        }
    }
}

//! The configuration is read again, and what may change while the daemon runs does.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};

use super::daemon::Daemon;
use crate::config::{Config, Reading, Readings, Sources, Values, concerns, is_live, load};
use crate::message::Severity;
use crate::notices::To;
use crate::protocol::settings::ConfigReloaded;

/// What is said where there is nothing to read it from.
pub(super) const NO_SOURCES: &str = "this daemon was started without sources of a configuration";

/// Makes the first reading.
type First = Box<dyn FnOnce() -> Mutex<Readings> + Send>;

/// Where a configuration comes from, and what was read there.
pub(crate) struct Reloadable {
    sources: Sources,
    /// Held for a look at them, and while what may change is changed. Made when somebody asks.
    pub(super) readings: LazyLock<Mutex<Readings>, First>,
    /// Held while it is read again.
    alone: tokio::sync::Mutex<()>,
}

impl Reloadable {
    /// Takes what was read first, each value of it as it is shown.
    pub(crate) fn new(sources: Sources, config: &Config, values: Values) -> Self {
        let first = Readings::first(config, values);
        Self {
            sources,
            readings: LazyLock::new(Box::new(|| Mutex::new(first()))),
            alone: tokio::sync::Mutex::default(),
        }
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
        let reloadable = self.reloadable.as_ref().ok_or(NO_SOURCES)?;
        // One at a time: the later one reads the later file.
        let _alone = reloadable.alone.lock().await;
        let sources = reloadable.sources.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&sources)).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        let loaded = loaded.map_err(|errors| errors.to_string())?;
        let new = loaded.config;
        for secret in new.secrets() {
            self.services.redactor.add(secret.expose_secret());
        }
        let before = self.services.config();
        let (changed, restart) = {
            let mut readings = reloadable.readings.lock();
            let keys = readings.read(Reading::new(&new, loaded.values.list()));
            let (mut changed, mut restart): (Vec<String>, Vec<String>) = keys
                .into_iter()
                .partition(|key| is_live(key, &before, &new));
            self.services.settings.apply(&new, &changed);
            for id in self.configure_providers(&before, &new, &changed) {
                let is_its =
                    |key: &mut String| concerns(std::slice::from_ref(key), &["providers", &id]);
                restart.extend(changed.extract_if(.., is_its));
            }
            readings.put_in_force(&changed);
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
            .send(To::Operators, Severity::Info, "config_reloaded", message);
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

//! The provider instances of the daemon: which there are, and the one behind each id.
//!
//! Made from the configuration; keys and addresses may come later, in memory only. What an instance
//! does is in its own module.

mod detect;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use parking_lot::RwLock;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;

use super::Provider;
use super::anthropic::Anthropic;
use super::compat::Server;
use super::http::Clients;
use super::ollama::Ollama;
use super::rates::Rates;
use super::scripted::Scripted;
use crate::config::presets::{self, SCRIPTED};
use crate::config::{Config, ProviderConfig, ProviderKind};
use crate::http::checked_url;
use crate::message::ProviderInfo;
use detect::Detect;
pub use detect::Found;

/// The provider instances; clones share them.
#[derive(Clone)]
pub struct Providers {
    shared: Arc<Shared>,
}

struct Shared {
    /// In the order of the configuration. Instances are replaced whole, so that a turn that runs
    /// keeps the one it began with; the lock is held to look one up or to put one in.
    instances: RwLock<Vec<Instance>>,
    default: String,
    /// The Ollama that may answer in its stead; `None` where none is looked for.
    detect: Option<Detect>,
    clients: Clients,
}

/// A provider as it is configured now.
#[derive(Clone)]
pub struct Instance {
    /// Its settings: its default model, retries and preset.
    pub config: Arc<ProviderConfig>,
    /// What reaches it.
    pub provider: Arc<dyn Provider>,
    /// The first model that it lists, once it was asked for it.
    pub first_model: Arc<OnceCell<String>>,
    /// How fast it is asked.
    pub(crate) rates: Arc<Rates>,
}

/// Why an instance cannot be set up as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// Neither an instance nor a preset has that name.
    #[error("there is no provider {id:?}, only {known}")]
    Unknown {
        /// The name that was given.
        id: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// The base URL cannot be used.
    #[error("base URL of provider {id:?} {reason}")]
    BaseUrl {
        /// Whose base URL it was to be.
        id: String,
        /// What is wrong with it; never holds the URL.
        reason: &'static str,
    },
}

impl Providers {
    /// Makes all instances of a configuration, and the scripted one where it names none. Nothing is
    /// connected to or read from disk.
    pub fn new(config: &Config) -> Self {
        let chat = &config.chat;
        let detect = chat.detect_ollama.clone().map(Detect::at);
        Self::of(config.providers.clone(), &chat.provider, detect)
    }

    fn of(mut configs: Vec<ProviderConfig>, default: &str, detect: Option<Detect>) -> Self {
        if !configs.iter().any(|config| config.id == SCRIPTED.name) {
            configs.push(ProviderConfig::from(&SCRIPTED));
        }
        let is_there = configs.iter().any(|config| config.id == default);
        let clients = Clients::default();
        let configs = configs.into_iter();
        let instances = configs.map(|config| Instance::new(config, &clients));
        Self {
            shared: Arc::new(Shared {
                instances: RwLock::new(instances.collect()),
                default: if is_there { default } else { SCRIPTED.name }.to_owned(),
                detect,
                clients,
            }),
        }
    }

    /// Returns the provider of the instance with that id.
    pub fn get(&self, id: &str) -> Option<Arc<dyn Provider>> {
        self.find(id).map(|instance| instance.provider)
    }

    /// Returns the id of the instance that answers where no other is named.
    pub fn default_id(&self) -> &str {
        match &self.shared.detect {
            Some(detect) if detect.is_found() => detect::ID,
            _ => &self.shared.default,
        }
    }

    /// Lists the instances in the order of the configuration.
    pub fn list(&self) -> Vec<ProviderInfo> {
        let instances = self.shared.instances.read();
        instances.iter().map(|one| self.info(&one.config)).collect()
    }

    /// Gives an instance another key or base URL until the daemon ends, and returns what it is now.
    ///
    /// An empty key makes it forget the one it has. A base URL at another host or port makes it
    /// forget the key and the extra headers too, unless a key comes with it: what the operator
    /// entrusted to one server is not sent to another. A preset without an instance becomes one.
    ///
    /// # Errors
    ///
    /// [`ConfigureError`]; nothing is changed then.
    pub fn configure(
        &self,
        id: &str,
        api_key: Option<SecretString>,
        base_url: Option<&str>,
    ) -> Result<ProviderInfo, ConfigureError> {
        let mut instances = self.shared.instances.write();
        let known = instances.iter().position(|known| known.config.id == id);
        let mut config = match known.and_then(|known| instances.get(known)) {
            Some(instance) => ProviderConfig::clone(&instance.config),
            None => presets::preset(id)
                .map(ProviderConfig::from)
                .ok_or_else(|| unknown(id, &instances))?,
        };
        if let Some(base_url) = base_url {
            move_to(&mut config, base_url)?;
        }
        if let Some(key) = api_key {
            let key = key.expose_secret().trim();
            config.api_key = (!key.is_empty()).then(|| SecretString::from(key));
        }
        let info = self.info(&config);
        let mut instance = Instance::new(config, &self.shared.clients);
        match known.and_then(|known| instances.get_mut(known)) {
            Some(old) => {
                // Its requests that run still count.
                instance.rates = Arc::clone(&old.rates);
                *old = instance;
            }
            None => instances.push(instance),
        }
        Ok(info)
    }

    /// Returns the instance with that id.
    pub fn find(&self, id: &str) -> Option<Instance> {
        let instances = self.shared.instances.read();
        let found = instances.iter().find(|instance| instance.config.id == id);
        found.cloned()
    }

    fn info(&self, config: &ProviderConfig) -> ProviderInfo {
        ProviderInfo {
            id: config.id.clone(),
            kind: config.preset.clone(),
            base_url: config.base_url.clone(),
            configured: config.api_key.is_some() || config.key_optional,
            default: config.id == self.default_id(),
        }
    }
}

impl Instance {
    fn new(config: ProviderConfig, clients: &Clients) -> Self {
        let config = Arc::new(config);
        let rates = Rates::new(config.rates);
        let provider = make(Arc::clone(&config), clients.clone());
        Self {
            config,
            provider,
            first_model: Arc::default(),
            rates,
        }
    }
}

/// Makes the provider of an instance, without touching the network.
pub fn make(config: Arc<ProviderConfig>, clients: Clients) -> Arc<dyn Provider> {
    match config.kind {
        ProviderKind::Anthropic => Arc::new(Anthropic::new(config, clients)),
        ProviderKind::Responses | ProviderKind::Chat => Arc::new(Server::new(config, clients)),
        ProviderKind::Ollama => Arc::new(Ollama::new(config, clients)),
        ProviderKind::Scripted => Arc::new(Scripted::new(config)),
    }
}

fn unknown(id: &str, instances: &[Instance]) -> ConfigureError {
    let mut known: Vec<&str> = instances.iter().map(|one| &*one.config.id).collect();
    for preset in presets::all() {
        if !known.contains(&preset.name) {
            known.push(preset.name);
        }
    }
    ConfigureError::Unknown {
        id: id.to_owned(),
        known: known.join(", "),
    }
}

/// Points an instance at another address.
fn move_to(config: &mut ProviderConfig, base_url: &str) -> Result<(), ConfigureError> {
    let refused = |reason| ConfigureError::BaseUrl {
        id: config.id.clone(),
        reason,
    };
    if config.kind == ProviderKind::Scripted {
        return Err(refused("cannot be set: a script has none"));
    }
    let new = checked_url(base_url.trim()).map_err(refused)?;
    if new.query().is_some() || new.fragment().is_some() {
        return Err(refused("must not have a query or fragment"));
    }
    let old = Url::parse(&config.base_url);
    if old.map_or(true, |old| old.origin() != new.origin()) {
        config.api_key = None;
        config.headers.clear();
    }
    config.base_url = new.as_str().trim_end_matches('/').to_owned();
    Ok(())
}

#[cfg(test)]
mod tests;

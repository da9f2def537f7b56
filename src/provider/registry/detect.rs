//! An Ollama at its usual place answers where nothing is configured, so that nobody who runs one has to say so.
//!
//! It is used once it lists a model that can chat, and stays the default from then on: where it stops, a message says
//! so, and no other provider steps in unseen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Instance, Providers};
use crate::config::{ProviderConfig, presets};
use crate::message::ProviderInfo;

/// Id and preset of the instance that it becomes.
pub(super) const ID: &str = "ollama";

/// How long it may take to list its models: it is near, and a message waits for it.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// Where an Ollama is looked for, and whether one was found.
#[derive(Default)]
pub(super) struct Detect {
    base_url: String,
    is_found: AtomicBool,
    /// Held while somebody looks, across the question to it: others wait for what comes of that.
    looking: tokio::sync::Mutex<()>,
    /// How often somebody looked.
    looks: AtomicU64,
}

/// An Ollama that answers from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What a client may know of it.
    pub info: ProviderInfo,
    /// The model that it lists first, which answers where nobody names one.
    pub model: String,
}

impl Detect {
    /// Makes what looks there on request.
    pub(super) fn at(base_url: String) -> Self {
        Self {
            base_url,
            ..Self::default()
        }
    }

    pub(super) fn is_found(&self) -> bool {
        self.is_found.load(Ordering::Relaxed)
    }
}

impl Providers {
    /// Looks for an Ollama where one may answer and none was found before; returns it where it is new.
    ///
    /// Takes as long as a refused connection where there is none.
    pub async fn detect(&self) -> Option<Found> {
        let detect = self.shared.detect.as_ref()?;
        if detect.is_found() {
            return None;
        }
        let before = detect.looks.load(Ordering::Relaxed);
        let _looking = detect.looking.lock().await;
        if detect.looks.load(Ordering::Relaxed) != before {
            // Somebody else looked meanwhile: where a server says nothing, each further look would take its whole time.
            return None;
        }
        let found = self.look(detect).await;
        detect.looks.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Returns what [`Providers::detect`] does, but only to whoever asks first; others wait for that.
    pub async fn detect_first(&self) -> Option<Found> {
        let detect = self.shared.detect.as_ref()?;
        match detect.looks.load(Ordering::Relaxed) {
            0 => self.detect().await,
            _ => None,
        }
    }

    async fn look(&self, detect: &Detect) -> Option<Found> {
        // An instance of that name is somebody's own.
        if detect.is_found() || self.find(ID).is_some() {
            return None;
        }
        let mut config = ProviderConfig::from(presets::preset(ID)?);
        config.base_url.clone_from(&detect.base_url);
        let instance = Instance::new(config, &self.shared.clients);
        let listed = tokio::time::timeout(LOOK_TIME, instance.provider.models()).await;
        let model = listed.ok()?.ok()?.into_iter().next()?.id;
        let mut instances = self.shared.instances.write();
        if instances.iter().any(|known| known.config.id == ID) {
            return None;
        }
        detect.is_found.store(true, Ordering::Relaxed);
        let info = self.info(&instance.config);
        instances.insert(0, instance);
        Some(Found { info, model })
    }
}

#[cfg(test)]
mod tests;

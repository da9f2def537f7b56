//! What an instance learnt from the vendor while it ran.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use super::capabilities::Capabilities;
use super::history::Fingerprint;
use crate::message::Model;

/// Most models remembered; the vendor has some dozens, a gateway some hundreds.
const MAX_MODELS: usize = 4096;

/// Most refused thinking blocks remembered, at 32 bytes each.
const MAX_REFUSED: usize = 4096;

/// The memory of an instance. Behind a lock, since turns run side by side; held for a look-up only.
/// What grows beyond its bound is forgotten and learnt anew.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Learnt>);

#[derive(Debug, Default)]
struct Learnt {
    capabilities: HashMap<String, Capabilities>,
    listed: HashMap<String, Model>,
    refused: HashSet<Fingerprint>,
}

impl Memory {
    /// Returns what is known of what a model accepts.
    pub(super) fn capabilities(&self, model: &str) -> Option<Capabilities> {
        self.0.lock().capabilities.get(model).cloned()
    }

    /// Remembers what a model turned out to accept.
    pub(super) fn learn(&self, model: &str, capabilities: Capabilities) {
        let mut learnt = self.0.lock();
        if learnt.capabilities.len() >= MAX_MODELS && !learnt.capabilities.contains_key(model) {
            learnt.capabilities.clear();
        }
        learnt.capabilities.insert(model.to_owned(), capabilities);
    }

    /// Remembers a model as the vendor lists it.
    ///
    /// The list says less than a refusal does, so that what was learnt from one stays.
    pub(super) fn list(&self, model: &Model, capabilities: Capabilities) {
        let mut learnt = self.0.lock();
        if learnt.listed.len() >= MAX_MODELS {
            learnt.listed.clear();
        }
        learnt.listed.insert(model.id.clone(), model.clone());
        if learnt.capabilities.len() < MAX_MODELS {
            let known = learnt.capabilities.entry(model.id.clone());
            known.or_insert(capabilities);
        }
    }

    /// Returns a model as the vendor listed it.
    pub(super) fn listed(&self, model: &str) -> Option<Model> {
        self.0.lock().listed.get(model).cloned()
    }

    /// Returns the thinking that the vendor refused.
    pub(super) fn refused(&self) -> HashSet<Fingerprint> {
        self.0.lock().refused.clone()
    }

    /// Remembers thinking that the vendor refused.
    pub(super) fn refuse(&self, thinking: impl Iterator<Item = Fingerprint>) {
        let mut learnt = self.0.lock();
        if learnt.refused.len() >= MAX_REFUSED {
            learnt.refused.clear();
        }
        let room = MAX_REFUSED - learnt.refused.len();
        learnt.refused.extend(thinking.take(room));
    }
}

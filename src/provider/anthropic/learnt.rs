//! What an instance learnt from the vendor while it ran.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::capabilities::Capabilities;
use super::history::Fingerprint;
use crate::message::{Model, Notice};

/// Most models remembered; the vendor has some dozens, a gateway some hundreds.
const MAX_MODELS: usize = 4096;

/// Most refused thinking blocks remembered, at 32 bytes each.
const MAX_REFUSED: usize = 4096;

/// Most notices remembered as told.
const MAX_TOLD: usize = 1024;

/// The memory of an instance. Behind a lock, since turns run side by side; held for a look-up only.
/// What grows beyond its bound is forgotten and learnt anew.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Learnt>);

#[derive(Debug, Default)]
struct Learnt {
    capabilities: HashMap<String, Capabilities>,
    listed: HashMap<String, Model>,
    refused: HashSet<Fingerprint>,
    told: HashSet<(String, String)>,
}

impl Memory {
    /// Returns what is known of what a model accepts.
    pub(super) fn capabilities(&self, model: &str) -> Option<Capabilities> {
        self.lock().capabilities.get(model).cloned()
    }

    /// Remembers what a model turned out to accept.
    pub(super) fn learn(&self, model: &str, capabilities: Capabilities) {
        let mut learnt = self.lock();
        if learnt.capabilities.len() >= MAX_MODELS && !learnt.capabilities.contains_key(model) {
            learnt.capabilities.clear();
        }
        learnt.capabilities.insert(model.to_owned(), capabilities);
    }

    /// Remembers a model as the vendor lists it.
    ///
    /// The list says less than a refusal does, so that what was learnt from one stays.
    pub(super) fn list(&self, model: &Model, capabilities: Capabilities) {
        let mut learnt = self.lock();
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
        self.lock().listed.get(model).cloned()
    }

    /// Returns the thinking that the vendor refused.
    pub(super) fn refused(&self) -> HashSet<Fingerprint> {
        self.lock().refused.clone()
    }

    /// Remembers thinking that the vendor refused.
    pub(super) fn refuse(&self, thinking: impl Iterator<Item = Fingerprint>) {
        let mut learnt = self.lock();
        if learnt.refused.len() >= MAX_REFUSED {
            learnt.refused.clear();
        }
        let room = MAX_REFUSED - learnt.refused.len();
        learnt.refused.extend(thinking.take(room));
    }

    /// Returns those of `notices` that a conversation was not told yet.
    pub(super) fn untold(&self, conversation: &str, notices: &[Notice]) -> Vec<Notice> {
        let learnt = self.lock();
        let is_new = |notice: &&Notice| !learnt.told.contains(&key(conversation, notice));
        notices.iter().filter(is_new).cloned().collect()
    }

    /// Remembers that a conversation was told `notices`.
    pub(super) fn tell(&self, conversation: &str, notices: &[Notice]) {
        let mut learnt = self.lock();
        for notice in notices {
            if learnt.told.len() >= MAX_TOLD {
                learnt.told.clear();
            }
            learnt.told.insert(key(conversation, notice));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Learnt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(conversation: &str, notice: &Notice) -> (String, String) {
    (conversation.to_owned(), notice.message.clone())
}

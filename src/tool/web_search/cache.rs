//! Answers to queries asked before, for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::answer::Answer;

/// The most answers kept.
const KEPT: usize = 128;

/// Answers by query.
#[derive(Debug)]
pub(super) struct Cache {
    time_to_live: Duration,
    answers: Mutex<HashMap<String, (Instant, Arc<Answer>)>>,
}

impl Cache {
    /// Keeps each answer so long; zero keeps none.
    pub(super) fn new(time_to_live: Duration) -> Self {
        Self {
            time_to_live,
            answers: Mutex::default(),
        }
    }

    /// Returns the answer to this very query, where it is not too old.
    pub(super) fn get(&self, query: &str) -> Option<Arc<Answer>> {
        let answers = self.answers.lock();
        let (since, answer) = answers.get(query)?;
        (since.elapsed() < self.time_to_live).then(|| Arc::clone(answer))
    }

    /// Keeps an answer; the oldest goes where there are too many.
    pub(super) fn put(&self, query: &str, answer: &Arc<Answer>) {
        if self.time_to_live.is_zero() {
            return;
        }
        let mut answers = self.answers.lock();
        answers.retain(|_, (since, _)| since.elapsed() < self.time_to_live);
        if answers.len() >= KEPT {
            let oldest = answers
                .iter()
                .min_by_key(|(_, (since, _))| *since)
                .map(|(query, _)| query.clone());
            if let Some(oldest) = oldest {
                answers.remove(&oldest);
            }
        }
        answers.insert(query.to_owned(), (Instant::now(), Arc::clone(answer)));
    }
}

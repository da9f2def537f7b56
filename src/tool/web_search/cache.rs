//! Answers to queries asked before, for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::answer::Answer;

const KEPT: usize = 128;

pub(super) struct Cache {
    time_to_live: Duration,
    answers: Mutex<VecDeque<(String, Instant, Arc<Answer>)>>,
}

impl Cache {
    pub(super) fn new(time_to_live: Duration) -> Self {
        Self {
            time_to_live,
            answers: Mutex::default(),
        }
    }

    pub(super) fn get(&self, query: &str) -> Option<Arc<Answer>> {
        let answers = self.answers.lock();
        let (_, since, answer) = answers.iter().find(|(asked, ..)| asked == query)?;
        (since.elapsed() < self.time_to_live).then(|| Arc::clone(answer))
    }

    pub(super) fn put(&self, query: &str, answer: &Arc<Answer>) {
        let mut answers = self.answers.lock();
        answers.retain(|(asked, since, _)| asked != query && since.elapsed() < self.time_to_live);
        if answers.len() >= KEPT {
            answers.pop_front();
        }
        answers.push_back((query.to_owned(), Instant::now(), Arc::clone(answer)));
    }
}

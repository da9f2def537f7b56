//! What became of each tool call of a session: records for its clients, and the calls still open.
//!
//! A std mutex, held for a look-up or a change of one record. The oldest settled records go first;
//! one whose call is still open never goes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::message::{ConversationId, ToolId};
use crate::protocol::answer::Executions as Page;
use crate::protocol::command::ToolHistory;
use crate::protocol::record::{ExecutionRecord, ExecutionStatus, Sums, ToolMetrics};

/// The most records kept.
const KEPT: usize = 1_000;

/// Records a page holds where the request does not say.
const PAGE: usize = 50;

/// The executions of a session.
#[derive(Debug, Default)]
pub struct Executions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Oldest first; each with its number, which a cursor names.
    records: VecDeque<(u64, ExecutionRecord)>,
    next: u64,
    open: HashMap<ToolId, Open>,
}

#[derive(Debug)]
struct Open {
    conversation: ConversationId,
    cancel: CancellationToken,
}

impl Executions {
    /// Takes up a call that the model has made; `cancel` ends it.
    pub fn open(&self, record: ExecutionRecord, cancel: CancellationToken) {
        let mut state = self.lock();
        let open = Open {
            conversation: record.conversation_id.clone(),
            cancel,
        };
        state.open.insert(record.tool_id.clone(), open);
        let number = state.next;
        state.next += 1;
        state.records.push_back((number, record));
        while state.records.len() > KEPT {
            let Some(settled) = state
                .records
                .iter()
                .position(|(_, record)| !state.open.contains_key(&record.tool_id))
            else {
                break;
            };
            state.records.remove(settled);
        }
    }

    /// Changes the record of a call.
    pub fn update(&self, id: &ToolId, change: impl FnOnce(&mut ExecutionRecord)) {
        let mut state = self.lock();
        if let Some((_, record)) = state
            .records
            .iter_mut()
            .rev()
            .find(|(_, record)| record.tool_id == *id)
        {
            change(record);
        }
    }

    /// Changes the record of a call for the last time and returns it.
    pub fn settle(
        &self,
        id: &ToolId,
        change: impl FnOnce(&mut ExecutionRecord),
    ) -> Option<ExecutionRecord> {
        self.update(id, change);
        self.lock().open.remove(id);
        self.get(id)
    }

    /// Returns the record of a call.
    pub fn get(&self, id: &ToolId) -> Option<ExecutionRecord> {
        self.lock()
            .records
            .iter()
            .rev()
            .find(|(_, record)| record.tool_id == *id)
            .map(|(_, record)| record.clone())
    }

    /// Returns the conversation whose open call this is.
    pub fn conversation_of(&self, id: &ToolId) -> Option<ConversationId> {
        self.lock()
            .open
            .get(id)
            .map(|open| open.conversation.clone())
    }

    /// Returns the calls of a conversation that are still open, oldest first.
    pub fn open_of(&self, conversation: &ConversationId) -> Vec<ToolId> {
        let state = self.lock();
        state
            .records
            .iter()
            .map(|(_, record)| &record.tool_id)
            .filter(|id| {
                state
                    .open
                    .get(id)
                    .is_some_and(|open| open.conversation == *conversation)
            })
            .cloned()
            .collect()
    }

    /// Ends one call; returns whether it was still open.
    pub fn cancel(&self, id: &ToolId) -> bool {
        match self.lock().open.get(id) {
            Some(open) => {
                open.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Returns a page of records, newest first.
    pub fn page(&self, wanted: &ToolHistory) -> Page {
        let limit = wanted.limit.unwrap_or(PAGE).clamp(1, KEPT);
        let before = wanted
            .cursor
            .as_deref()
            .and_then(|cursor| cursor.parse::<u64>().ok())
            .unwrap_or(u64::MAX);
        let state = self.lock();
        let mut found = state
            .records
            .iter()
            .rev()
            .filter(|(number, record)| *number < before && fits(record, wanted));
        let page: Vec<_> = found.by_ref().take(limit).collect();
        let next_cursor = match (found.next(), page.last()) {
            (Some(_), Some((number, _))) => Some(number.to_string()),
            _ => None,
        };
        Page {
            executions: page.into_iter().map(|(_, record)| record.clone()).collect(),
            next_cursor,
        }
    }

    /// Sums up the records.
    pub fn metrics(&self) -> ToolMetrics {
        let state = self.lock();
        let mut tools = HashMap::new();
        let mut providers = HashMap::new();
        let mut metrics = ToolMetrics::default();
        for (_, record) in &state.records {
            match record.status {
                ExecutionStatus::Running => metrics.running += 1,
                ExecutionStatus::Queued => metrics.queued += 1,
                _ => {
                    add(&mut tools, &record.tool_name, record);
                    add(&mut providers, &record.provider, record);
                }
            }
        }
        metrics.tools = sorted(tools);
        metrics.providers = sorted(providers);
        metrics
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fits(record: &ExecutionRecord, wanted: &ToolHistory) -> bool {
    // RFC 3339 in UTC with the same digits: text order is time order.
    wanted
        .conversation_id
        .as_ref()
        .is_none_or(|id| *id == record.conversation_id)
        && wanted
            .provider
            .as_ref()
            .is_none_or(|provider| *provider == record.provider)
        && wanted
            .tool_name
            .as_ref()
            .is_none_or(|name| *name == record.tool_name)
        && wanted.status.is_none_or(|status| status == record.status)
        && wanted
            .since
            .as_ref()
            .is_none_or(|since| record.started_at >= *since)
        && wanted
            .until
            .as_ref()
            .is_none_or(|until| record.started_at < *until)
}

fn add(sums: &mut HashMap<String, (Sums, u64)>, name: &str, record: &ExecutionRecord) {
    let (sums, ran_ms) = sums.entry(name.to_owned()).or_default();
    sums.count += 1;
    match record.status {
        ExecutionStatus::Error => sums.failed += 1,
        ExecutionStatus::Denied => sums.denied += 1,
        ExecutionStatus::Cancelled => sums.cancelled += 1,
        ExecutionStatus::Success | ExecutionStatus::Running | ExecutionStatus::Queued => {}
    }
    *ran_ms += record.duration_ms;
    sums.max_duration_ms = sums.max_duration_ms.max(record.duration_ms);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of at most a thousand records and milliseconds of a session"
)]
fn sorted(sums: HashMap<String, (Sums, u64)>) -> Vec<Sums> {
    let mut all: Vec<Sums> = sums
        .into_iter()
        .map(|(name, (sums, ran_ms))| {
            let ran = (sums.count - sums.denied).max(1);
            Sums {
                name,
                failure_rate: sums.failed as f64 / sums.count.max(1) as f64,
                mean_duration_ms: ran_ms as f64 / ran as f64,
                ..sums
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

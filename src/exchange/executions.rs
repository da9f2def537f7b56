//! What became of each tool call of a session: records for its clients, and the calls still open.
//!
//! A plain mutex, held for a look-up or a change of one record. The oldest settled records go first;
//! one whose call is still open never goes. How one is kept is in `record`, what clients ask of them in `answers`.

mod answers;
mod record;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::recording::Recording;
use crate::audit::{HostRuling, Ruling, Rulings};
use crate::message::{ConversationId, Message, ToolId};
use crate::protocol::answer::{Executions as Page, OutputRange};
use crate::protocol::command::ToolOutput;
use crate::protocol::record::{ExecutionRecord, ExecutionStatus, ToolMetrics};
use crate::store::Journal;

pub(crate) use answers::{Filter, in_sum};
use record::KeptRecord;

/// The most records kept.
const KEPT: usize = 1_000;

/// For how many hosts of one call decisions are kept.
const MAX_HOSTS: usize = 64;

/// Bytes of output that a request gets that does not say how many it wants.
const RANGE: usize = 64 * 1024;

/// The most bytes of output in one answer: more would crowd the events out of the session's log.
const MAX_RANGE: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Executions {
    state: Mutex<State>,
    journal: Journal,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    calls: VecDeque<Call>,
    next: i64,
}

#[derive(Debug)]
struct Call {
    /// What a cursor names.
    number: i64,
    id: ToolId,
    record: KeptRecord,
    /// Whether it has begun to run.
    ran: bool,
    /// Its output, from when it begins to run; a call that did not run has none.
    output: Option<Arc<Recording>>,
    /// `None` once it is settled. Apart, since a thousand settled ones are kept.
    open: Option<Box<Open>>,
}

/// A call as it was when somebody asked.
#[derive(Debug)]
struct Seen {
    number: i64,
    ran: bool,
    record: KeptRecord,
}

/// What ends a call that is still open, and what was decided about it.
#[derive(Debug)]
struct Open {
    cancel: CancellationToken,
    rulings: Rulings,
}

impl Call {
    /// Returns the call as it is now: of one that runs, with what it has come to.
    fn seen(&self) -> Seen {
        let mut record = self.record.clone();
        if let (KeptRecord::Whole(record), Some(output)) = (&mut record, &self.output) {
            match record.status {
                ExecutionStatus::Running => output.so_far(record),
                _ => output.bytes(record),
            }
        }
        Seen {
            number: self.number,
            ran: self.ran,
            record,
        }
    }

    /// Changes the record, and does `note` with what it is then.
    fn change(
        &mut self,
        change: impl FnOnce(&mut ExecutionRecord),
        note: impl FnOnce(&ExecutionRecord),
    ) {
        let mut read;
        let record = match &mut self.record {
            KeptRecord::Whole(record) => record.as_mut(),
            packed => match packed.read() {
                Some(record) => {
                    read = record.into_owned();
                    &mut read
                }
                None => return,
            },
        };
        change(record);
        if let (Some(_), Some(output)) = (&record.background, &self.output) {
            output.bytes(record);
        }
        note(record);
        let background = record.background.as_ref();
        if self.open.is_none() && !background.is_some_and(|command| command.is_running()) {
            self.record = KeptRecord::packed(record);
        }
    }

    /// Whether nothing more comes of it.
    fn is_over(&self) -> bool {
        matches!(self.record, KeptRecord::Packed(_))
    }

    /// Returns the record of a call that is open, or whose command goes on in the background.
    fn live(&self) -> Option<&ExecutionRecord> {
        match &self.record {
            KeptRecord::Whole(record) => Some(record),
            KeptRecord::Packed(_) => None,
        }
    }
}

/// Why there is no output to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoOutput {
    Unknown,
    /// The call is known, and its output had to make room for newer ones.
    Dropped,
}

impl Executions {
    /// Returns records that go on after those that the journal has, each with whether its tool ran.
    pub(crate) fn restored(records: Vec<(ExecutionRecord, bool)>, journal: Journal) -> Self {
        let mut state = State::default();
        for (record, ran) in records {
            let number = state.next;
            state.next += 1;
            state.calls.push_back(Call {
                number,
                id: record.tool_id.clone(),
                record: KeptRecord::packed(&record),
                ran,
                output: None,
                open: None,
            });
        }
        Self {
            state: Mutex::new(state),
            journal,
        }
    }

    /// Takes up a call that the model has made; `cancel` ends it.
    pub(crate) fn open(&self, record: ExecutionRecord, cancel: CancellationToken) {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.calls.push_back(Call {
            number,
            id: record.tool_id.clone(),
            record: KeptRecord::Whole(Box::new(record)),
            ran: false,
            output: None,
            open: Some(Box::new(Open {
                cancel,
                rulings: Rulings::default(),
            })),
        });
        while state.calls.len() > KEPT {
            let Some(oldest) = state.calls.iter().position(Call::is_over) else {
                break;
            };
            state.calls.remove(oldest);
        }
    }

    pub(crate) fn update(&self, id: &ToolId, change: impl FnOnce(&mut ExecutionRecord)) {
        if let Some(call) = self.state.lock().call(id) {
            call.change(change, |_| {});
        }
    }

    /// Notes that a call begins to run; once [`Journal::settled`] returns, that is known whatever happens to the daemon.
    /// Of a call that `keeps`, it is written with what that keeps.
    pub(crate) fn begin(
        &self,
        id: &ToolId,
        keeps: bool,
        change: impl FnOnce(&mut ExecutionRecord),
    ) {
        if let Some(call) = self.state.lock().call(id) {
            call.ran = true;
            let begin = |record: &mut ExecutionRecord| {
                change(record);
                record.status = ExecutionStatus::Running;
            };
            call.change(begin, |record| {
                if !keeps {
                    self.journal.call(record, true, None);
                }
            });
        }
    }

    /// Changes what is known of a call whose command goes on, perhaps after the call itself was settled.
    pub(crate) fn update_kept(&self, id: &ToolId, change: impl FnOnce(&mut ExecutionRecord)) {
        if let Some(call) = self.state.lock().call(id) {
            let is_settled = call.open.is_none();
            call.change(change, |record| {
                if is_settled {
                    self.journal.record(record);
                }
            });
        }
    }

    pub(crate) fn keep(&self, id: &ToolId, recording: Arc<Recording>) {
        if let Some(call) = self.state.lock().call(id) {
            call.output = Some(recording);
        }
    }

    /// Returns a range of a call's output; one that did not run has none, which is an empty range.
    pub(crate) fn output(&self, wanted: &ToolOutput) -> Result<OutputRange, NoOutput> {
        let call = self.state.lock().call(&wanted.tool_id).map(|call| {
            let written = |record: &ExecutionRecord| record.stdout_bytes + record.stderr_bytes;
            let has_output = call.record.read().is_some_and(|it| written(&it) > 0);
            (call.output.clone(), has_output)
        });
        let (output, has_output) = call.ok_or(NoOutput::Unknown)?;
        let limit = wanted.limit.map_or(RANGE, |limit| {
            usize::try_from(limit).unwrap_or(MAX_RANGE).min(MAX_RANGE)
        });
        match output {
            // It ran before the daemon was started anew.
            None if has_output => Err(NoOutput::Dropped),
            Some(recording) => recording
                .range(&wanted.tool_id, wanted.offset, limit)
                .map_err(|_| NoOutput::Dropped),
            None => Ok(OutputRange {
                tool_id: wanted.tool_id.clone(),
                stream: crate::tool::OutputStream::Stdout,
                text: String::new(),
                offset: 0,
                next_offset: None,
                total_bytes: 0,
            }),
        }
    }

    pub(crate) fn rule(&self, id: &ToolId, ruling: Ruling) {
        if let Some(Call {
            open: Some(open), ..
        }) = self.state.lock().call(id)
        {
            open.rulings.call = ruling;
        }
    }

    /// Takes note of what was decided about a host; a host that was decided about counts once, and so many at most.
    pub(crate) fn rule_host(&self, id: &ToolId, ruling: HostRuling) {
        if let Some(Call {
            open: Some(open), ..
        }) = self.state.lock().call(id)
            && open.rulings.hosts.len() < MAX_HOSTS
            && !open.rulings.hosts.iter().any(|it| it.host == ruling.host)
        {
            open.rulings.hosts.push(ruling);
        }
    }

    /// Changes the record of a call for the last time, whose result is `result`; returns it with what was decided about
    /// the call.
    ///
    /// `None` where the call was settled before.
    pub(crate) fn settle(
        &self,
        id: &ToolId,
        result: &Message,
        change: impl FnOnce(&mut ExecutionRecord),
    ) -> Option<(ExecutionRecord, Rulings)> {
        let mut state = self.state.lock();
        let call = state.call(id)?;
        let Open { rulings, .. } = *call.open.take()?;
        let (ran, mut settled) = (call.ran, None);
        call.change(change, |record| {
            self.journal.call(record, ran, Some(result));
            settled = Some(record.clone());
        });
        Some((settled?, rulings))
    }

    pub(crate) fn get(&self, id: &ToolId) -> Option<ExecutionRecord> {
        let seen = self.state.lock().call(id)?.seen();
        seen.record.read().map(Cow::into_owned)
    }

    /// Returns the conversation whose open call this is, or whose command in the background it started.
    pub(crate) fn conversation_of(&self, id: &ToolId) -> Option<ConversationId> {
        let mut state = self.state.lock();
        Some(state.call(id)?.live()?.conversation_id.clone())
    }

    /// Returns the calls of a conversation that are still open, oldest first.
    pub(crate) fn open_of(&self, conversation: &ConversationId) -> Vec<ToolId> {
        let state = self.state.lock();
        let open = state.calls.iter().filter(|call| call.open.is_some());
        open.filter(|call| {
            call.live()
                .is_some_and(|it| it.conversation_id == *conversation)
        })
        .map(|call| call.id.clone())
        .collect()
    }

    pub(crate) fn cancel(&self, id: &ToolId) {
        if let Some(Call {
            open: Some(open), ..
        }) = self.state.lock().call(id)
        {
            open.cancel.cancel();
        }
    }

    /// Returns a page of records, newest first.
    pub(crate) fn page(&self, wanted: &Filter) -> Page {
        answers::page(wanted, self.seen().into_iter().rev())
    }

    /// Returns the sums of the calls that were made on a day, which is counted since 1970 (UTC), or later.
    pub(crate) fn metrics(&self, from_day: i64) -> ToolMetrics {
        answers::sums(&self.seen(), self.open_now(), from_day)
    }

    /// Returns how many calls run, and how many wait.
    pub(crate) fn open_now(&self) -> (usize, usize) {
        let state = self.state.lock();
        answers::open_now(state.calls.iter().filter_map(Call::live))
    }

    /// Returns all calls, oldest first. They are read without the lock, which calls that run need.
    fn seen(&self) -> Vec<Seen> {
        self.state.lock().calls.iter().map(Call::seen).collect()
    }
}

impl State {
    /// Returns the newest call of this id.
    fn call(&mut self, id: &ToolId) -> Option<&mut Call> {
        let mut newest = self.calls.iter_mut().rev();
        newest.find(|call| call.id == *id)
    }
}

#[cfg(test)]
mod tests;

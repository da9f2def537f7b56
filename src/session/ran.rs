//! Requests about what ran: records, sums, and records for other programs; of this session, or of all of its user's that are
//! kept.

mod export;

use std::sync::Arc;

use jiff::Timestamp;
use outrigger_store::MS_OF_DAY;

use super::kept::failed;
use super::others::OtherSessions;
use super::resolve::invalid;
use super::{Session, UserSessions};
use crate::exchange::executions::{Executions, Filter, in_sum};
use crate::message::SessionId;
use crate::protocol::RequestId;
use crate::protocol::answer::{Executions as Page, Export};
use crate::protocol::command::{ExportFormat, MetricsRequest, Scope, ToolExport, ToolHistory};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::record::{ExecutionRecord, ExecutionStatus};
use crate::runtime::block_in_place;
use crate::store::{Store as _, UserStore, calls};

/// The most days that sums are asked of: those that the store has.
const MOST_DAYS: u32 = 800;

/// Records of a piece of an export where the request does not say.
const PIECE: usize = 1_000;

impl Session {
    pub(super) fn tool_history(&self, wanted: ToolHistory, id: Option<&RequestId>) {
        self.with_page("tool:history", wanted, id, Event::ToolHistoryResult);
    }

    pub(super) fn tool_export(&self, wanted: ToolExport, id: Option<&RequestId>) {
        let (format, mut wanted) = wanted.into_history();
        wanted.limit = wanted.limit.or(Some(PIECE));
        let is_first = wanted.cursor.is_none();
        let redactor = self.services.redactor.clone();
        let this = self.ready.session_id.clone();
        self.with_page("tool:export", wanted, id, move |mut page| {
            // A piece of a mebibyte takes a while to be cleaned.
            let text = block_in_place(|| {
                for record in &mut page.executions {
                    record.session_id.get_or_insert_with(|| this.clone());
                    export::clean(record, &redactor);
                }
                match format {
                    ExportFormat::Jsonl => export::json_lines(&page.executions),
                    ExportFormat::Csv => export::csv(&page.executions, is_first),
                }
            });
            Event::ToolExportResult(Export {
                format,
                text,
                records: page.executions.len(),
                next_cursor: page.next_cursor,
            })
        });
    }

    pub(super) fn tool_metrics(&self, wanted: &MetricsRequest, id: Option<&RequestId>) {
        if wanted
            .days
            .is_some_and(|days| !(1..=MOST_DAYS).contains(&days))
        {
            let problem = format!("tool:metrics: field `days` must be 1 to {MOST_DAYS}");
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let today = Timestamp::now().as_millisecond().div_euclid(MS_OF_DAY);
        let from = wanted
            .days
            .map_or(i64::MIN, |days| today + 1 - i64::from(days));
        match wanted.scope {
            Scope::Session => {
                let metrics = self.shared.executions.metrics(from);
                self.answer(id, Event::ToolMetricsResult(metrics));
            }
            Scope::Daemon => {
                let sessions = self.others();
                self.with_store(id, async move |store| {
                    let ran = store.ran(from).await.map_err(|error| failed(&error))?;
                    let open = live(&sessions, UserSessions::open_calls).unwrap_or_default();
                    Ok(Event::ToolMetricsResult(in_sum(ran, open)))
                });
            }
        }
    }

    /// Answers with what becomes of a page of records.
    fn with_page(
        &self,
        request: &str,
        wanted: ToolHistory,
        id: Option<&RequestId>,
        answer: impl FnOnce(Page) -> Event + Send + 'static,
    ) {
        let scope = wanted.scope;
        let filter = match Filter::of(wanted) {
            Ok(filter) => filter,
            Err(problem) => {
                let problem = invalid(format!("{request}: {problem}"));
                return self.answer(id, Event::SessionError(problem));
            }
        };
        match scope {
            Scope::Session => self.answer(id, answer(self.shared.executions.page(&filter))),
            Scope::Daemon => {
                let sessions = self.others();
                self.with_store(id, async move |store| {
                    Ok(answer(page(&store, &sessions, &filter).await?))
                });
            }
        }
    }
}

/// Returns a page of the calls of all sessions that are kept.
async fn page(
    store: &UserStore,
    sessions: &OtherSessions,
    filter: &Filter,
) -> Result<Page, SessionError> {
    let Some(listing) = filter.listing() else {
        return Ok(Page {
            executions: Vec::new(),
            next_cursor: None,
        });
    };
    let found = store.calls(listing).await.map_err(|error| failed(&error))?;
    let records = found.calls.into_iter().filter_map(calls::known);
    Ok(Page {
        executions: records.map(|record| as_it_is(record, sessions)).collect(),
        next_cursor: found.next.map(|key| key.to_string()),
    })
}

/// Returns a record as it is now: what goes on is its session's to say, and what did so without one was broken off.
fn as_it_is(record: ExecutionRecord, sessions: &OtherSessions) -> ExecutionRecord {
    let goes_on = record.status == ExecutionStatus::Running
        || record.background.as_ref().is_some_and(|it| it.is_running());
    if !goes_on {
        return record;
    }
    let of = |id: &SessionId| live(sessions, |sessions| sessions.executions_of(id))?;
    let executions: Option<Arc<Executions>> = record.session_id.as_ref().and_then(of);
    match executions.and_then(|it| it.get(&record.tool_id)) {
        Some(now) => ExecutionRecord {
            session_id: record.session_id,
            ..now
        },
        None => calls::broken_off(record),
    }
}

/// Asks the sessions there are; `None` where the daemon ends.
fn live<T>(sessions: &OtherSessions, ask: impl FnOnce(&UserSessions) -> T) -> Option<T> {
    sessions.upgrade().map(|sessions| ask(&sessions))
}

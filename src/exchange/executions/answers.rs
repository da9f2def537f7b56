//! What clients ask of the records: pages, newest first, and sums by tool and by provider. Pure.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{Call, KEPT};
use crate::protocol::answer::Executions as Page;
use crate::protocol::command::ToolHistory;
use crate::protocol::json_bytes;
use crate::protocol::record::{ExecutionRecord, ExecutionStatus, Sums, ToolMetrics};

/// Records a page holds where the request does not say.
const PAGE: usize = 50;

/// The most bytes of inputs in one page, but for a single record: more would crowd the events out of the
/// session's log.
const PAGE_BYTES: usize = 1024 * 1024;

/// Returns the page that a request asks for of calls, which come newest first.
/// An error says what is wrong with which field.
pub(super) fn page<'c>(
    request: &ToolHistory,
    calls: impl Iterator<Item = &'c Call>,
) -> Result<Page, String> {
    if request.limit == Some(0) {
        return Err("field `limit` must be 1 at least".to_owned());
    }
    let before = match request.cursor.as_deref().map(str::parse::<u64>) {
        None => u64::MAX,
        Some(Ok(before)) => before,
        Some(Err(_)) => {
            return Err("field `cursor` is no `nextCursor` of an earlier answer".to_owned());
        }
    };
    let since = time("since", request.since.as_deref())?;
    let until = time("until", request.until.as_deref())?;
    let is_in_time = |at: Timestamp| {
        since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until)
    };
    let fits = |record: &ExecutionRecord| {
        let conversation = request.conversation_id.as_ref();
        let (provider, tool) = (request.provider.as_ref(), request.tool_name.as_ref());
        conversation.is_none_or(|id| *id == record.conversation_id)
            && provider.is_none_or(|provider| *provider == record.provider)
            && tool.is_none_or(|tool| *tool == record.tool_name)
            && request.status.is_none_or(|status| status == record.status)
            && ((since.is_none() && until.is_none())
                || record.started_at.parse().is_ok_and(is_in_time))
    };
    let limit = request.limit.unwrap_or(PAGE).min(KEPT);
    let mut page = Page {
        executions: Vec::new(),
        next_cursor: None,
    };
    let (mut bytes, mut last) = (0_usize, None);
    for call in calls.filter(|call| call.number < before && fits(&call.record)) {
        bytes = json_bytes(&call.record.input).saturating_add(bytes);
        if page.executions.len() >= limit || (last.is_some() && bytes > PAGE_BYTES) {
            page.next_cursor = last.map(|number: u64| number.to_string());
            break;
        }
        page.executions.push(call.so_far());
        last = Some(call.number);
    }
    Ok(page)
}

/// Reads a time of a request, in any zone.
fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, String> {
    text.map(str::parse).transpose().map_err(|_| {
        format!("field `{field}` is no time as RFC 3339 has it, such as 2026-11-20T12:00:00Z")
    })
}

/// The sums of one name, and of the calls that ran how many there are and for how many milliseconds they did.
#[derive(Default)]
struct Total {
    sums: Sums,
    ran: u64,
    ran_ms: u64,
}

pub(super) fn sums<'c>(calls: impl Iterator<Item = &'c Call>) -> ToolMetrics {
    let mut tools = HashMap::new();
    let mut providers = HashMap::new();
    let mut metrics = ToolMetrics::default();
    for call in calls {
        match call.record.status {
            ExecutionStatus::Running => metrics.running += 1,
            ExecutionStatus::Queued => metrics.queued += 1,
            _ => {
                add(&mut tools, &call.record.tool_name, call);
                add(&mut providers, &call.record.provider, call);
            }
        }
    }
    metrics.tools = sorted(tools);
    metrics.providers = sorted(providers);
    metrics
}

fn add(sums: &mut HashMap<String, Total>, name: &str, call: &Call) {
    let record = &call.record;
    let sum = sums.entry(name.to_owned()).or_default();
    sum.sums.count += 1;
    match record.status {
        ExecutionStatus::Error => sum.sums.failed += 1,
        ExecutionStatus::Denied => sum.sums.denied += 1,
        ExecutionStatus::Cancelled => sum.sums.cancelled += 1,
        ExecutionStatus::Success | ExecutionStatus::Running | ExecutionStatus::Queued => {}
    }
    sum.ran += u64::from(call.output.is_some());
    sum.ran_ms += record.duration_ms;
    sum.sums.max_duration_ms = sum.sums.max_duration_ms.max(record.duration_ms);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of at most a thousand records and milliseconds of a session"
)]
fn sorted(sums: HashMap<String, Total>) -> Vec<Sums> {
    let mut all: Vec<Sums> = sums
        .into_iter()
        .map(|(name, sum)| Sums {
            name,
            failure_rate: sum.sums.failed as f64 / sum.sums.count.max(1) as f64,
            mean_duration_ms: sum.ran_ms as f64 / sum.ran.max(1) as f64,
            ..sum.sums
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

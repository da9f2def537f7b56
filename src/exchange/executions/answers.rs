//! What clients ask of the records: pages, newest first, and sums. Pure.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use outrigger_store::{CallListing, MS_OF_DAY, Sum};

use super::{KEPT, Seen};
use crate::protocol::answer::Executions as Page;
use crate::protocol::command::ToolHistory;
use crate::protocol::json_bytes;
use crate::protocol::record::{ExecutionRecord, ExecutionStatus, Sums, ToolMetrics};
use crate::store::calls;

/// Records a page holds where the request does not say.
const PAGE: usize = 50;

/// The most bytes of inputs in one page, but for a single record: more would crowd the events out of the
/// session's log.
const PAGE_BYTES: usize = 1024 * 1024;

/// The most commands that are answered with, those with the most calls.
const COMMANDS: usize = 50;

/// Which records a request asks for.
#[derive(Debug)]
pub(crate) struct Filter {
    wanted: ToolHistory,
    limit: usize,
    before: Option<i64>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Filter {
    /// Reads a request. An error says what is wrong with which field.
    pub(crate) fn of(wanted: ToolHistory) -> Result<Self, String> {
        if wanted.limit == Some(0) {
            return Err("field `limit` must be 1 at least".to_owned());
        }
        let before = wanted.cursor.as_deref().map(place).transpose()?;
        Ok(Self {
            limit: wanted.limit.unwrap_or(PAGE).min(KEPT),
            before,
            since: time("since", wanted.since.as_deref())?,
            until: time("until", wanted.until.as_deref())?,
            wanted,
        })
    }

    fn fits(&self, record: &ExecutionRecord) -> bool {
        let wanted = &self.wanted;
        let is_in_time = |at: Timestamp| {
            self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
        };
        let conversation = wanted.conversation_id.as_ref();
        let (provider, tool) = (wanted.provider.as_ref(), wanted.tool_name.as_ref());
        conversation.is_none_or(|id| *id == record.conversation_id)
            && provider.is_none_or(|provider| *provider == record.provider)
            && tool.is_none_or(|tool| *tool == record.tool_name)
            && wanted.status.is_none_or(|status| status == record.status)
            && ((self.since.is_none() && self.until.is_none())
                || record.started_at.parse().is_ok_and(is_in_time))
    }

    /// Returns what to ask the store for; `None` where it has no such calls.
    pub(crate) fn listing(&self) -> Option<CallListing> {
        let wanted = &self.wanted;
        let status = match wanted.status {
            None => None,
            Some(status) => Some(calls::status(status)?),
        };
        // A millisecond is the least that it has: a time between two is that of the later one.
        let ms = |time: Timestamp| {
            let ms = time.as_millisecond();
            let is_between = Timestamp::from_millisecond(ms).is_ok_and(|whole| whole < time);
            ms + i64::from(is_between)
        };
        Some(CallListing {
            conversation: wanted.conversation_id.as_ref().map(ToString::to_string),
            provider: wanted.provider.clone(),
            tool: wanted.tool_name.clone(),
            status,
            since_ms: self.since.map(ms),
            until_ms: self.until.map(ms),
            cursor: self.before,
            limit: self.limit,
            bytes: PAGE_BYTES,
        })
    }
}

/// Returns the page that a request asks for of calls, which come newest first.
pub(super) fn page(filter: &Filter, calls: impl Iterator<Item = Seen>) -> Page {
    let mut page = Page {
        executions: Vec::new(),
        next_cursor: None,
    };
    let (mut bytes, mut last) = (0_usize, None);
    let before = filter.before.unwrap_or(i64::MAX);
    for call in calls.filter(|call| call.number < before) {
        let Some(record) = call.record.read().filter(|record| filter.fits(record)) else {
            continue;
        };
        bytes = json_bytes(&record.input).saturating_add(bytes);
        if page.executions.len() >= filter.limit || (last.is_some() && bytes > PAGE_BYTES) {
            page.next_cursor = last.map(|number: i64| number.to_string());
            break;
        }
        page.executions.push(record.into_owned());
        last = Some(call.number);
    }
    page
}

/// Reads a cursor: the number of a call, before which there is another one.
fn place(cursor: &str) -> Result<i64, String> {
    let number = cursor.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "field `cursor` is no `nextCursor` of an earlier answer".to_owned())
}

/// Reads a time of a request, in any zone.
fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, String> {
    text.map(str::parse).transpose().map_err(|_| {
        format!("field `{field}` is no time as RFC 3339 has it, such as 2026-11-20T12:00:00Z")
    })
}

/// Returns how many calls run, and how many wait.
pub(super) fn open_now<'r>(records: impl Iterator<Item = &'r ExecutionRecord>) -> (usize, usize) {
    records.fold((0, 0), |(running, queued), record| match record.status {
        ExecutionStatus::Running => (running + 1, queued),
        ExecutionStatus::Queued => (running, queued + 1),
        _ => (running, queued),
    })
}

/// Returns the sums of calls that were made on a day or later, with how many run and wait.
pub(super) fn sums(seen: &[Seen], open: (usize, usize), from_day: i64) -> ToolMetrics {
    let [mut tools, mut providers, mut commands, mut days] = [(); 4].map(|()| HashMap::new());
    for call in seen {
        let Some(record) = call.record.read() else {
            continue;
        };
        let facts = calls::facts(&record);
        let is_settled = calls::status(record.status).is_some();
        if !is_settled || facts.day() < from_day {
            continue;
        }
        let add = |sums: &mut HashMap<String, Sum>, name: &str| {
            let sum = sums.entry(name.to_owned()).or_default();
            sum.add(&facts, call.ran);
        };
        add(&mut tools, &facts.tool);
        add(&mut providers, &facts.provider);
        add(&mut days, &facts.day().to_string());
        for command in &facts.commands {
            add(&mut commands, command);
        }
    }
    let named = |sums: HashMap<String, Sum>| {
        let named = sums.into_iter().map(|(name, sum)| Sum { name, ..sum });
        named.filter(|sum| sum.calls > 0).collect()
    };
    let ran = outrigger_store::Ran {
        tools: named(tools),
        providers: named(providers),
        commands: named(commands),
        days: named(days),
    };
    in_sum(ran, open)
}

/// Returns sums as clients are answered, with how many calls run and wait.
pub(crate) fn in_sum(ran: outrigger_store::Ran, (running, queued): (usize, usize)) -> ToolMetrics {
    let by_name = |sums: Vec<Sum>| {
        let mut sums: Vec<Sums> = sums.into_iter().map(shown).collect();
        sums.sort_by(|a, b| a.name.cmp(&b.name));
        sums
    };
    let mut commands: Vec<Sums> = ran.commands.into_iter().map(shown).collect();
    commands.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    commands.truncate(COMMANDS);
    let days = ran.days.into_iter().filter_map(|sum| {
        let name = date(sum.name.parse().ok()?)?.to_string();
        Some(Sum { name, ..sum })
    });
    ToolMetrics {
        tools: by_name(ran.tools),
        providers: by_name(ran.providers),
        days: by_name(days.collect()),
        commands,
        running,
        queued,
    }
}

/// Returns a day since 1970.
fn date(day: i64) -> Option<Date> {
    let at = Timestamp::from_millisecond(day.checked_mul(MS_OF_DAY)?).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::UTC).date())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of calls and milliseconds of a few years"
)]
fn shown(sum: Sum) -> Sums {
    Sums {
        name: sum.name,
        count: sum.calls,
        failed: sum.failed,
        denied: sum.denied,
        cancelled: sum.cancelled,
        failure_rate: sum.failed as f64 / sum.calls.max(1) as f64,
        mean_duration_ms: sum.duration_ms as f64 / sum.began.max(1) as f64,
        max_duration_ms: sum.longest_ms,
        cpu_ms: sum.cpu_ms,
        max_rss_bytes: sum.memory,
        input_bytes: sum.input_bytes,
        output_bytes: sum.output_bytes,
    }
}

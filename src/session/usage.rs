//! What requests to models took and cost, of all sessions, from the store's ledger.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use outrigger_store::{MS_OF_QUARTER, UsageBy, UsageQuery, UsageSum, UsageTokens};

use super::Session;
use super::kept::failed;
use super::resolve::invalid;
use crate::config::Config;
use crate::message::{ConversationId, Money};
use crate::protocol::RequestId;
use crate::protocol::budget::{GroupBy, UsageReport, UsageReported, UsageRow};
use crate::protocol::event::{Event, SessionError};
use crate::spend::{Account, Days};
use crate::store::Store as _;
use crate::store::restored::Restored;
use crate::users::User;

/// The most rows of an answer.
const MOST_ROWS: usize = 1_000;

/// How far back a report goes where the request does not say.
const USUAL: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The longest time of a report.
const LONGEST: SignedDuration = SignedDuration::from_hours(800 * 24);

/// What the daemon's one user is called, who has no name.
const USER: &str = "default";

/// Returns what a user is called where somebody looks at several.
pub(super) fn shown(user: &User) -> String {
    match user.as_str() {
        "" => USER.to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the account of a session, and what each of its conversations spent before.
pub(super) fn restored(
    restored: Option<&Restored>,
    config: &Config,
) -> (Arc<Account>, HashMap<ConversationId, Money>) {
    let spent = restored.into_iter().flat_map(|it| it.spent.iter().cloned());
    let spent: HashMap<_, _> = spent.collect();
    (account(config.budget.session, spent.values()), spent)
}

/// Returns the account of a session or a conversation of which so much was spent before.
pub(super) fn account<'a>(
    most: Option<Money>,
    spent: impl IntoIterator<Item = &'a Money>,
) -> Arc<Account> {
    let account = Account::limited(most);
    account.add(spent.into_iter().copied().sum());
    Arc::new(account)
}

impl Session {
    pub(super) fn usage_report(&self, wanted: &UsageReport, id: Option<&RequestId>) {
        let spend = &self.services.spend;
        let (since, until) = match range(wanted, spend.now()) {
            Ok(range) => range,
            Err(problem) => {
                let problem = invalid(format!("usage:report: {problem}"));
                return self.answer(id, Event::SessionError(problem));
            }
        };
        let (group_by, days) = (wanted.group_by, spend.days().clone());
        let user = self.grant.user.clone();
        let query = UsageQuery {
            since_ms: since.as_millisecond(),
            until_ms: until.as_millisecond(),
            by: by(group_by),
            limit: match group_by {
                GroupBy::Day => usize::MAX,
                _ => MOST_ROWS + 1,
            },
        };
        self.with_store(id, async move |store| {
            let sums = store.usage(query).await;
            let sums = sums.map_err(|error| failed(&error))?;
            let mut rows = rows(sums, group_by, (&days, &user));
            let truncated = rows.len() > MOST_ROWS;
            rows.truncate(MOST_ROWS);
            Ok::<_, SessionError>(Event::UsageReportResult(UsageReported {
                since: format!("{since:.3}"),
                until: format!("{until:.3}"),
                group_by,
                rows,
                truncated,
            }))
        });
    }
}

/// Returns from when to when a report is wanted.
fn range(wanted: &UsageReport, now: Timestamp) -> Result<(Timestamp, Timestamp), String> {
    let read = |field: &str, text: &Option<String>, otherwise: Timestamp| {
        let Some(text) = text else {
            return Ok(otherwise);
        };
        let problem = || format!("field `{field}` must be a time such as 2026-11-25T00:00:00Z");
        text.parse().map_err(|_| problem())
    };
    let until = read("until", &wanted.until, now)?;
    let usual = until.saturating_sub(USUAL).unwrap_or(Timestamp::MIN);
    let since = read("since", &wanted.since, usual)?;
    match until.duration_since(since) {
        took if took.is_negative() => Err("field `until` must not be before `since`".to_owned()),
        took if took > LONGEST => {
            Err("`since` and `until` must be at most 800 days apart".to_owned())
        }
        _ => Ok((since, until)),
    }
}

fn by(group_by: GroupBy) -> UsageBy {
    match group_by {
        GroupBy::Day => UsageBy::Quarter,
        GroupBy::Model => UsageBy::Model,
        GroupBy::Provider => UsageBy::Provider,
        GroupBy::User => UsageBy::All,
        GroupBy::Conversation => UsageBy::Conversation,
        GroupBy::Kind => UsageBy::Kind,
        GroupBy::Session => UsageBy::Session,
    }
}

fn rows(sums: Vec<UsageSum>, group_by: GroupBy, (days, user): (&Days, &User)) -> Vec<UsageRow> {
    let is_of_conversation = group_by == GroupBy::Conversation;
    let row = |sum: UsageSum| UsageRow {
        session_id: Some(sum.session).filter(|id| is_of_conversation && !id.is_empty()),
        key: match group_by {
            GroupBy::User => shown(user),
            _ => sum.key,
        },
        requests: sum.requests,
        input_tokens: sum.tokens.input,
        output_tokens: sum.tokens.output,
        cache_read_tokens: sum.tokens.cache_read,
        cache_write_tokens: sum.tokens.cache_write,
        spent_usd: Money::from_micros(sum.micros),
        unpriced: sum.unpriced,
        estimated: sum.estimated,
    };
    match group_by {
        GroupBy::Day => by_day(sums, days).into_iter().map(row).collect(),
        _ => sums.into_iter().map(row).collect(),
    }
}

/// Adds quarters of an hour up to days, the oldest first.
fn by_day(sums: Vec<UsageSum>, days: &Days) -> Vec<UsageSum> {
    let mut found: BTreeMap<String, UsageSum> = BTreeMap::new();
    for sum in sums {
        let quarter = sum.key.parse::<i64>().unwrap_or(0);
        let at = Timestamp::from_millisecond(quarter.saturating_mul(MS_OF_QUARTER));
        let day = days.day(at.unwrap_or_default()).to_string();
        let known = found.remove(&day).unwrap_or_default();
        let (a, b) = (known.tokens, sum.tokens);
        let sum = UsageSum {
            key: day.clone(),
            session: String::new(),
            requests: known.requests.saturating_add(sum.requests),
            tokens: UsageTokens {
                input: a.input.saturating_add(b.input),
                cache_read: a.cache_read.saturating_add(b.cache_read),
                cache_write: a.cache_write.saturating_add(b.cache_write),
                output: a.output.saturating_add(b.output),
            },
            micros: known.micros.saturating_add(sum.micros),
            unpriced: known.unpriced.saturating_add(sum.unpriced),
            estimated: known.estimated.saturating_add(sum.estimated),
        };
        found.insert(day, sum);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_report_has_a_time_that_is_neither_backwards_nor_endless() {
        let now = "2026-11-25T12:00:00Z".parse().unwrap();
        for (since, until, expected) in [
            (
                None,
                None,
                Some(("2026-10-26T12:00:00Z", "2026-11-25T12:00:00Z")),
            ),
            (
                Some("2026-11-01T00:00:00+01:00"),
                None,
                Some(("2026-10-31T23:00:00Z", "2026-11-25T12:00:00Z")),
            ),
            (Some("2026-11-26T00:00:00Z"), None, None),
            (Some("2020-01-01T00:00:00Z"), None, None),
            (Some("yesterday"), None, None),
        ] {
            let wanted = UsageReport {
                since: since.map(str::to_owned),
                until: until.map(|it: &str| it.to_owned()),
                group_by: GroupBy::Day,
            };
            let found = range(&wanted, now).ok();
            let found = found.map(|(since, until)| (since.to_string(), until.to_string()));
            let expected = expected.map(|(a, b): (&str, &str)| (a.to_owned(), b.to_owned()));
            assert_eq!(found, expected, "{since:?}");
        }
    }

    #[test]
    fn quarters_of_an_hour_become_days_of_a_zone() {
        let quarter = |at: &str, micros| {
            let at: Timestamp = at.parse().unwrap();
            UsageSum {
                key: (at.as_millisecond() / MS_OF_QUARTER).to_string(),
                requests: 1,
                micros,
                ..UsageSum::default()
            }
        };
        let sums = vec![
            quarter("2026-11-25T23:45:00Z", 4),
            quarter("2026-11-25T22:45:00Z", 2),
            quarter("2026-11-25T00:00:00Z", 1),
        ];
        let keys = |zone| {
            let rows = rows(
                sums.clone(),
                GroupBy::Day,
                (&Days::new(zone), &User::default()),
            );
            let rows = rows.into_iter();
            rows.map(|row| (row.key, row.requests, row.spent_usd.micros()))
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(TimeZone::UTC), [("2026-11-25".to_owned(), 3, 7)]);
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let expected = [
            ("2026-11-25".to_owned(), 2, 3),
            ("2026-11-26".to_owned(), 1, 4),
        ];
        assert_eq!(keys(berlin), expected);
    }
}

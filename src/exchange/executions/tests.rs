use serde_json::Map;

use super::*;
use crate::message::{Danger, DangerLevel, ToolCategory};
use crate::protocol::command::ToolHistory;
use crate::protocol::record::{Approval, ExecutionStatus, Resources};

fn record(number: usize) -> ExecutionRecord {
    ExecutionRecord {
        tool_id: ToolId::new(format!("t{number}")),
        session_id: None,
        conversation_id: ConversationId::new("c"),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        provider_call_id: None,
        tool_name: if number.is_multiple_of(2) {
            "even"
        } else {
            "odd"
        }
        .to_owned(),
        input: Map::new(),
        input_bytes: 2,
        commands: Vec::new(),
        category: ToolCategory::Exec,
        danger: Danger {
            level: DangerLevel::Safe,
            reasons: Vec::new(),
        },
        approval: Approval::default(),
        status: ExecutionStatus::Queued,
        exit_code: None,
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        duration_ms: 0,
        queued_ms: 0,
        sandbox: None,
        resources: None,
        background: None,
        started_at: format!("2026-11-20T12:00:00.{:03}Z", number % 1_000),
    }
}

fn with(count: usize) -> Executions {
    let executions = Executions::default();
    for number in 0..count {
        executions.open(record(number), CancellationToken::new());
        executions.settle(&ToolId::new(format!("t{number}")), &result(), |record| {
            record.status = ExecutionStatus::Success;
        });
    }
    executions
}

fn paged(executions: &Executions, wanted: &ToolHistory) -> Result<Page, String> {
    Ok(executions.page(&Filter::of(wanted.clone())?))
}

fn ids(page: &Page) -> Vec<&str> {
    page.executions
        .iter()
        .map(|record| record.tool_id.as_str())
        .collect()
}

#[test]
fn pages_join_without_gap_or_repetition() {
    let executions = with(12);
    let mut wanted = ToolHistory {
        tool_name: Some("odd".to_owned()),
        limit: Some(4),
        ..ToolHistory::default()
    };
    let first = paged(&executions, &wanted).unwrap();
    assert_eq!(ids(&first), ["t11", "t9", "t7", "t5"]);
    wanted.cursor.clone_from(&first.next_cursor);
    let second = paged(&executions, &wanted).unwrap();
    assert_eq!(ids(&second), ["t3", "t1"]);
    assert_eq!(second.next_cursor, None);
}

#[test]
fn times_are_read_in_any_zone_and_what_is_none_is_refused() {
    let executions = with(5);
    let wanted = |since: &str, until: &str| ToolHistory {
        since: Some(since.to_owned()),
        until: Some(until.to_owned()),
        ..ToolHistory::default()
    };
    let page = paged(
        &executions,
        &wanted("2026-11-20T13:00:00.001+01:00", "2026-11-20T12:00:00.0035Z"),
    );
    assert_eq!(ids(&page.unwrap()), ["t3", "t2", "t1"]);
    for (wanted, field) in [
        (wanted("yesterday", "2026-11-20T12:00:00Z"), "since"),
        (wanted("2026-11-20T12:00:00Z", "12:00"), "until"),
        (
            ToolHistory {
                cursor: Some("x".to_owned()),
                ..ToolHistory::default()
            },
            "cursor",
        ),
        (
            ToolHistory {
                cursor: Some("-1".to_owned()),
                ..ToolHistory::default()
            },
            "cursor",
        ),
        (
            ToolHistory {
                limit: Some(0),
                ..ToolHistory::default()
            },
            "limit",
        ),
    ] {
        let problem = paged(&executions, &wanted).unwrap_err();
        assert!(problem.contains(field), "{problem}");
    }
}

#[test]
fn the_last_thousand_are_kept_and_open_ones_for_good() {
    let executions = Executions::default();
    executions.open(record(5_000), CancellationToken::new());
    for number in 0..KEPT + 10 {
        executions.open(record(number), CancellationToken::new());
        executions.settle(&ToolId::new(format!("t{number}")), &result(), |_| {});
    }
    assert!(executions.get(&ToolId::new("t5000")).is_some());
    assert!(executions.get(&ToolId::new("t10")).is_none());
    assert_eq!(executions.state.lock().calls.len(), KEPT);
}

#[test]
fn the_mean_is_of_the_calls_that_ran() {
    let executions = Executions::default();
    for (number, status, ran_ms) in [
        (0, ExecutionStatus::Success, Some(10)),
        (2, ExecutionStatus::Error, Some(20)),
        // An unknown tool, an input that does not fit, a cancel before its turn.
        (4, ExecutionStatus::Error, None),
        (6, ExecutionStatus::Cancelled, None),
        (8, ExecutionStatus::Denied, None),
    ] {
        let id = ToolId::new(format!("t{number}"));
        executions.open(record(number), CancellationToken::new());
        if ran_ms.is_some() {
            executions.begin(&id, false, |_| {});
        }
        executions.settle(&id, &result(), |record| {
            record.status = status;
            record.duration_ms = ran_ms.unwrap_or(0);
        });
    }
    let sums = &executions.metrics(i64::MIN).tools[0];
    assert_eq!(
        (sums.count, sums.failed, sums.denied, sums.cancelled),
        (5, 2, 1, 1)
    );
    assert!((sums.mean_duration_ms - 15.0).abs() < 1e-9, "{sums:?}");
}

#[test]
fn sums_are_of_the_days_that_are_asked_for_and_reach_over_a_restart() {
    let settled = |number, at: &str, commands: &[&str], status| {
        let record = ExecutionRecord {
            started_at: at.to_owned(),
            commands: commands.iter().map(|it| (*it).to_owned()).collect(),
            status,
            duration_ms: 10,
            stdout_bytes: 3,
            stderr_bytes: 4,
            resources: Some(Resources {
                cpu_ms: 5,
                max_rss_bytes: 100 + number as u64,
            }),
            ..record(number)
        };
        (record, true)
    };
    let (success, error) = (ExecutionStatus::Success, ExecutionStatus::Error);
    let records = vec![
        settled(0, "2026-11-18T23:59:59.999Z", &["ls"], success),
        settled(1, "2026-11-19T00:00:00Z", &["cd", "cargo test"], error),
        settled(2, "2026-11-20T12:00:00+13:00", &["cargo test"], success),
    ];
    let executions = Executions::restored(records, Journal::default());
    let named = |sums: &[crate::protocol::record::Sums]| {
        let sums = sums.iter();
        sums.map(|it| format!("{} {} {}", it.name, it.count, it.failed))
            .collect::<Vec<_>>()
    };
    let all = executions.metrics(i64::MIN);
    assert_eq!(named(&all.days), ["2026-11-18 1 0", "2026-11-19 2 1"]);
    assert_eq!(named(&all.commands), ["cargo test 2 1", "cd 1 1", "ls 1 0"]);
    assert_eq!(named(&all.tools), ["even 2 0", "odd 1 1"]);
    let day = &all.days[1];
    let figures = (
        day.cpu_ms,
        day.max_rss_bytes,
        day.input_bytes,
        day.output_bytes,
    );
    assert_eq!(figures, (10, 102, 4, 14));
    assert!((day.mean_duration_ms - 10.0).abs() < 1e-9, "{day:?}");
    // 2026-11-19.
    let later = executions.metrics(20_776);
    assert_eq!(named(&later.tools), ["even 1 0", "odd 1 1"]);
}

#[test]
fn what_is_settled_does_not_change_any_more() {
    let executions = with(1);
    let id = ToolId::new("t0");
    let again = executions.settle(&id, &result(), |record| {
        record.status = ExecutionStatus::Error;
    });
    assert!(again.is_none());
    assert_eq!(
        executions.get(&id).unwrap().status,
        ExecutionStatus::Success
    );
}

#[test]
fn a_page_of_large_inputs_ends_early() {
    let executions = Executions::default();
    for number in 0..3 {
        let mut large = record(number);
        let content = "x".repeat(600 * 1024);
        large.input = Map::from_iter([("content".to_owned(), content.into())]);
        executions.open(large, CancellationToken::new());
    }
    let mut wanted = ToolHistory::default();
    for expected in ["t2", "t1", "t0"] {
        let page = paged(&executions, &wanted).unwrap();
        assert_eq!(ids(&page), [expected]);
        wanted.cursor = page.next_cursor;
    }
    assert_eq!(wanted.cursor, None);
}

/// What a call came to; nothing here looks at it.
fn result() -> Message {
    Message::User(Vec::new())
}

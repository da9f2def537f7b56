//! Calls of all sessions, and their sums.

use super::*;
use crate::{CallFacts, CallListing, CallStatus, Ended, MS_OF_DAY, OTHER, Sum, User};

const DAY: i64 = 20_000;

fn facts(tool: &str, day: i64, status: CallStatus) -> CallFacts {
    CallFacts {
        tool: tool.to_owned(),
        provider: "p".to_owned(),
        commands: vec!["cargo test".to_owned()],
        status,
        at_ms: day * MS_OF_DAY + 1,
        duration_ms: 10,
        cpu_ms: 5,
        memory: 100,
        input_bytes: 2,
        output_bytes: 3,
    }
}

fn call(id: &str, facts: CallFacts) -> Change {
    Change::Call {
        call: ToolCall {
            id: id.to_owned(),
            conversation: "c".to_owned(),
            began: true,
            record: format!("record of {id}"),
            result: None,
        },
        facts,
    }
}

const RUNNING: CallStatus = CallStatus::Running;
const DONE: CallStatus = CallStatus::Ended(Ended::Success);
const FAILED: CallStatus = CallStatus::Ended(Ended::Error);

fn wanted() -> CallListing {
    CallListing {
        limit: 50,
        bytes: 1 << 20,
        ..CallListing::default()
    }
}

async fn records(store: &Kept, wanted: CallListing) -> Vec<String> {
    let page = store.calls(wanted).await.unwrap();
    let records = page.calls.into_iter();
    records
        .map(|call| format!("{}: {}", call.session, call.record))
        .collect()
}

fn named(sums: &[Sum]) -> Vec<(&str, u64, u64)> {
    let sums = sums.iter();
    sums.map(|it| (it.name.as_str(), it.calls, it.failed))
        .collect()
}

#[tokio::test]
async fn pages_join_and_have_what_was_asked_for() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    for (session, id, tool, status) in [
        ("a", "t1", "bash", DONE),
        ("b", "t1", "file_read", FAILED),
        ("a", "t2", "bash", RUNNING),
        ("b", "t2", "bash", DONE),
    ] {
        let changes = vec![create(1), call(id, facts(tool, DAY, status))];
        write(&store, session, changes).unwrap();
    }
    let all = [
        "b: record of t2",
        "a: record of t2",
        "b: record of t1",
        "a: record of t1",
    ];
    assert_eq!(records(&store, wanted()).await, all);
    let day = DAY * MS_OF_DAY;
    for (wanted, expected) in [
        (
            CallListing {
                tool: Some("bash".to_owned()),
                status: Some(DONE),
                ..wanted()
            },
            vec![all[0], all[3]],
        ),
        (
            CallListing {
                since_ms: Some(day + 1),
                until_ms: Some(day + 2),
                ..wanted()
            },
            all.to_vec(),
        ),
        (
            CallListing {
                until_ms: Some(day + 1),
                ..wanted()
            },
            vec![],
        ),
        (
            CallListing {
                conversation: Some("' OR 1=1; --".to_owned()),
                ..wanted()
            },
            vec![],
        ),
    ] {
        assert_eq!(records(&store, wanted).await, expected);
    }
    // By number, and by bytes: one record at least.
    for (limit, bytes) in [(1, 1 << 20), (50, 1)] {
        let (mut cursor, mut found) = (None, Vec::new());
        for _ in 0..all.len() {
            let page = store.calls(CallListing {
                limit,
                bytes,
                cursor,
                ..wanted()
            });
            let page = page.await.unwrap();
            found.extend(page.calls.into_iter().map(|call| call.record));
            cursor = page.next;
        }
        assert_eq!((found.len(), cursor), (all.len(), None));
    }
}

#[tokio::test]
async fn sums_count_each_call_once_and_outlive_it_and_its_session() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let changes = vec![
        create(1),
        call("t1", facts("bash", DAY, RUNNING)),
        call("t1", facts("bash", DAY, DONE)),
        call("t1", facts("bash", DAY, DONE)),
        Change::Record {
            id: "t1".to_owned(),
            record: "later".to_owned(),
        },
        call("t2", facts("bash", DAY + 1, FAILED)),
    ];
    write(&store, "a", changes).unwrap();
    write(
        &store,
        "b",
        vec![create(1), call("t1", facts("git", DAY, DONE))],
    )
    .unwrap();
    let found = records(&store, wanted()).await;
    assert_eq!(found[2], "a: later");
    write(&store, "a", vec![Change::Delete]).unwrap();
    assert_eq!(records(&store, wanted()).await.len(), 1);
    let ran = store.ran(i64::MIN).await.unwrap();
    assert_eq!(named(&ran.tools), [("bash", 2, 1), ("git", 1, 0)]);
    assert_eq!(named(&ran.providers), [("p", 3, 1)]);
    assert_eq!(named(&ran.commands), [("cargo test", 3, 1)]);
    assert_eq!(named(&ran.days), [("20000", 2, 0), ("20001", 1, 1)]);
    let expected = Sum {
        name: "20000".to_owned(),
        calls: 2,
        began: 2,
        duration_ms: 20,
        longest_ms: 10,
        cpu_ms: 10,
        memory: 100,
        input_bytes: 4,
        output_bytes: 6,
        ..Sum::default()
    };
    assert_eq!(ran.days[0], expected);
    let ran = store.ran(DAY + 1).await.unwrap();
    assert_eq!(named(&ran.tools), [("bash", 1, 1)]);
}

#[tokio::test]
async fn what_ran_when_the_process_ended_has_failed() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let running = vec![create(1), call("t1", facts("bash", DAY, RUNNING))];
    write(&store, "a", running).unwrap();
    assert!(store.ran(0).await.unwrap().tools.is_empty());
    drop(store);
    drop(restart(&path));
    // It counts once.
    let store = restart(&path);
    for (status, expected) in [(FAILED, 1), (RUNNING, 0)] {
        let wanted = CallListing {
            status: Some(status),
            ..wanted()
        };
        assert_eq!(records(&store, wanted).await.len(), expected);
    }
    let ran = store.ran(0).await.unwrap();
    assert_eq!(named(&ran.commands), [("cargo test", 1, 1)]);
    // It is still known that it began.
    let session = store.open("a").await.unwrap().unwrap();
    assert!(session.calls[0].began);
}

#[tokio::test]
async fn who_comes_late_changes_nothing_about_a_call_that_was_settled() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let settled = |status, result: Option<&str>| Change::Call {
        call: ToolCall {
            id: "t1".to_owned(),
            conversation: "c".to_owned(),
            began: true,
            record: format!("{status:?}"),
            result: result.map(str::to_owned),
        },
        facts: facts("bash", DAY, status),
    };
    let late = [settled(RUNNING, None), settled(FAILED, None)];
    let first = vec![create(1), settled(RUNNING, None)];
    write(&store, "a", first).unwrap();
    write(&store, "a", vec![settled(FAILED, Some("{}"))]).unwrap();
    write(&store, "a", late.to_vec()).unwrap();
    let known = async || store.open("a").await.unwrap().unwrap().calls.remove(0);
    let call = known().await;
    assert_eq!(call.record, format!("{FAILED:?}"));
    assert_eq!(call.result.as_deref(), Some("{}"));
    // Once a message says it, it is nobody's any more.
    let id = "t1".to_owned();
    write(&store, "a", vec![Change::Answered { id }]).unwrap();
    write(&store, "a", late.to_vec()).unwrap();
    assert_eq!(known().await.result, None);
    let ran = store.ran(0).await.unwrap();
    assert_eq!(named(&ran.tools), [("bash", 1, 1)]);
}

#[tokio::test]
async fn the_oldest_calls_go_and_neither_what_runs_nor_what_no_message_says() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let unsaid = |id: &str| Change::Call {
        call: ToolCall {
            id: id.to_owned(),
            conversation: "c".to_owned(),
            began: true,
            record: id.to_owned(),
            result: Some("{}".to_owned()),
        },
        facts: facts("bash", DAY, DONE),
    };
    let mut changes = vec![
        create(1),
        call("runs", facts("bash", DAY, RUNNING)),
        unsaid("early"),
    ];
    for number in 0..1_010 {
        changes.push(call(&format!("t{number}"), facts("bash", DAY, DONE)));
    }
    write(&store, "a", changes).unwrap();
    let count = |wanted| async {
        let page = store.calls(wanted).await.unwrap();
        page.calls.len()
    };
    let all = CallListing {
        limit: 5_000,
        ..wanted()
    };
    assert_eq!(count(all.clone()).await, 1_002);
    let running = CallListing {
        status: Some(RUNNING),
        ..all.clone()
    };
    assert_eq!(count(running).await, 1);
    assert_eq!(store.ran(0).await.unwrap().tools[0].calls, 1_011);
    // Of all sessions: the last ones by their numbers.
    write(&store, "old", vec![create(1)]).unwrap();
    let said = call("said", facts("bash", DAY, DONE));
    write(&store, "old", vec![said, unsaid("unsaid")]).unwrap();
    store.close().await.unwrap();
    drop(store);
    move_call_ahead(&path, "t1009", 60_000);
    let store = restart(&path);
    let last = call("last", facts("bash", DAY, DONE));
    write(&store, "a", vec![last]).unwrap();
    let page = store.calls(all).await.unwrap();
    let left: Vec<_> = page.calls.iter().map(|it| it.record.as_str()).collect();
    // What ran at the restart has failed.
    assert_eq!(
        left,
        [
            "record of last",
            "record of t1009",
            "unsaid",
            "early",
            "record of runs"
        ]
    );
}

#[tokio::test]
async fn sums_have_so_many_names_a_day_and_so_many_days() {
    let Some((_folder, path)) = temporary() else {
        return;
    };
    let store = start(&path);
    let mut changes = vec![create(1)];
    for number in 0..300 {
        let tool = format!("tool{number}");
        changes.push(call(&tool, facts(&tool, DAY, DONE)));
    }
    // One that has a place keeps it.
    changes.push(call("again", facts("tool7", DAY, DONE)));
    write(&store, "a", changes).unwrap();
    let ran = store.ran(0).await.unwrap();
    assert_eq!(named(&ran.tools)[..2], [(OTHER, 100, 0), ("tool7", 2, 0)]);
    // Each user has so many days.
    let anna = store.of(&User::new("anna"));
    for (store, session) in [(&store, "a"), (&anna, "b")] {
        let mut changes = vec![create(1)];
        for day in 1..=820 {
            let id = format!("d{day}");
            changes.push(call(&id, facts("bash", DAY + day, DONE)));
        }
        write(store, session, changes).unwrap();
    }
    for store in [&store, &anna] {
        let ran = store.ran(0).await.unwrap();
        assert_eq!(ran.days.len(), 800);
        assert_eq!(ran.days[0].name, (DAY + 21).to_string());
        assert_eq!(named(&ran.tools), [("bash", 800, 0)]);
    }
}

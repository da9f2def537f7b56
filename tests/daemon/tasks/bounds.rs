//! How much a task, and the tasks of an exchange, may take: time, places, money, words.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{approve, end, fix, follower, go, results, script, tasks, text, turn_of};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

#[tokio::test]
async fn a_task_has_a_time_limit_and_frees_its_place() {
    let provider = Provider::start().await;
    let (turn, pause) = Turn::paused(&[json!({"content": "so far"})], &[], "stop");
    let slow = std::sync::Mutex::new(Some(turn));
    provider.by_request(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let first = messages.iter().find(|it| it["role"] == "user").unwrap();
        let said = messages.iter().filter(|it| it["role"] == "assistant");
        match (text(&first["content"]), said.count()) {
            ("go", 0) => tasks(&["short|slow".to_owned()]),
            ("go", 1) => tasks(&["say:a", "say:b", "say:c"].map(str::to_owned)),
            ("go", _) => Turn::text("done"),
            ("slow", _) => slow.lock().unwrap().take().unwrap(),
            (prompt, said) => turn_of(prompt, said, request),
        }
    });
    let more = json!({
        "workflows": {"short": {"limits": {"timeout": "1s"}}},
        "tasks": {"profiles": ["short"]},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = follower(&daemon).await;
    let ended = go(&mut client).await;
    assert_eq!(ended["stopReason"], "end_turn");
    let results = results(&client);
    assert_eq!(results.len(), 4);
    assert_eq!(results[0]["status"], "error");
    assert_eq!(results[0]["metadata"]["timedOut"], true);
    let said = text(&results[0]["result"]);
    assert!(said.contains("took too long"), "{said}");
    let after: Vec<&str> = results[1..].iter().map(|it| text(&it["result"])).collect();
    assert_eq!(BTreeSet::from_iter(after), BTreeSet::from(["a", "b", "c"]));
    pause.go_on();
}

#[tokio::test]
async fn three_run_at_once_and_twenty_in_an_exchange() {
    let provider = Provider::start().await;
    let five = [
        "fix|write:1;say:1",
        "write:2;say:2",
        "say:3",
        "say:4",
        "say:5",
    ];
    let turns: [&[&str]; 4] = [
        &["say:a", "say:b", "say:c", "say:d", "say:e"],
        &five,
        &["say:f", "say:g", "say:h", "say:i", "say:j"],
        &[
            "say:k", "say:l", "say:m", "say:n", "say:o", "say:p", "say:q",
        ],
    ];
    script(&provider, &turns);
    let daemon = Daemon::with(
        &provider,
        json!({
            "workflows": fix()["workflows"], "tasks": fix()["tasks"],
            "approval": {"policy": "allow_all"},
        }),
    )
    .await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    let (mut running, mut alone) = (BTreeSet::new(), None);
    let mut most = 0;
    for frame in &client.seen {
        let task = text(&frame["taskId"]).to_owned();
        match text(&frame["type"]) {
            "chat:stream-start" if !task.is_empty() => {
                assert!(alone.is_none(), "{task} runs beside {alone:?}");
                running.insert(task.clone());
            }
            "chat:stream-end" if !task.is_empty() => {
                running.remove(&task);
                alone = alone.filter(|it| *it != task);
            }
            "chat:tool-start" if frame["payload"]["toolName"] == "file_write" => {
                assert_eq!(running.len(), 1, "{running:?}");
                alone = Some(task);
            }
            _ => {}
        }
        most = most.max(running.len());
    }
    // That three do is seen where each of them asks.
    assert!(most <= 3, "{most}");
    let results = results(&client);
    assert_eq!(results.len(), 22);
    let refused = results.iter().filter(|it| it["status"] == "error");
    let refused: Vec<&str> = refused.map(|it| text(&it["result"])).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("begun 20 tasks"), "{refused:?}");
    let queued = client.all("chat:state");
    let waits = |it: &&Value| text(&it["reason"]).contains("other tasks");
    assert!(queued.iter().any(|it| waits(&it)));
}

#[tokio::test]
async fn a_task_has_the_model_that_the_operator_names() {
    let provider = Provider::start().await;
    script(&provider, &[&["say:a", "own|say:b"]]);
    let daemon = Daemon::with(
        &provider,
        json!({
            "tasks": {"model": "test/cheap", "profiles": ["own"]},
            "workflows": {"own": {"model": "other", "system_prompt": "You are it."}},
        }),
    )
    .await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    let models: BTreeSet<String> = provider
        .requests()
        .iter()
        .map(|it| text(&it["model"]).to_owned())
        .collect();
    assert_eq!(
        models,
        BTreeSet::from(["cheap", "other", "test-model"].map(str::to_owned))
    );
    let facts = results(&client);
    let named: BTreeSet<&str> = facts
        .iter()
        .map(|it| text(&it["metadata"]["task"]["model"]))
        .collect();
    assert_eq!(named, BTreeSet::from(["cheap", "other"]));
    let own = provider
        .requests()
        .into_iter()
        .find(|it| it["model"] == "other");
    let system = own.unwrap()["messages"][0]["content"].clone();
    assert!(
        text(&system).starts_with("You are it.\n\nYou do one task"),
        "{system}"
    );
}

#[tokio::test]
async fn a_cap_is_asked_about_once_and_a_refusal_ends_the_tasks() {
    let provider = Provider::start().await;
    script(
        &provider,
        &[&["read:a.txt;say:1", "read:a.txt;say:2", "read:a.txt;say:3"]],
    );
    let daemon = Daemon::with(&provider, priced("supervised")).await;
    daemon.file("a.txt", "a\n");
    for (answer, status) in [
        (json!({"approved": false}), "error"),
        (json!({"unlimited": true}), "success"),
    ] {
        let mut client = follower(&daemon).await;
        client.say("go").await;
        let mut asked = Vec::new();
        for number in 0..6 {
            let confirm = client.until("chat:tool-confirm").await["payload"].clone();
            match number {
                0..3 => client.send(approve(&confirm["toolId"])).await,
                _ => asked.push(confirm["toolId"].clone()),
            }
        }
        // All three have run, and no further request fits.
        let budget = json!({"type": "session:configure", "budget": {"maxCostUsd": 0.05}});
        client.ask(budget).await;
        for call in &asked {
            client.send(approve(call)).await;
        }
        let reply = |confirm: &Value| {
            let mut reply = answer.clone();
            reply["type"] = json!("chat:budget-approve");
            reply["requestId"] = confirm["payload"]["requestId"].clone();
            reply
        };
        let confirm = client.until("chat:budget-confirm").await;
        assert!(confirm["taskId"].is_string(), "{confirm}");
        assert_eq!(confirm["payload"]["scope"], "session");
        client.send(reply(&confirm)).await;
        if status == "error" {
            // The exchange around them is asked itself when it goes on.
            let confirm = client.until("chat:budget-confirm").await;
            assert_eq!(confirm["payload"]["conversationId"], "default");
            client.send(reply(&confirm)).await;
        }
        let ended = end(&mut client).await;
        let reason = if status == "error" {
            "budget"
        } else {
            "end_turn"
        };
        assert_eq!(ended["stopReason"], reason);
        let results = results(&client);
        assert_eq!(results.len(), 3);
        assert!(
            results.iter().all(|it| it["status"] == status),
            "{results:?}"
        );
        let of_tasks = client
            .seen
            .iter()
            .filter(|it| it["type"] == "chat:budget-confirm" && it["taskId"].is_string());
        assert_eq!(of_tasks.count(), 1);
    }
}

#[tokio::test]
async fn whoever_waits_for_the_answer_to_another_task_has_time() {
    let provider = Provider::start().await;
    let (hangs, pause) = Turn::paused(&[json!({"content": "so far"})], &[], "stop");
    let hangs = std::sync::Mutex::new(Some(hangs));
    let prompts = ["short|read:a.txt;say:1", "short|read:a.txt;say:2"].map(str::to_owned);
    provider.by_request(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let first = messages.iter().find(|it| it["role"] == "user").unwrap();
        let said = messages.iter().filter(|it| it["role"] == "assistant");
        match (text(&first["content"]), said.count()) {
            ("go", 0) => tasks(&prompts),
            ("go", _) => Turn::text("done"),
            ("hang", _) => hangs.lock().unwrap().take().unwrap(),
            (prompt, said) => turn_of(prompt, said, request),
        }
    });
    let mut more = priced("supervised");
    more["workflows"] = json!({"short": {"limits": {"timeout": "15s"}, "tool_permissions": {"file_read": {"allowed": true}}}});
    more["tasks"] = json!({"profiles": ["short"]});
    let daemon = Daemon::with(&provider, more).await;
    daemon.file("a.txt", "a\n");
    let mut client = follower(&daemon).await;
    client.say("go").await;
    let mut asked = Vec::new();
    for number in 0..4 {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        match number {
            0..2 => client.send(approve(&confirm["toolId"])).await,
            _ => asked.push(confirm["toolId"].clone()),
        }
    }
    let budget = json!({"type": "session:configure", "budget": {"maxCostUsd": 0.05}});
    client.ask(budget).await;
    for call in &asked {
        client.send(approve(call)).await;
    }
    let confirm = client.until("chat:budget-confirm").await;
    // Longer than either task may take.
    let mut other = daemon.connect().await;
    let hang = json!({"type": "chat:send", "content": "hang", "limits": {"timeoutMs": 16_000}});
    other.send(hang).await;
    let ended = other.until("chat:stream-end").await;
    assert_eq!(ended["payload"]["stopReason"], "timeout", "{ended}");
    pause.go_on();
    let id = &confirm["payload"]["requestId"];
    let answer = json!({"type": "chat:budget-approve", "requestId": id, "unlimited": true});
    client.send(answer).await;
    end(&mut client).await;
    for result in results(&client) {
        assert_eq!(result["status"], "success", "{result}");
    }
}

#[tokio::test]
async fn tasks_are_no_further_exchanges_of_their_user() {
    let provider = Provider::start().await;
    script(&provider, &[&["fix|write:b.txt;say:x"]]);
    let mut more = fix();
    more["auth"] = json!({"limits": {"exchanges": 2}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = follower(&daemon).await;
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await;
    assert!(confirm["taskId"].is_string(), "{confirm}");
    let other = json!({"type": "chat:send", "content": "say:hello", "conversationId": "other"});
    let sent = client.ask(other).await;
    assert_eq!(sent["payload"]["state"], "started", "{sent}");
}

#[tokio::test]
async fn a_task_spends_a_part_of_what_is_left() {
    let provider = Provider::start().await;
    let endless = "loop;".repeat(30);
    script(&provider, &[&[&endless]]);
    let daemon = Daemon::with(&provider, priced("guided")).await;
    let mut client = follower(&daemon).await;
    // A quarter of what is left after a turn is $1.00875: two turns, and a last answer.
    let capped = json!({"type": "chat:send", "content": "go", "limits": {"maxCostUsd": 4.04}});
    client.send(capped).await;
    let ended = end(&mut client).await;
    assert_eq!(ended["stopReason"], "end_turn");
    let result = &results(&client)[0];
    assert_eq!(result["status"], "error");
    let said = text(&result["result"]);
    assert!(
        said.starts_with("[the task may spend no more") && said.ends_with("a last answer"),
        "{said}"
    );
    let facts = &result["metadata"]["task"];
    assert_eq!(
        (&facts["turns"], &facts["stopReason"]),
        (&json!(3), &json!("budget"))
    );
    assert_eq!(facts["spentUsd"], 0.015);
    assert_eq!(client.all("chat:budget-confirm"), Vec::<Value>::new());
    // It is in what the exchange took, and in the ledger.
    assert_eq!(ended["spentUsd"], 0.025);
    assert_eq!(ended["usage"]["outputTokens"], 25);
    for (by, expected) in [
        ("kind", vec![("task", 3), ("turn", 2)]),
        ("conversation", vec![("default", 5)]),
    ] {
        let report = json!({"type": "usage:report", "groupBy": by});
        let report = client.ask(report).await;
        let rows = report["payload"]["rows"].as_array().unwrap();
        let of = |key: &str| rows.iter().find(|it| text(&it["key"]).ends_with(key));
        assert_eq!(rows.len(), expected.len(), "{report}");
        for (key, requests) in expected {
            let row = of(key).unwrap_or_else(|| panic!("{report}"));
            assert_eq!(row["requests"], requests, "{report}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_the_limit_of_tokens_cut_off_says_so() {
    let provider = Provider::start().await;
    script(&provider, &[&["cut"]]);
    let daemon = Daemon::start(&provider).await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    let result = &results(&client)[0];
    let said = text(&result["result"]);
    for part in [
        "half an ans",
        "the answer was cut off by the limit of tokens",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(result["status"], "success", "{result}");
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept_whole() {
    let provider = Provider::start().await;
    script(&provider, &[&["long"]]);
    let daemon = Daemon::start(&provider).await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    let result = &results(&client)[0];
    assert!(text(&result["result"]).len() < 17 * 1024);
    assert_eq!(result["metadata"]["truncated"], true);
    let output = json!({"type": "tool:output", "toolId": result["toolId"], "limit": 100_000});
    let output = client.ask(output).await;
    assert_eq!(text(&output["payload"]["text"]).len(), 50_000, "{output}");
}

/// A model with a price: a turn costs $0.005, and of one that nobody limits $1 is expected.
fn priced(trust: &str) -> Value {
    let pricing = json!({"input": 0, "output": 1000});
    json!({"chat": {"trust_level": trust}, "providers": {"test": {"pricing": pricing}}})
}

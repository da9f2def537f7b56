//! Caps on money: a request is not made that one does not allow, the user may raise it, and nothing that was spent is lost.
//!
//! A turn of the scripted provider has 5 tokens of output, which cost $0.005 here, and as much is expected of the next one.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};
use crate::telemetry::get;

/// What a turn costs.
const TURN: f64 = 0.005;

/// A daemon whose model has a price.
async fn priced(provider: &Provider, budget: Value) -> Daemon {
    let pricing = json!({"input": 0, "output": 1000});
    let more = json!({"budget": budget, "providers": {"test": {"pricing": pricing}}});
    Daemon::with(provider, more).await
}

fn send(content: &str, conversation: &str, most: Option<f64>) -> Value {
    json!({"type": "chat:send", "content": content, "conversationId": conversation, "maxTokens": 5,
        "limits": most.map_or(json!({}), |most| json!({"maxCostUsd": most}))})
}

/// Has the model make two calls, of which the second takes the exchange to where the third turn does not fit.
async fn until_asked(client: &mut Client, provider: &Provider, conversation: &str) -> Value {
    for _ in 0..2 {
        provider.then(Turn::call("file_list", &json!({})));
    }
    client.send(send("go", conversation, Some(0.012))).await;
    client.until("chat:budget-confirm").await["payload"].clone()
}

async fn answer(client: &mut Client, confirm: &Value, mut with: Value) -> Value {
    with["type"] = json!("chat:budget-approve");
    with["requestId"] = confirm["requestId"].clone();
    client.ask(with).await
}

async fn report(client: &mut Client, by: &str) -> Vec<Value> {
    let report = client
        .ask(json!({"type": "usage:report", "groupBy": by}))
        .await;
    let rows = report["payload"]["rows"].as_array();
    rows.unwrap_or_else(|| panic!("{report}")).clone()
}

#[tokio::test]
async fn a_cap_pauses_the_exchange_and_raising_it_goes_on_at_the_same_place() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    let confirm = until_asked(&mut client, &provider, "default").await;
    assert_eq!(confirm["scope"], "exchange");
    assert_eq!(confirm["turn"], 2);
    for (field, dollars) in [("spentUsd", 0.01), ("limitUsd", 0.012), ("nextUsd", TURN)] {
        assert_eq!(confirm[field], dollars, "{confirm}");
    }
    assert_eq!(
        confirm["choices"],
        json!([{"extendUsd": 0.012}, {"unlimited": true}])
    );
    let state = client.ask(json!({"type": "session:state"})).await;
    let state = &state["payload"];
    assert_eq!(state["conversations"][0]["state"], "awaiting-budget");
    assert_eq!(state["budgets"][0], confirm);
    let nothing = answer(&mut client, &confirm, json!({"extendUsd": 0})).await;
    assert_eq!(nothing["payload"]["code"], "invalid_payload", "{nothing}");

    provider.then(Turn::text("done"));
    let taken = answer(&mut client, &confirm, json!({"extendUsd": 0.01})).await;
    assert_eq!(taken["payload"]["accepted"], true);
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(end["stopReason"], "end_turn");
    assert_eq!(
        (&end["costUsd"], &end["spentUsd"]),
        (&json!(0.015), &json!(0.015))
    );
    let resolved = &client.all("chat:budget-resolved")[0];
    assert_eq!(
        (&resolved["outcome"], &resolved["by"]),
        (&json!("extended"), &json!("user"))
    );
    assert_eq!(resolved["limitUsd"], 0.022);
    assert_eq!(provider.requests().len(), 3);
    let late = answer(&mut client, &confirm, json!({})).await;
    assert_eq!(late["payload"]["code"], "budget_not_found", "{late}");
    let last = &client.all("chat:usage")[2]["budget"];
    assert_eq!(
        *last,
        json!({"scope": "exchange", "spentUsd": 0.015, "limitUsd": 0.022})
    );
    // Each cap warns once, and once more when it was raised.
    let warnings = client.all("session:notice");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0]["code"], "budget_warning");
}

#[tokio::test]
async fn a_user_may_stop_at_a_cap_with_a_last_answer_or_without() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    for (at, with, outcome, reason, requests) in [
        ("a", json!({"approved": false}), "stopped", "budget", 2),
        (
            "b",
            json!({"approved": false, "finish": true}),
            "stopped",
            "budget",
            3,
        ),
        ("c", json!({"unlimited": true}), "extended", "end_turn", 3),
        ("d", Value::Null, "cancelled", "cancelled", 2),
    ] {
        let before = provider.requests().len();
        let confirm = until_asked(&mut client, &provider, at).await;
        if requests == 3 {
            provider.then(Turn::text("at last"));
        }
        match with {
            Value::Null => {
                let cancel = json!({"type": "chat:cancel", "conversationId": at});
                client.ask(cancel).await;
            }
            with => drop(answer(&mut client, &confirm, with).await),
        }
        let end = client.until("chat:stream-end").await["payload"].clone();
        assert_eq!(end["stopReason"], reason, "{at}");
        let resolved = client.all("chat:budget-resolved").pop().unwrap();
        assert_eq!(resolved["outcome"], outcome, "{at}");
        assert_eq!(provider.requests().len() - before, requests, "{at}");
    }
}

#[tokio::test]
async fn where_nobody_answers_the_exchange_ends_with_a_last_answer_where_that_fits() {
    let provider = Provider::start().await;
    for (budget, approval, outcomes) in [
        (json!({"ask_timeout": "1ms"}), "ask", vec!["expired"]),
        (json!({"on_reach": "stop"}), "ask", vec![]),
        (json!({}), "deny", vec![]),
    ] {
        let pricing = json!({"input": 0, "output": 1000});
        let more = json!({"budget": budget, "approval": {"unattended": approval},
            "providers": {"test": {"pricing": pricing}}});
        let daemon = Daemon::with(&provider, more).await;
        // A twentieth more than the cap is enough for it in one case.
        for (most, requests) in [(0.012, 2), (0.0145, 3)] {
            let mut client = daemon.connect().await;
            let before = provider.requests().len();
            for _ in 0..2 {
                provider.then(Turn::call("file_list", &json!({})));
            }
            if requests == 3 {
                provider.then(Turn::text("at last"));
            }
            client.send(send("go", "default", Some(most))).await;
            let end = client.until("chat:stream-end").await["payload"].clone();
            assert_eq!(end["stopReason"], "budget", "{budget} {most}");
            assert_eq!(provider.requests().len() - before, requests, "{budget}");
            let found = client.all("chat:budget-resolved");
            let found: Vec<&Value> = found.iter().map(|it| &it["outcome"]).collect();
            assert_eq!(found, outcomes, "{budget}");
        }
    }
}

#[tokio::test]
async fn who_comes_back_to_a_question_about_money_answers_it() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    let confirm = until_asked(&mut client, &provider, "default").await;
    let session = client.session();
    drop(client);
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let again = client.until("chat:budget-confirm").await["payload"].clone();
    assert_eq!(again, confirm);
    provider.then(Turn::text("done"));
    answer(&mut client, &again, json!({})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn what_was_spent_counts_after_the_daemon_was_killed_while_it_asked() {
    let provider = Provider::start().await;
    let caps = json!({"conversation": 0.012, "daemon_day": 0.02});
    let daemon = priced(&provider, caps).await;
    let mut client = daemon.connect().await;
    let confirm = until_asked(&mut client, &provider, "default").await;
    let session = client.session();
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "error");
    let late = answer(&mut client, &confirm, json!({})).await;
    assert_eq!(late["payload"]["code"], "budget_not_found", "{late}");
    assert_eq!(report(&mut client, "user").await[0]["spentUsd"], 0.01);
    // The conversation asks anew, and the day goes on.
    client.send(send("go on", "default", None)).await;
    let confirm = client.until("chat:budget-confirm").await["payload"].clone();
    assert_eq!(
        (&confirm["scope"], &confirm["spentUsd"]),
        (&json!("conversation"), &json!(0.01))
    );
    provider.then(Turn::text("well"));
    answer(&mut client, &confirm, json!({"unlimited": true})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    provider.then(Turn::text("more"));
    client.send(send("more", "default", None)).await;
    client.until("chat:stream-end").await;
    client.send(send("and more", "default", None)).await;
    let error = client.until("chat:error").await["payload"].clone();
    assert_eq!(
        (&error["code"], &error["scope"]),
        (&json!("budget_exhausted"), &json!("daemon"))
    );
    assert!(
        error["resetsAt"].is_string() && error["retryable"] == false,
        "{error}"
    );
    // Nothing of it is an exchange.
    assert!(error.get("messageId").is_none(), "{error}");
}

#[tokio::test]
async fn conversations_side_by_side_keep_to_one_cap_and_all_sums_are_equal() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({"daemon_day": 0.022})).await;
    let mut client = daemon.connect().await;
    provider.by_rule(|_| Turn::text("hello"));
    let sends: Vec<Value> = (0..8)
        .map(|number| send("hi", &format!("c{number}"), None))
        .collect();
    client.send_together(&sends).await;
    for _ in 0..8 {
        client.until("chat:stream-end").await;
    }
    let ends = client.all("chat:stream-end");
    let of = |reason: &str| {
        ends.iter()
            .filter(|end| end["stopReason"] == reason)
            .count()
    };
    assert_eq!((of("end_turn"), of("budget")), (4, 4));
    for error in client.all("chat:error") {
        assert_eq!(
            (&error["code"], &error["scope"]),
            (&json!("budget_exhausted"), &json!("daemon"))
        );
        assert!(error["resetsAt"].is_string(), "{error}");
    }
    let spent: f64 = ends.iter().filter_map(|end| end["spentUsd"].as_f64()).sum();
    assert!(spent <= 0.022, "{spent}");
    assert_eq!(provider.requests().len(), 4);
    for by in ["day", "model", "provider", "user", "kind", "session"] {
        let rows = report(&mut client, by).await;
        assert_eq!(rows.len(), 1, "{by}: {rows:?}");
        assert_eq!(
            (&rows[0]["spentUsd"], &rows[0]["requests"]),
            (&json!(0.02), &json!(4)),
            "{by}"
        );
    }
    assert_eq!(report(&mut client, "conversation").await.len(), 4);
    let figures = get(&daemon, "/metrics", &daemon.token).await;
    for line in [
        "outrigger_spend_usd_total{kind=\"turn\",provider=\"test\"} 0.02",
        "outrigger_budget_reached_total{scope=\"daemon\"} 4",
    ] {
        assert!(figures.lines().any(|it| it == line), "{line}: {figures}");
    }
}

#[tokio::test]
async fn a_model_without_a_price_is_not_asked_where_money_is_capped_unless_that_is_allowed() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    for (unpriced, requests, reason) in [("refuse", 0, "error"), ("allow", 1, "end_turn")] {
        let budget = json!({"budget": {"session": 1, "unpriced": unpriced}});
        let daemon = Daemon::with(&provider, budget).await;
        let mut client = daemon.connect().await;
        client.say("hi").await;
        let end = client.until("chat:stream-end").await["payload"].clone();
        assert_eq!(end["stopReason"], reason);
        assert_eq!(provider.requests().len(), requests);
        let errors = client.all("chat:error");
        assert_eq!(errors.len(), usize::from(requests == 0));
        if let Some(error) = errors.first() {
            assert_eq!(error["code"], "model_not_priced");
            assert!(
                error["hint"]
                    .as_str()
                    .unwrap()
                    .contains("providers.test.pricing")
            );
        }
    }
}

#[tokio::test]
async fn a_turn_that_breaks_off_is_estimated_and_says_so() {
    let provider = Provider::start().await;
    provider.then(Turn::broken(&[json!({"content": "x".repeat(300)})]));
    let pricing = json!({"input": 0, "output": 1000});
    let more = json!({"providers": {"test": {"pricing": pricing, "restart_after_partial": 0}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("hi").await;
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(end.get("costUsd"), None);
    assert_eq!(
        (&end["spentUsd"], &end["estimated"]),
        (&json!(0.101), &json!(true))
    );
    let row = &report(&mut client, "kind").await[0];
    assert_eq!(
        (&row["spentUsd"], &row["estimated"]),
        (&json!(0.101), &json!(1))
    );
}

#[tokio::test]
async fn nothing_is_begun_at_a_cap_of_the_session_until_it_is_raised() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("hello"));
    let daemon = priced(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    let most = |most| json!({"type": "session:configure", "budget": {"maxCostUsd": most}});
    let configured = client.ask(most(TURN)).await;
    assert_eq!(configured["payload"]["budget"]["maxCostUsd"], TURN);
    client.send(send("hi", "default", None)).await;
    client.until("chat:stream-end").await;
    let refused = client.ask(send("again", "default", None)).await;
    let refused = &refused["payload"];
    assert_eq!(
        (&refused["code"], &refused["scope"]),
        (&json!("budget_exhausted"), &json!("session"))
    );
    assert!(
        refused["hint"]
            .as_str()
            .unwrap()
            .contains("session:configure"),
        "{refused}"
    );
    client.ask(most(1.0)).await;
    client.send(send("again", "default", None)).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn a_question_settles_itself_where_room_is_made() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({})).await;
    let mut client = daemon.connect().await;
    let session = |budget| json!({"type": "session:configure", "budget": budget});
    client.ask(session(json!({"maxCostUsd": 0.016}))).await;
    provider.then(Turn::text("hello"));
    client.send(send("hi", "first", None)).await;
    client.until("chat:stream-end").await;
    // Beside one that runs, and has the room, until it is cancelled before it cost anything.
    let (turn, mut pause) = Turn::paused(&[], &[json!({"content": "never"})], "stop");
    provider.then(turn);
    client.send(send("wait", "second", Some(1.0))).await;
    pause.reached().await;
    provider.then(Turn::call("file_list", &json!({})));
    client.send(send("go", "third", None)).await;
    let confirm = client.until("chat:budget-confirm").await["payload"].clone();
    assert_eq!(confirm["scope"], "session", "{confirm}");
    provider.then(Turn::text("done"));
    // What is lifted needs no answer.
    let lifted = client.ask(session(json!({"unlimited": true}))).await;
    assert!(lifted["payload"].get("budget").is_none(), "{lifted}");
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(end["payload"]["conversationId"], "third");
    let resolved = &client.all("chat:budget-resolved")[0];
    assert_eq!(
        (&resolved["outcome"], &resolved["by"]),
        (&json!("extended"), &json!("room")),
        "{resolved}"
    );
    assert!(resolved.get("limitUsd").is_none(), "{resolved}");
    let late = answer(&mut client, &confirm, json!({})).await;
    assert_eq!(late["payload"]["code"], "budget_not_found", "{late}");
}

#[tokio::test]
async fn what_was_reserved_and_not_needed_settles_a_question_too() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({"session": 0.008})).await;
    let mut client = daemon.connect().await;
    let (turn, mut pause) = Turn::paused(&[], &[json!({"content": "short"})], "stop");
    provider.then(turn);
    client.send(send("wait", "first", None)).await;
    pause.reached().await;
    client.send(send("go", "second", None)).await;
    let confirm = client.until("chat:budget-confirm").await["payload"].clone();
    assert_eq!(confirm["scope"], "session", "{confirm}");
    provider.then(Turn::text("done"));
    let cancel = json!({"type": "chat:cancel", "conversationId": "first"});
    client.send(cancel).await;
    let resolved = client.until("chat:budget-resolved").await["payload"].clone();
    assert_eq!(
        (&resolved["outcome"], &resolved["by"]),
        (&json!("extended"), &json!("room")),
        "{resolved}"
    );
    pause.go_on();
}

#[tokio::test]
async fn what_no_vendor_is_paid_for_goes_where_money_is_capped() {
    let provider = Provider::start().await;
    let daemon = priced(&provider, json!({"session": 1, "daemon_day": 1})).await;
    let mut client = daemon.connect().await;
    let demo = json!({"type": "chat:send", "content": "demo", "provider": "scripted"});
    client.send(demo).await;
    let usage = client.until("chat:usage").await["payload"].clone();
    assert_eq!(usage["budget"]["spentUsd"], 0.0, "{usage}");
    client.send(json!({"type": "chat:cancel"})).await;
    client.until("chat:stream-end").await;
    let list = json!({"type": "model:list", "provider": "test"});
    let models = client.ask(list).await["payload"]["models"].clone();
    assert_eq!(models[0]["pricing"]["output"], 1000.0, "{models}");
}

#[tokio::test]
async fn fresh_tokens_have_a_cap_of_their_own() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for _ in 0..2 {
        provider.then(Turn::call("file_list", &json!({})));
    }
    let mut limited = send("go", "default", None);
    // A turn has 15, and the second one is the last.
    limited["limits"] = json!({"maxFreshTokens": 30});
    client.send(limited).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "budget");
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn a_locked_cap_is_nobodys_to_raise() {
    let provider = Provider::start().await;
    let locked = json!(["budget.exchange", "budget.session"]);
    let pricing = json!({"input": 0, "output": 1000});
    let more = json!({"session": {"locked": locked}, "budget": {"exchange": 0.012, "session": 1},
        "providers": {"test": {"pricing": pricing}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let wider = json!({"type": "session:configure", "budget": {"maxCostUsd": 2}});
    assert_eq!(client.ask(wider).await["payload"]["code"], "forbidden");
    let lifted = json!({"type": "session:configure", "budget": {"unlimited": true}});
    assert_eq!(client.ask(lifted).await["payload"]["code"], "forbidden");
    let wider = client.ask(send("go", "default", Some(1.0))).await;
    assert_eq!(wider["payload"]["code"], "forbidden");
    for _ in 0..2 {
        provider.then(Turn::call("file_list", &json!({})));
    }
    client.send(send("go", "default", None)).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "budget");
    let error = &client.all("chat:error")[0];
    assert_eq!(
        (&error["code"], &error["scope"]),
        (&json!("budget_exhausted"), &json!("exchange"))
    );
    assert!(client.all("chat:budget-confirm").is_empty());
}

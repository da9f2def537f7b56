//! The user is asked: approved, denied, edited, remembered, expired, and not there at all.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

pub(super) async fn asked(turns: Vec<Turn>, more: Value) -> (Daemon, Client, Provider) {
    let provider = Provider::start().await;
    for turn in turns {
        provider.then(turn);
    }
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    (daemon, client, provider)
}

pub(super) fn bash(command: &str) -> Turn {
    Turn::call("bash", &json!({ "command": command }))
}

pub(super) fn approve(tool_id: &Value, more: &Value) -> Value {
    let mut frame = json!({"type": "chat:tool-approve", "toolId": tool_id, "approved": true});
    for (key, value) in more.as_object().unwrap() {
        frame[key] = value.clone();
    }
    frame
}

#[tokio::test]
async fn an_approved_command_runs_and_its_output_is_streamed() {
    let turns = vec![bash("echo out; echo err >&2; exit 3"), Turn::text("done")];
    let (_daemon, mut client, provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["toolName"], "bash");
    assert_eq!(
        confirm["input"]["command"],
        "echo out; echo err >&2; exit 3"
    );
    assert!(confirm["expiresAt"].is_string());
    assert_eq!(
        confirm["commands"],
        json!([["echo", "out"], ["echo", "err"], ["exit", "3"]])
    );
    assert!(confirm["rules"][0]["rule"].is_string(), "{confirm}");
    assert!(confirm["danger"]["level"].is_string());
    let record = client
        .ask(json!({"type": "tool:status", "toolId": "t1"}))
        .await;
    let found = (
        &record["payload"]["status"],
        &record["payload"]["approval"]["asked"],
    );
    assert_eq!(found, (&json!("queued"), &json!(true)), "{record}");
    let answer = client.ask(approve(&confirm["toolId"], &json!({}))).await;
    assert_eq!(answer["payload"], json!({"toolId": "t1", "accepted": true}));
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["status"], "error");
    assert_eq!(result["metadata"]["exitCode"], 3);
    let output: String = client
        .all("chat:tool-delta")
        .iter()
        .filter(|delta| delta["stream"] == "stdout")
        .map(|delta| delta["chunk"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(output, "out\n");
    assert_eq!(
        client.all("chat:tool-resolved"),
        [json!({
            "conversationId": "default", "messageId": "m1", "toolId": "t1",
            "outcome": "approved", "by": "user",
        })]
    );
    let again = client.ask(approve(&json!("t1"), &json!({}))).await;
    assert_eq!(again["payload"]["code"], "approval_not_found");
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn questions_of_a_turn_come_in_the_order_of_its_calls() {
    // The longer a line, the longer it takes to judge.
    let lines: Vec<String> = (0..12)
        .rev()
        .map(|index| format!("rm {}", format!("f{index} ").repeat(1 + index * 400)))
        .collect();
    let calls: Vec<_> = lines
        .iter()
        .map(|line| ("bash", json!({"command": line})))
        .collect();
    let turns = vec![Turn::calls(&calls), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    for line in &lines {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        let command = confirm["input"]["command"].as_str().unwrap();
        assert_eq!(command.len(), line.len(), "another call's question");
    }
}

#[tokio::test]
async fn everything_that_was_approved_runs_whatever_its_number() {
    const CALLS: usize = 60;
    let call = ("bash", json!({"command": "echo ran >> a.txt"}));
    let turns = vec![Turn::calls(&vec![call; CALLS]), Turn::text("done")];
    let more = json!({"approval": {"timeout": "1h"}});
    let (daemon, mut client, _provider) = asked(turns, more).await;
    for _ in 0..CALLS {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        client.send(approve(&confirm["toolId"], &json!({}))).await;
    }
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results.len(), CALLS);
    for result in &results {
        assert_eq!(result["status"], "success", "{result}");
    }
    let written = std::fs::read_to_string(daemon.project().join("a.txt")).unwrap();
    assert_eq!(written.lines().count(), CALLS);
}

#[tokio::test]
async fn a_denied_command_does_not_run_and_the_model_hears_why() {
    let turns = vec![bash("touch made"), Turn::text("I see")];
    let (daemon, mut client, provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    let verdict = json!({
        "type": "chat:tool-approve", "tool_id": confirm["toolId"], "approved": false,
        "reason": "not today",
    });
    client.ask(verdict).await;
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["metadata"]["denied"], true);
    assert_eq!(client.all("chat:tool-start").len(), 0);
    assert!(!daemon.project().join("made").exists());
    let sent = provider.requests()[1]["messages"].to_string();
    assert!(sent.contains("not today"), "{sent}");
}

#[tokio::test]
async fn an_edited_input_is_checked_and_run_instead() {
    let turns = vec![bash("echo theirs"), Turn::text("done")];
    let (_daemon, mut client, provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    let wrong = client
        .ask(approve(
            &confirm["toolId"],
            &json!({"input": {"comand": 1}}),
        ))
        .await;
    assert_eq!(wrong["payload"]["code"], "invalid_payload");
    let right = client
        .ask(approve(
            &confirm["toolId"],
            &json!({"input": {"command": "echo ours"}}),
        ))
        .await;
    assert_eq!(right["payload"]["accepted"], true);
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-resolved")[0]["edited"], true);
    assert_eq!(
        client.all("chat:tool-start")[0]["input"]["command"],
        "echo ours"
    );
    assert!(
        client.all("chat:tool-result")[0]["result"]
            .as_str()
            .unwrap()
            .contains("ours")
    );
    // Whoever reads the conversation, the model too, knows what ran.
    let asked = json!({"type": "chat:history"});
    let history = client.ask(asked).await["payload"]["messages"].clone();
    let said = [history[2].to_string(), provider.requests()[1].to_string()];
    for text in said {
        assert!(
            text.contains("changed the input") && text.contains("echo ours"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn an_edit_does_not_get_past_what_is_blocked() {
    let turns = vec![bash("echo a"), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client
        .ask(approve(
            &confirm["toolId"],
            &json!({"input": {"command": "sudo rm -rf /"}}),
        ))
        .await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-start").len(), 0);
    assert_eq!(
        client.all("chat:tool-result")[0]["metadata"]["denied"],
        true
    );
}

#[tokio::test]
async fn a_remembered_command_is_not_asked_again_and_another_is() {
    let turns = vec![
        bash("touch a && touch b"),
        bash("touch a && touch b"),
        bash("touch a || touch b"),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client
        .ask(approve(
            &confirm["toolId"],
            &json!({"remember": "conversation"}),
        ))
        .await;
    let second = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(second["input"]["command"], "touch a || touch b");
    assert_eq!(
        client.all("chat:tool-resolved")[0]["remember"],
        "conversation"
    );
    client.ask(approve(&second["toolId"], &json!({}))).await;
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn an_edited_input_is_what_is_remembered() {
    let write = |text: &str| Turn::call("file_write", &json!({"path": "a", "content": text}));
    let turns = vec![
        write("one"),
        write("two"),
        bash("touch b && rm -r c"),
        bash("touch b"),
        bash("touch b && rm -r c"),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    for input in [
        json!({"path": "a", "content": "1"}),
        json!({"command": "touch b"}),
    ] {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        let more = json!({"input": input, "remember": "conversation"});
        client.ask(approve(&confirm["toolId"], &more)).await;
    }
    // Neither what was edited away nor more than the edit.
    let last = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(last["input"]["command"], "touch b && rm -r c");
    assert_eq!(client.all("chat:tool-confirm").len(), 3);
    for resolved in client.all("chat:tool-resolved") {
        let found = (&resolved["remember"], &resolved["edited"]);
        assert_eq!(found, (&json!("conversation"), &json!(true)));
    }
    client
        .ask(approve(&last["toolId"], &json!({"approved": false})))
        .await;
    client.until("chat:stream-end").await;
}

/// The words of the second call are those of the first; what they are fed is not.
#[tokio::test]
async fn an_approval_does_not_reach_what_was_not_shown() {
    let turns = vec![
        bash("sqlite3 x.db <<'EOF'\nselect 1;\nEOF"),
        bash("sqlite3 x.db <<'EOF'\n.shell id\nEOF"),
        Turn::text("done"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    for _ in 0..2 {
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        let more = json!({"remember": "session"});
        client.ask(approve(&confirm["toolId"], &more)).await;
    }
    client.until("chat:stream-end").await;
    let resolved = client.all("chat:tool-resolved");
    assert_eq!(resolved.len(), 2);
    assert!(resolved.iter().all(|it| it["remember"].is_null()));
}

#[tokio::test]
async fn nobody_answers_in_time() {
    let turns = vec![bash("echo a"), Turn::text("done")];
    let (_daemon, mut client, _provider) =
        asked(turns, json!({"approval": {"timeout": "50ms"}})).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-resolved")[0]["outcome"], "expired");
    assert_eq!(client.all("chat:tool-resolved")[0]["by"], "timeout");
    assert_eq!(
        client.all("chat:tool-result")[0]["metadata"]["expired"],
        true
    );
}

#[tokio::test]
async fn an_open_question_is_given_more_time_and_everybody_is_notified() {
    let turns = vec![bash("echo a"), Turn::text("done")];
    let more = json!({"approval": {"timeout": "1h", "max_timeout": "2h"}});
    let (_daemon, mut client, _provider) = asked(turns, more).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    let extend = |id: &str| json!({"type": "chat:tool-extend", "toolId": id});
    let answer = client.ask(extend("t1")).await;
    assert_eq!(answer["type"], "chat:tool-extend-result", "{answer}");
    let now = answer["payload"]["expiresAt"].as_str().unwrap();
    assert!(now >= confirm["expiresAt"].as_str().unwrap(), "{now}");
    assert_eq!(
        client.all("chat:tool-extended"),
        [json!({
            "conversationId": "default", "messageId": "m1", "toolId": "t1", "expiresAt": now,
        })]
    );
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["approvals"][0]["expiresAt"], now);
    let unknown = client.ask(extend("t9")).await;
    assert_eq!(unknown["payload"]["code"], "approval_not_found");
    client.ask(approve(&json!("t1"), &json!({}))).await;
    let answered = client.ask(extend("t1")).await;
    assert_eq!(answered["payload"]["code"], "approval_not_found");
}

#[tokio::test]
async fn unattended_denies_at_once() {
    let turns = vec![bash("echo a"), Turn::text("done")];
    let (_daemon, mut client, _provider) =
        asked(turns, json!({"approval": {"unattended": "deny"}})).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 0);
    assert_eq!(
        client.all("chat:tool-result")[0]["metadata"]["denied"],
        true
    );
}

#[tokio::test]
async fn autonomous_runs_what_is_not_dangerous_and_refuses_what_is_blocked() {
    let turns = vec![
        bash("echo fine"),
        bash("sudo reboot"),
        bash("rm -rf build"),
        Turn::text("done"),
    ];
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let (_daemon, mut client, _provider) = asked(turns, more).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["input"]["command"], "rm -rf build");
    assert_eq!(confirm["danger"]["level"], "dangerous");
    client
        .ask(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": false}))
        .await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results[0]["status"], "success");
    assert_eq!(results[1]["metadata"]["denied"], true);
}

#[tokio::test]
async fn supervised_asks_for_reading_too() {
    let turns = vec![
        Turn::call("file_read", &json!({"path": "a"})),
        Turn::text("done"),
    ];
    let more = json!({"chat": {"trust_level": "supervised"}});
    let (_daemon, mut client, _provider) = asked(turns, more).await;
    let confirm = client.until("chat:tool-confirm").await;
    assert_eq!(confirm["payload"]["toolName"], "file_read");
}

#[tokio::test]
async fn supervised_asks_again_whatever_was_remembered() {
    let read = || Turn::call("bash", &json!({"command": "touch a"}));
    let turns = vec![
        read(),
        Turn::text("1"),
        read(),
        Turn::text("2"),
        read(),
        Turn::text("3"),
    ];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    let remember = json!({"remember": "session"});
    for (index, trust) in ["guided", "supervised", "supervised"].iter().enumerate() {
        if index > 0 {
            let send = json!({"type": "chat:send", "content": "again", "trustLevel": trust});
            client.send(send).await;
        }
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        client.ask(approve(&confirm["toolId"], &remember)).await;
        client.until("chat:stream-end").await;
        // It says what is remembered: nothing under `supervised`.
        let found = client.all("chat:tool-resolved")[index]["remember"].clone();
        let wanted = if index == 0 {
            json!("session")
        } else {
            Value::Null
        };
        assert_eq!(found, wanted, "{trust}");
    }
}

#[tokio::test]
async fn a_write_shows_its_diff_before() {
    let turns = vec![
        Turn::call(
            "file_write",
            &json!({"path": "new/a.txt", "content": "line\n"}),
        ),
        Turn::text("done"),
    ];
    let (daemon, mut client, _provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert!(confirm["preview"].as_str().unwrap().contains("+line"));
    assert!(!daemon.project().join("new").exists());
    client.ask(approve(&confirm["toolId"], &json!({}))).await;
    client.until("chat:stream-end").await;
    let written = std::fs::read_to_string(daemon.project().join("new/a.txt")).unwrap();
    assert_eq!(written, "line\n");
}

#[tokio::test]
async fn the_same_call_three_times_in_a_row_is_asked_for() {
    let read = || Turn::call("file_list", &json!({}));
    let turns = vec![read(), read(), read(), Turn::text("done")];
    let (_daemon, mut client, _provider) = asked(turns, json!({})).await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert!(
        confirm["reason"]
            .as_str()
            .unwrap()
            .contains("3 times in a row")
    );
    assert_eq!(client.all("chat:tool-result").len(), 2);
}

#[tokio::test]
async fn a_path_outside_ends_the_exchange_when_the_other_calls_have_ended() {
    let turns = vec![Turn::calls(&[
        ("file_read", json!({"path": "../../../etc/passwd"})),
        ("bash", json!({"command": "echo still here"})),
        ("file_list", json!({})),
    ])];
    let (_daemon, mut client, provider) = asked(turns, json!({})).await;
    assert_eq!(client.all("session:ready")[0]["onViolation"], "stop");
    // What did nothing wrong is asked for, runs and has its own result.
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    client.ask(approve(&confirm["toolId"], &json!({}))).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "sandbox_violation");
    assert_eq!(client.all("chat:error")[0]["code"], "sandbox_violation");
    let results = client.all("chat:tool-result");
    let of = |id: &str| results.iter().find(|it| it["toolId"] == id).unwrap();
    assert_eq!(of("t1")["metadata"]["denied"], true);
    assert_eq!(of("t2")["status"], "success", "{}", of("t2"));
    assert!(of("t2")["result"].as_str().unwrap().contains("still here"));
    assert_eq!(of("t3")["status"], "success", "{}", of("t3"));
    assert_eq!(provider.requests().len(), 1);
    // What is remembered is valid, so the conversation goes on.
    provider.then(Turn::text("fine"));
    client.say("and now?").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_violation_may_be_an_error_that_the_model_reads_and_the_third_one_ends_the_exchange() {
    let read = |path: &str| Turn::call("file_read", &json!({ "path": path }));
    let both = Turn::calls(&[
        ("file_read", json!({"path": "../b"})),
        ("file_list", json!({})),
    ]);
    let turns = vec![
        read("/workspace/README.md"),
        Turn::text("sorry"),
        both,
        read(".env"),
        read(".."),
    ];
    let more = json!({"tools": {"on_violation": "error"}});
    let (_daemon, mut client, provider) = asked(turns, more).await;
    assert_eq!(client.all("session:ready")[0]["onViolation"], "error");
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(end["stopReason"], "end_turn", "{end}");
    let sent = provider.requests()[1]["messages"].to_string();
    for part in ["/workspace/README.md", "violation 1 of 3"] {
        assert!(sent.contains(part), "{sent}");
    }
    // Another exchange counts anew.
    client.say("go on").await;
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(end["stopReason"], "sandbox_violation", "{end}");
    assert_eq!(end["turns"], 3);
    let denied = client.all("chat:tool-result");
    let denied = denied.iter().filter(|it| it["metadata"]["denied"] == true);
    assert_eq!(denied.count(), 4);
    assert_eq!(client.all("chat:error").len(), 1);
    assert_eq!(provider.requests().len(), 5);
}

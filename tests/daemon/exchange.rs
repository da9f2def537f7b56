//! Text, tools, several turns, several conversations: the main flow.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Answering, Daemon, Provider};

#[tokio::test]
async fn text_is_streamed_and_the_exchange_ends_once() {
    let provider = Provider::start().await;
    provider.then(Turn::chunks(
        &[json!({"content": "Hel"}), json!({"content": "lo"})],
        "stop",
    ));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("hi").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(end["payload"]["partial"], false);
    assert_eq!(end["payload"]["turns"], 1);
    assert_eq!(end["payload"]["usage"]["inputTokens"], 10);
    assert!(end["payload"].get("costUsd").is_none());
    assert_eq!(client.text_said(), "Hello");
    assert_eq!(
        client.types(),
        [
            "chat:stream-start",
            "chat:text-delta",
            "chat:usage",
            "chat:stream-end"
        ]
    );
    let idle = client.until("chat:state").await;
    assert_eq!(
        idle["payload"],
        json!({"conversationId": "default", "state": "idle"})
    );
    client.check_numbers();
    let request = &provider.requests()[0];
    assert_eq!(
        request["messages"][1],
        json!({"role": "user", "content": "hi"})
    );
    assert_eq!(request["stream"], true);
}

#[tokio::test]
async fn the_model_reads_a_file_and_answers() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_read", &json!({"path": "notes.txt"})))
        .then(Turn::text("It says forty-two."));
    let daemon = Daemon::start(&provider).await;
    daemon.file("notes.txt", "forty-two\n");
    let mut client = daemon.connect().await;
    client.say("what do the notes say?").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["turns"], 2);
    assert_eq!(end["payload"]["toolCalls"], 1);
    assert_eq!(
        client.types(),
        [
            "chat:stream-start",
            "chat:tool-input-delta",
            "chat:usage",
            "chat:tool-start",
            "chat:tool-result",
            "chat:text-delta",
            "chat:usage",
            "chat:stream-end",
        ]
    );
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["toolId"], "t1");
    assert_eq!(result["status"], "success");
    assert!(result["result"].as_str().unwrap().contains("forty-two"));
    let messages = provider.requests()[1]["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool");
    assert_eq!(last["tool_call_id"], "call_0_file_read");
}

#[tokio::test]
async fn parallel_calls_are_answered_in_the_order_of_the_calls() {
    let provider = Provider::start().await;
    provider
        .then(Turn::calls(&[
            ("file_read", json!({"path": "a"})),
            ("file_read", json!({"path": "missing"})),
            ("no_such_tool", json!({})),
            ("file_read", json!({"wrong": 1})),
        ]))
        .then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("a", "A");
    let mut client = daemon.connect().await;
    client.say("read").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results.len(), 4);
    let status = |id: &str| {
        let result = results
            .iter()
            .find(|result| result["toolId"] == id)
            .unwrap();
        (
            result["status"].as_str().unwrap().to_owned(),
            result["result"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(status("t1").0, "success");
    assert!(status("t2").1.contains("missing"));
    assert!(status("t3").1.contains("there is no tool `no_such_tool`"));
    assert!(status("t4").1.contains("path"), "{}", status("t4").1);
    assert_eq!(client.all("chat:tool-start").len(), 2);
    let request = provider.requests()[1].clone();
    let ids: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "call_0_file_read",
            "call_1_file_read",
            "call_2_no_such_tool",
            "call_3_file_read"
        ]
    );
}

#[tokio::test]
async fn fifty_calls_of_one_turn_all_run_also_where_they_claim_the_same_file() {
    const CALLS: usize = 50;
    let calls: Vec<(&str, Value)> = (0..CALLS)
        .map(|number| match number % 5 {
            0 => (
                "file_write",
                json!({"path": "a.txt", "content": format!("{number}\n")}),
            ),
            _ => ("file_read", json!({"path": "a.txt"})),
        })
        .collect();
    let provider = Provider::start().await;
    provider.then(Turn::calls(&calls)).then(Turn::text("done"));
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    daemon.file("a.txt", "A\n");
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    assert_eq!(results.len(), CALLS);
    for result in &results {
        // A write that lost its race with another one gets an error that says so; nothing was left out.
        let text = result["result"].as_str().unwrap();
        assert!(!text.contains("not run"), "{text}");
        assert_eq!(result["metadata"]["cancelled"], Value::Null, "{result}");
    }
    let reads = results
        .iter()
        .filter(|result| result["toolName"] == "file_read");
    for read in reads {
        assert_eq!(read["status"], "success", "{read}");
    }
}

#[tokio::test]
async fn a_conversation_that_was_never_used_remembers_nothing_and_is_not_made() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let history = json!({"type": "chat:history", "conversationId": "none"});
    let answer = client.ask(history).await;
    assert_eq!(answer["type"], "chat:history-result");
    assert_eq!(
        answer["payload"],
        json!({"conversationId": "none", "messages": []})
    );
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["conversations"], json!([]));
}

#[tokio::test]
async fn a_conversation_remembers_and_others_do_not() {
    let provider = Provider::start().await;
    for text in ["one", "two", "three"] {
        provider.then(Turn::text(text));
    }
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for conversation in ["a", "a", "b"] {
        client
            .send(json!({"type": "chat:send", "payload": {"conversationId": conversation, "content": "x"}}))
            .await;
        client.until("chat:stream-end").await;
    }
    let lengths: Vec<usize> = provider
        .requests()
        .iter()
        .map(|request| request["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [2, 4, 2]);
    let history = client
        .ask(json!({"type": "chat:history", "conversationId": "a"}))
        .await;
    let roles: Vec<_> = history["payload"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
}

#[tokio::test]
async fn sends_queue_while_an_exchange_runs() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    provider.then(Turn::text("b"));
    let queued = client
        .ask(json!({"type": "chat:send", "content": "second"}))
        .await;
    assert_eq!(queued["type"], "chat:send-result");
    assert_eq!(queued["payload"]["state"], "queued");
    assert_eq!(queued["payload"]["position"], 1);
    let rejected = client
        .ask(json!({"type": "chat:send", "content": "third", "whenBusy": "reject"}))
        .await;
    assert_eq!(rejected["type"], "chat:error");
    assert_eq!(rejected["payload"]["code"], "conversation_busy");
    assert!(rejected["payload"].get("messageId").is_none());
    pause.go_on();
    client.until("chat:stream-end").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["messageId"], queued["payload"]["messageId"]);
}

#[tokio::test]
async fn a_steered_message_joins_the_running_exchange() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    provider.then(Turn::text("b"));
    let steered = client
        .ask(json!({"type": "chat:send", "content": "and also", "when_busy": "steer"}))
        .await;
    assert_eq!(steered["payload"]["state"], "steered");
    assert_eq!(steered["payload"]["messageId"], "m1");
    pause.go_on();
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["turns"], 2);
    assert_eq!(client.all("chat:steered")[0]["content"], "and also");
    assert_eq!(client.text_said(), "ab");
}

#[tokio::test]
async fn a_send_with_a_known_id_is_not_run_twice() {
    let provider = Provider::start().await;
    provider.then(Turn::text("once"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let send = json!({"type": "chat:send", "id": "same", "content": "x"});
    client.send(send.clone()).await;
    client.until("chat:stream-end").await;
    client.send(send).await;
    let again = client.until("chat:send-result").await;
    assert_eq!(again["payload"]["duplicate"], true);
    assert_eq!(again["payload"]["messageId"], "m1");
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn other_content_under_a_known_id_is_a_new_send() {
    let provider = Provider::start().await;
    for text in ["one", "two", "three"] {
        provider.then(Turn::text(text));
    }
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let send = |content: &str, more: &str| json!({"type": "chat:send", "id": 1, "content": content, "conversationId": more});
    let mut ids = Vec::new();
    // A client that was started anew begins at 1 again.
    for (content, conversation) in [("a", "x"), ("b", "x"), ("b", "y")] {
        client.send(send(content, conversation)).await;
        let sent = client.until("chat:send-result").await["payload"].clone();
        assert_eq!(sent["duplicate"], Value::Null, "{sent}");
        ids.push(sent["messageId"].clone());
        client.until("chat:stream-end").await;
    }
    // Each of them may still be sent again.
    for ((content, conversation), id) in [("a", "x"), ("b", "x"), ("b", "y")].iter().zip(ids) {
        client.send(send(content, conversation)).await;
        let sent = client.until("chat:send-result").await["payload"].clone();
        assert_eq!(
            (&sent["duplicate"], &sent["messageId"]),
            (&json!(true), &id)
        );
    }
    assert_eq!(provider.requests().len(), 3);
}

#[tokio::test]
async fn the_limit_of_turns_ends_with_an_answer_in_text() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::call("file_list", &json!({"path": "."})))
        .then(Turn::text("enough"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client
        .send(json!({"type": "chat:send", "content": "go", "limits": {"maxTurns": 2}}))
        .await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "max_turns");
    assert_eq!(end["payload"]["turns"], 3);
    assert_eq!(client.text_said(), "enough");
    let requests = provider.requests();
    assert_eq!(requests[2]["tool_choice"], "none");
    assert_eq!(requests[2]["tools"], requests[0]["tools"]);
}

#[tokio::test]
async fn a_full_context_ends_with_an_answer_in_text() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_list", &json!({})).counted(995_000))
        .then(Turn::text("full"));
    // A vendor whose model's window is in the compiled-in table.
    let more = json!({"providers": {"test": {"kind": "deepseek"}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client
        .send(json!({
            "type": "chat:send", "content": "go", "model": "deepseek-flash",
            "limits": {"contextReserve": 100_000_000, "compactAt": 0},
        }))
        .await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "context_budget");
    assert_eq!(provider.requests()[1]["tool_choice"], "none");
    assert_eq!(client.text_said(), "full");
}

#[tokio::test]
async fn a_context_that_is_full_already_is_so_in_the_next_exchange() {
    let provider = Provider::start().await;
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "one"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 995_000, "completion_tokens": 5}});
    let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    provider
        .then(Turn::plain(200, "text/event-stream", &body))
        .then(Turn::text("two"))
        .then(Turn::text("three"));
    // A vendor whose model's window of 1,000,000 tokens is in the compiled-in table.
    let more = json!({"providers": {"test": {"kind": "deepseek"}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let say = json!({"type": "chat:send", "content": "go", "model": "deepseek-flash", "limits": {"compactAt": 0}});
    let mut afresh = say.clone();
    afresh["history"] = json!([]);
    for (say, stop, choice) in [
        (&say, "end_turn", Value::Null),
        (&say, "context_budget", json!("none")),
        // Another history is another context.
        (&afresh, "end_turn", Value::Null),
    ] {
        client.send(say.clone()).await;
        let end = client.until("chat:stream-end").await;
        assert_eq!(end["payload"]["stopReason"], stop, "{end}");
        let last = provider.requests().pop().unwrap();
        assert_eq!(last["tool_choice"], choice);
    }
    assert_eq!(client.text_said(), "onetwothree");
}

#[tokio::test]
async fn whole_messages_are_reported_to_who_asks_for_them() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let configured = client
        .ask(json!({"type": "session:configure", "layers": ["message"]}))
        .await;
    assert_eq!(configured["payload"]["layers"], json!(["message"]));
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:text-delta").len(), 0);
    let messages = client.all("chat:message");
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["message"]["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(messages[3]["exchange"]["stopReason"], "end_turn");
    client.check_numbers();
}

#[tokio::test]
async fn a_client_may_bring_its_own_history() {
    let provider = Provider::start().await;
    provider.then(Turn::text("ok"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client
        .send(json!({"type": "chat:send", "content": "go on", "history": [
            {"role": "user", "content": "before"},
            {"role": "assistant", "content": "", "toolCalls": [{"id": "x1", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "tool", "toolCallId": "unknown", "content": "lost"},
        ]}))
        .await;
    client.until("chat:stream-end").await;
    let notice = &client.all("session:notice")[0];
    assert_eq!(notice["code"], "history_repaired");
    let request = provider.requests()[0].clone();
    let roles: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
}

#[tokio::test]
async fn a_send_that_was_not_admitted_may_be_sent_again() {
    let Answering {
        mut client,
        provider,
        daemon: _daemon,
        pause,
    } = Answering::begin().await;
    provider.then(Turn::text("b"));
    let send = json!({"type": "chat:send", "id": "r", "content": "x", "whenBusy": "reject"});
    client.send(send.clone()).await;
    let refused = client.until("chat:error").await;
    assert_eq!(refused["payload"]["code"], "conversation_busy");
    pause.go_on();
    client.until("chat:stream-end").await;
    client.send(send).await;
    let admitted = client.until("chat:send-result").await;
    assert_eq!(admitted["replyTo"], "r");
    assert!(admitted["payload"].get("duplicate").is_none());
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn without_a_default_model_the_first_one_listed_answers() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hi"));
    let daemon = Daemon::with(&provider, json!({"providers": {"test": {"model": ""}}})).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    let start = client.until("chat:stream-start").await;
    assert_eq!(start["payload"]["model"], "listed-first");
    client.until("chat:stream-end").await;
}

#[tokio::test]
async fn sends_keep_their_order_and_can_be_stopped_while_a_model_is_looked_for() {
    let provider = Provider::start().await;
    provider.by_rule(|said| Turn::text(said["content"].as_str().unwrap()));
    let daemon = Daemon::with(&provider, json!({"providers": {"test": {"model": ""}}})).await;
    let mut client = daemon.connect().await;
    let mut pause = provider.pause_models();
    client
        .send(json!({"type": "chat:send", "conversationId": "shut", "content": "zero"}))
        .await;
    pause.reached().await;
    client
        .send(json!({"type": "chat:close", "conversationId": "shut"}))
        .await;
    let closed = client.until("chat:stream-end").await;
    assert_eq!(closed["payload"]["stopReason"], "cancelled");
    let mut pause = provider.pause_models();
    client
        .send(json!({"type": "chat:send", "id": 1, "content": "one"}))
        .await;
    pause.reached().await;
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["conversations"][0]["state"], "thinking");
    for (id, content) in [(2, "two"), (3, "three")] {
        client
            .send(json!({"type": "chat:send", "id": id, "content": content}))
            .await;
        let answer = client.until("chat:send-result").await;
        assert_eq!(answer["payload"]["state"], "queued", "{answer}");
    }
    let cancelled = client.ask(json!({"type": "chat:cancel"})).await;
    assert_eq!(cancelled["payload"]["cancelled"], true);
    for (message, reason) in [("m2", "cancelled"), ("m3", "end_turn"), ("m4", "end_turn")] {
        let end = client.until("chat:stream-end").await;
        assert_eq!(end["payload"]["messageId"], message);
        assert_eq!(end["payload"]["stopReason"], reason);
    }
    // What was said and not answered is in front of what was said next.
    assert_eq!(client.text_said(), "one\n\ntwothree");
    assert_eq!(
        provider.models_asked(),
        3,
        "once more for each that was given up"
    );
}

#[tokio::test]
async fn calls_after_a_history_have_ids_of_their_own() {
    let provider = Provider::start().await;
    let list = || Turn::call("file_list", &json!({}));
    provider.then(list()).then(list()).then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let history = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "toolCalls": [
            {"id": "t2", "name": "file_list", "input": {}}, {"id": "mine", "name": "file_list", "input": {}}]},
        {"role": "tool", "content": "a", "toolCallId": "t2"},
        {"role": "tool", "content": "a", "toolCallId": "mine"},
    ]);
    client
        .send(json!({"type": "chat:send", "content": "on", "history": history}))
        .await;
    client.until("chat:stream-end").await;
    let ids: Vec<Value> = client
        .all("chat:tool-result")
        .iter()
        .map(|result| result["toolId"].clone())
        .collect();
    assert_eq!(ids, ["t3", "t4"]);
}

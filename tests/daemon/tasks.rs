//! Tasks: pieces of work that a model hands to another one.
//!
//! What breaks with others, and the test that shows that it does not here:
//!
//! | elsewhere | here |
//! |---|---|
//! | a child's question reaches nobody, or is silently denied | `a_question_of_a_task_is_the_sessions`, `who_comes_back_answers_what_a_task_asks`, `files::what_a_task_meets_is_asked_of_who_may_answer`, `acp::questions` |
//! | the limit of depth is not held | `a_task_has_no_tool_to_begin_another_one` |
//! | a wait is blocked despite its limit, a dead child counts | `bounds::a_task_has_a_time_limit_and_frees_its_place`, `a_cancel_goes_down_and_no_further` |
//! | a hundred children at once, with the dearest model | `bounds::three_run_at_once_and_twenty_in_an_exchange`, `bounds::a_task_has_the_model_that_the_operator_names` |
//! | the history is copied into each child | `a_task_begins_with_its_prompt_alone` |
//! | the result is lost, or eaten by thinking | `a_task_that_ends_without_a_word_is_made_to_answer`, `bounds::a_long_result_is_cut_and_kept_whole` |
//! | a budget that trips in a child hangs the parent | `bounds::a_cap_is_asked_about_once_and_a_refusal_ends_the_tasks`, `bounds::a_task_spends_a_part_of_what_is_left` |
//! | a child may do more than its parent | `a_task_may_do_no_more_than_what_is_around_it` |
//! | words of a model pass for the user's | `what_a_task_is_told_is_not_what_the_user_said` |
//! | orphans after a restart | `a_task_ends_with_the_daemon_and_is_not_begun_anew` |

mod bounds;
mod files;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Answers what the user says with turns that call `task` with these prompts (`PROFILE|PROMPT` for another profile), and a
/// task by what its prompt says: a word for each turn.
fn script(provider: &Provider, turns: &[&[&str]]) {
    let turns: Vec<Vec<String>> = turns
        .iter()
        .map(|turn| turn.iter().map(|prompt| (*prompt).to_owned()).collect())
        .collect();
    provider.by_request(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let is = |role: &'static str| move |it: &&Value| it["role"] == role;
        let first = messages.iter().find(is("user")).unwrap();
        let words = match &first["content"] {
            Value::Array(parts) => parts.iter().map(|it| text(&it["text"])).collect(),
            words => text(words).to_owned(),
        };
        let said = words.rsplit("</instructions>").next().unwrap_or_default();
        let prompt = said.trim_start().split('\n').next().unwrap_or_default();
        // An empty answer is not among them, but what asked for more is.
        let users = messages.iter().filter(is("user"));
        let more = users.filter(|it| it["content"].to_string().contains("Continue."));
        let said = messages.iter().filter(is("assistant")).count() + more.count();
        if prompt == "go" {
            return turns
                .get(said)
                .map_or_else(|| Turn::text("done"), |it| tasks(it));
        }
        turn_of(prompt, said, request)
    });
}

fn tasks(prompts: &[String]) -> Turn {
    let input = |prompt: &String| match prompt.split_once('|') {
        Some((profile, prompt)) => {
            json!({"description": "a task", "prompt": prompt, "profile": profile})
        }
        None => json!({"description": "a task", "prompt": prompt}),
    };
    let calls: Vec<(&str, Value)> = prompts.iter().map(|it| ("task", input(it))).collect();
    Turn::calls(&calls)
}

fn turn_of(prompt: &str, said: usize, request: &Value) -> Turn {
    let word = prompt.split(';').nth(said).unwrap_or("say:no more").trim();
    let (what, with) = word.split_once(':').unwrap_or((word, ""));
    let call = |name: &str, input: Value| Turn::call(name, &input);
    match what {
        _ if request["tool_choice"] == "none" => Turn::text("a last answer"),
        "say" => Turn::text(with),
        "cut" => Turn::chunks(&[json!({"content": "half an ans"})], "length"),
        "long" => Turn::text(&"word ".repeat(10_000)),
        "read" => call("file_read", json!({"path": with})),
        "write" => call(
            "file_write",
            json!({"path": with, "content": "by a task\n"}),
        ),
        "task" => call("task", json!({"description": "d", "prompt": "say:deeper"})),
        "find" => call("web_search", json!({"query": with})),
        "think" => Turn::chunks(&[json!({"reasoning_content": "hm"})], "stop"),
        "loop" => call("file_list", json!({"pattern": format!("x{said}*")})),
        other => panic!("{other}"),
    }
}

/// Returns a client that follows what tasks do.
async fn follower(daemon: &Daemon) -> Client {
    let mut client = daemon.connect().await;
    let layers = json!(["stream", "state", "tasks"]);
    let configured = json!({"type": "session:configure", "layers": layers});
    client.ask(configured).await;
    client
}

async fn end(client: &mut Client) -> Value {
    let is_end = |frame: &Value| {
        frame["type"] == "chat:stream-end" && frame["payload"]["conversationId"] == "default"
    };
    client.find(is_end).await["payload"].clone()
}

/// The results of the calls of `task` so far.
fn results(client: &Client) -> Vec<Value> {
    let mut results = client.all("chat:tool-result");
    results.retain(|it| it["toolName"] == "task");
    results
}

async fn go(client: &mut Client) -> Value {
    client.say("go").await;
    end(client).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_question_of_a_task_is_the_sessions() {
    let provider = Provider::start().await;
    let prompts = [
        "read:a.txt;say:one",
        "read:a.txt;say:two",
        "read:a.txt;say:three",
    ];
    script(&provider, &[&prompts]);
    let daemon = Daemon::with(&provider, json!({"chat": {"trust_level": "supervised"}})).await;
    daemon.file("a.txt", "a\n");
    for follows in [true, false] {
        let mut client = match follows {
            true => follower(&daemon).await,
            false => daemon.connect().await,
        };
        client.say("go").await;
        for _ in 0..3 {
            let asked = client.until("chat:tool-confirm").await;
            assert_eq!(asked["payload"]["toolName"], "task");
            client.send(approve(&asked["payload"]["toolId"])).await;
        }
        let mut tasks = BTreeSet::new();
        let mut asked = Vec::new();
        for _ in 0..3 {
            let confirm = client.until("chat:tool-confirm").await;
            let task = text(&confirm["taskId"]).to_owned();
            let payload = &confirm["payload"];
            assert_eq!(payload["toolName"], "file_read");
            assert_eq!(payload["conversationId"], format!("task:{task}"));
            asked.push(payload["toolId"].clone());
            tasks.insert(task);
        }
        assert_eq!(tasks.len(), 3, "{tasks:?}");
        let state = client.ask(json!({"type": "session:state"})).await;
        let state = &state["payload"];
        assert_eq!(state["approvals"].as_array().unwrap().len(), 3);
        let conversations = state["conversations"].as_array().unwrap();
        assert_eq!(conversations.len(), 1, "{conversations:?}");
        assert_eq!(conversations[0]["state"], "awaiting-approval");
        for call in &asked {
            let taken = client.ask(approve(call)).await;
            assert_eq!(taken["payload"]["accepted"], true, "{taken}");
        }
        let ended = end(&mut client).await;
        assert_eq!(ended["stopReason"], "end_turn");
        // Each is told of its end, in the order of its frames.
        client.check_numbers();
        let results = results(&client);
        let said: BTreeSet<&str> = results.iter().map(|it| text(&it["result"])).collect();
        assert_eq!(said, BTreeSet::from(["one", "three", "two"]));
        for result in &results {
            assert_eq!(result["conversationId"], "default");
            let facts = &result["metadata"]["task"];
            assert_eq!(facts["taskId"], result["toolId"]);
            assert_eq!(
                (&facts["turns"], &facts["toolCalls"]),
                (&json!(2), &json!(1))
            );
            assert_eq!(facts["usage"]["inputTokens"], 20);
        }
        let of_tasks = client.seen.iter().filter(|it| it.get("taskId").is_some());
        let of_tasks: BTreeSet<&str> = of_tasks.map(|it| text(&it["type"])).collect();
        let questions = BTreeSet::from(["chat:tool-confirm", "chat:tool-resolved"]);
        match follows {
            true => assert!(of_tasks.contains("chat:stream-end"), "{of_tasks:?}"),
            // Whoever does not know of tasks sees calls, and what is asked.
            false => assert_eq!(of_tasks, questions),
        }
        let progress = client.all("chat:tool-delta");
        let progress = progress.iter().filter(|it| it["stream"] == "progress");
        let lines: Vec<&str> = progress.map(|it| text(&it["chunk"])).collect();
        assert_eq!(lines, ["turn 1: file_read a.txt\n"; 3]);
    }
}

#[tokio::test]
async fn who_comes_back_answers_what_a_task_asks() {
    let provider = Provider::start().await;
    script(&provider, &[&["fix|write:b.txt;say:written"]]);
    let daemon = Daemon::with(&provider, fix()).await;
    let mut client = follower(&daemon).await;
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await;
    assert_eq!(confirm["taskId"], "t1");
    let session = client.session();
    drop(client);
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let again = client.until("chat:tool-confirm").await;
    assert_eq!(again["payload"], confirm["payload"]);
    client.send(approve(&again["payload"]["toolId"])).await;
    end(&mut client).await;
    assert_eq!(results(&client)[0]["result"], "written");
    let written = std::fs::read_to_string(daemon.project().join("b.txt")).unwrap();
    assert_eq!(written, "by a task\n");

    // It is the exchange's around it: there it is found and undone.
    let changes = json!({"type": "files:changes", "conversationId": "default"});
    let changes = client.ask(changes).await;
    let changed = changes["payload"]["changes"].as_array().unwrap();
    assert_eq!(changed.len(), 1, "{changes}");
    let revert = json!({"type": "files:revert", "conversationId": "default", "messageId": "m1"});
    let reverted = client.ask(revert).await;
    assert!(!daemon.project().join("b.txt").exists(), "{reverted}");
}

/// A workflow that may write, as a profile.
fn fix() -> Value {
    let names = ["file_read", "file_write", "file_edit", "file_list"];
    let permissions: Value = names
        .map(|it| (it, json!({"allowed": true})))
        .into_iter()
        .collect();
    json!({
        "workflows": {"fix": {"tool_permissions": permissions}},
        "tasks": {"profiles": ["fix"]},
    })
}

#[tokio::test]
async fn a_task_has_no_tool_to_begin_another_one() {
    let provider = Provider::start().await;
    script(&provider, &[&["task;say:it has none"]]);
    let daemon = Daemon::start(&provider).await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    assert_eq!(results(&client).last().unwrap()["result"], "it has none");
    let offered: Vec<Vec<String>> = provider.requests().iter().map(tools).collect();
    assert!(offered[0].contains(&"task".to_owned()), "{offered:?}");
    for of_task in &offered[1..=2] {
        assert!(!of_task.contains(&"task".to_owned()), "{of_task:?}");
        assert!(of_task.contains(&"file_read".to_owned()));
        assert!(!of_task.contains(&"bash".to_owned()), "{of_task:?}");
    }
    let inner = &results(&client)[0];
    assert!(
        text(&inner["result"]).contains("there is no tool `task`"),
        "{inner}"
    );
}

fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools
        .map(|it| text(&it["function"]["name"]).to_owned())
        .collect()
}

#[tokio::test]
async fn a_cancel_goes_down_and_no_further() {
    let provider = Provider::start().await;
    script(&provider, &[&["fix|write:b.txt;say:x"], &["say:next"]]);
    let daemon = Daemon::with(&provider, fix()).await;
    for (cancel, is_all) in [
        (json!({"type": "chat:cancel"}), true),
        (json!({"type": "tool:cancel", "toolId": "t1"}), false),
        (
            json!({"type": "chat:cancel", "conversationId": "task:t1"}),
            false,
        ),
    ] {
        let mut client = follower(&daemon).await;
        client.say("go").await;
        client.until("chat:tool-confirm").await;
        client.ask(cancel.clone()).await;
        let ended = end(&mut client).await;
        let reason = if is_all { "cancelled" } else { "end_turn" };
        assert_eq!(ended["stopReason"], reason, "{cancel}");
        let resolved = &client.all("chat:tool-resolved")[0];
        assert_eq!(
            (&resolved["outcome"], &resolved["by"]),
            (&json!("cancelled"), &json!("cancel"))
        );
        let of_task = client.all("chat:stream-end");
        assert_eq!(of_task[0]["conversationId"], "task:t1");
        assert_eq!(of_task[0]["stopReason"], "cancelled");
        let results = results(&client);
        assert_eq!(results[0]["metadata"]["cancelled"], true, "{results:?}");
        assert_eq!(results.len(), if is_all { 1 } else { 2 });
        assert!(!daemon.project().join("b.txt").exists());
    }
}

#[tokio::test]
async fn a_task_begins_with_its_prompt_alone() {
    let provider = Provider::start().await;
    let mut more = fix();
    more["approval"] = json!({"policy": "allow_all"});
    let daemon = Daemon::with(&provider, more).await;
    daemon.file("a.txt", "old\n");
    let mut client = follower(&daemon).await;
    let read = json!({"type": "tool:execute", "toolName": "file_read", "input": {"path": "a.txt"}, "inject": true});
    client.send(read).await;
    end(&mut client).await;
    let prompt = "fix|read:a.txt;write:a.txt;say:written";
    provider.then(tasks(&[prompt.to_owned()]));
    provider.by_request(|request| {
        let messages = request["messages"].as_array().unwrap();
        let first = messages.iter().find(|it| it["role"] == "user").unwrap();
        let said = messages.iter().filter(|it| it["role"] == "assistant");
        match text(&first["content"]) {
            prompt if prompt.starts_with("read:") => turn_of(prompt, said.count(), request),
            _ => Turn::text("done"),
        }
    });
    go(&mut client).await;
    assert_eq!(results(&client)[0]["result"], "written");
    let of_task = &provider.requests()[1]["messages"];
    let roles: Vec<&str> = of_task
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["role"]))
        .collect();
    assert_eq!(roles, ["system", "user"], "{of_task}");
    // What was seen around it is not what it has seen: there the file is to be read anew.
    let write = json!({"type": "tool:execute", "toolName": "file_write", "input": {"path": "a.txt", "content": "mine\n"}});
    client.send(write).await;
    end(&mut client).await;
    let mut writes = client.all("chat:tool-result");
    writes.retain(|it| it["toolName"] == "file_write");
    let statuses: Vec<&Value> = writes.iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["success", "error"], "{writes:?}");
    // What it said is remembered beside the conversation, and not in it.
    let history = json!({"type": "chat:history", "conversationId": "task:t2"});
    let history = client.ask(history).await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 6, "{history}");
    for frame in [
        json!({"type": "chat:send", "content": "x", "conversationId": "task:t2"}),
        json!({"type": "tool:execute", "toolName": "file_list", "input": {}, "conversationId": "task:t2"}),
    ] {
        let refused = client.ask(frame).await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    }
    client
        .ask(json!({"type": "chat:close", "conversationId": "default"}))
        .await;
    let history = json!({"type": "chat:history", "conversationId": "task:t2"});
    let history = client.ask(history).await;
    assert_eq!(history["payload"]["messages"], json!([]), "{history}");
}

#[tokio::test]
async fn a_task_that_ends_without_a_word_is_made_to_answer() {
    let provider = Provider::start().await;
    let endless = "loop;".repeat(30);
    let turns: [&[&str]; 3] = [&["think;say:after all"], &["think;think"], &[&endless]];
    script(&provider, &turns);
    let daemon = Daemon::start(&provider).await;
    let mut client = follower(&daemon).await;
    go(&mut client).await;
    let results = results(&client);
    let expected = [
        ("after all", "end_turn"),
        ("a last answer", "end_turn"),
        (
            "[the task had no more turns and was made to answer; what follows it said last]\na last answer",
            "max_turns",
        ),
    ];
    for (result, (said, reason)) in results.iter().zip(expected) {
        assert_eq!(result["status"], "success");
        assert_eq!(result["result"], said);
        assert_eq!(result["metadata"]["task"]["stopReason"], reason);
    }
    assert_eq!(results[2]["metadata"]["task"]["toolCalls"], 20);
}

fn approve(call: &Value) -> Value {
    json!({"type": "chat:tool-approve", "toolId": call, "approved": true})
}

#[tokio::test]
async fn a_task_may_do_no_more_than_what_is_around_it() {
    let provider = Provider::start().await;
    script(&provider, &[&["fix|write:b.txt;say:x"]]);
    let mut more = fix();
    more["workflows"]["fix"]["trust_level"] = json!("autonomous");
    let daemon = Daemon::with(&provider, more).await;
    // Guided around it: the profile's own trust does not count.
    let mut client = follower(&daemon).await;
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await;
    assert_eq!(confirm["payload"]["toolName"], "file_write");
    let deny = json!({"type": "chat:tool-approve", "toolId": confirm["payload"]["toolId"], "approved": false});
    client.send(deny).await;
    end(&mut client).await;
    // What the send does not allow, the profile cannot give.
    let narrow = json!({"type": "chat:send", "content": "go", "trustLevel": "autonomous", "conversationId": "narrow",
        "toolPermissions": {"task": {"allowed": true}, "file_read": {"allowed": true}}});
    client.send(narrow).await;
    client
        .find(|it| it["type"] == "chat:stream-end" && it["payload"]["conversationId"] == "narrow")
        .await;
    let requests = provider.requests();
    let of_task = requests
        .iter()
        .rev()
        .find(|it| !tools(it).contains(&"task".to_owned()) && !tools(it).is_empty());
    assert_eq!(tools(of_task.unwrap()), ["file_read"]);
    assert!(!daemon.project().join("b.txt").exists());
    // And where `task` is not allowed, there is none.
    let without = json!({"type": "chat:send", "content": "go", "conversationId": "without",
        "toolPermissions": {"file_read": {"allowed": true}}});
    client.send(without).await;
    client
        .find(|it| it["type"] == "chat:stream-end" && it["payload"]["conversationId"] == "without")
        .await;
    let last = results(&client).pop().unwrap();
    assert!(text(&last["result"]).contains("not allowed"), "{last}");
}

#[tokio::test]
async fn a_task_ends_with_the_daemon_and_is_not_begun_anew() {
    let provider = Provider::start().await;
    script(&provider, &[&["say:early", "fix|write:b.txt;say:x"]]);
    let daemon = Daemon::with(&provider, fix()).await;
    let mut client = follower(&daemon).await;
    client.say("go").await;
    client.until("chat:tool-confirm").await;
    let session = client.session();
    let daemon = daemon.after_kill().await;
    let asked = provider.requests().len();
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    let ended = end(&mut client).await;
    assert_eq!(ended["stopReason"], "error");
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["approvals"], json!([]));
    assert_eq!(
        state["payload"]["conversations"].as_array().unwrap().len(),
        1,
        "{state}"
    );
    let history = client
        .ask(json!({"type": "chat:history", "conversationId": "default"}))
        .await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    let cut = messages.iter().find(|it| it["toolCallId"] == "t2").unwrap();
    assert!(
        cut.to_string()
            .contains("the daemon stopped while this call ran"),
        "{history}"
    );
    // What was said in it is there to be looked at.
    let history = client
        .ask(json!({"type": "chat:history", "conversationId": "task:t2"}))
        .await;
    let messages = history["payload"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3, "{history}");
    assert_eq!(provider.requests().len(), asked);
    assert_eq!(
        provider.requests().last().map(|it| tools(it).is_empty()),
        Some(false)
    );
}

#[tokio::test]
async fn what_a_task_is_told_is_not_what_the_user_said() {
    let provider = Provider::start().await;
    script(&provider, &[&["find:secret;say:x"]]);
    let search = json!({"ask": "new_words", "searxng_url": "http://127.0.0.1:9"});
    let daemon = Daemon::with(&provider, json!({"tools": {"web_search": search}})).await;
    let mut client = follower(&daemon).await;
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await;
    let reason = text(&confirm["payload"]["reason"]);
    assert!(reason.contains("words that you did not write"), "{reason}");
    let deny = json!({"type": "chat:tool-approve", "toolId": confirm["payload"]["toolId"], "approved": false});
    client.send(deny).await;
    end(&mut client).await;
}

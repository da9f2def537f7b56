//! Conversations that fill their model's window, with a provider that counts tokens and refuses what does not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// What the provider takes, in tokens of four bytes.
const WINDOW: usize = 8_000;

/// How a request for a summary ends.
const PROMPT: &str = "The conversation above does not fit any more";

/// What the provider saw.
#[derive(Default)]
struct Seen {
    /// Requests that did not fit.
    overflows: AtomicUsize,
    summaries: AtomicUsize,
    /// Requests that did not begin with the one before.
    broken_prefixes: AtomicUsize,
    turns: AtomicUsize,
}

fn tokens(request: &Value) -> usize {
    (request["messages"].to_string().len() + request["tools"].to_string().len()) / 4
}

fn is_summary(request: &Value) -> bool {
    let last = request["messages"].as_array().and_then(|all| all.last());
    let content = last.and_then(|last| last["content"].as_str());
    content.is_some_and(|content| content.starts_with(PROMPT))
}

/// Has the provider read a file `per_send` times for each thing that is said, and count.
fn counting(provider: &Provider, per_send: usize) -> Arc<Seen> {
    let seen = Arc::<Seen>::default();
    let it = Arc::clone(&seen);
    let before = std::sync::Mutex::new(Vec::<Value>::new());
    provider.by_request(move |request| {
        let tokens = tokens(request);
        if tokens > WINDOW {
            it.overflows.fetch_add(1, Ordering::SeqCst);
            let message = format!("This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {tokens} tokens.");
            let error = json!({"error": {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}});
            return Turn::plain(400, "application/json", &error.to_string());
        }
        if is_summary(request) {
            it.summaries.fetch_add(1, Ordering::SeqCst);
            return Turn::text(&"Task: read. State: half. Next step: read on. ".repeat(8)).counted(tokens);
        }
        let messages = request["messages"].as_array().unwrap().clone();
        let mut before = before.lock().unwrap();
        if !messages.starts_with(&before) {
            it.broken_prefixes.fetch_add(1, Ordering::SeqCst);
        }
        *before = messages;
        let turn = it.turns.fetch_add(1, Ordering::SeqCst);
        match (turn + 1).is_multiple_of(per_send) {
            true => Turn::text("read").counted(tokens),
            // Never the same call twice in a row, which the user would be asked about.
            false => Turn::call("file_read", &json!({"path": "notes.txt", "limit": 100 + turn % 2})).counted(tokens),
        }
    });
    seen
}

/// Starts a daemon whose provider may say which window its model has.
async fn start(provider: &Provider, window: Option<usize>, more: Value) -> (Daemon, Client) {
    let mut config = json!({"providers": {"test": {"kind": "vllm"}}});
    if let Some(window) = window {
        provider.says_window(window);
    }
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let daemon = Daemon::with(provider, config).await;
    daemon.file("notes.txt", "a line of notes\n".repeat(60));
    let mut client = daemon.connect().await;
    if window.is_some() {
        client
            .ask(json!({"type": "model:list", "provider": "test"}))
            .await;
    }
    (daemon, client)
}

fn say(words: &str) -> Value {
    json!({
        "type": "chat:send", "content": words, "systemPrompt": "Read.",
        "toolPermissions": {"file_read": {"allowed": true}},
        "limits": {"maxTurns": 200},
    })
}

/// What a conversation has, for everybody or for its model.
async fn history(client: &mut Client, view: &str) -> Value {
    let asked = json!({"type": "chat:history", "view": view});
    client.ask(asked).await["payload"]["messages"].clone()
}

fn compactions(client: &Client, phase: &str) -> Vec<Value> {
    let mut all = client.all("chat:compaction");
    all.retain(|it| it["phase"] == phase);
    all
}

/// Has so many turns in each of three exchanges, with twenty facts in what the user says.
async fn goes_on(client: &mut Client, seen: &Seen, turns: usize) {
    let fact = |number: usize| format!("fact {number}: the port is {}", 4_000 + 37 * number);
    for send in 0..3 {
        let facts = (0..20).filter(|number| number % 3 == send).map(fact);
        let words = facts.collect::<Vec<_>>().join("\n");
        client.send(say(&words)).await;
        let end = client.until("chat:stream-end").await;
        assert_eq!(end["payload"]["stopReason"], "end_turn", "{end}");
        assert_eq!(end["payload"]["turns"], turns);
    }
    assert_eq!(seen.turns.load(Ordering::SeqCst), 3 * turns);
    let seen_by_model = history(client, "model").await.to_string();
    for number in 0..20 {
        assert!(
            seen_by_model.contains(&fact(number)),
            "{number} {seen_by_model}"
        );
    }
    assert!(tokens(&json!({"messages": seen_by_model})) < WINDOW);
    let done = compactions(client, "done");
    assert!(done.len() > turns / 50, "{done:?}");
    for it in &done {
        let (before, after) = (it["beforeTokens"].as_u64(), it["afterTokens"].as_u64());
        assert!(after.unwrap() * 10 <= before.unwrap() * 8, "{it}");
    }
    assert_eq!(compactions(client, "failed"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_conversation_of_500_turns_goes_on_in_a_small_window() {
    let provider = Provider::start().await;
    let seen = counting(&provider, 170);
    let (_daemon, mut client) = start(&provider, Some(WINDOW), json!({})).await;
    goes_on(&mut client, &seen, 170).await;
    // It never came so far that the provider refused anything, and its cache was lost to nothing else.
    assert_eq!(seen.overflows.load(Ordering::SeqCst), 0);
    let done = compactions(&client, "done").len();
    assert_eq!(seen.broken_prefixes.load(Ordering::SeqCst), done);
    let record = client
        .ask(json!({"type": "chat:history", "limit": 1}))
        .await;
    assert_eq!(record["payload"]["nextBefore"], 510 + 507 + 3 - 1);
}

#[tokio::test]
async fn a_window_that_nobody_knows_or_that_is_smaller_than_said_is_learnt_from_the_refusal() {
    for window in [None, Some(2 * WINDOW)] {
        let provider = Provider::start().await;
        let seen = counting(&provider, 50);
        let (_daemon, mut client) = start(&provider, window, json!({})).await;
        goes_on(&mut client, &seen, 50).await;
        assert_eq!(seen.overflows.load(Ordering::SeqCst), 1, "{window:?}");
        let first = &compactions(&client, "done")[0];
        assert_eq!(first["trigger"], "overflow");
    }
}

#[tokio::test]
async fn a_hooks_no_counts_for_the_exchange() {
    let provider = Provider::start().await;
    let seen = counting(&provider, 60);
    let asked = "echo asked >> asked; exit 2";
    let hook = json!({"on": "compact", "command": "/bin/sh", "args": ["-c", asked]});
    // From early on, so that many turns are above it.
    let more = json!({"hooks": {"keep": hook}, "compaction": {"at": 0.3}});
    let (daemon, mut client) = start(&provider, Some(WINDOW), more).await;
    for times in 1..=2 {
        client.send(say("read on")).await;
        client.until("chat:stream-end").await;
        let asked = std::fs::read_to_string(daemon.project().join("asked")).unwrap();
        assert_eq!(asked.lines().count(), times);
        let notices = client.all("session:notice");
        let refused = notices.iter().filter(|it| it["code"] == "hook_refused");
        assert_eq!(refused.count(), times, "{notices:?}");
    }
    assert!(seen.turns.load(Ordering::SeqCst) > 4);
    assert_eq!(compactions(&client, "done"), Vec::<Value>::new());
    // Whoever wants it has it asked about all the same.
    client
        .ask(json!({"type": "chat:compact", "mode": "summary"}))
        .await;
    let asked = std::fs::read_to_string(daemon.project().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 3);
}

#[tokio::test]
async fn a_cancel_while_a_hook_is_asked_ends_the_exchange() {
    let provider = Provider::start().await;
    counting(&provider, 60);
    let asked = "echo asked > asked; sleep 1000";
    let hook =
        json!({"on": "compact", "command": "/bin/sh", "args": ["-c", asked], "timeout": "5m"});
    let more = json!({"hooks": {"keep": hook}, "compaction": {"at": 0.3}});
    let (daemon, mut client) = start(&provider, Some(WINDOW), more).await;
    client.send(say("read on")).await;
    let asked = daemon.project().join("asked");
    let is_asked = async || asked.exists();
    client.unread(eventually("the hook", is_asked)).await;
    let requests = provider.requests().len();
    client.ask(json!({"type": "chat:cancel"})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled", "{end}");
    assert_eq!(provider.requests().len(), requests);
}

#[tokio::test]
async fn another_model_may_sum_up() {
    let provider = Provider::start().await;
    let seen = counting(&provider, 60);
    let more = json!({"compaction": {"model": "test/another", "at": 0.6}});
    let (_daemon, mut client) = start(&provider, Some(WINDOW), more).await;
    client.send(say("read on")).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    let asked = provider.requests();
    let summaries = asked.iter().filter(|it| is_summary(it));
    let models: Vec<_> = summaries.map(|it| it["model"].clone()).collect();
    assert_eq!(models.len(), seen.summaries.load(Ordering::SeqCst));
    assert!(models.iter().all(|model| model == "another"), "{models:?}");
}

#[tokio::test]
async fn what_the_model_sees_is_the_same_after_a_kill() {
    let provider = Provider::start().await;
    counting(&provider, 60);
    let (daemon, mut client) = start(&provider, Some(WINDOW), json!({})).await;
    client.send(say("read on")).await;
    client.until("chat:stream-end").await;
    let (record, seen) = (
        history(&mut client, "record").await,
        history(&mut client, "model").await,
    );
    assert!(record.as_array().unwrap().len() > 2 * seen.as_array().unwrap().len());
    let stands_for = &seen[0]["compaction"]["replaces"];
    assert_eq!(stands_for[0], 0);
    let session = client.session();
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    assert_eq!(history(&mut client, "record").await, record);
    assert_eq!(history(&mut client, "model").await, seen);
    // A copy up to before it sees all that it has, and one of all of it sees as much.
    for (before, expected) in [(json!(5), 5), (Value::Null, seen.as_array().unwrap().len())] {
        let mut fork = json!({"type": "session:fork", "conversationId": "default"});
        if !before.is_null() {
            fork["before"] = before;
        }
        let made = client.ask(fork).await["payload"]["sessionId"].clone();
        let copy = made.as_str().unwrap();
        let mut copy = Client::connect(&daemon, &format!("?session={copy}&after=0")).await;
        let seen = history(&mut copy, "model").await;
        assert_eq!(seen.as_array().unwrap().len(), expected);
    }
}

#[tokio::test]
async fn a_user_has_a_conversation_made_shorter() {
    let provider = Provider::start().await;
    counting(&provider, 8);
    let (_daemon, mut client) = start(&provider, None, json!({})).await;
    let compact = |more: Value| {
        let mut frame = json!({"type": "chat:compact"});
        for (key, value) in more.as_object().unwrap() {
            frame[key] = value.clone();
        }
        frame
    };
    let nothing = client.ask(compact(json!({}))).await;
    assert_eq!(nothing["payload"]["state"], "nothing_to_do");
    client.send(say("read on")).await;
    client.until("chat:stream-end").await;
    let record = history(&mut client, "record").await;
    let long = json!({"instructions": "x".repeat(9_000)});
    let refused = client.ask(compact(long)).await;
    assert_eq!(refused["type"], "session:error");
    let started = client
        .ask(compact(
            json!({"mode": "summary", "instructions": "mind the port"}),
        ))
        .await;
    assert_eq!(started["payload"]["state"], "started");
    let mut told = client.until("chat:compaction").await;
    while told["payload"]["phase"] == "started" {
        told = client.until("chat:compaction").await;
    }
    assert_eq!(told["payload"]["phase"], "done", "{told}");
    assert_eq!(told["payload"]["trigger"], "manual");
    assert!(told["payload"].get("messageId").is_none());
    assert_eq!(history(&mut client, "record").await, record);
    let asked = provider.requests().pop().unwrap();
    assert!(is_summary(&asked) && asked.to_string().contains("mind the port"));
    // And it goes on from there: what was answered is not asked again.
    client.send(say("and now?")).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    let asked = provider.requests();
    let next = asked
        .iter()
        .rev()
        .find(|it| it.to_string().contains("and now?") && !it.to_string().contains(r#"call_0"#));
    let messages = next.unwrap()["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages
        .iter()
        .map(|it| it["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "user", "assistant", "user"]
    );
    assert_eq!(messages[4]["content"], "read");
}

#[tokio::test]
async fn a_history_of_the_clients_own_begins_anew_also_after_a_kill() {
    let provider = Provider::start().await;
    counting(&provider, 8);
    let (daemon, mut client) = start(&provider, None, json!({})).await;
    client.send(say("read on")).await;
    client.until("chat:stream-end").await;
    client
        .ask(json!({"type": "chat:compact", "mode": "summary"}))
        .await;
    let mut told = client.until("chat:compaction").await;
    while told["payload"]["phase"] == "started" {
        told = client.until("chat:compaction").await;
    }
    assert_eq!(told["payload"]["phase"], "done");
    // All that was said, and one message more: nothing of the record is other.
    let mut own = say("go on");
    own["history"] = history(&mut client, "record").await;
    client.send(own).await;
    client.until("chat:stream-end").await;
    let record = history(&mut client, "record").await;
    assert_eq!(history(&mut client, "model").await, record);
    let session = client.session();
    let daemon = daemon.after_kill().await;
    let mut client = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    assert_eq!(history(&mut client, "model").await, record);
}

#[tokio::test]
async fn one_that_waits_goes_with_cancel_and_close() {
    for ends in ["chat:cancel", "chat:close"] {
        let provider = Provider::start().await;
        let (turn, mut pause) = Turn::paused(&[json!({"content": "well"})], &[], "stop");
        provider.then(turn);
        let (_daemon, mut client) = start(&provider, None, json!({})).await;
        client.send(say(&"read on ".repeat(500))).await;
        pause.reached().await;
        let waits = json!({"type": "chat:compact", "mode": "summary", "whenBusy": "queue"});
        let queued = client.ask(waits).await;
        assert_eq!(queued["payload"]["state"], "queued");
        client.ask(json!({"type": ends})).await;
        pause.go_on();
        client.until("chat:stream-end").await;
        // A conversation of this name that is used again has nothing before it.
        counting(&provider, 1);
        client.send(say("again")).await;
        client.until("chat:stream-end").await;
        assert_eq!(client.all("chat:compaction"), Vec::<Value>::new());
        assert!(!provider.requests().iter().any(is_summary), "{ends}");
    }
}

#[tokio::test]
async fn one_that_is_asked_for_meanwhile_is_refused_or_waits() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "well"})], &[], "stop");
    provider.then(turn);
    let (_daemon, mut client) = start(&provider, None, json!({})).await;
    client.send(say(&"read on ".repeat(500))).await;
    pause.reached().await;
    let busy = client.ask(json!({"type": "chat:compact"})).await;
    assert_eq!(busy["payload"]["code"], "conversation_busy", "{busy}");
    let queued = client
        .ask(json!({"type": "chat:compact", "mode": "summary", "whenBusy": "queue"}))
        .await;
    assert_eq!(queued["payload"]["state"], "queued");
    counting(&provider, 8);
    pause.go_on();
    client.until("chat:stream-end").await;
    let told = client.until("chat:compaction").await;
    assert_eq!(told["payload"]["phase"], "started");
}

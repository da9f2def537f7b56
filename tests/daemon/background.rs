//! Commands in the background: they go on over exchanges, are read and ended, and die with their owner.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Most at once in a conversation.
const MOST: usize = 16;

/// How often something is tried that a slow machine may be too slow for.
const MOST_TRIES: u32 = 10;

async fn autonomous(provider: &Provider) -> Daemon {
    let more = json!({"chat": {"trust_level": "autonomous"}});
    Daemon::with(provider, more).await
}

/// Has the model make one call in an exchange of its own, and returns its result.
async fn call(client: &mut Client, provider: &Provider, tool: &str, input: &Value) -> Value {
    call_in(client, provider, "default", tool, input).await
}

async fn call_in(
    client: &mut Client,
    provider: &Provider,
    conversation: &str,
    tool: &str,
    input: &Value,
) -> Value {
    provider
        .then(Turn::call(tool, input))
        .then(Turn::text("done"));
    let send = json!({"type": "chat:send", "conversationId": conversation, "content": "go"});
    client.send(send).await;
    let result = client.until("chat:tool-result").await;
    client.until("chat:stream-end").await;
    result["payload"].clone()
}

async fn start(client: &mut Client, provider: &Provider, command: &str) -> Value {
    let input = json!({"command": command, "background": true});
    call(client, provider, "bash", &input).await
}

fn text(result: &Value) -> &str {
    result["result"].as_str().unwrap()
}

/// Waits until a call has written so many bytes in the background.
async fn written(client: &mut Client, tool_id: &str, bytes: u64) {
    eventually("output in the background", async || {
        let ask = json!({"type": "tool:output", "toolId": tool_id, "limit": 1});
        client.ask(ask).await["payload"]["totalBytes"].as_u64() >= Some(bytes)
    })
    .await;
}

/// Waits until a command in the background has ended.
async fn ended(client: &mut Client, id: &str) -> Value {
    let is_end = |payload: &Value| {
        let background = &payload["background"];
        background["id"] == id && background["status"] != "running"
    };
    loop {
        let all = client.all("tool:background");
        if let Some(payload) = all.iter().find(|payload| is_end(payload)) {
            return payload["background"].clone();
        }
        client.until("tool:background").await;
    }
}

/// Whether a process runs whose line has this word.
fn runs(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| {
            let mut words = line.split(|byte| *byte == 0);
            words.any(|one| one == word.as_bytes())
        })
    })
}

/// A duration that no other process sleeps for.
fn unique(daemon: &Daemon, number: u32) -> String {
    format!("600.{:07}{number}", daemon.pid)
}

#[tokio::test]
async fn it_goes_on_over_exchanges_and_is_read_from_where_it_was_read() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let until = |file: &str| format!("while [ ! -e {file} ]; do sleep 0.01; done");
    let line = format!(
        "echo one; {}; echo two >&2; {}; echo three; exit 3",
        until("go"),
        until("end")
    );
    let result = start(&mut client, &provider, &line).await;
    assert_eq!(result["status"], "success", "{result}");
    assert_eq!(result["metadata"]["background"], "b1", "{result}");
    assert!(text(&result).contains("b1 is running"), "{result}");
    let began = &client.all("tool:background")[0];
    assert_eq!(began["conversationId"], "default", "{began}");
    let began = &began["background"];
    assert_eq!(
        (&began["id"], &began["toolId"]),
        (&json!("b1"), &json!("t1"))
    );
    assert_eq!(
        (&began["status"], &began["command"]),
        (&json!("running"), &json!(line))
    );
    written(&mut client, "t1", 4).await;

    // While an exchange runs, its output is shown, as a part of that exchange.
    let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn);
    client.say("wait").await;
    pause.reached().await;
    client.until("chat:stream-start").await;
    daemon.file("go", "");
    let delta = loop {
        let delta = client.until("chat:tool-delta").await["payload"].clone();
        if delta["chunk"].as_str().unwrap().contains("two") {
            break delta;
        }
    };
    assert_eq!(
        (&delta["messageId"], &delta["toolId"], &delta["stream"]),
        (&json!("m2"), &json!("t1"), &json!("stderr"))
    );
    pause.go_on();
    client.until("chat:stream-end").await;

    let new = call(&mut client, &provider, "bash_output", &json!({"id": "b1"})).await;
    assert_eq!(new["status"], "success");
    assert!(text(&new).contains("[b1 is running; next: 8]"), "{new}");
    let all = json!({"id": "b1", "since": 0});
    let all = call(&mut client, &provider, "bash_output", &all).await;
    assert!(text(&all).starts_with("one\ntwo\n[b1 is"), "{all}");
    let nothing = call(&mut client, &provider, "bash_output", &json!({"id": "b1"})).await;
    assert!(
        text(&nothing).starts_with("[no new output]\n[b1 is"),
        "{nothing}"
    );
    let beyond = json!({"id": "b1", "since": 9});
    let beyond = call(&mut client, &provider, "bash_output", &beyond).await;
    assert_eq!(beyond["status"], "error");
    assert!(text(&beyond).contains("beyond the end"), "{beyond}");

    // Between exchanges nothing is told but its end.
    let before = client.seen.len();
    daemon.file("end", "");
    let end = ended(&mut client, "b1").await;
    assert_eq!(
        (&end["status"], &end["exitCode"]),
        (&json!("exited"), &json!(3)),
        "{end}"
    );
    let between = &client.seen[before..];
    assert!(
        between.iter().all(|frame| matches!(
            frame["type"].as_str(),
            Some("tool:background" | "chat:state")
        )),
        "{between:?}"
    );
    let state = client.ask(json!({"type": "session:state"})).await;
    assert_eq!(
        state["payload"]["conversations"][0]["background"],
        json!([end]),
        "{state}"
    );
    let record = client
        .ask(json!({"type": "tool:status", "toolId": "t1"}))
        .await;
    let record = &record["payload"];
    assert_eq!(record["background"], end, "{record}");
    assert_eq!(
        (&record["stdoutBytes"], &record["stderrBytes"]),
        (&json!(10), &json!(4))
    );
    let last = call(&mut client, &provider, "bash_output", &json!({"id": "b1"})).await;
    assert_eq!(
        text(&last),
        "three\n[b1 has ended: exit code 3; next: 14]",
        "{last}"
    );
    let killed = call(&mut client, &provider, "bash_kill", &json!({"id": "b1"})).await;
    assert!(text(&killed).contains("does not run any more"), "{killed}");
    client.check_numbers();
}

#[tokio::test]
async fn later_commands_reach_the_ports_of_a_server_in_the_background() {
    let python = "/usr/bin/python3";
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let ready = client.all("session:ready");
    if !Path::new(python).exists() || ready[0]["sandbox"]["mode"] != "full" {
        eprintln!("*** SKIPPED: later_commands_reach: it takes {python} and the mode full ***");
        return;
    }
    daemon.file("page.txt", "the page\n");
    let serve = format!("{python} -m http.server --bind 127.0.0.1 8099");
    let result = start(&mut client, &provider, &serve).await;
    assert!(text(&result).contains("b1 is running"), "{result}");
    daemon.file(
        "fetch.py",
        "from urllib.request import urlopen\nprint(urlopen('http://127.0.0.1:8099/page.txt').read())\n",
    );
    let fetch = format!("until {python} fetch.py 2>/dev/null; do sleep 0.05; done");
    let page = call(&mut client, &provider, "bash", &json!({"command": fetch})).await;
    assert_eq!(text(&page), "b'the page\\n'\n", "{page}");
    // The port is taken; the first one goes on.
    let second = start(&mut client, &provider, &serve).await;
    assert_eq!(second["metadata"]["background"], "b2", "{second}");
    let end = ended(&mut client, "b2").await;
    assert_eq!(end["exitCode"], 1, "{end}");
    let said = json!({"id": "b2", "since": 0});
    let said = call(&mut client, &provider, "bash_output", &said).await;
    assert!(text(&said).contains("Address already in use"), "{said}");
    assert!(text(&said).contains("b2 has ended: exit code 1"), "{said}");
    let page = call(&mut client, &provider, "bash", &json!({"command": fetch})).await;
    assert_eq!(text(&page), "b'the page\\n'\n", "{page}");
}

#[tokio::test]
async fn bad_input_is_told_and_nothing_is_left() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let none = call(&mut client, &provider, "bash_output", &json!({"id": "b1"})).await;
    assert!(text(&none).contains("there is no command"), "{none}");
    for (timeout, reason) in [(0.0, "above 0"), (-1.0, "above 0")] {
        let input = json!({"command": "sleep 1", "background": true, "timeout": timeout});
        let refused = call(&mut client, &provider, "bash", &input).await;
        assert!(text(&refused).contains(reason), "{refused}");
    }
    // Ends by itself at once.
    start(&mut client, &provider, "no-such-program-as-this").await;
    let end = ended(&mut client, "b1").await;
    assert_eq!(end["exitCode"], 127, "{end}");
    // By its time limit.
    let input = json!({"command": "sleep 600", "background": true, "timeout": 0.05});
    call(&mut client, &provider, "bash", &input).await;
    let end = ended(&mut client, "b2").await;
    assert_eq!(end["status"], "timedOut", "{end}");
    let said = call(&mut client, &provider, "bash_output", &json!({"id": "b2"})).await;
    assert!(text(&said).contains("ended after its time limit"), "{said}");
    // By a client.
    start(&mut client, &provider, "sleep 600").await;
    let id = client.all("chat:tool-result").last().unwrap()["toolId"].clone();
    for cancelled in [true, false] {
        let cancel = json!({"type": "tool:cancel", "toolId": id});
        let answer = client.ask(cancel).await;
        assert_eq!(answer["payload"]["cancelled"], cancelled, "{answer}");
        assert_eq!(ended(&mut client, "b3").await["status"], "killed");
    }
    // Of another conversation it is not known.
    start(&mut client, &provider, "sleep 600").await;
    for tool in ["bash_output", "bash_kill"] {
        let input = json!({"id": "b4"});
        let other = call_in(&mut client, &provider, "other", tool, &input).await;
        assert_eq!(other["status"], "error", "{other}");
        assert!(text(&other).contains("nor any other"), "{other}");
        let unknown = json!({"id": "b9"});
        let unknown = call(&mut client, &provider, tool, &unknown).await;
        assert!(text(&unknown).contains("b1, b2, b3, b4"), "{unknown}");
    }
}

#[tokio::test]
async fn a_command_that_prints_for_ever_is_bounded_and_killed() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    start(
        &mut client,
        &provider,
        "trap '' TERM; yes '0123456789'; sleep 600",
    )
    .await;
    // More than is kept.
    written(&mut client, "t1", 9 << 20).await;
    let first = client
        .ask(json!({"type": "tool:output", "toolId": "t1", "offset": 0, "limit": 22}))
        .await;
    let first = &first["payload"];
    assert!(first["offset"].as_u64().unwrap() > 0, "{first}");
    let look = json!({"id": "b1", "since": 0});
    let all = call(&mut client, &provider, "bash_output", &look).await;
    assert!(text(&all).contains("older bytes are no longer kept"));
    assert!(text(&all).contains("bytes left out"));
    assert!(text(&all).len() < 200 * 1024);
    assert_eq!(all["metadata"]["truncated"], true);
    let killed = call(&mut client, &provider, "bash_kill", &json!({"id": "b1"})).await;
    assert!(text(&killed).contains("b1 was ended"), "{killed}");
    let again = call(&mut client, &provider, "bash_kill", &json!({"id": "b1"})).await;
    assert_eq!(again["status"], "success");
    assert!(text(&again).contains("does not run any more"), "{again}");
}

#[tokio::test]
async fn no_more_than_so_many_run_and_all_end_with_their_conversation() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let sleep = |number: u32| format!("sleep {}", unique(&daemon, number));
    let calls: Vec<_> = (0..100)
        .map(|number| {
            let input = json!({"command": sleep(number), "background": true});
            ("bash", input)
        })
        .collect();
    provider.then(Turn::calls(&calls)).then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    let (running, refused): (Vec<_>, Vec<_>) = results
        .iter()
        .partition(|result| result["metadata"]["background"].is_string());
    assert_eq!((running.len(), refused.len()), (MOST, 100 - MOST));
    for result in refused {
        assert_eq!(result["status"], "error");
        assert!(text(result).contains("`bash_kill`"), "{result}");
    }
    // A place is free again.
    call(&mut client, &provider, "bash_kill", &json!({"id": "b3"})).await;
    let more = start(&mut client, &provider, &sleep(100)).await;
    assert_eq!(more["status"], "success", "{more}");
    let any_runs = || (0..=100).any(|number| runs(&unique(&daemon, number)));
    // A cancel of an exchange ends none.
    let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn);
    client.say("wait").await;
    pause.reached().await;
    client.ask(json!({"type": "chat:cancel"})).await;
    client.until("chat:stream-end").await;
    let state = client.ask(json!({"type": "session:state"})).await;
    let background = state["payload"]["conversations"][0]["background"].clone();
    let is_running = |command: &&Value| command["status"] == "running";
    let running = background.as_array().unwrap().iter().filter(is_running);
    assert_eq!(running.count(), MOST, "{background}");
    assert!(any_runs());
    client
        .ask(json!({"type": "chat:close", "conversationId": "default"}))
        .await;
    eventually("the end of all commands", async || !any_runs()).await;
}

#[tokio::test]
async fn a_cancel_before_the_call_is_answered_ends_it() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    // The answer may be faster than the cancel: it goes on then, as is said.
    for number in 1..=MOST_TRIES {
        let mark = unique(&daemon, number);
        let input = json!({"command": format!("sleep {mark}"), "background": true});
        provider.then(Turn::call("bash", &input));
        client.say("go").await;
        client.until("tool:background").await;
        client.send(json!({"type": "chat:cancel"})).await;
        client.until("chat:stream-end").await;
        let results = client.all("chat:tool-result");
        let metadata = &results.last().unwrap()["metadata"];
        if metadata["cancelled"] == true {
            let id = metadata["background"].as_str().unwrap().to_owned();
            assert_eq!(ended(&mut client, &id).await["status"], "killed");
            assert!(!runs(&mark));
            return;
        }
        assert!(runs(&mark), "{metadata}");
    }
    panic!("{MOST_TRIES} cancels came after the answer of their call");
}

#[tokio::test]
async fn it_ends_with_its_session() {
    let provider = Provider::start().await;
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "session": {"resume_grace": "1ms"},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let mark = unique(&daemon, 0);
    // What left the session of its shell, and takes no word, goes as well.
    let line = format!("(trap '' TERM HUP INT; setsid sleep {mark}) & sleep {mark}");
    start(&mut client, &provider, &line).await;
    eventually("the command", async || runs(&mark)).await;
    drop(client);
    eventually("the end of the command", async || !runs(&mark)).await;
}

#[tokio::test]
async fn it_ends_with_a_daemon_that_is_killed() {
    let provider = Provider::start().await;
    let mut daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let mark = unique(&daemon, 0);
    let line = format!("(trap '' TERM HUP INT; setsid sleep {mark}) & sleep {mark}");
    start(&mut client, &provider, &line).await;
    eventually("the command", async || runs(&mark)).await;
    daemon.child.kill().await.unwrap();
    eventually("the end of the command", async || !runs(&mark)).await;
}

#[tokio::test]
async fn its_start_is_asked_for_as_any_command_is_and_looking_is_not() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let input = json!({"command": "echo test-key-0123456789; sleep 600", "background": true});
    provider
        .then(Turn::call("bash", &input))
        .then(Turn::text("done"));
    client.say("go").await;
    let asked = client.until("chat:tool-confirm").await;
    assert_eq!(asked["payload"]["input"], input, "{asked}");
    client
        .send(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    client.until("chat:stream-end").await;
    written(&mut client, "t1", 11).await;
    // Secrets are taken out of what is kept as of what is read.
    let kept = json!({"type": "tool:output", "toolId": "t1"});
    assert_eq!(client.ask(kept).await["payload"]["text"], "[redacted]\n");
    let look = json!({"id": "b1", "since": 0});
    for _ in 0..4 {
        provider.then(Turn::call("bash_output", &look));
    }
    provider
        .then(Turn::call("bash_kill", &json!({"id": "b1"})))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 1);
    let results = client.all("chat:tool-result");
    assert!(text(&results[2]).starts_with("[redacted]\n"), "{results:?}");
    assert!(text(&results[5]).contains("b1 was ended"), "{results:?}");
}

#[tokio::test]
async fn the_tools_for_it_go_with_bash() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for (permissions, offered) in [
        (json!({}), false),
        (json!({"bash_output": {"allowed": true}}), false),
        (
            json!({"bash": {"allowed": false}, "bash_kill": {"allowed": true}}),
            false,
        ),
        (json!({"bash": {"allowed": true}}), true),
    ] {
        let list = json!({"type": "tool:list", "toolPermissions": permissions});
        let tools = client.ask(list).await["payload"]["tools"].clone();
        for name in ["bash", "bash_output", "bash_kill"] {
            let has = tools
                .as_array()
                .unwrap()
                .iter()
                .any(|tool| tool["name"] == name);
            assert_eq!(has, offered, "{name} with {permissions}");
        }
    }
    let more = json!({"tools": {"bash": {"enabled": false}}});
    let without = Daemon::with(&provider, more).await;
    let mut client = without.connect().await;
    let tools = client.ask(json!({"type": "tool:list"})).await;
    assert!(!tools.to_string().contains("bash_output"), "{tools}");
}

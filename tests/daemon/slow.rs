//! A client that reads slowly, or not at all, costs bounded memory and holds up nobody.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Exchanges that flood the client that never reads, and the bytes of each.
const FLOODS: usize = 5;
const FLOOD: usize = 10_000_000;

/// What the daemon may grow by, in bytes. It remembers the answers themselves, which are `FLOODS * FLOOD`, and each is there
/// once more until the store has written it; the rest is for what a session keeps (8 MiB), for an answer that is there
/// twice while it ends, and for the allocator. Seen: 127 MB; without a store 79 MB, and 121 MB with `session.buffer_bytes`
/// of 1 GiB, which is as good as no bound.
#[cfg(target_os = "linux")]
const MAY_GROW: usize = 2 * FLOODS * FLOOD + 50_000_000;

#[cfg(target_os = "linux")]
fn resident(daemon: &Daemon) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid)).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_never_reads_costs_bounded_memory_and_holds_up_nobody() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut deaf = Client::connect_narrow(&daemon).await;
    let before = resident(&daemon);
    let piece = json!({ "content": "x".repeat(20_000) });
    let flood = vec![piece; FLOOD / 20_000];
    let mut pauses = Vec::new();
    for number in 0..FLOODS {
        let (turn, pause) = Turn::paused(&flood, &[], "stop");
        provider.then(turn);
        pauses.push(pause);
        let send =
            json!({"type": "chat:send", "conversationId": format!("c{number}"), "content": "go"});
        deaf.send(send).await;
    }
    let mut other = daemon.connect().await;
    deaf.unread(async {
        for pause in &mut pauses {
            pause.reached().await;
        }
        // All of it has come, nothing of it was read, and others are served as ever.
        for number in 0..20 {
            provider.then(Turn::text(&number.to_string()));
            other.say("go").await;
            other.until("chat:stream-end").await;
        }
    })
    .await;
    let expected: String = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(other.text_said(), expected);
    other.check_numbers();
    for pause in pauses {
        pause.go_on();
    }
    // The deaf one still can speak: it is not its conversations that are held up.
    deaf.send(json!({"type": "chat:close", "conversationId": "c0"}))
        .await;
    let gauge = |text: &str| -> bool { text.contains("\noutrigger_exchanges_running 0\n") };
    deaf.unread(eventually("the end of all exchanges", async || {
        gauge(&crate::telemetry::get(&daemon, "/metrics", &daemon.token).await)
    }))
    .await;
    let grown = resident(&daemon) - before;
    println!("grown by {grown} bytes at most, from {before}");
    assert!(grown < MAY_GROW, "grown by {grown} bytes");
}

/// Bytes of a call's output, whole lines and far more than a session keeps.
const OUTPUT: u64 = 11 * 500_000;

#[tokio::test]
async fn one_that_fell_behind_gets_the_gap_and_goes_on() {
    let provider = Provider::start().await;
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "session": {"buffer_bytes": "64KiB"},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut slow = Client::connect_narrow(&daemon).await;
    // Far more than the buffers of the system take, and then a call that waits for the client.
    let command = format!(
        "yes 0123456789 | head -c {OUTPUT}; touch written; while [ ! -e go ]; do sleep 0.01; done"
    );
    provider
        .then(Turn::call("bash", &json!({ "command": command })))
        .then(Turn::text("done"));
    slow.say("go").await;
    let written = daemon.project().join("written");
    slow.unread(eventually("the end of the output", async || {
        written.exists()
    }))
    .await;
    // It wakes up now; what it has missed by then depends on the machine, that it gets a gap does not.
    let gap = loop {
        let frame = slow.next().await;
        if frame["type"] == "session:error" {
            break frame;
        }
    };
    assert_eq!(gap["payload"]["code"], "replay_gap");
    let history = slow.next().await;
    assert_eq!(history["type"], "chat:history-result");
    // All of the output has come before the call goes on: it makes no second gap, with the answer's text in it.
    let last = json!({"type": "tool:output", "toolId": "t1", "offset": OUTPUT - 10, "limit": 10});
    eventually("the last of the output", async || {
        let range = slow.ask(last.clone()).await;
        range["payload"]["text"].as_str().map(str::len) == Some(10)
    })
    .await;
    daemon.file("go", "");
    let end = slow.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(slow.text_said(), "done");
    // Numbers go on over the gap: the resync begins with the next of those that were given.
    let numbers: Vec<u64> = slow
        .seen
        .iter()
        .filter_map(|frame| frame["seq"].as_u64())
        .collect();
    assert!(numbers.is_sorted() && numbers.windows(2).any(|pair| pair[1] > pair[0] + 1));
    let state: Value = slow.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["conversations"][0]["state"], "idle");
}

//! The whole output of a call, by ranges, also what was cut for the model.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// Runs one command to its end and returns its call's id.
async fn run(client: &mut Client, provider: &Provider, command: &str) -> String {
    provider
        .then(Turn::call("bash", &json!({ "command": command })))
        .then(Turn::text("done"));
    client.say("go").await;
    let result = client.until("chat:tool-result").await;
    client.until("chat:stream-end").await;
    result["payload"]["toolId"].as_str().unwrap().to_owned()
}

async fn range(client: &mut Client, id: &str, offset: u64, limit: u64) -> Value {
    let frame = json!({"type": "tool:output", "toolId": id, "offset": offset, "limit": limit});
    client.ask(frame).await["payload"].clone()
}

async fn autonomous(provider: &Provider) -> Daemon {
    let more = json!({
        "chat": {"trust_level": "autonomous"},
        "tools": {"output_cap": "1KiB"},
    });
    Daemon::with(provider, more).await
}

#[tokio::test]
async fn what_was_cut_for_the_model_is_there_to_the_last_byte() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let id = run(&mut client, &provider, "seq 1 200000; echo oh >&2").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["metadata"]["truncated"], true);
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let (mut at, mut stdout, mut stderr) = (0, String::new(), String::new());
    loop {
        // More than is given at once: the answer says where to go on.
        let range = range(&mut client, &id, at, 1 << 40).await;
        assert_eq!(range["offset"], at);
        assert_eq!(range["totalBytes"], expected.len() + 3);
        let text = range["text"].as_str().unwrap();
        match range["stream"].as_str().unwrap() {
            "stdout" => stdout.push_str(text),
            _ => stderr.push_str(text),
        }
        match range["nextOffset"].as_u64() {
            Some(next) => at = next,
            None => break,
        }
    }
    assert!(stdout == expected, "{} bytes", stdout.len());
    assert_eq!(stderr, "oh\n");
    // Past the end there is nothing, and that is no error.
    let past = range(&mut client, &id, 1 << 50, 10).await;
    assert_eq!(past["text"], "");
    assert!(past.get("nextOffset").is_none());
}

#[tokio::test]
async fn an_output_is_read_while_its_command_runs() {
    let provider = Provider::start().await;
    let daemon = autonomous(&provider).await;
    let mut client = daemon.connect().await;
    let wait = "while [ ! -e go ]; do sleep 0.01; done";
    provider
        .then(Turn::call(
            "bash",
            &json!({ "command": format!("echo one; {wait}; echo two") }),
        ))
        .then(Turn::text("done"));
    client.say("go").await;
    client.until("chat:tool-delta").await;
    let record = client
        .ask(json!({"type": "tool:status", "toolId": "t1"}))
        .await;
    assert_eq!(record["payload"]["status"], "running", "{record}");
    assert_eq!(record["payload"]["stdoutBytes"], 4, "{record}");
    let listed = client.ask(json!({"type": "tool:history"})).await;
    assert_eq!(
        listed["payload"]["executions"][0]["stdoutBytes"], 4,
        "{listed}"
    );
    let first = range(&mut client, "t1", 0, 100).await;
    assert_eq!(
        (&first["text"], &first["nextOffset"]),
        (&json!("one\n"), &json!(4))
    );
    let nothing = range(&mut client, "t1", 4, 100).await;
    assert_eq!(
        (&nothing["text"], &nothing["nextOffset"]),
        (&json!(""), &json!(4))
    );
    daemon.file("go", "");
    client.until("chat:stream-end").await;
    let rest = range(&mut client, "t1", 4, 100).await;
    assert_eq!(rest["text"], "two\n");
    assert!(rest.get("nextOffset").is_none());
}

#[tokio::test]
async fn what_is_not_there_is_said_in_types() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_read", &json!({"path": "a.txt"})))
        .then(Turn::call("nothing", &json!({})))
        .then(Turn::text("done"));
    let daemon = autonomous(&provider).await;
    daemon.file("a.txt", "content");
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    // Of a tool that writes nothing its result; of a call that never ran nothing at all.
    let read = range(&mut client, "t1", 0, 100).await;
    assert!(read["text"].as_str().unwrap().contains("content"), "{read}");
    assert_eq!(range(&mut client, "t2", 0, 100).await["totalBytes"], 0);
    assert_eq!(
        range(&mut client, "t99", 0, 100).await["code"],
        "tool_not_found"
    );
    assert_eq!(
        range(&mut client, "t1", 0, 0).await["code"],
        "invalid_payload"
    );
    for (field, value) in [("since", "yesterday"), ("cursor", "x")] {
        let answer = client
            .ask(json!({"type": "tool:history", field: value}))
            .await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
        assert!(
            answer["payload"]["message"]
                .as_str()
                .unwrap()
                .contains(field)
        );
    }
}

/// What a program of the model's can do to find the outputs of others: look at every open file it may.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_command_reaches_what_is_kept_in_any_mode() {
    for sandbox in ["auto", "off"] {
        let provider = Provider::start().await;
        let more = json!({
            "chat": {"trust_level": "autonomous"},
            "tools": {"bash": {"sandbox": sandbox}},
        });
        let daemon = Daemon::with(&provider, more).await;
        let mut client = daemon.connect().await;
        run(&mut client, &provider, "echo a-word-that-is-kept").await;
        let search = "ls -l /proc/self/fd/ /proc/$PPID/fd/ 2>/dev/null | grep deleted; echo end";
        let id = run(&mut client, &provider, search).await;
        assert_eq!(
            range(&mut client, &id, 0, 9_999).await["text"],
            "end\n",
            "{sandbox}"
        );
    }
}

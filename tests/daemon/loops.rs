//! Loops of several turns with thinking and parallel calls: each later request as a golden file.
//!
//! The files are in `fixtures/requests`, one for each sort of server: what is asked after two parallel
//! calls, after a call that failed, and in the next exchange. `OUTRIGGER_UPDATE=1` writes them anew.

mod dialects;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::Block;
use crate::support::{Daemon, Provider};
use dialects::Dialect;

/// What the model says, turn by turn: two parallel calls, one that fails, an answer, another one.
fn turns() -> [Vec<Block>; 4] {
    let read = |id: &str, path: &str| Block::call(id, "file_read", json!({"path": path}));
    [
        vec![
            Block::thinking("Both files, ünderstood.", "c2lnbmF0dXJlIDE="),
            Block::text("Let me look."),
            read("call_b", "b.txt"),
            read("call_a", "a.txt"),
        ],
        vec![
            Block::thinking("One is missing.", "c2lnbmF0dXJlIDI="),
            read("call_c", "missing.txt"),
        ],
        vec![
            Block::thinking("Enough.", "c2lnbmF0dXJlIDM="),
            Block::text("They say A and B."),
        ],
        vec![Block::text("You are welcome.")],
    ]
}

#[tokio::test]
async fn later_requests_are_the_golden_ones() {
    let server = Server::start().await;
    let instances: serde_json::Map<String, Value> = Dialect::all()
        .iter()
        .map(|dialect| {
            let answers = turns()
                .iter()
                .map(|blocks| Answer::stream(dialect.wire).frames(&dialect.frames(blocks)))
                .collect();
            let url = server.case(dialect.name, dialect.wire, answers);
            (dialect.name.to_owned(), dialect.settings(&url))
        })
        .collect();
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": instances})).await;
    daemon.file("a.txt", "A\n");
    daemon.file("b.txt", "B\n");
    let mut wrong = Vec::new();
    for dialect in Dialect::all() {
        let mut client = daemon.connect().await;
        for content in ["What do they say?", "Thank you."] {
            client
                .send(
                    json!({"type": "chat:send", "content": content, "conversationId": dialect.name,
                    "provider": dialect.name, "model": dialect.model, "systemPrompt": "Be short.",
                    "toolPermissions": {"file_read": {"allowed": true}},
                    "maxTokens": 4096, "thinking": {"enabled": true, "effort": "high"}}),
                )
                .await;
            let end = client.until("chat:stream-end").await;
            assert_eq!(
                end["payload"]["stopReason"],
                "end_turn",
                "{} {:?}",
                dialect.name,
                client.all("chat:error")
            );
        }
        let requests = server.requests(dialect.name);
        assert_eq!(requests.len(), 4, "{}", dialect.name);
        wrong.extend(compare(&dialect, &requests));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares the later requests of a conversation with the golden ones, and all with the first.
fn compare(dialect: &Dialect, requests: &[Value]) -> Option<String> {
    for request in requests {
        for part in ["tools", "system", "instructions", "prompt_cache_key"] {
            assert_eq!(
                request.get(part),
                requests[0].get(part),
                "{} {part} changed",
                dialect.name
            );
        }
    }
    let golden = json!({
        "after two parallel calls": brief(&requests[1]),
        "after a call that failed": brief(&requests[2]),
        "in the next exchange": brief(&requests[3]),
    });
    let text = serde_json::to_string_pretty(&golden).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/requests")
        .join(format!("{}.json", dialect.name));
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    (known != text).then(|| format!("{} is not\n{text}", file.display()))
}

/// A request without what other tests look after: the tools' schemas, and the session's key.
fn brief(request: &Value) -> Value {
    let mut brief = request.clone();
    for tool in brief["tools"].as_array_mut().into_iter().flatten() {
        let fields = tool.get("function").unwrap_or(tool);
        let mut short = json!({"name": fields["name"]});
        if let Some(mark) = tool.get("cache_control") {
            short["cache_control"] = mark.clone();
        }
        *tool = short;
    }
    if brief.get("prompt_cache_key").is_some() {
        brief["prompt_cache_key"] = json!("KEY");
    }
    brief
}

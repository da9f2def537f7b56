//! Documents of the user: read once when they are sent, remembered with their text, refused where they cannot be read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

const FILE: &[u8] = include_bytes!("../../fixtures/documents/two-pages.pdf");
const TEXT: &str = "[page 1]\nThe quick brown fox\n\n[page 2]\njumps over the lazy dog";

fn pdf(bytes: &[u8]) -> Value {
    json!({"type": "document", "mediaType": "application/pdf", "name": "fox.pdf", "data": STANDARD.encode(bytes)})
}

fn send(parts: &[Value]) -> Value {
    let words = json!({"type": "text", "text": "what is this?"});
    let content: Vec<&Value> = std::iter::once(&words).chain(parts).collect();
    json!({"type": "chat:send", "content": content})
}

async fn remembered(client: &mut Client) -> Value {
    let answer = client.ask(json!({"type": "chat:history"})).await;
    answer["payload"]["messages"][0]["content"].clone()
}

#[tokio::test]
async fn a_pdf_reaches_a_model_as_text_and_is_not_read_again_after_a_restart() {
    let provider = Provider::start().await;
    provider.then(Turn::text("a fox"));
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.send(send(&[pdf(FILE)])).await;
    let last = first.until("chat:stream-end").await["seq"].clone();
    let said = provider.requests()[0]["messages"].clone();
    let text = said.as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap();
    let expected = format!("[document \"fox.pdf\", application/pdf]\n{TEXT}\n[end of \"fox.pdf\"]");
    assert!(text.ends_with(&expected), "{text}");
    let part = json!({"type": "document", "mediaType": "application/pdf", "name": "fox.pdf",
        "data": STANDARD.encode(FILE), "text": TEXT, "pages": 2});
    assert_eq!(remembered(&mut first).await[1], part);

    let daemon = daemon.after_kill().await;
    provider.then(Turn::text("a fox still"));
    let mut second = Client::connect(&daemon, &format!("?session={session}&after={last}")).await;
    assert_eq!(remembered(&mut second).await[1], part);
    second.say("sure?").await;
    second.until("chat:stream-end").await;
    // What the model was told is as it was, so that the provider's cache holds.
    let before = said.as_array().unwrap();
    let again = provider.requests()[1]["messages"].clone();
    assert_eq!(again.as_array().unwrap()[..before.len()], before[..]);
}

#[tokio::test]
async fn each_provider_gets_a_document_in_its_own_form() {
    let server = Server::start().await;
    let says = |text: &str| {
        let frames = Wire::Anthropic.frames(&[Block::text(text)]);
        Answer::stream(Wire::Anthropic).frames(&frames)
    };
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "messages.0.content.1.document.source.base64.data: A maximum of 100 PDF pages may be provided."}});
    let answers = vec![
        says("a fox"),
        Answer::json(400, &refusal),
        says("a fox still"),
    ];
    let mut files = Wire::Anthropic.settings(&server.case("files", Wire::Anthropic, answers));
    files["api_key"] = json!("key-of-nobody");
    let provider = Provider::start().await;
    provider.then(Turn::text("a fox, as text"));
    let daemon = Daemon::with(&provider, json!({"providers": {"files": files}})).await;
    let mut client = daemon.connect().await;
    let table =
        json!({"type": "document", "mediaType": "text/csv", "name": "a.csv", "text": "x,y"});
    let there = |mut send: Value| {
        send["provider"] = json!("files");
        send["model"] = json!("claude-opus-5-5");
        send
    };
    for send in [
        there(send(&[pdf(FILE), table])),
        json!({"type": "chat:send", "content": "here too?"}),
        there(json!({"type": "chat:send", "content": "and now?"})),
    ] {
        client.send(send).await;
        let end = client.until("chat:stream-end").await;
        assert_eq!(end["payload"]["stopReason"], "end_turn", "{end}");
    }
    let asked = server.requests("files");
    let content = |request: &Value| {
        request["messages"][0]["content"]
            .as_array()
            .unwrap()
            .clone()
    };
    let first = content(&asked[0]);
    assert_eq!(first[1]["type"], "document");
    assert_eq!(first[1]["source"]["data"], STANDARD.encode(FILE));
    assert_eq!(
        first[2]["source"],
        json!({"type": "text", "media_type": "text/plain", "data": "x,y"})
    );
    // Another provider, in the middle: the text that was read when it was sent.
    let other = provider.requests()[0]["messages"].to_string();
    assert!(
        other.contains("The quick brown fox") && !other.contains("JVBER"),
        "{other}"
    );
    // What the vendor refuses goes as text.
    assert_eq!(content(&asked[1])[1]["type"], "document");
    let text = content(&asked[2])[1]["text"].to_string();
    assert!(text.contains("The quick brown fox"), "{text}");
}

#[tokio::test]
async fn a_document_that_cannot_be_read_is_refused_and_nothing_is_lost() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let large = json!({"type": "document", "mediaType": "text/plain", "name": "a.txt", "text": "x".repeat(1_000_001)});
    let nothing = json!({"type": "document", "mediaType": "application/pdf"});
    let other = json!({"type": "document", "mediaType": "application/zip", "name": "a.zip", "data": "UEs="});
    for (part, expected) in [
        (pdf(&FILE[..60]), "the document \"fox.pdf\" is damaged"),
        (pdf(b"PK"), "the document \"fox.pdf\" is no PDF"),
        (large, "the document \"a.txt\" has about 1000001 bytes"),
        (nothing, "the document \"document\" has neither"),
        (
            other,
            "the document \"a.zip\" is of type \"application/zip\"",
        ),
    ] {
        let answer = client.ask(send(&[part])).await;
        assert_eq!(answer["payload"]["code"], "invalid_payload", "{answer}");
        let message = answer["payload"]["message"].as_str().unwrap();
        assert!(
            message.starts_with("field `content[1]`") && message.contains(expected),
            "{message}"
        );
    }
    assert!(provider.requests().is_empty());
    provider.then(Turn::text("hello"));
    client.say("hi").await;
    client.until("chat:stream-end").await;
    assert_eq!(remembered(&mut client).await, "hi");
}

#[tokio::test]
async fn a_send_that_waits_keeps_the_text_of_its_document() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "one"})], &[], "stop");
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("wait").await;
    pause.reached().await;
    let mut queued = send(&[pdf(FILE)]);
    queued["id"] = json!("q1");
    queued["whenBusy"] = json!("queue");
    first.send(queued.clone()).await;
    first.until("chat:send-result").await;
    let daemon = daemon.after_kill().await;
    let mut second = Client::connect(&daemon, &format!("?session={session}&after=0")).await;
    second.until("chat:queued").await;
    // It is the same send, though the daemon has added to it.
    second.send(queued).await;
    let again = second.until("chat:send-result").await;
    assert_eq!(again["payload"]["duplicate"], true, "{again}");
    provider.then(Turn::text("now")).then(Turn::text("a fox"));
    second.say("go on").await;
    second.until("chat:stream-end").await;
    second.until("chat:stream-end").await;
    let asked = provider.requests().last().unwrap()["messages"].to_string();
    assert!(asked.contains("The quick brown fox"), "{asked}");
}

#[tokio::test]
async fn the_model_reads_pages_of_a_pdf_of_the_project() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call(
            "file_read",
            &json!({"path": "fox.pdf", "offset": 2}),
        ))
        .then(Turn::text("a dog"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("fox.pdf", FILE);
    let mut client = daemon.connect().await;
    client.say("look").await;
    client.until("chat:stream-end").await;
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(
        result["result"],
        "[page 2]\njumps over the lazy dog\n[pages 2 to 2 of 2]"
    );
    assert!(result.get("content").is_none(), "{result}");
}

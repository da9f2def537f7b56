//! Answers as other servers write them than those that were recorded: odd places, missing fields,
//! nulls, ids and indexes left out or used twice. Each stands here as it comes over the wire, with what
//! it has to come to, and is read whole and byte by byte.

mod anthropic;
mod chat;
mod ollama;
mod responses;
mod unfinished;

use bytes::Bytes;
use futures::stream;
use outrigger::provider::CallInput;
use outrigger::provider::replay::Wire;

use crate::outcome::Outcome;

/// What a variant is about, its body, and what it comes to; see [`summary`].
type Variant = (&'static str, String, &'static str);

#[tokio::test]
async fn anthropic_messages() {
    check(Wire::Anthropic, "text/event-stream", anthropic::variants()).await;
}

#[tokio::test]
async fn openai_chat() {
    check(Wire::Chat, "text/event-stream", chat::variants()).await;
}

#[tokio::test]
async fn openai_chat_calls() {
    check(Wire::Chat, "text/event-stream", chat::calls()).await;
}

#[tokio::test]
async fn openai_responses() {
    check(Wire::Responses, "text/event-stream", responses::variants()).await;
}

#[tokio::test]
async fn ollama_chat() {
    check(Wire::Ollama, "application/x-ndjson", ollama::variants()).await;
}

#[tokio::test]
async fn none_that_is_unfinished_passes_for_an_answer() {
    for (wire, variants) in [
        (Wire::Anthropic, unfinished::anthropic()),
        (Wire::Chat, unfinished::chat()),
        (Wire::Responses, unfinished::responses()),
    ] {
        check(wire, "text/event-stream", variants).await;
    }
    let ollama = unfinished::ollama();
    check(Wire::Ollama, "application/x-ndjson", ollama).await;
}

async fn check(wire: Wire, content_type: &str, variants: Vec<Variant>) {
    let mut wrong = Vec::new();
    for (name, body, expected) in variants {
        for piece in [body.len().max(1), 1] {
            let reads: Vec<_> = body
                .as_bytes()
                .chunks(piece)
                .map(|piece| Ok(Bytes::copy_from_slice(piece)))
                .collect();
            let chunks = wire.play(stream::iter(reads), content_type, "p", "m");
            let outcome = Outcome::read(chunks).await;
            let seen = summary(&outcome);
            if seen != expected || !outcome.disorder.is_empty() {
                wrong.push(format!(
                    "{name}\n  seen     {seen} {:?}\n  expected {expected}",
                    outcome.disorder
                ));
                break;
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Writes an outcome as words: `thought "…", "text", call ID NAME {…}, ToolUse, in 5 out 6 cached 3`, or
/// `error Overloaded: message` at the end.
fn summary(outcome: &Outcome) -> String {
    let mut words = Vec::new();
    if !outcome.thinking.is_empty() {
        words.push(format!("thought {:?}", outcome.thinking));
    }
    if !outcome.text.is_empty() {
        words.push(format!("{:?}", outcome.text));
    }
    for call in &outcome.calls {
        let id = call.id.as_deref().unwrap_or("-");
        let input = match &call.input {
            Some(CallInput::Object(input)) => serde_json::to_string(input).unwrap(),
            Some(CallInput::Invalid { .. }) => "invalid".to_owned(),
            Some(CallInput::Truncated { .. }) => "cut".to_owned(),
            None => "open".to_owned(),
        };
        words.push(format!("call {id} {} {input}", call.name));
    }
    if let Some(end) = &outcome.end {
        words.push(format!("{:?}", end.stop));
        let figures = [
            ("in", end.usage.input),
            ("out", end.usage.output),
            ("cached", end.usage.cache_read),
            ("written", end.usage.cache_write),
            ("reasoning", end.usage.reasoning),
        ];
        let figures: Vec<String> = figures
            .into_iter()
            .filter_map(|(name, figure)| Some(format!("{name} {}", figure?)))
            .collect();
        if !figures.is_empty() {
            words.push(figures.join(" "));
        }
    }
    if let Some(error) = &outcome.error {
        words.push(format!("error {:?}: {}", error.kind, error.message));
    }
    words.join(", ")
}

/// Events without names, one for each piece of JSON.
fn sse(frames: &[&str]) -> String {
    frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect()
}

/// Lines of JSON.
fn lines(frames: &[&str]) -> String {
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}

//! Every recording of this API, frame by frame, against the outcome noted beside it.

use std::fs;
use std::path::Path;

use super::*;

const RECORDINGS: &str = "/work/shared/recordings";

struct Outcome {
    chunks: Vec<Chunk>,
    error: Option<ProviderError>,
}

impl Outcome {
    fn joined(&self, pick: impl Fn(&Chunk) -> Option<&str>) -> String {
        self.chunks.iter().filter_map(pick).collect()
    }

    fn end(&self) -> Option<&End> {
        self.chunks.iter().find_map(|chunk| match chunk {
            Chunk::End(end) => Some(end),
            _ => None,
        })
    }

    fn items(&self) -> Vec<Value> {
        self.end()
            .and_then(|end| end.native.as_ref())
            .and_then(|native| native.items.as_array().cloned())
            .unwrap_or_default()
    }
}

fn play(body: &str, streamed: bool) -> Outcome {
    let mut decoder = decoder();
    let mut chunks = Vec::new();
    let error = if streamed {
        frames(body)
            .iter()
            .find_map(|(event, data)| decoder.frame(event, data, &mut chunks).err())
            .or_else(|| decoder.finish(&mut chunks).err())
    } else {
        decoder.whole(body, &mut chunks).err()
    };
    Outcome { chunks, error }
}

fn frames(body: &str) -> Vec<(String, String)> {
    let body = body.replace("\r\n", "\n");
    let field = |frame: &str, name: &str| {
        let lines = frame.lines().filter_map(|line| line.strip_prefix(name));
        lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    body.split("\n\n")
        .map(|frame| (field(frame, "event:"), field(frame, "data:")))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn check_text(seen: &str, expected: &Value, what: &str) {
    let digest = expected["sha256"].as_str().map(str::to_owned);
    let seen = (!seen.is_empty()).then(|| hex(seen.as_bytes()));
    assert_eq!(seen, digest, "{what}");
}

fn check_calls(outcome: &Outcome, expected: &Value, file: &str) {
    let mut calls = Vec::new();
    for chunk in &outcome.chunks {
        match chunk {
            Chunk::ToolCallStart {
                index,
                provider_call_id,
                name,
            } => {
                assert_eq!(*index, calls.len());
                calls.push((json!(provider_call_id), json!(name), String::new(), None));
            }
            Chunk::ToolCallDelta { index, fragment } => calls[*index].2.push_str(fragment),
            Chunk::ToolCallEnd { index, input, .. } => calls[*index].3 = Some(input.clone()),
            _ => {}
        }
    }
    let expected = expected["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), expected.len(), "{file}");
    for ((id, name, raw, input), expected) in calls.into_iter().zip(expected) {
        assert_eq!((&id, &name), (&expected["id"], &expected["name"]), "{file}");
        match input.expect("every call ends") {
            CallInput::Object(input) => {
                assert_eq!(expected["valid"], true, "{file}");
                assert_eq!(Value::Object(input), expected["arguments"], "{file}");
            }
            CallInput::Invalid { .. } | CallInput::Truncated { .. } => {
                assert_eq!(expected["valid"], false, "{file}");
                assert_eq!(json!(raw), expected["arguments_raw"], "{file}");
            }
        }
    }
}

fn check_items(outcome: &Outcome, expected: &Value, file: &str) {
    let kind = |item: &Value| item["type"].as_str().unwrap().to_owned();
    let items = outcome.items();
    let server: Vec<_> = items
        .iter()
        .filter(|item| {
            let kind = kind(item);
            matches!(&*kind, "server_tool_use" | "mcp_tool_use") || kind.ends_with("_tool_result")
        })
        .map(|item| json!({"type": item["type"], "name": item.get("name")}))
        .collect();
    assert_eq!(json!(server), expected["server_tools"], "{file}");
    let thinking: Vec<_> = items
        .iter()
        .filter_map(|item| {
            let field = match &*kind(item) {
                "thinking" => "signature",
                "redacted_thinking" => "data",
                _ => return None,
            };
            let mut secret = hex(item[field].as_str().unwrap().as_bytes());
            secret.truncate(16);
            Some(json!({"type": item["type"], field: secret}))
        })
        .collect();
    assert_eq!(json!(thinking), expected["thinking_blocks"], "{file}");
    let citations: usize = items
        .iter()
        .filter_map(|item| item["citations"].as_array().map(Vec::len))
        .sum();
    assert_eq!(json!(citations), expected["citations"], "{file}");
}

fn check_end(outcome: &Outcome, expected: &Value, file: &str) {
    let Some(end) = outcome.end() else {
        assert_eq!(expected["stop"]["normalised"], "error", "{file}");
        let error = outcome.error.as_ref().expect("no end means an error");
        if expected["error"]["category"] == "incomplete_stream" {
            assert_eq!(error.kind, ErrorKind::IncompleteStream, "{file}");
        } else {
            assert_eq!(json!(error.error_type), expected["error"]["type"], "{file}");
            assert_eq!(json!(error.message), expected["error"]["message"], "{file}");
        }
        return;
    };
    assert_eq!(outcome.error, None, "{file}");
    let stop = match end.stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::Pause => "pause_turn",
    };
    assert_eq!(
        expected["stop"],
        json!({"raw": end.raw_stop, "normalised": stop}),
        "{file}"
    );
    let usage = &expected["usage"];
    let number = |name: &str| usage[name].as_u64();
    assert_eq!(end.usage.input, number("input_total"), "{file}");
    assert_eq!(end.usage.output, number("output"), "{file}");
    assert_eq!(end.usage.cache_read, number("cache_read"), "{file}");
    assert_eq!(end.usage.cache_write, number("cache_write"), "{file}");
    assert_eq!(end.usage.reasoning, number("reasoning"), "{file}");
}

#[test]
fn every_recording_comes_to_what_is_expected() {
    let manifest = fs::read_to_string(Path::new(RECORDINGS).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let mut played = 0;
    for entry in manifest["recordings"].as_array().unwrap() {
        if entry["api"] != WIRE {
            continue;
        }
        let file = entry["file"].as_str().unwrap();
        let body = fs::read_to_string(Path::new(RECORDINGS).join(file)).unwrap();
        let outcome = play(&body, file.ends_with(".sse"));
        let expected = &entry["expect"];
        let pick = |chunk: &Chunk| match chunk {
            Chunk::Text(text) => Some(text.clone()),
            _ => None,
        };
        let text: String = outcome.chunks.iter().filter_map(pick).collect();
        check_text(&text, &expected["text"], file);
        let thinking = outcome.joined(|chunk| match chunk {
            Chunk::Thinking(text) => Some(text),
            _ => None,
        });
        check_text(&thinking, &expected["thinking"], file);
        check_calls(&outcome, expected, file);
        check_items(&outcome, expected, file);
        check_end(&outcome, expected, file);
        played += 1;
    }
    assert_eq!(played, 47);
}

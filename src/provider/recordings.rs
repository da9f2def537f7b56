//! Checks a decoder against the recordings of its wire format.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::decode::Decoder;
use super::{CallInput, Chunk, End, ProviderError, Stop};

const DIRECTORY: &str = "/work/shared/recordings";

/// Runs every recording of `api` through a decoder and returns what differs from its `expect`.
pub(super) fn differences(api: &str, decoder: impl Fn() -> Box<dyn Decoder>) -> Vec<String> {
    let manifest = fs::read_to_string(format!("{DIRECTORY}/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let mut seen = 0;
    let mut differences = Vec::new();
    for recording in manifest["recordings"].as_array().unwrap() {
        let file = recording["file"].as_str().unwrap();
        if recording["api"] != api || recording["status"] != 200 {
            continue;
        }
        seen += 1;
        let body = fs::read(format!("{DIRECTORY}/{file}")).unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        let outcome = play(decoder().as_mut(), &body, file.ends_with(".json"));
        let got = normalised(&outcome);
        for (key, expected) in wanted(&recording["expect"]).as_object().unwrap() {
            if got[key] != *expected {
                differences.push(format!("{file}: {key}: {expected} != {}", got[key]));
            }
        }
    }
    assert!(seen > 30, "only {seen} recordings of {api}");
    differences
}

type Outcome = (Vec<Chunk>, Option<ProviderError>);

fn play(decoder: &mut dyn Decoder, body: &str, whole: bool) -> Outcome {
    let mut chunks = Vec::new();
    if whole {
        let error = decoder.whole(body, &mut chunks).err();
        return (chunks, error);
    }
    let (mut event, mut data) = (String::new(), String::new());
    for line in format!("{body}\n\n").lines() {
        if let Some(name) = line.strip_prefix("event:") {
            event = name.trim().to_owned();
        } else if let Some(more) = line.strip_prefix("data:") {
            data.push_str(more);
        } else if let Some(more) = line.strip_prefix("error:") {
            event = "error".to_owned();
            data.push_str(more);
        } else if line.is_empty() && !data.is_empty() {
            if let Err(error) = decoder.frame(&event, &data, &mut chunks) {
                return (chunks, Some(error));
            }
            event.clear();
            data.clear();
        }
    }
    let error = decoder.finish(&mut chunks).err();
    (chunks, error)
}

fn digest(text: &str) -> Value {
    let hex = |byte: &u8| format!("{byte:02x}");
    let sum: String = Sha256::digest(text).iter().map(hex).collect();
    json!([sum, text.len()])
}

fn wanted(expect: &Value) -> Value {
    let joined = |keys: &[&str]| -> Value {
        let parts: Vec<_> = keys.iter().filter(|key| !expect[**key].is_null()).collect();
        match parts.as_slice() {
            [] => digest(""),
            [key] => json!([expect[**key]["sha256"], expect[**key]["bytes"]]),
            _ => panic!("text and refusal in one recording"),
        }
    };
    let calls: Vec<_> = expect["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let valid = call["valid"] == true;
            let arguments = if valid {
                &call["arguments"]
            } else {
                &call["arguments_raw"]
            };
            json!([call["id"], call["name"], arguments, valid])
        })
        .collect();
    let usage = &expect["usage"];
    json!({
        "text": joined(&["text", "refusal"]),
        "thinking": joined(&["thinking"]),
        "model": expect["model"],
        "calls": calls,
        "stop": expect["stop"]["normalised"],
        "raw": if expect["error"].is_null() { expect["stop"]["raw"].clone() } else { Value::Null },
        "usage": if expect["error"].is_null() {
            json!([usage["input"], usage["output"], usage["cache_read"], usage["reasoning"]])
        } else { Value::Null },
        "error": expect["error"]["message"],
        "server_tools": if expect["error"].is_null() { expect["server_tools"].clone() } else { json!([]) },
        "thinking_blocks": if expect["error"].is_null() {expect["thinking_blocks"].clone()} else {json!([])},
        "citations": expect["citations"],
    })
}

fn normalised((chunks, error): &Outcome) -> Value {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut ended = Vec::new();
    let mut model = Value::Null;
    let mut end: Option<&End> = None;
    assert!(matches!(chunks.first(), Some(Chunk::Start { .. }) | None));
    for chunk in chunks {
        assert!(end.is_none(), "something after the end");
        match chunk {
            Chunk::Start { model: named } => model = json!(named),
            Chunk::Text(more) => text.push_str(more),
            Chunk::Thinking(more) => thinking.push_str(more),
            Chunk::ToolCallStart { index, name, .. } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Chunk::ToolCallDelta { index, fragment } => calls[*index].1.push_str(fragment),
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => {
                let (name, fragments) = &calls[*index];
                let (input, valid) = match input {
                    CallInput::Object(object) => {
                        let streamed = if fragments.is_empty() {
                            "{}"
                        } else {
                            fragments
                        };
                        let streamed: Value = serde_json::from_str(streamed).unwrap();
                        assert_eq!(&streamed, &Value::Object(object.clone()));
                        (Value::Object(object.clone()), true)
                    }
                    CallInput::Invalid { raw, .. } | CallInput::Truncated { raw } => {
                        assert_eq!(raw, fragments);
                        (json!(raw), false)
                    }
                };
                ended.push(json!([provider_call_id, name, input, valid]));
            }
            Chunk::Notice(_) => {}
            Chunk::End(it) => end = Some(it),
        }
    }
    assert_eq!(ended.len(), calls.len());
    assert_eq!(end.is_none(), error.is_some());
    let items = end
        .and_then(|end| end.native.as_ref())
        .map_or(&Value::Null, |native| &native.items);
    let stop = end.map_or("error", |end| match end.stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::Pause => "pause_turn",
    });
    let usage = end.map(|end| {
        let usage = end.usage;
        json!([usage.input, usage.output, usage.cache_read, usage.reasoning])
    });
    let ours = ["function_call", "custom_tool_call", "message", "reasoning"];
    let typed: Vec<&Value> = items
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item["type"].is_string())
        .collect();
    let server_tools: Vec<Value> = typed
        .iter()
        .filter(|item| !ours.contains(&item["type"].as_str().unwrap()))
        .map(|item| json!({"type": item["type"], "name": item.get("name")}))
        .collect();
    let blocks: Vec<Value> = typed
        .iter()
        .filter(|item| item["type"] == "reasoning")
        .map(|item| {
            let signature = item["encrypted_content"]
                .as_str()
                .map(|content| digest(content)[0].as_str().unwrap()[..16].to_owned());
            json!({"type": "reasoning", "signature": signature})
        })
        .collect();
    let citations: usize = typed
        .iter()
        .flat_map(|item| item["content"].as_array().into_iter().flatten())
        .map(|part| part["annotations"].as_array().map_or(0, Vec::len))
        .sum();
    json!({
        "text": digest(&text), "thinking": digest(&thinking), "model": model, "calls": ended,
        "stop": stop, "raw": end.map(|end| end.raw_stop.clone()), "usage": usage,
        "error": error.as_ref().filter(|error| error.kind != super::ErrorKind::IncompleteStream).map(|error| error.message.clone()),
        "server_tools": server_tools, "thinking_blocks": blocks, "citations": citations,
    })
}

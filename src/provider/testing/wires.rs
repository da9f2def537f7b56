//! What servers refuse whatever the model: the order of calls and results, in the bodies of all wires.

use std::collections::HashSet;

use serde_json::Value;

use super::{request, tools};
use crate::config::ProviderKind;
use crate::message::Message;
use crate::provider::quirks::{Quirks, vendor};
use crate::provider::{anthropic, chat, ollama, responses};

/// Fails where a server would refuse these messages, whichever of the wires has them.
pub(crate) fn accepted_by_all(messages: &[Message]) {
    let tools = tools();
    let request = request(messages, &tools);
    anthropic(&anthropic::testing::body(&request));
    chat(&ollama::testing::body(&request)["messages"], false);
    let config = super::config(ProviderKind::Chat, "openai", "https://api.openai.com/v1");
    let quirks = Quirks::of(vendor(&config), "gpt-5.6");
    let body = chat::request::body(&request, &quirks, "p", &mut Vec::new());
    chat(&body.fields["messages"], true);
    let body = responses::request::body(&request, &quirks, "p", &mut Vec::new());
    responses(&body.fields["input"]);
}

/// Fails where a result does not follow its call, in order; ids are there where `has_ids`.
fn chat(messages: &Value, has_ids: bool) {
    let mut open: Vec<Value> = Vec::new();
    for message in messages.as_array().unwrap() {
        if message["role"] == "tool" {
            assert!(!open.is_empty(), "a result without a call: {message}");
            let call = open.remove(0);
            assert!(!has_ids || call == message["tool_call_id"], "{message}");
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        let calls = message["tool_calls"].as_array();
        let said = message["content"].as_str();
        assert!(
            calls.is_some() || said != Some(""),
            "a message that says nothing: {message}"
        );
        open.extend(calls.into_iter().flatten().map(|call| call["id"].clone()));
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

/// Fails where a call has not exactly one output after it, before the user says something.
fn responses(input: &Value) {
    let mut open = HashSet::new();
    for item in input.as_array().unwrap() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => assert!(open.insert(id), "called twice: {item}"),
            Some("function_call_output") => assert!(open.remove(id), "no call: {item}"),
            _ if item["role"] == "user" => assert!(open.is_empty(), "no output: {open:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "no output: {open:?}");
}

/// Fails where the API would refuse a body whatever the model.
pub(in crate::provider) fn anthropic(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "user");
    let mut owed: Vec<Value> = Vec::new();
    let mut seen = HashSet::new();
    let mut markers = body.get("system").map_or(0, markers);
    for message in messages {
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty());
        markers += blocks
            .iter()
            .filter(|block| block.get("cache_control").is_some())
            .count();
        let results: Vec<_> = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| block["tool_use_id"].clone())
            .collect();
        let all = blocks
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .count();
        assert_eq!(results.len(), all, "results come first");
        assert_eq!(results, owed, "each call has its result, in order");
        owed.clear();
        for block in blocks {
            match block["type"].as_str().unwrap() {
                "text" => assert!(!block["text"].as_str().unwrap().trim().is_empty()),
                "tool_use" => {
                    assert!(block["input"].is_object());
                    assert!(seen.insert(block["id"].as_str().unwrap().to_owned()));
                    owed.push(block["id"].clone());
                }
                "thinking" | "redacted_thinking" => assert!(block.get("cache_control").is_none()),
                other => assert_ne!(other, "outrigger_prefix"),
            }
        }
    }
    assert_eq!(owed, Vec::<Value>::new());
    assert!(markers <= 4);
}

fn markers(blocks: &Value) -> usize {
    let blocks = blocks.as_array().unwrap().iter();
    blocks
        .filter(|block| block.get("cache_control").is_some())
        .count()
}

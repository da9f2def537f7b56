//! Where the prompt cache is to begin anew.
//!
//! The cache matches prefixes of tools, system and messages in this order. A breakpoint writes an
//! entry and reads the newest earlier one at most 20 blocks before it (`docs/providers.md`,
//! "Anthropic: prompt cache").

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::provider::json::string;
use crate::provider::request::{Body, raw};

/// Blocks that a breakpoint looks back for an earlier entry.
const LOOKBACK: usize = 20;

/// How far before the newest breakpoint the spare one stands in a long step.
const SPARE_DISTANCE: usize = 15;

/// Sets at most four breakpoints: behind the system prompt, on the newest two messages of the user,
/// and between these where a step has more blocks than the lookback.
///
/// Thinking and empty text never get one.
pub(super) fn mark(body: &mut Body) {
    let Body { fields, tools } = body;
    let system = fields.get_mut("system");
    let system = system.and_then(|system| system.as_array_mut()?.last_mut());
    match (system, tools.last_mut()) {
        (Some(system), _) => set(system),
        (None, Some(tool)) => mark_tool(tool),
        (None, None) => {}
    }
    let messages = fields.get_mut("messages").and_then(Value::as_array_mut);
    let mut blocks: Vec<(bool, &mut Value)> = Vec::new();
    // Of each message of the user the last block that can bear one; all of them by their place in the conversation.
    let mut lasts = Vec::new();
    for message in messages.into_iter().flatten() {
        let is_user = string(message, "role") == "user";
        let content = message.get_mut("content").and_then(Value::as_array_mut);
        let first = blocks.len();
        blocks.extend(
            content
                .into_iter()
                .flatten()
                .map(|it| (is_user && can_bear(it), it)),
        );
        let mut own = blocks.iter().skip(first);
        lasts.extend(
            own.rposition(|(bears, _)| *bears)
                .map(|place| first + place),
        );
    }
    let mut places: Vec<usize> = lasts.iter().rev().take(2).copied().collect();
    if let [last, before] = *places
        && last - before > LOOKBACK
    {
        let between = before + 1..last;
        let bears = |place: &usize| blocks.get(*place).is_some_and(|(bears, _)| *bears);
        let distance = |place: &usize| (last - place).abs_diff(SPARE_DISTANCE);
        places.extend(between.filter(bears).min_by_key(distance));
    }
    for place in places {
        if let Some((_, block)) = blocks.get_mut(place) {
            set(block);
        }
    }
}

fn can_bear(block: &Value) -> bool {
    match string(block, "type") {
        "image" | "document" | "tool_result" => true,
        "text" => !string(block, "text").trim().is_empty(),
        _ => false,
    }
}

fn mark_tool(tool: &mut Arc<RawValue>) {
    if let Ok(mut marked) = serde_json::from_str(tool.get()) {
        set(&mut marked);
        *tool = raw(&marked);
    }
}

fn set(block: &mut Value) {
    if let Some(block) = block.as_object_mut() {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    /// Writes messages as words: `u` and `a` begin one, each further letter is a block.
    fn body(system: bool, tools: bool, messages: &[&str]) -> Body {
        let mut body = Map::new();
        if system {
            body.insert("system".to_owned(), json!([{"type": "text", "text": "s"}]));
        }
        // Where the tools go.
        body.insert("tools".to_owned(), Value::Null);
        let marked: Vec<_> = messages
            .iter()
            .map(|word| {
                let (role, letters) = word.split_at(1);
                let role = if role == "u" { "user" } else { "assistant" };
                let blocks: Vec<_> = letters
                    .chars()
                    .map(|letter| match letter {
                        't' => json!({"type": "text", "text": "x"}),
                        'e' => json!({"type": "text", "text": " "}),
                        'r' => json!({"type": "tool_result", "tool_use_id": "x"}),
                        'h' => json!({"type": "thinking", "thinking": "", "signature": "x"}),
                        'c' => json!({"type": "tool_use", "id": "x", "name": "a", "input": {}}),
                        other => panic!("no block {other}"),
                    })
                    .collect();
                json!({"role": role, "content": blocks})
            })
            .collect();
        body.insert("messages".to_owned(), Value::Array(marked));
        let names = if tools { &["a", "b"][..] } else { &[] };
        let tools = names.iter().map(|name| raw(&json!({"name": name})));
        Body::new(Value::Object(body), tools.collect())
    }

    fn marked(body: &Value) -> Vec<String> {
        fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    if fields.contains_key("cache_control") {
                        found.push(path.trim_start_matches('/').replace("messages/", ""));
                    }
                    for (name, value) in fields {
                        walk(value, &format!("{path}/{name}"), found);
                    }
                }
                Value::Array(items) => {
                    for (place, value) in items.iter().enumerate() {
                        walk(value, &format!("{path}/{place}"), found);
                    }
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        walk(body, "", &mut found);
        found
    }

    #[test]
    fn breakpoints() {
        let calls = format!("a{}", "c".repeat(12));
        let results = format!("u{}", "r".repeat(12));
        let cases: &[(bool, bool, &[&str], &[&str])] = &[
            (true, true, &["ut"], &["system/0", "0/content/0"]),
            (false, true, &["ut"], &["tools/1", "0/content/0"]),
            (false, false, &["ut"], &["0/content/0"]),
            (
                true,
                false,
                &["ut", "ahc", "ur", "ahtcc", "urr"],
                &["system/0", "2/content/0", "4/content/1"],
            ),
            (false, false, &["ute"], &["0/content/0"]),
            (false, false, &["ut", "ah"], &["0/content/0"]),
            (
                true,
                false,
                &["ut", &calls, &results],
                &["system/0", "0/content/0", "2/content/0", "2/content/11"],
            ),
            (false, false, &[], &[]),
        ];
        for (system, tools, messages, expected) in cases {
            let mut body = body(*system, *tools, messages);
            mark(&mut body);
            assert_eq!(marked(&body.whole()), *expected, "{messages:?}");
        }
    }
}

//! Where the prompt cache is told to begin anew.
//!
//! The cache matches prefixes of tools, system and messages in this order. A breakpoint writes an
//! entry and reads the newest earlier one at most 20 blocks before it (`docs/providers.md`,
//! "Anthropic: prompt cache").

use serde_json::{Map, Value, json};

/// Blocks that a breakpoint looks back for an earlier entry.
const LOOKBACK: usize = 20;

/// How far before the newest breakpoint the spare one stands in a long step.
const SPARE_DISTANCE: usize = 15;

/// Sets at most four breakpoints: behind the system prompt, on the newest two messages of the user,
/// and between these where a step has more blocks than the lookback.
///
/// Thinking and empty text never get one.
pub(super) fn mark(body: &mut Map<String, Value>) {
    let head = if body.contains_key("system") {
        "system"
    } else {
        "tools"
    };
    if let Some(Value::Array(blocks)) = body.get_mut(head) {
        blocks.last_mut().map(set);
    }
    let Some(Value::Array(messages)) = body.get_mut("messages") else {
        return;
    };
    for place in places(messages) {
        let content = messages.get_mut(place.message);
        let content = content.and_then(|message| message.get_mut("content")?.as_array_mut());
        content
            .and_then(|content| content.get_mut(place.block))
            .map(set);
    }
}

#[derive(Clone, Copy)]
struct Place {
    message: usize,
    block: usize,
    /// Blocks before it in the whole conversation.
    depth: usize,
}

fn places(messages: &[Value]) -> Vec<Place> {
    let mut all: Vec<Place> = Vec::new();
    let mut lasts: Vec<Place> = Vec::new();
    let mut depth = 0;
    for (message, told) in messages.iter().enumerate() {
        let blocks = told.get("content").and_then(Value::as_array);
        let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
        let user = told.get("role").and_then(Value::as_str) == Some("user");
        let own = blocks
            .iter()
            .enumerate()
            .filter(|(_, it)| user && can_bear(it));
        let own: Vec<_> = own
            .map(|(block, _)| Place {
                message,
                block,
                depth: depth + block,
            })
            .collect();
        lasts.extend(own.last());
        all.extend(own);
        depth += blocks.len();
    }
    let newest: Vec<_> = lasts.iter().rev().take(2).copied().collect();
    let spare = match newest.as_slice() {
        [last, before] if last.depth - before.depth > LOOKBACK => all
            .iter()
            .filter(|place| before.depth < place.depth && place.depth < last.depth)
            .min_by_key(|place| (last.depth - place.depth).abs_diff(SPARE_DISTANCE))
            .copied(),
        _ => None,
    };
    newest.into_iter().chain(spare).collect()
}

fn can_bear(block: &Value) -> bool {
    match block.get("type").and_then(Value::as_str) {
        Some("image" | "tool_result") => true,
        Some("text") => {
            let text = block.get("text").and_then(Value::as_str);
            text.is_some_and(|text| !text.trim().is_empty())
        }
        _ => false,
    }
}

fn set(block: &mut Value) {
    if let Some(block) = block.as_object_mut() {
        block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes messages as words: `u` and `a` begin one, each further letter is a block.
    fn body(system: bool, tools: bool, messages: &[&str]) -> Map<String, Value> {
        let mut body = Map::new();
        if system {
            body.insert("system".to_owned(), json!([{"type": "text", "text": "s"}]));
        }
        if tools {
            body.insert("tools".to_owned(), json!([{"name": "a"}, {"name": "b"}]));
        }
        let told: Vec<_> = messages
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
        body.insert("messages".to_owned(), Value::Array(told));
        body
    }

    fn marked(body: &Map<String, Value>) -> Vec<String> {
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
        walk(&Value::Object(body.clone()), "", &mut found);
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
            assert_eq!(marked(&body), *expected, "{messages:?}");
        }
    }
}

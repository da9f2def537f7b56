use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde_json::Value as Json;

use super::*;
use crate::config::check::LOCKABLE;
use crate::config::origin::shown;
use crate::units::{parse_duration, parse_size};

/// One key of the schema.
struct Key {
    /// The sections it is in, e.g. `["providers", "NAME"]`.
    section: Vec<String>,
    name: String,
    kind: String,
    meaning: String,
}

/// Lists all keys; below a table with names that users choose, its keys stand under `NAME`.
fn all_keys() -> Vec<Key> {
    let root = schema();
    let mut keys = Vec::new();
    walk(&root, &root, &mut Vec::new(), &mut keys);
    keys
}

fn walk(root: &Json, schema: &Json, section: &mut Vec<String>, keys: &mut Vec<Key>) {
    let properties = resolved(root, schema)["properties"].as_object().cloned();
    for (name, property) in properties.unwrap_or_default() {
        let target = resolved(root, &property);
        let entry = resolved(root, &target["additionalProperties"]);
        section.push(name.clone());
        if target["properties"].is_object() {
            walk(root, target, section, keys);
        } else if entry["properties"].is_object() {
            let chosen = if name == "tool_permissions" {
                "TOOL"
            } else {
                "NAME"
            };
            section.push(chosen.to_owned());
            walk(root, entry, section, keys);
            section.pop();
        } else {
            keys.push(Key {
                section: section.iter().rev().skip(1).rev().cloned().collect(),
                name,
                kind: kind(root, &property),
                meaning: property["description"]
                    .as_str()
                    .unwrap_or_default()
                    .replace('\n', " "),
            });
        }
        section.pop();
    }
}

/// Follows references, and the one choice that is not null.
fn resolved<'a>(root: &'a Json, schema: &'a Json) -> &'a Json {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'));
        return resolved(root, target.expect("schemars defines what it refers to"));
    }
    let mut choices = schema["anyOf"].as_array().into_iter().flatten();
    match choices.find(|choice| choice["type"] != "null") {
        Some(choice) => resolved(root, choice),
        None => schema,
    }
}

fn kind(root: &Json, schema: &Json) -> String {
    let schema = resolved(root, schema);
    if schema["enum"].is_array() || schema["oneOf"].is_array() {
        return "word".to_owned();
    }
    let types = match &schema["type"] {
        Json::Array(types) => types.iter().find(|one| *one != "null"),
        one => Some(one),
    };
    match (schema["format"].as_str(), types.and_then(Json::as_str)) {
        (Some("duration-text"), _) => "duration",
        (Some("size-text"), _) => "size",
        (Some("percent-text"), _) => "percent",
        (Some("dollars-text"), _) => "dollars",
        (Some("timeout-text"), _) => "duration or ms",
        (Some("share"), _) => "share",
        (Some("secret"), _) => "secret",
        (Some("json-schema"), _) => "table",
        (_, Some("string")) => "text",
        (_, Some("integer" | "number")) => "number",
        (_, Some("boolean")) => "true, false",
        (_, Some("array")) if schema["items"]["type"] == "integer" => "list of numbers",
        (_, Some("array")) => "list of texts",
        (_, Some("object")) => "table of secrets",
        other => panic!("no word for {other:?}"),
    }
    .to_owned()
}

/// The file as it is written, with its comments.
const DEFAULTS: &str = include_str!("../../../config/default.toml");

fn defaults() -> Json {
    toml::from_str(DEFAULTS).expect("valid TOML")
}

#[test]
fn the_compiled_in_file_holds_exactly_the_keys_of_the_settings() {
    let expected: BTreeSet<String> = all_keys()
        .iter()
        .filter(|key| !key.section.iter().any(|part| part == "NAME"))
        // Nobody has a header by default: an empty table has no key to be seen.
        .filter(|key| key.kind != "table of secrets")
        .map(|key| format!("{}.{}", key.section.join("."), key.name))
        .collect();
    let mut found = BTreeSet::new();
    leaves(&defaults(), "", &mut found);
    assert_eq!(found, expected);
}

fn leaves(value: &Json, prefix: &str, all: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().expect("a table") {
        let separator = if prefix.is_empty() { "" } else { "." };
        let key = format!("{prefix}{separator}{name}");
        match value {
            Json::Object(_) => leaves(value, &key, all),
            _ => drop(all.insert(key)),
        }
    }
}

#[test]
fn each_default_with_a_unit_says_in_its_comment_what_it_is() {
    let units: BTreeMap<String, String> = all_keys()
        .into_iter()
        .map(|key| {
            (
                format!("[{}] {}", key.section.join("."), key.name),
                key.kind,
            )
        })
        .collect();
    let mut section = "";
    for line in DEFAULTS.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once(" = ") {
            let kind = &units[&format!("{section} {key}")];
            let text = value.split('"').nth(1).unwrap_or_default();
            let comment = value.split('#').nth(1).unwrap_or_default();
            match kind.as_str() {
                "duration" => assert!(
                    parse_duration(text).is_some() && comment.contains("duration"),
                    "{line}"
                ),
                "size" => assert!(
                    (text.is_empty() || parse_size(text).is_some()) && comment.contains("size"),
                    "{line}"
                ),
                "percent" => assert!(comment.contains("percent"), "{line}"),
                _ => {}
            }
        }
    }
}

#[test]
fn what_can_be_locked_is_what_conversations_have_defaults_for() {
    let chat = defaults()["chat"].clone();
    let keys = chat.as_object().expect("a table").keys();
    // What the daemon looks for by itself is no client's to change.
    let keys = keys.filter(|key| *key != "detect_ollama");
    let mut expected: BTreeSet<String> = keys.map(|key| format!("chat.{key}")).collect();
    // Whose cap is a client's: its exchanges', conversations' and sessions'.
    let caps = ["exchange", "conversation", "session"].map(|whose| format!("budget.{whose}"));
    expected.extend(caps);
    let others = ["providers", "approval.policy", "tools.web_search"];
    expected.extend(others.map(str::to_owned));
    let lockable = LOCKABLE.iter().map(ToString::to_string);
    assert_eq!(lockable.collect::<BTreeSet<_>>(), expected);
}

#[test]
fn the_documentation_lists_every_key() {
    const BEGIN: &str = "<!-- keys -->\n";
    const END: &str = "<!-- /keys -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let text = std::fs::read_to_string(&path).expect("docs/configuration.md");
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the keys");
    let (found, after) = rest.split_once(END).expect("the mark after the keys");
    let expected = documentation();
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        let text = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(&path, text).expect("docs/configuration.md can be written");
        return;
    }
    assert_eq!(
        found, expected,
        "run OUTRIGGER_UPDATE=1 cargo test --lib config::settings"
    );
}

fn documentation() -> String {
    let mut text = String::new();
    let mut section: Option<Vec<String>> = None;
    let mut keys = all_keys();
    // A section's own keys stand before those of the sections inside it.
    keys.sort_by_cached_key(|key| (position(&key.section), key.section.clone()));
    let defaults = defaults();
    for key in keys {
        if section.as_ref() != Some(&key.section) {
            let title = key.section.join(".");
            writeln!(text, "\n### `[{title}]`\n\n| key | type | default | meaning | environment |\n|---|---|---|---|---|")
                .expect("a string takes all");
            section = Some(key.section.clone());
        }
        let path: Vec<&str> = key
            .section
            .iter()
            .chain([&key.name])
            .map(String::as_str)
            .collect();
        let default = match defaults.pointer(&format!("/{}", path.join("/"))) {
            Some(value) => format!("`{}`", shown(&path, value)),
            None => String::new(),
        };
        let variable = format!("OUTRIGGER_{}", path.join("__").to_uppercase());
        let Key {
            name,
            kind,
            meaning,
            ..
        } = key;
        writeln!(
            text,
            "| `{name}` | {kind} | {default} | {meaning} | `{variable}` |"
        )
        .expect("a string takes all");
    }
    text.push('\n');
    text
}

/// Where a section stands in `Settings`.
fn position(section: &[String]) -> usize {
    let schema = schema();
    let order = schema["properties"].as_object().expect("sections");
    let position = order.keys().position(|name| Some(name) == section.first());
    position.expect("a section of the settings")
}

use std::collections::BTreeSet;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Value};

use super::*;
use crate::config::layers::DEFAULTS;

#[test]
fn the_compiled_in_file_holds_exactly_the_keys_of_the_settings() {
    let settings = serde_json::to_value(schemars::schema_for!(Settings)).expect("plain data");
    let mut expected = BTreeSet::new();
    keys(&settings, &settings, String::new(), &mut expected);
    let defaults: Dict = Toml::from_str(DEFAULTS).expect("valid TOML");
    let mut found = BTreeSet::new();
    leaves(&defaults, "", &mut found);
    assert_eq!(found, expected);
}

/// Keys of a schema, those below names that users choose left out.
fn keys(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    prefix: String,
    all: &mut BTreeSet<String>,
) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => root
            .pointer(reference.trim_start_matches('#'))
            .expect("a definition"),
        None => schema,
    };
    match schema["properties"].as_object() {
        Some(properties) => {
            for (name, property) in properties {
                let separator = if prefix.is_empty() { "" } else { "." };
                keys(root, property, format!("{prefix}{separator}{name}"), all);
            }
        }
        None => {
            all.insert(prefix);
        }
    }
}

fn leaves(table: &Dict, prefix: &str, all: &mut BTreeSet<String>) {
    for (name, value) in table {
        let separator = if prefix.is_empty() { "" } else { "." };
        let key = format!("{prefix}{separator}{name}");
        match value {
            Value::Dict(_, inner) if !inner.is_empty() => leaves(inner, &key, all),
            _ => {
                all.insert(key);
            }
        }
    }
}

#[test]
fn each_line_of_the_compiled_in_file_that_has_a_unit_says_so() {
    for line in DEFAULTS.lines() {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        let text = value.split('"').nth(1).unwrap_or_default();
        if crate::config::units::parse_duration(text).is_some() && !text.is_empty() {
            assert!(line.contains("duration"), "{key}");
        }
    }
}

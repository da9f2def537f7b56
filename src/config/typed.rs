//! From merged values to [`Settings`], with every unknown key and every wrong type found.
//!
//! serde stops at the first error. So what is wrong is noted, its default put back, and all is
//! read again until nothing is wrong any more.

use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::{Deserializer, Path, Segment, Track};

use super::error::{ConfigError, nearest, one_of};
use super::merged::Merged;
use super::origin::{Origin, is_secret};
use super::settings::Settings;

/// Most errors that are looked for; each costs one more reading of all values.
const MAX_ERRORS: usize = 100;

/// Takes a message about a value of the wrong sort apart: what is there, and what is wanted.
fn unexpected(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| message.strip_prefix("invalid value: "))?;
    rest.rsplit_once(", expected ")
}

/// Reads the settings and adds what is wrong to `errors`.
///
/// `None` where so much is wrong that nothing can be read; `errors` is not empty then.
pub(crate) fn settings(merged: &mut Merged, errors: &mut Vec<ConfigError>) -> Option<Settings> {
    while errors.len() < MAX_ERRORS {
        let mut track = Track::new();
        let error = match Settings::deserialize(Deserializer::new(&merged.values, &mut track)) {
            Ok(settings) => return Some(settings),
            Err(error) => error.to_string(),
        };
        let path = parts(&track.path());
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if read_again(merged, &path, &error) {
            continue;
        }
        errors.push(explained(merged, &path, &error));
        if !merged.restore(&path) {
            return None;
        }
    }
    None
}

/// Returns the keys and places in lists that lead to a value.
fn parts(path: &Path) -> Vec<String> {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// Takes the text of an environment variable for the JSON, the list or the truth value it is.
///
/// `false` where the value is none of it, or not from the environment.
fn read_again(merged: &mut Merged, path: &[&str], fault: &str) -> bool {
    let (Some((_, expected)), Some(Value::String(text)), Origin::Variable(_)) =
        (unexpected(fault), merged.get(path), merged.origin(path))
    else {
        return false;
    };
    let text = text.trim();
    let value = match (serde_json::from_str(text), expected) {
        (Ok(Value::Number(number)), "a boolean") => match number.as_u64() {
            Some(0) => Value::Bool(false),
            Some(1) => Value::Bool(true),
            _ => return false,
        },
        (Ok(value @ Value::Bool(_)), "a boolean") | (Ok(value @ Value::Array(_)), "a sequence") => {
            value
        }
        (_, "a sequence") => comma_separated(text),
        (Ok(value @ Value::Number(_)), expected) if is_number(expected) => value,
        (Ok(value @ Value::Object(_)), expected) if is_table(expected) => value,
        _ => return false,
    };
    merged.replace(path, value)
}

fn comma_separated(text: &str) -> Value {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(Value::from)
        .collect()
}

fn is_number(expected: &str) -> bool {
    matches!(expected, "u64" | "usize" | "u32" | "u16" | "f64")
}

fn is_table(expected: &str) -> bool {
    expected == "a map" || expected.starts_with("struct ")
}

/// Says what serde's message means; `serde::de::Error` writes each of these in one place.
fn explained(merged: &Merged, path: &[&str], fault: &str) -> ConfigError {
    let named = |start| {
        let (name, rest) = fault.strip_prefix(start)?.split_once("`, ")?;
        Some((name, rest.split('`').skip(1).step_by(2)))
    };
    let field = |start| fault.strip_prefix(start)?.strip_suffix('`');
    let message = if let Some((name, known)) = named("unknown field `") {
        let hint = hint(merged, name, &known.collect::<Vec<_>>());
        let origin = merged.origin(path);
        return ConfigError::at(&written(path), format!("unknown key ({origin}); {hint}"));
    } else if let Some((word, words)) = named("unknown variant `") {
        one_of(word, words)
    } else if let Some((actual, expected)) = unexpected(fault) {
        format!("expected {}", expectation(actual, expected))
    } else if let Some(field) = field("missing field `") {
        format!("`{field}` is missing")
    } else if let Some(field) = field("duplicate field `") {
        format!("`{field}` is given twice")
    } else if is_secret(path) {
        "expected a text".to_owned()
    } else {
        fault.to_owned()
    };
    ConfigError::value(merged, path, message)
}

/// Says in words what Rust's type names mean.
fn expectation(actual: &str, expected: &str) -> String {
    match expected {
        "a boolean" => "true or false".to_owned(),
        "a string" | "path string" => "a text in quotes".to_owned(),
        "a sequence" => "a list, as in [\"a\", \"b\"]".to_owned(),
        "f64" => "a number".to_owned(),
        _ if is_number(expected) => "a whole number, 0 or more".to_owned(),
        _ if is_table(expected) => "a table of keys".to_owned(),
        _ if expected.starts_with("a duration") && actual.starts_with("integer ") => {
            format!("{expected}; a bare number has no unit")
        }
        _ => expected.to_owned(),
    }
}

/// Names the nearest key beside it, else the section that has such a key, else what there is.
fn hint(merged: &Merged, name: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("did you mean {near:?}?");
    }
    let sections = merged.defaults.as_object().into_iter().flatten();
    let near: Vec<(&String, &str)> = sections
        .filter_map(|(section, values)| {
            let keys = values.as_object()?.keys();
            Some((section, nearest(name, keys.map(String::as_str))?))
        })
        .collect();
    let same = near.iter().find(|(_, key)| *key == name);
    let elsewhere = same.or(near.first());
    match elsewhere {
        Some((section, key)) => format!("did you mean \"{section}.{key}\"?"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// Writes a path as a key, parts with dots or spaces in quotes.
pub(crate) fn written(path: &[&str]) -> String {
    let part = |part: &&str| {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !part.is_empty() && part.chars().all(bare) {
            (*part).to_owned()
        } else {
            format!("{part:?}")
        }
    };
    path.iter().map(part).collect::<Vec<_>>().join(".")
}

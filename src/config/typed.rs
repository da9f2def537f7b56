//! From merged values to [`Settings`], with every unknown key and every wrong type found.
//!
//! serde stops at the first error. So what is wrong is noted, its default put back, and all is
//! read again until nothing is wrong any more.

use figment::error::{Actual, Kind};
use figment::value::{Dict, Value};
use serde::Deserialize;

use super::error::{ConfigError, nearest, one_of};
use super::merged::Merged;
use super::origin::{Origin, is_secret, shown};
use super::settings::Settings;

/// Most errors that are looked for; each costs one more reading of all values.
const MAX_ERRORS: usize = 100;

/// Reads the settings and adds what is wrong to `errors`.
///
/// `None` where so much is wrong that nothing can be read; `errors` is not empty then.
pub(crate) fn settings(merged: &mut Merged, errors: &mut Vec<ConfigError>) -> Option<Settings> {
    while errors.len() < MAX_ERRORS {
        let error = match Settings::deserialize(&merged.values) {
            Ok(settings) => return Some(settings),
            Err(error) => error,
        };
        let path: Vec<&str> = error.path.iter().map(String::as_str).collect();
        if read_again(merged, &path, &error.kind) {
            continue;
        }
        errors.push(explained(merged, &path, &error.kind));
        if !merged.restore(&path) {
            return None;
        }
    }
    None
}

/// Takes the text of an environment variable for the JSON, the list or the truth value it is.
///
/// `false` where the value is none of it, or not from the environment.
fn read_again(merged: &mut Merged, path: &[&str], kind: &Kind) -> bool {
    let (Kind::InvalidType(_, expected), Some(Value::String(tag, text)), Origin::Variable(_)) =
        (kind, merged.get(path), merged.origin(path))
    else {
        return false;
    };
    let (tag, text) = (*tag, text.trim());
    let value = match serde_json::from_str(text) {
        Ok(Value::Bool(_, truth)) => Value::Bool(tag, truth),
        Ok(Value::Num(_, number)) if expected == "a boolean" => {
            match Value::Num(tag, number).to_bool_lossy() {
                Some(truth) => Value::Bool(tag, truth),
                None => return false,
            }
        }
        Ok(Value::Num(_, number)) => Value::Num(tag, number),
        Ok(Value::Array(_, values)) => Value::Array(tag, values),
        Ok(Value::Dict(_, table)) => Value::Dict(tag, table),
        _ if expected == "a sequence" => Value::Array(tag, comma_separated(text)),
        _ => return false,
    };
    // A value of the wrong type would come back here for ever.
    let same_type = matches!(
        (expected.as_str(), &value),
        ("a sequence", Value::Array(..)) | ("a boolean", Value::Bool(..))
    );
    let number = matches!(value, Value::Num(..)) && is_number(expected);
    let table = matches!(value, Value::Dict(..)) && is_table(expected);
    (same_type || number || table) && merged.replace(path, value)
}

fn comma_separated(text: &str) -> Vec<Value> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(Value::from)
        .collect()
}

fn is_number(expected: &str) -> bool {
    matches!(expected, "u64" | "usize" | "u32" | "u16")
}

fn is_table(expected: &str) -> bool {
    expected == "a map" || expected.starts_with("struct ")
}

fn explained(merged: &Merged, path: &[&str], kind: &Kind) -> ConfigError {
    let key = written(path);
    let origin = merged.origin(path);
    let message = match kind {
        Kind::UnknownField(name, known) => {
            return ConfigError::UnknownKey {
                key,
                origin,
                hint: hint(merged, name, known),
            };
        }
        Kind::UnknownVariant(word, words) => one_of(word, words.iter().copied()),
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            format!("expected {}", expectation(actual, expected))
        }
        Kind::MissingField(field) => format!("`{field}` is missing"),
        Kind::DuplicateField(field) => format!("`{field}` is given twice"),
        _ if is_secret(path) => "expected a text".to_owned(),
        Kind::Message(message) => message.clone(),
        other => other.to_string(),
    };
    match merged.get(path) {
        Some(value) => ConfigError::Value {
            key,
            value: shown(path, value),
            origin,
            message,
        },
        None => ConfigError::Section { key, message },
    }
}

/// Says in words what Rust's type names mean.
fn expectation(actual: &Actual, expected: &str) -> String {
    match expected {
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a sequence" => "a list, as in [\"a\", \"b\"]".to_owned(),
        _ if is_number(expected) => "a whole number, 0 or more".to_owned(),
        _ if is_table(expected) => "a table of keys".to_owned(),
        _ if expected.starts_with("a duration")
            && matches!(actual, Actual::Unsigned(_) | Actual::Signed(_)) =>
        {
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
    let mut elsewhere = None;
    for (section, values) in merged.defaults.as_dict().into_iter().flatten() {
        let keys = values.as_dict().into_iter().flat_map(Dict::keys);
        if let Some(key) = nearest(name, keys.map(String::as_str)) {
            let exact = key == name;
            if exact || elsewhere.is_none() {
                elsewhere = Some((section, key));
            }
            if exact {
                break;
            }
        }
    }
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

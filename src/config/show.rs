//! `outrigger config show`: each value with where it came from, secrets masked.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde_json::{Value, json as object};

use super::merged::Merged;
use super::origin::{Origin, shown_json};
use super::typed::written;

/// One value of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The key, with dots between its parts.
    pub key: String,
    /// The value; `"***"` for a secret.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// The values of a configuration. They are listed when somebody asks, which hardly anybody does after a start. Secrets are
/// masked in the list alone: here they are as they were read, as in the configuration that is in force.
pub struct Values {
    merged: Merged,
    /// Those in force in the place of what was read.
    derived: Vec<Shown>,
}

impl Values {
    pub(super) fn new(merged: Merged, derived: Vec<Shown>) -> Self {
        Self { merged, derived }
    }

    /// Returns each value with where it came from, secrets masked, in the order of the keys.
    pub fn list(&self) -> Vec<Shown> {
        let mut all = BTreeMap::new();
        let merged = &self.merged;
        flatten(merged, &mut Vec::new(), &merged.values, &mut all);
        let derived = self.derived.iter();
        all.extend(derived.map(|shown| (shown.key.clone(), shown.clone())));
        all.into_values().collect()
    }
}

// There are secrets in it.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}

/// Goes down to what has no tables inside.
fn flatten<'a>(
    merged: &Merged,
    path: &mut Vec<&'a str>,
    value: &'a Value,
    all: &mut BTreeMap<String, Shown>,
) {
    if let Value::Object(table) = value {
        for (key, value) in table {
            path.push(key);
            flatten(merged, path, value, all);
            path.pop();
        }
        return;
    }
    let shown = Shown {
        key: written(path),
        value: shown_json(path, value),
        origin: merged.origin(path),
    };
    all.insert(shown.key.clone(), shown);
}

/// Writes a line for each value: key, value, and where it came from.
pub fn text(values: &[Shown]) -> String {
    let lines: Vec<String> = values
        .iter()
        .map(|shown| format!("{} = {}", shown.key, shown.value))
        .collect();
    let widest = lines.iter().map(|line| line.chars().count()).max();
    let width = widest.unwrap_or_default().min(WIDEST);
    let mut text = String::new();
    for (line, shown) in lines.iter().zip(values) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line:width$}  # {}", shown.origin);
    }
    text
}

/// Column after which origins are no longer put below each other.
const WIDEST: usize = 64;

/// Returns an object with `{"value": …, "source": "…"}` for each key.
pub fn json(values: &[Shown]) -> Value {
    values
        .iter()
        .map(|shown| {
            let entry = object!({"value": shown.value, "source": shown.origin.to_string()});
            (shown.key.clone(), entry)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

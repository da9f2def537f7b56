//! Reads the environment: which variable sets which key.

use serde_json::Value;

use super::error::{ConfigError, nearest};
use super::keys::{self, TOKEN_VARIABLE as TOKEN};
use super::load::Environment;
use super::origin::is_secret;

const PREFIX: &str = "OUTRIGGER_";
const SEPARATOR: &str = "__";
const TOKEN_FILE: &str = "OUTRIGGER_TOKEN_FILE";
/// Variables that are read and are no keys; the last two by `compose.yaml`.
const READ: [&str; 4] = [TOKEN, TOKEN_FILE, "OUTRIGGER_UID", "OUTRIGGER_GID"];
/// Most parts of a key; no key has more, and what is nested deeper would only cost memory.
const MAX_PARTS: usize = 8;

pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    /// The value, not yet read as what the key needs.
    pub(crate) text: String,
}

/// Returns the variable that holds a provider's key.
pub(crate) fn variable_of_key(id: &str) -> String {
    let id = id.to_uppercase().replace('-', "_");
    format!("{PREFIX}PROVIDERS{SEPARATOR}{id}{SEPARATOR}API_KEY")
}

/// Finds each variable `OUTRIGGER_SECTION__KEY`, and `RUST_LOG`.
///
/// `lower` holds the values of the sources below, whose spelling of names is kept. Names without
/// `__` are no keys: `OUTRIGGER_TOKEN` is the token, and an orchestrator sets such as
/// `OUTRIGGER_PORT=tcp://…` for a service of that name.
pub(crate) fn read(
    environment: &Environment,
    lower: &Value,
) -> Result<Vec<Variable>, Vec<ConfigError>> {
    let (mut variables, mut errors) = (Vec::new(), Vec::new());
    for (name, text) in environment.starting_with(PREFIX) {
        let key = name.strip_prefix(PREFIX);
        let Some(key) = key.filter(|key| key.contains(SEPARATOR)) else {
            continue;
        };
        let mut path = variable_path(key, lower);
        let text = match is_key_file(&mut path) {
            true => keys::read_secret_file(name, text),
            false => Ok(text.to_owned()),
        };
        let name = name.to_owned();
        match text {
            Ok(text) => variables.push(Variable { name, path, text }),
            Err(error) => errors.push(error),
        }
    }
    if let Some(filter) = environment.get("RUST_LOG") {
        variables.push(Variable {
            name: "RUST_LOG".to_owned(),
            path: vec!["log".to_owned(), "level".to_owned()],
            text: filter.to_owned(),
        });
    }
    match errors.is_empty() {
        true => Ok(variables),
        false => Err(errors),
    }
}

/// Warns of each variable `OUTRIGGER_…` that nothing reads, with the one that is probably meant.
///
/// One with `__` in its name is a key, or an error. Variables that an orchestrator makes of a service of this
/// name (`OUTRIGGER_PORT=tcp://…`, `OUTRIGGER_SERVICE_HOST`) were not written by anybody.
pub(crate) fn unknown(environment: &Environment, defaults: &Value) -> Vec<String> {
    let mut unread = environment
        .starting_with(PREFIX)
        .filter(|(name, text)| {
            !name.contains(SEPARATOR) && !READ.contains(name) && !is_of_service(name, text)
        })
        .peekable();
    let mut known = Vec::new();
    if unread.peek().is_some() {
        leaves(defaults, PREFIX, &mut known);
        known.extend(READ.map(str::to_owned));
    }
    unread
        .map(|(name, _)| {
            let advice = match meant(name, &known) {
                Some(variable) => format!("did you mean {variable}?"),
                None => "the variable of a key is OUTRIGGER_SECTION__KEY, with two underscores"
                    .to_owned(),
            };
            format!("the environment variable {name} is not read; {advice}")
        })
        .collect()
}

/// Whether Kubernetes or Docker makes such a variable for a service or a link named `outrigger`.
fn is_of_service(name: &str, text: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    let port = rest.strip_prefix("PORT_").unwrap_or_default();
    rest.starts_with("SERVICE_")
        || port.starts_with(|c: char| c.is_ascii_digit())
        || (rest == "PORT" && text.contains("://"))
}

/// The variable that is probably meant: the same letters, then the last parts of a key, then the nearest name.
fn meant(name: &str, known: &[String]) -> Option<String> {
    let plain = |variable: &str| variable.replace(SEPARATOR, "_");
    let rest = name.strip_prefix(PREFIX)?;
    let tail = format!("_{rest}");
    let same = known.iter().find(|variable| plain(variable) == name);
    // Of several keys that end so, the one with the shortest way: OUTRIGGER_TIMEOUT may be many.
    let ending = || {
        let ends = known
            .iter()
            .filter(|variable| plain(variable).ends_with(&tail));
        ends.min_by_key(|variable| variable.len())
    };
    // Without what all begin with, or everything would be near.
    let near = || {
        let names = known
            .iter()
            .filter_map(|variable| variable.strip_prefix(PREFIX));
        nearest(rest, names).map(|near| format!("{PREFIX}{near}"))
    };
    same.or_else(ending).cloned().or_else(near)
}

/// Lists the variables of all keys that have a default.
fn leaves(value: &Value, prefix: &str, all: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = format!("{prefix}{}", name.to_uppercase());
        match value {
            Value::Object(_) => leaves(value, &format!("{name}{SEPARATOR}"), all),
            _ => all.push(name),
        }
    }
}

/// Turns `PROVIDERS__MY_GPT__API_KEY` into the path of the key.
///
/// Names are lower case, but one that a file has in another spelling (`My-GPT`) is meant where it
/// is there. The variables of an MCP server keep their case.
fn variable_path(key: &str, lower: &Value) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut table = Some(lower);
    for part in key.splitn(MAX_PARTS, SEPARATOR) {
        let part = spelled(part, table);
        table = table.and_then(|table| table.as_object()?.get(&part));
        path.push(part);
    }
    let lower_case: Vec<&str> = path.iter().map(String::as_str).collect();
    let mut parts = key.splitn(5, SEPARATOR);
    if let (["mcp", "servers", _, "env", ..], Some(name)) = (lower_case.as_slice(), parts.nth(4)) {
        path.truncate(4);
        path.push(name.to_owned());
    }
    path
}

fn spelled(part: &str, table: Option<&Value>) -> String {
    let part = part.to_lowercase();
    let Some(table) = table.and_then(Value::as_object) else {
        return part;
    };
    if table.contains_key(&part) {
        return part;
    }
    let same = |name: &&String| name.to_lowercase().replace('-', "_") == part;
    table.keys().find(same).cloned().unwrap_or(part)
}

/// Whether a path is that of a secret with `_file` behind it, which is then taken off.
fn is_key_file(path: &mut [String]) -> bool {
    let Some((last, parents)) = path.split_last_mut() else {
        return false;
    };
    let Some(stem) = last.strip_suffix("_file").map(str::to_owned) else {
        return false;
    };
    let parents = parents.iter().map(String::as_str);
    let named: Vec<&str> = parents.chain([stem.as_str()]).collect();
    let may_be_in_file = stem.ends_with("api_key")
        || stem == "client_secret"
        || matches!(named[..], ["store", "url"] | ["cluster", "secret"]);
    if !may_be_in_file || !is_secret(&named) {
        return false;
    }
    *last = stem;
    true
}

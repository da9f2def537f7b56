//! Puts the sources on top of each other: defaults, files, environment, flags.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::error::ConfigError;
use super::file::{self, FileLayer};
use super::keys;
use super::load::{Environment, Sources};
use super::origin::{Origin, is_secret};

/// What starts the name of each variable that sets a key.
const PREFIX: &str = "OUTRIGGER_";
/// What separates the parts of a key in the name of a variable.
const SEPARATOR: &str = "__";

/// The compiled-in defaults, which hold every key that has one.
pub(crate) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// All values, the later source over the earlier, each with its origin.
pub(crate) struct Merged {
    figment: Figment,
    /// The values, a table.
    pub(crate) values: Value,
    /// The compiled-in ones alone.
    pub(crate) defaults: Value,
    /// The provider instances that a file names, in its order.
    pub(crate) providers: Vec<String>,
}

struct Layer<'a> {
    origin: &'a Origin,
    values: Dict,
}

impl Provider for Layer<'_> {
    fn metadata(&self) -> Metadata {
        self.origin.to_metadata()
    }

    fn data(&self) -> figment::error::Result<Map<Profile, Dict>> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Reads every source, or says of each that cannot be read why.
pub(crate) fn merge(sources: &Sources) -> Result<Merged, Vec<ConfigError>> {
    let defaults = defaults().map_err(|error| vec![error])?;
    let mut figment = Figment::from(Layer {
        origin: &Origin::Default,
        values: defaults.clone(),
    });
    let mut providers = Vec::new();
    let files = read_files(sources)?;
    for layer in files {
        providers.extend(layer.providers);
        figment = figment.merge(Layer {
            origin: &layer.origin,
            values: layer.values,
        });
    }
    figment = with_environment(figment, &sources.environment)?;
    for flag in &sources.flags {
        figment = figment.merge(Layer {
            origin: &Origin::Flag(flag.flag.clone()),
            values: nested(&split(flag.key), flag.value.clone()),
        });
    }
    Ok(Merged {
        values: Value::Dict(Tag::Default, data(&figment)),
        defaults: Value::Dict(Tag::Default, defaults),
        figment,
        providers,
    })
}

/// Reads the compiled-in defaults.
fn defaults() -> Result<Dict, ConfigError> {
    use figment::providers::{Format, Toml};
    Toml::from_str(DEFAULTS).map_err(|error| ConfigError::Section {
        key: "config/default.toml".to_owned(),
        message: error.to_string(),
    })
}

fn read_files(sources: &Sources) -> Result<Vec<FileLayer>, Vec<ConfigError>> {
    let (path, directory) = match (&sources.config_file, &sources.user_directory) {
        (Some(file), _) => (Some(file.clone()), file.parent().map(ToOwned::to_owned)),
        (None, Some(directory)) => {
            let file = directory.join("config.toml");
            (file.exists().then_some(file), Some(directory.clone()))
        }
        (None, None) => (None, None),
    };
    let (mut layers, mut errors) = (Vec::new(), Vec::new());
    match path.map(|path| file::read(&path)) {
        Some(Ok(layer)) => layers.push(layer),
        Some(Err(error)) => errors.push(error),
        None => {}
    }
    match directory.map(|directory| file::read_workflows(&directory)) {
        Some(Ok(workflows)) => {
            for workflow in workflows {
                errors.extend(defined_twice(&layers, &workflow));
                layers.push(workflow);
            }
        }
        Some(Err(found)) => errors.extend(found),
        None => {}
    }
    if errors.is_empty() {
        Ok(layers)
    } else {
        Err(errors)
    }
}

/// A workflow that two files define would be a mixture of both.
fn defined_twice(earlier: &[FileLayer], workflow: &FileLayer) -> Option<ConfigError> {
    let name = workflows(workflow).next()?;
    let first = earlier
        .iter()
        .find(|layer| workflows(layer).any(|other| other == name))?;
    Some(ConfigError::Section {
        key: format!("workflows.{name}"),
        message: format!("defined twice, in {} and {}", first.origin, workflow.origin),
    })
}

fn workflows(layer: &FileLayer) -> impl Iterator<Item = &String> {
    let table = layer.values.get("workflows").and_then(Value::as_dict);
    table.into_iter().flat_map(BTreeMap::keys)
}

/// Adds a layer for each variable `OUTRIGGER_SECTION__KEY`, and for `RUST_LOG`.
///
/// Names without `__` are no keys: `OUTRIGGER_TOKEN` is the token, and an orchestrator sets such
/// as `OUTRIGGER_PORT=tcp://…` for a service of that name.
fn with_environment(
    mut figment: Figment,
    environment: &Environment,
) -> Result<Figment, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let lower = Value::Dict(Tag::Default, data(&figment));
    let mut add = |name: &str, path: &[String], text: String| {
        let layer = Layer {
            origin: &Origin::Variable(name.to_owned()),
            values: nested(path, Value::from(text)),
        };
        figment = std::mem::take(&mut figment).merge(layer);
    };
    for (name, text) in environment.starting_with(PREFIX) {
        let Some(key) = name
            .strip_prefix(PREFIX)
            .filter(|key| key.contains(SEPARATOR))
        else {
            continue;
        };
        let mut path = variable_path(key, &lower);
        if !is_key_file(&mut path) {
            add(name, &path, text.to_owned());
            continue;
        }
        match keys::read_secret_file(name, text) {
            Ok(secret) => add(name, &path, secret),
            Err(error) => errors.push(error),
        }
    }
    if let Some(filter) = environment.get("RUST_LOG") {
        add("RUST_LOG", &split("log.level"), filter.to_owned());
    }
    if errors.is_empty() {
        Ok(figment)
    } else {
        Err(errors)
    }
}

/// Names the variables that would set a key if they had `__` in the place of a `_`.
pub(crate) fn misspelt_variables(environment: &Environment, merged: &Merged) -> Vec<String> {
    let mut single = environment
        .starting_with(PREFIX)
        .filter(|(name, _)| !name.contains(SEPARATOR))
        .peekable();
    let mut keys = Vec::new();
    if single.peek().is_some() {
        leaves(&merged.defaults, PREFIX, &mut keys);
    }
    single
        .filter_map(|(name, _)| {
            let meant = keys
                .iter()
                .find(|key| key.replace(SEPARATOR, "_") == name)?;
            Some(format!(
                "the environment variable {name} is not read; the key's variable is {meant}"
            ))
        })
        .collect()
}

/// Lists the variables of all keys that have a default.
fn leaves(value: &Value, prefix: &str, all: &mut Vec<String>) {
    for (name, value) in value.as_dict().into_iter().flatten() {
        let name = format!("{prefix}{}", name.to_uppercase());
        match value {
            Value::Dict(..) => leaves(value, &format!("{name}{SEPARATOR}"), all),
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
    for part in key.split(SEPARATOR) {
        let part = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["mcp", "servers", _, "env"] => part.to_owned(),
            _ => spelled(part, table),
        };
        table = table.and_then(|table| table.as_dict()?.get(&part));
        path.push(part);
    }
    path
}

fn spelled(part: &str, table: Option<&Value>) -> String {
    let part = part.to_lowercase();
    let Some(table) = table.and_then(Value::as_dict) else {
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
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some((last, parents)) = parts.split_last() else {
        return false;
    };
    let Some(stem) = last.strip_suffix("_file") else {
        return false;
    };
    let stem = stem.to_owned();
    let named: Vec<&str> = parents.iter().copied().chain([stem.as_str()]).collect();
    if !stem.ends_with("api_key") || !is_secret(&named) {
        return false;
    }
    if let Some(last) = path.last_mut() {
        *last = stem;
    }
    true
}

fn split(key: &str) -> Vec<String> {
    key.split('.').map(str::to_owned).collect()
}

/// Wraps a value in the tables of its path.
fn nested(path: &[String], value: Value) -> Dict {
    let mut parts = path.iter().rev();
    let Some(last) = parts.next() else {
        return Dict::new();
    };
    let innermost = Dict::from([(last.clone(), value)]);
    parts.fold(innermost, |inner, part| {
        Dict::from([(part.clone(), Value::from(inner))])
    })
}

fn data(figment: &Figment) -> Dict {
    let mut profiles = figment.data().unwrap_or_default();
    profiles.remove(&Profile::Default).unwrap_or_default()
}

impl Merged {
    /// Returns the value at a path.
    pub(crate) fn get(&self, path: &[&str]) -> Option<&Value> {
        find(&self.values, path)
    }

    /// Returns where the value at a path came from; that of the nearest table around it where the
    /// value itself is not there.
    pub(crate) fn origin(&self, path: &[&str]) -> Origin {
        let mut value = &self.values;
        let mut tag = value.tag();
        for part in path {
            let Some(inner) = child(value, part) else {
                break;
            };
            value = inner;
            if !value.tag().is_default() {
                tag = value.tag();
            }
        }
        self.figment
            .get_metadata(tag)
            .map_or(Origin::Default, Origin::from_metadata)
    }

    /// Replaces the value at a path, or what is around it in a list.
    pub(crate) fn replace(&mut self, path: &[&str], value: Value) -> bool {
        set(&mut self.values, path, Some(value))
    }

    /// Puts the default back at a path, or removes what has none.
    ///
    /// Of a list it is the whole list. `false` where nothing was changed.
    pub(crate) fn restore(&mut self, path: &[&str]) -> bool {
        let mut path = path;
        loop {
            let default = find(&self.defaults, path).cloned();
            if set(&mut self.values, path, default) {
                return true;
            }
            match path.split_last() {
                Some((_, parents)) if !parents.is_empty() => path = parents,
                _ => return false,
            }
        }
    }
}

fn child<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Dict(_, table) => table.get(part),
        Value::Array(_, values) => values.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}

fn find<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter()
        .try_fold(value, |value, part| child(value, part))
}

/// Sets or removes an entry of a table that is there; `false` where it is not.
fn set(root: &mut Value, path: &[&str], value: Option<Value>) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let mut table = root;
    for part in parents {
        let Value::Dict(_, entries) = table else {
            return false;
        };
        let Some(inner) = entries.get_mut(*part) else {
            return false;
        };
        table = inner;
    }
    let Value::Dict(_, entries) = table else {
        return false;
    };
    match value {
        Some(value) => entries.insert((*last).to_owned(), value).is_some(),
        None => entries.remove(*last).is_some(),
    }
}

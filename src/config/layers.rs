//! Puts the sources on top of each other: defaults, files, environment, flags.

use serde_json::{Map, Value};

use super::error::ConfigError;
use super::file::{self, FileLayer};
use super::load::{Override, Sources};
use super::merged::Merged;
use super::origin::Origin;
use super::variables;

/// The compiled-in defaults, which hold every key that has one: `config/default.toml`, as `build.rs` read it.
const DEFAULTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/default.json"));

/// Reads every source, or says of each that cannot be read why.
pub(crate) fn merge(sources: &Sources) -> Result<Merged, Vec<ConfigError>> {
    let mut merged = Merged::new(defaults().map_err(|error| vec![error])?);
    for default in &sources.defaults {
        add(&mut merged, default);
    }
    for layer in read_files(sources)? {
        merged.add(layer.values, &layer.origin);
    }
    for variable in variables::read(&sources.environment, &merged.values)? {
        let values = nested(&variable.path, Value::from(variable.text));
        merged.add(values, &Origin::Variable(variable.name));
    }
    for flag in &sources.flags {
        add(&mut merged, flag);
    }
    Ok(merged)
}

fn add(merged: &mut Merged, flag: &Override) {
    let path: Vec<String> = flag.key.split('.').map(str::to_owned).collect();
    let values = nested(&path, flag.value.clone());
    merged.add(values, &Origin::Flag(flag.flag.clone()));
}

pub(crate) fn defaults() -> Result<Map<String, Value>, ConfigError> {
    serde_json::from_slice(DEFAULTS).map_err(|error| ConfigError::at("config/default.toml", error))
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
    let mut found: Vec<_> = path.map(|path| file::read(&path)).into_iter().collect();
    found.extend(directory.iter().flat_map(|path| file::read_workflows(path)));
    let (mut layers, mut errors) = (Vec::new(), Vec::new());
    for layer in found {
        match layer {
            Ok(layer) => {
                errors.extend(defined_twice(&layers, &layer));
                layers.push(layer);
            }
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(layers),
        false => Err(errors),
    }
}

/// A workflow that two files define would be a mixture of both.
fn defined_twice(earlier: &[FileLayer], workflow: &FileLayer) -> Option<ConfigError> {
    let name = workflows(workflow).next()?;
    let first = earlier
        .iter()
        .find(|layer| workflows(layer).any(|other| other == name))?;
    let message = format!("defined twice, in {} and {}", first.origin, workflow.origin);
    Some(ConfigError::at(&format!("workflows.{name}"), message))
}

fn workflows(layer: &FileLayer) -> impl Iterator<Item = &String> {
    let table = layer.values.get("workflows").and_then(Value::as_object);
    table.into_iter().flat_map(Map::keys)
}

/// Wraps a value in the tables of its path.
fn nested(path: &[String], value: Value) -> Map<String, Value> {
    let Some((last, parents)) = path.split_last() else {
        return Map::new();
    };
    let innermost = Map::from_iter([(last.clone(), value)]);
    parents.iter().rev().fold(innermost, |inner, part| {
        Map::from_iter([(part.clone(), Value::Object(inner))])
    })
}

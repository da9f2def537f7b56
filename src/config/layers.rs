//! Puts the sources on top of each other: defaults, files, environment, flags.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::error::ConfigError;
use super::file::{self, FileLayer};
use super::load::Sources;
use super::merged::{self, Merged};
use super::origin::Origin;
use super::variables;

/// The compiled-in defaults, which hold every key that has one.
pub(crate) const DEFAULTS: &str = include_str!("../../config/default.toml");

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
    let lower = Value::Dict(Tag::Default, merged::data(&figment));
    for variable in variables::read(&sources.environment, &lower)? {
        figment = figment.merge(Layer {
            origin: &Origin::Variable(variable.name),
            values: nested(&variable.path, Value::from(variable.text)),
        });
    }
    for flag in &sources.flags {
        let path: Vec<String> = flag.key.split('.').map(str::to_owned).collect();
        figment = figment.merge(Layer {
            origin: &Origin::Flag(flag.flag.clone()),
            values: nested(&path, flag.value.clone()),
        });
    }
    Ok(Merged::new(figment, defaults, providers))
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

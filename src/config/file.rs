//! Reads configuration files: TOML, YAML or JSON by the ending, and the workflow files beside them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use figment::providers::{Format, Json, Toml, Yaml};
use figment::value::{Dict, Value};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::ConfigError;
use super::origin::Origin;

/// Largest configuration file, in bytes; the longest system prompts fit many times.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most workflow files beside a configuration.
const MAX_WORKFLOW_FILES: usize = 256;
/// Top-level keys of `claude_desktop_config.json` that are Claude Desktop's own affair.
const CLAUDE_DESKTOP_KEYS: [&str; 7] = [
    "globalShortcut",
    "preferences",
    "scale",
    "locale",
    "userThemeMode",
    "isUsingBuiltInNodeForMcp",
    "isDxtAutoUpdatesEnabled",
];

/// What one file says.
pub(crate) struct FileLayer {
    /// The file, as the source of its values.
    pub(crate) origin: Origin,
    /// Its values.
    pub(crate) values: Dict,
    /// The names under `providers`, in the order of the file.
    pub(crate) providers: Vec<String>,
}

/// Reads a configuration file by the format of its ending.
pub(crate) fn read(path: &Path) -> Result<FileLayer, ConfigError> {
    let text = read_text(path)?;
    let extension = path.extension().and_then(|ending| ending.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("toml") => parse::<Toml>(path, &text, |error| {
            let place = error.span().map(|span| place(&text, span.start));
            (place, error.message().to_owned())
        }),
        Some("yaml" | "yml") => read_yaml(path, &text),
        Some("json") => parse::<Json>(path, &text, |error| {
            (Some((error.line(), error.column())), plain(error))
        })
        .map(with_claude_servers),
        _ => Err(failure(
            path,
            "unknown format; the name of a configuration ends in .toml, .yaml, .yml or .json",
        )),
    }
}

/// Reads `workflows/*.yaml` in a directory; each is one workflow, named as the file.
pub(crate) fn read_workflows(directory: &Path) -> Result<Vec<FileLayer>, Vec<ConfigError>> {
    let directory = directory.join("workflows");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"))
        .take(MAX_WORKFLOW_FILES + 1)
        .collect();
    if paths.len() > MAX_WORKFLOW_FILES {
        let message = format!("holds more than {MAX_WORKFLOW_FILES} workflow files");
        return Err(vec![failure(&directory, message)]);
    }
    paths.sort();
    let (mut layers, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        match read_workflow(&path) {
            Ok(layer) => layers.push(layer),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(layers)
    } else {
        Err(errors)
    }
}

fn read_workflow(path: &Path) -> Result<FileLayer, ConfigError> {
    let mut layer = read_yaml(path, &read_text(path)?)?;
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Err(failure(path, "the name of a workflow file must be UTF-8"));
    };
    let workflow = Dict::from([(name.to_owned(), Value::from(layer.values))]);
    layer.values = Dict::from([("workflows".to_owned(), Value::from(workflow))]);
    Ok(layer)
}

fn read_yaml(path: &Path, text: &str) -> Result<FileLayer, ConfigError> {
    // YAML has no empty mapping: a file of nothing but comments is null.
    let empty = text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    parse::<Yaml>(path, if empty { "{}" } else { text }, |error| {
        let place = error.location().map(|at| (at.line(), at.column()));
        (place, plain(error))
    })
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let failed = |error: std::io::Error| failure(path, format!("cannot be read: {error}"));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failure(path, "is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| failure(path, "is not UTF-8"))?;
    // Editors on Windows put a byte order mark in front, which no format allows.
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

/// Parses twice where there are providers: figment sorts its keys, and their order decides.
fn parse<F: Format>(
    path: &Path,
    text: &str,
    explain: impl Fn(&F::Error) -> (Option<(usize, usize)>, String),
) -> Result<FileLayer, ConfigError> {
    let values = without_nulls(parse_as::<F, _>(path, text, &explain)?);
    let several = values
        .get("providers")
        .and_then(Value::as_dict)
        .is_some_and(|providers| !providers.is_empty());
    let providers = if several {
        parse_as::<F, InOrder>(path, text, &explain)?.providers.0
    } else {
        Vec::new()
    };
    Ok(FileLayer {
        origin: Origin::File(path.to_owned()),
        values,
        providers,
    })
}

/// A key without a value, `chat:` in YAML, is a key that is not set.
fn without_nulls(table: Dict) -> Dict {
    table
        .into_iter()
        .filter_map(|(key, value)| match value {
            Value::Empty(..) => None,
            Value::Dict(tag, inner) => Some((key, Value::Dict(tag, without_nulls(inner)))),
            other => Some((key, other)),
        })
        .collect()
}

fn parse_as<F: Format, T: DeserializeOwned>(
    path: &Path,
    text: &str,
    explain: impl Fn(&F::Error) -> (Option<(usize, usize)>, String),
) -> Result<T, ConfigError> {
    F::from_str(text).map_err(|error| {
        let (place, message) = explain(&error);
        ConfigError::File {
            path: path.to_owned(),
            place,
            message,
        }
    })
}

fn failure(path: &Path, message: impl Into<String>) -> ConfigError {
    ConfigError::File {
        path: path.to_owned(),
        place: None,
        message: message.into(),
    }
}

/// The message of a reader without its own "at line 3 column 7", which stands before it already.
fn plain(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// Line and column, from 1, of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// Moves `mcpServers` to `mcp.servers`, so that a file of Claude Desktop works as it is.
fn with_claude_servers(mut layer: FileLayer) -> FileLayer {
    let Some(servers) = layer.values.remove("mcpServers") else {
        return layer;
    };
    layer
        .values
        .retain(|key, _| !CLAUDE_DESKTOP_KEYS.contains(&key.as_str()));
    let mut servers = servers;
    if let Value::Dict(_, servers) = &mut servers {
        servers.values_mut().for_each(translate_server);
    }
    let mcp = layer
        .values
        .entry("mcp".to_owned())
        .or_insert_with(|| Value::from(Dict::new()));
    if let Value::Dict(_, mcp) = mcp {
        match (mcp.get_mut("servers"), servers) {
            (Some(Value::Dict(_, ours)), Value::Dict(_, theirs)) => ours.extend(theirs),
            (_, servers) => {
                mcp.insert("servers".to_owned(), servers);
            }
        }
    }
    layer
}

/// Drops `type`, which `command` and `url` say as well (`sse` is tried as streamable HTTP, and the
/// server's error says what is not supported), and turns `disabled` into `enabled`.
fn translate_server(server: &mut Value) {
    let Value::Dict(_, server) = server else {
        return;
    };
    if let Some(Value::String(_, kind)) = server.get("type")
        && ["stdio", "http", "streamable-http", "streamableHttp", "sse"].contains(&kind.as_str())
    {
        server.remove("type");
    }
    if let Some(Value::Bool(tag, disabled)) = server.get("disabled").cloned() {
        server.remove("disabled");
        server.insert("enabled".to_owned(), Value::Bool(tag, !disabled));
    }
}

/// The part of a file whose order matters.
#[derive(Deserialize)]
struct InOrder {
    #[serde(default)]
    providers: Names,
}

#[derive(Default)]
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Names;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

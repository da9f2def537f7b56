//! Reads configuration files: TOML, YAML or JSON by the ending, and the workflow files beside them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::ConfigError;
use super::format::Format;
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
    pub(crate) values: Map<String, Value>,
}

/// Reads a configuration file by the format of its ending.
pub(crate) fn read(path: &Path) -> Result<FileLayer, ConfigError> {
    let text = read_text(path)?;
    let Some(format) = Format::of(path) else {
        return Err(ConfigError::file(
            path,
            None,
            "unknown format; the name of a configuration ends in .toml, .yaml, .yml or .json",
        ));
    };
    let mut layer = parse(path, &text, format)?;
    if format == Format::Json {
        with_claude_servers(&mut layer.values);
    }
    Ok(layer)
}

/// Reads `workflows/*.yaml` in a directory; each is one workflow, named as the file.
pub(crate) fn read_workflows(directory: &Path) -> Vec<Result<FileLayer, ConfigError>> {
    let directory = directory.join("workflows");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"))
        .take(MAX_WORKFLOW_FILES + 1)
        .collect();
    if paths.len() > MAX_WORKFLOW_FILES {
        let message = format!("holds more than {MAX_WORKFLOW_FILES} workflow files");
        return vec![Err(ConfigError::file(&directory, None, &message))];
    }
    paths.sort();
    paths.iter().map(|path| read_workflow(path)).collect()
}

fn read_workflow(path: &Path) -> Result<FileLayer, ConfigError> {
    let mut layer = parse(path, &read_text(path)?, Format::Yaml)?;
    let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Err(ConfigError::file(
            path,
            None,
            "the name of a workflow file must be UTF-8",
        ));
    };
    let workflow = Map::from_iter([(name.to_owned(), Value::Object(layer.values))]);
    layer.values = Map::from_iter([("workflows".to_owned(), Value::Object(workflow))]);
    Ok(layer)
}

/// Reads a text file of at most so many bytes, which `limit` is in words. An error is the rest of a sentence.
pub(super) fn read_bounded(path: &Path, most: u64, limit: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("is larger than {limit}"));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let text = read_bounded(path, MAX_FILE_BYTES, "1 MiB")
        .map_err(|reason| ConfigError::file(path, None, &reason))?;
    // Editors on Windows put a byte order mark in front, which no format allows.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

fn parse(path: &Path, text: &str, format: Format) -> Result<FileLayer, ConfigError> {
    let values = format
        .read(text)
        .map_err(|broken| ConfigError::file(path, broken.place, &broken.message))?;
    Ok(FileLayer {
        origin: Origin::File(path.to_owned()),
        values: without_nulls(values),
    })
}

/// A key without a value, `chat:` in YAML, is a key that is not set.
fn without_nulls(table: Map<String, Value>) -> Map<String, Value> {
    table
        .into_iter()
        .filter_map(|(key, value)| match value {
            Value::Null => None,
            Value::Object(inner) => Some((key, Value::Object(without_nulls(inner)))),
            other => Some((key, other)),
        })
        .collect()
}

/// Moves `mcpServers` to `mcp.servers`, so that a file of Claude Desktop works as it is.
fn with_claude_servers(values: &mut Map<String, Value>) {
    let Some(mut servers) = values.remove("mcpServers") else {
        return;
    };
    values.retain(|key, _| !CLAUDE_DESKTOP_KEYS.contains(&key.as_str()));
    if let Value::Object(servers) = &mut servers {
        servers.values_mut().for_each(translate_server);
    }
    let mcp = values
        .entry("mcp")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(mcp) = mcp {
        match (mcp.get_mut("servers"), servers) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs),
            (_, servers) => drop(mcp.insert("servers".to_owned(), servers)),
        }
    }
}

/// Drops `type`, which `command` and `url` say as well (`sse` is tried as streamable HTTP, and the
/// server's error says what is not supported), and turns `disabled` into `enabled`.
fn translate_server(server: &mut Value) {
    let Value::Object(server) = server else {
        return;
    };
    if let Some(Value::String(kind)) = server.get("type")
        && ["stdio", "http", "streamable-http", "streamableHttp", "sse"].contains(&kind.as_str())
    {
        server.remove("type");
    }
    if let Some(disabled) = server.get("disabled").and_then(Value::as_bool) {
        server.remove("disabled");
        server.insert("enabled".to_owned(), Value::Bool(!disabled));
    }
}

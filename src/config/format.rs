//! The formats of files that people write: TOML, YAML and JSON, recognised by the ending.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Yaml,
    Json,
}

/// Why a text cannot be read.
#[derive(Debug)]
pub(crate) struct Broken {
    /// Line and column, from 1, where the reader says so.
    pub(crate) place: Option<(usize, usize)>,
    pub(crate) message: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line} column {column}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Format {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        match ending.to_ascii_lowercase().as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Reads a text; keys keep their order.
    pub(crate) fn read<T: DeserializeOwned>(self, text: &str) -> Result<T, Broken> {
        match self {
            Self::Toml => {
                let broken = |error: toml::de::Error| Broken {
                    place: error.span().map(|span| place(text, span.start)),
                    message: error.message().to_owned(),
                };
                let all: toml::Table = toml::from_str(text).map_err(broken)?;
                if !all.values().all(is_finite) {
                    return Err(Broken {
                        place: None,
                        message: "`nan` and `inf` are no amounts; write a number".to_owned(),
                    });
                }
                toml::from_str(text).map_err(broken)
            }
            Self::Yaml => serde_saphyr::from_str(yaml(text)).map_err(|error| {
                let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                let error = error.without_snippet();
                Broken {
                    place: error
                        .location()
                        .map(|at| (number(at.line()), number(at.column()))),
                    message: plain(error),
                }
            }),
            Self::Json => serde_json::from_str(text).map_err(|error| Broken {
                place: Some((error.line(), error.column())),
                message: plain(&error),
            }),
        }
    }
}

/// Returns whether each number of a value is one that can be counted with; JSON, which all is merged as, has no others.
fn is_finite(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Array(values) => values.iter().all(is_finite),
        toml::Value::Table(values) => values.values().all(is_finite),
        _ => true,
    }
}

/// YAML has no empty mapping: a file of nothing but comments is null.
fn yaml(text: &str) -> &str {
    let is_empty = text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    if is_empty { "{}" } else { text }
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

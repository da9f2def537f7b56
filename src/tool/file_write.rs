//! `file_write`: a file with the content that the model gives, whole.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::file::PathArgument;
use super::file_change::{Change, Old, Revision};
use super::input::{parse, spec_of};
use super::text::Form;
use super::{Prepared, Refusal, Tool};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::Roots;

/// Writes a file of the project: creates it, with the folders above it, or replaces its whole content.
///
/// To change a part of a file, use file_edit. A replaced file keeps its encoding, line ends and mode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Path of the file, relative to the project.
    path: String,
    /// The whole new content.
    content: String,
}

/// The tool.
#[derive(Debug)]
pub struct FileWrite {
    roots: Arc<Roots>,
    spec: ToolSpec,
}

impl FileWrite {
    /// Makes the tool.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            spec: spec_of::<Input>("file_write", ToolCategory::File, DangerLevel::Dangerous),
        }
    }
}

impl Tool for FileWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = parse(&self.spec, input)?;
        let path = PathArgument::parse(&self.roots, &input.path, Access::Write)?;
        let content = input.content;
        let revise = Box::new(move |old: &Old| Ok(replace(old, &content)));
        Ok(Box::new(Change::new("file_write", path, revise)))
    }
}

/// Gives the content the old file's form; where its encoding cannot hold it, UTF-8.
fn replace(old: &Old, content: &str) -> Revision {
    let form = match old {
        Old::Text(text) => text.form,
        Old::Missing | Old::Opaque => Form::NEW,
    };
    let content = form.with_line_ends(content);
    let fits = form.encode(&content).is_ok();
    let done = match old {
        Old::Missing => "created",
        Old::Text(_) | Old::Opaque => "replaced",
    };
    let lines = content.lines().count();
    let note = if fits {
        String::new()
    } else {
        format!(
            ", now in UTF-8, for {} lacks some of the characters",
            form.encoding.name()
        )
    };
    Revision {
        told: format!("{done}, {lines} lines, {} bytes{note}", content.len()),
        form: if fits {
            form
        } else {
            Form {
                line_end: form.line_end,
                ..Form::NEW
            }
        },
        content,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

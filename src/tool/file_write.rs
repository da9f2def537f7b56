//! `file_write`: a file with the content that the model gives, whole.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Tool;
use super::file::{PathArgument, tool};
use super::file_change::{Change, Old, Revision};
use super::text::Form;
use crate::message::DangerLevel;
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

/// Makes the tool.
pub fn file_write(roots: Arc<Roots>) -> impl Tool {
    tool("file_write", DangerLevel::Dangerous, move |input: Input| {
        let path = PathArgument::parse(&roots, &input.path, Access::Write)?;
        let change = Change::new(move |old| Ok(replace(old, &input.content)));
        Ok((path, change))
    })
}

/// Gives the content the old file's form; where its encoding cannot hold it, UTF-8.
fn replace(old: &Old, content: &str) -> Revision {
    let form = match old {
        Old::Text(text) => text.form,
        Old::Missing | Old::Opaque => Form::NEW,
    };
    let content = form.with_line_ends(content);
    let done = match old {
        Old::Missing => "created",
        Old::Text(_) | Old::Opaque => "replaced",
    };
    let (lines, bytes) = (content.lines().count(), content.len());
    let s = |count| if count == 1 { "" } else { "s" };
    let mut report = format!("{done}, {lines} line{}, {bytes} byte{}", s(lines), s(bytes));
    let mut fitting = form;
    if form.encode(&content).is_err() {
        let name = form.encoding.name();
        report += &format!(", now in UTF-8, for {name} lacks some of the characters");
        fitting = Form {
            line_end: form.line_end,
            ..Form::NEW
        };
    }
    Revision {
        content,
        form: fitting,
        report,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

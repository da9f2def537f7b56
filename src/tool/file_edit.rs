//! `file_edit`: exact text of a file, replaced.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::file::{PathArgument, tool};
use super::file_change::{Change, Old, Revision};
use super::text::Text;
use super::{Refusal, Tool, mask};
use crate::message::DangerLevel;
use crate::sandbox::deny::Access;
use crate::sandbox::paths::Roots;

/// Most matches whose lines an error lists.
const LISTED_MATCHES: usize = 10;

/// Most matches counted: each may cost as much as the text is long.
const COUNTED_MATCHES: usize = 1000;

/// Most lines compared to find the one that was meant: each costs [`COMPARED_LETTERS`] squared.
const COMPARED_LINES: usize = 5000;

/// Longest part of a line that is compared and shown, in characters.
const COMPARED_LETTERS: usize = 120;

/// Least similarity, from 0 to 1, at which a line is taken for the one that was meant.
const LEAST_SIMILARITY: f64 = 0.6;

/// Replaces text in a file of the project. `oldText` has to be exactly what is in the file, white space
/// included, and has to be there once, unless `replaceAll` is true.
///
/// Read the file first. Give enough lines around the change to make `oldText` unique.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Path of the file, relative to the project.
    path: String,
    /// The text to replace, exactly as it is in the file.
    old_text: String,
    /// The text to put in its place; empty to delete it.
    new_text: String,
    /// Whether every place is replaced.
    #[serde(default)]
    replace_all: bool,
}

/// Makes the tool.
pub fn file_edit(roots: Arc<Roots>) -> impl Tool {
    tool("file_edit", DangerLevel::Dangerous, move |input: Input| {
        let path = PathArgument::parse(&roots, &input.path, Access::Write)?;
        let invalid = |why: &str| Err(Refusal::Invalid(why.to_owned()));
        if input.old_text.is_empty() {
            return invalid("`oldText` is empty; to write a whole file, use file_write");
        }
        if input.old_text == input.new_text {
            return invalid("`oldText` and `newText` are the same; there is nothing to change");
        }
        let change = Change::new(move |old| match old {
            Old::Missing => Err("does not exist; to create it, use file_write".to_owned()),
            Old::Opaque => Err("is not text, or too large to edit".to_owned()),
            Old::Text(text) => edit(text, &input),
        });
        Ok((path, change))
    })
}

fn edit(text: &Text, input: &Input) -> Result<Revision, String> {
    // In a file whose lines all end with CR LF, the model's bare line feeds mean those.
    let old = text.form.with_line_ends(&input.old_text);
    let new = text.form.with_line_ends(&input.new_text);
    let content = &text.content;
    let report = match places(content, &old).as_slice() {
        [] => return Err(mask::not_found(&old).unwrap_or_else(|| not_found(content, &old))),
        [place] => format!("replaced the text at line {}", line_of(content, *place)),
        _ if input.replace_all => format!("replaced {} places", content.matches(&old).count()),
        many => return Err(not_unique(content, many)),
    };
    Ok(Revision {
        content: content.replace(&old, &new),
        form: text.form,
        report,
    })
}

/// Finds where the text is, places that overlap included: of two such neither is *the* place.
fn places(content: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < COUNTED_MATCHES
        && let Some(at) = content.get(from..).and_then(|rest| rest.find(old))
    {
        places.push(from + at);
        from += at + step;
    }
    places
}

fn line_of(content: &str, place: usize) -> usize {
    content
        .get(..place)
        .map_or(0, |before| before.matches('\n').count())
        + 1
}

fn not_unique(content: &str, places: &[usize]) -> String {
    let lines: Vec<_> = places
        .iter()
        .take(LISTED_MATCHES)
        .map(|place| line_of(content, *place).to_string())
        .collect();
    let count = places.len();
    let more = if count > LISTED_MATCHES { ", …" } else { "" };
    let least = if count < COUNTED_MATCHES {
        ""
    } else {
        "at least "
    };
    format!(
        "has `oldText` {least}{count} times (lines {}{more}); give more of the lines around the one that is \
         meant, or set `replaceAll`",
        lines.join(", ")
    )
}

fn not_found(content: &str, old: &str) -> String {
    let wanted = old.lines().find(|line| !line.trim().is_empty());
    let nearest = wanted.and_then(|wanted| nearest_line(content, wanted));
    let hint = match nearest {
        None => "read it to see what it has".to_owned(),
        Some((number, line)) if wanted == Some(line) => format!(
            "line {number} is the first of `oldText`, but what follows differs; read on from there"
        ),
        Some((number, line)) => format!(
            "the nearest line is {number}: {:?}",
            line.chars().take(COMPARED_LETTERS).collect::<String>()
        ),
    };
    format!("does not have `oldText`; {hint}")
}

fn nearest_line<'a>(content: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    let short = |line: &str| {
        line.trim()
            .chars()
            .take(COMPARED_LETTERS)
            .collect::<String>()
    };
    let wanted_short = short(wanted);
    content
        .lines()
        .take(COMPARED_LINES)
        .enumerate()
        .map(|(index, line)| {
            let same = if line == wanted { 1.0 } else { 0.0 };
            let likeness = strsim::normalized_levenshtein(&short(line), &wanted_short);
            (likeness + same, index + 1, line)
        })
        .filter(|(likeness, ..)| *likeness >= LEAST_SIMILARITY)
        // The first of those that are equally like it.
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        .map(|(_, number, line)| (number, line))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

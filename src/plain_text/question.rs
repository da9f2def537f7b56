//! The question whether a call may run, and what an answer to it means. Pure.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::style::{Piece, Style};
use super::text::{exposed, exposed_line, one_line, prefixed};
use crate::message::DangerLevel;
use crate::protocol::event::ToolConfirm;

/// Longest name of a tool that is shown, in characters.
const NAME_WIDTH: usize = 80;

/// What the user wants done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Run it.
    Approve,
    /// Run it, and do not ask for the same again in this conversation.
    Remember,
    /// Do not run it, for this reason.
    Refuse(Option<String>),
    /// Run it with another input: this text, or one that is still to be edited.
    Edit(Option<String>),
    /// None of these.
    Unclear,
}

impl Reply {
    /// Reads a typed line. Only a clear yes is one.
    pub(crate) fn read(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (line, ""),
        };
        let reason = (!rest.is_empty()).then(|| rest.to_owned());
        match (word.to_lowercase().as_str(), reason) {
            ("y" | "yes", None) => Self::Approve,
            ("a" | "always", None) => Self::Remember,
            ("e" | "edit", None) => Self::Edit(None),
            ("e" | "edit", Some(input)) if input.starts_with('{') => Self::Edit(Some(input)),
            ("n" | "no", reason) => Self::Refuse(reason),
            _ => Self::Unclear,
        }
    }
}

/// Shows a call that waits for its verdict, whole, so that nothing unseen is approved.
pub(crate) fn show(confirm: &ToolConfirm) -> Vec<Piece> {
    let level = match confirm.danger.level {
        DangerLevel::Safe => "safe",
        DangerLevel::Warning => "warning",
        DangerLevel::Dangerous => "dangerous",
        DangerLevel::Blocked => "blocked",
    };
    let mut pieces = vec![Piece::line(
        Style::Bold,
        format!(
            "? {} wants to run {}",
            confirm.tool_id,
            one_line(&confirm.tool_name, NAME_WIDTH)
        ),
    )];
    pieces.extend(fields(&confirm.input));
    pieces.push(Piece::line(
        danger_style(confirm.danger.level),
        format!("  danger: {level}"),
    ));
    for reason in &confirm.danger.reasons {
        let text = format!("    {}", exposed_line(reason));
        pieces.push(Piece::line(danger_style(confirm.danger.level), text));
    }
    if !confirm.reason.is_empty() {
        let text = format!("  asked because: {}", exposed_line(&confirm.reason));
        pieces.push(Piece::line(Style::Plain, text));
    }
    if let Some(preview) = &confirm.preview {
        pieces.extend(preview.lines().map(difference));
    }
    pieces
}

/// The line after which the user answers.
pub(crate) fn prompt(confirm: &ToolConfirm, now: Timestamp) -> String {
    let left = match seconds_left(confirm, now) {
        Some(seconds) => format!(", {seconds} s left"),
        None => String::new(),
    };
    format!("  y yes, n no [reason], e edit, a always in this conversation{left} > ")
}

/// The name of the field that a text typed in the place of a whole input is for: the first that is text.
pub(crate) fn main_field(input: &Map<String, Value>) -> Option<&str> {
    let mut texts = input.iter().filter(|(_, value)| value.is_string());
    texts.next().map(|(name, _)| name.as_str())
}

/// Reads a line typed in the place of an input: the whole of it as JSON, or another text for its [`main_field`].
///
/// # Errors
///
/// What is wrong with the line.
pub(crate) fn typed(line: &str, input: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let line = line.trim();
    match main_field(input).filter(|_| !line.starts_with('{')) {
        Some(field) => {
            let mut input = input.clone();
            input.insert(field.to_owned(), Value::String(line.to_owned()));
            Ok(input)
        }
        None => edited(line),
    }
}

/// Whole seconds until the question lapses; `None` where it never does.
fn seconds_left(confirm: &ToolConfirm, now: Timestamp) -> Option<i64> {
    let expires: Timestamp = confirm.expires_at.as_deref()?.parse().ok()?;
    Some(expires.duration_since(now).as_secs().max(0))
}

/// Reads an edited input.
///
/// # Errors
///
/// What is wrong with the text; the daemon checks the input against the tool's schema.
pub(crate) fn edited(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err("the input has to be one JSON object".to_owned()),
        Err(error) => Err(format!("not valid JSON: {error}")),
    }
}

/// Each field of an input; text as it is, everything else as JSON.
fn fields(input: &Map<String, Value>) -> Vec<Piece> {
    let field = |(name, value): (&String, &Value)| {
        let name = one_line(name, NAME_WIDTH);
        let text = match value {
            Value::String(text) if text.contains('\n') => {
                format!("  {name}:\n{}", prefixed(&exposed(text), "    │ "))
            }
            Value::String(text) => format!("  {name}: {}", exposed(text)),
            value => format!("  {name}: {}", exposed(&value.to_string())),
        };
        Piece::line(Style::Plain, text)
    };
    match input.is_empty() {
        true => vec![Piece::line(Style::Plain, "  without input")],
        false => input.iter().map(field).collect(),
    }
}

fn difference(line: &str) -> Piece {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::Green,
        Some(b'-') => Style::Red,
        Some(b'@') => Style::Cyan,
        _ => Style::Plain,
    };
    Piece::line(style, format!("  {}", exposed(line)))
}

fn danger_style(level: DangerLevel) -> Style {
    match level {
        DangerLevel::Safe => Style::Green,
        DangerLevel::Warning => Style::Yellow,
        DangerLevel::Dangerous | DangerLevel::Blocked => Style::Red,
    }
}

#[cfg(test)]
mod tests;

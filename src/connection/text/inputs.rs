//! What servers ask in the middle of a call, as lines: how it is shown, and what is typed as an answer.

use serde_json::{Map, Value};

use super::{Typed, notice, request};
use crate::message::InputId;
use crate::plain_text::exposed;
use crate::plain_text::style::{Piece, Style};
use crate::protocol::command::{Command, Configure};
use crate::protocol::input::{InputAction, ToolInput, ToolInputRequest};

/// Shows a question: whose words it has, what they are, and the fields of its form.
pub(super) fn show(request: &ToolInputRequest) -> Vec<Piece> {
    let id = &request.request_id;
    let line = |text: String| Piece::line(Style::Plain, text);
    let mut pieces = vec![
        Piece::line(
            Style::Bold,
            format!("? the MCP server {} asks ({id})", exposed(&request.server)),
        ),
        line(format!("  {}", exposed(&request.message))),
    ];
    match (&request.requested_schema, &request.url) {
        (Some(schema), _) => {
            pieces.extend(fields(schema).map(|field| line(format!("  {field}"))));
            pieces.push(line(format!("/answer {id} {{JSON}}, /decline {id}")));
        }
        (None, url) => {
            let url = url.as_deref().unwrap_or_default();
            pieces.push(line(format!("  to be opened: {}", exposed(url))));
            pieces.push(line(format!("/answer {id} if you open it, /decline {id}")));
        }
    }
    pieces
}

fn fields(schema: &Map<String, Value>) -> impl Iterator<Item = String> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = move |name: &str| {
        required.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(move |(name, field)| {
        let needed = if is_required(name) { "" } else { "?" };
        // As it was asked for: there is no other text that says as much.
        format!("{}{needed}: {}", exposed(name), exposed(&field.to_string()))
    })
}

/// Returns what a line means that answers a question, or says whether any are wanted; `None` for other lines.
pub(super) fn typed<'a>(
    line: &str,
    mut open: impl Iterator<Item = &'a ToolInputRequest>,
) -> Option<Typed> {
    let (word, rest) = match line.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (line, ""),
    };
    let action = match (word, rest) {
        ("/input", "on" | "off") => {
            return Some(request(Command::SessionConfigure(Configure {
                input_requests: Some(rest == "on"),
                ..Configure::default()
            })));
        }
        ("/input", _) => return Some(notice("/input takes on or off")),
        ("/answer", _) => InputAction::Accept,
        ("/decline", _) => InputAction::Decline,
        _ => return None,
    };
    let (name, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_named = !name.is_empty() && !name.starts_with('{');
    let (request_id, rest) = match (is_named, open.next(), open.next()) {
        (true, ..) => (InputId::new(name), after.trim()),
        (false, Some(only), None) => (only.request_id.clone(), rest),
        (false, None, _) => return Some(notice("no server asks for anything")),
        (false, Some(_), Some(_)) => {
            return Some(notice(&format!("several are open; say which: {word} i1")));
        }
    };
    let content = match rest {
        "" => None,
        json => match serde_json::from_str(json) {
            Ok(content) => Some(content),
            Err(error) => {
                return Some(notice(&format!("{word} takes the fields as JSON: {error}")));
            }
        },
    };
    Some(request(Command::ChatToolInput(ToolInput {
        request_id,
        action,
        content,
    })))
}

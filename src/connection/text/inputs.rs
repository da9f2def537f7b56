//! What servers ask in the middle of a call, as lines: how it is shown, and what is typed as an answer.

use serde_json::{Map, Value};

use super::{Typed, notice, request};
use crate::message::InputId;
use crate::plain_text::exposed;
use crate::plain_text::line::first_word;
use crate::plain_text::sampling;
use crate::plain_text::style::{Piece, Style};
use crate::protocol::command::{Command, Configure};
use crate::protocol::input::{
    InputAction, InputOutcome, ToolInput, ToolInputRequest, ToolInputResolved,
};

/// Shows a question: whose words it has, what they are, and the fields of its form.
pub(super) fn show(request: &ToolInputRequest) -> Vec<Piece> {
    let id = &request.request_id;
    if request.purpose.is_some() {
        let mut pieces = sampling::show(request);
        let prompt = sampling::prompt(request).trim_end_matches(" > ");
        let text = format!("{prompt}; by its id: y {id}, n {id}");
        pieces.push(Piece::line(Style::Plain, text));
        return pieces;
    }
    let line = |text: String| Piece::line(Style::Plain, text);
    let asks = format!("? the MCP server {} asks ({id})", exposed(&request.server));
    let mut pieces = vec![
        Piece::line(Style::Bold, asks),
        line(format!("  {}", exposed(&request.message))),
    ];
    if let Some(schema) = &request.requested_schema {
        pieces.extend(fields(schema).map(|field| line(format!("  {field}"))));
        pieces.push(line(format!("/answer {id} {{JSON}}, /decline {id}")));
    } else {
        let url = request.url.as_deref().unwrap_or_default();
        pieces.push(line(format!("  to be opened: {}", exposed(url))));
        pieces.push(line(format!("/answer {id} if you open it, /decline {id}")));
    }
    pieces
}

pub(super) fn settled(resolved: &ToolInputResolved) -> String {
    let outcome = match resolved.outcome {
        InputOutcome::Answered => "answered",
        InputOutcome::Expired => "nobody answered in time",
        InputOutcome::Cancelled => "the question is void",
    };
    format!("{}: {outcome}", resolved.request_id)
}

fn fields(schema: &Map<String, Value>) -> impl Iterator<Item = String> {
    let required = schema.get("required").and_then(Value::as_array);
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(move |(name, field)| {
        let is_required = required.is_some_and(|names| names.iter().any(|needed| needed == name));
        let mark = if is_required { "" } else { "?" };
        // As it was asked for: there is no other text that says as much.
        format!("{}{mark}: {}", exposed(name), exposed(&field.to_string()))
    })
}

/// Returns what a line means that answers a question, or says whether any are wanted; `None` for other lines.
pub(super) fn typed<'a>(
    line: &str,
    mut open: impl Iterator<Item = &'a ToolInputRequest>,
) -> Option<Typed> {
    let (word, rest) = first_word(line);
    let action = match (word, rest) {
        ("/input", "on" | "off") => {
            return Some(request(Command::SessionConfigure(Configure {
                input_requests: Some(rest == "on"),
                ..Configure::default()
            })));
        }
        ("/input", _) => return Some(notice("/input takes on or off")),
        ("/instructions", "on" | "off") => {
            return Some(request(Command::SessionConfigure(Configure {
                trust_questions: Some(rest == "on"),
                ..Configure::default()
            })));
        }
        ("/instructions", _) => return Some(notice("/instructions takes on or off")),
        ("/answer", _) => InputAction::Accept,
        ("/decline", _) => InputAction::Decline,
        _ => return None,
    };
    let (name, after) = first_word(rest);
    let is_named = !name.is_empty() && !name.starts_with('{');
    let (request_id, rest) = match (is_named, open.next(), open.next()) {
        (true, ..) => (InputId::new(name), after),
        (false, Some(only), None) => (only.request_id.clone(), rest),
        (false, None, _) => return Some(notice("no server asks for anything")),
        (false, Some(_), Some(_)) => {
            return Some(notice(&format!("several are open; say which: {word} i1")));
        }
    };
    let content = Some(rest).filter(|rest| !rest.is_empty());
    let content = match content.map(serde_json::from_str).transpose() {
        Ok(content) => content,
        Err(error) => return Some(notice(&format!("{word} takes the fields as JSON: {error}"))),
    };
    Some(request(Command::ChatToolInput(ToolInput {
        request_id,
        action,
        content,
    })))
}

/// Returns the answer of a line to the question whether the model is asked in the user's place: of one by its id, or of the only
/// one where nothing else is asked, so that a yes is for what was meant. `None` for other lines.
pub(super) fn sampled<'a>(
    line: &str,
    open: impl Iterator<Item = &'a ToolInputRequest>,
    is_alone: bool,
) -> Option<Typed> {
    let (word, rest) = first_word(line);
    let mut open = open.filter(|it| it.purpose.is_some());
    let meant = match rest {
        "" if is_alone => open.next()?,
        "" => return None,
        name => open.find(|it| it.request_id.as_str() == name)?,
    };
    let answer = sampling::read(Some(word), meant)?;
    if rest.is_empty() && open.next().is_some() {
        let id = &meant.request_id;
        return Some(notice(&format!("several are open; say which: {word} {id}")));
    }
    Some(request(answer))
}

//! The question of an MCP server whether the model is asked in the user's place, and whether the server gets the answer, as
//! lines. Pure.

use super::style::{Piece, Style};
use super::text::exposed;
use crate::protocol::Command;
use crate::protocol::input::{InputAction, InputPurpose, ToolInput, ToolInputRequest};

/// Returns the question, for people.
pub(crate) fn show(request: &ToolInputRequest) -> Vec<Piece> {
    let server = exposed(&request.server);
    let mut pieces = vec![Piece::line(
        Style::Bold,
        format!("? the MCP server {server} asks the model"),
    )];
    let lines = request.message.lines();
    pieces.extend(lines.map(|line| Piece::line(Style::Plain, format!("  {}", exposed(line)))));
    pieces
}

/// Returns what stands before an answer.
pub(crate) fn prompt(request: &ToolInputRequest) -> &'static str {
    match request.purpose {
        Some(InputPurpose::SampledAnswer) => "y give the server this answer, n no > ",
        Some(InputPurpose::Sampling) | None => "y ask the model, n no > ",
    }
}

/// Returns what a line answers; `None` where it is no answer. At the end of the input nobody is there to be asked.
pub(crate) fn read(line: Option<&str>, request: &ToolInputRequest) -> Option<Command> {
    match line.map(str::trim) {
        Some("y" | "yes") => Some(answer(request, InputAction::Accept)),
        Some("n" | "no") | None => Some(answer(request, InputAction::Decline)),
        Some(_) => None,
    }
}

/// Returns a no.
pub(crate) fn no(request: &ToolInputRequest) -> Command {
    answer(request, InputAction::Decline)
}

fn answer(request: &ToolInputRequest, action: InputAction) -> Command {
    Command::ChatToolInput(ToolInput {
        request_id: request.request_id.clone(),
        action,
        content: None,
    })
}

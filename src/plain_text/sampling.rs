//! What MCP servers ask in the middle of a call. Whether the model is asked in the user's place is answered here; forms and
//! pages are for other clients, and get a no. Pure.

use crate::plain_text::style::{Piece, Style};
use crate::plain_text::text::exposed;
use crate::protocol::Command;
use crate::protocol::input::{InputAction, InputPurpose, ToolInput, ToolInputRequest};

/// Returns the question, for people.
pub(super) fn show(request: &ToolInputRequest) -> Vec<Piece> {
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
pub(super) fn prompt(request: &ToolInputRequest) -> &'static str {
    match request.purpose {
        Some(InputPurpose::SampledAnswer) => "y give the server this answer, n no > ",
        Some(InputPurpose::Sampling) | None => "y ask the model, n no > ",
    }
}

/// Returns what a line answers; `None` where it is no answer. At the end of the input nobody is there to be asked.
pub(super) fn read(line: Option<&str>, request: &ToolInputRequest) -> Option<Command> {
    match line.map(str::trim) {
        Some("y" | "yes") => Some(answer(request, InputAction::Accept)),
        Some("n" | "no") | None => Some(answer(request, InputAction::Decline)),
        Some(_) => None,
    }
}

/// Returns the answer to what is not shown here.
pub(super) fn no(request: &ToolInputRequest) -> Command {
    answer(request, InputAction::Decline)
}

fn answer(request: &ToolInputRequest, action: InputAction) -> Command {
    Command::ChatToolInput(ToolInput {
        request_id: request.request_id.clone(),
        action,
        content: None,
    })
}

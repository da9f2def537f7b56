//! What MCP servers ask in the middle of a call. Whether the model is asked in the user's place is answered here; forms and
//! pages are for other clients, and get a no. Pure.

use super::{Action, Talk, Typing};
use crate::plain_text::style::{Piece, Style};
use crate::plain_text::text::exposed;
use crate::protocol::Command;
use crate::protocol::input::{
    InputAction, InputPurpose, ToolInput, ToolInputRequest, ToolInputResolved,
};

impl Talk {
    pub(super) fn input_settled(&mut self, resolved: &ToolInputResolved) {
        let is_open = matches!(&self.typing, Typing::Sampling(open) if open.request_id == resolved.request_id);
        if is_open {
            self.typing = Typing::Message;
            self.actions.push(Action::Forget);
        }
    }

    pub(super) fn asked_for_input(&mut self, request: &ToolInputRequest) {
        let server = exposed(&request.server);
        let Some(purpose) = request.purpose else {
            let text = format!(
                "the MCP server {server} asks for input, which this client does not show; it gets a no"
            );
            self.say(Style::Yellow, text);
            return self.answer_input(request, InputAction::Decline);
        };
        let mut pieces = vec![Piece::line(
            Style::Bold,
            format!("? the MCP server {server} asks the model"),
        )];
        let lines = request.message.lines();
        pieces.extend(lines.map(|line| Piece::line(Style::Plain, format!("  {}", exposed(line)))));
        let pieces = self.screen.block(pieces);
        self.put(pieces);
        self.typing = Typing::Sampling(Box::new(request.clone()));
        self.actions.push(Action::Read {
            prompt: match purpose {
                InputPurpose::Sampling => "y ask the model, n no > ",
                InputPurpose::SampledAnswer => "y give the server this answer, n no > ",
            }
            .to_owned(),
            fresh: true,
        });
    }

    /// Takes an answer; at the end of the input nobody is there to be asked.
    pub(super) fn sampling(&mut self, request: &ToolInputRequest, line: Option<&str>) {
        match line.map(str::trim) {
            Some("y" | "yes") => self.answer_input(request, InputAction::Accept),
            Some("n" | "no") | None => self.answer_input(request, InputAction::Decline),
            Some(_) => self.asked_for_input(request),
        }
    }

    fn answer_input(&mut self, request: &ToolInputRequest, action: InputAction) {
        self.request(Command::ChatToolInput(ToolInput {
            request_id: request.request_id.clone(),
            action,
            content: None,
        }));
    }
}

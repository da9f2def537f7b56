//! The question whether files may speak for the user.

use super::{Action, Talk, Typing};
use crate::plain_text::style::Style;
use crate::plain_text::trust;
use crate::protocol::command::{Configure, Layer};
use crate::protocol::event::{Event, Ready};
use crate::protocol::trust::{TrustConfirm, TrustResolved};
use crate::protocol::{Command, MCP_PROMPTS};

/// Returns whether a request has such questions asked here.
pub(super) fn is_opening(command: &Command) -> bool {
    matches!(command, Command::SessionConfigure(configure) if configure.trust_questions.is_some())
}

impl Talk {
    /// Has the session ask, and say what MCP servers say by themselves, where somebody is there.
    pub(super) fn want_trust(&mut self, ready: &Ready) {
        if !self.options.trusts {
            return;
        }
        let mut layers = ready.layers.clone();
        layers.push(Layer::Servers);
        let knows_servers = ready.features.iter().any(|it| it == MCP_PROMPTS);
        self.request(Command::SessionConfigure(Configure {
            trust_questions: Some(true),
            // What the model is asked in the user's place is answered here, and nothing else that servers ask.
            input_requests: knows_servers.then_some(true),
            layers: knows_servers.then_some(layers),
            ..Configure::default()
        }));
    }

    pub(super) fn trust_event(&mut self, event: &Event) {
        match event {
            Event::ChatTrustConfirm(confirm) => self.asked_to_trust(confirm),
            Event::ChatTrustResolved(resolved) => self.trust_settled(resolved),
            _ => {}
        }
    }

    fn asked_to_trust(&mut self, confirm: &TrustConfirm) {
        let pieces = self.screen.block(trust::show(confirm));
        self.put(pieces);
        self.typing = Typing::Trust(confirm.clone());
        self.actions.push(Action::Read {
            prompt: trust::PROMPT.to_owned(),
            fresh: true,
        });
    }

    /// Takes an answer; at the end of the input nobody is there to be asked.
    pub(super) fn trusted(&mut self, confirm: &TrustConfirm, line: Option<&str>) {
        let id = &confirm.request_id;
        let answer = line.map_or_else(|| Some(trust::no(id)), |line| trust::read(line, id));
        match answer {
            Some(answer) => drop(self.request(Command::ChatTrustApprove(answer))),
            None => self.asked_to_trust(confirm),
        }
    }

    fn trust_settled(&mut self, resolved: &TrustResolved) {
        let is_open =
            matches!(&self.typing, Typing::Trust(open) if open.request_id == resolved.request_id);
        if is_open {
            self.typing = Typing::Message;
            self.actions.push(Action::Forget);
        }
        self.say(Style::Dim, trust::settled(resolved));
    }
}

//! Questions that wait for nothing but an answer: whether more may be spent, whether files may speak for the user, whether the
//! model answers a server. They are shown one after the other, and after those whether a call may run.

use super::{Action, Talk, Typing};
use crate::plain_text::line::first_word;
use crate::plain_text::style::{Piece, Style};
use crate::plain_text::text::exposed;
use crate::plain_text::{budget, sampling, trust};
use crate::protocol::budget::BudgetConfirm;
use crate::protocol::command::{Configure, Layer};
use crate::protocol::event::{Event, Ready};
use crate::protocol::input::ToolInputRequest;
use crate::protocol::trust::TrustConfirm;
use crate::protocol::{Command, MCP_PROMPTS};

/// The most such questions that wait: one of money and one of files in each of a session's conversations that a person has in mind.
const MAX_ASIDES: usize = 32;

/// A question that is about no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Aside {
    /// Whether more may be spent.
    Money(BudgetConfirm),
    /// Whether files may speak for the user.
    Trust(TrustConfirm),
    /// Whether the model answers a server.
    Sampling(Box<ToolInputRequest>),
}

impl Aside {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Money(one), Self::Money(other)) => one.request_id == other.request_id,
            (Self::Trust(one), Self::Trust(other)) => one.request_id == other.request_id,
            (Self::Sampling(one), Self::Sampling(other)) => one.request_id == other.request_id,
            (Self::Money(_) | Self::Trust(_) | Self::Sampling(_), _) => false,
        }
    }

    fn show(&self) -> (Vec<Piece>, String) {
        match self {
            Self::Money(confirm) => (budget::show(confirm), budget::prompt(confirm)),
            Self::Trust(confirm) => (trust::show(confirm), trust::PROMPT.to_owned()),
            Self::Sampling(request) => (
                sampling::show(request),
                sampling::prompt(request).to_owned(),
            ),
        }
    }

    /// Returns what a line answers; `None` where it is no answer. At the end of the input nobody is there to be asked.
    fn read(&self, line: Option<&str>) -> Option<Command> {
        match (self, line) {
            (Self::Money(confirm), Some(line)) => {
                budget::read(line, &confirm.request_id).map(Command::ChatBudgetApprove)
            }
            (Self::Money(confirm), None) => Some(Command::ChatBudgetApprove(budget::stop(
                &confirm.request_id,
            ))),
            (Self::Trust(confirm), Some(line)) => {
                // A no may have a reason, which nobody reads.
                let is_no = first_word(line.trim()).0.eq_ignore_ascii_case("n");
                let answer = trust::read(line, &confirm.request_id);
                let no = || is_no.then(|| trust::no(&confirm.request_id));
                answer.or_else(no).map(Command::ChatTrustApprove)
            }
            (Self::Trust(confirm), None) => {
                Some(Command::ChatTrustApprove(trust::no(&confirm.request_id)))
            }
            (Self::Sampling(request), line) => sampling::read(line, request),
        }
    }
}

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

    /// Takes an event about such a question.
    pub(super) fn aside_event(&mut self, event: &Event) {
        match event {
            Event::ChatBudgetConfirm(confirm) => self.aside(Aside::Money((**confirm).clone())),
            Event::ChatTrustConfirm(confirm) => self.aside(Aside::Trust((**confirm).clone())),
            Event::ChatToolInputRequest(it) if it.purpose.is_some() => {
                self.aside(Aside::Sampling(it.clone()));
            }
            Event::ChatToolInputRequest(it) => {
                let text = format!(
                    "the MCP server {} asks for input, which this client does not show; it gets a no",
                    exposed(&it.server)
                );
                self.say(Style::Yellow, text);
                self.request(sampling::no(it));
            }
            Event::ChatToolInputResolved(it) => {
                let is_it = |open: &Aside| matches!(open, Aside::Sampling(open) if open.request_id == it.request_id);
                self.aside_settled(is_it, None);
            }
            Event::ChatBudgetResolved(it) => {
                let text = budget::settled(it);
                let is_it = |open: &Aside| matches!(open, Aside::Money(open) if open.request_id == it.request_id);
                self.aside_settled(is_it, Some(text));
            }
            Event::ChatTrustResolved(it) => {
                let text = trust::settled(it);
                let is_it = |open: &Aside| matches!(open, Aside::Trust(open) if open.request_id == it.request_id);
                self.aside_settled(is_it, Some(text));
            }
            _ => {}
        }
    }

    fn aside(&mut self, aside: Aside) {
        // After a gap the session announces again what is open.
        if self.asides.iter().any(|open| open.is_same(&aside)) {
            return;
        }
        if self.asides.len() >= MAX_ASIDES {
            let text = format!("{MAX_ASIDES} questions wait already; one more is not shown");
            return self.say(Style::Red, text);
        }
        self.asides.push_back(aside);
        if self.typing == Typing::Message {
            self.put_aside();
        }
    }

    /// Puts the first of them on the screen, where there is one.
    pub(super) fn put_aside(&mut self) {
        let Some(aside) = self.asides.front() else {
            return;
        };
        let (pieces, prompt) = aside.show();
        let pieces = self.screen.block(pieces);
        self.put(pieces);
        self.typing = Typing::Aside;
        let fresh = true;
        self.actions.push(Action::Read { prompt, fresh });
    }

    /// Takes an answer to the one on the screen.
    pub(super) fn answer_aside(&mut self, line: Option<&str>) {
        let answer = self.asides.front().map(|aside| aside.read(line));
        match answer {
            Some(None) => self.put_aside(),
            Some(Some(answer)) => {
                self.asides.pop_front();
                self.request(answer);
                self.ask();
            }
            None => self.ask(),
        }
    }

    /// One is settled, by whomever. What was typed for it so far is dropped.
    fn aside_settled(&mut self, is_it: impl Fn(&Aside) -> bool, text: Option<String>) {
        let was_shown = self.typing == Typing::Aside && self.asides.front().is_some_and(&is_it);
        self.asides.retain(|open| !is_it(open));
        if was_shown {
            self.typing = Typing::Message;
            self.actions.push(Action::Forget);
        }
        if let Some(text) = text {
            self.say(Style::Dim, text);
        }
        if was_shown {
            self.ask();
        }
    }
}

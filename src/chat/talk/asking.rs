//! Questions whether a call may run: shown one after the other, answered, and asked again where an
//! edited input does not fit.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Action, Talk, Typing};
use crate::chat::question::{self, Reply};
use crate::chat::style::Style;
use crate::message::ToolId;
use crate::protocol::Command;
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::{Event, ToolConfirm};

impl Talk {
    /// Takes what the user made of a call's input.
    pub(in crate::chat) fn edited(
        &mut self,
        text: Result<String, String>,
        now: Timestamp,
    ) -> Vec<Action> {
        let Typing::Input(id) = std::mem::replace(&mut self.typing, Typing::Message) else {
            return Vec::new();
        };
        match text.and_then(|text| question::edited(&text)) {
            Ok(input) => self.judge(&id, true, Some(input), Remember::Once, None, now),
            Err(problem) => {
                let mut actions = self.say(Style::Red, format!("error: {problem}"));
                actions.extend(self.ask(now));
                actions
            }
        }
    }

    /// Has the next line be the edited input, where there is no editor.
    pub(in crate::chat) fn type_input(&mut self) -> Vec<Action> {
        vec![Action::Read {
            prompt: "  the input as one line of JSON (no $VISUAL or $EDITOR is set) > ".to_owned(),
            fresh: true,
        }]
    }

    pub(super) fn confirm(&mut self, confirm: &ToolConfirm, now: Timestamp) -> Vec<Action> {
        let is_known = self
            .questions
            .iter()
            .any(|open| open.tool_id == confirm.tool_id);
        if is_known {
            return Vec::new();
        }
        self.questions.push_back(confirm.clone());
        match self.questions.len() {
            1 => self.ask(now),
            _ => Vec::new(),
        }
    }

    /// Puts the first open question on the screen, where there is one.
    pub(super) fn ask(&mut self, now: Timestamp) -> Vec<Action> {
        let Some(confirm) = self.questions.front() else {
            return Vec::new();
        };
        self.typing = Typing::Verdict(confirm.tool_id.clone());
        let read = Action::Read {
            prompt: question::prompt(confirm, now),
            fresh: true,
        };
        let pieces = self.screen.block(question::show(confirm));
        let mut actions: Vec<Action> = pieces.into_iter().map(Action::Show).collect();
        actions.push(read);
        actions
    }

    /// A question is settled, by whomever.
    pub(super) fn settled(&mut self, id: &ToolId, event: &Event, now: Timestamp) -> Vec<Action> {
        let was_first = self
            .questions
            .front()
            .is_some_and(|first| first.tool_id == *id);
        self.questions.retain(|open| open.tool_id != *id);
        self.judged.retain(|_, judged| judged.tool_id != *id);
        let mut actions = self.show(event);
        if was_first {
            self.typing = Typing::Message;
            actions.extend(self.ask(now));
        }
        actions
    }

    pub(super) fn verdict(&mut self, id: &ToolId, line: &str, now: Timestamp) -> Vec<Action> {
        match Reply::read(line) {
            Reply::Approve => self.judge(id, true, None, Remember::Once, None, now),
            Reply::Remember => self.judge(id, true, None, Remember::Conversation, None, now),
            Reply::Refuse(reason) => self.judge(id, false, None, Remember::Once, reason, now),
            Reply::Edit => match self.questions.front() {
                Some(confirm) => {
                    self.typing = Typing::Input(id.clone());
                    vec![Action::Edit(confirm.input.clone())]
                }
                None => Vec::new(),
            },
            Reply::Unclear => {
                let mut actions = self.say(Style::Red, "type y, n, e or a");
                actions.extend(self.ask(now));
                actions
            }
        }
    }

    /// Sends a verdict and asks the next question.
    pub(super) fn judge(
        &mut self,
        tool_id: &ToolId,
        approved: bool,
        input: Option<Map<String, Value>>,
        remember: Remember,
        reason: Option<String>,
        now: Timestamp,
    ) -> Vec<Action> {
        let Some(at) = self
            .questions
            .iter()
            .position(|open| open.tool_id == *tool_id)
        else {
            return self.ask(now);
        };
        let confirm = self.questions.remove(at);
        let (number, action) = self.request(Command::ChatToolApprove(ToolApprove {
            tool_id: tool_id.clone(),
            approved,
            input,
            remember,
            reason,
        }));
        self.judged.extend(confirm.map(|confirm| (number, confirm)));
        let mut actions = vec![action];
        actions.extend(self.ask(now));
        actions
    }
}

//! Questions whether a call may run: shown one after the other, answered, and asked again where an
//! edited input does not fit.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Action, Talk, Typing};
use crate::message::ToolId;
use crate::plain_text::exposed_line;
use crate::plain_text::question::{self, Reply};
use crate::plain_text::style::Style;
use crate::protocol::Command;
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::{Event, Outcome, ToolConfirm, ToolResolved};

/// A line that ends so soon after its question was settled was begun before that.
const LATE: Duration = Duration::from_secs(10);

/// How a call is judged.
enum Judgement {
    /// It runs, with this input where one is given, and so does the same again as far as this reaches.
    Approved(Option<Map<String, Value>>, Remember),
    /// It does not run, for this reason.
    Denied(Option<String>),
    /// It does not run: nobody is there to be asked.
    Unattended,
}

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
            Ok(input) => {
                let approved = Judgement::Approved(Some(input), Remember::Once);
                self.judge(&id, approved, now)
            }
            Err(problem) => {
                let mut actions = self.say(Style::Red, format!("error: {problem}"));
                actions.extend(self.ask(now));
                actions
            }
        }
    }

    /// Has the next line be the edited input, where there is no editor or it did not start.
    pub(in crate::chat) fn type_input(&mut self, problem: Option<&str>) -> Vec<Action> {
        let Some(confirm) = self.questions.front() else {
            return Vec::new();
        };
        let input = Value::Object(confirm.input.clone()).to_string();
        let prompt = match question::main_field(&confirm.input) {
            Some(field) => format!("  another {field:?}, or the whole input as JSON > "),
            None => "  the input as one line of JSON > ".to_owned(),
        };
        let mut actions = match problem {
            Some(problem) => self.say(Style::Red, format!("error: {problem}")),
            None => Vec::new(),
        };
        let shown = format!("  it is: {}", exposed_line(&input));
        actions.extend(self.say(Style::Plain, shown));
        actions.push(Action::Read {
            prompt,
            fresh: true,
        });
        actions
    }

    /// Takes a line typed in the place of an input; an empty one changes nothing.
    pub(super) fn typed_input(
        &mut self,
        id: &ToolId,
        line: Option<&str>,
        now: Timestamp,
    ) -> Vec<Action> {
        let confirm = self.questions.front().filter(|open| open.tool_id == *id);
        let line = line.map(str::trim).filter(|line| !line.is_empty());
        let (Some(confirm), Some(line)) = (confirm, line) else {
            return self.ask(now);
        };
        match question::typed(line, &confirm.input) {
            Ok(input) => {
                let approved = Judgement::Approved(Some(input), Remember::Once);
                self.judge(id, approved, now)
            }
            Err(problem) => {
                let mut actions = self.say(Style::Red, format!("error: {problem}"));
                actions.extend(self.ask(now));
                actions
            }
        }
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
        self.keeping.begin(confirm.expires_at.as_deref(), now);
        let read = Action::Read {
            prompt: question::prompt(confirm, now),
            fresh: true,
        };
        let pieces = self.screen.block(question::show(confirm));
        let mut actions: Vec<Action> = pieces.into_iter().map(Action::Show).collect();
        actions.push(read);
        actions
    }

    /// A question is settled, by whomever. What was typed for it so far is dropped.
    pub(super) fn settled(
        &mut self,
        resolved: &ToolResolved,
        event: &Event,
        now: Timestamp,
    ) -> Vec<Action> {
        let id = &resolved.tool_id;
        let was_first = self
            .questions
            .front()
            .is_some_and(|first| first.tool_id == *id);
        self.questions.retain(|open| open.tool_id != *id);
        self.judged.retain(|_, judged| judged.tool_id != *id);
        let mut actions = self.show(event);
        if was_first {
            self.typing = Typing::Message;
            // After a cancel of their own people type something new.
            let is_late = self.wishes.attended && resolved.outcome != Outcome::Cancelled;
            self.passed = is_late.then(|| (id.clone(), now));
            actions.push(Action::Forget);
            if resolved.outcome == Outcome::Approved || resolved.outcome == Outcome::Denied {
                let text = format!("{id}: answered elsewhere");
                actions.extend(self.say(Style::Yellow, text));
            }
            actions.extend(self.ask(now));
        }
        actions
    }

    /// Whether a line was meant for a question that was settled before its end was typed; said once for each question.
    pub(super) fn came_late(&mut self, line: &str, now: Timestamp) -> Option<ToolId> {
        if line.trim().is_empty() {
            return None;
        }
        let (id, settled) = self.passed.take()?;
        let is_soon = now.duration_since(settled).unsigned_abs() < LATE;
        (is_soon || Reply::read(line) != Reply::Unclear).then_some(id)
    }

    /// Takes the end of the input in the place of a verdict.
    pub(super) fn unanswered(&mut self, id: &ToolId, now: Timestamp) -> Vec<Action> {
        let judgement = match self.wishes.attended {
            true => Judgement::Denied(None),
            false => Judgement::Unattended,
        };
        self.judge(id, judgement, now)
    }

    pub(super) fn verdict(&mut self, id: &ToolId, line: &str, now: Timestamp) -> Vec<Action> {
        match Reply::read(line) {
            Reply::Approve => self.judge(id, Judgement::Approved(None, Remember::Once), now),
            Reply::Remember => {
                self.judge(id, Judgement::Approved(None, Remember::Conversation), now)
            }
            Reply::Refuse(reason) => self.judge(id, Judgement::Denied(reason), now),
            Reply::Edit(Some(text)) => {
                self.typing = Typing::Input(id.clone());
                self.edited(Ok(text), now)
            }
            Reply::Edit(None) => match self.questions.front() {
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
    fn judge(&mut self, tool_id: &ToolId, judgement: Judgement, now: Timestamp) -> Vec<Action> {
        let Some(at) = self
            .questions
            .iter()
            .position(|open| open.tool_id == *tool_id)
        else {
            return self.ask(now);
        };
        let confirm = self.questions.remove(at);
        let mut verdict = ToolApprove::new(tool_id.clone(), false);
        match judgement {
            Judgement::Approved(input, remember) => {
                verdict.approved = true;
                verdict.input = input;
                verdict.remember = remember;
            }
            Judgement::Denied(reason) => {
                if !self.wishes.attended {
                    self.denied.insert(tool_id.clone());
                }
                verdict.reason = reason;
            }
            Judgement::Unattended => verdict.unattended = true,
        }
        let (number, action) = self.request(Command::ChatToolApprove(verdict));
        self.judged.extend(confirm.map(|confirm| (number, confirm)));
        let mut actions = vec![action];
        actions.extend(self.ask(now));
        actions
    }
}

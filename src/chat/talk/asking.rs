//! Questions whether a call may run: shown one after the other, answered, and asked again where an
//! edited input does not fit.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Action, Passed, Talk, Typing};
use crate::plain_text::exposed_line;
use crate::plain_text::question::{self, Asked, Reply};
use crate::plain_text::style::Style;
use crate::protocol::Command;
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::{Event, Outcome, ToolConfirm, ToolResolved};

/// A line that ends so soon after its question was settled was begun before that.
const LATE: Duration = Duration::from_secs(10);

impl Talk {
    /// Takes what the user made of a call's input.
    pub(in crate::chat) fn edited(
        &mut self,
        text: Result<String, String>,
        now: Timestamp,
    ) -> Vec<Action> {
        self.now = now;
        if let Typing::Input(asked) = std::mem::take(&mut self.typing) {
            self.input(&asked, text.and_then(|text| question::edited(&text)));
        }
        self.done()
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
        if let Some(problem) = problem {
            self.say(Style::Red, format!("error: {problem}"));
        }
        self.say(Style::Plain, format!("  it is: {}", exposed_line(&input)));
        let fresh = true;
        self.actions.push(Action::Read { prompt, fresh });
        self.done()
    }

    /// Takes a line typed in the place of an input; an empty one changes nothing.
    pub(super) fn typed_input(&mut self, asked: &Asked, line: Option<&str>) {
        let confirm = self.questions.front().filter(|open| asked.is(open));
        let line = line.map(str::trim).filter(|line| !line.is_empty());
        match (confirm, line) {
            (Some(confirm), Some(line)) => {
                let input = question::typed(line, &confirm.input);
                self.input(asked, input);
            }
            _ => self.ask(),
        }
    }

    fn input(&mut self, asked: &Asked, input: Result<Map<String, Value>, String>) {
        match (self.open(asked), input) {
            (Some(confirm), Ok(input)) => self.judge(ToolApprove {
                input: Some(input),
                ..ToolApprove::of(confirm, true)
            }),
            (_, Err(problem)) => self.ask_again(format!("error: {problem}")),
            (None, Ok(_)) => self.ask(),
        }
    }

    fn open(&self, asked: &Asked) -> Option<&ToolConfirm> {
        self.questions.iter().find(|open| asked.is(open))
    }

    pub(super) fn confirm(&mut self, confirm: &ToolConfirm) {
        if self.open(&Asked::of(confirm)).is_some() {
            return;
        }
        self.questions.push_back(confirm.clone());
        if self.questions.len() == 1 {
            self.ask();
        }
    }

    /// Puts the first open question on the screen, where there is one, or the first that is about no call. One of those that is
    /// there stays until it is answered.
    pub(super) fn ask(&mut self) {
        if self.typing == Typing::Aside {
            return;
        }
        let Some(confirm) = self.questions.front() else {
            return self.put_aside();
        };
        self.typing = Typing::Verdict(Asked::of(confirm));
        let prompt = question::prompt(confirm, self.now);
        let expires_at = confirm.expires_at.clone();
        let pieces = self.screen.block(question::show(confirm));
        self.keep_open(expires_at.as_deref());
        self.put(pieces);
        let fresh = true;
        self.actions.push(Action::Read { prompt, fresh });
    }

    fn ask_again(&mut self, problem: impl Into<String>) {
        self.say(Style::Red, problem);
        self.ask();
    }

    /// A question is settled, by whomever. What was typed for it so far is dropped.
    pub(super) fn settled(&mut self, resolved: &ToolResolved, event: &Event) {
        let asked = Asked {
            tool_id: resolved.tool_id.clone(),
            host: resolved.host.clone(),
        };
        let was_first = self.questions.front().is_some_and(|it| asked.is(it));
        self.questions.retain(|open| !asked.is(open));
        let once_only = self.once_only(resolved, &asked);
        self.judged.retain(|_, judged| !asked.is(judged));
        self.show(event);
        if let Some(text) = once_only {
            self.say(Style::Yellow, text);
        }
        if !was_first || self.typing == Typing::Aside {
            return;
        }
        self.typing = Typing::Message;
        // After a cancel of their own people type something new.
        let is_late = self.options.attended && resolved.outcome != Outcome::Cancelled;
        self.passed = is_late.then(|| Passed {
            asked: asked.clone(),
            settled: self.now,
            was_typed_for: true,
        });
        self.actions.push(Action::Forget);
        if matches!(resolved.outcome, Outcome::Approved | Outcome::Denied) {
            self.say(Style::Yellow, format!("{asked}: answered elsewhere"));
        }
        self.ask();
    }

    /// Says that an approval which was to be remembered is not.
    fn once_only(&self, resolved: &ToolResolved, asked: &Asked) -> Option<String> {
        if resolved.outcome != Outcome::Approved || resolved.remember.is_some() {
            return None;
        }
        let mut judged = self.judged.iter();
        let (number, confirm) = judged.find(|(_, it)| asked.is(it))?;
        match self.unanswered.get(number) {
            // A host that is approved is for the conversation anyway.
            Some(Command::ChatToolApprove(it)) if it.remember != Remember::Once => {
                (confirm.host.is_none()).then(|| question::once_only(confirm, self.trust))
            }
            _ => None,
        }
    }

    /// Whether a line was meant for a question that was settled before its end was typed; said once for each question.
    pub(super) fn came_late(&mut self, line: &str) -> Option<Asked> {
        if line.trim().is_empty() {
            return None;
        }
        let Passed {
            asked,
            settled,
            was_typed_for,
        } = self.passed.take()?;
        let is_soon = self.now.duration_since(settled).unsigned_abs() < LATE;
        (was_typed_for && is_soon || Reply::read(line) != Reply::Unclear).then_some(asked)
    }

    /// Takes note that nothing had been typed for the question that was settled: the next line was begun after it.
    pub(in crate::chat) fn nothing_was_typed(&mut self) {
        if let Some(passed) = &mut self.passed {
            passed.was_typed_for = false;
        }
    }

    /// Says that a line is dropped that was for a question which is settled.
    pub(super) fn say_late(&mut self, asked: &Asked) {
        let back = match self.options.composes {
            true => "; the arrow up brings it back",
            false => "",
        };
        self.say(
            Style::Yellow,
            format!("{asked} was settled before this line was typed to its end; it is dropped, not sent{back}"),
        );
    }

    /// Takes a line in the place of a verdict, or the end of the input.
    pub(super) fn verdict(&mut self, asked: &Asked, line: Option<&str>) {
        let Some(confirm) = self.open(asked).cloned() else {
            return self.ask();
        };
        let Some(line) = line else {
            return self.judge(ToolApprove {
                unattended: !self.options.attended,
                ..ToolApprove::of(&confirm, false)
            });
        };
        match Reply::read(line) {
            Reply::Edit(None) => {
                self.typing = Typing::Input(asked.clone());
                self.actions.push(Action::Edit(confirm.input));
            }
            reply => match reply.verdict(&confirm) {
                Ok(Some(verdict)) => self.judge(verdict),
                Ok(None) => self.ask_again("type y, n, e, a or never"),
                Err(problem) => self.ask_again(format!("error: {problem}")),
            },
        }
    }

    /// Sends a verdict and asks the next question.
    fn judge(&mut self, verdict: ToolApprove) {
        let mut open = self.questions.iter();
        let at = open.position(|open| open.tool_id == verdict.tool_id && open.host == verdict.host);
        if let Some(confirm) = at.and_then(|at| self.questions.remove(at)) {
            let number = self.request(Command::ChatToolApprove(verdict));
            self.judged.insert(number, confirm);
        }
        self.ask();
    }
}

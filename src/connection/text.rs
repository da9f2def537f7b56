//! Text mode, `/ws?text=1`: a person with a bare WebSocket client types lines and reads lines.
//!
//! Pure but for the clock in a question's remaining time, which is handed in. What is typed becomes
//! the same requests as anybody's, and what is shown is made of the same frames, so this is a way to
//! look at a session and no second protocol. How things look is in `plain_text`; there are no colours here.

mod inputs;

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::message::{BudgetId, Notice, Severity, TrustId};
use crate::plain_text::budget;
use crate::plain_text::exposed_line;
use crate::plain_text::frame::Frame;
use crate::plain_text::line::{COMMANDS, Line, conversation, first_word};
use crate::plain_text::question::{self, Reply};
use crate::plain_text::render::Screen;
use crate::plain_text::style::{Piece, Style};
use crate::plain_text::trust;
use crate::protocol::command::{ChatCancel, Command};
use crate::protocol::event::{Event, Ready, ToolConfirm};
use crate::protocol::input::ToolInputRequest;
use crate::protocol::{SessionCode, word};

/// What `/help` says before the commands.
const HELP: &str = "\
a line            is said to the model
y, n [REASON]     answer the open question: yes, no
e {JSON}          yes with this input instead
a, never          yes, no, and the same again; a project, never session, a in src: how far, and for which folder
y t3, n t3, ...   the same for the question about t3, where several are open
y HOST, n HOST    answer the question for this host
y 2, y all, f     more may be spent: US dollars, or without a cap; f ends after a last answer
/input on         be asked what MCP servers want to know in the middle of a call; off
/instructions on  be asked whether files of the project may speak for you, y or n; off
/answer {JSON}    give them that; /decline does not; with the id where several ask: /answer i2 {JSON}
y i1, n i1        the model answers a server in your place, or does not; y and n alone where no call is asked about
/cancel           stop what runs";

/// Questions that are known by their ids though they are answered.
const ASKED: usize = 64;

/// Characters of an unfinished line that are held back before they are shown all the same.
const LINE_CHARS: usize = 2_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typed {
    Nothing,
    Request(Box<Command>),
    /// A notice for whoever typed it.
    Notice(Notice),
    /// The socket is to be closed.
    Quit,
}

#[derive(Default)]
pub(super) struct Text {
    screen: Screen,
    /// Open questions, the oldest first.
    questions: VecDeque<ToolConfirm>,
    /// What servers ask, the oldest first.
    inputs: VecDeque<ToolInputRequest>,
    /// The question whether more may be spent.
    money: Option<BudgetId>,
    /// Questions whether files may speak for the user, the oldest first.
    trust: VecDeque<TrustId>,
    /// What was asked last, open or not.
    asked: VecDeque<String>,
    /// The beginning of a line whose end has not come yet.
    begun: String,
}

impl Text {
    /// Returns what a frame adds to the text, in whole lines; `None` where it adds nothing yet.
    pub(super) fn show(&mut self, frame: &str, now: Timestamp) -> Option<String> {
        let event = Frame::read(frame)?.event;
        let pieces = match &event {
            Event::SessionReady(ready) => self.screen.block(greeting(ready)),
            Event::ChatToolConfirm(confirm) => self.question(confirm, now),
            Event::ChatToolInputRequest(request) => {
                self.inputs
                    .retain(|open| open.request_id != request.request_id);
                self.inputs.push_back((**request).clone());
                self.note(request.request_id.as_str());
                self.screen.block(inputs::show(request))
            }
            Event::ChatToolInputResolved(resolved) => {
                self.inputs
                    .retain(|open| open.request_id != resolved.request_id);
                self.screen.line(Style::Dim, inputs::settled(resolved))
            }
            Event::ChatBudgetConfirm(confirm) => {
                let mut pieces = budget::show(confirm);
                let prompt = budget::prompt(confirm);
                pieces.push(Piece::line(Style::Plain, prompt.trim_end_matches(" > ")));
                self.money = Some(confirm.request_id.clone());
                self.note(confirm.request_id.as_str());
                self.screen.block(pieces)
            }
            Event::ChatBudgetResolved(resolved) => {
                self.money.take_if(|open| *open == resolved.request_id);
                self.screen.line(Style::Dim, budget::settled(resolved))
            }
            Event::ChatTrustConfirm(confirm) => {
                let mut pieces = trust::show(confirm);
                let (prompt, id) = (trust::PROMPT.trim_end_matches(" > "), &confirm.request_id);
                let text = format!("{prompt}; by its id: y {id}, n {id}");
                pieces.push(Piece::line(Style::Plain, text));
                self.trust.retain(|open| open != id);
                self.trust.push_back(id.clone());
                self.note(id.as_str());
                self.screen.block(pieces)
            }
            Event::ChatTrustResolved(resolved) => {
                self.trust.retain(|open| *open != resolved.request_id);
                self.screen.line(Style::Dim, trust::settled(resolved))
            }
            _ => self.screen.show(&event),
        };
        match &event {
            Event::ChatToolResolved(resolved) => self
                .questions
                .retain(|open| open.tool_id != resolved.tool_id || open.host != resolved.host),
            Event::SessionError(error) if error.code == SessionCode::ReplayGap => {
                // Whether they were answered may be among what was missed; what follows asks those again that are open.
                self.questions.clear();
                self.inputs.clear();
                self.trust.clear();
                self.money = None;
            }
            _ => {}
        }
        for Piece::Answer(text) | Piece::Aside(_, text) in pieces {
            self.begun.push_str(&text);
        }
        self.lines()
    }

    /// Returns what a yes may be meant for besides money, by its name.
    fn open(&self) -> Vec<&str> {
        let trust = self.trust.iter().map(TrustId::as_str);
        let calls = self.questions.iter().map(name_of);
        let sampled = self.inputs.iter().filter(|it| it.purpose.is_some());
        let sampled = sampled.map(|it| it.request_id.as_str());
        trust.chain(calls).chain(sampled).collect()
    }

    /// Notes that something was asked.
    fn note(&mut self, id: &str) {
        if !self.asked.iter().any(|known| known == id) {
            self.asked.truncate(ASKED - 1);
            self.asked.push_front(id.to_owned());
        }
    }

    /// Takes the lines that are whole; the rest too where it is long.
    fn lines(&mut self) -> Option<String> {
        let end = match self.begun.rfind('\n') {
            Some(end) => end + 1,
            None if self.begun.len() > LINE_CHARS => self.begun.len(),
            None => return None,
        };
        let rest = self.begun.split_off(end);
        let whole = std::mem::replace(&mut self.begun, rest);
        // The frame's own end is the end of its last line.
        Some(whole.strip_suffix('\n').unwrap_or(&whole).to_owned())
    }

    fn question(&mut self, confirm: &ToolConfirm, now: Timestamp) -> Vec<Piece> {
        let known =
            |open: &ToolConfirm| open.tool_id == confirm.tool_id && open.host == confirm.host;
        if !self.questions.iter().any(known) {
            self.questions.push_back(confirm.clone());
            self.note(confirm.tool_id.as_str());
        }
        let mut pieces = question::show(confirm);
        let prompt = question::prompt(confirm, now);
        let mut prompt = prompt.replace("e edit", "e {JSON} edit");
        if let Some(host) = &confirm.host {
            let host = exposed_line(host);
            for (letter, rest) in [("y", " yes"), ("n", " no"), ("a", " always"), ("never", "")] {
                let named = format!("{letter} {host}{rest}");
                prompt = prompt.replace(&format!("{letter}{rest}"), &named);
            }
        }
        pieces.push(Piece::line(Style::Plain, prompt.trim_end_matches(" > ")));
        self.screen.block(pieces)
    }

    pub(super) fn typed(&self, line: &str) -> Typed {
        let line = line.trim();
        if line == "/cancel" {
            return request(Command::ChatCancel(ChatCancel {
                conversation_id: conversation(),
                queued: false,
            }));
        }
        if let Some(answer) = inputs::typed(line, self.inputs.iter()) {
            return answer;
        }
        // One word may be meant for something else.
        let (word, id) = first_word(line);
        let open = self.open();
        let money = self.money.as_ref();
        if let Some(answer) = money.and_then(|open| budget::read(line, open)) {
            return match open.first().filter(|_| id.is_empty() && !answer.finish) {
                None => request(Command::ChatBudgetApprove(answer)),
                Some(other) => notice(&format!(
                    "{other} is open, too; say which: {word} {other}, or {word} {} about the money",
                    answer.request_id
                )),
            };
        }
        let mut trust = self.trust.iter();
        if let Some(answer) = trust.find_map(|open| trust::read(line, open)) {
            return match id.is_empty() && open.len() > 1 {
                false => request(Command::ChatTrustApprove(answer)),
                true => notice(&format!(
                    "{} are open; say which: {word} {}",
                    open.join(" and "),
                    answer.request_id
                )),
            };
        }
        let is_alone = self.questions.is_empty();
        if let Some(answer) = inputs::sampled(line, self.inputs.iter(), is_alone) {
            return answer;
        }
        if !line.starts_with('/')
            && let Some(answer) = self.answer(line)
        {
            return answer;
        }
        match Line::read(line) {
            Line::Empty => Typed::Nothing,
            Line::Ask(command) => request(command),
            Line::Help => notice(&format!(
                "{HELP}\n{COMMANDS}\n/quit             close the socket"
            )),
            Line::Quit => Typed::Quit,
            Line::Wrong(problem) => notice(&problem),
        }
    }

    /// Returns a verdict; `None` where the line is none.
    fn answer(&self, line: &str) -> Option<Typed> {
        let (word, rest) = first_word(line);
        let is_open = !self.questions.is_empty();
        if !is_open && matches!(word, "e" | "n") {
            // Meant for a question that is answered already; said to the model it would be odd at best.
            return Some(notice("nothing is asked"));
        }
        let (name, after) = first_word(rest);
        let mut open = self.questions.iter();
        // What is asked for a host is answered by its name alone: it comes in the middle of a call, when a line may be on its
        // way that is for another question.
        let named = open.find(|open| name_of(open) == name);
        let is_call = |open: &ToolConfirm| open.tool_id.as_str() == name;
        let is_no = word.eq_ignore_ascii_case("n") || word.eq_ignore_ascii_case("no");
        if self.asked.iter().any(|asked| asked == name)
            && (after.is_empty() || is_no && is_open)
            && Reply::read(word) != Reply::Unclear
            && named.is_none()
            && !self.questions.iter().any(is_call)
        {
            // A late answer is no message, and none to another question.
            let is_form = self.inputs.iter().any(|it| it.request_id.as_str() == name);
            return Some(notice(&match is_form {
                true => format!("{name} is a form: /answer {name} {{JSON}}, /decline {name}"),
                false => format!("{name} is not open any more"),
            }));
        }
        let rest = if named.is_some() { after } else { rest };
        let reply = Reply::read(&format!("{word} {rest}"));
        if reply == Reply::Unclear {
            let is_answer = Reply::read(&format!("{word} {after}")) != Reply::Unclear;
            let mut open = self.questions.iter().filter(|_| is_answer);
            let is_meant = |open: &&ToolConfirm| {
                open.tool_id.as_str() == name || (after.is_empty() && open.host.is_some())
            };
            let meant = open.find(is_meant)?;
            return Some(notice(&format!("say which: {word} {}", name_of(meant))));
        }
        if !is_open {
            // A late answer is no message; a line such as `no idea` is one.
            return rest.is_empty().then(|| notice("nothing is asked"));
        }
        let ids: Vec<&str> = self.questions.iter().map(name_of).collect();
        let confirm = match (named, ids.as_slice()) {
            (None, [first, _, ..]) => {
                let ids = ids.join(" and ");
                return Some(notice(&format!(
                    "{ids} are open; say which: {word} {first}"
                )));
            }
            (None, [host]) if self.questions.front()?.host.is_some() => {
                return Some(notice(&format!("say which: {word} {host}")));
            }
            (named, _) => named.or(self.questions.front())?,
        };
        match reply.verdict(confirm) {
            Ok(verdict) => verdict.map(|it| request(Command::ChatToolApprove(it))),
            Err(problem) => Some(notice(&format!(
                "e takes the whole input as JSON: {problem}"
            ))),
        }
    }
}

/// Returns what a question is called by: the host that it is for, or the call.
fn name_of(open: &ToolConfirm) -> &str {
    open.host.as_deref().unwrap_or(open.tool_id.as_str())
}

fn request(command: Command) -> Typed {
    Typed::Request(Box::new(command))
}

fn notice(message: &str) -> Typed {
    Typed::Notice(Notice {
        severity: Severity::Info,
        code: "text_mode".to_owned(),
        message: message.to_owned(),
    })
}

fn greeting(ready: &Ready) -> Vec<Piece> {
    let again = if ready.resumed { " again" } else { "" };
    let text = format!(
        "outrigger {} in {} (sandbox: {}, trust: {}){again}; /help lists what can be typed",
        ready.daemon_version,
        ready.place(),
        ready.sandbox.mode,
        word(&ready.trust_level),
    );
    vec![
        Piece::line(Style::Plain, text),
        Piece::line(Style::Dim, format!("session {}", ready.session_id)),
    ]
}

#[cfg(test)]
mod tests;

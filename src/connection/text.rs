//! Text mode, `/ws?text=1`: a person with a bare WebSocket client types lines and reads lines.
//!
//! Pure but for the clock in a question's remaining time, which is handed in. What is typed becomes
//! the same requests as anybody's, and what is shown is made of the same frames, so this is a way to
//! look at a session and no second protocol. How things look is in `plain_text`; there are no colours here.

mod inputs;

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::message::{ConversationId, Notice, Severity};
use crate::plain_text::frame::Frame;
use crate::plain_text::line::{COMMANDS, Line};
use crate::plain_text::question::{self, Reply};
use crate::plain_text::render::Screen;
use crate::plain_text::style::{Piece, Style};
use crate::protocol::command::{ChatCancel, ChatSend, Command, Remember, ToolApprove};
use crate::protocol::event::{Event, Ready, ToolConfirm};
use crate::protocol::input::{InputOutcome, ToolInputRequest};
use crate::protocol::{SessionCode, word};

/// What `/help` says before the commands.
const HELP: &str = "\
a line            is said to the model
y, n [REASON]     answer the open question: yes, no
e {JSON}, a       yes with this input instead; yes, and always in this conversation
y t3, n t3, ...   the same for the question about t3, where several are open
/input on         be asked what MCP servers want to know in the middle of a call; off
/answer {JSON}    give them that; /decline does not; with the id where several ask: /answer i2 {JSON}
/cancel           stop what runs";

/// Characters of an unfinished line that are held back before they are shown all the same.
const LINE_CHARS: usize = 2_000;

/// What a typed line comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typed {
    /// Nothing.
    Nothing,
    /// A request.
    Request(Box<Command>),
    /// A notice for whoever typed it.
    Notice(Notice),
    /// The socket is to be closed.
    Quit,
}

/// A socket in text mode.
pub(super) struct Text {
    screen: Screen,
    /// Open questions, the oldest first.
    questions: VecDeque<ToolConfirm>,
    /// What servers ask, the oldest first.
    inputs: VecDeque<ToolInputRequest>,
    conversation: ConversationId,
    /// The beginning of a line whose end has not come yet.
    begun: String,
}

impl Text {
    pub(super) fn new() -> Self {
        Self {
            screen: Screen::new(false),
            questions: VecDeque::new(),
            inputs: VecDeque::new(),
            conversation: ConversationId::new("default"),
            begun: String::new(),
        }
    }

    /// Returns what a frame adds to the text, in whole lines; `None` where it adds nothing yet.
    pub(super) fn show(&mut self, frame: &str, now: Timestamp) -> Option<String> {
        let event = Frame::read(frame)?.event;
        let pieces = match &event {
            Event::SessionReady(ready) => self.screen.block(greeting(ready)),
            Event::ChatToolConfirm(confirm) => self.question(confirm, now),
            Event::ChatToolResolved(resolved) => {
                self.questions
                    .retain(|open| open.tool_id != resolved.tool_id);
                self.screen.show(&event)
            }
            Event::ChatToolInputRequest(request) => {
                self.inputs
                    .retain(|open| open.request_id != request.request_id);
                self.inputs.push_back((**request).clone());
                self.screen.block(inputs::show(request))
            }
            Event::ChatToolInputResolved(resolved) => {
                self.inputs
                    .retain(|open| open.request_id != resolved.request_id);
                let settled = match resolved.outcome {
                    InputOutcome::Answered => "answered",
                    InputOutcome::Expired => "nobody answered in time",
                    InputOutcome::Cancelled => "the question is void",
                };
                let settled = format!("{}: {settled}", resolved.request_id);
                self.screen.line(Style::Dim, settled)
            }
            Event::SessionError(error) if error.code == SessionCode::ReplayGap => {
                // Whether they were answered may be among what was missed; what follows asks those again that are open.
                self.questions.clear();
                self.inputs.clear();
                self.screen.show(&event)
            }
            _ => self.screen.show(&event),
        };
        for piece in pieces {
            match piece {
                Piece::Answer(text) | Piece::Aside(_, text) => self.begun.push_str(&text),
            }
        }
        self.lines()
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
        let known = |open: &ToolConfirm| open.tool_id == confirm.tool_id;
        if !self.questions.iter().any(known) {
            self.questions.push_back(confirm.clone());
        }
        let mut pieces = question::show(confirm);
        let prompt = question::prompt(confirm, now);
        let prompt = prompt.replace("e edit", "e {JSON} edit");
        pieces.push(Piece::line(Style::Plain, prompt.trim_end_matches(" > ")));
        self.screen.block(pieces)
    }

    /// Returns what a typed line means.
    pub(super) fn typed(&self, line: &str) -> Typed {
        let line = line.trim();
        if line == "/cancel" {
            return request(Command::ChatCancel(ChatCancel {
                conversation_id: self.conversation.clone(),
                queued: false,
            }));
        }
        if let Some(answer) = inputs::typed(line, self.inputs.iter()) {
            return answer;
        }
        if !line.starts_with('/')
            && let Some(answer) = self.answer(line)
        {
            return answer;
        }
        match Line::read(line, &self.conversation) {
            Line::Empty => Typed::Nothing,
            Line::Say(text) => {
                let send = ChatSend::text(self.conversation.clone(), text);
                request(Command::ChatSend(Box::new(send)))
            }
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
        let (word, rest) = match line.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (line, ""),
        };
        if self.questions.is_empty() && matches!(word, "e" | "n") {
            // Meant for a question that is answered already; said to the model it would be odd at best.
            return Some(notice("nothing is asked"));
        }
        let (named, rest) = self.named(rest);
        let reply = match Reply::read(&format!("{word} {rest}")) {
            Reply::Unclear => return None,
            reply => reply,
        };
        let Some(first) = self.questions.front() else {
            // A late answer is no message; a line such as `no idea` is one.
            return rest.is_empty().then(|| notice("nothing is asked"));
        };
        let confirm = match named {
            Some(confirm) => confirm,
            None if self.questions.len() > 1 => {
                let ids = self.questions.iter().map(|open| open.tool_id.as_str());
                let ids: Vec<&str> = ids.collect();
                let several = format!(
                    "{} are open; say which: {word} {}",
                    ids.join(" and "),
                    first.tool_id
                );
                return Some(notice(&several));
            }
            None => first,
        };
        Some(verdict(confirm, reply))
    }

    /// Returns the open question that a line names, and what comes after its name.
    fn named<'t>(&self, rest: &'t str) -> (Option<&ToolConfirm>, &'t str) {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut open = self.questions.iter();
        match open.find(|open| open.tool_id.as_str() == word) {
            Some(confirm) => (Some(confirm), after.trim()),
            None => (None, rest),
        }
    }
}

fn verdict(confirm: &ToolConfirm, reply: Reply) -> Typed {
    let mut approve = ToolApprove::new(confirm.tool_id.clone(), true);
    match reply {
        Reply::Approve => {}
        Reply::Remember => approve.remember = Remember::Conversation,
        Reply::Refuse(reason) => {
            approve.approved = false;
            approve.reason = reason;
        }
        Reply::Edit(text) => match question::edited(&text.unwrap_or_default()) {
            Ok(input) => approve.input = Some(input),
            Err(problem) => return notice(&format!("e takes the whole input as JSON: {problem}")),
        },
        Reply::Unclear => return Typed::Nothing,
    }
    request(Command::ChatToolApprove(approve))
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
    vec![
        Piece::line(
            Style::Plain,
            format!(
                "outrigger {} in {} (sandbox: {}, trust: {}){again}; /help lists what can be typed",
                ready.daemon_version,
                ready.project.root.display(),
                ready.sandbox.mode,
                word(&ready.trust_level),
            ),
        ),
        Piece::line(Style::Dim, format!("session {}", ready.session_id)),
    ]
}

#[cfg(test)]
mod tests;

//! The client's side of the protocol: what to do about each frame, each typed line, each Ctrl-C. Pure.
//!
//! [`Talk`] takes what happens and returns [`Action`]s; sockets, keyboard and screen are `terminal`'s.
//! A request is remembered until its answer comes, so that it can be sent again on a new socket.

mod asides;
mod asking;
mod composing;
mod ended;
mod joining;
mod keeping;
mod prompts;
mod servers;
mod sessions;

use self::asides::{Aside, is_opening};
use self::ended::{Refused, went_well};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::message::{SessionId, TrustLevel};
use crate::plain_text::frame::request_id;
use crate::plain_text::line::{COMMANDS, Line, conversation, send};
use crate::plain_text::question::Asked;
use crate::plain_text::render::Screen;
use crate::plain_text::style::{Piece, Style};
use crate::protocol::command::{ChatCancel, Configure, OutputForm};
use crate::protocol::event::{Event, StopReason, ToolConfirm};
use crate::protocol::{ChatCode, Command, SessionCode};
pub(super) use composing::commands;
pub(super) use sessions::Wanted;
use sessions::Way;

/// What the model gets with one key, after a path of its own ended the exchange.
const GO_ON: &str = "Go on, without that path.";

/// What `/help` says after the commands.
const KEYS: &str = "\
/sessions [N|ID]  list the sessions of this project, or go on in one: its number in the list, or its id
/prompts          list the prompts of MCP servers, each of which is a command: /SERVER:PROMPT and its arguments
/quit             end (Ctrl-D too)
Ctrl-C cancels what runs; twice, it ends the chat.";

const GO_ON_KEY: &str = "g";

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Send a request with this id.
    Send(String, Command),
    Show(Piece),
    /// Show this and wait for a line, unless one is waited for already.
    Read {
        prompt: String,
        /// Whether what was typed before this moment must not count.
        fresh: bool,
    },
    /// Drop what was typed so far: it was for a question that is settled.
    Forget,
    /// Have the user edit a call's input.
    Edit(Map<String, Value>),
    /// Go on in this session, on a new socket.
    Open(SessionId),
    /// Say when this time is over.
    Wait(Duration),
    Quit(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it was meant to, or with an answer.
    Well,
    /// Without one.
    Badly,
    /// With one, but a call, or a host, was refused without anybody being asked.
    Refused,
    /// A cap on money ended it.
    Budget,
}

/// What the chat was started with.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    /// Ask this and end.
    pub(super) prompt: Option<String>,
    /// What the answer has to be: then nothing else goes to standard output.
    pub(super) output: Option<OutputForm>,
    /// Defaults for the session.
    pub(super) configure: Option<Configure>,
    /// Whether somebody is there who says whether files may speak for the user.
    pub(super) trusts: bool,
    /// The session to go on in; a new one where there is none.
    pub(super) wanted: Option<Wanted>,
    /// The number before that of the first request: another one than any earlier chat in the session had.
    pub(super) first_request: u64,
    /// Whether a turn's text is kept back until it counts.
    pub(super) hold: bool,
    /// Whether MCP servers that are being started are waited for before the prompt is asked.
    pub(super) servers: bool,
    /// Whether a person types, who can be asked.
    pub(super) attended: bool,
    /// Whether stdin is not read, whoever is there.
    pub(super) no_stdin: bool,
    /// Whether lines come from a line editor, on which a person may type at any time.
    pub(super) composes: bool,
}

/// A question that was settled while it was on the screen.
struct Passed {
    asked: Asked,
    settled: Timestamp,
    /// Whether something may have been typed for it by then.
    was_typed_for: bool,
}

#[derive(Default)]
pub(super) struct Talk {
    options: Options,
    screen: Screen,
    /// What is to be done, in order.
    actions: Vec<Action>,
    /// When what is being taken happened.
    now: Timestamp,
    requests: u64,
    /// Requests without an answer, by the number in their id.
    unanswered: BTreeMap<u64, Command>,
    /// The request whose outcome the user waits for.
    busy: Option<u64>,
    /// Questions without a verdict; the first one is on the screen, unless an aside is.
    questions: VecDeque<ToolConfirm>,
    /// Questions that are about no call; the first one is on the screen, or waits for those about calls.
    asides: VecDeque<Aside>,
    /// Verdicts on their way, for the case that the daemon refuses one.
    judged: BTreeMap<u64, ToolConfirm>,
    typing: Typing,
    /// When the last line came.
    typed: Option<Timestamp>,
    /// When the deadline of the question on the screen is put off next, and how often; `None` where it has none.
    extension: Option<(Timestamp, Duration)>,
    /// The question that was settled while it was on the screen: a line may still be typed for it.
    passed: Option<Passed>,
    /// The session's trust level, once it is known.
    trust: Option<TrustLevel>,
    /// What was refused since nobody could be asked.
    refused_unattended: Refused,
    /// Whether the last exchange was ended by a path outside of the project.
    may_go_on: bool,
    /// The request that looks how MCP servers stand.
    looking: Option<u64>,
    starting: Option<Vec<String>>,
    /// The folder that the session works in.
    project: Option<String>,
    /// What was listed last, to be picked by its number.
    listed: Vec<SessionId>,
    /// The way to another session.
    way: Option<Way>,
    interrupts: u8,
    /// Lines that were ended while something ran, to be taken afterwards.
    waiting: VecDeque<String>,
    /// Whether a session was announced before.
    is_known: bool,
    /// Whether the one thing there is to ask was asked.
    is_asked: bool,
    well: bool,
    /// Whether a cap on money ended the last exchange, or kept it from beginning.
    is_over_budget: bool,
}

/// What the next line is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Typing {
    /// A message or a command.
    #[default]
    Message,
    /// A verdict on this question.
    Verdict(Asked),
    /// The edited input of its call.
    Input(Asked),
    /// An answer to the first of the questions that are about no call.
    Aside,
}

impl Talk {
    pub(super) fn new(options: Options) -> Self {
        let screen = Screen::new(options.hold);
        Self {
            screen: match options.composes {
                true => screen.folded(),
                false => screen,
            },
            requests: options.first_request,
            options,
            ..Self::default()
        }
    }

    /// Takes a frame; `reply_to` is the number in the id of the request that it answers.
    pub(super) fn event(
        &mut self,
        event: &Event,
        reply_to: Option<u64>,
        now: Timestamp,
    ) -> Vec<Action> {
        self.now = now;
        if event.is_within_task() && reply_to.is_none() {
            // Another client of the session wants to see it.
            return Vec::new();
        }
        if self.is_opening() {
            self.opened(event, reply_to);
            return self.done();
        }
        let request = reply_to.and_then(|number| Some((number, self.unanswered.remove(&number)?)));
        match event {
            Event::SessionReady(ready) => self.ready(ready),
            Event::ChatToolConfirm(confirm) => self.confirm(confirm),
            Event::ChatToolResolved(resolved) => self.settled(resolved, event),
            Event::ChatBudgetConfirm(_)
            | Event::ChatBudgetResolved(_)
            | Event::ChatTrustConfirm(_)
            | Event::ChatTrustResolved(_)
            | Event::ChatToolInputRequest(_)
            | Event::ChatToolInputResolved(_) => self.aside_event(event),
            Event::SessionConfigureResult(_)
                if request.as_ref().is_some_and(|(_, of)| is_opening(of)) => {}
            // It is looked at, and nobody asked to see it.
            Event::McpListResult(_) if reply_to.is_none() || reply_to != self.busy => {}
            Event::ChatToolExtended(it) if it.request_id.is_none() => {
                let asked = Asked {
                    tool_id: it.tool_id.clone(),
                    host: it.host.clone(),
                };
                self.extended(&asked, it.expires_at.as_deref());
            }
            Event::ChatOutput(it) if self.options.output.is_some() => {
                let json = format!("{}\n", it.output);
                self.actions.push(Action::Show(Piece::Answer(json)));
            }
            Event::SessionError(error) => self.refused(error.code, request.as_ref(), event),
            _ => self.show(event),
        }
        match event {
            Event::ChatToolResult(result) => self.count(result),
            // Without an exchange it says that the send was not admitted, and no end follows.
            Event::ChatError(error) if error.message_id.is_none() => {
                self.well = false;
                self.is_over_budget = error.code == ChatCode::BudgetExhausted;
            }
            Event::ChatStreamEnd(end) => {
                self.is_over_budget = end.stop_reason == StopReason::Budget;
                self.well = went_well(end.stop_reason);
                self.may_go_on = end.stop_reason == StopReason::SandboxViolation;
                self.idle();
            }
            Event::SessionConfigureResult(configured) => self.trust = Some(configured.trust_level),
            Event::SessionNotice(notice) => self.noticed(&notice.code),
            _ => {}
        }
        if let Some((number, command)) = request {
            self.answered(number, &command, event);
        }
        self.done()
    }

    /// Goes on where a request was waited for that has its answer now.
    fn answered(&mut self, number: u64, command: &Command, answer: &Event) {
        self.judged.remove(&number);
        match command {
            // A send goes on with its events; every other request is over with its answer.
            _ if self.busy == Some(number) => match answer {
                Event::ChatSendResult(_) => {}
                Event::McpUsePromptResult(said) => self.prompt_said(said),
                _ => self.idle(),
            },
            _ if is_opening(command) => {}
            Command::SessionConfigure(_) => self.configured(answer),
            Command::SessionPing(_) => self.send_again(),
            Command::McpList(_) if self.looking == Some(number) => self.listed(answer),
            Command::SessionList(_) => self.found(answer),
            _ => {}
        }
    }

    /// Takes a typed line; `None` is the end of the input.
    pub(super) fn line(&mut self, line: Option<&str>, now: Timestamp) -> Vec<Action> {
        self.now = now;
        self.interrupts = 0;
        self.typed = Some(now);
        match (std::mem::take(&mut self.typing), line) {
            (typing, Some(line)) if self.may_wait(&typing) => self.meanwhile(line),
            // It was to answer a question that is settled by now.
            (Typing::Message, Some(_)) if self.busy.is_some() => {
                self.say(Style::Dim, "nothing is asked any more; the line is dropped");
            }
            (Typing::Message, None) if self.busy.is_some() => {}
            (Typing::Message, Some(line)) => match self.came_late(line) {
                Some(asked) => {
                    self.say_late(&asked);
                    self.prompt();
                }
                None => self.message(line),
            },
            (Typing::Message, None) => self.quit(true),
            (Typing::Verdict(asked), line) => self.verdict(&asked, line),
            (Typing::Input(asked), line) => self.typed_input(&asked, line),
            (Typing::Aside, line) => self.answer_aside(line),
        }
        self.done()
    }

    /// Takes a Ctrl-C: the first one stops what runs, the second one ends the chat.
    pub(super) fn interrupted(&mut self) -> Vec<Action> {
        self.interrupts += 1;
        let is_on_the_way = self.looking.is_some() || self.starting.is_some() || self.way.is_some();
        // Of a chat for one answer, which is not asked for yet.
        let is_unasked = self.options.prompt.is_some() && self.busy.is_none();
        if self.interrupts > 1 || is_on_the_way || is_unasked {
            return vec![Action::Quit(End::Badly)];
        }
        if self.busy.is_none() {
            self.say_and_prompt(Style::Dim, "Ctrl-C again, or Ctrl-D, ends the chat");
            return self.done();
        }
        self.say(Style::Dim, "cancelling; Ctrl-C again ends the chat");
        self.drop_waiting();
        self.request(Command::ChatCancel(ChatCancel {
            conversation_id: conversation(),
            queued: true,
        }));
        self.done()
    }

    pub(super) fn lost(&mut self, reason: &str) -> Vec<Action> {
        let text = format!("the connection dropped ({reason}); connecting again");
        self.say(Style::Yellow, text);
        self.done()
    }

    fn refused(&mut self, code: SessionCode, request: Option<&(u64, Command)>, event: &Event) {
        if let Some((_, Command::ChatToolExtend(_))) = request {
            // The question was settled meanwhile, or the daemon is older than the request.
            if code != SessionCode::ApprovalNotFound {
                self.extension = None;
            }
            return;
        }
        self.show(event);
        let Some((number, _)) = request else {
            return;
        };
        if let Some(confirm) = self.judged.remove(number)
            && code == SessionCode::InvalidPayload
        {
            self.questions.push_front(confirm);
            self.ask();
        }
        if self.busy == Some(*number) {
            self.well = false;
        }
    }

    fn message(&mut self, line: &str) {
        if std::mem::take(&mut self.may_go_on) && line.trim() == GO_ON_KEY {
            return self.wait_for(send(GO_ON));
        }
        if let Some(argument) = sessions::argument(line) {
            return self.sessions(argument);
        }
        if let Some(which) = self.output_of(line) {
            self.output(which);
            return self.prompt();
        }
        if let Some(command) = prompts::wanted(line) {
            return self.wait_for(command);
        }
        match Line::read(line) {
            Line::Empty => self.prompt(),
            Line::Ask(command) => self.wait_for(command),
            Line::Help => self.help(),
            Line::Quit => self.quit(true),
            Line::Wrong(problem) => self.say_and_prompt(Style::Red, problem),
        }
    }

    fn help(&mut self) {
        let text = match self.options.composes {
            true => [COMMANDS, composing::OUTPUT, KEYS, composing::KEYS].join("\n"),
            false => [COMMANDS, KEYS].join("\n"),
        };
        self.say(Style::Plain, text);
        // What runs has the next prompt.
        if self.busy.is_none() {
            self.prompt();
        }
    }

    /// Nothing runs any more: ends, where there was one thing to ask, or goes on with the prompt.
    fn idle(&mut self) {
        self.busy = None;
        self.interrupts = 0;
        match self.options.prompt {
            Some(_) if !self.is_asked => self.set_defaults(),
            Some(_) => self.quit(self.well),
            None => self.go_on_typing(),
        }
    }

    fn prompt(&mut self) {
        self.typing = Typing::Message;
        self.actions.push(Action::Read {
            prompt: match self.may_go_on {
                true => format!("{GO_ON_KEY} goes on without that path > "),
                false => "> ".to_owned(),
            },
            fresh: false,
        });
    }

    /// Sends a request whose outcome the user waits for.
    fn wait_for(&mut self, command: Command) {
        self.busy = Some(self.request(command));
    }

    /// Sends a request and returns the number in its id.
    fn request(&mut self, command: Command) -> u64 {
        self.requests += 1;
        self.unanswered.insert(self.requests, command.clone());
        let id = request_id(self.requests);
        self.actions.push(Action::Send(id, command));
        self.requests
    }

    fn show(&mut self, event: &Event) {
        let pieces = self.screen.show(event);
        self.put(pieces);
    }

    fn say(&mut self, style: Style, text: impl Into<String>) {
        let pieces = self.screen.line(style, text);
        self.put(pieces);
    }

    fn say_and_prompt(&mut self, style: Style, text: impl Into<String>) {
        self.say(style, text);
        self.prompt();
    }

    fn put(&mut self, pieces: Vec<Piece>) {
        let is_data = self.options.output.is_some();
        let shown = pieces
            .into_iter()
            .filter(|piece| !is_data || !matches!(piece, Piece::Answer(_)));
        self.actions.extend(shown.map(Action::Show));
    }

    fn done(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

#[cfg(test)]
mod tests;

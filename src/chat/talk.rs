//! The client's side of the protocol: what to do about each frame, each typed line, each Ctrl-C. Pure.
//!
//! [`Talk`] takes what happens and returns [`Action`]s; sockets, keyboard and screen are `terminal`'s.
//! A request is remembered until its answer comes, so that it can be sent again on a new socket.

mod asking;
mod joining;
mod keeping;
mod servers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::message::{ConversationId, ToolId};
use crate::plain_text::frame::request_id;
use crate::plain_text::line::{COMMANDS, Line};
use crate::plain_text::render::Screen;
use crate::plain_text::style::{Piece, Style};
use crate::protocol::command::{ChatCancel, ChatSend, Configure};
use crate::protocol::event::{
    ChatError, Event, SessionError, StopReason, ToolConfirm, ToolOutcome,
};
use crate::protocol::{Command, SessionCode};

/// What the model is told with one key after a path of its own ended the exchange.
const GO_ON: &str = "Go on, without that path.";

/// What `/help` says after the commands.
const KEYS: &str = "\
/quit             end (Ctrl-D too)
Ctrl-C cancels what runs; twice, it ends the chat.";

/// The key.
const GO_ON_KEY: &str = "g";

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Send a request.
    Send(String, Command),
    /// Show something.
    Show(Piece),
    /// Show this and wait for a line, unless one is waited for already.
    Read {
        /// What stands before the cursor.
        prompt: String,
        /// Whether what was typed before this moment must not count.
        fresh: bool,
    },
    /// Drop what was typed so far: it was for a question that is settled.
    Forget,
    /// Have the user edit a call's input.
    Edit(Map<String, Value>),
    /// Say when this time is over.
    Wait(Duration),
    /// End.
    Quit(End),
}

/// How a chat ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As it was meant to, or with an answer.
    Well,
    /// Without one.
    Badly,
    /// With one, but a call was refused without anybody being asked.
    Refused,
}

/// What the chat was started with.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    /// Ask this and end.
    pub(super) prompt: Option<String>,
    /// Defaults for the session.
    pub(super) configure: Option<Configure>,
    /// Whether a turn's text is kept back until it counts.
    pub(super) hold: bool,
    /// Whether MCP servers that are being started are waited for before the prompt is asked.
    pub(super) servers: bool,
    /// Whether a person types, who can be asked.
    pub(super) attended: bool,
}

/// A chat as it stands.
pub(super) struct Talk {
    wishes: Wishes,
    conversation: ConversationId,
    screen: Screen,
    requests: u64,
    /// Requests without an answer, by the number in their id.
    unanswered: BTreeMap<u64, Command>,
    /// The request whose outcome the user waits for.
    busy: Option<u64>,
    /// Questions without a verdict; the first one is on the screen.
    questions: VecDeque<ToolConfirm>,
    /// Verdicts on their way, for the case that the daemon refuses one.
    judged: BTreeMap<u64, ToolConfirm>,
    typing: Typing,
    keeping: keeping::Keeping,
    /// The question that was settled while it was on the screen, and when: a line may still be typed for it.
    passed: Option<(ToolId, Timestamp)>,
    /// Calls that were refused by a typed line.
    denied: BTreeSet<ToolId>,
    /// How many calls were refused without anybody being asked.
    unasked: u32,
    /// Whether the last exchange was ended by a path outside of the project.
    may_go_on: bool,
    /// The ping that marks the end of a replay.
    replay_ends: Option<u64>,
    /// The request that sets the session's defaults; nothing is asked before its answer.
    configuring: Option<u64>,
    /// The request that looks how MCP servers stand.
    looking: Option<u64>,
    /// Those that are waited for.
    starting: Option<Vec<String>>,
    interrupts: u8,
    /// Whether a session was announced before.
    is_known: bool,
    /// Whether the one thing there is to ask was asked.
    is_asked: bool,
    well: bool,
}

/// What the next line is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Typing {
    /// A message or a command.
    Message,
    /// A verdict on this call.
    Verdict(ToolId),
    /// The edited input of this call.
    Input(ToolId),
}

impl Talk {
    pub(super) fn new(wishes: Wishes) -> Self {
        Self {
            screen: Screen::new(wishes.hold),
            wishes,
            conversation: ConversationId::new("default"),
            requests: 0,
            unanswered: BTreeMap::new(),
            busy: None,
            questions: VecDeque::new(),
            judged: BTreeMap::new(),
            typing: Typing::Message,
            keeping: keeping::Keeping::default(),
            passed: None,
            denied: BTreeSet::new(),
            unasked: 0,
            may_go_on: false,
            replay_ends: None,
            configuring: None,
            looking: None,
            starting: None,
            interrupts: 0,
            is_known: false,
            is_asked: false,
            well: false,
        }
    }

    /// Takes a frame; `reply_to` is the number in the id of the request that it answers.
    pub(super) fn event(
        &mut self,
        event: &Event,
        reply_to: Option<u64>,
        now: Timestamp,
    ) -> Vec<Action> {
        let request = reply_to.and_then(|number| Some((number, self.unanswered.remove(&number)?)));
        let answered = request.as_ref().map(|(number, _)| *number);
        let is_extension = matches!(request, Some((_, Command::ChatToolExtend(_))));
        let mut actions = match event {
            // The question was settled meanwhile, or the daemon is older than the request.
            Event::SessionError(error) if is_extension => {
                if error.code != SessionCode::ApprovalNotFound {
                    self.keeping.stop();
                }
                Vec::new()
            }
            Event::SessionReady(ready) => self.ready(ready),
            Event::ChatToolConfirm(confirm) => self.confirm(confirm, now),
            Event::ChatToolResolved(resolved) => self.settled(resolved, event, now),
            Event::ChatToolExtended(it) if it.request_id.is_none() => {
                self.extended(&it.tool_id, it.expires_at.as_deref())
            }
            Event::ChatToolResult(result) => {
                self.count(result);
                self.show(event)
            }
            Event::SessionError(error) => self.refused(error, answered, now),
            Event::ChatError(error) => self.failed(error, event),
            Event::ChatStreamEnd(end) => {
                self.well = went_well(end.stop_reason);
                self.may_go_on = end.stop_reason == StopReason::SandboxViolation;
                let mut actions = self.show(event);
                actions.extend(self.idle());
                actions
            }
            Event::SessionNotice(notice) => {
                let mut actions = self.show(event);
                actions.extend(self.noticed(&notice.code));
                actions
            }
            // Asked for by the chat itself.
            Event::McpListResult(_) if self.wishes.prompt.is_some() => Vec::new(),
            Event::SessionPingResult(_) if answered.is_some() && answered == self.replay_ends => {
                self.send_again()
            }
            _ => self.show(event),
        };
        if let Some(number) = answered {
            self.judged.remove(&number);
            if self.configuring == Some(number) {
                actions.extend(self.configured(event));
            }
            if self.looking == Some(number) {
                actions.extend(self.listed(event));
            }
            // A send goes on with its events; every other request is over with its answer.
            if self.busy == Some(number) && !matches!(event, Event::ChatSendResult(_)) {
                actions.extend(self.idle());
            }
        }
        actions
    }

    /// Takes a typed line; `None` is the end of the input.
    pub(super) fn line(&mut self, line: Option<&str>, now: Timestamp) -> Vec<Action> {
        self.interrupts = 0;
        self.keeping.typed(now);
        match (std::mem::replace(&mut self.typing, Typing::Message), line) {
            // It was to answer a question that is settled by now.
            (Typing::Message, Some(_)) if self.busy.is_some() => {
                self.say(Style::Dim, "nothing is asked any more; the line is dropped")
            }
            (Typing::Message, None) if self.busy.is_some() => Vec::new(),
            (Typing::Message, Some(line)) => match self.came_late(line, now) {
                Some(id) => {
                    let text = format!(
                        "{id} was settled before this line was typed to its end; it is dropped, not sent"
                    );
                    let mut actions = self.say(Style::Yellow, text);
                    actions.push(self.prompt());
                    actions
                }
                None => self.message(line),
            },
            (Typing::Message, None) => self.quit(true),
            (Typing::Verdict(id), None) => self.unanswered(&id, now),
            (Typing::Verdict(id), Some(line)) => self.verdict(&id, line, now),
            (Typing::Input(id), line) => self.typed_input(&id, line, now),
        }
    }

    /// Takes a Ctrl-C: the first one stops what runs, the second one ends the chat.
    pub(super) fn interrupted(&mut self) -> Vec<Action> {
        self.interrupts += 1;
        if self.interrupts > 1 || self.looking.is_some() || self.starting.is_some() {
            return vec![Action::Quit(End::Badly)];
        }
        if self.busy.is_none() {
            let mut actions = self.say(Style::Dim, "Ctrl-C again, or Ctrl-D, ends the chat");
            actions.push(self.prompt());
            return actions;
        }
        let cancel = Command::ChatCancel(ChatCancel {
            conversation_id: self.conversation.clone(),
            queued: true,
        });
        let mut actions = self.say(Style::Dim, "cancelling; Ctrl-C again ends the chat");
        actions.push(self.request(cancel).1);
        actions
    }

    /// Says that the socket dropped.
    pub(super) fn lost(&mut self, reason: &str) -> Vec<Action> {
        self.say(
            Style::Yellow,
            format!("the connection dropped ({reason}); connecting again"),
        )
    }

    fn refused(
        &mut self,
        error: &SessionError,
        answered: Option<u64>,
        now: Timestamp,
    ) -> Vec<Action> {
        let mut actions = self.show(&Event::SessionError(error.clone()));
        let judged = answered.and_then(|number| self.judged.remove(&number));
        if let Some(confirm) = judged
            && error.code == SessionCode::InvalidPayload
        {
            self.questions.push_front(confirm);
            actions.extend(self.ask(now));
        }
        if answered.is_some() && answered == self.busy {
            self.well = false;
        }
        actions
    }

    fn failed(&mut self, error: &ChatError, event: &Event) -> Vec<Action> {
        // Without an exchange it says that the send was not admitted, and no end follows.
        if error.message_id.is_none() {
            self.well = false;
        }
        self.show(event)
    }

    /// Counts a call that was refused without anybody being asked.
    fn count(&mut self, result: &ToolOutcome) {
        let facts = result.metadata.as_ref();
        let is_refused = facts.is_some_and(|facts| facts.denied || facts.expired);
        if is_refused && !self.wishes.attended && !self.denied.remove(&result.tool_id) {
            self.unasked += 1;
        }
    }

    fn message(&mut self, line: &str) -> Vec<Action> {
        if std::mem::take(&mut self.may_go_on) && line.trim() == GO_ON_KEY {
            return vec![self.send(GO_ON.to_owned())];
        }
        match Line::read(line, &self.conversation) {
            Line::Empty => vec![self.prompt()],
            Line::Say(text) => vec![self.send(text)],
            Line::Ask(command) => {
                let (number, action) = self.request(command);
                self.busy = Some(number);
                vec![action]
            }
            Line::Help => {
                let mut actions = self.say(Style::Plain, format!("{COMMANDS}\n{KEYS}"));
                actions.push(self.prompt());
                actions
            }
            Line::Quit => self.quit(true),
            Line::Wrong(problem) => {
                let mut actions = self.say(Style::Red, problem);
                actions.push(self.prompt());
                actions
            }
        }
    }

    /// Nothing runs any more: ends, where there was one thing to ask, or goes on with the prompt.
    fn idle(&mut self) -> Vec<Action> {
        self.busy = None;
        self.interrupts = 0;
        match self.wishes.prompt {
            Some(_) => self.quit(self.well),
            None => vec![self.prompt()],
        }
    }

    /// Ends; says what to do about calls that were refused without anybody being asked.
    fn quit(&mut self, well: bool) -> Vec<Action> {
        let mut actions = match self.unasked {
            0 => Vec::new(),
            count => self.say(
                Style::Yellow,
                format!(
                    "{} refused, since nobody could be asked: answers are read from stdin (y, n, a), and \
                     --trust-level autonomous asks less",
                    match count {
                        1 => "1 call was".to_owned(),
                        count => format!("{count} calls were"),
                    }
                ),
            ),
        };
        actions.push(Action::Quit(match (well, self.unasked) {
            (false, _) => End::Badly,
            (true, 0) => End::Well,
            (true, _) => End::Refused,
        }));
        actions
    }

    fn prompt(&mut self) -> Action {
        self.typing = Typing::Message;
        Action::Read {
            prompt: match self.may_go_on {
                true => format!("{GO_ON_KEY} goes on without that path > "),
                false => "> ".to_owned(),
            },
            fresh: false,
        }
    }

    fn send(&mut self, text: String) -> Action {
        let send = ChatSend::text(self.conversation.clone(), text);
        let (number, action) = self.request(Command::ChatSend(Box::new(send)));
        self.busy = Some(number);
        action
    }

    fn request(&mut self, command: Command) -> (u64, Action) {
        self.requests += 1;
        self.unanswered.insert(self.requests, command.clone());
        (
            self.requests,
            Action::Send(request_id(self.requests), command),
        )
    }

    fn show(&mut self, event: &Event) -> Vec<Action> {
        let pieces = self.screen.show(event);
        pieces.into_iter().map(Action::Show).collect()
    }

    fn say(&mut self, style: Style, text: impl Into<String>) -> Vec<Action> {
        let pieces = self.screen.line(style, text);
        pieces.into_iter().map(Action::Show).collect()
    }
}

/// Whether an exchange that ended so has answered what it was asked.
fn went_well(reason: StopReason) -> bool {
    match reason {
        StopReason::EndTurn
        | StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::MaxTurns
        | StopReason::ContextBudget => true,
        StopReason::Cancelled
        | StopReason::Timeout
        | StopReason::SandboxViolation
        | StopReason::Error => false,
    }
}

#[cfg(test)]
mod tests;

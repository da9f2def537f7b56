//! The client's side of the protocol: what to do about each frame, each typed line, each Ctrl-C. Pure.
//!
//! [`Talk`] takes what happens and returns [`Action`]s; sockets, keyboard and screen are `terminal`'s.
//! A request is remembered until its answer comes, so that it can be sent again on a new socket.

mod asking;
mod joining;

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::line::{HELP, Line};
use super::render::Screen;
use super::style::{Piece, Style};
use crate::message::{ConversationId, ToolId};
use crate::protocol::command::{ChatCancel, ChatSend, Configure, Remember, WhenBusy};
use crate::protocol::event::{ChatError, Event, SessionError, StopReason, ToolConfirm};
use crate::protocol::{Command, Content, SessionCode};

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
    /// Have the user edit a call's input.
    Edit(Map<String, Value>),
    /// End.
    Quit {
        /// Whether what was asked for went well.
        well: bool,
    },
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
    /// The ping that marks the end of a replay.
    replay_ends: Option<u64>,
    /// The request that sets the session's defaults; nothing is asked before its answer.
    configuring: Option<u64>,
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
            replay_ends: None,
            configuring: None,
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
        let answered = reply_to.filter(|number| self.unanswered.remove(number).is_some());
        let mut actions = match event {
            Event::SessionReady(ready) => self.ready(ready),
            Event::ChatToolConfirm(confirm) => self.confirm(confirm, now),
            Event::ChatToolResolved(resolved) => self.settled(&resolved.tool_id, event, now),
            Event::SessionError(error) => self.refused(error, answered, now),
            Event::ChatError(error) => self.failed(error, event),
            Event::ChatStreamEnd(end) => {
                self.well = went_well(end.stop_reason);
                let mut actions = self.show(event);
                actions.extend(self.idle());
                actions
            }
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
        match (std::mem::replace(&mut self.typing, Typing::Message), line) {
            // It was to answer a question that is settled by now.
            (Typing::Message, Some(_)) if self.busy.is_some() => {
                self.say(Style::Dim, "nothing is asked any more; the line is dropped")
            }
            (Typing::Message, None) if self.busy.is_some() => Vec::new(),
            (Typing::Message, Some(line)) => self.message(line),
            (Typing::Message, None) => vec![Action::Quit { well: true }],
            (Typing::Verdict(id), None) => {
                let reason = Some("nobody is there to be asked".to_owned());
                self.judge(&id, false, None, Remember::Once, reason, now)
            }
            (Typing::Verdict(id), Some(line)) => self.verdict(&id, line, now),
            (Typing::Input(id), line) => {
                let typed = line
                    .map(str::to_owned)
                    .ok_or("nothing was typed".to_owned());
                self.typing = Typing::Input(id);
                self.edited(typed, now)
            }
        }
    }

    /// Takes a Ctrl-C: the first one stops what runs, the second one ends the chat.
    pub(super) fn interrupted(&mut self) -> Vec<Action> {
        self.interrupts += 1;
        if self.interrupts > 1 {
            return vec![Action::Quit { well: false }];
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

    fn message(&mut self, line: &str) -> Vec<Action> {
        match Line::read(line, &self.conversation) {
            Line::Empty => vec![self.prompt()],
            Line::Say(text) => vec![self.send(text)],
            Line::Ask(command) => {
                let (number, action) = self.request(command);
                self.busy = Some(number);
                vec![action]
            }
            Line::Help => {
                let mut actions = self.say(Style::Plain, HELP.trim_end());
                actions.push(self.prompt());
                actions
            }
            Line::Quit => vec![Action::Quit { well: true }],
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
            Some(_) => vec![Action::Quit { well: self.well }],
            None => vec![self.prompt()],
        }
    }

    fn prompt(&mut self) -> Action {
        self.typing = Typing::Message;
        Action::Read {
            prompt: "> ".to_owned(),
            fresh: false,
        }
    }

    fn send(&mut self, text: String) -> Action {
        let (number, action) = self.request(Command::ChatSend(Box::new(ChatSend {
            conversation_id: self.conversation.clone(),
            content: Content::Text(text),
            history: None,
            provider: None,
            model: None,
            system_prompt: None,
            trust_level: None,
            workflow: None,
            tool_permissions: None,
            max_tokens: None,
            temperature: None,
            thinking: None,
            limits: crate::permission::Limits::default(),
            when_busy: WhenBusy::Queue,
        })));
        self.busy = Some(number);
        action
    }

    fn request(&mut self, command: Command) -> (u64, Action) {
        self.requests += 1;
        self.unanswered.insert(self.requests, command.clone());
        (self.requests, Action::Send(id(self.requests), command))
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

/// The id of a request on the wire.
fn id(number: u64) -> String {
    format!("c{number}")
}

/// The number in a request's id.
pub(super) fn number(id: &str) -> Option<u64> {
    id.strip_prefix('c')?.parse().ok()
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

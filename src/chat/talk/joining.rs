//! The session is there, new or resumed: its defaults are set, what has no answer is sent again, and
//! what belonged to one that is gone is dropped. Pure.

use super::{Action, Talk};
use crate::plain_text::frame::request_id;
use crate::plain_text::style::Style;
use crate::protocol::Command;
use crate::protocol::command::Empty;
use crate::protocol::event::{Event, Ready};

impl Talk {
    pub(super) fn ready(&mut self, ready: &Ready) -> Vec<Action> {
        if ready.resumed {
            // Its answer comes after everything that was missed.
            let (number, ping) = self.request(Command::SessionPing(Empty {}));
            self.replay_ends = Some(number);
            let mut actions = self.say(Style::Dim, "connected again");
            actions.push(ping);
            return actions;
        }
        let mut actions = if std::mem::replace(&mut self.is_known, true) {
            self.forget();
            self.say(
                Style::Red,
                "the session is gone, and with it what was said; this is a new one",
            )
        } else if self.wishes.prompt.is_none() {
            self.say(Style::Dim, welcome(ready))
        } else {
            Vec::new()
        };
        match self.wishes.configure.clone() {
            Some(configure) => {
                let (number, action) = self.request(Command::SessionConfigure(configure));
                self.configuring = Some(number);
                actions.push(action);
            }
            None => actions.extend(self.prepare()),
        }
        actions
    }

    /// The session's defaults are set, or not.
    pub(super) fn configured(&mut self, answer: &Event) -> Vec<Action> {
        self.configuring = None;
        match (&self.wishes.prompt, answer) {
            (Some(_), Event::SessionError(_)) => self.quit(false),
            _ => self.prepare(),
        }
    }

    /// Sees to it that the one thing there is to ask can have an answer.
    fn prepare(&mut self) -> Vec<Action> {
        match self.wishes.servers && !self.is_asked {
            true => self.look(),
            false => self.begin(),
        }
    }

    /// Asks the one thing there is to ask, once, or goes on with the prompt.
    pub(super) fn begin(&mut self) -> Vec<Action> {
        match self.wishes.prompt.clone() {
            Some(prompt) if !std::mem::replace(&mut self.is_asked, true) => {
                vec![self.send(prompt)]
            }
            _ => self.idle(),
        }
    }

    /// Drops what belonged to a session that is gone.
    fn forget(&mut self) {
        self.unanswered.clear();
        self.judged.clear();
        self.questions.clear();
        self.passed = None;
        self.may_go_on = false;
        self.replay_ends = None;
        self.looking = None;
        self.starting = None;
        self.well = false;
    }

    /// Sends everything again that has no answer although nothing is missing any more.
    pub(super) fn send_again(&mut self) -> Vec<Action> {
        self.replay_ends = None;
        self.unanswered
            .iter()
            .map(|(number, command)| Action::Send(request_id(*number), command.clone()))
            .collect()
    }
}

fn welcome(ready: &Ready) -> String {
    format!(
        "outrigger {} in {} (sandbox: {}); /help lists the commands",
        ready.daemon_version,
        ready.project.root.display(),
        ready.sandbox.mode
    )
}

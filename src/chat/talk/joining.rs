//! The session is there, new or resumed: its defaults are set, what has no answer is sent again, and
//! what belonged to one that is gone is dropped. Pure.

use super::{Action, Talk, Typing};
use crate::plain_text::frame::request_id;
use crate::plain_text::line::send;
use crate::plain_text::style::Style;
use crate::protocol::command::{ChatSend, Empty, OutputForm};
use crate::protocol::event::{Event, Ready};
use crate::protocol::{Command, word};

/// Returns a send whose answer has to be this.
fn asking_for(send: Command, output: Option<OutputForm>) -> Command {
    match send {
        Command::ChatSend(send) => Command::ChatSend(Box::new(ChatSend { output, ..*send })),
        other => other,
    }
}

impl Talk {
    pub(super) fn ready(&mut self, ready: &Ready) {
        self.trust = Some(ready.trust_level);
        self.want_trust(ready);
        if ready.resumed {
            self.say(Style::Dim, "connected again");
            // Its answer comes after everything that was missed; that of an earlier one does not.
            self.unanswered
                .retain(|_, command| !matches!(command, Command::SessionPing(_)));
            self.request(Command::SessionPing(Empty {}));
            return;
        }
        let project = ready.project.as_ref();
        self.project = project.map(|it| it.root.to_string_lossy().into_owned());
        if std::mem::replace(&mut self.is_known, true) {
            self.forget();
            self.drop_waiting();
            let text = "the session is gone, and with it what was said; this is a new one";
            self.say(Style::Red, text);
        } else if self.options.prompt.is_some() {
            self.say_whether_kept(ready);
        } else {
            let configure = self.options.configure.as_ref();
            // Where a flag asks for another one, what is in force then is said once it is.
            let trust = match configure.and_then(|configure| configure.trust_level) {
                None => format!(", trust: {}", word(&ready.trust_level)),
                Some(_) => String::new(),
            };
            let text = format!(
                "outrigger {} in {} (sandbox: {}{trust}); /help lists the commands",
                ready.daemon_version,
                ready.place(),
                ready.sandbox.mode,
            );
            self.say(Style::Dim, text);
            if !ready.persistent {
                self.say(
                    Style::Yellow,
                    "this conversation is not kept; /sessions says why",
                );
            }
        }
        if let Some(why) = &ready.project_error {
            self.say(Style::Red, why.clone());
        }
        match self.options.wanted.take() {
            Some(wanted) => self.seek(wanted, true),
            None => self.set_defaults(),
        }
    }

    /// Says of a single question whether it can be gone on with: to whoever is there, and where it cannot be, to scripts too.
    fn say_whether_kept(&mut self, ready: &Ready) {
        // Another session is gone on in, which is kept.
        if self.options.wanted.is_some() {
            return;
        }
        if !ready.persistent {
            let text = "this conversation is not kept, and nothing can go on with it: store.enabled is false, or a warning of the daemon says why";
            self.say(Style::Yellow, text);
        } else if self.options.attended {
            let id = &ready.session_id;
            let text = format!("kept; `outrigger chat --resume {id}` goes on with it");
            self.say(Style::Dim, text);
        }
    }

    /// Sets the session's defaults, where flags ask for some.
    pub(super) fn set_defaults(&mut self) {
        match self.options.configure.clone() {
            Some(configure) => drop(self.request(Command::SessionConfigure(configure))),
            None => self.prepare(),
        }
    }

    /// The session's defaults are set, or not.
    pub(super) fn configured(&mut self, answer: &Event) {
        match (&self.options.prompt, answer) {
            (Some(_), Event::SessionError(_)) => self.quit(false),
            _ => self.prepare(),
        }
    }

    /// Sees to it that the one thing there is to ask can have an answer.
    fn prepare(&mut self) {
        match self.options.servers && !self.is_asked {
            true => self.look(),
            false => self.begin(),
        }
    }

    /// Asks the one thing there is to ask, once, or goes on with the prompt.
    pub(super) fn begin(&mut self) {
        let output = self.options.output.clone();
        let prompt = self.options.prompt.as_deref();
        match prompt.map(|text| asking_for(send(text), output)) {
            Some(prompt) if !std::mem::replace(&mut self.is_asked, true) => self.wait_for(prompt),
            // Of a session that is gone on in, an exchange may run.
            None if self.busy.is_some() => {}
            _ => self.idle(),
        }
    }

    /// Drops what belonged to a session that is gone.
    pub(super) fn forget(&mut self) {
        self.busy = None;
        self.unanswered.clear();
        self.judged.clear();
        self.questions.clear();
        self.asides.clear();
        self.typing = Typing::Message;
        self.passed = None;
        self.may_go_on = false;
        self.looking = None;
        self.starting = None;
        self.way = None;
        self.well = false;
    }

    /// Sends everything again that has no answer although nothing is missing any more.
    pub(super) fn send_again(&mut self) {
        let unanswered = self.unanswered.iter();
        let again =
            unanswered.map(|(number, command)| Action::Send(request_id(*number), command.clone()));
        self.actions.extend(again);
    }
}

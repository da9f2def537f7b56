//! The chat's loop: socket, keyboard, Ctrl-C and screen around a [`Talk`].

use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::editor;
use super::keyboard::Keyboard;
use super::socket::{Arrival, Link};
use super::talk::{Action, End, Talk, Wishes};
use crate::plain_text::style::{Piece, Style};
use crate::protocol::Command;

/// A question takes no key so soon after it appeared: that was meant for something else.
const SETTLING: Duration = Duration::from_millis(700);

/// How a chat ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself.
    Over(End),
    /// The connection is over, for this reason.
    Cut(String),
}

/// Where things are shown.
pub(super) struct Screens {
    answers: Box<dyn Write + Send>,
    asides: Box<dyn Write + Send>,
    has_colours: bool,
}

impl Screens {
    /// Answers go to standard output; so does the rest, unless `apart`.
    pub(super) fn of_process(apart: bool) -> Self {
        let is_terminal = match apart {
            true => io::stderr().is_terminal(),
            false => io::stdout().is_terminal(),
        };
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            answers: Box::new(io::stdout()),
            asides: match apart {
                true => Box::new(io::stderr()),
                false => Box::new(io::stdout()),
            },
            has_colours: is_terminal && !refused,
        }
    }

    fn show(&mut self, piece: &Piece) -> io::Result<()> {
        match piece {
            Piece::Answer(text) => {
                self.answers.write_all(text.as_bytes())?;
                self.answers.flush()
            }
            Piece::Aside(style, text) => {
                let text = style.paint(text, self.has_colours);
                self.asides.write_all(text.as_bytes())?;
                self.asides.flush()
            }
        }
    }
}

/// Chats until it is over.
///
/// # Errors
///
/// Where nothing can be shown any more, or nothing read.
pub(super) async fn chat(wishes: Wishes, mut link: Link, screens: Screens) -> io::Result<Ending> {
    let mut terminal = Terminal {
        talk: Talk::new(wishes),
        keyboard: Keyboard::new()?,
        screens,
        waits_until: None,
        settling: None,
    };
    let mut interrupts = interrupts()?;
    loop {
        let waits_until = terminal.waits_until;
        let settled = terminal.settling.as_ref().map(|(at, _)| *at);
        let extends_at = terminal.talk.extends_at().map(instant);
        let actions = tokio::select! {
            arrival = link.arrivals.recv() => match arrival {
                Some(Arrival::Frame(frame)) => {
                    terminal.talk.event(&frame.event, frame.reply_to, Timestamp::now())
                }
                Some(Arrival::Lost(why)) => terminal.talk.lost(&why),
                Some(Arrival::Over(why)) => return Ok(Ending::Cut(why)),
                None => return Ok(Ending::Cut("the connection is gone".to_owned())),
            },
            line = terminal.keyboard.line() => {
                terminal.talk.line(line.as_deref(), Timestamp::now())
            }
            Some(()) = interrupts.recv() => terminal.talk.interrupted(),
            () = sleep_until(waits_until.unwrap_or_else(Instant::now)), if waits_until.is_some() => {
                terminal.waits_until = None;
                terminal.talk.waited()
            }
            () = sleep_until(settled.unwrap_or_else(Instant::now)), if settled.is_some() => {
                terminal.settled()?;
                Vec::new()
            }
            () = sleep_until(extends_at.unwrap_or_else(Instant::now)), if extends_at.is_some() => {
                terminal.talk.extend(Timestamp::now())
            }
        };
        if let ControlFlow::Break(ending) = terminal.act(actions, &link).await? {
            return Ok(ending);
        }
    }
}

/// The moment of a time of the wall.
fn instant(at: Timestamp) -> Instant {
    let left = at.duration_since(Timestamp::now());
    match left.is_positive() {
        true => Instant::now() + left.unsigned_abs(),
        false => Instant::now(),
    }
}

#[cfg(unix)]
fn interrupts() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

struct Terminal {
    talk: Talk,
    keyboard: Keyboard,
    screens: Screens,
    /// When the chat is to be told that a time is over.
    waits_until: Option<Instant>,
    /// The prompt of a question that has just appeared, and when it may be answered.
    settling: Option<(Instant, String)>,
}

impl Terminal {
    /// Does what is to be done, and what follows from it.
    async fn act(&mut self, actions: Vec<Action>, link: &Link) -> io::Result<ControlFlow<Ending>> {
        let mut actions: std::collections::VecDeque<Action> = actions.into();
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Show(piece) => self.screens.show(&piece)?,
                Action::Send(id, command) => {
                    // Where the task is gone its last arrival says why.
                    drop(link.frames.send(frame(&id, &command)).await);
                }
                Action::Read { prompt, fresh } => {
                    self.settling = None;
                    if fresh && self.keyboard.is_terminal {
                        self.keyboard.forget(SETTLING);
                        self.settling = Some((Instant::now() + SETTLING, prompt));
                    } else {
                        self.keyboard.ask();
                        self.prompt(&prompt, fresh)?;
                    }
                }
                Action::Forget => {
                    self.settling = None;
                    self.keyboard.forget(Duration::ZERO);
                }
                Action::Wait(time) => self.waits_until = Some(Instant::now() + time),
                Action::Edit(input) => actions.extend(self.edit(&input, link).await),
                Action::Quit(end) => return Ok(ControlFlow::Break(Ending::Over(end))),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Lets a question be answered from now on.
    fn settled(&mut self) -> io::Result<()> {
        let Some((_, prompt)) = self.settling.take() else {
            return Ok(());
        };
        self.keyboard.forget(Duration::ZERO);
        self.keyboard.ask();
        self.prompt(&prompt, true)
    }

    /// A prompt is for people; a question is shown to whoever may answer it.
    fn prompt(&mut self, prompt: &str, is_question: bool) -> io::Result<()> {
        if !self.keyboard.is_terminal && !is_question {
            return Ok(());
        }
        let end = if self.keyboard.is_terminal { "" } else { "\n" };
        let piece = Piece::Aside(Style::Bold, format!("{prompt}{end}"));
        self.screens.show(&piece)
    }

    /// Has the input edited, and keeps its question open meanwhile.
    async fn edit(&mut self, input: &Map<String, Value>, link: &Link) -> Vec<Action> {
        let Some(editor) = editor::editor().filter(|_| self.keyboard.is_terminal) else {
            return self.talk.type_input(None);
        };
        let editing = editor::edit(&editor, input);
        tokio::pin!(editing);
        let edited = loop {
            let extends_at = self.talk.extends_at().map(instant);
            tokio::select! {
                edited = &mut editing => break edited,
                () = sleep_until(extends_at.unwrap_or_else(Instant::now)), if extends_at.is_some() => {
                    for action in self.talk.extend(Timestamp::now()) {
                        if let Action::Send(id, command) = action {
                            // Where there is no room the next one will do.
                            drop(link.frames.try_send(frame(&id, &command)));
                        }
                    }
                }
            }
        };
        match edited {
            Ok(text) => self.talk.edited(Ok(text), Timestamp::now()),
            Err(failure) if failure.is_missing => self.talk.type_input(Some(&failure.text)),
            Err(failure) => self.talk.edited(Err(failure.text), Timestamp::now()),
        }
    }
}

/// A request in the long form.
fn frame(id: &str, command: &Command) -> String {
    let mut frame = serde_json::to_value(command).unwrap_or_default();
    if let Value::Object(fields) = &mut frame {
        fields.insert("id".to_owned(), json!(id));
    }
    frame.to_string()
}

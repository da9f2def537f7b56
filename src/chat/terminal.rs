//! The chat's loop: socket, keyboard, Ctrl-C and screen around a [`Talk`].

use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::editor;
use super::keyboard::Keyboard;
use super::socket::{Arrival, Link};
use super::style::{Piece, Style};
use super::talk::{Action, Talk, Wishes};
use crate::protocol::Command;

/// How a chat ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It was ended, or answered.
    Well,
    /// It has no answer.
    Badly,
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
    };
    let mut interrupts = interrupts()?;
    loop {
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
        };
        if let ControlFlow::Break(ending) = terminal.act(actions, &link).await? {
            return Ok(ending);
        }
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
                    self.keyboard.ask(fresh);
                    self.prompt(&prompt, fresh)?;
                }
                Action::Edit(input) => actions.extend(self.edit(&input).await),
                Action::Quit { well } => {
                    return Ok(ControlFlow::Break(match well {
                        true => Ending::Well,
                        false => Ending::Badly,
                    }));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
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

    async fn edit(&mut self, input: &Map<String, Value>) -> Vec<Action> {
        match editor::editor().filter(|_| self.keyboard.is_terminal) {
            Some(editor) => {
                let text = editor::edit(&editor, input).await;
                self.talk.edited(text, Timestamp::now())
            }
            None => self.talk.type_input(),
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

//! The chat's loop: socket, keyboard, Ctrl-C and screen around a [`Talk`].

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::editor::{self, Failure};
use super::keyboard::Keyboard;
use super::line_editor::{LineEditor, Typed};
use super::socket::{Arrival, Link, Outgoing};
use super::talk::{self, Action, End, Options, Talk};
use crate::plain_text::style::{Piece, Style};
use crate::protocol::Command;
use crate::runtime::sleep_until;

/// A question takes no key so soon after it appeared: that was meant for something else.
const SETTLING: Duration = Duration::from_millis(700);

/// Where things are shown: answers on standard output, and so is the rest, unless `apart`.
pub(super) struct Screens {
    apart: bool,
    has_colours: bool,
    /// Whether frames are printed, and nothing else.
    frames: bool,
}

impl Screens {
    pub(super) fn of_process(apart: bool) -> Self {
        let is_terminal = match apart {
            true => io::stderr().is_terminal(),
            false => io::stdout().is_terminal(),
        };
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let has_colours = is_terminal && !refused;
        Self {
            apart,
            has_colours,
            frames: false,
        }
    }

    /// Prints each frame as it came, and nothing else.
    pub(super) fn frames() -> Self {
        Self {
            apart: true,
            has_colours: false,
            frames: true,
        }
    }

    pub(super) fn wants_frames(&self) -> bool {
        self.frames
    }

    fn show(&self, piece: &Piece) -> io::Result<()> {
        match piece {
            _ if self.frames => Ok(()),
            Piece::Answer(text) => print(io::stdout(), text),
            Piece::Aside(style, text) => {
                let text = style.paint(text, self.has_colours);
                match self.apart {
                    true => print(io::stderr(), &text),
                    false => print(io::stdout(), &text),
                }
            }
        }
    }
}

fn print(mut screen: impl Write, text: &str) -> io::Result<()> {
    screen.write_all(text.as_bytes())?;
    screen.flush()
}

/// Chats until it is over. Where it is dropped, the terminal is as it was before.
pub(super) async fn chat(
    options: Options,
    mut link: Link,
    screens: Screens,
) -> Result<End, String> {
    let failed = |error: io::Error| format!("the terminal failed: {error}");
    let mut interrupts = interrupts().map_err(failed)?;
    let editor = match options.composes {
        true => Some(LineEditor::new(screens.has_colours, talk::commands()).await),
        false => None,
    };
    let mut terminal = Terminal {
        editor,
        keyboard: match options.no_stdin {
            true => Keyboard::closed(),
            false => Keyboard::new(),
        },
        talk: Talk::new(options),
        screens,
        waits_until: None,
        settling: None,
    };
    loop {
        let settled = terminal.settling.as_ref().map(|(at, _)| *at);
        let extends_at = terminal.talk.extends_at().map(instant);
        let actions = tokio::select! {
            arrival = link.arrivals.recv() => match arrival {
                Some(Arrival::Frame(frame)) => {
                    terminal.talk.event(&frame.event, frame.reply_to, Timestamp::now())
                }
                Some(Arrival::Text(frame)) => {
                    print(io::stdout(), &(frame + "\n")).map_err(failed)?;
                    Vec::new()
                }
                Some(Arrival::Lost(why)) => terminal.talk.lost(&why),
                Some(Arrival::Over(why)) => return Err(why),
                None => return Err("the connection is gone".to_owned()),
            },
            line = terminal.keyboard.line() => {
                terminal.talk.line(line.as_deref(), Timestamp::now())
            }
            typed = typed(&mut terminal.editor) => {
                terminal.typed(typed.map_err(failed)?).map_err(failed)?
            }
            Some(()) = interrupts.recv() => terminal.talk.interrupted(),
            () = sleep_until(terminal.waits_until) => {
                terminal.waits_until = None;
                terminal.talk.waited()
            }
            () = sleep_until(settled) => {
                terminal.settled().map_err(failed)?;
                Vec::new()
            }
            () = sleep_until(extends_at) => terminal.talk.extend(Timestamp::now()),
        };
        if let Some(end) = terminal.act(actions, &link).await.map_err(failed)? {
            return Ok(end);
        }
    }
}

/// Waits for what is typed in a line editor, where there is one.
async fn typed(editor: &mut Option<LineEditor>) -> io::Result<Typed> {
    match editor {
        Some(editor) => editor.next().await,
        None => std::future::pending().await,
    }
}

/// The moment of a time of the wall.
fn instant(at: Timestamp) -> Instant {
    let left = at.duration_since(Timestamp::now());
    Instant::now() + Duration::try_from(left).unwrap_or_default()
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
    /// What a person types on; `None` where lines are read as they are.
    editor: Option<LineEditor>,
    keyboard: Keyboard,
    screens: Screens,
    /// When the chat is to be notified that a time is over.
    waits_until: Option<Instant>,
    /// The prompt of a question that has just appeared, and when it may be answered.
    settling: Option<(Instant, String)>,
}

impl Terminal {
    /// Does what is to be done, and what follows from it; returns how the chat ended where it did.
    async fn act(&mut self, actions: Vec<Action>, link: &Link) -> io::Result<Option<End>> {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Show(piece) => self.show(&piece)?,
                Action::Send(id, command) => {
                    // Where the task is gone its last arrival says why.
                    drop(link.outgoing.send(frame(&id, &command)).await);
                }
                Action::Open(session) => {
                    drop(link.outgoing.send(Outgoing::Open(session)).await);
                }
                Action::Read { prompt, fresh } => {
                    self.settling = None;
                    if fresh && self.keyboard.is_terminal {
                        match &mut self.editor {
                            Some(editor) => editor.hide()?,
                            None => self.keyboard.forget(SETTLING),
                        }
                        self.settling = Some((Instant::now() + SETTLING, prompt));
                    } else if let Some(editor) = &mut self.editor {
                        if let Some(folder) = self.talk.folder() {
                            editor.folder = folder.into();
                        }
                        editor.message(&prompt)?;
                    } else {
                        let is_answered = !self.keyboard.is_at_end();
                        self.keyboard.ask();
                        self.prompt(&prompt, fresh && is_answered)?;
                    }
                }
                Action::Forget => {
                    self.settling = None;
                    match &mut self.editor {
                        None => self.keyboard.forget(Duration::ZERO),
                        Some(editor) => match editor.settle(SETTLING)? {
                            Some(text) => put_first(&mut actions, self.talk.dropped(&text)),
                            None => self.talk.nothing_was_typed(),
                        },
                    }
                }
                Action::Wait(time) => self.waits_until = Some(Instant::now() + time),
                Action::Edit(input) => actions.extend(self.edit(&input, link).await),
                Action::Quit(end) => return Ok(Some(end)),
            }
        }
        Ok(None)
    }

    /// Lets a question be answered from now on.
    fn settled(&mut self) -> io::Result<()> {
        let Some((_, prompt)) = self.settling.take() else {
            return Ok(());
        };
        if let Some(editor) = &mut self.editor {
            return editor.answer(&prompt);
        }
        self.keyboard.forget(Duration::ZERO);
        self.keyboard.ask();
        self.prompt(&prompt, true)
    }

    /// Takes what a person did at the line editor.
    fn typed(&mut self, typed: Typed) -> io::Result<Vec<Action>> {
        let now = Timestamp::now();
        Ok(match typed {
            Typed::Key => {
                self.talk.touched(now);
                Vec::new()
            }
            Typed::Line { text, echo } => {
                let mut actions = self.talk.echo(&echo);
                actions.extend(self.talk.line(Some(&text), now));
                actions
            }
            Typed::End => self.talk.line(None, now),
            Typed::Interrupt => {
                let editor = self.editor.as_mut().filter(|_| !self.talk.is_busy());
                // Where nothing runs it is for what is typed, as in a shell.
                match editor.map_or(Ok(false), LineEditor::empty)? {
                    true => Vec::new(),
                    false => self.talk.interrupted(),
                }
            }
        })
    }

    fn show(&mut self, piece: &Piece) -> io::Result<()> {
        let Some(editor) = &mut self.editor else {
            return self.screens.show(piece);
        };
        match piece {
            Piece::Answer(text) => editor.print(text),
            Piece::Aside(style, text) => editor.print(&style.paint(text, self.screens.has_colours)),
        }
    }

    /// A prompt is for people; a question is shown to whoever may answer it.
    fn prompt(&self, prompt: &str, is_question: bool) -> io::Result<()> {
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
        if let Some(Err(error)) = self.editor.as_mut().map(LineEditor::pause) {
            return self.talk.edited(Err(error.to_string()), Timestamp::now());
        }
        let editing = editor::edit(&editor, input);
        tokio::pin!(editing);
        let edited = loop {
            let extends_at = self.talk.extends_at().map(instant);
            tokio::select! {
                edited = &mut editing => break edited,
                () = sleep_until(extends_at) => {
                    for action in self.talk.extend(Timestamp::now()) {
                        if let Action::Send(id, command) = action {
                            // Where there is no room the next one will do.
                            drop(link.outgoing.try_send(frame(&id, &command)));
                        }
                    }
                }
            }
        };
        if let Some(Err(error)) = self.editor.as_mut().map(LineEditor::resume) {
            return self.talk.edited(Err(error.to_string()), Timestamp::now());
        }
        let text = match edited {
            Err(Failure::Missing(problem)) => return self.talk.type_input(Some(&problem)),
            Err(Failure::Failed(problem)) => Err(problem),
            Ok(text) => Ok(text),
        };
        self.talk.edited(text, Timestamp::now())
    }
}

/// Puts these actions before everything else that is still to be done.
fn put_first(actions: &mut VecDeque<Action>, first: Vec<Action>) {
    for action in first.into_iter().rev() {
        actions.push_front(action);
    }
}

fn frame(id: &str, command: &Command) -> Outgoing {
    let mut frame = serde_json::to_value(command).unwrap_or_default();
    if let Value::Object(fields) = &mut frame {
        fields.insert("id".to_owned(), json!(id));
    }
    Outgoing::Frame(frame.to_string())
}

//! The line that a person types on in a terminal, with the answer streaming above it.
//!
//! Keys and pastes come from crossterm, text and history from rustyline ([`draft`] says why not its reader); reedline would
//! not do either: it prints whole lines only, counts bytes where it should count columns, and asks the terminal for its cursor
//! at each prompt. Where standard input or output is no terminal, or a dumb one, `keyboard` reads lines as they are.
//!
//! While a question is on the screen it has a draft of its own; the message that was being typed comes back afterwards.

mod completion;
mod draft;
mod history;
mod paper;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyEvent};
use crossterm::{execute, terminal};
use futures::StreamExt as _;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

use crate::runtime::sleep_until;
use completion::{Completed, Of};
use draft::{Draft, Outcome, is_interrupt};
use history::History;
use paper::{Paper, Sheet};

/// The prompt of a message.
const PROMPT: &str = "> ";

/// What a person did.
#[derive(Debug)]
pub(super) enum Typed {
    /// A line was ended; this is how it looked.
    Line { text: String, echo: String },
    /// Something was typed.
    Key,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    End,
}

pub(super) struct LineEditor {
    /// The terminal, once there is something to type.
    keys: Option<Keys>,
    paper: Paper,
    has_colours: bool,
    mode: Mode,
    draft: Draft,
    /// The message that was being typed when a question came.
    aside: Option<Draft>,
    prompt: String,
    note: String,
    history: History,
    /// What can be typed that begins with a slash.
    commands: Vec<String>,
    /// Where the paths are that can be completed.
    pub(super) folder: PathBuf,
    /// The names that a completion waits for, with what they are for.
    listing: Option<(Listed, JoinHandle<Vec<String>>)>,
    /// There is no line, and no key counts, before this.
    deaf_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// There is no line: a question has just appeared, and takes no key yet.
    Hidden,
    Message,
    Answer,
}

/// What a completion was asked for.
struct Listed {
    text: String,
    start: usize,
    prefix: String,
}

/// A terminal that gives each key at once, until this is gone.
struct Keys(EventStream);

impl Keys {
    fn begin() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let keys = Self(EventStream::new());
        // One that does not know it gives what is pasted line by line.
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(keys)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let ended = execute!(io::stdout(), DisableBracketedPaste);
        if let Err(error) = ended.and_then(|()| terminal::disable_raw_mode()) {
            tracing::debug!(%error, "the terminal could not be set back");
        }
    }
}

impl LineEditor {
    /// Whether standard input and output are a terminal that a line can be edited on.
    pub(super) fn fits() -> bool {
        let name = std::env::var_os("TERM").unwrap_or_default();
        let is_able = !name.is_empty() && name != "dumb";
        is_able && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    pub(super) async fn new(has_colours: bool, commands: Vec<String>) -> Self {
        Self {
            keys: None,
            paper: Paper::new(terminal::size().unwrap_or_default()),
            has_colours,
            mode: Mode::Message,
            draft: Draft::default(),
            aside: None,
            prompt: PROMPT.to_owned(),
            note: String::new(),
            history: History::of_user().await,
            commands,
            folder: std::env::current_dir().unwrap_or_default(),
            listing: None,
            deaf_until: None,
        }
    }

    /// Lets a message be typed from now on.
    pub(super) fn message(&mut self, prompt: &str) -> io::Result<()> {
        if self.mode != Mode::Message {
            self.draft = self.aside.take().unwrap_or_default();
            self.mode = Mode::Message;
        }
        prompt.clone_into(&mut self.prompt);
        self.draw_anew()
    }

    /// A question has appeared: what is being typed waits, and no key counts until [`answer`](Self::answer).
    pub(super) fn hide(&mut self) -> io::Result<()> {
        let draft = std::mem::take(&mut self.draft);
        if self.mode == Mode::Message {
            self.aside = Some(draft);
        }
        self.mode = Mode::Hidden;
        self.draw_anew()
    }

    /// Lets the question be answered.
    pub(super) fn answer(&mut self, prompt: &str) -> io::Result<()> {
        self.mode = Mode::Answer;
        prompt.clone_into(&mut self.prompt);
        self.draw_anew()
    }

    /// The question is settled; returns what was typed for it. What is still on its way from the fingers does not count.
    pub(super) fn settle(&mut self, longer: Duration) -> io::Result<Option<String>> {
        if self.mode == Mode::Message {
            return Ok(None);
        }
        let dropped = Some(self.draft.take()).filter(|text| !text.trim().is_empty());
        if dropped.is_some() {
            self.deaf_until = Some(Instant::now() + longer);
        }
        self.message(PROMPT)?;
        Ok(dropped)
    }

    /// Empties the line of a message; returns whether there was something on it.
    pub(super) fn empty(&mut self) -> io::Result<bool> {
        let is_typed = self.mode == Mode::Message && !self.draft.text().is_empty();
        if is_typed {
            self.draft.take();
            self.draw_anew()?;
        }
        Ok(is_typed)
    }

    /// Prints above the line.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        if self.keys.is_none() {
            let mut out = String::new();
            self.paper.print(text, &mut out);
            // The terminal makes the carriage returns itself as yet; one more does no harm.
            return write(&out);
        }
        let mut out = String::new();
        self.paper.erase(&mut out);
        self.paper.print(text, &mut out);
        self.draw(&mut out);
        write(&out)
    }

    /// Gives the terminal to another program.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        let mut out = String::new();
        self.paper.erase(&mut out);
        self.keys = None;
        write(&out)
    }

    /// Takes the terminal back.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.draw_anew()
    }

    /// Waits for what a person does. Nothing is lost where this is not waited for to its end.
    pub(super) async fn next(&mut self) -> io::Result<Typed> {
        loop {
            let Some(Keys(keys)) = &mut self.keys else {
                return std::future::pending().await;
            };
            tokio::select! {
                event = keys.next() => {
                    let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
                    if let Some(typed) = self.take(event)? {
                        return Ok(typed);
                    }
                }
                (listed, names) = listed(&mut self.listing) => self.completed(&listed, &names)?,
                () = sleep_until(self.deaf_until) => {
                    self.deaf_until = None;
                    self.draw_anew()?;
                }
            }
        }
    }

    fn take(&mut self, event: Event) -> io::Result<Option<Typed>> {
        let outcome = match event {
            Event::Resize(columns, rows) => {
                // What is on the screen was broken anew already, so it is taken away by the new size.
                self.paper.resize((columns, rows));
                self.draw_anew()?;
                return Ok(None);
            }
            Event::Key(key) => self.key(key),
            Event::Paste(text) if self.hears() => self.draft.paste(&text),
            _ => Outcome::Nothing,
        };
        self.note.clear();
        match outcome {
            Outcome::Nothing => {}
            Outcome::Changed => self.draw_anew()?,
            Outcome::Entered(text) => return self.entered(text).map(Some),
            Outcome::Interrupt => return Ok(Some(Typed::Interrupt)),
            Outcome::End => return Ok(Some(Typed::End)),
            Outcome::Complete => self.complete()?,
            Outcome::Clear => {
                let mut out = String::new();
                self.paper.clear(&mut out);
                self.draw(&mut out);
                write(&out)?;
            }
            Outcome::Suspend => self.suspend()?,
            Outcome::Full => {
                let most = draft::DRAFT_BYTES / 1024;
                self.note = format!("not added: a message has {most} KiB at most");
                self.draw_anew()?;
            }
        }
        Ok(Some(Typed::Key))
    }

    fn key(&mut self, key: KeyEvent) -> Outcome {
        if self.hears() {
            return self.draft.key(key, &self.history);
        }
        // Ctrl-C is always heard.
        match is_interrupt(&key) {
            true => Outcome::Interrupt,
            false => Outcome::Nothing,
        }
    }

    /// Whether what is typed counts.
    fn hears(&self) -> bool {
        self.mode != Mode::Hidden && self.deaf_until.is_none()
    }

    fn entered(&mut self, text: String) -> io::Result<Typed> {
        let echo = format!("{}{text}", self.prompt);
        // An answer to a question is in no history: it may be a secret.
        if self.mode == Mode::Message {
            self.history.add(&text);
        }
        self.message(PROMPT)?;
        Ok(Typed::Line { text, echo })
    }

    fn complete(&mut self) -> io::Result<()> {
        if self.mode != Mode::Message {
            return Ok(());
        }
        let text = self
            .draft
            .text()
            .get(..self.draft.position())
            .unwrap_or_default()
            .to_owned();
        let Some(wanted) = completion::wanted(&text, &self.commands, &self.folder) else {
            return Ok(());
        };
        let start = wanted.start;
        match wanted.of {
            Of::Words(words) => {
                let prefix = text.get(start..).unwrap_or_default().to_owned();
                self.completed(
                    &Listed {
                        text,
                        start,
                        prefix,
                    },
                    &words,
                )
            }
            Of::Folder { folder, prefix } => {
                let listed = Listed {
                    text,
                    start,
                    prefix: prefix.clone(),
                };
                let names = spawn_blocking(move || completion::names(&folder, &prefix));
                self.listing = Some((listed, names));
                Ok(())
            }
        }
    }

    /// Takes what there is to complete, unless something was typed meanwhile.
    fn completed(&mut self, listed: &Listed, names: &[String]) -> io::Result<()> {
        let now = self.draft.text().get(..self.draft.position());
        if self.mode != Mode::Message || now != Some(listed.text.as_str()) {
            return Ok(());
        }
        match completion::complete(&listed.prefix, names) {
            Completed::Nothing => return Ok(()),
            Completed::Put(text) => drop(self.draft.complete(listed.start, &text)),
            Completed::Several(text) => self.note = text,
        }
        self.draw_anew()
    }

    /// Stops the program as Ctrl-Z does, and goes on when it is continued.
    fn suspend(&mut self) -> io::Result<()> {
        self.pause()?;
        #[cfg(unix)]
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
        self.draw_anew()
    }

    fn draw_anew(&mut self) -> io::Result<()> {
        if self.keys.is_none() {
            self.keys = Some(Keys::begin()?);
            self.paper.resize(terminal::size().unwrap_or_default());
        }
        let mut out = String::new();
        self.paper.erase(&mut out);
        self.draw(&mut out);
        write(&out)
    }

    fn draw(&mut self, out: &mut String) {
        if !self.hears() || self.keys.is_none() {
            return;
        }
        let sheet = Sheet {
            prompt: &self.prompt,
            text: self.draft.text(),
            position: self.draft.position(),
            note: &self.note,
            colours: self.has_colours,
        };
        self.paper.draw(&sheet, out);
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        drop(self.pause());
    }
}

/// Waits for the names that are read, where some are.
async fn listed(listing: &mut Option<(Listed, JoinHandle<Vec<String>>)>) -> (Listed, Vec<String>) {
    let names = match listing {
        Some((_, reading)) => reading.await.unwrap_or_default(),
        None => return std::future::pending().await,
    };
    match listing.take() {
        Some((listed, _)) => (listed, names),
        None => std::future::pending().await,
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut screen = io::stdout();
    screen.write_all(text.as_bytes())?;
    screen.flush()
}

//! What is typed and not sent yet: text, cursor, and what each key does to them. Pure.
//!
//! The text and its movements by word and by visible character are rustyline's; its own reader is not used, since nothing from
//! outside can interrupt it or change its prompt, as a question does that comes while a person types.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, Movement, Word};
use unicode_segmentation::UnicodeSegmentation as _;

use super::history::History;

/// The longest draft, in bytes: what is pasted beyond that is refused.
pub(super) const DRAFT_BYTES: usize = 1024 * 1024;

/// What a key came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing to draw.
    Nothing,
    Changed,
    Entered(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D where nothing is typed.
    End,
    Complete,
    /// Draw everything on an empty screen.
    Clear,
    Suspend,
    /// There is no room for more.
    Full,
}

pub(super) struct Draft {
    line: LineBuffer,
    killed: Killed,
    browsing: Option<Browsing>,
}

/// Where a walk through the history is.
struct Browsing {
    at: usize,
    /// What was typed before it began: entries that begin so are gone through.
    typed: String,
}

/// What was cut last, to be put in again.
#[derive(Default)]
struct Killed {
    text: String,
    is_cutting: bool,
}

impl DeleteListener for Killed {
    fn start_killing(&mut self) {
        self.is_cutting = true;
    }

    fn delete(&mut self, _: usize, text: &str, _: Direction) {
        if self.is_cutting {
            text.clone_into(&mut self.text);
        }
    }

    fn stop_killing(&mut self) {
        self.is_cutting = false;
    }
}

impl ChangeListener for Killed {
    fn insert_char(&mut self, _: usize, _: char) {}

    fn insert_str(&mut self, _: usize, _: &str) {}

    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            line: LineBuffer::with_capacity(DRAFT_BYTES),
            killed: Killed::default(),
            browsing: None,
        }
    }
}

impl Draft {
    pub(super) fn text(&self) -> &str {
        self.line.as_str()
    }

    /// Returns the text and leaves nothing.
    pub(super) fn take(&mut self) -> String {
        let text = self.line.as_str().to_owned();
        self.set("", 0);
        self.browsing = None;
        text
    }

    /// Where the cursor is, in bytes.
    pub(super) fn position(&self) -> usize {
        self.line.pos()
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent, history: &History) -> Outcome {
        if key.kind == KeyEventKind::Release {
            return Outcome::Nothing;
        }
        let has = |modifier| key.modifiers.contains(modifier);
        let control = is_with_control(&key);
        let alt = has(KeyModifiers::ALT) && !has(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => return self.up(history),
            KeyCode::Down => return self.down(history),
            KeyCode::Char('p') if control => return self.up(history),
            KeyCode::Char('n') if control => return self.down(history),
            _ => self.browsing = None,
        }
        match key.code {
            KeyCode::Enter if alt || has(KeyModifiers::SHIFT) => self.insert('\n'),
            KeyCode::Enter => Outcome::Entered(self.take()),
            KeyCode::Tab => Outcome::Complete,
            KeyCode::Backspace if control || alt => {
                self.cut(&Movement::BackwardWord(1, Word::Emacs))
            }
            KeyCode::Backspace => self.cut(&Movement::BackwardChar(1)),
            KeyCode::Delete => self.cut(&Movement::ForwardChar(1)),
            KeyCode::Left if control || alt => {
                self.moved(|line| line.move_to_prev_word(Word::Emacs, 1))
            }
            KeyCode::Right if control || alt => self.moved(next_word),
            KeyCode::Left => self.moved(|line| line.move_backward(1)),
            KeyCode::Right => self.moved(|line| line.move_forward(1)),
            KeyCode::Home if control => self.moved(LineBuffer::move_buffer_start),
            KeyCode::End if control => self.moved(LineBuffer::move_buffer_end),
            KeyCode::Home => self.moved(LineBuffer::move_home),
            KeyCode::End => self.moved(LineBuffer::move_end),
            KeyCode::Char(_) if is_interrupt(&key) => Outcome::Interrupt,
            KeyCode::Char(letter) if control => self.control(letter),
            KeyCode::Char('b') if alt => self.moved(|line| line.move_to_prev_word(Word::Emacs, 1)),
            KeyCode::Char('f') if alt => self.moved(next_word),
            KeyCode::Char('d') if alt => {
                self.cut(&Movement::ForwardWord(1, At::AfterEnd, Word::Emacs))
            }
            KeyCode::Char(letter) if !alt => self.insert(letter),
            _ => Outcome::Nothing,
        }
    }

    /// A letter together with the control key, as in other programs that read lines.
    fn control(&mut self, letter: char) -> Outcome {
        match letter {
            'd' if self.line.is_empty() => Outcome::End,
            'd' => self.cut(&Movement::ForwardChar(1)),
            'z' => Outcome::Suspend,
            'l' => Outcome::Clear,
            'j' => self.insert('\n'),
            'a' => self.moved(LineBuffer::move_home),
            'e' => self.moved(LineBuffer::move_end),
            'b' => self.moved(|line| line.move_backward(1)),
            'f' => self.moved(|line| line.move_forward(1)),
            'h' => self.cut(&Movement::BackwardChar(1)),
            'k' => self.cut(&Movement::EndOfLine),
            'u' => self.cut(&Movement::BeginningOfLine),
            'w' => self.cut(&Movement::BackwardWord(1, Word::Big)),
            't' => {
                let changed = self.line.transpose_chars(&mut self.killed);
                drawn(changed)
            }
            'y' => {
                let text = self.killed.text.clone();
                self.put(&text)
            }
            _ => Outcome::Nothing,
        }
    }

    /// Takes what was pasted: several lines stay one draft, and nothing in it is a key.
    pub(super) fn paste(&mut self, text: &str) -> Outcome {
        self.browsing = None;
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_text = |letter: &char| matches!(letter, '\n' | '\t') || !letter.is_control();
        let text: String = text.chars().filter(is_text).collect();
        self.put(&text)
    }

    /// Puts a text in the place of what stands between `start` and the cursor.
    pub(super) fn complete(&mut self, start: usize, text: &str) -> Outcome {
        let end = self.line.pos();
        let is_there = self.text().get(start..end).is_some();
        if !is_there || self.line.len() + text.len() > DRAFT_BYTES {
            return Outcome::Full;
        }
        self.line.replace(start..end, text, &mut self.killed);
        Outcome::Changed
    }

    fn put(&mut self, text: &str) -> Outcome {
        self.complete(self.line.pos(), text)
    }

    fn insert(&mut self, letter: char) -> Outcome {
        match self.line.insert(letter, 1, &mut self.killed) {
            Some(_) => Outcome::Changed,
            None => Outcome::Full,
        }
    }

    fn cut(&mut self, what: &Movement) -> Outcome {
        drawn(self.line.kill(what, &mut self.killed))
    }

    fn moved(&mut self, movement: impl FnOnce(&mut LineBuffer) -> bool) -> Outcome {
        drawn(movement(&mut self.line))
    }

    fn up(&mut self, history: &History) -> Outcome {
        match self.browsing.is_none() && self.vertical(true) {
            true => Outcome::Changed,
            false => self.browse(history, true),
        }
    }

    fn down(&mut self, history: &History) -> Outcome {
        match self.browsing.is_none() && self.vertical(false) {
            true => Outcome::Changed,
            false => self.browse(history, false),
        }
    }

    /// Moves a line up or down, where there is one.
    fn vertical(&mut self, is_up: bool) -> bool {
        let (text, position) = (self.line.as_str(), self.line.pos());
        let (before, after) = text.split_at_checked(position).unwrap_or((text, ""));
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before
            .get(start..)
            .unwrap_or_default()
            .graphemes(true)
            .count();
        let target = match is_up {
            true if start == 0 => return false,
            true => before
                .get(..start - 1)
                .unwrap_or_default()
                .rfind('\n')
                .map_or(0, |at| at + 1),
            false => match after.find('\n') {
                Some(at) => position + at + 1,
                None => return false,
            },
        };
        let line = text.get(target..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        let mut letters = line.grapheme_indices(true);
        let offset = letters.nth(column).map_or(line.len(), |(at, _)| at);
        self.line.set_pos(target + offset);
        true
    }

    /// Goes to the next older or newer entry that begins as what was typed.
    fn browse(&mut self, history: &History, is_older: bool) -> Outcome {
        let (at, typed) = match &self.browsing {
            Some(browsing) => (browsing.at, browsing.typed.clone()),
            None => (history.count(), self.text().to_owned()),
        };
        let fits = |index: &usize| {
            let entry = history.entry(*index).unwrap_or_default();
            entry.starts_with(&typed) && entry != self.text()
        };
        let found = match is_older {
            true => (0..at).rev().find(fits),
            false => (at + 1..history.count()).find(fits),
        };
        match found {
            Some(index) => {
                let entry = history.entry(index).unwrap_or_default().to_owned();
                self.set(&entry, entry.len());
                self.browsing = Some(Browsing { at: index, typed });
                Outcome::Changed
            }
            // After the newest entry comes what was typed.
            None if !is_older && self.browsing.take().is_some() => {
                self.set(&typed, typed.len());
                Outcome::Changed
            }
            None => Outcome::Nothing,
        }
    }

    fn set(&mut self, text: &str, position: usize) {
        self.line.update(text, position, &mut self.killed);
    }
}

/// Returns whether a key is Ctrl-C.
pub(super) fn is_interrupt(key: &KeyEvent) -> bool {
    let is_pressed = key.kind != KeyEventKind::Release;
    is_pressed && key.code == KeyCode::Char('c') && is_with_control(key)
}

/// Whether control is held alone: together with alt it is how some layouts type a character.
fn is_with_control(key: &KeyEvent) -> bool {
    let has = |modifier| key.modifiers.contains(modifier);
    has(KeyModifiers::CONTROL) && !has(KeyModifiers::ALT)
}

fn next_word(line: &mut LineBuffer) -> bool {
    line.move_to_next_word(At::AfterEnd, Word::Emacs, 1)
}

fn drawn(changed: bool) -> Outcome {
    match changed {
        true => Outcome::Changed,
        false => Outcome::Nothing,
    }
}

#[cfg(test)]
mod tests;

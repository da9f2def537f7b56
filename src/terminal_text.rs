//! What a terminal would show of a program's output, as text. Pure.
//!
//! Tabs and line feeds stay. Of a line that was written several times, as progress bars are, the last state stays:
//! carriage return, backspace and the sequences that move the cursor or erase are carried out. Colours, titles and
//! all other controls are dropped. Lines are as long as they are written, nothing wraps.

mod line;

use std::collections::VecDeque;

pub(crate) use outrigger_shell::{is_hidden, is_invisible};

use line::Line;
use vte::{Params, Parser, Perform};

/// Lines that the cursor can go back to; a line further up is final. Larger than the screens that programs draw
/// their progress on.
const OPEN_LINES: usize = 64;

/// Longest line that can still be changed, in characters; of a longer one the beginning is final.
const MAX_LINE: usize = 16 * 1024;

/// Farthest column that a sequence moves the cursor to beyond the end of a line.
const MAX_COLUMN: usize = 1_000;

/// Longest escape sequence, in bytes; what goes on for longer is none.
const MAX_SEQUENCE: usize = 64 * 1024;

/// Returns what a terminal would show of the whole text.
pub fn shown(text: &str) -> String {
    let mut screen = Screen::default();
    let mut shown = screen.push(text);
    shown.push_str(&screen.finish());
    shown
}

/// Escapes what would be invisible, or would change the order of what is seen: nobody says yes to what cannot be seen.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut shown, letter| {
            match is_hidden(letter) {
                true => shown.extend(letter.escape_default()),
                false => shown.push(letter),
            }
            shown
        })
}

/// The text of a stream that comes in pieces, in memory that does not grow with it.
#[derive(Default)]
pub struct Screen {
    parser: Parser,
    /// Bytes of the escape sequence that has begun; 0 where none has.
    sequence: usize,
    page: Page,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Screen {
    /// Takes a piece and returns the text that can no longer change, perhaps nothing.
    pub fn push(&mut self, piece: &str) -> String {
        let mut rest = piece;
        loop {
            if self.sequence == 0 {
                let end = rest.find(char::is_control).unwrap_or(rest.len());
                let (text, controls) = rest.split_at_checked(end).unwrap_or((rest, ""));
                self.page.print(text);
                rest = controls;
            }
            let mut letters = rest.chars();
            let Some(letter) = letters.next() else {
                break;
            };
            rest = letters.as_str();
            if letter == '\n' {
                // No sequence goes on in the next line. One without an end would swallow all that follows.
                self.end_sequence();
            }
            match letter == '\u{1b}' || self.sequence > 0 {
                true => self.feed(letter),
                false => self.page.control(letter),
            }
        }
        std::mem::take(&mut self.page.settled)
    }

    /// Returns the rest, at the end.
    pub fn finish(self) -> String {
        let mut rest = self.page.settled;
        for line in self.page.above {
            line.append_to(&mut rest);
            rest.push('\n');
        }
        self.page.line.append_to(&mut rest);
        for line in self.page.below.into_iter().rev() {
            rest.push('\n');
            line.append_to(&mut rest);
        }
        rest
    }

    /// Hands a character of a sequence to the parser.
    fn feed(&mut self, letter: char) {
        let mut buffer = [0; 4];
        let bytes = letter.encode_utf8(&mut buffer).as_bytes();
        self.page.dispatched = false;
        self.parser.advance(&mut self.page, bytes);
        self.sequence += bytes.len();
        // The escape character ends a string such as a title, and begins the sequence that says so.
        let ended = self.page.dispatched && letter != '\u{1b}';
        if ended {
            self.sequence = 0;
        } else if self.sequence > MAX_SEQUENCE {
            self.end_sequence();
        }
    }

    fn end_sequence(&mut self) {
        if std::mem::take(&mut self.sequence) > 0 {
            self.parser = Parser::new();
        }
    }
}

/// The lines that can still change, and the cursor among them.
#[derive(Default)]
struct Page {
    /// What can no longer change.
    settled: String,
    above: VecDeque<Line>,
    /// The line that the cursor is in.
    line: Line,
    /// The lines below it, the next one last.
    below: Vec<Line>,
    /// Where the next character goes; of a line that is only appended to, its end.
    column: usize,
    /// A carriage return came, and nothing after it yet: before a line feed it does nothing.
    returned: bool,
    /// Whether a sequence has ended.
    dispatched: bool,
}

impl Page {
    fn print(&mut self, text: &str) {
        if !text.is_empty() {
            self.carry_out_return();
            self.column = self.line.write(self.column, text);
            self.settle_long_line();
        }
    }

    fn control(&mut self, control: char) {
        match control {
            '\n' => self.line_feed(),
            '\r' => self.returned = true,
            '\t' => {
                self.carry_out_return();
                self.column = self.line.tab(self.column);
                self.settle_long_line();
            }
            '\u{8}' => self.move_to(|column| column.saturating_sub(1)),
            _ => {}
        }
    }

    fn line_feed(&mut self) {
        self.returned = false;
        self.column = 0;
        let mut next = Line::default();
        if let Some(line) = self.below.pop() {
            // The cursor was further up: the line is written anew.
            next = line;
            next.open();
        }
        self.above
            .push_back(std::mem::replace(&mut self.line, next));
        if self.above.len() == OPEN_LINES {
            self.settle_first();
        }
    }

    /// Makes the line ready to be changed and returns the cursor's column.
    fn open(&mut self) -> usize {
        self.carry_out_return();
        if let Some(end) = self.line.open() {
            self.column = end;
        }
        self.column
    }

    fn carry_out_return(&mut self) {
        if std::mem::take(&mut self.returned) {
            self.open();
            self.column = 0;
        }
    }

    fn move_to(&mut self, column: impl Fn(usize) -> usize) {
        let column = column(self.open());
        self.column = column.min(self.line.width().max(MAX_COLUMN));
    }

    /// Moves the cursor up; it keeps its column.
    fn move_up(&mut self, count: usize) {
        let column = self.open();
        for _ in 0..count {
            let Some(line) = self.above.pop_back() else {
                break;
            };
            self.below.push(std::mem::replace(&mut self.line, line));
        }
        self.line.open();
        self.column = column;
    }

    /// Moves the cursor down; it keeps its column.
    fn move_down(&mut self, count: usize) {
        let column = self.open();
        for _ in 0..count {
            let Some(line) = self.below.pop() else {
                break;
            };
            self.above
                .push_back(std::mem::replace(&mut self.line, line));
        }
        self.line.open();
        self.column = column;
    }

    fn settle_first(&mut self) {
        if let Some(line) = self.above.pop_front() {
            line.append_to(&mut self.settled);
            self.settled.push('\n');
        }
    }

    /// Settles what the current line has, and all above it, where it is too long to be changed.
    fn settle_long_line(&mut self) {
        if self.line.width() > MAX_LINE {
            while !self.above.is_empty() {
                self.settle_first();
            }
            self.column = 0;
            std::mem::take(&mut self.line).append_to(&mut self.settled);
        }
    }
}

impl Perform for Page {
    fn print(&mut self, _: char) {
        self.dispatched = true;
    }

    /// A control in the middle of a sequence; two of them break it off.
    fn execute(&mut self, byte: u8) {
        match byte {
            0x18 | 0x1a => self.dispatched = true,
            _ => self.control(char::from(byte)),
        }
    }

    fn unhook(&mut self) {
        self.dispatched = true;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.dispatched = true;
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        self.dispatched = true;
        // Reverse index.
        if intermediates.is_empty() && byte == b'M' {
            self.move_up(1);
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.dispatched = true;
        if ignore || !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|parameter| parameter.first());
        let first = usize::from(first.copied().unwrap_or(0));
        let count = first.max(1);
        match action {
            'A' => self.move_up(count),
            'B' => self.move_down(count),
            'C' => self.move_to(|column| column.saturating_add(count)),
            'D' => self.move_to(|column| column.saturating_sub(count)),
            'E' => {
                self.move_down(count);
                self.column = 0;
            }
            'F' => {
                self.move_up(count);
                self.column = 0;
            }
            'G' => self.move_to(|_| count - 1),
            'J' if first == 0 => {
                let column = self.open();
                self.below.clear();
                self.line.erase_from(column);
            }
            'K' => {
                let column = self.open();
                match first {
                    0 => self.line.erase_from(column),
                    1 => self.line.erase_to(column),
                    2 => self.line.erase_from(0),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

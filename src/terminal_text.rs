//! What a terminal would show of a program's output, as text. Pure.
//!
//! Tabs and line feeds stay. Of a line that was written several times, as progress bars are, the last state stays:
//! carriage return, backspace and the sequences that move the cursor or erase are carried out. Colours, titles and
//! all other controls are dropped. Lines are as long as they are written, nothing wraps.

mod characters;
mod line;

use std::collections::VecDeque;

pub(crate) use characters::{is_hidden, is_invisible};
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
        while !rest.is_empty() {
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
            match letter {
                '\u{1b}' if self.sequence == 0 => self.feed(letter),
                _ if self.sequence == 0 => self.page.control(letter),
                // No sequence goes on in the next line. One without an end would swallow all that follows.
                '\n' => {
                    self.end_sequence();
                    self.page.control(letter);
                }
                _ => self.feed(letter),
            }
        }
        std::mem::take(&mut self.page.settled)
    }

    /// Returns the rest, at the end.
    pub fn finish(mut self) -> String {
        self.page.settle_all();
        self.page.settled
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
        self.parser = Parser::new();
        self.sequence = 0;
    }
}

/// The lines that can still change, and the cursor among them.
struct Page {
    /// What can no longer change.
    settled: String,
    /// Never empty.
    lines: VecDeque<Line>,
    row: usize,
    /// Where the next character goes; of a line that is only appended to, its end.
    column: usize,
    /// A carriage return came, and nothing after it yet: before a line feed it does nothing.
    returned: bool,
    /// Whether a sequence has ended.
    dispatched: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            settled: String::new(),
            lines: VecDeque::from([Line::default()]),
            row: 0,
            column: 0,
            returned: false,
            dispatched: false,
        }
    }
}

impl Page {
    fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.carry_out_return();
        let column = self.column;
        if let Some(line) = self.lines.get_mut(self.row) {
            self.column = line.write(column, text);
            if line.is_longer_than(MAX_LINE) {
                self.settle_long_line();
            }
        }
    }

    fn control(&mut self, control: char) {
        match control {
            '\n' => self.line_feed(),
            '\r' => self.returned = true,
            '\t' => {
                self.carry_out_return();
                let column = self.column;
                if let Some(line) = self.lines.get_mut(self.row) {
                    self.column = line.tab(column);
                    if line.is_longer_than(MAX_LINE) {
                        self.settle_long_line();
                    }
                }
            }
            '\u{8}' => {
                let column = self.open().saturating_sub(1);
                self.move_to(column);
            }
            _ => {}
        }
    }

    fn line_feed(&mut self) {
        self.returned = false;
        self.row += 1;
        self.column = 0;
        match self.lines.get_mut(self.row) {
            // The cursor was further up: the line is written anew.
            Some(line) => {
                line.open();
            }
            None => self.lines.push_back(Line::default()),
        }
        while self.lines.len() > OPEN_LINES {
            self.settle_first();
            self.row = self.row.saturating_sub(1);
        }
    }

    /// Makes the line ready to be changed and returns the cursor's column.
    fn open(&mut self) -> usize {
        self.carry_out_return();
        if let Some(line) = self.lines.get_mut(self.row)
            && let Some(end) = line.open()
        {
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

    fn move_to(&mut self, column: usize) {
        self.open();
        let end = self.lines.get(self.row).map_or(0, Line::width);
        self.column = column.min(end.max(MAX_COLUMN));
    }

    /// Moves the cursor to another line; it keeps its column.
    fn move_to_row(&mut self, row: usize) {
        let column = self.open();
        self.row = row.min(self.lines.len().saturating_sub(1));
        if let Some(line) = self.lines.get_mut(self.row) {
            line.open();
        }
        self.column = column;
    }

    fn settle_first(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            line.append_to(&mut self.settled);
            self.settled.push('\n');
        }
    }

    /// Settles what the current line has, and all above it.
    fn settle_long_line(&mut self) {
        for _ in 0..self.row {
            self.settle_first();
        }
        self.row = 0;
        self.column = 0;
        if let Some(line) = self.lines.front_mut() {
            std::mem::take(line).append_to(&mut self.settled);
        }
    }

    fn settle_all(&mut self) {
        while self.lines.len() > 1 {
            self.settle_first();
        }
        if let Some(line) = self.lines.pop_front() {
            line.append_to(&mut self.settled);
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
            self.move_to_row(self.row.saturating_sub(1));
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
            'A' => self.move_to_row(self.row.saturating_sub(count)),
            'B' => self.move_to_row(self.row.saturating_add(count)),
            'C' => {
                let column = self.open();
                self.move_to(column.saturating_add(count));
            }
            'D' => {
                let column = self.open();
                self.move_to(column.saturating_sub(count));
            }
            'E' => {
                self.move_to_row(self.row.saturating_add(count));
                self.column = 0;
            }
            'F' => {
                self.move_to_row(self.row.saturating_sub(count));
                self.column = 0;
            }
            'G' => self.move_to(count - 1),
            'J' if first == 0 => {
                let column = self.open();
                self.lines.truncate(self.row.saturating_add(1));
                if let Some(line) = self.lines.get_mut(self.row) {
                    line.erase_from(column);
                }
            }
            'K' => {
                let column = self.open();
                if let Some(line) = self.lines.get_mut(self.row) {
                    match first {
                        0 => line.erase_from(column),
                        1 => line.erase_to(column),
                        2 => line.erase_from(0),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

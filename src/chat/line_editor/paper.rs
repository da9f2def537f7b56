//! Where things are on the screen: what was printed, and the draft below it, which is taken away before more is printed and
//! drawn again after it. Pure: what a terminal has to be sent comes out.
//!
//! The terminal is never asked for its cursor, which would cost a round trip for each piece of an answer, and there are some that
//! do not say. So columns are counted here, as a terminal counts them.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::plain_text::style::Style;

/// Where a terminal does not say how large it is.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Columns between two stops of the tabulator, in what is printed.
const TAB: usize = 8;

/// What a tabulator in the draft looks like.
const DRAFT_TAB: &str = "    ";

/// The most rows of a note below the draft.
const NOTE_ROWS: usize = 6;

#[derive(Debug)]
pub(super) struct Paper {
    columns: usize,
    rows: usize,
    /// Columns that the printed line has which goes on, over all of its rows; 0 where the last one ended.
    running: usize,
    /// Whether the cursor is on the row below a running line that ends at the right edge.
    is_below: bool,
    drawn: Option<Drawn>,
}

/// What is to be typed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sheet<'a> {
    pub(super) prompt: &'a str,
    pub(super) text: &'a str,
    /// Where the cursor is in the text, in bytes.
    pub(super) position: usize,
    /// What stands below, until the next key.
    pub(super) note: &'a str,
    pub(super) colours: bool,
}

/// What is on the screen below the printed part.
#[derive(Debug)]
struct Drawn {
    /// The width of each row above the cursor's.
    above: Vec<usize>,
    /// The cursor's column.
    column: usize,
    /// Whether a running line is on the row above.
    is_apart: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    prompt: String,
    text: String,
    width: usize,
}

impl Paper {
    pub(super) fn new(size: (u16, u16)) -> Self {
        let mut paper = Self {
            columns: 0,
            rows: 0,
            running: 0,
            is_below: false,
            drawn: None,
        };
        paper.resize(size);
        paper
    }

    /// Takes the terminal's size. What is on the screen is where terminals put it that break lines anew.
    pub(super) fn resize(&mut self, (columns, rows): (u16, u16)) {
        let known = |size, usual| if size == 0 { usual } else { size };
        self.columns = usize::from(known(columns, USUAL_SIZE.0));
        self.rows = usize::from(known(rows, USUAL_SIZE.1));
    }

    /// Takes the draft away; the cursor is where printing goes on.
    pub(super) fn erase(&mut self, out: &mut String) {
        let Some(drawn) = self.drawn.take() else {
            return;
        };
        // A row that was drawn wider than the terminal is now has become several.
        let rows = |width: &usize| width.div_ceil(self.columns).max(1);
        let up = drawn.above.iter().map(rows).sum::<usize>() + drawn.column / self.columns;
        out.push('\r');
        move_up(up, out);
        out.push_str("\u{1b}[J");
        if !drawn.is_apart {
            return;
        }
        match self.column() {
            column if column < self.columns => {
                move_up(1, out);
                move_to(column, out);
            }
            _ => self.is_below = true,
        }
    }

    /// Prints a text, which may end within a line; the draft is not there.
    pub(super) fn print(&mut self, text: &str, out: &mut String) {
        let mut letters = text.graphemes(true);
        while let Some(letter) = letters.next() {
            let is_end = matches!(letter, "\n" | "\r\n");
            if std::mem::take(&mut self.is_below) && is_end {
                // The cursor is on the next row already.
                self.running = 0;
                continue;
            }
            match letter {
                "\u{1b}" => {
                    out.push_str(letter);
                    // A colour: it has no width.
                    for part in letters.by_ref() {
                        out.push_str(part);
                        if part.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                            break;
                        }
                    }
                }
                _ if is_end => {
                    out.push_str("\r\n");
                    self.running = 0;
                }
                "\t" => {
                    out.push('\t');
                    let column = self.running % self.columns;
                    let next = ((column / TAB + 1) * TAB).min(self.columns - 1);
                    self.running += next.saturating_sub(column);
                }
                letter => {
                    out.push_str(letter);
                    self.advance(letter.width());
                }
            }
        }
    }

    /// A wide character that has no room at the end of a row leaves it empty.
    fn advance(&mut self, width: usize) {
        let left = self.columns - self.running % self.columns;
        if width > left {
            self.running += left;
        }
        self.running += width;
    }

    /// The column after the printed text; that of the right edge is the number of columns.
    fn column(&self) -> usize {
        match self.running {
            0 => 0,
            running => (running - 1) % self.columns + 1,
        }
    }

    /// Draws what is typed on, below what was printed.
    pub(super) fn draw(&mut self, sheet: &Sheet<'_>, out: &mut String) {
        let is_apart = self.running > 0;
        if is_apart && !self.is_below {
            out.push_str("\r\n");
        }
        self.is_below = false;
        let (rows, cursor, column) = rows(sheet, self.columns);
        let notes = note(sheet.note, self.columns, self.rows);
        // As much as fits, so that the first row never leaves the screen; the cursor's row is among it.
        let most = self.rows.saturating_sub(1 + notes.len()).max(1);
        let first = (cursor + 1).saturating_sub(most);
        let shown: Vec<&Row> = rows
            .iter()
            .chain(&notes)
            .skip(first)
            .take(most + notes.len())
            .collect();
        for (index, row) in shown.iter().enumerate() {
            if index > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&Style::Bold.paint(&row.prompt, sheet.colours));
            out.push_str(&row.text);
        }
        let above = cursor - first;
        out.push('\r');
        move_up(shown.len().saturating_sub(1 + above), out);
        move_to(column, out);
        self.drawn = Some(Drawn {
            above: shown.iter().take(above).map(|row| row.width).collect(),
            column,
            is_apart,
        });
    }

    /// Forgets what is on the screen: it was emptied.
    pub(super) fn clear(&mut self, out: &mut String) {
        self.drawn = None;
        self.running = 0;
        self.is_below = false;
        out.push_str("\u{1b}[H\u{1b}[J");
    }
}

fn move_up(rows: usize, out: &mut String) {
    if rows > 0 {
        out.push_str(&format!("\u{1b}[{rows}A"));
    }
}

fn move_to(column: usize, out: &mut String) {
    out.push_str(&format!("\u{1b}[{}G", column + 1));
}

/// Breaks prompt and text into rows; also returns the cursor's row and column.
fn rows(sheet: &Sheet<'_>, columns: usize) -> (Vec<Row>, usize, usize) {
    let mut rows = Rows::new(columns);
    for letter in sheet.prompt.graphemes(true) {
        rows.put(letter, true);
    }
    let mut cursor = None;
    for (at, letter) in sheet.text.grapheme_indices(true) {
        if at == sheet.position {
            cursor = Some(rows.cursor(letter.width()));
        }
        match letter {
            "\n" => rows.end(),
            "\t" => DRAFT_TAB
                .graphemes(true)
                .for_each(|blank| rows.put(blank, false)),
            letter => rows.put(letter, false),
        }
    }
    let (row, column) = cursor.unwrap_or_else(|| rows.cursor(1));
    (rows.rows, row, column)
}

/// The rows of a note: as many as fit.
fn note(text: &str, columns: usize, height: usize) -> Vec<Row> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut rows = Rows::new(columns);
    for letter in text.graphemes(true) {
        match letter {
            "\n" => rows.end(),
            letter => rows.put(letter, false),
        }
    }
    rows.rows.truncate(NOTE_ROWS.min(height / 2));
    rows.rows
}

struct Rows {
    columns: usize,
    rows: Vec<Row>,
}

impl Rows {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: vec![Row::default()],
        }
    }

    fn end(&mut self) {
        self.rows.push(Row::default());
    }

    fn put(&mut self, letter: &str, is_prompt: bool) {
        let width = letter.width();
        let is_full = self
            .rows
            .last()
            .is_none_or(|row| row.width + width > self.columns);
        if is_full {
            self.end();
        }
        if let Some(row) = self.rows.last_mut() {
            row.width += width;
            match is_prompt {
                true => row.prompt.push_str(letter),
                false => row.text.push_str(letter),
            }
        }
    }

    /// Where the cursor is that stands before something of this width.
    fn cursor(&mut self, width: usize) -> (usize, usize) {
        let column = self.rows.last().map_or(0, |row| row.width);
        if column + width.max(1) > self.columns {
            self.end();
            return (self.rows.len() - 1, 0);
        }
        (self.rows.len() - 1, column)
    }
}

#[cfg(test)]
mod tests;

//! One line of a terminal: text that is appended to, until the cursor moves in it; then cells.

/// Columns from one tab stop to the next.
const TAB: usize = 8;

/// What stands in the columns that a tab takes after its first one.
const FILLER: char = '\0';

/// A line. As long as it is only appended to, it is kept as it came.
pub(super) enum Line {
    Text(String),
    /// A character for each column; wide ones count as one.
    Cells(Vec<char>),
}

impl Default for Line {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Line {
    /// Writes from a column on and returns the column behind.
    pub(super) fn write(&mut self, column: usize, text: &str) -> usize {
        match self {
            Self::Text(line) => {
                line.push_str(text);
                column
            }
            Self::Cells(cells) => {
                let mut column = column;
                for letter in text.chars() {
                    put(cells, column, letter);
                    column += 1;
                }
                column
            }
        }
    }

    /// Moves to the next tab stop and returns its column.
    pub(super) fn tab(&mut self, column: usize) -> usize {
        match self {
            Self::Text(line) => {
                line.push('\t');
                column
            }
            Self::Cells(cells) => {
                let stop = next_stop(column);
                if cells.len() < stop {
                    pad(cells, column);
                    add_tab(cells, stop);
                }
                stop
            }
        }
    }

    /// Makes cells of a line; returns where its end is, or nothing where it had cells already.
    pub(super) fn open(&mut self) -> Option<usize> {
        let Self::Text(text) = self else {
            return None;
        };
        let mut cells = Vec::new();
        for letter in text.chars() {
            match letter {
                '\t' => {
                    let stop = next_stop(cells.len());
                    add_tab(&mut cells, stop);
                }
                letter => cells.push(letter),
            }
        }
        let end = cells.len();
        *self = Self::Cells(cells);
        Some(end)
    }

    pub(super) fn width(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Cells(cells) => cells.len(),
        }
    }

    pub(super) fn is_longer_than(&self, most: usize) -> bool {
        self.width() > most
    }

    /// Erases the column and all after it.
    pub(super) fn erase_from(&mut self, column: usize) {
        if let Self::Cells(cells) = self {
            cells.truncate(column);
        }
    }

    /// Erases all up to the column, and it.
    pub(super) fn erase_to(&mut self, column: usize) {
        if let Self::Cells(cells) = self {
            cells
                .iter_mut()
                .take(column.saturating_add(1))
                .for_each(|cell| *cell = ' ');
        }
    }

    /// Writes the line as text. Blanks at the end of one that was changed are not seen, and left out.
    pub(super) fn append_to(self, out: &mut String) {
        let cells = match self {
            Self::Text(text) => return out.push_str(&text),
            Self::Cells(cells) => cells,
        };
        let end = cells
            .iter()
            .rposition(|cell| !matches!(*cell, ' ' | FILLER))
            .map_or(0, |last| last + 1);
        // The columns of a tab that stands whole at the end belong to it.
        let end = match end.checked_sub(1).and_then(|last| cells.get(last)) {
            Some('\t') => next_stop(end - 1).min(cells.len()),
            _ => end,
        };
        let mut at = 0;
        while at < end {
            let Some(cell) = cells.get(at) else {
                return;
            };
            let stop = next_stop(at);
            let is_whole = || {
                let rest = cells.get(at + 1..stop);
                rest.is_some_and(|rest| rest.iter().all(|cell| *cell == FILLER))
            };
            match cell {
                '\t' if is_whole() => {
                    out.push('\t');
                    at = stop;
                    continue;
                }
                // What is left of a tab that was written over.
                '\t' | &FILLER => out.push(' '),
                letter => out.push(*letter),
            }
            at += 1;
        }
    }
}

fn next_stop(column: usize) -> usize {
    (column / TAB + 1) * TAB
}

fn put(cells: &mut Vec<char>, column: usize, letter: char) {
    match cells.get_mut(column) {
        Some(cell) => *cell = letter,
        None => {
            pad(cells, column);
            cells.push(letter);
        }
    }
}

fn pad(cells: &mut Vec<char>, column: usize) {
    if cells.len() < column {
        cells.resize(column, ' ');
    }
}

/// Adds what a tab takes from the end of the line to the stop.
fn add_tab(cells: &mut Vec<char>, stop: usize) {
    cells.push('\t');
    cells.resize(stop, FILLER);
}

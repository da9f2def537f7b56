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
    pub(super) fn write(&mut self, mut column: usize, text: &str) -> usize {
        match self {
            Self::Text(line) => line.push_str(text),
            Self::Cells(cells) => {
                for letter in text.chars() {
                    put(cells, column, letter);
                    column += 1;
                }
            }
        }
        column
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
                    cells.resize(cells.len().max(column), ' ');
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

    pub(super) fn erase_from(&mut self, column: usize) {
        if let Self::Cells(cells) = self {
            break_tab(cells, column);
            cells.truncate(column);
        }
    }

    /// Erases all up to the column, and it.
    pub(super) fn erase_to(&mut self, column: usize) {
        if let Self::Cells(cells) = self {
            break_tab(cells, column);
            let end = cells.len().min(column.saturating_add(1));
            cells.iter_mut().take(end).for_each(|cell| *cell = ' ');
        }
    }

    /// Writes the line as text. Blanks at the end of one that was changed are not seen, and left out.
    pub(super) fn append_to(self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(&text),
            Self::Cells(cells) => {
                let is_seen = |cell: &char| !matches!(*cell, ' ' | FILLER);
                let end = cells.iter().rposition(is_seen).map_or(0, |last| last + 1);
                out.extend(cells.iter().take(end).filter(|cell| **cell != FILLER));
            }
        }
    }
}

fn next_stop(column: usize) -> usize {
    (column / TAB + 1) * TAB
}

fn put(cells: &mut Vec<char>, column: usize, letter: char) {
    break_tab(cells, column);
    if cells.len() <= column {
        cells.resize(column.saturating_add(1), ' ');
    }
    if let Some(cell) = cells.get_mut(column) {
        *cell = letter;
    }
}

/// Makes blanks of a tab that is about to be written over at this column.
fn break_tab(cells: &mut [char], column: usize) {
    if matches!(cells.get(column), Some('\t' | &FILLER)) {
        let stop = next_stop(column);
        let tab = cells.iter_mut().take(stop).skip(stop - TAB);
        tab.filter(|cell| matches!(**cell, '\t' | FILLER))
            .for_each(|cell| *cell = ' ');
    }
}

/// Adds what a tab takes from the end of the line to the stop.
fn add_tab(cells: &mut Vec<char>, stop: usize) {
    cells.push('\t');
    cells.resize(stop, FILLER);
}

use proptest::prelude::*;

use super::*;

/// A terminal, as far as it is needed: it breaks rows at the right edge when the next character comes, and scrolls.
struct Glass {
    columns: usize,
    cells: Vec<Vec<String>>,
    row: usize,
    column: usize,
    height: usize,
    top: usize,
}

impl Glass {
    fn new(columns: usize, height: usize) -> Self {
        Self {
            columns,
            cells: vec![Vec::new()],
            row: 0,
            column: 0,
            height,
            top: 0,
        }
    }

    fn feed(&mut self, bytes: &str) {
        let mut letters = bytes.graphemes(true);
        while let Some(letter) = letters.next() {
            match letter {
                "\r\n" => self.next_row(),
                "\r" => self.column = 0,
                "\u{1b}" => {
                    assert_eq!(letters.next(), Some("["));
                    let mut number = String::new();
                    let command = loop {
                        let part = letters.next().unwrap();
                        match part.parse::<usize>() {
                            Ok(_) => number.push_str(part),
                            Err(_) => break part,
                        }
                    };
                    let number = number.parse().unwrap_or(1);
                    match command {
                        "A" => {
                            // It stops at the top of the screen.
                            self.row = self.row.saturating_sub(number).max(self.top);
                        }
                        "G" => self.column = number - 1,
                        "J" => {
                            self.cells.truncate(self.row + 1);
                            self.cells[self.row].truncate(self.column);
                        }
                        "m" => {}
                        other => panic!("{other}"),
                    }
                }
                letter => {
                    let width = letter.width();
                    if self.column + width > self.columns {
                        self.next_row();
                    }
                    let row = &mut self.cells[self.row];
                    while row.len() < self.column + width {
                        row.push(" ".to_owned());
                    }
                    row[self.column] = letter.to_owned();
                    for cell in &mut row[self.column + 1..self.column + width] {
                        cell.clear();
                    }
                    self.column += width;
                }
            }
        }
    }

    fn next_row(&mut self) {
        self.column = 0;
        self.row += 1;
        if self.row == self.cells.len() {
            self.cells.push(Vec::new());
        }
        self.top = self.top.max((self.row + 1).saturating_sub(self.height));
    }

    fn rows(&self) -> Vec<String> {
        let rows = self
            .cells
            .iter()
            .map(|row| row.concat().trim_end().to_owned());
        rows.collect()
    }
}

fn sheet<'a>(prompt: &'a str, text: &'a str) -> Sheet<'a> {
    Sheet {
        prompt,
        text,
        position: text.len(),
        ..Sheet::default()
    }
}

/// Prints pieces with the draft on the screen in between; returns the rows at the end, with the draft and without.
fn walk(columns: usize, pieces: &[&str], sheet: &Sheet<'_>) -> (Vec<String>, Vec<String>) {
    let mut paper = Paper::new((columns.try_into().unwrap(), 50));
    let mut glass = Glass::new(columns, 50);
    for piece in pieces {
        let mut out = String::new();
        paper.erase(&mut out);
        paper.print(piece, &mut out);
        paper.draw(sheet, &mut out);
        glass.feed(&out);
    }
    let with = glass.rows();
    let mut out = String::new();
    paper.erase(&mut out);
    glass.feed(&out);
    (with, glass.rows())
}

#[test]
fn an_answer_grows_above_the_draft() {
    for (pieces, text, expected) in [
        (&["Hel", "lo\n"][..], "", &["Hello", ">"][..]),
        (&["Hel", "lo"], "draft", &["Hello", "> draft"]),
        // The last column, a line end after it, and a row after it.
        (&["0123456789"], "d", &["0123456789", "> d"]),
        (&["0123456789", "\n", "x"], "d", &["0123456789", "x", "> d"]),
        (&["0123456789", "ab"], "d", &["0123456789", "ab", "> d"]),
        (&["01234567", "8漢"], "d", &["012345678", "漢", "> d"]),
        (&["漢字漢字", "漢", "字"], "d", &["漢字漢字漢", "字", "> d"]),
        // A draft of several rows, some of them full.
        (&["a", "b"], "0123456789", &["ab", "> 01234567", "89"]),
        (&["a", "b\n"], "one\ntwo", &["ab", "> one", "two"]),
        (&["a", "b\n"], "漢字漢字漢", &["ab", "> 漢字漢字", "漢"]),
        (&["\u{1b}[31mred\u{1b}[0m", "!"], "d", &["red!", "> d"]),
    ] {
        let (with, _) = walk(10, pieces, &sheet("> ", text));
        assert_eq!(with, expected, "{pieces:?}");
    }
}

#[test]
fn the_cursor_is_where_the_next_letter_comes() {
    for (text, position, expected) in [
        ("", 0, (0, 2)),
        ("abc", 3, (0, 5)),
        ("abc", 1, (0, 3)),
        ("01234567", 8, (1, 0)),
        ("01234567x", 8, (1, 0)),
        ("漢字", 3, (0, 4)),
        ("0123456漢", 7, (1, 0)),
        ("a\nb", 2, (1, 0)),
        ("a\nb", 1, (0, 3)),
        ("\tx", 1, (0, 6)),
    ] {
        let sheet = Sheet {
            position,
            ..sheet("> ", text)
        };
        let (_, row, column) = rows(&sheet, 10);
        assert_eq!((row, column), expected, "{text:?} at {position}");
    }
}

#[test]
fn a_draft_longer_than_the_screen_shows_the_cursor_and_leaves_nothing() {
    let lines: Vec<String> = (0..30).map(|number| format!("line {number}")).collect();
    let text = lines.join("\n");
    for position in [0, text.find("line 15").unwrap(), text.len()] {
        let mut paper = Paper::new((20, 8));
        let mut glass = Glass::new(20, 8);
        let mut out = String::new();
        paper.print("printed\n", &mut out);
        let sheet = Sheet {
            position,
            ..sheet("> ", &text)
        };
        paper.draw(&sheet, &mut out);
        glass.feed(&out);
        assert!(glass.rows().len() <= 8, "{:?}", glass.rows());
        let at = glass.rows()[glass.row].clone();
        let (_, after) = text.split_at(position);
        let line = after.lines().next().unwrap_or("line 29");
        assert!(at.ends_with(line), "{at}");
        let mut out = String::new();
        paper.erase(&mut out);
        glass.feed(&out);
        assert_eq!(glass.rows()[0], "printed");
        assert!(
            glass.rows()[1..].iter().all(String::is_empty),
            "{:?}",
            glass.rows()
        );
    }
}

#[test]
fn a_note_stands_below_and_goes() {
    let noted = Sheet {
        note: "src/\nsecond",
        ..sheet("> ", "s")
    };
    let (with, without) = walk(10, &["a\n"], &noted);
    assert_eq!(with, ["a", "> s", "src/", "second"]);
    assert_eq!(without, ["a", ""]);
}

#[test]
fn what_a_narrower_terminal_broke_is_taken_away_whole() {
    let mut paper = Paper::new((20, 50));
    let mut out = String::new();
    paper.draw(&sheet("> ", "0123456789"), &mut out);
    paper.resize((5, 50));
    out.clear();
    paper.erase(&mut out);
    // The row of 12 columns is three now, and the cursor on the third.
    assert_eq!(out, "\r\u{1b}[2A\u{1b}[J");
    paper.resize((0, 0));
    assert_eq!((paper.columns, paper.rows), (80, 24));
}

proptest! {
    /// Whatever is typed meanwhile, what was printed reads as if nothing were.
    #[test]
    fn printing_is_not_disturbed(
        pieces in prop::collection::vec("(a|漢|e\u{301}| |\n){0,12}", 0..12),
        text in "[b字 \n]{0,30}",
        columns in 3_usize..12,
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (_, without) = walk(columns, &pieces, &sheet("> ", &text));
        let mut glass = Glass::new(columns, 50);
        glass.feed(&pieces.concat().replace('\n', "\r\n"));
        let mut expected = glass.rows();
        let mut without = without;
        for rows in [&mut expected, &mut without] {
            while rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
        }
        prop_assert_eq!(without, expected);
    }
}

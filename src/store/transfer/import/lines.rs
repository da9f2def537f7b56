//! The lines of a file, no longer and no deeper than may be.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

/// The longest line: a conversation that has one message, in base64.
const MAX_LINE: u64 = 96 * 1024 * 1024;

/// The lines of a file, of which some are read twice.
pub(super) struct Lines {
    file: BufReader<File>,
    /// Where the next line begins, and the number of the last one.
    pub(super) at: u64,
    pub(super) number: u64,
}

impl Lines {
    pub(super) fn new(file: File) -> Self {
        Self {
            file: BufReader::new(file),
            at: 0,
            number: 0,
        }
    }

    /// Returns the next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, String> {
        self.number += 1;
        let line = self.read()?;
        self.at += line.len() as u64;
        Ok((!line.is_empty()).then_some(line))
    }

    /// Returns the line that begins at a place, without losing its own.
    pub(super) fn read_at(&mut self, place: u64) -> Result<String, String> {
        self.file
            .seek(SeekFrom::Start(place))
            .map_err(|error| unreadable(&error))?;
        let line = self.read();
        self.file
            .seek(SeekFrom::Start(self.at))
            .map_err(|error| unreadable(&error))?;
        line
    }

    fn read(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        let mut file = (&mut self.file).take(MAX_LINE + 1);
        file.read_until(b'\n', &mut line)
            .map_err(|error| unreadable(&error))?;
        if line.len() as u64 > MAX_LINE {
            return Err(format!("a line has {} MiB at most", MAX_LINE >> 20));
        }
        String::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned())
    }
}

/// Returns how deep a text of JSON is nested at most.
pub(super) fn depth(text: &str) -> usize {
    let (mut deepest, mut depth, mut in_string, mut is_escaped) = (0, 0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

pub(super) fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

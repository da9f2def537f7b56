//! What a search has found so far, as text, up to its limits.

use std::fs::File;
use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::super::stop::Stop;

/// Longest piece of a line shown, in bytes.
const MAX_SHOWN_LINE: usize = 400;

/// How much of a long line is shown before its match, in bytes.
const SHOWN_BEFORE: usize = 100;

pub(super) struct Findings<'m> {
    matcher: &'m RegexMatcher,
    /// The lines: `path:line:text`, with `-` for lines around a match.
    pub(super) text: String,
    pub(super) matches: usize,
    max_matches: usize,
    max_bytes: usize,
    /// A match was met that is not shown any more.
    pub(super) full: bool,
    /// The file that is searched now, and whether it is binary.
    name: String,
    is_binary: bool,
}

impl<'m> Findings<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, max_matches: usize, max_bytes: usize) -> Self {
        Self {
            matcher,
            text: String::new(),
            matches: 0,
            max_matches,
            max_bytes,
            full: false,
            name: String::new(),
            is_binary: false,
        }
    }

    /// Searches one file; finds nothing in one that is binary or has a line longer than is searched.
    pub(super) fn search(&mut self, searcher: &mut Searcher, file: File, name: &str, stop: &Stop) {
        let before = (self.text.len(), self.matches, self.full);
        (self.name, self.is_binary) = (name.to_owned(), false);
        let ended = searcher.search_reader(self.matcher, Stoppable { file, stop }, &mut *self);
        if let Err(error) = ended {
            tracing::debug!(%error, "a file was not searched to its end");
        }
        if self.is_binary {
            self.text.truncate(before.0);
            (_, self.matches, self.full) = before;
        }
    }

    fn add(&mut self, mark: char, number: Option<u64>, line: &[u8], from: usize) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        let number = number.unwrap_or_default();
        let shown = piece(line, from);
        let line = format!("{}{mark}{number}{mark}{shown}\n", self.name);
        self.text.push_str(&line);
    }
}

/// Reads a file until the call has to stop: a search without matches asks nobody else.
struct Stoppable<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.reached() {
            Some(_) => Err(io::Error::other("the call was stopped")),
            None => self.file.read(buffer),
        }
    }
}

impl Sink for Findings<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.text.len() >= self.max_bytes || self.matches >= self.max_matches {
            self.full = true;
            return Ok(false);
        }
        self.matches += 1;
        let at = self.matcher.find(found.bytes()).ok().flatten();
        let start = at.map_or(0, |at| at.start());
        self.add(':', found.line_number(), found.bytes(), start);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.add('-', context.line_number(), context.bytes(), 0);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Cuts a long line to the part around its match.
fn piece(line: &str, from: usize) -> String {
    if line.len() <= MAX_SHOWN_LINE {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(from.saturating_sub(SHOWN_BEFORE));
    let end = line.floor_char_boundary(start + MAX_SHOWN_LINE);
    let shown = line.get(start..end).unwrap_or_default();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

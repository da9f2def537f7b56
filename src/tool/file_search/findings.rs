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

pub(super) struct Findings {
    /// The lines: `path:line:text`, with `-` for lines around a match.
    pub(super) text: String,
    pub(super) matches: usize,
    max_matches: usize,
    max_bytes: usize,
    /// A match was met that is not shown any more.
    pub(super) full: bool,
}

impl Findings {
    pub(super) fn new(max_matches: usize, max_bytes: usize) -> Self {
        Self {
            text: String::new(),
            matches: 0,
            max_matches,
            max_bytes,
            full: false,
        }
    }

    /// Searches one file; finds nothing in one that is binary or has a line longer than is searched.
    pub(super) fn search(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        file: File,
        name: &str,
        stop: &Stop,
    ) {
        let before = (self.text.len(), self.matches, self.full);
        let mut sink = InFile {
            all: self,
            matcher,
            name,
            is_binary: false,
        };
        let ended = searcher.search_reader(matcher, Stoppable { file, stop }, &mut sink);
        if let Err(error) = ended {
            tracing::debug!(%error, "a file was not searched to its end");
        }
        if sink.is_binary {
            self.text.truncate(before.0);
            (_, self.matches, self.full) = before;
        }
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

struct InFile<'a> {
    all: &'a mut Findings,
    matcher: &'a RegexMatcher,
    name: &'a str,
    is_binary: bool,
}

impl InFile<'_> {
    fn add(&mut self, mark: char, number: Option<u64>, line: &[u8], from: usize) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        let number = number.unwrap_or_default();
        let shown = piece(line, from);
        let line = format!("{}{mark}{number}{mark}{shown}\n", self.name);
        self.all.text.push_str(&line);
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let all = &mut *self.all;
        if all.text.len() >= all.max_bytes || all.matches >= all.max_matches {
            all.full = true;
            return Ok(false);
        }
        all.matches += 1;
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
        self.all.text.push_str("--\n");
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

//! What a search has found so far, as text, up to its limits.

use std::fs::File;
use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::super::file::Stop;

/// Longest piece of a line shown, in bytes.
const MAX_SHOWN_LINE: usize = 400;

/// How much of a long line is shown before its match, in bytes.
const SHOWN_BEFORE: usize = 100;

/// Matches of all files, as text.
pub(super) struct Findings {
    text: String,
    matches: usize,
    max_matches: usize,
    max_bytes: usize,
    /// A match was met that is not shown any more.
    full: bool,
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

    /// Whether there is more than may be shown.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns how many matching lines are shown.
    pub(super) fn matches(&self) -> usize {
        self.matches
    }

    /// Returns the lines: `path:line:text`, with `-` for lines around a match.
    pub(super) fn into_text(self) -> String {
        self.text
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
        let mut found = InFile {
            all: self,
            matcher,
            name,
            text: String::new(),
            matches: 0,
            more: false,
            binary: false,
        };
        let ended = searcher.search_reader(matcher, Stoppable { file, stop }, &mut found);
        let InFile {
            text,
            matches,
            more,
            binary,
            ..
        } = found;
        if let Err(error) = ended {
            tracing::debug!(%error, "a file was not searched to its end");
        }
        if !binary {
            self.text.push_str(&text);
            self.matches += matches;
            self.full |= more;
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

/// What one file has; kept apart until it is known to be text.
struct InFile<'a> {
    all: &'a Findings,
    matcher: &'a RegexMatcher,
    name: &'a str,
    text: String,
    matches: usize,
    more: bool,
    binary: bool,
}

impl InFile<'_> {
    fn add(&mut self, mark: char, number: Option<u64>, line: &[u8], from: usize) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        let number = number.unwrap_or_default();
        let shown = piece(line, from);
        self.text
            .push_str(&format!("{}{mark}{number}{mark}{shown}\n", self.name));
    }
}

impl Sink for InFile<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let room = self.all.text.len() + self.text.len() < self.all.max_bytes;
        if !room || self.all.matches + self.matches >= self.all.max_matches {
            self.more = true;
            return Ok(false);
        }
        let start = self
            .matcher
            .find(found.bytes())
            .ok()
            .flatten()
            .map_or(0, |at| at.start());
        self.matches += 1;
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
        self.binary = true;
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
    let (before, after) = (start > 0, end < line.len());
    format!(
        "{}{shown}{}",
        if before { "…" } else { "" },
        if after { "…" } else { "" }
    )
}

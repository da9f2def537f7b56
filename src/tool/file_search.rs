//! `file_search`: lines of files that match a regular expression.

use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::file::{Context, PathArgument, Work, tool};
use super::listed::listed;
use super::name_filter::NameFilter;
use super::walk::{Walked, walk};
use super::{Output, Refusal, Tool};
use crate::message::DangerLevel;
use crate::sandbox::paths::{EntryKind, Found, PathError, Roots, Step, Visited};

mod findings;

use findings::Findings;

/// Matches returned where the call does not say how many.
const DEFAULT_RESULTS: usize = 100;

/// Most matches returned; their text is capped as well.
const MAX_RESULTS: u64 = 2000;

/// Most lines shown around a match.
const MAX_CONTEXT: u64 = 20;

/// Largest compiled expression, in bytes: some short ones explode.
const MAX_REGEX_BYTES: usize = 4 * 1024 * 1024;

/// Longest line searched, in bytes; a file with a longer one is left out.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// Searches the text files of the project for lines that match a regular expression.
///
/// What .gitignore leaves out is left out, binary files too. Each match comes as `path:line:text`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Regular expression (Rust's syntax: no look-around, no back-references). Escape what is meant
    /// literally; begin with `(?i)` to ignore case.
    pattern: String,
    /// Folder or file to search, relative to the project. The whole project where absent.
    path: Option<String>,
    /// Glob that files have to match, e.g. `*.rs` (names, at any depth) or `src/**/*.ts`.
    glob: Option<String>,
    /// Lines to show before and after each match; none where absent.
    #[schemars(range(max = MAX_CONTEXT))]
    context_lines: Option<usize>,
    /// Most matches to return; 100 where absent.
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: Option<usize>,
}

/// Makes the tool; `output_cap` bounds the text of one answer, in bytes.
pub fn file_search(roots: Arc<Roots>, output_cap: usize) -> impl Tool {
    tool("file_search", DangerLevel::Safe, move |input: Input| {
        let filter = input.glob.as_deref().map(NameFilter::parse).transpose();
        let path = PathArgument::parse_folder(&roots, input.path.as_deref())?;
        let search = Search {
            filter: filter.map_err(Refusal::Invalid)?,
            matcher: compile(&input.pattern).map_err(Refusal::Invalid)?,
            pattern: input.pattern,
            context_lines: input.context_lines.unwrap_or(0),
            max_results: input.max_results.unwrap_or(DEFAULT_RESULTS),
            output_cap,
        };
        Ok((path, search))
    })
}

struct Search {
    filter: Option<NameFilter>,
    matcher: RegexMatcher,
    pattern: String,
    context_lines: usize,
    max_results: usize,
    output_cap: usize,
}

impl Work for Search {
    fn run(&self, path: &PathArgument, context: &Context) -> Result<Output, PathError> {
        let located = path.locate()?;
        let mut findings = Findings::new(&self.matcher, self.max_results, self.output_cap);
        let mut searcher = self.searcher();
        let mut search = |file, name: &str| {
            findings.search(&mut searcher, file, &listed(name), &context.stop);
            match findings.full {
                true => Visited::Stopped,
                false => Visited::All,
            }
        };
        let mut walked = match located.found() {
            Found::Folder(_) => {
                let filter = self.filter.as_ref();
                walk(&located, &[EntryKind::File], filter, context, |entry| {
                    // A file that vanished, or is closed to the daemon, has no lines to find.
                    let Ok(file) = located.open_entry(entry) else {
                        return Step::Enter;
                    };
                    match search(file, &located.spell(entry)) {
                        Visited::All => Step::Enter,
                        Visited::Stopped | Visited::Bounded => Step::Stop,
                    }
                })?
            }
            found => {
                let unseen = matches!(found, Found::File) && !(context.visible)(located.relative());
                Walked {
                    visited: match unseen {
                        true => Visited::All,
                        false => search(located.open()?, &path.shown()),
                    },
                    stopped: None,
                    unseen,
                }
            }
        };
        walked.stopped = context.stop.reached();
        let text = match findings.matches {
            0 => format!("no line in {:?} matches {:?}", path.shown(), self.pattern),
            _ => findings.text,
        };
        let more = "[there are more; narrow `pattern`, `path` or `glob`, or raise `maxResults`]";
        let is_error = findings.matches == 0;
        Ok(walked.output(path, findings.matches, &text, is_error, more))
    }
}

impl Search {
    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(self.context_lines)
            .after_context(self.context_lines)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE_BYTES))
            .build()
    }
}

/// Compiles the expression for single lines; the error is for the model.
fn compile(pattern: &str) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build(pattern)
        .map_err(|error| {
            format!("pattern {pattern:?} cannot be used to search single lines: {error}")
        })
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

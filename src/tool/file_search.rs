//! `file_search`: lines of files that match a regular expression.

use std::sync::Arc;

use futures::future::BoxFuture;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::file::{Done, PathArgument, Stop, Stopped, blocking, settle};
use super::input::{parse, spec_of};
use super::listed::listed;
use super::name_filter::NameFilter;
use super::{Facts, Metadata, Output, Prepared, Refusal, Run, Tool, Violation, Visible};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::sandbox::paths::{EntryKind, Found, Located, PathError, Roots, Step, Visited};

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

/// The tool.
#[derive(Debug)]
pub struct FileSearch {
    roots: Arc<Roots>,
    output_cap: usize,
    spec: ToolSpec,
}

impl FileSearch {
    /// Makes the tool; `output_cap` bounds the text of one answer, in bytes.
    pub fn new(roots: Arc<Roots>, output_cap: usize) -> Self {
        Self {
            roots,
            output_cap,
            spec: spec_of::<Input>("file_search", ToolCategory::File, DangerLevel::Safe),
        }
    }
}

impl Tool for FileSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = parse(&self.spec, input)?;
        let filter = input.glob.as_deref().map(NameFilter::parse).transpose();
        Ok(Box::new(Call {
            path: PathArgument::parse_folder(&self.roots, input.path.as_deref())?,
            filter: filter.map_err(Refusal::Invalid)?,
            matcher: compile(&input.pattern).map_err(Refusal::Invalid)?,
            pattern: input.pattern,
            context_lines: input.context_lines.unwrap_or(0),
            max_results: input.max_results.unwrap_or(DEFAULT_RESULTS),
            output_cap: self.output_cap,
        }))
    }
}

struct Call {
    path: PathArgument,
    filter: Option<NameFilter>,
    matcher: RegexMatcher,
    pattern: String,
    context_lines: usize,
    max_results: usize,
    output_cap: usize,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        self.path.facts_of_walk("file_search")
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let identity = self.path.identity();
            let stop = Stop::of(&run);
            let visible = Arc::clone(&run.visible);
            let done = blocking(move || self.search(&stop, &visible))
                .await
                .flatten();
            settle(run.seen, &identity, done.map(Done::from))
        })
    }
}

impl Call {
    fn search(&self, stop: &Stop, visible: &Visible) -> Result<Output, PathError> {
        let located = self.path.locate()?;
        let mut unseen = false;
        let mut findings = Findings::new(self.max_results, self.output_cap);
        let visited = match located.found() {
            Found::Folder(_) => {
                let mut may_see = |path: &str| {
                    let seen = visible(path);
                    unseen |= !seen;
                    seen
                };
                self.search_folder(&located, stop, &mut may_see, &mut findings)?
            }
            Found::File if !visible(located.relative()) => {
                unseen = true;
                Visited::All
            }
            Found::File | Found::Missing | Found::Other(_) => {
                let (file, name) = (located.open()?, self.path.shown());
                findings.search(
                    &mut self.searcher(),
                    &self.matcher,
                    file,
                    &listed(&name),
                    stop,
                );
                Visited::All
            }
        };
        let mut output = self.output(findings, visited, stop.reached());
        if unseen {
            super::file::tell_unseen(&mut output);
        }
        Ok(output)
    }

    fn search_folder(
        &self,
        located: &Located<'_>,
        stop: &Stop,
        may_see: &mut dyn FnMut(&str) -> bool,
        findings: &mut Findings,
    ) -> Result<Visited, PathError> {
        let mut searcher = self.searcher();
        located.visit(&mut |entry| {
            if findings.is_full() || stop.reached().is_some() {
                return Step::Stop;
            }
            let meant = self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.matches(located.below(entry)));
            // A file that vanished, or is closed to the daemon, has no lines to find.
            if entry.kind == EntryKind::File
                && meant
                && may_see(entry.relative)
                && let Ok(file) = located.open_entry(entry)
            {
                let name = located.spell(entry);
                findings.search(&mut searcher, &self.matcher, file, &listed(&name), stop);
            }
            Step::Enter
        })
    }

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

    fn output(&self, findings: Findings, visited: Visited, stopped: Option<Stopped>) -> Output {
        let note = if let Some(stopped) = stopped {
            match stopped {
                Stopped::Cancelled => "[cancelled; there may be more]",
                Stopped::TimedOut => "[the time was up; there may be more]",
            }
        } else if findings.is_full() {
            "[there are more; narrow `pattern`, `path` or `glob`, or raise `maxResults`]"
        } else if visited == Visited::Bounded {
            "[the folder is too large to be looked through; give a `path` below it]"
        } else {
            ""
        };
        let metadata = Metadata {
            path: Some(self.path.relative().to_owned()),
            result_count: Some(findings.matches() as u64),
            truncated: !note.is_empty(),
            ..stopped.map(Stopped::metadata).unwrap_or_default()
        };
        let none = findings.matches() == 0;
        let mut text = findings.into_text();
        if none {
            let folder = self.path.shown();
            text = format!("no line in {folder:?} matches {:?}\n", self.pattern);
        }
        text.push_str(note);
        Output {
            is_error: none || stopped.is_some(),
            ..Output::text(text.trim_end_matches('\n'))
        }
        .with(metadata)
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

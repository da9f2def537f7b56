//! `file_list`: the files below a folder, by a glob.

use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::file::{Done, PathArgument, Stop, Stopped, blocking, settle};
use super::input::{parse, spec_of};
use super::listed::listed;
use super::name_filter::NameFilter;
use super::{Facts, Metadata, Output, Prepared, Refusal, Run, Tool, Violation, Visible};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::sandbox::paths::{EntryKind, PathError, Roots, Step, Visited};

/// Files listed where the call does not say how many.
const DEFAULT_RESULTS: usize = 1000;

/// Most files listed; about 500 KiB of usual paths.
const MAX_RESULTS: u64 = 10_000;

/// Lists files below a folder of the project, sorted by path. What .gitignore leaves out is left out. A name with line
/// ends or invisible characters is given as a JSON string; tools take it in that form too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Glob that files have to match, e.g. `*.rs` (names, at any depth) or `src/**/*.ts` (paths below
    /// `path`). All files where absent.
    pattern: Option<String>,
    /// Folder to list, relative to the project. The whole project where absent.
    path: Option<String>,
    /// Most files to list; 1000 where absent.
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    max_results: Option<usize>,
}

/// The tool.
#[derive(Debug)]
pub struct FileList {
    roots: Arc<Roots>,
    spec: ToolSpec,
}

impl FileList {
    /// Makes the tool.
    pub fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            spec: spec_of::<Input>("file_list", ToolCategory::File, DangerLevel::Safe),
        }
    }
}

impl Tool for FileList {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = parse(&self.spec, input)?;
        let filter = input.pattern.as_deref().map(NameFilter::parse).transpose();
        Ok(Box::new(Call {
            path: PathArgument::parse_folder(&self.roots, input.path.as_deref())?,
            filter: filter.map_err(Refusal::Invalid)?,
            pattern: input.pattern,
            max_results: input.max_results.unwrap_or(DEFAULT_RESULTS),
        }))
    }
}

struct Call {
    path: PathArgument,
    filter: Option<NameFilter>,
    pattern: Option<String>,
    max_results: usize,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        self.path.facts_of_walk("file_list")
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let identity = self.path.identity();
            let stop = Stop::of(&run);
            let visible = Arc::clone(&run.visible);
            let done = blocking(move || self.list(&stop, &visible)).await.flatten();
            settle(run.seen, &identity, done.map(Done::from))
        })
    }
}

impl Call {
    fn list(&self, stop: &Stop, visible: &Visible) -> Result<Output, PathError> {
        let located = self.path.locate()?;
        let mut files = Vec::new();
        let mut unseen = false;
        let mut stopped = None;
        let visited = located.visit(&mut |entry| {
            stopped = stop.reached();
            if stopped.is_some() {
                return Step::Stop;
            }
            let is_file = matches!(entry.kind, EntryKind::File | EntryKind::Link);
            let meant = self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.matches(located.below(entry)));
            if is_file && meant && !visible(entry.relative) {
                unseen = true;
            } else if is_file && meant {
                if files.len() == self.max_results {
                    return Step::Stop;
                }
                files.push(listed(&located.spell(entry)).into_owned());
            }
            Step::Enter
        })?;
        let mut output = self.output(&files, visited, stopped);
        if unseen {
            super::file::tell_unseen(&mut output);
        }
        Ok(output)
    }

    fn output(&self, files: &[String], visited: Visited, stopped: Option<Stopped>) -> Output {
        let note = match (visited, stopped) {
            (_, Some(Stopped::Cancelled)) => "[cancelled; there may be more]",
            (_, Some(Stopped::TimedOut)) => "[the time was up; there may be more]",
            (Visited::Stopped, None) => {
                "[there are more; narrow `pattern` or `path`, or raise `maxResults`]"
            }
            (Visited::Bounded, None) => {
                "[the folder is too large to be looked through; give a `path` below it]"
            }
            (Visited::All, None) => "",
        };
        let mut text = files.join("\n");
        if files.is_empty() {
            let folder = self.path.shown();
            text = match &self.pattern {
                Some(pattern) => format!("no file in {folder:?} matches {pattern:?}"),
                None => format!("{folder:?} has no files, or all are ignored"),
            };
        }
        if !note.is_empty() {
            text.push('\n');
            text.push_str(note);
        }
        Output {
            is_error: stopped.is_some() || (files.is_empty() && self.pattern.is_some()),
            ..Output::text(text)
        }
        .with(Metadata {
            path: Some(self.path.relative().to_owned()),
            result_count: Some(files.len() as u64),
            truncated: visited != Visited::All,
            ..stopped.map(Stopped::metadata).unwrap_or_default()
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

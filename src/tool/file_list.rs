//! `file_list`: the files below a folder, by a glob.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::file::{Context, PathArgument, Work, tool};
use super::listed::listed;
use super::name_filter::NameFilter;
use super::walk::walk;
use super::{Output, Refusal, Tool};
use crate::message::DangerLevel;
use crate::sandbox::paths::{EntryKind, PathError, Roots, Step};

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

/// Makes the tool.
pub fn file_list(roots: Arc<Roots>) -> impl Tool {
    tool("file_list", DangerLevel::Safe, move |input: Input| {
        let filter = input.pattern.as_deref().map(NameFilter::parse).transpose();
        let path = PathArgument::parse_folder(&roots, input.path.as_deref())?;
        let list = List {
            filter: filter.map_err(Refusal::Invalid)?,
            pattern: input.pattern,
            max_results: input.max_results.unwrap_or(DEFAULT_RESULTS),
        };
        Ok((path, list))
    })
}

struct List {
    filter: Option<NameFilter>,
    pattern: Option<String>,
    max_results: usize,
}

impl Work for List {
    fn run(&self, path: &PathArgument, context: &Context) -> Result<Output, PathError> {
        const KINDS: [EntryKind; 2] = [EntryKind::File, EntryKind::Link];

        let located = path.locate()?;
        let mut files = Vec::new();
        let walked = walk(&located, &KINDS, self.filter.as_ref(), context, |entry| {
            if files.len() == self.max_results {
                return Step::Stop;
            }
            files.push(listed(&located.spell(entry)).into_owned());
            Step::Enter
        })?;
        let none = files.is_empty();
        let text = match (&self.pattern, path.shown()) {
            (_, _) if !none => files.join("\n"),
            (Some(pattern), folder) => format!("no file in {folder:?} matches {pattern:?}"),
            (None, folder) => format!("{folder:?} has no files, or all are ignored"),
        };
        let is_error = none && self.pattern.is_some();
        let more = "[there are more; narrow `pattern` or `path`, or raise `maxResults`]";
        Ok(walked.output(path, files.len(), &text, is_error, more))
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

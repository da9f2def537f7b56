//! `file_read`: the text of a file, or a part of it; images as images.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::file::{Done, PathArgument, Sight, Stop, blocking, settle};
use super::input::{parse, spec_of};
use super::text::{Binary, decode};
use super::{Claim, Facts, Metadata, Output, Prepared, Refusal, Run, Tool, Violation};
use crate::config::FileReadConfig;
use crate::message::image::{self, MAX_IMAGE_BYTES};
use crate::message::{DangerLevel, Part, ToolCategory, ToolSpec};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{PathError, Roots};
use crate::sandbox::seen::Fingerprint;
use crate::telemetry::Redactor;

/// Reads a file of the project and returns its text; png, jpeg, gif and webp files are returned as
/// images.
///
/// Long files are cut: read on with `offset` and `limit`. Use file_search to find
/// something in large files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Path of the file, relative to the project.
    path: String,
    /// Number of the first line to return, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines to return.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// The tool.
#[derive(Debug)]
pub struct FileRead {
    roots: Arc<Roots>,
    config: Arc<FileReadConfig>,
    spec: ToolSpec,
}

impl FileRead {
    /// Makes the tool.
    pub fn new(roots: Arc<Roots>, config: FileReadConfig) -> Self {
        Self {
            roots,
            config: Arc::new(config),
            spec: spec_of::<Input>("file_read", ToolCategory::File, DangerLevel::Safe),
        }
    }
}

impl Tool for FileRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, input: &Map<String, Value>) -> Result<Box<dyn Prepared>, Refusal> {
        let input: Input = parse(&self.spec, input)?;
        let path = PathArgument::parse(&self.roots, &input.path, Access::Read)?;
        check_extension(&self.config, path.relative()).map_err(Refusal::Invalid)?;
        Ok(Box::new(Call {
            path,
            config: Arc::clone(&self.config),
            offset: input.offset.unwrap_or(1),
            limit: input.limit.unwrap_or(u64::MAX),
        }))
    }
}

struct Call {
    path: PathArgument,
    config: Arc<FileReadConfig>,
    offset: u64,
    limit: u64,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        self.path.facts("file_read")
    }

    fn claims(&self) -> Vec<Claim> {
        vec![self.path.claim()]
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let identity = self.path.identity();
            let stop = Stop::of(&run);
            let redactor = run.redactor.clone();
            let done = blocking(move || self.read(&stop, &redactor))
                .await
                .flatten();
            settle(run.seen, &identity, done)
        })
    }
}

impl Call {
    fn read(&self, stop: &Stop, redactor: &Redactor) -> Result<Done, PathError> {
        if let Some(stopped) = stop.reached() {
            return Ok(stopped.output().into());
        }
        let located = self.path.locate()?;
        check_extension(&self.config, located.relative()).map_err(PathError::Failed)?;
        let bytes = located.read()?;
        let fingerprint = Fingerprint::of(&bytes);
        let mut output = match image::media_type(&bytes) {
            Some(media_type) => self.image(media_type, &bytes),
            None => match decode(&bytes) {
                Ok(text) => self.excerpt(&text.content, redactor),
                Err(Binary(word)) => self.binary(word, &bytes, &fingerprint),
            },
        };
        output.metadata.path = Some(located.relative().to_owned());
        Ok(Done {
            output,
            sight: Sight::Content(fingerprint),
        })
    }

    fn image(&self, media_type: &str, bytes: &[u8]) -> Output {
        if bytes.len() > MAX_IMAGE_BYTES {
            return Output::error(format!(
                "image {:?} has {} bytes; at most {MAX_IMAGE_BYTES} can be shown",
                self.path.shown(),
                bytes.len()
            ));
        }
        Output {
            content: vec![Part::Image {
                media_type: media_type.to_owned(),
                data: image::encode(bytes),
            }],
            is_error: false,
            metadata: Metadata {
                total_bytes: Some(bytes.len() as u64),
                ..Metadata::default()
            },
        }
    }

    fn binary(&self, word: &str, bytes: &[u8], fingerprint: &Fingerprint) -> Output {
        Output::error(format!(
            "file {:?} is {word}, not text ({} bytes, SHA-256 {})",
            self.path.shown(),
            bytes.len(),
            fingerprint.hex()
        ))
    }

    /// Returns the lines that were asked for, up to the cap, with a note on what is left out.
    ///
    /// What is a secret is told by the whole file: a part may begin within a key. Lines are counted as the file has them.
    fn excerpt(&self, content: &str, redactor: &Redactor) -> Output {
        let lines = content.split_inclusive('\n').count() as u64;
        if self.offset > lines.max(1) {
            return Output::error(format!(
                "file {:?} has {lines} lines; there is no line {}",
                self.path.shown(),
                self.offset
            ));
        }
        if content.is_empty() {
            return Output::text("[the file is empty]");
        }
        let excerpt = Excerpt::of(content, self.offset, self.limit, self.config.max_bytes);
        let part = excerpt.start..excerpt.start + excerpt.text.len();
        let (shown, masked) = redactor.redact_part(content, part);
        let mut text = shown.into_owned();
        let left_out = excerpt.text.len() < content.len();
        if left_out {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&excerpt.note(self.offset, lines));
        }
        Output::text(text).with(Metadata {
            truncated: excerpt.capped,
            total_bytes: Some(content.len() as u64),
            omitted_bytes: left_out.then_some((content.len() - excerpt.text.len()) as u64),
            redacted: Some(masked).filter(|masked| *masked > 0),
            ..Metadata::default()
        })
    }
}

/// A run of lines of a file.
struct Excerpt<'a> {
    /// Where it begins, in bytes.
    start: usize,
    text: &'a str,
    lines: u64,
    /// Whether the cap ended it, rather than the limit or the file.
    capped: bool,
    /// Whether not even its first line fits under the cap.
    broken: bool,
}

impl<'a> Excerpt<'a> {
    fn of(content: &'a str, offset: u64, limit: u64, cap: usize) -> Self {
        let mut lines = content.split_inclusive('\n');
        let skipped: usize = lines
            .by_ref()
            .take(usize::try_from(offset - 1).unwrap_or(usize::MAX))
            .map(str::len)
            .sum();
        let rest = content.get(skipped..).unwrap_or_default();
        let (mut length, mut count, mut capped) = (0, 0, false);
        for line in lines.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            if length + line.len() > cap {
                capped = true;
                break;
            }
            length += line.len();
            count += 1;
        }
        let broken = capped && count == 0;
        let end = if broken {
            rest.floor_char_boundary(cap)
        } else {
            length
        };
        Self {
            start: skipped,
            text: rest.get(..end).unwrap_or_default(),
            lines: count,
            capped,
            broken,
        }
    }

    fn note(&self, offset: u64, lines: u64) -> String {
        if self.broken {
            return format!(
                "[line {offset} of {lines} is cut after {} bytes; use file_search for what is behind]",
                self.text.len()
            );
        }
        let last = offset + self.lines - 1;
        let more = if last < lines {
            format!("; read on with offset {}", last + 1)
        } else {
            String::new()
        };
        format!("[lines {offset} to {last} of {lines}{more}]")
    }
}

fn check_extension(config: &FileReadConfig, relative: &str) -> Result<(), String> {
    let allowed = &config.allowed_extensions;
    let extension = Path::new(relative)
        .extension()
        .map(|extension| extension.to_string_lossy());
    let fits = allowed.is_empty()
        || extension.is_some_and(|extension| {
            allowed.iter().any(|allowed| {
                allowed
                    .trim_start_matches('.')
                    .eq_ignore_ascii_case(&extension)
            })
        });
    if fits {
        return Ok(());
    }
    Err(format!(
        "file {relative:?} may not be read here: only files that end in {} may",
        allowed.join(", ")
    ))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

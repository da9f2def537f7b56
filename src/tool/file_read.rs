//! `file_read`: the text of a file, or a part of it; images as images, and the text of PDFs.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::file::{Context, PathArgument, Work, tool};
use super::text::decode;
use super::{Metadata, Output, Refusal, Tool};
use crate::config::FileReadConfig;
use crate::document::{MAX_PDF_FILE_BYTES, Pages, read_pdf};
use crate::message::image::{self, MAX_IMAGE_BYTES};
use crate::message::{DangerLevel, Part};
use crate::sandbox::deny::Access;
use crate::sandbox::paths::{PathError, Roots};
use crate::telemetry::Redactor;
use crate::tool::seen::Fingerprint;

/// Reads a file of the project and returns its text; png, jpeg, gif and webp files are returned as
/// images, PDF files as the text of their pages.
///
/// Long files are cut: read on with `offset` and `limit`. Use file_search to find
/// something in large files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// Path of the file, relative to the project.
    path: String,
    /// Number of the first line to return, of a PDF the first page, counted from 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Most lines to return, of a PDF most pages.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// Makes the tool.
pub fn file_read(roots: Arc<Roots>, config: FileReadConfig) -> impl Tool {
    let config = Arc::new(config);
    tool("file_read", DangerLevel::Safe, move |input: Input| {
        let path = PathArgument::parse(&roots, &input.path, Access::Read)?;
        check_extension(&config, path.relative()).map_err(Refusal::Invalid)?;
        let read = FileRead {
            config: Arc::clone(&config),
            offset: input.offset.unwrap_or(1),
            limit: input.limit.unwrap_or(u64::MAX),
        };
        Ok((path, read))
    })
}

struct FileRead {
    config: Arc<FileReadConfig>,
    offset: u64,
    limit: u64,
}

impl Work for FileRead {
    fn run(&self, path: &PathArgument, context: &Context) -> Result<Output, PathError> {
        if let Some(stopped) = context.stop.reached() {
            return Ok(stopped.output());
        }
        let located = path.locate()?;
        check_extension(&self.config, located.relative()).map_err(PathError::Failed)?;
        let bytes = located.read()?;
        let fingerprint = Fingerprint::of(&bytes);
        let shown = path.shown();
        let mut output = if let Some(media_type) = image::media_type(&bytes) {
            image(&shown, media_type, &bytes)
        } else if bytes.starts_with(b"%PDF-") {
            self.pdf(&shown, bytes, &context.redactor)
        } else {
            match decode(&bytes) {
                Ok(text) => self.excerpt(&shown, &text.content, &context.redactor),
                Err(word) => Output::error(format!(
                    "file {shown:?} is {word}, not text ({} bytes, SHA-256 {})",
                    bytes.len(),
                    fingerprint.hex()
                )),
            }
        };
        output.metadata.path = Some(located.relative().to_owned());
        // A call that is given up shows the model nothing.
        if context.stop.reached().is_none() {
            context.seen.remember(&path.identity(), fingerprint);
        }
        Ok(output)
    }
}

fn image(shown: &str, media_type: &str, bytes: &[u8]) -> Output {
    if bytes.len() > MAX_IMAGE_BYTES {
        return Output::error(format!(
            "image {shown:?} has {} bytes; at most {MAX_IMAGE_BYTES} can be shown",
            bytes.len()
        ));
    }
    let mut output = Output::text("");
    output.metadata.total_bytes = Some(bytes.len() as u64);
    output.content = vec![Part::Image {
        media_type: media_type.to_owned(),
        data: image::encode(bytes),
    }];
    output
}

impl FileRead {
    /// Returns the text of pages, up to the cap, with a note on what is left out.
    fn pdf(&self, shown: &str, bytes: Vec<u8>, redactor: &Redactor) -> Output {
        if bytes.len() > MAX_PDF_FILE_BYTES {
            return Output::error(format!(
                "PDF {shown:?} has {} bytes; at most {MAX_PDF_FILE_BYTES} can be read",
                bytes.len()
            ));
        }
        let total_bytes = bytes.len() as u64;
        let at_most = |count| usize::try_from(count).unwrap_or(usize::MAX);
        let pages = Pages {
            first: at_most(self.offset),
            count: at_most(self.limit),
            max_bytes: self.config.max_bytes,
        };
        let found = match read_pdf(bytes, pages) {
            Ok(found) => found,
            Err(problem) => return Output::error(format!("PDF {shown:?} {problem}")),
        };
        let (first, all) = (pages.first, found.pages);
        if first > all {
            return Output::error(format!(
                "PDF {shown:?} has {all} pages; there is no page {first}"
            ));
        }
        let last = first.saturating_sub(1) + found.read;
        let (text, masked) = redactor.redact_counted(&found.text);
        let mut text = text.into_owned();
        if text.is_empty() {
            text = format!(
                "[no text could be read of these pages of {shown:?}: they may be pictures, as scans are]"
            );
        }
        let is_cut = last < all && found.read < pages.count;
        if last < all || first > 1 {
            text.push_str(&match (found.read, last < all) {
                (0, _) => format!("\n[page {first} of {all} is cut here]"),
                (_, true) => format!(
                    "\n[pages {first} to {last} of {all}; read on with offset {}]",
                    last + 1
                ),
                (_, false) => format!("\n[pages {first} to {last} of {all}]"),
            });
        }
        Output::text(text).with(Metadata {
            truncated: is_cut,
            total_bytes: Some(total_bytes),
            redacted: Some(masked).filter(|masked| *masked > 0),
            ..Metadata::default()
        })
    }

    /// Returns the lines that were asked for, up to the cap, with a note on what is left out.
    ///
    /// What is a secret is found in the whole file: a part may begin within a key. Lines are counted as the file has them.
    fn excerpt(&self, shown: &str, content: &str, redactor: &Redactor) -> Output {
        let lines = content.split_inclusive('\n').count() as u64;
        if self.offset > lines.max(1) {
            return Output::error(format!(
                "file {shown:?} has {lines} lines; there is no line {}",
                self.offset
            ));
        }
        if content.is_empty() {
            return Output::text("[the file is empty]");
        }
        let excerpt = Excerpt::of(content, self.offset, self.limit, self.config.max_bytes);
        let length = excerpt.part.len();
        let (text, masked) = redactor.redact_part(content, excerpt.part.clone());
        let mut text = text.into_owned();
        let left_out = content.len() - length;
        if left_out > 0 {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&excerpt.note(self.offset, lines));
        }
        Output::text(text).with(Metadata {
            truncated: excerpt.is_capped,
            total_bytes: Some(content.len() as u64),
            omitted_bytes: Some(left_out as u64).filter(|bytes| *bytes > 0),
            redacted: Some(masked).filter(|masked| *masked > 0),
            ..Metadata::default()
        })
    }
}

struct Excerpt {
    /// In bytes.
    part: Range<usize>,
    /// None where not even its first line fits under the cap.
    lines: u64,
    /// Whether the cap ended it, rather than the limit or the file.
    is_capped: bool,
}

impl Excerpt {
    fn of(content: &str, offset: u64, limit: u64, cap: usize) -> Self {
        let at_most = |count| usize::try_from(count).unwrap_or(usize::MAX);
        let mut all = content.split_inclusive('\n');
        let start: usize = all.by_ref().take(at_most(offset - 1)).map(str::len).sum();
        let (mut end, mut lines, mut is_capped) = (start, 0, false);
        for line in all.take(at_most(limit)) {
            is_capped = end + line.len() > start + cap;
            if is_capped {
                break;
            }
            end += line.len();
            lines += 1;
        }
        if is_capped && lines == 0 {
            end = content.floor_char_boundary(start + cap);
        }
        Self {
            part: start..end,
            lines,
            is_capped,
        }
    }

    fn note(&self, offset: u64, lines: u64) -> String {
        if self.is_capped && self.lines == 0 {
            let bytes = self.part.len();
            return format!(
                "[line {offset} of {lines} is cut after {bytes} bytes; use file_search for what is behind]"
            );
        }
        let last = offset + self.lines - 1;
        let more = match last < lines {
            true => format!("; read on with offset {}", last + 1),
            false => String::new(),
        };
        format!("[lines {offset} to {last} of {lines}{more}]")
    }
}

fn check_extension(config: &FileReadConfig, relative: &str) -> Result<(), String> {
    let allowed = &config.allowed_extensions;
    let extension = Path::new(relative).extension().unwrap_or_default();
    let is_it = |allowed: &String| extension.eq_ignore_ascii_case(allowed.trim_start_matches('.'));
    if allowed.is_empty() || allowed.iter().any(is_it) {
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

//! `--record DIR`: keeps each exchange with a provider, in the form that `scripted` plays.
//!
//! Kept are the request's body, the answer's status, the headers that say something about it, and
//! its bytes with the time of each read; of a request that got no answer, why. Recordings are numbered in
//! the order in which their requests began. Request headers are not, and so no key; where a server repeats
//! the key it was given, stars stand in its place. `docs/scripts.md`
//! describes the files. Recording is for development: it writes from the task that reads, and a
//! file that cannot be written is a warning, never a failed turn.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::StreamExt;
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::body::ByteStream;
use super::http::secrets::Secrets;
use super::{ErrorKind, ProviderError};
use crate::config::{ProviderConfig, ProviderKind};

/// The list of recordings in their directory.
const MANIFEST: &str = "manifest.json";

/// Most bytes kept of one answer; what is longer is cut, and says so.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Most reads told apart; what comes after counts as one.
const MAX_READS: usize = 100_000;

/// The last number given in each directory, which several instances may share. Held while a recording
/// is added to a list. As many as there are directories in the configuration.
static NUMBERS: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// An answer being recorded; written when it is dropped.
pub(super) struct Tape {
    folder: PathBuf,
    number: usize,
    provider: String,
    api: &'static str,
    request: Vec<u8>,
    /// None as long as there is no answer.
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// Time since the read before, and bytes of each read.
    reads: Vec<(Duration, usize)>,
    last: Instant,
    ended: String,
    /// What sort of failure ended it, where one did.
    failed: Option<ErrorKind>,
    /// Taken out of all that is written: a server may repeat what it was given.
    secrets: Secrets,
}

impl Tape {
    /// Starts with a request that is about to be sent.
    pub(super) fn new(folder: &Path, config: &ProviderConfig, mut request: Vec<u8>) -> Self {
        let secrets = Secrets::of(config);
        secrets.mask(&mut request);
        Self {
            folder: folder.to_owned(),
            number: next_number(folder),
            provider: config.id.clone(),
            api: api(config.kind),
            request,
            status: None,
            headers: BTreeMap::new(),
            body: Vec::new(),
            reads: Vec::new(),
            last: Instant::now(),
            ended: "left before the end".to_owned(),
            failed: None,
            secrets,
        }
    }

    /// Goes on with the headers of the answer.
    pub(super) fn answered(&mut self, status: u16, headers: &HeaderMap) {
        self.status = Some(status);
        self.headers = telling(headers);
        for value in self.headers.values_mut() {
            *value = self.secrets.mask_text(value);
        }
        self.last = Instant::now();
    }

    /// Notes what broke it.
    pub(super) fn failed(&mut self, error: &ProviderError) {
        self.ended.clone_from(&error.message);
        self.failed = Some(error.kind);
    }

    /// Records the bytes as they are read.
    pub(super) fn around(mut self, bytes: ByteStream) -> ByteStream {
        // The end of the bytes is an item too, for it says that they are whole.
        bytes
            .map(Some)
            .chain(futures::stream::iter([None]))
            .filter_map(move |read| {
                match &read {
                    Some(Ok(read)) => self.add(read),
                    Some(Err(error)) => self.failed(error),
                    None => "complete".clone_into(&mut self.ended),
                }
                std::future::ready(read)
            })
            .boxed()
    }

    fn add(&mut self, read: &Bytes) {
        let room = MAX_BODY_BYTES.saturating_sub(self.body.len());
        let kept = read.get(..room.min(read.len())).unwrap_or_default();
        if kept.is_empty() {
            return;
        }
        self.body.extend_from_slice(kept);
        let now = Instant::now();
        let pause = now.duration_since(self.last);
        self.last = now;
        let full = self.reads.len() >= MAX_READS;
        match self.reads.last_mut() {
            Some((_, bytes)) if full => *bytes += kept.len(),
            _ => self.reads.push((pause, kept.len())),
        }
    }

    /// Writes the files and adds the recording to the list.
    fn write(&self) -> io::Result<()> {
        let _adding = NUMBERS.lock();
        make_folder(&self.folder)?;
        let path = self.folder.join(MANIFEST);
        let mut manifest = read_manifest(&path)?;
        let Some(recordings) = manifest.get_mut("recordings").and_then(Value::as_array_mut) else {
            return Err(io::Error::other("the manifest has no list of recordings"));
        };
        let name = format!("{:04}-{}", self.number, file_name(&self.provider));
        let file = format!("{name}.{}", self.ending());
        let request = format!("{name}.request.json");
        write_private(&self.folder.join(&file), &self.body)?;
        write_private(&self.folder.join(&request), &self.request)?;
        // Answers end in another order than their requests began.
        let place = recordings.partition_point(|other| number(other) < Some(self.number));
        recordings.insert(place, self.entry(&file, &request));
        let text = serde_json::to_vec_pretty(&manifest)?;
        let fresh = self.folder.join("manifest.json.new");
        write_private(&fresh, &text)?;
        std::fs::rename(fresh, path)
    }

    fn entry(&self, file: &str, request: &str) -> Value {
        let timing: Vec<(u128, usize)> = self
            .reads
            .iter()
            .map(|(pause, bytes)| (pause.as_millis(), *bytes))
            .collect();
        let digest: String = Sha256::digest(&self.body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut entry = json!({
            "file": file,
            "provider": self.provider,
            "api": self.api,
            "headers": self.headers,
            "request": request,
            "provenance": "recorded",
            "timing": timing,
            "bytes": self.body.len(),
            "sha256": digest,
            "ended": self.ended,
        });
        if let Some(fields) = entry.as_object_mut() {
            fields.extend(
                self.status
                    .map(|status| ("status".to_owned(), json!(status))),
            );
            fields.extend(
                self.failed
                    .map(|kind| ("failed".to_owned(), json!(kind.word()))),
            );
        }
        entry
    }

    fn ending(&self) -> &'static str {
        let content_type = self.headers.get("content-type").map_or("", String::as_str);
        if content_type.contains("event-stream") {
            "sse"
        } else if content_type.contains("ndjson") {
            "ndjson"
        } else {
            "json"
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.secrets.mask(&mut self.body);
        self.ended = self.secrets.mask_text(&self.ended);
        if let Err(error) = self.write() {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "failed to write a recording");
        }
    }
}

fn api(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "anthropic-messages",
        ProviderKind::Responses => "openai-responses",
        ProviderKind::Chat => "openai-chat",
        ProviderKind::Ollama => "ollama-chat",
        ProviderKind::Scripted => "scripted",
    }
}

/// The headers that say something about an answer: its form, its delays, its limits.
fn telling(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            [
                "content-type",
                "date",
                "x-should-retry",
                "request-id",
                "x-request-id",
            ]
            .contains(&name)
                || name.starts_with("retry-after")
                || name.contains("ratelimit")
        })
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// Gives the next number in a directory: after those of its list, and after those given already.
fn next_number(folder: &Path) -> usize {
    let mut numbers = NUMBERS.lock();
    let listed = || {
        let manifest = read_manifest(&folder.join(MANIFEST)).ok()?;
        let recordings = manifest.get("recordings")?.as_array()?;
        recordings.iter().filter_map(number).max()
    };
    let last = match numbers.get(folder) {
        Some(last) => *last,
        None => listed().unwrap_or(0),
    };
    numbers.insert(folder.to_owned(), last + 1);
    last + 1
}

/// The number in the name of a recording's file.
fn number(entry: &Value) -> Option<usize> {
    let name = entry.get("file")?.as_str()?;
    name.split('-').next()?.parse().ok()
}

fn read_manifest(path: &Path) -> io::Result<Value> {
    match std::fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(json!({"format": 1, "recordings": []}))
        }
        Err(error) => Err(error),
    }
}

/// A provider's name as part of a file's.
fn file_name(provider: &str) -> String {
    provider
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file that only the user can read: it holds what was said.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests;

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

use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures::stream::StreamExt;
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::body::ByteStream;
use super::http::secrets::Secrets;
use super::{ErrorKind, ProviderError};
use crate::config::ProviderConfig;

/// The list of recordings in their directory.
pub(super) const MANIFEST: &str = "manifest.json";

/// Most bytes kept of one answer; what is longer is cut, and says so.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Most reads kept apart; what comes after counts as one.
const MAX_READS: usize = 100_000;

/// The last number given in each directory, which several instances may share. Held while a recording
/// is added to a list. As many as there are directories in the configuration.
static NUMBERS: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(default)]
    format: u32,
    pub(super) recordings: Vec<Entry>,
}

/// One recording in the list.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) file: PathBuf,
    #[serde(default)]
    pub(super) provider: String,
    pub(super) api: String,
    /// None where no answer came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) request: PathBuf,
    /// Milliseconds since the read before, and bytes of each read.
    #[serde(default)]
    pub(super) timing: Vec<(u64, usize)>,
    #[serde(default)]
    pub(super) bytes: usize,
    #[serde(default)]
    pub(super) sha256: String,
    /// `complete`, or how the answer broke off.
    #[serde(default)]
    pub(super) ended: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<ErrorKind>,
    /// Keys that are for people.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

/// An answer being recorded; written when it is dropped.
pub(super) struct Tape {
    folder: PathBuf,
    number: usize,
    request: Vec<u8>,
    body: Vec<u8>,
    entry: Entry,
    last: Instant,
    /// Taken out of all that is written: a server may repeat what it was given.
    secrets: Secrets,
}

impl Tape {
    /// Starts with a request of the wire format `api` that is about to be sent.
    pub(super) fn new(
        folder: &Path,
        config: &ProviderConfig,
        api: &str,
        mut request: Vec<u8>,
    ) -> Self {
        let secrets = Secrets::of(config);
        secrets.mask(&mut request);
        Self {
            folder: folder.to_owned(),
            number: next_number(folder),
            request,
            body: Vec::new(),
            entry: Entry {
                provider: config.id.clone(),
                api: api.to_owned(),
                ended: "left before the end".to_owned(),
                others: Map::from_iter([("provenance".to_owned(), Value::from("recorded"))]),
                ..Entry::default()
            },
            last: Instant::now(),
            secrets,
        }
    }

    /// Goes on with the headers of the answer.
    pub(super) fn answered(&mut self, status: u16, headers: &HeaderMap) {
        self.entry.status = Some(status);
        self.entry.headers = kept_headers(headers);
        for value in self.entry.headers.values_mut() {
            *value = self.secrets.mask_text(value);
        }
        self.last = Instant::now();
    }

    /// Notes what broke it.
    pub(super) fn failed(&mut self, error: &ProviderError) {
        self.entry.ended.clone_from(&error.message);
        self.entry.failed = Some(error.kind);
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
                    None => "complete".clone_into(&mut self.entry.ended),
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
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let timing = &mut self.entry.timing;
        let is_full = timing.len() >= MAX_READS;
        match timing.last_mut() {
            Some((_, bytes)) if is_full => *bytes += kept.len(),
            _ => timing.push((pause, kept.len())),
        }
    }

    /// Writes the files and adds the recording to the list.
    fn write(&mut self) -> io::Result<()> {
        self.secrets.mask(&mut self.body);
        let mut entry = std::mem::take(&mut self.entry);
        entry.ended = self.secrets.mask_text(&entry.ended);
        entry.bytes = self.body.len();
        entry.sha256 = HEXLOWER.encode(&Sha256::digest(&self.body));
        let name = format!("{:04}-{}", self.number, file_name(&entry.provider));
        entry.file = format!("{name}.{}", ending(&entry.headers)).into();
        entry.request = format!("{name}.request.json").into();

        let _adding = NUMBERS.lock();
        make_folder(&self.folder)?;
        let path = self.folder.join(MANIFEST);
        let mut manifest = read_manifest(&path)?;
        write_private(&self.folder.join(&entry.file), &self.body)?;
        write_private(&self.folder.join(&entry.request), &self.request)?;
        // Answers end in another order than their requests began.
        let recordings = &mut manifest.recordings;
        let place = recordings.partition_point(|other| number(other) < Some(self.number));
        recordings.insert(place, entry);
        let text = serde_json::to_vec_pretty(&manifest)?;
        let fresh = self.folder.join("manifest.json.new");
        write_private(&fresh, &text)?;
        std::fs::rename(fresh, path)
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "failed to write a recording");
        }
    }
}

fn ending(headers: &BTreeMap<String, String>) -> &'static str {
    match headers.get("content-type") {
        Some(kind) if kind.contains("event-stream") => "sse",
        Some(kind) if kind.contains("ndjson") => "ndjson",
        _ => "json",
    }
}

/// The headers that say something about an answer: its form, its delays, its limits.
fn kept_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    const NAMES: [&str; 5] = [
        "content-type",
        "date",
        "x-should-retry",
        "request-id",
        "x-request-id",
    ];
    let is_kept = |name: &str| {
        NAMES.contains(&name) || name.starts_with("retry-after") || name.contains("ratelimit")
    };
    headers
        .iter()
        .filter(|(name, _)| is_kept(name.as_str()))
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}

/// Gives the next number in a directory: after those of its list, and after those given already.
fn next_number(folder: &Path) -> usize {
    let mut numbers = NUMBERS.lock();
    let last = numbers.entry(folder.to_owned()).or_insert_with(|| {
        let manifest = read_manifest(&folder.join(MANIFEST)).ok();
        let listed = manifest.iter().flat_map(|manifest| &manifest.recordings);
        listed.filter_map(number).max().unwrap_or(0)
    });
    *last += 1;
    *last
}

/// Returns the number in the name of a recording's file.
fn number(entry: &Entry) -> Option<usize> {
    entry.file.to_str()?.split('-').next()?.parse().ok()
}

fn read_manifest(path: &Path) -> io::Result<Manifest> {
    match std::fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Manifest {
            format: 1,
            recordings: Vec::new(),
        }),
        Err(error) => Err(error),
    }
}

/// A provider's name as part of a file's.
fn file_name(provider: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    provider.replace(|c| !is_plain(c), "_")
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

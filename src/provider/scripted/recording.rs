//! Recorded answers of providers, played through the real parsers: one at a time from a script, or
//! a directory of them in order, as `--record` makes it (`record`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::load::{broken, read_text};
use crate::provider::record::MAX_BODY_BYTES;
use crate::provider::replay::Wire;
use crate::provider::{ChunkStream, ErrorKind, ProviderError};

/// The list of recordings in their directory.
pub(super) const MANIFEST: &str = "manifest.json";

/// Largest list of recordings.
const MAX_MANIFEST_BYTES: u64 = 16 * 1024 * 1024;

/// Longest pause that is played; who records a model that thinks need not wait for it again.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Recorded exchanges, given out in order.
#[derive(Debug)]
pub(super) struct Recorded {
    folder: PathBuf,
    entries: Vec<Entry>,
    next: AtomicUsize,
}

#[derive(Deserialize)]
struct Manifest {
    recordings: Vec<Entry>,
}

/// One recording in the list. Keys that are for people are let pass.
#[derive(Debug, Deserialize)]
struct Entry {
    file: PathBuf,
    api: String,
    /// None where no answer came.
    status: Option<u16>,
    /// How it ended, where that was not well, and by what sort of failure.
    #[serde(default)]
    ended: String,
    failed: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Milliseconds since the read before, and bytes of each read.
    #[serde(default)]
    timing: Vec<(u64, usize)>,
}

/// One answer of a provider.
pub(super) struct Recording {
    wire: Wire,
    status: u16,
    headers: HeaderMap,
    body: Bytes,
    timing: Vec<(u64, usize)>,
    /// What broke it off.
    broke: Option<ProviderError>,
}

impl Entry {
    /// What the recorded request or answer failed with.
    fn broke(&self) -> Option<ProviderError> {
        let kinds = ErrorKind::WORDS.iter();
        let kind = self
            .failed
            .as_ref()
            .and_then(|failed| kinds.clone().find(|(word, _)| word == failed))
            .map(|(_, kind)| *kind);
        let kind = kind.or_else(|| self.status.is_none().then_some(ErrorKind::Connect))?;
        Some(ProviderError::new(kind, self.ended.clone()))
    }
}

impl Recorded {
    /// Reads the list of a directory; the bodies are read when they are played.
    pub(super) fn read(folder: &Path) -> Result<Self, ProviderError> {
        let path = folder.join(MANIFEST);
        let text = read_text(&path, MAX_MANIFEST_BYTES)?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| broken(&path, &error))?;
        Ok(Self {
            folder: folder.to_owned(),
            entries: manifest.recordings,
            next: AtomicUsize::new(0),
        })
    }

    /// Returns the next recording.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] after the last one; [`ErrorKind::NotConfigured`] for one that
    /// cannot be read; the failure of a request that got no answer.
    pub(super) fn next(&self) -> Result<Recording, ProviderError> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = self.entries.get(index).ok_or_else(|| {
            ProviderError::new(
                ErrorKind::InvalidRequest,
                format!("all {} recordings were played", self.entries.len()),
            )
        })?;
        let broke = entry.broke();
        let Some(status) = entry.status else {
            let silence = || ProviderError::new(ErrorKind::Connect, "no answer was recorded");
            return Err(broke.unwrap_or_else(silence));
        };
        let recording = Recording::read(&self.folder, &entry.file, &entry.api, status)?;
        Ok(Recording {
            broke,
            headers: headers(&entry.headers),
            timing: entry.timing.clone(),
            ..recording
        })
    }
}

impl Recording {
    /// Reads a body that is given out at once, with no headers known.
    pub(super) fn read(
        folder: &Path,
        file: &Path,
        api: &str,
        status: u16,
    ) -> Result<Self, ProviderError> {
        let path = folder.join(file);
        let wire = Wire::named(api)
            .ok_or_else(|| broken(&path, &format!("no answer is in the wire format {api:?}")))?;
        let mut body = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_BODY_BYTES as u64).read_to_end(&mut body))
            .map_err(|error| broken(&path, &error))?;
        Ok(Self {
            wire,
            status,
            headers: HeaderMap::new(),
            body: body.into(),
            timing: Vec::new(),
            broke: None,
        })
    }

    /// Plays the answer as it came.
    ///
    /// # Errors
    ///
    /// The provider's refusal, where it was one.
    pub(super) fn play(self, provider: &str, model: &str) -> Result<ChunkStream, ProviderError> {
        if !(200..300).contains(&self.status) {
            return Err(ProviderError::from_response(
                self.status,
                &self.headers,
                &self.body,
            ));
        }
        let content_type = self
            .headers
            .get(reqwest::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        Ok(self
            .wire
            .play_broken(self.reads(), &content_type, provider, model))
    }

    fn reads(self) -> impl Stream<Item = Result<Bytes, ProviderError>> {
        let mut rest = self.body;
        let mut reads: Vec<(Duration, Bytes)> = self
            .timing
            .into_iter()
            .map(|(pause, bytes)| {
                let read = rest.split_to(bytes.min(rest.len()));
                (Duration::from_millis(pause).min(MAX_PAUSE), read)
            })
            .collect();
        reads.push((Duration::ZERO, rest));
        stream::iter(reads)
            .then(|(pause, read)| async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                Ok(read)
            })
            .chain(stream::iter(self.broke.map(Err)))
    }
}

fn headers(named: &BTreeMap<String, String>) -> HeaderMap {
    named
        .iter()
        .filter_map(|(name, value)| {
            let name: HeaderName = name.parse().ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        })
        .collect()
}

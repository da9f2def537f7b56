//! Recorded answers of providers, played through the real parsers: one at a time from a script, or
//! a directory of them in order, as `--record` makes it (`record`).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::load::{broken, read_text};
use super::play::paused;
use crate::provider::record::{Entry, MANIFEST, MAX_BODY_BYTES, Manifest};
use crate::provider::replay::Wire;
use crate::provider::{ChunkStream, ErrorKind, ProviderError};

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

    /// Plays the next recording.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] after the last one; those of [`play`].
    pub(super) fn play_next(
        &self,
        provider: &str,
        model: &str,
    ) -> Result<ChunkStream, ProviderError> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = self.entries.get(index).ok_or_else(|| {
            ProviderError::new(
                ErrorKind::InvalidRequest,
                format!("all {} recordings were played", self.entries.len()),
            )
        })?;
        play(&self.folder, entry, provider, model)
    }
}

/// Plays an answer as it came; at once where its times are not known.
///
/// # Errors
///
/// The provider's refusal, or the failure of a request that got no answer;
/// [`ErrorKind::NotConfigured`] for a recording that cannot be read.
pub(super) fn play(
    folder: &Path,
    entry: &Entry,
    provider: &str,
    model: &str,
) -> Result<ChunkStream, ProviderError> {
    let broke = |kind| ProviderError::new(kind, entry.ended.clone());
    let Some(status) = entry.status else {
        return Err(broke(entry.failed.unwrap_or(ErrorKind::Connect)));
    };
    let path = folder.join(&entry.file);
    let wire = Wire::named(&entry.api).ok_or_else(|| {
        let reason = format!("no answer is in the wire format {:?}", entry.api);
        broken(&path, &reason)
    })?;
    let mut body = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_BODY_BYTES as u64).read_to_end(&mut body))
        .map_err(|error| broken(&path, &error))?;
    if !(200..300).contains(&status) {
        let named = entry.headers.iter().filter_map(|(name, value)| {
            let name: HeaderName = name.parse().ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
        let headers: HeaderMap = named.collect();
        return Err(ProviderError::from_response(status, &headers, &body));
    }
    let mut rest = Bytes::from(body);
    let mut reads = Vec::with_capacity(entry.timing.len() + 2);
    for (pause, bytes) in &entry.timing {
        let read = rest.split_to((*bytes).min(rest.len()));
        reads.push((Duration::from_millis(*pause).min(MAX_PAUSE), Ok(read)));
    }
    reads.push((Duration::ZERO, Ok(rest)));
    reads.extend(entry.failed.map(|kind| (Duration::ZERO, Err(broke(kind)))));
    let content_type = entry.headers.get(CONTENT_TYPE.as_str());
    let content_type = content_type.map_or("", String::as_str);
    Ok(wire.play_broken(paused(reads), content_type, provider, model))
}

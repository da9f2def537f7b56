//! Recorded answers of providers, played through the real parsers.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::load::broken;
use super::play::paused;
use crate::provider::record::{Entry, MAX_BODY_BYTES};
use crate::provider::replay::Wire;
use crate::provider::{ChunkStream, ErrorKind, ProviderError};

/// Longest pause that is played; who records a model that thinks need not wait for it again.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Plays an answer as it came; at once where its times are not known.
///
/// The error is the provider's refusal, or the failure of a request that got no answer;
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
    Ok(wire.play(paused(reads), content_type, provider, model))
}

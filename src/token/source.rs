//! Where keys come from: a file, or an address that is asked when it has to be.
//!
//! What was read is kept for a time, and longer where it cannot be read again: an issuer that is away locks nobody out. A token
//! with a key that is not known has them read again, once a minute at most.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Keys;
use crate::config::KeySource;
use crate::http::Clients;

/// The longest set of keys, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// How long the keys of an address are taken for good.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// After which time keys are read again at the earliest, whatever for.
const PAUSE: Duration = Duration::from_secs(60);

/// How long an address may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Source {
    place: KeySource,
    clients: Clients,
    known: Mutex<Known>,
    /// Held while they are read.
    alone: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    keys: Arc<Keys>,
    /// When they were read, and when that was tried.
    read_at: Option<Instant>,
    tried_at: Option<Instant>,
}

impl Source {
    /// Reads the keys of a file; those of an address when the first token comes.
    pub(super) fn new(place: &KeySource) -> Result<Self, String> {
        let keys = match place {
            KeySource::File(path) => Arc::new(of_file(path)?),
            KeySource::Address(_) => Arc::default(),
        };
        let is_file = matches!(place, KeySource::File(_));
        Ok(Self {
            place: place.clone(),
            clients: Clients::guarded(),
            known: Mutex::new(Known {
                keys,
                read_at: is_file.then(Instant::now),
                tried_at: None,
            }),
            alone: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the keys, read again where they are too old or lack what is asked for.
    pub(super) async fn keys(&self, have: impl Fn(&Keys) -> bool) -> Arc<Keys> {
        let is_wanted = |known: &Known| {
            let is_good = have(&known.keys) && !self.is_old(known);
            let is_early = known.tried_at.is_some_and(|at| at.elapsed() < PAUSE);
            !is_good && !is_early
        };
        if is_wanted(&self.known.lock()) {
            let _alone = self.alone.lock().await;
            // Somebody else may have read them meanwhile.
            let is_wanted = is_wanted(&self.known.lock());
            if is_wanted {
                self.read().await;
            }
        }
        Arc::clone(&self.known.lock().keys)
    }

    /// Reads them again, now.
    pub(super) async fn read_again(&self) {
        let _alone = self.alone.lock().await;
        self.read().await;
    }

    fn is_old(&self, known: &Known) -> bool {
        let is_address = matches!(self.place, KeySource::Address(_));
        is_address && known.read_at.is_none_or(|at| at.elapsed() > FRESH)
    }

    async fn read(&self) {
        self.known.lock().tried_at = Some(Instant::now());
        let read = match &self.place {
            KeySource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || of_file(&path)).await;
                read.unwrap_or_else(|error| Err(error.to_string()))
            }
            KeySource::Address(url) => {
                let read = tokio::time::timeout(TIMEOUT, self.of_address(url)).await;
                read.unwrap_or_else(|_| Err("it does not answer".to_owned()))
            }
        };
        match read {
            Ok(keys) => {
                let mut known = self.known.lock();
                known.keys = Arc::new(keys);
                known.read_at = Some(Instant::now());
            }
            Err(problem) => {
                tracing::warn!(%problem, "the keys of users' tokens (auth.jwt.keys) cannot be read; those of before hold");
            }
        }
    }

    async fn of_address(&self, url: &str) -> Result<Keys, String> {
        let client = self.clients.get(url, None).await;
        let client = client.map_err(|error| error.to_string())?;
        let answer = crate::http::send(client.get(url)).await;
        let answer = answer.map_err(|error| error.without_url().to_string())?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status()));
        }
        let mut body = answer.bytes_stream();
        let mut text = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| error.without_url().to_string())?;
            if text.len() + piece.len() > MAX_BYTES {
                return Err(too_long());
            }
            text.extend_from_slice(&piece);
        }
        Keys::read(&String::from_utf8_lossy(&text))
    }
}

fn of_file(path: &Path) -> Result<Keys, String> {
    let named = |problem: String| format!("{}: {problem}", path.display());
    let text = read_text(path, MAX_BYTES).map_err(named)?;
    Keys::read(&text).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Reads a file of at most so many bytes.
pub(super) fn read_text(path: &Path, most: usize) -> Result<String, String> {
    use std::io::Read as _;

    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(most as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    match text.len() > most {
        true => Err(too_long()),
        false => Ok(text),
    }
}

fn too_long() -> String {
    format!("it has more than {} KiB", MAX_BYTES / 1024)
}

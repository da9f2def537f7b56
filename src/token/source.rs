//! Where keys come from: a file, or an address that is asked when it has to be.
//!
//! What was read is kept until something else was: an issuer that is slow or away locks nobody out whose key is known. There is
//! one read at a time, in a task of its own, and whoever has to wait for it waits for the same one. A token with a key that is
//! not known waits for one, too, which begins [`PAUSE`] after the last one ended at the earliest.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Keys;
use crate::config::KeySource;
use crate::http::Clients;

/// The longest set of keys, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// How long the keys of an address are taken for good.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// How long nothing is read after a read, however it ended, whatever a token asks for.
const PAUSE: Duration = Duration::from_secs(10);

/// How long an address may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Source(Arc<Inner>);

struct Inner {
    place: KeySource,
    clients: Clients,
    known: Mutex<Known>,
}

/// A read that goes on, for whoever waits for its end.
type Read = Shared<BoxFuture<'static, ()>>;

#[derive(Default)]
struct Known {
    keys: Arc<Keys>,
    /// When they were read.
    read_at: Option<Instant>,
    /// When the last read ended, with or without keys.
    tried_at: Option<Instant>,
    reading: Option<Read>,
}

impl Source {
    /// Reads the keys of a file; those of an address when the first token comes.
    pub(super) fn new(place: &KeySource) -> Result<Self, String> {
        let keys = match place {
            KeySource::File(path) => {
                let keys = of_file(path)?;
                say_odd(&keys);
                Arc::new(keys)
            }
            KeySource::Address(_) => Arc::default(),
        };
        let is_file = matches!(place, KeySource::File(_));
        Ok(Self(Arc::new(Inner {
            place: place.clone(),
            clients: Clients::guarded(),
            known: Mutex::new(Known {
                keys,
                read_at: is_file.then(Instant::now),
                ..Known::default()
            }),
        })))
    }

    /// Returns the keys. Waits for a read only where they lack what is asked for; where they are old they are read meanwhile.
    pub(super) async fn keys(&self, have: impl Fn(&Keys) -> bool) -> Arc<Keys> {
        let reading = {
            let mut known = self.0.known.lock();
            let is_there = have(&known.keys);
            if is_there && !self.0.is_old(&known) {
                return Arc::clone(&known.keys);
            }
            let may_begin = known.tried_at.is_none_or(|at| at.elapsed() >= PAUSE);
            let reading = match may_begin {
                true => Some(self.0.begin_or_join(&mut known)),
                false => known.reading.clone(),
            };
            reading.filter(|_| !is_there)
        };
        if let Some(reading) = reading {
            reading.await;
        }
        Arc::clone(&self.0.known.lock().keys)
    }

    /// Reads them again; one read that goes on may have begun too early.
    pub(super) async fn read_again(&self) {
        let before = self.0.known.lock().reading.clone();
        if let Some(before) = before {
            before.await;
        }
        let reading = self.0.begin_or_join(&mut self.0.known.lock());
        reading.await;
    }
}

impl Inner {
    fn is_old(&self, known: &Known) -> bool {
        let is_address = matches!(self.place, KeySource::Address(_));
        is_address && known.read_at.is_none_or(|at| at.elapsed() > FRESH)
    }

    fn begin_or_join(self: &Arc<Self>, known: &mut Known) -> Read {
        let begin = || {
            let inner = Arc::clone(self);
            let reading = async move { inner.read().await }.boxed().shared();
            // In a task, so that it ends whoever waits for it or no longer does.
            tokio::spawn(reading.clone());
            reading
        };
        known.reading.get_or_insert_with(begin).clone()
    }

    async fn read(&self) {
        let read = read_by(&self.place, &self.clients).await;
        let now = Some(Instant::now());
        let mut known = self.known.lock();
        (known.tried_at, known.reading) = (now, None);
        match read {
            Ok(keys) => {
                if keys.odd() != known.keys.odd() {
                    say_odd(&keys);
                }
                (known.keys, known.read_at) = (Arc::new(keys), now);
            }
            Err(problem) => {
                tracing::warn!(%problem, "the keys of users' tokens (auth.jwt.keys) cannot be read; those of before hold");
            }
        }
    }
}

/// Reads keys once.
pub(super) async fn read(place: &KeySource) -> Result<Keys, String> {
    read_by(place, &Clients::guarded()).await
}

async fn read_by(place: &KeySource, clients: &Clients) -> Result<Keys, String> {
    match place {
        KeySource::File(path) => {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || of_file(&path)).await;
            read.unwrap_or_else(|error| Err(error.to_string()))
        }
        KeySource::Address(url) => {
            let read = tokio::time::timeout(TIMEOUT, of_address(url, clients)).await;
            read.unwrap_or_else(|_| Err("it does not answer".to_owned()))
        }
    }
}

async fn of_address(url: &str, clients: &Clients) -> Result<Keys, String> {
    let client = clients.get(url, None).await;
    let client = client.map_err(|error| error.to_string())?;
    // Without the address: it may hold a secret.
    let broke = |error: reqwest::Error| crate::http::causes(&error.without_url());
    let answer = crate::http::send(client.get(url)).await.map_err(broke)?;
    if !answer.status().is_success() {
        return Err(format!("it answers {}", answer.status()));
    }
    let body = crate::http::body(answer, MAX_BYTES).await.map_err(broke)?;
    match body.is_whole {
        true => Keys::read(&String::from_utf8_lossy(&body.bytes)),
        false => Err(too_long()),
    }
}

/// Says which keys were left out.
fn say_odd(keys: &Keys) {
    for problem in keys.odd() {
        tracing::warn!(%problem, "a key is left out of those of users' tokens (auth.jwt.keys)");
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

#[cfg(test)]
mod tests;

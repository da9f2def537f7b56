//! The HTTP clients that providers and tools share, built when the first request needs one.
//!
//! Building one loads the system's certificates, which takes milliseconds that the start of the
//! daemon does not have.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::TryFutureExt as _;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, Response, Url, redirect};
use tower::util::MapFutureLayer;

use crate::sandbox::is_metadata;
use parking_lot::Mutex;

/// Longest wait for a connection, TLS included.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How often a quiet HTTP/2 connection with a request on it is asked whether it lives.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// How long that question may stay unanswered.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// Whether a connection was made for the request that is being sent here.
    static CONNECTED: Cell<bool>;
}

/// Why there is no client for a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL, or the certificate file, cannot be used; the configuration has to change.
    #[error("{0}")]
    Setting(String),
    /// The client could not be set up.
    #[error("failed to set up the HTTP client: {0}")]
    Setup(String),
}

/// The HTTP clients of the daemon; clones share them.
#[derive(Clone, Default)]
pub struct Clients {
    built: Arc<Mutex<HashMap<Route, Client>>>,
    guard: Guard,
}

/// Which addresses a name may lead to.
#[derive(Clone, Copy, Default)]
enum Guard {
    /// Any.
    #[default]
    None,
    /// Any but those behind which clouds hand out keys, link-local ones among them.
    Metadata,
    /// Those that this says yes to. A proxy would look names up itself, so none is used.
    Only(fn(IpAddr) -> bool),
}

/// What makes a client of its own necessary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Route {
    /// Plain HTTP to this machine: no proxy, no certificates.
    Loopback,
    /// TLS to this machine: no proxy.
    LoopbackTls(Option<PathBuf>),
    /// Anywhere else, through a proxy where the system has one.
    World(Option<PathBuf>),
}

impl Clients {
    /// Clients for addresses that are less trusted: they connect to no address behind which clouds hand out
    /// keys, and to no link-local one.
    pub fn guarded() -> Self {
        Self {
            guard: Guard::Metadata,
            ..Self::default()
        }
    }

    /// Clients that connect to names only where `allowed` says yes to an address that they lead to, and never through a proxy.
    /// An address in the place of a name is not looked up: it is for the caller to check.
    pub fn only(allowed: fn(IpAddr) -> bool) -> Self {
        Self {
            guard: Guard::Only(allowed),
            ..Self::default()
        }
    }

    /// Returns the client for a URL, building it where this is the first request of its sort.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; it holds no credentials of the URL.
    pub async fn get(&self, url: &str, ca_file: Option<&Path>) -> Result<Client, ClientError> {
        let route = Route::of(url, ca_file)?;
        if let Some(client) = self.built.lock().get(&route) {
            return Ok(client.clone());
        }
        // Reading the certificates blocks. Two first requests at once may both build; one is kept.
        let (building, guard) = (route.clone(), self.guard);
        let client = tokio::task::spawn_blocking(move || build(&building, guard))
            .await
            .map_err(|error| failed(&error))??;
        Ok(self.built.lock().entry(route).or_insert(client).clone())
    }

    /// Clients that keep connections to plain HTTP on this machine, as those to other machines are kept.
    #[cfg(test)]
    pub(crate) fn keeping_loopback() -> reqwest::Result<Self> {
        let clients = Self::default();
        let client = settings(Guard::None)
            .no_proxy()
            .tls_certs_only([])
            .build()?;
        clients.built.lock().insert(Route::Loopback, client);
        Ok(clients)
    }
}

/// Sends a request and returns the head of the answer.
///
/// Servers close a connection that they said they would keep, and what is sent on it meanwhile gets no
/// answer. So a request for which no connection was made, and which failed before the head of an answer came,
/// is sent once more, at once. It may then arrive twice: only for requests without effects at the server.
///
/// # Errors
///
/// reqwest's, of the last attempt.
pub async fn send(request: RequestBuilder) -> reqwest::Result<Response> {
    let again = request.try_clone();
    let is_broken =
        |error: &reqwest::Error| error.is_request() && !error.is_connect() && !error.is_timeout();
    let first = async {
        let sent = request.send().await;
        (sent, CONNECTED.with(Cell::get))
    };
    match (CONNECTED.scope(Cell::new(false), first).await, again) {
        ((Err(error), false), Some(again)) if is_broken(&error) => {
            tracing::debug!("a kept connection was dead; the request is sent again");
            again.send().await
        }
        ((sent, _), _) => sent,
    }
}

/// What was read of an answer.
#[derive(Debug)]
pub(crate) struct Body {
    pub bytes: Vec<u8>,
    /// Whether there is no more of it.
    pub is_whole: bool,
}

/// Reads the body of an answer, unpacked, up to `most` bytes.
///
/// # Errors
///
/// reqwest's, where the answer breaks off before.
pub(crate) async fn body(mut answer: Response, most: usize) -> reqwest::Result<Body> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > most {
            bytes.truncate(most);
            let is_whole = false;
            return Ok(Body { bytes, is_whole });
        }
    }
    let is_whole = true;
    Ok(Body { bytes, is_whole })
}

impl Route {
    fn of(url: &str, ca_file: Option<&Path>) -> Result<Self, ClientError> {
        let url =
            Url::parse(url).map_err(|error| ClientError::Setting(format!("not a URL: {error}")))?;
        let ca_file = ca_file.map(Path::to_owned);
        Ok(match (is_loopback(&url), url.scheme()) {
            (true, "http") => Self::Loopback,
            (true, _) => Self::LoopbackTls(ca_file),
            (false, _) => Self::World(ca_file),
        })
    }
}

/// Returns whether a URL leads to this machine. Names are taken at their word, not resolved.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Returns the host of a URL as it is written there, with its port where it names one.
pub fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn build(route: &Route, guard: Guard) -> Result<Client, ClientError> {
    // Fails where a provider is installed already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let settings = || match (route, guard) {
        (Route::World(_), Guard::None | Guard::Metadata) => settings(guard),
        _ => settings(guard).no_proxy(),
    };
    let ca_file = match route {
        Route::Loopback => {
            // Some local servers close after each stream although they announce to keep the connection (llama.cpp
            // b11434, 2026-11-22). A new one costs nothing here.
            let client = settings().pool_max_idle_per_host(0).tls_certs_only([]);
            return client.build().map_err(|error| failed(&error));
        }
        Route::LoopbackTls(ca_file) | Route::World(ca_file) => ca_file,
    };
    let mut roots = ca_file.as_deref().map_or_else(|| Ok(Vec::new()), read_ca)?;
    // Building fails without extra roots where the system's store is empty, as in small containers.
    match settings().build() {
        Ok(client) if roots.is_empty() => return Ok(client),
        Ok(_) => {}
        Err(_) => {
            let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
            roots.extend(bundled.filter_map(|root| Certificate::from_der(root).ok()));
        }
    }
    settings()
        .tls_certs_merge(roots)
        .build()
        .map_err(|error| failed(&error))
}

/// Resolves names to the addresses that may be connected to.
struct Guarded(fn(IpAddr) -> bool);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let Self(allowed) = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            let leads_to = found.first().map(SocketAddr::ip);
            let found: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| allowed(address.ip()))
                .collect();
            if found.is_empty() {
                let leads_to = leads_to.map(|ip| format!(": it leads to {ip}"));
                let leads_to = leads_to.unwrap_or_default();
                return Err(format!(
                    "`{}` has no address that may be used{leads_to}",
                    name.as_str()
                )
                .into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

fn settings(guard: Guard) -> ClientBuilder {
    let resolver = match guard {
        Guard::None => None,
        Guard::Metadata => Some(Guarded(|address| !is_metadata(address))),
        Guard::Only(allowed) => Some(Guarded(allowed)),
    };
    let builder = match resolver {
        Some(resolver) => Client::builder().dns_resolver(Arc::new(resolver)),
        None => Client::builder(),
    };
    // No time limit on the whole: an answer may stream for as long as it likes.
    builder
        .connect_timeout(CONNECT_TIME)
        // A redirected POST would lose its body or take the key elsewhere.
        .redirect(redirect::Policy::none())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIME)
        .http2_keep_alive_while_idle(false)
        .http2_adaptive_window(true)
        .tcp_nodelay(true)
        .connector_layer(MapFutureLayer::new(note_connected))
}

/// Notes that a connection was made for the request that waits for it. One that was begun for a request which
/// then took another connection ends in a task of its own, where nothing is noted.
fn note_connected<C, E>(
    connecting: BoxFuture<'static, Result<C, E>>,
) -> BoxFuture<'static, Result<C, E>>
where
    C: Send + 'static,
    E: Send + 'static,
{
    Box::pin(connecting.inspect_ok(|_| {
        let _ = CONNECTED.try_with(|connected| connected.set(true));
    }))
}

fn read_ca(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let broken = |error: &dyn std::fmt::Display| {
        ClientError::Setting(format!(
            "failed to read the certificates of ca_file {}: {error}",
            path.display()
        ))
    };
    let pem = std::fs::read(path).map_err(|error| broken(&error))?;
    let roots = Certificate::from_pem_bundle(&pem).map_err(|error| broken(&error))?;
    if roots.is_empty() {
        return Err(broken(
            &"there is none in it; it has to hold PEM, which begins with -----BEGIN CERTIFICATE-----",
        ));
    }
    Ok(roots)
}

fn failed(error: &dyn std::fmt::Display) -> ClientError {
    ClientError::Setup(error.to_string())
}

/// Returns an `http` or `https` address without user and password; else what is wrong with it, as the rest of a sentence.
pub(crate) fn checked_url(url: &str) -> Result<Url, &'static str> {
    let url = Url::parse(url).map_err(|_| "is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("has to begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password");
    }
    Ok(url)
}

/// Returns an error with what caused it, which reqwest leaves out.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        let cases = [
            ("http://localhost:11434/api", Route::Loopback),
            ("http://127.0.0.1:1/", Route::Loopback),
            ("http://[::1]:8080", Route::Loopback),
            ("http://0.0.0.0:11434", Route::Loopback),
            ("http://a.localhost/", Route::Loopback),
            ("https://localhost/", Route::LoopbackTls(None)),
            ("http://localhost.evil.example/", Route::World(None)),
            ("http://192.168.0.2:11434", Route::World(None)),
            ("https://api.anthropic.com", Route::World(None)),
        ];
        for (url, expected) in cases {
            assert_eq!(Route::of(url, None).unwrap(), expected, "{url}");
        }
        assert!(Route::of("not a url", None).is_err());
    }

    #[tokio::test]
    async fn a_client_is_built_once_and_needs_no_certificates_for_loopback() {
        let clients = Clients::default();
        for url in [
            "http://127.0.0.1:1/a",
            "http://localhost:2/b",
            "https://example.com/",
        ] {
            clients.get(url, None).await.unwrap();
        }
        assert_eq!(clients.built.lock().len(), 2);
        let error = clients
            .get("https://x.example/", Some(Path::new("/nowhere/ca.pem")))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Setting(_)));
    }

    #[tokio::test]
    async fn a_name_leads_to_no_address_that_is_not_allowed() {
        for (allowed, refused) in [(false, true), (true, false)] {
            let clients = Clients::only(match allowed {
                true => |_| true,
                false => |_| false,
            });
            let url = "http://localhost:1/";
            let client = clients.get(url, None).await.unwrap();
            let error = client.get(url).send().await.unwrap_err();
            let error = format!("{error:?}");
            let said = error.contains("`localhost` has no address that may be used: it leads to");
            assert_eq!(said, refused, "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_of_certificates_holds_at_least_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let key = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
        let bad = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        for text in ["", "not a certificate", key, bad] {
            std::fs::write(&file, text).unwrap();
            for url in ["https://x.example/", "https://localhost/"] {
                let error = Clients::default().get(url, Some(&file)).await.unwrap_err();
                let ClientError::Setting(message) = error else {
                    panic!("{error}");
                };
                assert!(message.contains("ca_file"), "{message}");
                assert!(message.contains("ca.pem"), "{message}");
            }
        }
        // One that is good is taken, and a client is built with it.
        let good = webpki_root_certs::TLS_SERVER_ROOT_CERTS.first().unwrap();
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, good);
        let pem = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
        std::fs::write(&file, pem).unwrap();
        Clients::default()
            .get("https://x.example/", Some(&file))
            .await
            .unwrap();
    }
}

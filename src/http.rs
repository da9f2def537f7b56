//! The HTTP clients that providers and tools share, built when the first request needs one.
//!
//! Building one loads the system's certificates, which takes milliseconds that the start of the
//! daemon does not have.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};

/// Longest wait for a connection, TLS included.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How often a quiet HTTP/2 connection with a request on it is asked whether it lives.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// How long that question may stay unanswered.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(10);

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
    /// Returns the client for a URL, building it where this is the first request of its sort.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; it holds no credentials of the URL.
    pub async fn get(&self, url: &str, ca_file: Option<&Path>) -> Result<Client, ClientError> {
        let route = Route::of(url, ca_file)?;
        if let Some(client) = self.built().get(&route) {
            return Ok(client.clone());
        }
        // Reading the certificates blocks. Two first requests at once may both build; one is kept.
        let building = route.clone();
        let client = tokio::task::spawn_blocking(move || build(&building))
            .await
            .map_err(|error| failed(&error))??;
        Ok(self.built().entry(route).or_insert(client).clone())
    }

    fn built(&self) -> std::sync::MutexGuard<'_, HashMap<Route, Client>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Whether a URL leads to this machine. Names are taken at their word, not resolved.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn build(route: &Route) -> Result<Client, ClientError> {
    // Fails where a provider is installed already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let (ca_file, client) = match route {
        Route::Loopback => {
            return settings()
                .no_proxy()
                .tls_certs_only([])
                .build()
                .map_err(|error| failed(&error));
        }
        Route::LoopbackTls(ca_file) => (ca_file, settings().no_proxy()),
        Route::World(ca_file) => (ca_file, settings()),
    };
    let mut roots = ca_file.as_deref().map_or_else(|| Ok(Vec::new()), read_ca)?;
    // Building fails without extra roots where the system's store is empty, as in small containers.
    if settings().build().is_err() {
        let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        roots.extend(bundled.filter_map(|root| Certificate::from_der(root).ok()));
    }
    client
        .tls_certs_merge(roots)
        .build()
        .map_err(|error| failed(&error))
}

fn settings() -> ClientBuilder {
    // No time limit on the whole: an answer may stream for as long as it likes.
    Client::builder()
        .connect_timeout(CONNECT_TIME)
        // A redirected POST would lose its body or take the key elsewhere.
        .redirect(redirect::Policy::none())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIME)
        .http2_keep_alive_while_idle(false)
        .http2_adaptive_window(true)
        .tcp_nodelay(true)
}

fn read_ca(path: &Path) -> Result<Vec<Certificate>, ClientError> {
    let broken = |error: &dyn std::fmt::Display| {
        ClientError::Setting(format!(
            "failed to read the certificates of ca_file {}: {error}",
            path.display()
        ))
    };
    let pem = std::fs::read(path).map_err(|error| broken(&error))?;
    Certificate::from_pem_bundle(&pem).map_err(|error| broken(&error))
}

fn failed(error: &dyn std::fmt::Display) -> ClientError {
    ClientError::Setup(error.to_string())
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
        assert_eq!(clients.built().len(), 2);
        let error = clients
            .get("https://x.example/", Some(Path::new("/nowhere/ca.pem")))
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Setting(_)));
    }
}

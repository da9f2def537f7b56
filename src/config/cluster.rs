//! Several daemons on one database, as the rest of the daemon may rely on it.

use reqwest::Url;
use secrecy::SecretString;

/// This daemon among those that have one database.
#[derive(Clone, Debug, Default)]
pub struct ClusterConfig {
    /// Its name, which no other one has at the same time.
    pub name: Option<String>,
    /// Where the others reach it, without a path. Port 0 stands for the daemon's own.
    pub url: Option<String>,
    /// What they know each other by.
    pub secret: Option<SecretString>,
}

impl ClusterConfig {
    /// Returns where the others reach it where it listens on this port.
    pub fn url_at(&self, port: u16) -> Option<String> {
        let mut url = Url::parse(self.url.as_ref()?).ok()?;
        if url.port() == Some(0) {
            url.set_port(Some(port)).ok()?;
        }
        Some(url.as_str().trim_end_matches('/').to_owned())
    }
}

//! Several daemons on one database, as the rest of the daemon may rely on it.

use secrecy::SecretString;

/// This daemon among those that have one database.
#[derive(Clone, Debug, Default)]
pub struct ClusterConfig {
    /// Its name, which no other one has at the same time.
    pub name: Option<String>,
    /// Where the others reach it, without a path.
    pub url: Option<String>,
    /// What they know each other by.
    pub secret: Option<SecretString>,
}

//! The section `[cluster]`: several daemons on one database.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use super::Secret;

/// Several daemons on one database, behind a proxy. Each session is at one of them. See [store.md](store.md).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    /// The name of this daemon, which no other one has at the same time, e.g. that of its pod. One that starts with it has the
    /// sessions of the one before at once. Empty: a daemon that was killed keeps its sessions for 15 seconds.
    pub(crate) name: String,
    /// The address of this daemon for the others, e.g. `http://10.0.0.5:4517`: a socket that comes to one of them, and asks for
    /// a session that is here, is passed on to it. Port 0 stands for the one that it listens on. Empty: such a socket is told
    /// to try again.
    pub(crate) url: String,
    /// What the daemons of one cluster know each other by: the same for all, 32 to 256 characters. `cluster.url` needs it.
    /// `OUTRIGGER_CLUSTER__SECRET_FILE` names a file that holds it.
    #[serde(with = "Secret")]
    pub(crate) secret: Option<SecretString>,
}

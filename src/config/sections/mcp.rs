//! MCP servers that are endpoints, and `[mcp.servers.NAME.auth]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::Secret;
use crate::config::NamedValue;

/// Where sign-ins at MCP servers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenStore {
    /// The system's keyring, where there is one; else a file.
    #[default]
    Auto,
    /// A file that its user alone may read.
    File,
    /// Nowhere: they end with the daemon.
    Memory,
}

/// How the daemon signs in at an MCP server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SignInSettings {
    /// The client that the daemon is registered as at the authorization server. Default: it registers itself.
    pub(crate) client_id: Option<String>,
    /// That client's secret, where it has one.
    pub(crate) client_secret: Option<Secret>,
    /// An https address of yours where authorization servers that offer it read what the client is, instead of registering it.
    pub(crate) client_metadata_url: Option<String>,
    /// The rights that are asked for. Default: those that the server names.
    pub(crate) scopes: Vec<String>,
    /// Where the browser is sent afterwards. Default: `/oauth/callback` on the daemon's own port.
    pub(crate) redirect: Option<String>,
    /// Hosts that the sign-in may reach besides the server's own and public ones: those of a private network, or one that takes
    /// codes for another one's page.
    pub(crate) hosts: Vec<String>,
}

/// How the daemon signs in at an MCP server.
#[derive(Clone, Debug, Default)]
pub struct SignInConfig {
    /// The client that it is registered as.
    pub client_id: Option<String>,
    /// That client's secret.
    pub client_secret: Option<SecretString>,
    /// An address where authorization servers read what the client is.
    pub client_metadata_url: Option<String>,
    /// The rights that are asked for; those that the server names where there are none.
    pub scopes: Vec<String>,
    /// Where answers go; the daemon's own port where absent.
    pub redirect: Option<String>,
    /// Hosts that the sign-in may reach besides the server's own and public ones.
    pub hosts: Vec<String>,
}

impl SignInConfig {
    /// Returns the client's secret as it is.
    pub fn secret(&self) -> Option<String> {
        let secret = self.client_secret.as_ref();
        secret.map(|secret| secret.expose_secret().to_owned())
    }
}

/// An MCP server that is an endpoint.
#[derive(Clone, Debug, Default)]
pub struct HttpServer {
    /// The endpoint.
    pub url: String,
    /// Extra headers.
    pub headers: BTreeMap<String, NamedValue>,
    /// How the daemon signs in at it, where it asks for that.
    pub auth: SignInConfig,
}

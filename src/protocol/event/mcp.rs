//! What MCP servers want of their user outside of calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Payload of `mcp:auth-required`: to be shown with `host`, and the address opened only where the user says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAuthRequired {
    /// The MCP server.
    pub server: String,
    /// The page to open in a browser. It is `https`, or `http` on the daemon's own machine; empty for a socket whose token does
    /// not let it drive.
    pub url: String,
    /// The host of that page, with its port where that is unusual: where the user is about to sign in.
    pub host: String,
    /// The rights that are asked for, as the server names them.
    pub scopes: Vec<String>,
    /// Whether somebody is signed in already and the server wants more rights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The host of the sign-in before, where it was another one: the server names another authorization server now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was_at: Option<String>,
    /// When the sign-in is over, RFC 3339.
    pub expires_at: String,
}

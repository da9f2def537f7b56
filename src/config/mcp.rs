//! MCP servers as they are configured, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{HttpServer, NamedValue, SandboxPolicy, TokenStore};

/// MCP servers.
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    /// Servers by name.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// Whether a client may add and remove servers.
    pub allow_runtime_add: bool,
    /// Where sign-ins are kept.
    pub tokens: TokenStore,
    /// The folder for those that are kept in files; `None` where the user has none.
    pub tokens_folder: Option<PathBuf>,
}

/// One MCP server.
#[derive(Clone, Debug)]
pub struct McpServerConfig {
    /// How it is reached.
    pub transport: McpTransport,
    /// Tools of it that only read, by the operator's word.
    pub safe_tools: Vec<String>,
    /// Longest run of one call.
    pub timeout: Duration,
    /// What of its log sessions are shown.
    pub log: McpLogPolicy,
    /// Whether it may have models answer.
    pub sampling: SamplingPolicy,
}

impl McpServerConfig {
    /// Lists what it is trusted with.
    pub fn secrets(&self) -> Vec<SecretString> {
        let values = match &self.transport {
            McpTransport::Stdio(server) => &server.env,
            McpTransport::Http(server) => &server.headers,
        };
        let secrets = values.iter().map(|(name, value)| value.secrets(name));
        let client = match &self.transport {
            McpTransport::Stdio(_) => None,
            McpTransport::Http(server) => server.auth.client_secret.clone(),
        };
        secrets.flatten().chain(client).collect()
    }
}

/// How an MCP server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A child process that speaks over stdin and stdout.
    Stdio(StdioServer),
    /// Streamable HTTP.
    Http(HttpServer),
}

impl McpTransport {
    /// How the server is started or reached, without what is secret: another identity is another
    /// server, whatever its name.
    pub fn identity(&self) -> String {
        match self {
            Self::Stdio(server) => {
                let names: Vec<&String> = server.env.keys().collect();
                format!("{:?} {:?} {names:?}", server.command, server.args)
            }
            Self::Http(server) => server.url.clone(),
        }
    }
}

/// An MCP server that is a program.
#[derive(Clone, Debug, Default)]
pub struct StdioServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to its environment.
    pub env: BTreeMap<String, NamedValue>,
    /// Its working directory; one of its own where absent.
    pub cwd: Option<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// TCP ports it may connect to besides the usual ones.
    pub ports: Vec<u16>,
    /// Absolute paths that it may change.
    pub read_write: Vec<PathBuf>,
    /// Absolute paths that it may read.
    pub read_only: Vec<PathBuf>,
    /// Whether it runs in the sandbox.
    pub sandbox: SandboxPolicy,
}

/// Whether a server may have the model of a session answer something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplingPolicy {
    /// It may not, and is told so.
    #[default]
    Off,
    /// The user is asked each time.
    Ask,
}

/// What of a server's log sessions are shown: lines of this level and above.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum McpLogPolicy {
    /// All of it.
    Debug,
    /// What it does, too.
    Info,
    /// What is worth a look.
    Notice,
    /// What is not as it should be.
    #[default]
    Warning,
    /// What failed.
    Error,
    /// What failed badly.
    Critical,
    /// What somebody has to act on.
    Alert,
    /// That it is of no use any more.
    Emergency,
    /// Nothing.
    Off,
}

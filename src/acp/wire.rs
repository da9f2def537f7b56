//! What clients send, as far as it is read; unknown fields are left alone. Results and updates are made where they belong.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::rpc::RpcError;
use crate::protocol::input::InputMode;

/// Reads the parameters of a method; says which field is wrong.
pub(super) fn params<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, RpcError> {
    serde_path_to_error::deserialize(params)
        .map_err(|error| RpcError::invalid_params(format!("`{}`: {}", error.path(), error.inner())))
}

/// Reads a field that may be absent or null, which is the same.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    /// An integer; 1 is answered whatever it is.
    #[expect(dead_code, reason = "checked to be there, as the protocol wants it")]
    pub protocol_version: u16,
    #[serde(default)]
    pub client_capabilities: Capabilities,
}

/// What the client can do, as far as it matters here. What is of another form than the protocol has it is not announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Capabilities {
    pub terminal: Terminal,
    pub notices: bool,
    pub compaction: bool,
    pub input: Input,
}

/// How a client asks the user for what MCP servers want.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    pub forms: bool,
    pub pages: bool,
}

/// How a client shows a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Terminal {
    /// As text of the call.
    #[default]
    None,
    /// In a terminal of its own, by this key of `_meta`.
    Output(&'static str),
}

impl From<Value> for Capabilities {
    fn from(announced: Value) -> Self {
        let has = |path: &str| is_announced(announced.pointer(path));
        let meta = announced.get("_meta");
        let is_true = |key: &&str| meta.and_then(|meta| meta.get(key)) == Some(&Value::Bool(true));
        let terminal = ["terminal_output", "terminal_output_delta"];
        Self {
            terminal: terminal
                .into_iter()
                .find(is_true)
                .map_or(Terminal::None, Terminal::Output),
            notices: has("/session/notices"),
            compaction: has("/session/compaction"),
            input: Input {
                forms: has("/elicitation/form"),
                pages: has("/elicitation/url"),
            },
        }
    }
}

impl Input {
    /// Whether anything can be asked. Which form comes is the server's choice.
    pub(super) fn is_any(self) -> bool {
        self.forms || self.pages
    }

    pub(super) fn has(self, mode: InputMode) -> bool {
        match mode {
            InputMode::Form => self.forms,
            InputMode::Url => self.pages,
        }
    }
}

/// A capability is announced by an object, or by true.
fn is_announced(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.is_object() || *value == Value::Bool(true))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Open {
    /// Of `session/load`, `session/resume` and `session/fork`.
    #[serde(default)]
    pub session_id: Option<String>,
    pub cwd: String,
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServer>,
    #[serde(default, deserialize_with = "or_default")]
    pub additional_directories: Vec<String>,
}

/// A program where it has a `command`, else an endpoint: of which sort (`type` is `http` or `sse`) is found out.
#[derive(Clone, Deserialize)]
pub(super) struct McpServer {
    pub name: String,
    #[serde(default)]
    pub command: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub args: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub env: Vec<Pair>,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub headers: Vec<Pair>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Deserialize)]
pub(super) struct Pair {
    pub name: String,
    pub value: String,
}

/// Returns pairs by their names.
pub(super) fn map(pairs: Vec<Pair>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|it| (it.name, it.value)).collect()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Named {
    pub session_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct List {
    pub cwd: Option<String>,
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode {
    pub mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOption {
    pub config_id: String,
    pub value: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct SetTitle {
    pub title: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Prompt {
    pub prompt: Vec<Block>,
    #[serde(rename = "_meta", default)]
    pub meta: Option<Value>,
}

impl Prompt {
    /// Whether it goes into the turn that runs, which is this agent's own extension: `_meta.outrigger.whenBusy = "steer"`.
    pub(super) fn steers(&self) -> bool {
        let ours = self.meta.as_ref().and_then(|meta| meta.get("outrigger"));
        ours.and_then(|ours| ours.get("whenBusy"))
            .and_then(Value::as_str)
            == Some("steer")
    }
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    Audio {},
    ResourceLink {
        uri: String,
        #[serde(default)]
        name: Option<String>,
    },
    Resource {
        resource: Resource,
    },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Resource {
    pub uri: String,
    #[serde(default)]
    pub text: Option<String>,
    /// What is no text, in base64.
    #[serde(default)]
    pub blob: Option<String>,
    #[serde(rename = "mimeType", default)]
    pub mime_type: Option<String>,
}

/// What a client says to a request for permission.
#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    pub outcome: PermissionOutcome,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub(super) enum PermissionOutcome {
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
    Cancelled,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_client_can_do_is_what_it_announces() {
        let read = |value| params::<Capabilities>(value).unwrap();
        for nothing in [
            json!({"elicitation": {}, "session": {"notices": null}}),
            json!({"session": null, "elicitation": null, "_meta": null}),
            json!({"session": {"notices": 3}, "elicitation": [], "_meta": {"terminal_output": "yes"}}),
            Value::Null,
        ] {
            assert_eq!(read(nothing), Capabilities::default());
        }
        let all = read(
            json!({"elicitation": {"form": {}, "url": {}}, "session": {"notices": {}, "compaction": {}},
            "_meta": {"terminal_output": true, "other": 1}, "fs": {"readTextFile": true}}),
        );
        assert!(all.input.is_any() && all.notices && all.compaction);
        assert_eq!(all.terminal, Terminal::Output("terminal_output"));
        let some =
            read(json!({"elicitation": {"form": {}}, "_meta": {"terminal_output_delta": true}}));
        assert_eq!(some.terminal, Terminal::Output("terminal_output_delta"));
        assert!(some.input.has(InputMode::Form) && !some.input.has(InputMode::Url));
    }

    #[test]
    fn null_is_what_is_absent() {
        let open = json!({"cwd": "/", "mcpServers": null, "additionalDirectories": null});
        let open = params::<Open>(open).unwrap();
        assert!(open.mcp_servers.is_empty() && open.additional_directories.is_empty());
        let server =
            json!({"name": "x", "command": "y", "args": null, "env": null, "headers": null});
        assert!(params::<McpServer>(server).is_ok());
        let hello = json!({"protocolVersion": 1, "clientCapabilities": null});
        assert!(params::<Initialize>(hello).is_ok());
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        let error = params::<Open>(json!({"cwd": 3})).unwrap_err();
        assert!(
            error.json()["message"].as_str().unwrap().contains("cwd"),
            "{error:?}"
        );
        assert!(params::<Initialize>(json!({"protocolVersion": "1"})).is_err());
    }
}

//! What clients send, as far as it is read; unknown fields are left alone. Results and updates are made where they belong.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::rpc::RpcError;

/// Reads the parameters of a method; says which field is wrong.
pub(super) fn params<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, RpcError> {
    serde_path_to_error::deserialize(params)
        .map_err(|error| RpcError::invalid_params(format!("`{}`: {}", error.path(), error.inner())))
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

/// What the client can do, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Capabilities {
    pub session: SessionCapabilities,
    pub elicitation: Option<Elicitation>,
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SessionCapabilities {
    pub notices: Option<Value>,
    pub compaction: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Elicitation {
    pub form: Option<Value>,
    pub url: Option<Value>,
}

/// How a client shows a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terminal {
    /// As text of the call.
    None,
    /// In a terminal of its own, by this key of `_meta`.
    Output(&'static str),
}

impl Capabilities {
    pub(super) fn terminal(&self) -> Terminal {
        let has = |key: &str| {
            self.meta.as_ref().and_then(|meta| meta.get(key)) == Some(&Value::Bool(true))
        };
        let keys = ["terminal_output", "terminal_output_delta"];
        keys.into_iter()
            .find(|key| has(key))
            .map_or(Terminal::None, Terminal::Output)
    }

    pub(super) fn takes_notices(&self) -> bool {
        is_announced(self.session.notices.as_ref())
    }

    pub(super) fn takes_compaction(&self) -> bool {
        is_announced(self.session.compaction.as_ref())
    }

    /// Whether the client shows what MCP servers ask of the user. Both forms are needed: which one comes is the server's.
    pub(super) fn takes_input(&self) -> bool {
        self.elicitation
            .as_ref()
            .is_some_and(|it| is_announced(it.form.as_ref()) && is_announced(it.url.as_ref()))
    }
}

/// A capability is announced by an object, or by true.
fn is_announced(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.is_object() || *value == Value::Bool(true))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Open {
    /// Of `session/load` and `session/resume`.
    #[serde(default)]
    pub session_id: Option<String>,
    pub cwd: String,
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    #[serde(default)]
    pub additional_directories: Vec<String>,
}

/// A program where it has a `command`, else an endpoint.
#[derive(Clone, Deserialize)]
pub(super) struct McpServer {
    pub name: String,
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: Vec<Pair>,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
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
    /// In base64.
    #[serde(default)]
    pub blob: Option<String>,
    #[serde(default, rename = "mimeType")]
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
        let nothing = read(json!({"elicitation": {}, "session": {"notices": null}}));
        assert!(!nothing.takes_input() && !nothing.takes_notices());
        assert_eq!(nothing.terminal(), Terminal::None);
        let all = read(
            json!({"elicitation": {"form": {}, "url": {}}, "session": {"notices": {}, "compaction": {}},
            "_meta": {"terminal_output": true, "other": 1}, "fs": {"readTextFile": true}}),
        );
        assert!(all.takes_input() && all.takes_notices() && all.takes_compaction());
        assert_eq!(all.terminal(), Terminal::Output("terminal_output"));
        let delta = read(json!({"_meta": {"terminal_output_delta": true}}));
        assert_eq!(delta.terminal(), Terminal::Output("terminal_output_delta"));
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

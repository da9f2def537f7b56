//! The wire contract, version 1: every frame of either direction, its schema and its codes.
//!
//! [`Command`] is what a client may say, [`Event`] what it gets; [`envelope`] turns text into the
//! one and the other into text; [`schema`] and [`asyncapi`] tell other programs. Nothing here runs. The words are
//! explained in `docs/protocol.md`.

pub mod admin;
pub mod answer;
pub mod asyncapi;
pub mod budget;
pub mod client_tools;
pub mod code;
pub mod command;
pub mod content;
pub mod context;
pub mod envelope;
pub mod event;
pub mod input;
pub mod mcp;
pub mod queue;
pub mod record;
pub mod roles;
pub mod schema;
pub mod settings;
pub mod status;
pub mod trust;

pub use code::{ChatCode, SessionCode};
pub use command::Command;
pub use content::{Content, WireMessage};
pub use envelope::{Request, RequestId};
pub use event::Event;

/// The version of the contract, as in `session:ready` and in the ready line.
pub const PROTOCOL_VERSION: u32 = 1;

/// The feature of `tool:expose`; not there with `tools.bash.expose = "off"`.
pub const EXPOSED_PORTS: &str = "exposed_ports";

/// The feature of `tool:register` and `chat:tool-call`; not there with `tools.client.enabled = false`.
pub const CLIENT_TOOLS: &str = "client_tools";

/// The feature that is absent where no model may begin tasks: `taskId` of events, the layer `tasks`, `task` of a result's metadata.
pub const TASKS: &str = "tasks";

/// The feature of prompts and resources of MCP servers, and of what these say by themselves.
pub const MCP_PROMPTS: &str = "mcp_prompts";

/// What this daemon offers beyond the first release of the contract, as in `session:ready`: an older daemon lacks the
/// field, and a client asks for nothing that is not in it.
pub const FEATURES: [&str; 26] = [
    // `onViolation` of `session:ready`, workflows and `session:configure-result`.
    "on_violation",
    // `inputRequests` of `session:configure`, `chat:tool-input` and its events.
    "input_requests",
    // `chat:tool-extend` and `chat:tool-extended`.
    "tool_extend",
    // `limit` and `before` of `chat:history`, `nextBefore` of its result.
    "history_pages",
    // `project` of `session:configure`, `?project=` of `/ws`, and `projectError` in the place of `project`.
    "projects",
    // `background` of `bash`, `tool:background`, `background` of `session:state-result` and of execution records.
    "background_commands",
    EXPOSED_PORTS,
    // `persistent` and `epoch` of `session:ready`, the code `interrupted`, requests about kept sessions and changes of files.
    "persistent_sessions",
    // `scope` of `tool:history` and `tool:metrics`, `tool:export`.
    "what_ran",
    // `approval:list`, `approval:revoke`, `folder` of `chat:tool-approve`, `remember` of `chat:tool-confirm`.
    "remembered_answers",
    "session_open",
    // `chat:compact`, `chat:compaction`, `view` of `chat:history`, `limits.compactAt`.
    "compaction",
    // `chat:budget-confirm` and its answer, `usage:report`, `budget` of `session:configure` and of `chat:usage`.
    "budgets",
    CLIENT_TOOLS,
    TASKS,
    // `tool:execute`.
    "tool_execute",
    // `chat:queue`.
    "queue",
    // `session:status`, `session:status-changed` and the layer `status`.
    "status",
    // `?role=` of `/ws`, `session:take-over`, `session:roles`.
    "roles",
    // `output` of `chat:send`, `chat:output`.
    "structured_output",
    // `search:configure`, `approvalPolicy`, `workflow:list`, `workflow:put`, `config:get`, `config:reload`.
    "live_settings",
    // Parts `document` of `chat:send`, `content` of `chat:tool-result`.
    "documents",
    // `chat:trust-confirm` and its answer, `trustQuestions` of `session:configure`, `instructions` of `session:ready`.
    "instructions",
    // `chat:context`.
    "context",
    // `skill:list`, the tool `skill`, files of the kind `skill` in `chat:trust-confirm`.
    "skills",
    // `mcp:list-resources`, `mcp:list-prompts`, `mcp:use-prompt`, `mcp:subscribe`, `mcp:unsubscribe`, the layer `servers`.
    MCP_PROMPTS,
];

/// The WebSocket subprotocol offered back to a client that asks for it.
pub const SUBPROTOCOL: &str = "outrigger.v1";

/// Returns the bytes of a value as JSON.
pub fn json_bytes(value: &impl serde::Serialize) -> usize {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_or(usize::MAX, |()| counted.0)
}

/// Counts bytes, and keeps none.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The word that a value without payload has on the wire, for logs and figures.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}

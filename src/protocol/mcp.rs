//! What MCP servers have besides tools: resources, prompts, their log. Requests, answers and events.
//!
//! All texts in here are the servers', on one line, without controls and secrets, and bounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Part;

/// Payload of `mcp:list-resources`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpListResources {
    /// Which server.
    pub server: String,
    /// The most entries, 1 to 200; 100 where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where to go on: `nextCursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Payload of `mcp:list-resources-result`: a page of both lists, resources first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResources {
    /// Which server.
    pub server: String,
    /// What can be read.
    pub resources: Vec<McpResource>,
    /// What addresses can be made of.
    pub templates: Vec<McpResourceTemplate>,
    /// Whether the server tells when a resource changes (`mcp:subscribe`).
    pub can_subscribe: bool,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A resource of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResource {
    /// Its address, for `mcp:read-resource`.
    pub uri: String,
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A template of addresses of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceTemplate {
    /// The template, as RFC 6570 has it.
    pub uri_template: String,
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of what it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Payload of `mcp:list-prompts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpListPrompts {
    /// Which server; all of them where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The most entries, 1 to 200; 100 where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where to go on: `nextCursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Payload of `mcp:list-prompts-result`: a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPrompts {
    /// The prompts.
    pub prompts: Vec<McpPrompt>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A prompt of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPrompt {
    /// Which server.
    pub server: String,
    /// Its name for programs.
    pub name: String,
    /// What a user types for it, behind a slash: `SERVER:PROMPT`, without spaces.
    pub command: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes, in the order of a command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<McpPromptArgument>,
}

/// What a prompt takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it has to be given.
    pub required: bool,
}

/// Payload of `mcp:use-prompt`: a prompt as what a user says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpUsePrompt {
    /// `command` of the prompt, with or without its slash.
    pub command: String,
    /// What the user typed behind it: its arguments in their order, or `NAME=VALUE`. Quotes hold words together; the last
    /// argument takes all that is left.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
    /// Arguments by name, in the place of a line or besides it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
}

/// Payload of `mcp:use-prompt-result`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpPromptContent {
    /// Which server.
    pub server: String,
    /// Which prompt.
    pub name: String,
    /// What it says, to be sent as `content` of `chat:send`.
    pub content: Vec<Part>,
}

/// Payload of `mcp:subscribe` and `mcp:unsubscribe`, and of what answers them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct McpResourceName {
    /// Which server.
    pub server: String,
    /// Which resource.
    pub uri: String,
}

/// Payload of `mcp:changed`: lists of a server are others than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpChanged {
    /// Which server.
    pub server: String,
    /// Which lists.
    pub lists: Vec<McpListName>,
}

/// A list of an MCP server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum McpListName {
    /// Its tools.
    Tools,
    /// Its resources and their templates.
    Resources,
    /// Its prompts.
    Prompts,
}

/// Payload of `mcp:log`: a line of a server's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpLog {
    /// Which server said it.
    pub server: String,
    /// How bad the server calls it.
    pub level: McpLogLevel,
    /// Which part of the server said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What it said: text, or JSON of what is no text; cut at 4 KiB.
    pub text: String,
    /// How many lines before this one came too fast and were left out; absent where none were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How bad a server calls something, as RFC 5424 has it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum McpLogLevel {
    /// For whoever works on the server.
    Debug,
    /// What it does.
    Info,
    /// Something worth a look.
    Notice,
    /// It goes on, but not as it should.
    #[default]
    Warning,
    /// Something failed.
    Error,
    /// A part of it failed.
    Critical,
    /// Somebody has to act.
    Alert,
    /// It is of no use any more.
    Emergency,
}

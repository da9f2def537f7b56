//! Messages and contents as they look on the wire, and their way to and from what is remembered.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::message::{
    CompactionId, Message, NativeReply, Part, Reply, ToolCall, ToolId, ToolResult,
};

/// Text, or an array of parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A plain string.
    Text(String),
    /// Text, pictures and documents in order.
    Parts(Vec<Part>),
}

impl Content {
    /// Returns the parts, a string as one part.
    pub fn into_parts(self) -> Vec<Part> {
        match self {
            Self::Text(text) => vec![Part::Text { text }],
            Self::Parts(parts) => parts,
        }
    }

    /// Whether there is nothing in it to send to a model.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Parts(parts) => parts.iter().all(|part| match part {
                Part::Text { text } => text.trim().is_empty(),
                Part::Image { data, .. } => data.is_empty(),
                Part::Document(document) => document.is_empty(),
            }),
        }
    }
}

impl From<&[Part]> for Content {
    fn from(parts: &[Part]) -> Self {
        match parts {
            [Part::Text { text }] => Self::Text(text.clone()),
            parts => Self::Parts(parts.to_vec()),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Contents;

        impl<'de> Visitor<'de> for Contents {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Content::Parts)
            }
        }

        deserializer.deserialize_any(Contents)
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let parts = generator.subschema_for::<Vec<Part>>();
        json_schema!({
            "description": "Text, or an array of parts.",
            "anyOf": [{ "type": "string" }, parts],
        })
    }
}

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A message of a history as clients send and get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WireMessage {
    /// Who it is from.
    pub role: Role,
    /// What it says.
    pub content: Content,
    /// Thinking of the model, for show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Calls that the model made.
    #[serde(default, alias = "tool_calls", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Role `tool`: the call that this answers.
    #[serde(alias = "tool_call_id", skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolId>,
    /// Role `tool`: the tool's name.
    #[serde(default, alias = "tool_name", skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Role `tool`: whether the call failed.
    #[serde(
        default,
        alias = "is_error",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_error: bool,
    /// Opaque: what the provider demands back unchanged.
    #[serde(alias = "provider_state", skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<NativeReply>,
    /// In the model's view of a history: that this stands in the place of other messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compacted>,
}

/// Which messages a summary stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The compaction that made it.
    pub id: CompactionId,
    /// The first and the last message that it stands for, counted from 0.
    pub replaces: (usize, usize),
}

impl From<&Message> for WireMessage {
    fn from(message: &Message) -> Self {
        let bare = |role, content| Self {
            role,
            content,
            thinking: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            is_error: false,
            provider_state: None,
            compaction: None,
        };
        match message {
            Message::User(parts) => bare(Role::User, Content::from(parts.as_slice())),
            Message::Reply(reply) => Self {
                thinking: (!reply.thinking.is_empty()).then(|| reply.thinking.clone()),
                tool_calls: reply.calls.clone(),
                provider_state: reply.native.clone(),
                ..bare(Role::Assistant, Content::Text(reply.text.clone()))
            },
            Message::ToolResult(result) => Self {
                tool_call_id: Some(result.id.clone()),
                tool_name: Some(result.name.clone()),
                is_error: result.is_error,
                ..bare(Role::Tool, Content::from(result.content.as_slice()))
            },
        }
    }
}

impl From<WireMessage> for Message {
    fn from(message: WireMessage) -> Self {
        match message.role {
            Role::User => Self::User(message.content.into_parts()),
            Role::Assistant => Self::Reply(Reply {
                text: joined(message.content),
                thinking: message.thinking.unwrap_or_default(),
                calls: message.tool_calls,
                native: message.provider_state,
            }),
            Role::Tool => Self::ToolResult(ToolResult {
                id: message.tool_call_id.unwrap_or_else(|| ToolId::new("")),
                name: message.tool_name.unwrap_or_default(),
                content: message.content.into_parts(),
                is_error: message.is_error,
            }),
        }
    }
}

fn joined(content: Content) -> String {
    content
        .into_parts()
        .into_iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text),
            Part::Image { .. } | Part::Document(_) => None,
        })
        .collect()
}

//! Conversations and settings that the tests of several wires send.

pub(crate) mod wires;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Request, ToolChoice};
use crate::config::{ProviderConfig, ProviderKind};
use crate::message::{
    DangerLevel, Document, Message, NativeReply, PDF, Part, Reply, ToolCall, ToolCategory, ToolId,
    ToolResult, ToolSpec,
};

/// Settings of an instance named `p`.
pub(super) fn config(kind: ProviderKind, preset: &str, base_url: &str) -> ProviderConfig {
    ProviderConfig {
        id: "p".to_owned(),
        kind,
        preset: preset.to_owned(),
        base_url: base_url.to_owned(),
        api_key: None,
        key_optional: true,
        model: String::new(),
        headers: BTreeMap::new(),
        timeout_first_byte: Duration::from_secs(60),
        timeout_idle: Duration::from_secs(60),
        max_retries: 0,
        restart_after_partial: 0,
        num_ctx: None,
        script: None,
        ca_file: None,
        pricing: None,
        rates: crate::config::RateLimits::default(),
        record: None,
    }
}

pub(super) fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "file_read".to_owned(),
        description: "Reads a file.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}).into(),
        category: ToolCategory::File,
        danger_level: DangerLevel::Safe,
        origin: "core".to_owned(),
    }]
}

pub(super) fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

pub(super) fn image() -> Part {
    Part::Image {
        media_type: "image/png".to_owned(),
        data: "iVBORw0KGgo=".to_owned(),
    }
}

/// What the user says of a PDF, of a scan, and of a text file.
pub(super) fn documents() -> Message {
    let document = |name: &str, media_type: &str, data: Option<&str>, text: &str| {
        Part::Document(Document {
            media_type: media_type.to_owned(),
            data: data.map(str::to_owned),
            text: Some(text.to_owned()),
            name: Some(name.to_owned()),
            pages: None,
        })
    };
    Message::User(vec![
        document("a.pdf", PDF, Some("JVBERi0x"), "the text of a"),
        document("scan.pdf", PDF, Some("JVBERi0y"), ""),
        document("b.csv", "text/csv", None, "x,y"),
        Part::text("Compare them."),
    ])
}

/// The same as texts.
pub(super) fn documents_as_text() -> [&'static str; 4] {
    [
        "[document \"a.pdf\", application/pdf]\nthe text of a\n[end of \"a.pdf\"]",
        "[document \"scan.pdf\", application/pdf omitted: no text could be read of it, and the model takes no PDF files]",
        "[document \"b.csv\", text/csv]\nx,y\n[end of \"b.csv\"]",
        "Compare them.",
    ]
}

pub(super) fn call(id: &str, provider_id: Option<&str>, path: &str) -> ToolCall {
    ToolCall {
        id: ToolId::new(id),
        provider_call_id: provider_id.map(str::to_owned),
        name: "file_read".to_owned(),
        input: serde_json::Map::from_iter([("path".to_owned(), json!(path))]),
    }
}

pub(super) fn reply(
    text: &str,
    thinking: &str,
    calls: Vec<ToolCall>,
    native: Option<(&str, Value)>,
) -> Message {
    Message::Reply(Reply {
        text: text.to_owned(),
        thinking: thinking.to_owned(),
        calls,
        native: native.map(|(wire, items)| NativeReply {
            wire: wire.to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            items,
        }),
    })
}

pub(super) fn result(id: &str, content: Vec<Part>, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        id: ToolId::new(id),
        name: "file_read".to_owned(),
        content,
        is_error,
    })
}

/// A request to the model `m` with nothing asked for.
pub(super) fn request<'a>(messages: &'a [Message], tools: &'a [ToolSpec]) -> Request<'a> {
    Request {
        front: &[],
        model: "m",
        system: "Be brief.",
        messages,
        tools,
        tool_choice: ToolChoice::Auto,
        max_tokens: None,
        temperature: None,
        thinking: None,
        cache_key: "c1",
        output: None,
        compact: None,
    }
}

/// A question, thinking and two parallel calls, one of which failed.
pub(super) fn two_calls(native: Option<(&str, Value)>) -> Vec<Message> {
    vec![
        user("Compare a and b."),
        reply(
            "Let me look.",
            "They want both.",
            vec![
                call("t1", Some("call_A"), "a"),
                call("t2", Some("call_B"), "b"),
            ],
            native,
        ),
        result("t1", vec![Part::text("alpha")], false),
        result("t2", vec![Part::text("no such file: b")], true),
    ]
}

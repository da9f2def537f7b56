//! An answer of the session's model that a server asks for: what of such a request is passed on, and what it is given. Pure.
//!
//! Whether there is an answer is the user's word, each time (`crate::tool::user`). A request has words alone: tools of the
//! server's would let it run a conversation of its own, and pictures cannot be shown in the question.

#![expect(
    deprecated,
    reason = "sampling is on its way out of the protocol; servers of today still ask for it"
)]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage,
    SamplingMessageContentBlock,
};

use crate::telemetry::Redactor;
use crate::terminal_text;
use crate::tool::user::{Line, Sample, Sampled};

/// The most bytes of all texts together: a person reads them before they answer.
const MAX_TEXT: usize = 32 * 1024;

/// The most messages.
const MAX_MESSAGES: usize = 20;

/// Reads a request, without secrets of the daemon. An error says why nobody is asked, as a part of a sentence.
pub(super) fn wanted(
    params: CreateMessageRequestParams,
    server: &str,
    redactor: &Redactor,
) -> Result<Sample, String> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("it wants the model to have tools, which it does not get".to_owned());
    }
    if params.messages.is_empty() || params.messages.len() > MAX_MESSAGES {
        return Err(format!("it has to have 1 to {MAX_MESSAGES} messages"));
    }
    // What the user is shown is what the model gets.
    let clean = |text: &str| {
        let shown = terminal_text::visible(&terminal_text::shown(text));
        redactor.redact(&shown).into_owned()
    };
    let mut messages = Vec::new();
    for message in params.messages {
        let is_assistant = message.role == Role::Assistant;
        let mut text = String::new();
        for block in message.content.into_vec() {
            let SamplingMessageContentBlock::Text(block) = block else {
                return Err(
                    "it has other things than text in it, which are not passed on".to_owned(),
                );
            };
            text.push_str(&clean(&block.text));
        }
        messages.push(Line { is_assistant, text });
    }
    let system = params.system_prompt.as_deref().map(clean);
    let texts = messages.iter().map(|line| line.text.len());
    let bytes: usize = texts.sum::<usize>() + system.as_ref().map_or(0, String::len);
    if bytes > MAX_TEXT {
        return Err(format!("its texts have more than {MAX_TEXT} bytes"));
    }
    Ok(Sample {
        server: server.to_owned(),
        system,
        messages,
        max_tokens: params.max_tokens.max(1),
        temperature: params
            .temperature
            .map(f64::from)
            .filter(|it| (0.0..=2.0).contains(it)),
    })
}

/// Returns what the server is given.
pub(super) fn given(sampled: Sampled) -> CreateMessageResult {
    let reason = match sampled.is_cut {
        true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        false => CreateMessageResult::STOP_REASON_END_TURN,
    };
    CreateMessageResult::new(SamplingMessage::assistant_text(sampled.text), sampled.model)
        .with_stop_reason(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(params: Value) -> Result<Sample, String> {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        wanted(serde_json::from_value(params).unwrap(), "s", &redactor)
    }

    #[test]
    fn words_are_passed_on_clean_and_nothing_else_is() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let user = |content: Value| json!({"role": "user", "content": content});
        let sample = read(json!({
            "systemPrompt": "be \u{1b}[31mterse",
            "messages": [user(text("my hunter2-hunter2\u{e0041}")), {"role": "assistant", "content": text("yes")}],
            "maxTokens": 100, "temperature": 0.5,
        }))
        .unwrap();
        assert_eq!(sample.system.as_deref(), Some("be terse"));
        // What nobody would see is seen.
        assert_eq!(sample.messages[0].text, "my [redacted]\\u{e0041}");
        assert!(sample.messages[1].is_assistant);
        assert_eq!((sample.max_tokens, sample.temperature), (100, Some(0.5)));
        let picture =
            json!({"type": "image", "data": "R0lGODlhAQABAAAAACw=", "mimeType": "image/gif"});
        for (params, why) in [
            (json!({"messages": [], "maxTokens": 1}), "messages"),
            (
                json!({"messages": vec![user(text("x")); MAX_MESSAGES + 1], "maxTokens": 1}),
                "messages",
            ),
            (
                json!({"messages": [user(picture)], "maxTokens": 1}),
                "other things than text",
            ),
            (
                json!({"messages": [user(text(&"x".repeat(MAX_TEXT + 1)))], "maxTokens": 1}),
                "bytes",
            ),
            (
                json!({"messages": [user(text("x"))], "maxTokens": 1,
                    "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
                "tools",
            ),
        ] {
            let refused = read(params).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}

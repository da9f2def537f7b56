//! Servers that speak the same wire format differently.

use serde_json::{Value, json};

use crate::support::wire::{Block, Wire, data};

/// A sort of server.
#[derive(Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) wire: Wire,
    pub(crate) model: &'static str,
}

impl Dialect {
    pub(crate) fn all() -> [Self; 11] {
        use Wire::{Anthropic, Chat, Ollama, Responses};
        [
            ("anthropic", Anthropic, "claude-sonnet-5-5"),
            ("anthropic-budget", Anthropic, "claude-sonnet-4-5"),
            ("chat", Chat, "test-model"),
            ("deepseek", Chat, "deepseek-v4-pro"),
            ("openrouter", Chat, "some/model"),
            ("mistral", Chat, "mistral-medium-latest"),
            ("gemini", Chat, "gemini-3.8-flash"),
            ("groq", Chat, "openai/gpt-oss-120b"),
            ("vllm", Chat, "qwen"),
            ("responses", Responses, "test-model"),
            ("ollama", Ollama, "qwen3"),
        ]
        .map(|(name, wire, model)| Self { name, wire, model })
    }

    pub(crate) fn settings(&self, base_url: &str) -> Value {
        let mut settings = self.wire.settings(base_url);
        settings["api_key"] = json!("key-of-nobody");
        if self.wire == Wire::Chat && self.name != "chat" {
            settings = json!({"kind": self.name, "base_url": base_url, "api_key": "key-of-nobody"});
        }
        settings
    }

    /// The frames of an answer as this sort of server sends them.
    pub(crate) fn frames(&self, blocks: &[Block]) -> Vec<String> {
        let frames = self.wire.frames(blocks);
        match self.name {
            "openrouter" => frames
                .iter()
                .map(|frame| changed(frame, openrouter))
                .collect(),
            "mistral" => frames.iter().map(|frame| changed(frame, mistral)).collect(),
            "gemini" => frames.iter().map(|frame| changed(frame, gemini)).collect(),
            "groq" | "vllm" => frames.iter().map(|frame| changed(frame, renamed)).collect(),
            _ => frames,
        }
    }
}

/// A frame with its delta changed.
fn changed(frame: &str, change: fn(&mut Value)) -> String {
    let text = frame.trim().trim_start_matches("data: ");
    let Ok(mut chunk) = serde_json::from_str::<Value>(text) else {
        return frame.to_owned();
    };
    if let Some(delta) = chunk.pointer_mut("/choices/0/delta") {
        change(delta);
    }
    data(&chunk)
}

fn take_reasoning(delta: &mut Value) -> Option<Value> {
    delta.as_object_mut().unwrap().remove("reasoning_content")
}

/// `reasoning`, and the same in `reasoning_details`, signed at the end.
fn openrouter(delta: &mut Value) {
    if let Some(text) = take_reasoning(delta) {
        let mut detail = json!({"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0});
        if text.as_str().unwrap().ends_with('.') {
            detail["signature"] = json!("c2lnbmVk");
        }
        delta["reasoning"] = text;
        delta["reasoning_details"] = json!([detail]);
    }
}

/// Thinking as typed parts of the content; text as parts too once there was thinking.
fn mistral(delta: &mut Value) {
    if let Some(text) = take_reasoning(delta) {
        delta["content"] =
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]);
    }
    if let Some(id) = delta.pointer_mut("/tool_calls/0/id") {
        *id = json!(id.as_str().unwrap().replace("call_", "Xy12345z"));
    }
}

/// A signature with the first of several calls.
fn gemini(delta: &mut Value) {
    take_reasoning(delta);
    if let Some(call) = delta.pointer_mut("/tool_calls/0")
        && call.get("id").is_some_and(|id| id != "call_a")
    {
        call["extra_content"] = json!({"google": {"thought_signature": "dGhvdWdodA=="}});
    }
}

fn renamed(delta: &mut Value) {
    if let Some(text) = take_reasoning(delta) {
        delta["reasoning"] = text;
    }
}

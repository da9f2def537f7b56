//! What a provider module made of an answer, put together from its chunks.

use futures::StreamExt;
use outrigger::message::{DangerLevel, Message, Part, ToolCategory, ToolSpec};
use outrigger::provider::{
    CallInput, Chunk, ChunkStream, End, Provider, ProviderError, Request, ToolChoice,
};
use serde_json::json;

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) end: Option<End>,
    pub(crate) error: Option<ProviderError>,
    /// Breaches of the order that chunks have to keep.
    pub(crate) disorder: Vec<String>,
}

pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) fragments: String,
    pub(crate) input: Option<CallInput>,
}

impl Outcome {
    /// Asks for one turn and puts the answer together.
    pub(crate) async fn of(provider: &dyn Provider, model: &str) -> Self {
        let messages = [Message::User(vec![Part::text("What is it?")])];
        let tools = [ToolSpec {
            name: "weather".into(),
            description: "Tells the weather".into(),
            input_schema: json!({"type": "object", "properties": {"place": {"type": "string"}}})
                .into(),
            category: ToolCategory::Search,
            danger_level: DangerLevel::Safe,
            origin: "core".into(),
        }];
        let request = Request {
            model,
            system: "Answer.",
            messages: &messages,
            tools: &tools,
            tool_choice: ToolChoice::Auto,
            max_tokens: None,
            temperature: None,
            thinking: None,
            front: &[],
            cache_key: "conformance",
            output: None,
            compact: None,
        };
        match provider.stream(request).await {
            Ok(chunks) => Self::read(chunks).await,
            Err(error) => Self {
                error: Some(error),
                ..Self::default()
            },
        }
    }

    /// Puts an answer together.
    pub(crate) async fn read(mut chunks: ChunkStream) -> Self {
        let mut outcome = Self::default();
        let mut first = true;
        while let Some(chunk) = chunks.next().await {
            if outcome.end.is_some() || outcome.error.is_some() {
                outcome.disorder.push(format!("{chunk:?} after the end"));
            }
            match chunk {
                Ok(chunk) => {
                    let is_start = matches!(chunk, Chunk::Start { .. });
                    if first != is_start && !matches!(chunk, Chunk::Notice(_)) {
                        outcome
                            .disorder
                            .push(format!("not one start, in front: {chunk:?}"));
                    }
                    first &= matches!(chunk, Chunk::Notice(_));
                    outcome.add(chunk);
                }
                Err(error) => outcome.error = Some(error),
            }
        }
        if outcome.end.is_none() && outcome.error.is_none() {
            outcome.disorder.push("neither an end nor an error".into());
        }
        let open = outcome
            .calls
            .iter()
            .filter(|call| call.input.is_none())
            .count();
        if open > 0 {
            outcome
                .disorder
                .push(format!("{open} calls were never closed"));
        }
        outcome
    }

    fn add(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Start { .. } | Chunk::Notice(_) => {}
            Chunk::Text(text) => self.add_text(&text, false),
            Chunk::Thinking(text) => self.add_text(&text, true),
            Chunk::ToolCallStart {
                index,
                provider_call_id,
                name,
            } => {
                if index != self.calls.len() {
                    self.disorder
                        .push(format!("call {index} began out of turn"));
                }
                self.calls.push(Call {
                    id: provider_call_id,
                    name,
                    fragments: String::new(),
                    input: None,
                });
            }
            Chunk::ToolCallDelta { index, fragment } => match self.calls.get_mut(index) {
                Some(call) if call.input.is_none() && !fragment.is_empty() => {
                    call.fragments.push_str(&fragment);
                }
                _ => self.disorder.push(format!("a fragment for call {index}")),
            },
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => match self.calls.get_mut(index) {
                Some(call) if call.input.is_none() => {
                    call.id = provider_call_id.or(call.id.take());
                    call.input = Some(input);
                }
                _ => self.disorder.push(format!("an end for call {index}")),
            },
            Chunk::End(end) => self.end = Some(end),
        }
    }

    fn add_text(&mut self, text: &str, thinking: bool) {
        if text.is_empty() {
            self.disorder.push("empty text".into());
        }
        let all = if thinking {
            &mut self.thinking
        } else {
            &mut self.text
        };
        all.push_str(text);
    }
}

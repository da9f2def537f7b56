//! How full the model's context is, and when it must answer. Pure.

use crate::message::{Message, Part, Usage};
use crate::protocol::event::Context;

/// Bytes that make a token, roughly, where the provider has not counted yet.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens that a picture costs, roughly.
const IMAGE_TOKENS: u64 = 1_600;

/// The context gauge of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    window: Option<u64>,
    reserve: u64,
    used: u64,
}

impl Budget {
    /// A gauge for a model's window, with tokens kept free for the last answer.
    pub fn new(window: Option<u64>, reserve: u64) -> Self {
        Self {
            window,
            reserve,
            used: 0,
        }
    }

    /// Takes the provider's own figures for a turn, or an estimate of what was sent and said.
    pub fn counted(&mut self, usage: &Usage, estimate: u64) {
        self.used = match usage.input {
            Some(input) => input + usage.output.unwrap_or(0),
            None => estimate,
        };
    }

    /// Adds an estimate of what was injected since the provider counted.
    pub fn injected(&mut self, messages: &[Message]) {
        self.used += estimate(messages);
    }

    /// Whether the model must answer now.
    pub fn is_spent(&self) -> bool {
        self.window
            .is_some_and(|window| self.used + self.reserve >= window)
    }

    /// The gauge for a client.
    pub fn context(&self) -> Context {
        Context {
            used: self.used,
            window: self.window,
            remaining: self.window.map(|window| window.saturating_sub(self.used)),
        }
    }
}

/// Estimates the tokens of messages.
pub fn estimate(messages: &[Message]) -> u64 {
    messages.iter().map(message_tokens).sum()
}

fn message_tokens(message: &Message) -> u64 {
    match message {
        Message::User(parts) => parts_tokens(parts),
        Message::ToolResult(result) => parts_tokens(&result.content),
        Message::Reply(reply) => {
            let inputs: usize = reply
                .calls
                .iter()
                .flat_map(|call| &call.input)
                .map(|(key, value)| key.len() + value.as_str().map_or(16, str::len))
                .sum();
            text_tokens(reply.text.len() + inputs)
        }
    }
}

fn parts_tokens(parts: &[Part]) -> u64 {
    parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text_tokens(text.len()),
            Part::Image { .. } => IMAGE_TOKENS,
        })
        .sum()
}

fn text_tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64 + 1
}

//! How full the model's context is, and when it must answer. Pure.

use crate::message::{Message, Part, Reply, ToolSpec, Usage};
use crate::protocol::event::Context;
use crate::protocol::json_bytes;

/// Bytes that make a token, roughly, where the provider has not counted yet.
const BYTES_PER_TOKEN: usize = 3;

/// Tokens that a picture costs, roughly.
const IMAGE_TOKENS: u64 = 1_600;

/// The part of a window that the reserve takes at most before the first turn.
const FIRST_RESERVE: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    window: Option<u64>,
    reserve: u64,
    /// Tokens that are taken.
    pub used: u64,
}

impl Budget {
    /// Returns a gauge for a model's window, of which `reserve` tokens are kept free for the last answer and `used` are
    /// taken.
    pub(crate) fn new(window: Option<u64>, reserve: u64, used: u64) -> Self {
        Self {
            window,
            reserve,
            used,
        }
    }

    /// Takes the model's window as it is known by now: some servers tell it only when they are asked.
    pub(crate) fn learn_window(&mut self, window: Option<u64>) {
        self.window = window.or(self.window);
    }

    /// Takes the provider's own figures for a turn, or an estimate of what was sent and said.
    pub(crate) fn counted(&mut self, usage: &Usage, estimate: impl FnOnce() -> u64) {
        self.used = match usage.input {
            Some(input) => input.saturating_add(usage.output.unwrap_or(0)),
            None => estimate(),
        };
    }

    pub(crate) fn injected(&mut self, messages: &[Message]) {
        self.used = self.used.saturating_add(estimate(messages));
    }

    pub(crate) fn said(&mut self, content: &[Part]) {
        self.used = self.used.saturating_add(parts_tokens(content));
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.window
            .is_some_and(|window| self.used.saturating_add(self.reserve) >= window)
    }

    /// Returns whether the model must answer already in the first turn. The reserve is a quarter of the window at most:
    /// where it is as large as a small window, no tool would ever run.
    pub(crate) fn is_spent_at_once(&self) -> bool {
        self.window.is_some_and(|window| {
            let reserve = self.reserve.min(window / FIRST_RESERVE);
            self.used.saturating_add(reserve) >= window
        })
    }

    pub(crate) fn context(&self) -> Context {
        Context {
            used: self.used,
            window: self.window,
            remaining: self.window.map(|window| window.saturating_sub(self.used)),
        }
    }
}

pub(crate) fn estimate_head(system: &str, tools: &[ToolSpec]) -> u64 {
    let tools: usize = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len())
        .sum();
    text_tokens(system.len() + tools)
}

pub(crate) fn estimate(messages: &[Message]) -> u64 {
    messages.iter().map(message_tokens).sum()
}

fn message_tokens(message: &Message) -> u64 {
    match message {
        Message::User(parts) => parts_tokens(parts),
        Message::ToolResult(result) => parts_tokens(&result.content),
        Message::Reply(reply) => estimate_reply(reply),
    }
}

pub(crate) fn estimate_reply(reply: &Reply) -> u64 {
    let inputs: usize = reply.calls.iter().map(|call| json_bytes(&call.input)).sum();
    text_tokens(reply.text.len() + reply.thinking.len() + inputs)
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

/// Returns about how many tokens a text of so many bytes has.
pub(crate) fn text_tokens(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64 + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{DangerLevel, ToolCall, ToolCategory, ToolId};

    #[test]
    fn everything_that_is_sent_is_counted() {
        let tool = ToolSpec {
            name: "name".to_owned(),
            description: "d".repeat(300),
            input_schema: json!({"properties": {"x".repeat(300): {}}}).into(),
            category: ToolCategory::Mcp,
            danger_level: DangerLevel::Safe,
            origin: "core".to_owned(),
        };
        assert_eq!(estimate_head("", &[]), 1);
        assert!(estimate_head(&"s".repeat(300), &[]) > 100);
        assert!(estimate_head("", &[tool]) > 200);

        let list: Vec<&str> = vec!["item"; 100];
        let call = ToolCall {
            id: ToolId::new("t1"),
            provider_call_id: None,
            name: "f".to_owned(),
            input: json!({ "list": list }).as_object().cloned().unwrap(),
        };
        for reply in [
            Reply {
                thinking: "t".repeat(600),
                ..Reply::default()
            },
            Reply {
                calls: vec![call],
                ..Reply::default()
            },
        ] {
            assert!(estimate(&[Message::Reply(reply)]) > 200);
        }
    }

    #[test]
    fn no_figure_of_a_client_or_a_provider_is_too_large() {
        let mut budget = Budget::new(Some(1000), u64::MAX, 0);
        budget.counted(&Usage::default(), || 1);
        assert!(budget.is_spent());
        let usage = Usage {
            input: Some(u64::MAX),
            output: Some(1),
            ..Usage::default()
        };
        budget.counted(&usage, || 0);
        budget.injected(&[Message::User(vec![Part::text("hi")])]);
        assert_eq!(budget.context().used, u64::MAX);
        assert!(budget.is_spent());
    }

    #[test]
    fn before_the_first_turn_a_large_reserve_leaves_room_for_tools() {
        for (window, reserve, used, is_spent) in [
            (Some(8192), 8192, 0, false),
            (Some(8192), 8192, 6000, false),
            (Some(8192), 8192, 6200, true),
            (Some(1_000_000), 8192, 900_000, false),
            (Some(1_000_000), 8192, 992_000, true),
            (Some(0), 0, 0, true),
            (None, 8192, u64::MAX, false),
        ] {
            let budget = Budget::new(window, reserve, used);
            assert_eq!(budget.is_spent_at_once(), is_spent, "{budget:?}");
        }
    }

    #[test]
    fn a_window_that_is_learnt_late_counts_and_is_not_forgotten() {
        let mut budget = Budget::new(None, 100, 0);
        budget.counted(&Usage::default(), || 950);
        assert!(!budget.is_spent());
        budget.learn_window(Some(1000));
        budget.learn_window(None);
        assert!(budget.is_spent());
        assert_eq!(budget.context().remaining, Some(50));
    }
}

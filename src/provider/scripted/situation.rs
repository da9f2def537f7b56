//! What a script's conditions look at: the last message, the last result, the tools on offer.

use super::script::When;
use crate::message::{Message, Part, ToolResult};
use crate::provider::{Request, ToolChoice};

/// Most characters of a message or a result that a text may repeat.
const MAX_REPEATED: usize = 2000;

/// Where a conversation stands.
#[derive(Debug, Default)]
pub(super) struct Situation {
    user: String,
    turn: usize,
    tool: Option<String>,
    result: String,
    failed: Option<bool>,
    offered: Vec<String>,
    /// Bytes of everything the model is told, for an estimate of tokens.
    pub(super) bytes: usize,
}

impl Situation {
    /// Reads a request.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let mut situation = Self {
            bytes: request.system.len(),
            ..Self::default()
        };
        if request.tool_choice == ToolChoice::Auto {
            situation.offered = request.tools.iter().map(|tool| tool.name.clone()).collect();
        }
        for message in request.messages {
            situation.take(message);
        }
        situation
    }

    fn take(&mut self, message: &Message) {
        match message {
            Message::User(parts) => {
                let text = text_of(parts);
                self.bytes += text.len();
                *self = Self {
                    user: text,
                    bytes: self.bytes,
                    offered: std::mem::take(&mut self.offered),
                    ..Self::default()
                };
            }
            Message::Reply(reply) => {
                self.turn += 1;
                self.bytes += reply.text.len() + reply.thinking.len();
            }
            Message::ToolResult(ToolResult {
                name,
                content,
                is_error,
                ..
            }) => {
                self.result = text_of(content);
                self.bytes += self.result.len();
                self.tool = Some(name.clone());
                self.failed = Some(*is_error);
            }
        }
    }

    /// Whether all conditions hold.
    pub(super) fn meets(&self, when: &When) -> bool {
        let has = |text: &str, words: &[String]| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word.as_str()))
        };
        when.user
            .as_ref()
            .is_none_or(|words| has(&self.user, &words.0))
            && when.turn.is_none_or(|turn| turn == self.turn)
            && (when.tool.is_none() || when.tool == self.tool)
            && when
                .result
                .as_ref()
                .is_none_or(|words| self.tool.is_some() && has(&self.result, &words.0))
            && (when.failed.is_none() || when.failed == self.failed)
            && when.offers.iter().all(|tool| self.offered.contains(tool))
    }

    /// Fills `{user}` and `{result}` into a text.
    pub(super) fn fill(&self, text: &str) -> String {
        // Only what the script wrote is looked at, not what was filled in.
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let known = [("user}", &self.user), ("result}", &self.result)]
                .into_iter()
                .find_map(|(name, value)| Some((after.strip_prefix(name)?, value)));
            match known {
                Some((after, value)) => {
                    filled.extend(value.chars().take(MAX_REPEATED));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

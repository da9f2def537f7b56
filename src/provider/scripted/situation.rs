//! What a script's conditions look at: the last message, the last result, the tools on offer.

use super::script::When;
use crate::message::{Message, Part};
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
    /// Bytes of everything the model gets, for an estimate of tokens.
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
            Message::ToolResult(result) => {
                self.result = text_of(&result.content);
                self.bytes += self.result.len();
                self.tool = Some(result.name.clone());
                self.failed = Some(result.is_error);
            }
        }
    }

    /// Whether all conditions hold.
    pub(super) fn meets(&self, when: &When) -> bool {
        let has = |text: &str, words: &[String]| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word.as_str()))
        };
        let has_result = |words: &Vec<String>| self.tool.is_some() && has(&self.result, words);
        when.user
            .as_ref()
            .is_none_or(|words| has(&self.user, words))
            && when.turn.is_none_or(|turn| turn == self.turn)
            && (when.tool.is_none() || when.tool == self.tool)
            && when.result.as_ref().is_none_or(has_result)
            && (when.failed.is_none() || when.failed == self.failed)
            && when.offers.iter().all(|tool| self.offered.contains(tool))
    }

    /// Fills `{user}` and `{result}` into a text.
    pub(super) fn fill(&self, text: &str) -> String {
        // Only what the script wrote is looked at, not what was filled in.
        let mut pieces = text.split('{');
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let known = [("user}", &self.user), ("result}", &self.result)];
            let mut known = known.into_iter();
            let found = known.find_map(|(name, value)| Some((piece.strip_prefix(name)?, value)));
            match found {
                Some((rest, value)) => {
                    filled.extend(value.chars().take(MAX_REPEATED));
                    filled.push_str(rest);
                }
                None => {
                    filled.push('{');
                    filled.push_str(piece);
                }
            }
        }
        filled
    }
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } | Part::Document(_) => None,
        })
        .collect();
    texts.join("\n")
}

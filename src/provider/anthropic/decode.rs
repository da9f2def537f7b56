//! Anthropic's answer, streamed or whole, as chunks.
//!
//! Order of a stream (Anthropic's page "Streaming Messages", 2026-11-20): `message_start`, blocks one after the other,
//! `message_delta` once or more, `message_stop`. Nothing of that is relied upon but the last: a reply
//! is over when `message_stop` came. Events, blocks and deltas nobody knows are let pass.

use serde_json::{Value, json};

use super::blocks::{Block, is_plain};
use crate::message::Usage;
use crate::provider::decode::{Answer, Wire, incomplete, protocol};
use crate::provider::json::{Json, array, field, text};
use crate::provider::{ProviderError, Stop, usage};

/// Name of this wire format in [`crate::message::NativeReply::wire`].
pub(in crate::provider) const WIRE: &str = "anthropic-messages";

/// Type of the item after a reply's blocks that remembers what stood before the reply.
pub(super) const PREFIX_ITEM: &str = "outrigger_prefix";

/// Most content blocks of one answer. More is a server that loops: empty ones cost next to none of its bytes.
const MAX_BLOCKS: usize = 4096;

#[derive(Default)]
pub(in crate::provider) struct MessageWire {
    /// Digest of everything before the reply, see `history`; empty where nothing depends on it.
    prefix: String,
    blocks: Vec<Block>,
    stop: Option<String>,
    /// What compactions took, which the sums leave out.
    compactions: Usage,
}

impl Wire for MessageWire {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn frame(&mut self, frame: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        check(frame)?;
        let index = field(frame, "index").as_u64();
        // Proxies drop or rename the event's name; the type within counts.
        match field(frame, "type").as_str().unwrap_or(&answer.event) {
            "message_start" => self.message(field(frame, "message"), answer)?,
            "content_block_start" => self.open(index, field(frame, "content_block"), answer)?,
            "content_block_delta" => self.grow(index, field(frame, "delta"), answer)?,
            "content_block_stop" => self.close(index, answer),
            "message_delta" => {
                self.stop_reason(field(frame, "delta"));
                self.usage(field(frame, "usage"), answer);
            }
            "message_stop" if self.stop.is_none() => {
                return Err(incomplete(
                    "the provider ended its answer (`message_stop`) without a reason (`stop_reason`)",
                ));
            }
            "message_stop" => self.end(answer),
            // `ping`, and whatever the vendor adds.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        check(body)?;
        if !field(body, "content").is_array() {
            return Err(protocol("the answer is JSON, but no message"));
        }
        self.message(body, answer)?;
        self.end(answer);
        Ok(())
    }

    fn finish(&mut self, _answer: &mut Answer) -> Result<(), ProviderError> {
        Err(incomplete(
            "the answer ended before its end marker `message_stop`",
        ))
    }

    fn close_calls(&mut self, answer: &mut Answer) {
        for block in &mut self.blocks {
            block.settle(!block.is_closed(), answer);
        }
    }
}

impl MessageWire {
    pub(super) fn new(prefix: String) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }

    /// Takes a message as far as it is there: its head in a stream, all of it otherwise.
    fn message(&mut self, message: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        answer.begin(text(message, "model"));
        self.stop_reason(message);
        self.usage(field(message, "usage"), answer);
        // Answers to programmatic calls come whole in `message_start`, without block events.
        let content = array(message, "content");
        let cut = is_length(self.stop.as_deref());
        for (place, block) in (1..).zip(content).filter(|(_, block)| block.is_object()) {
            self.open(None, block, answer)?;
            if cut && place == content.len() {
                // An object that the server closed itself looks whole and need not be.
                self.blocks
                    .last_mut()
                    .into_iter()
                    .for_each(|last| last.cut(answer));
            }
            self.close(None, answer);
        }
        Ok(())
    }

    fn usage(&mut self, usage: &Json<'_>, answer: &mut Answer) {
        usage::update_anthropic(&mut answer.usage, usage);
        // As the sums: all of them, each time.
        if let Some(compactions) = usage::anthropic_compactions(usage) {
            self.compactions = compactions;
        }
    }

    fn stop_reason(&mut self, holder: &Json<'_>) {
        let reason = text(holder, "stop_reason");
        if !reason.is_empty() {
            self.stop = Some(reason.to_owned());
        }
    }

    fn open(
        &mut self,
        index: Option<u64>,
        block: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<(), ProviderError> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(protocol("the answer has too many content blocks"));
        }
        answer.begin("");
        // A call that was closed and not settled is not the last block, so nothing cut it off.
        for before in self.blocks.iter_mut().filter(|block| block.is_closed()) {
            before.settle(false, answer);
        }
        self.blocks.push(Block::open(index, block, answer)?);
        Ok(())
    }

    fn grow(
        &mut self,
        index: Option<u64>,
        delta: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<(), ProviderError> {
        if !self.blocks.iter().any(|block| block.takes(index)) {
            // Some compatible servers leave `content_block_start` out.
            let kind = match text(delta, "type") {
                "text_delta" => "text",
                "thinking_delta" => "thinking",
                _ => return Ok(()),
            };
            self.open(index, &(&json!({"type": kind, kind: ""})).into(), answer)?;
        }
        if let Some(block) = self.blocks.iter_mut().rfind(|block| block.takes(index)) {
            block.grow(delta, answer);
        }
        Ok(())
    }

    fn close(&mut self, index: Option<u64>, answer: &mut Answer) {
        if let Some(block) = self.blocks.iter_mut().rfind(|block| block.takes(index)) {
            block.close(answer);
        }
    }

    fn end(&mut self, answer: &mut Answer) {
        let cut = is_length(self.stop.as_deref());
        for block in &mut self.blocks {
            block.settle(cut, answer);
        }
        let stop = match self.stop.as_deref() {
            reason if is_length(reason) => Stop::MaxTokens,
            Some("stop_sequence") => Stop::StopSequence,
            Some("refusal") => Stop::Refusal,
            // A paused reply with calls in it cannot be continued before they are answered.
            _ if answer.has_calls() => Stop::ToolUse,
            Some("pause_turn" | "compaction") => Stop::Pause,
            _ => Stop::EndTurn,
        };
        // The input is counted without what the cache had.
        let usage = &mut answer.usage;
        *usage = usage.plus(self.compactions);
        usage.input = [usage.input, usage.cache_read, usage.cache_write]
            .into_iter()
            .flatten()
            .reduce(u64::saturating_add);
        let items = self.items();
        answer.end(stop, self.stop.as_deref(), items);
    }

    fn items(&mut self) -> Option<Value> {
        let blocks = std::mem::take(&mut self.blocks).into_iter();
        let mut items: Vec<_> = blocks
            .filter_map(Block::into_item)
            .map(Value::Object)
            .collect();
        if is_plain(&items) {
            return None;
        }
        if items.iter().any(super::history::is_thinking) && !self.prefix.is_empty() {
            items.push(json!({"type": PREFIX_ITEM, "sha256": self.prefix}));
        }
        Some(Value::Array(items))
    }
}

fn check(value: &Json<'_>) -> Result<(), ProviderError> {
    if text(value, "type") == "error" || !field(value, "error").is_null() {
        return Err(ProviderError::from_payload(&value.into(), None));
    }
    if !value.is_object() {
        return Err(protocol("the answer has a frame that is no JSON object"));
    }
    Ok(())
}

fn is_length(reason: Option<&str>) -> bool {
    matches!(reason, Some("max_tokens" | "model_context_window_exceeded"))
}

#[cfg(test)]
mod tests;

//! Anthropic's answer, streamed or whole, as chunks.
//!
//! Order of a stream (Anthropic's page "Streaming Messages", 2026-11-20): `message_start`, blocks one after the other,
//! `message_delta` once or more, `message_stop`. Nothing of that is relied upon but the last: a reply
//! is over when `message_stop` came. Events, blocks and deltas nobody knows are let pass.

use serde_json::{Map, Value};

use super::blocks::{Block, Kind, is_plain};
use super::brief::MoreText;
use super::usage::Figures;
use crate::message::{NativeReply, Notice};
use crate::provider::decode::Decoder;
use crate::provider::error::safe_message;
use crate::provider::json::read_piece;
use crate::provider::schema::ToolNames;
use crate::provider::{Chunk, End, ErrorKind, ProviderError, Stop};

/// Name of this wire format in [`NativeReply::wire`].
pub(super) const WIRE: &str = "anthropic-messages";

/// Type of the item after a reply's blocks that remembers what stood before the reply.
pub(super) const PREFIX_ITEM: &str = "outrigger_prefix";

/// Most bytes of frames that a reply is built from. The longest answers (128,000 tokens of output and
/// results of server tools besides) stay below a tenth of it.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// What a decoder has to know of the request.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// The provider instance that was asked.
    pub(super) provider: String,
    /// The model, by the name it was asked for.
    pub(super) model: String,
    /// Digest of everything before the reply; see `history`.
    pub(super) prefix: String,
    /// Names that tools bear on the wire.
    pub(super) names: ToolNames,
    /// Sent on right after the start.
    pub(super) notices: Vec<Notice>,
}

/// The parser of one answer.
#[derive(Debug)]
pub(super) struct MessageDecoder {
    context: Context,
    started: bool,
    done: bool,
    bytes: usize,
    calls: usize,
    blocks: Vec<Block>,
    figures: Figures,
    raw_stop: Option<String>,
}

impl MessageDecoder {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            started: false,
            done: false,
            bytes: 0,
            calls: 0,
            blocks: Vec::new(),
            figures: Figures::default(),
            raw_stop: None,
        }
    }

    fn event(
        &mut self,
        event: &str,
        mut data: Map<String, Value>,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let index = data.get("index").and_then(Value::as_u64);
        let mut part = |name: &str| match data.remove(name) {
            Some(Value::Object(part)) => part,
            _ => Map::new(),
        };
        match event {
            "message_start" => self.message(part("message"), chunks),
            "content_block_start" => {
                self.ensure_started(None, chunks);
                self.open(index, part("content_block"), chunks);
            }
            "content_block_delta" => self.grow(index, part("delta"), chunks),
            "content_block_stop" => self.close(index, chunks),
            "message_delta" => {
                self.stop_reason(&part("delta"));
                self.figures.update(&part("usage"));
            }
            "message_stop" if self.raw_stop.is_none() => {
                return Err(ProviderError::new(
                    ErrorKind::IncompleteStream,
                    "the provider ended its answer (`message_stop`) without a reason (`stop_reason`)",
                ));
            }
            "message_stop" => self.end(chunks),
            // `ping`, and whatever the vendor adds.
            _ => {}
        }
        Ok(())
    }

    /// Takes a message as far as it is there: its head in a stream, all of it otherwise.
    fn message(&mut self, mut message: Map<String, Value>, chunks: &mut Vec<Chunk>) {
        let model = message.get("model").and_then(Value::as_str);
        self.ensure_started(model.map(str::to_owned), chunks);
        self.stop_reason(&message);
        if let Some(Value::Object(usage)) = message.get("usage") {
            self.figures.update(usage);
        }
        // Answers to programmatic calls come whole in `message_start`, without block events.
        let Some(Value::Array(content)) = message.remove("content") else {
            return;
        };
        let cut = is_length(self.raw_stop.as_deref());
        let last = content.len().saturating_sub(1);
        for (place, block) in content.into_iter().enumerate() {
            let Value::Object(block) = block else {
                continue;
            };
            self.open(None, block, chunks);
            if cut && place == last {
                // An object that the server closed itself looks whole and need not be.
                let last = self.blocks.last_mut();
                chunks.extend(last.and_then(Block::settle_truncated));
            }
            self.close(None, chunks);
        }
    }

    fn ensure_started(&mut self, model: Option<String>, chunks: &mut Vec<Chunk>) {
        if !self.started {
            self.started = true;
            chunks.push(Chunk::Start { model });
            chunks.extend(self.context.notices.drain(..).map(Chunk::Notice));
        }
    }

    fn stop_reason(&mut self, holder: &Map<String, Value>) {
        let reason = holder.get("stop_reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.raw_stop = Some(reason.to_owned());
        }
    }

    fn open(&mut self, index: Option<u64>, raw: Map<String, Value>, chunks: &mut Vec<Chunk>) {
        // A call that was closed and not settled is not the last block, so nothing cut it off.
        self.settle(chunks, |block| {
            if block.is_closed() {
                block.settle_as(false)
            } else {
                None
            }
        });
        let mut block = Block::new(index, raw);
        if block.kind() == Kind::Call {
            let mut start = block.begin_call(self.calls);
            if let Chunk::ToolCallStart { name, .. } = &mut start {
                *name = self.context.names.internal(name).to_owned();
            }
            self.calls += 1;
            chunks.push(start);
        }
        chunks.extend(block.opening());
        self.blocks.push(block);
    }

    fn grow(&mut self, index: Option<u64>, delta: Map<String, Value>, chunks: &mut Vec<Chunk>) {
        if !self.blocks.iter().any(|block| block.takes(index)) {
            // Some compatible servers leave `content_block_start` out.
            let kind = match delta.get("type").and_then(Value::as_str) {
                Some("text_delta") => "text",
                Some("thinking_delta") => "thinking",
                _ => return,
            };
            let mut raw = Map::new();
            raw.insert("type".to_owned(), Value::from(kind));
            raw.insert(kind.to_owned(), Value::from(""));
            self.ensure_started(None, chunks);
            self.open(index, raw, chunks);
        }
        let block = self.blocks.iter_mut().rfind(|block| block.takes(index));
        chunks.extend(block.and_then(|block| block.grow(delta)));
    }

    fn close(&mut self, index: Option<u64>, chunks: &mut Vec<Chunk>) {
        if let Some(block) = self.blocks.iter_mut().rfind(|block| block.takes(index)) {
            chunks.extend(block.close());
            // Without input, or with half of it, the call may yet turn out to have been cut off by
            // the token limit, which is told only later.
            chunks.extend(block.settle_if_whole());
        }
    }

    fn settle(
        &mut self,
        chunks: &mut Vec<Chunk>,
        mut how: impl FnMut(&mut Block) -> Option<Chunk>,
    ) {
        chunks.extend(self.blocks.iter_mut().filter_map(&mut how));
    }

    /// Ends the calls still open when the reply broke off.
    fn break_off(&mut self, chunks: &mut Vec<Chunk>) {
        self.settle(chunks, |block| {
            let cut = !block.is_closed();
            block.settle_as(cut)
        });
    }

    fn end(&mut self, chunks: &mut Vec<Chunk>) {
        if self.done {
            return;
        }
        self.done = true;
        self.ensure_started(None, chunks);
        let cut = is_length(self.raw_stop.as_deref());
        self.settle(chunks, |block| block.settle_as(cut));
        chunks.push(Chunk::End(End {
            stop: self.stop(),
            raw_stop: self.raw_stop.clone(),
            usage: self.figures.usage(),
            native: self.native(),
        }));
    }

    fn stop(&self) -> Stop {
        let by_content = if self.blocks.iter().any(|block| block.call().is_some()) {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        };
        match self.raw_stop.as_deref() {
            reason if is_length(reason) => Stop::MaxTokens,
            Some("stop_sequence") => Stop::StopSequence,
            Some("refusal") => Stop::Refusal,
            // A paused reply with calls in it cannot be continued before they are answered.
            Some("pause_turn" | "compaction") if by_content == Stop::EndTurn => Stop::Pause,
            _ => by_content,
        }
    }

    fn native(&mut self) -> Option<NativeReply> {
        let mut items: Vec<_> = std::mem::take(&mut self.blocks)
            .into_iter()
            .filter_map(Block::into_item)
            .collect();
        if is_plain(&items) {
            return None;
        }
        let thinks = items.iter().any(super::history::is_thinking);
        if thinks && !self.context.prefix.is_empty() {
            let mut prefix = Map::new();
            prefix.insert("type".to_owned(), Value::from(PREFIX_ITEM));
            prefix.insert("sha256".to_owned(), Value::from(&*self.context.prefix));
            items.push(prefix);
        }
        Some(NativeReply {
            wire: WIRE.to_owned(),
            provider: self.context.provider.clone(),
            model: self.context.model.clone(),
            items: items.into_iter().map(Value::Object).collect(),
        })
    }

    fn fail(&mut self, error: ProviderError, chunks: &mut Vec<Chunk>) -> ProviderError {
        self.break_off(chunks);
        error
    }

    /// Takes a frame that is only more text of an open block; whether it was one.
    fn more_text(&mut self, data: &str, chunks: &mut Vec<Chunk>) -> bool {
        let Some(MoreText { index, text }) = MoreText::read(data) else {
            return false;
        };
        let open = |block: &&mut Block| block.takes(Some(index));
        let Some(block) = self.blocks.iter_mut().rfind(open) else {
            return false;
        };
        chunks.extend(block.grow_text(&text));
        true
    }

    fn count(&mut self, text: &str) -> Result<(), ProviderError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_REPLY_BYTES {
            return Err(ProviderError::too_large(MAX_REPLY_BYTES));
        }
        Ok(())
    }

    fn parse(&mut self, text: &str) -> Result<Map<String, Value>, ProviderError> {
        self.count(text)?;
        match read_piece(text) {
            Ok(Value::Object(data)) => Ok(data),
            Ok(_) => Err(ProviderError::new(
                ErrorKind::Protocol,
                "the answer has a frame that is no JSON object",
            )),
            Err(error) => Err(ProviderError::new(
                ErrorKind::Protocol,
                format!("the answer has a frame that is no JSON: {error}"),
            )),
        }
    }
}

impl Decoder for MessageDecoder {
    fn frame(
        &mut self,
        event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        // `[DONE]` is no event of this API; proxies that translate from others add it.
        if self.done || data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(());
        }
        if self.more_text(data, chunks) {
            return self.count(data).map_err(|error| self.fail(error, chunks));
        }
        let data = match self.parse(data) {
            Ok(data) => data,
            Err(_) if event == "error" => {
                let error = ProviderError::new(ErrorKind::Unknown, safe_message(data));
                return Err(self.fail(error, chunks));
            }
            Err(error) => return Err(self.fail(error, chunks)),
        };
        // Proxies drop or rename the event's name; the type within counts.
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(event);
        if kind == "error" || data.get("error").is_some_and(|error| !error.is_null()) {
            let error = ProviderError::from_payload(&Value::Object(data), None);
            return Err(self.fail(error, chunks));
        }
        let kind = kind.to_owned();
        self.event(&kind, data, chunks)
            .map_err(|error| self.fail(error, chunks))
    }

    fn whole(&mut self, body: &str, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let message = self.parse(body)?;
        let kind = message.get("type").and_then(Value::as_str);
        if kind == Some("error") || message.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ProviderError::from_payload(&Value::Object(message), None));
        }
        if !message.get("content").is_some_and(Value::is_array) {
            let message = "the answer is JSON, but no message";
            return Err(ProviderError::new(ErrorKind::Protocol, message));
        }
        self.message(message, chunks);
        self.end(chunks);
        Ok(())
    }

    fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.done {
            return Ok(());
        }
        let error = ProviderError::new(
            ErrorKind::IncompleteStream,
            "the answer ended before its end marker `message_stop`",
        );
        Err(self.fail(error, chunks))
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn is_length(reason: Option<&str>) -> bool {
    matches!(reason, Some("max_tokens" | "model_context_window_exceeded"))
}

#[cfg(test)]
mod tests;

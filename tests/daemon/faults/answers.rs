//! Broken answers of each wire format.

use serde_json::{Value, json};

use crate::support::server::Answer;
use crate::support::wire::{Block, Wire, data, event};

/// The input of the call that is cut.
pub(crate) fn input() -> Value {
    json!({"path": "a.txt"})
}

/// The frames of an answer that is one call.
pub(crate) fn call_frames(wire: Wire) -> Vec<String> {
    wire.frames(&call())
}

fn call() -> Vec<Block> {
    vec![Block::call("call_1", "file_read", input())]
}

/// An answer as it should be.
pub(crate) fn good(wire: Wire) -> Answer {
    Answer::stream(wire).frames(&hello(wire))
}

/// The frames of an answer that says "Hello".
pub(crate) fn hello(wire: Wire) -> Vec<String> {
    wire.frames(&[Block::text("Hello")])
}

/// The frames that come before anything is said.
pub(crate) fn silent(wire: Wire) -> Vec<String> {
    let count = match wire {
        Wire::Anthropic | Wire::Responses => 2,
        Wire::Chat => 1,
        Wire::Ollama => 0,
    };
    hello(wire)[..count].to_vec()
}

/// The frames up to the first delta, which says "He".
pub(crate) fn begun(wire: Wire) -> Vec<String> {
    hello(wire)[..=silent(wire).len()].to_vec()
}

/// The beginning of an answer up to the middle of a call's input; one call is one line of Ollama's.
pub(crate) fn half_a_call(wire: Wire) -> String {
    let frames = wire.frames(&call());
    match wire {
        Wire::Anthropic | Wire::Responses => frames[..3].concat(),
        Wire::Chat => frames[..2].concat(),
        Wire::Ollama => frames[0].split_at(frames[0].len() / 2).0.to_owned(),
    }
}

/// An answer that was not streamed although it was asked for.
pub(crate) fn whole(wire: Wire) -> Answer {
    let body = match wire {
        Wire::Anthropic => {
            json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Wire::Chat => json!({"model": "m", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello"}}]}),
        Wire::Responses => {
            json!({"object": "response", "status": "completed", "model": "m", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]})
        }
        Wire::Ollama => json!({"model": "m", "message": {"role": "assistant", "content": "Hello"},
            "done": true, "done_reason": "stop"}),
    };
    Answer::json(200, &body)
}

/// The body of an error as the vendor writes it.
pub(crate) fn refusal(wire: Wire, kind: &str, message: &str) -> Value {
    match wire {
        Wire::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message},
            "request_id": "req_1"}),
        Wire::Chat | Wire::Responses => {
            json!({"error": {"type": kind, "message": message, "param": null, "code": null}})
        }
        Wire::Ollama => json!({"error": message}),
    }
}

/// An error inside of a stream.
pub(crate) fn error_frame(wire: Wire, kind: &str, message: &str) -> String {
    let body = refusal(wire, kind, message);
    match wire {
        Wire::Anthropic => event(&body),
        Wire::Chat => data(&body),
        Wire::Responses => {
            event(&json!({"type": "error", "sequence_number": 3, "error": body["error"]}))
        }
        Wire::Ollama => format!("{body}\n"),
    }
}

/// A frame that is no JSON.
pub(crate) fn broken_frame(wire: Wire) -> &'static str {
    match wire {
        Wire::Ollama => "{\"message\": oops}\n",
        _ => "data: {\"delta\": oops}\n\n",
    }
}

/// Bytes as gzip, not made any smaller: one stored block.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    packed.extend(checksum(bytes).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    packed
}

/// CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let fold = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (0u32.wrapping_sub(sum & 1)))
        })
    };
    !bytes.iter().fold(u32::MAX, fold)
}

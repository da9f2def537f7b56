//! Calls as the store has them: what is written of one, and what it is found and summed by.

use jiff::Timestamp;
use outrigger_store::{CallFacts, CallStatus, Change, Ended, KnownCall, ToolCall};
use serde_json::{Map, Value};

use super::restored::read;
use super::{Journal, json, now};
use crate::message::{BackgroundStatus, Message, SessionId};
use crate::protocol::content::WireMessage;
use crate::protocol::json_bytes;
use crate::protocol::record::{ExecutionRecord, ExecutionStatus};

/// From how many bytes on an input is written with its long texts cut: what a file was given is in the message of the
/// call already.
const LONG_INPUT: usize = 16 * 1024;

/// What is left of a long text of such an input, in bytes.
const KEPT_TEXT: usize = 512;

/// Longest name of a tool or a provider that is summed, in bytes.
const NAME: usize = 128;

impl Journal {
    /// Notes how a call stands; `result` is what it came to, once it did.
    pub(crate) fn call(&self, record: &ExecutionRecord, began: bool, result: Option<&Message>) {
        self.write_one(|| change(record, began, result));
    }

    /// Notes what is known of a call that was settled before.
    pub(crate) fn record(&self, record: &ExecutionRecord) {
        self.write_one(|| Change::Record {
            id: record.tool_id.to_string(),
            record: written(record),
        });
    }
}

/// Returns the change that writes how a call stands; `result` is what it came to, once it did.
pub(super) fn change(record: &ExecutionRecord, began: bool, result: Option<&Message>) -> Change {
    Change::Call {
        call: ToolCall {
            id: record.tool_id.to_string(),
            conversation: record.conversation_id.to_string(),
            began,
            record: written(record),
            result: result.map(|result| json(&WireMessage::from(result))),
        },
        facts: facts(record),
    }
}

/// Returns what a call is found and summed by.
pub(crate) fn facts(record: &ExecutionRecord) -> CallFacts {
    let name = |name: &str| {
        let end = name.floor_char_boundary(NAME);
        name.get(..end).unwrap_or_default().to_owned()
    };
    let at: Option<Timestamp> = record.started_at.parse().ok();
    let resources = record.resources;
    CallFacts {
        tool: name(&record.tool_name),
        provider: name(&record.provider),
        commands: record.commands.clone(),
        status: status(record.status).unwrap_or_default(),
        at_ms: at.map_or_else(now, Timestamp::as_millisecond),
        duration_ms: record.duration_ms,
        cpu_ms: resources.map_or(0, |it| it.cpu_ms),
        memory: resources.map_or(0, |it| it.max_rss_bytes),
        input_bytes: record.input_bytes,
        output_bytes: record.stdout_bytes.saturating_add(record.stderr_bytes),
    }
}

/// Returns how the store has it that a call stands; `None` where it has no such calls, since they wait.
pub(crate) fn status(status: ExecutionStatus) -> Option<CallStatus> {
    Some(match status {
        ExecutionStatus::Queued => return None,
        ExecutionStatus::Running => CallStatus::Running,
        ExecutionStatus::Success => CallStatus::Ended(Ended::Success),
        ExecutionStatus::Error => CallStatus::Ended(Ended::Error),
        ExecutionStatus::Denied => CallStatus::Ended(Ended::Denied),
        ExecutionStatus::Cancelled => CallStatus::Ended(Ended::Cancelled),
    })
}

/// Returns the record of a call that the store has, as it is known there, with its session; `None` where it cannot be
/// read.
pub(crate) fn known(call: KnownCall) -> Option<ExecutionRecord> {
    let mut record: ExecutionRecord = read(&call.record, "a call")?;
    record.session_id = Some(SessionId::new(call.session));
    Some(record)
}

/// Returns the record of a call whose daemon has ended: what ran then ended with it.
pub(crate) fn broken_off(mut record: ExecutionRecord) -> ExecutionRecord {
    if matches!(
        record.status,
        ExecutionStatus::Running | ExecutionStatus::Queued
    ) {
        record.status = ExecutionStatus::Error;
    }
    if let Some(background) = &mut record.background
        && background.is_running()
    {
        background.status = BackgroundStatus::Killed;
        background.ports.clear();
    }
    record
}

pub(super) fn written(record: &ExecutionRecord) -> String {
    if record.input_bytes <= LONG_INPUT as u64 {
        return json(record);
    }
    let mut short = record.clone();
    short.input = match cut(&Value::Object(std::mem::take(&mut short.input))) {
        Value::Object(input) if json_bytes(&input) <= LONG_INPUT => input,
        // Many short texts.
        _ => Map::new(),
    };
    json(&short)
}

/// Returns a value with its long texts cut, each with its length.
fn cut(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > KEPT_TEXT => {
            let end = text.floor_char_boundary(KEPT_TEXT);
            let kept = text.get(..end).unwrap_or_default();
            Value::String(format!("{kept}… ({} bytes)", text.len()))
        }
        Value::Array(items) => items.iter().map(cut).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), cut(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_input_is_written_with_its_long_texts_cut() {
        let record = |input: Value| -> ExecutionRecord {
            let known = json!({
                "toolId": "t1", "conversationId": "c", "provider": "p", "model": "m", "toolName": "file_write",
                "inputBytes": input.to_string().len(), "input": input, "category": "file",
                "danger": {"level": "safe", "reasons": []}, "approval": {"asked": false, "waitedMs": 0},
                "status": "success", "stdoutBytes": 0, "stderrBytes": 0, "truncated": false, "durationMs": 0,
                "queuedMs": 0, "startedAt": "2026-11-20T12:00:00.000Z",
            });
            serde_json::from_value(known).unwrap()
        };
        let long = "ü".repeat(20_000);
        let cut = format!("{}… (40000 bytes)", "ü".repeat(256));
        let short = json!({"path": "a", "content": "x".repeat(10_000)});
        let many: Vec<String> = vec!["x".repeat(100); 1_000];
        for (input, expected) in [
            (short.clone(), short),
            (
                json!({"path": "a", "edits": [{"newText": long}], "n": 1}),
                json!({"path": "a", "edits": [{"newText": cut}], "n": 1}),
            ),
            (json!({ "many": many }), json!({})),
        ] {
            let whole = record(input);
            let read: ExecutionRecord = serde_json::from_str(&written(&whole)).unwrap();
            assert_eq!(Value::Object(read.input), expected);
            assert_eq!(read.input_bytes, whole.input_bytes);
        }
    }
}

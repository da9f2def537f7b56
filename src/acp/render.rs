//! Events of a session as updates of the protocol. Pure: the same events give the same updates.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::blocks::fenced;
use super::tool_call;
use super::wire::{Capabilities, Terminal};
use crate::message::{Metadata, Money, Notice, Part, Severity, ToolId};
use crate::protocol::event::{
    Compaction, CompactionPhase, Context, Delta, Event, ResultStatus, StateName, StreamEnd,
    ToolConfirm, ToolOutcome, ToolStart,
};
use crate::protocol::word;

/// The most of a running command's output that is shown as text, in bytes: its end.
const SHOWN_OUTPUT: usize = 32 * 1024;

/// What of a session the updates depend on.
#[derive(Debug)]
pub(super) struct Renderer {
    /// The folder that paths are below.
    cwd: PathBuf,
    terminal: Terminal,
    notices: bool,
    compaction: bool,
    /// Calls that are announced and not over.
    calls: BTreeMap<ToolId, Call>,
    /// How often a turn's text was void: what follows is another message.
    discarded: u32,
    context: Option<(u64, u64)>,
    /// What the session has cost since it was opened here.
    cost: Money,
}

#[derive(Debug, Default)]
struct Call {
    tool: String,
    input: Map<String, Value>,
    /// The end of its output, where the client has no terminal for it.
    output: String,
    /// Whether there is more of it than the client was sent.
    is_dirty: bool,
    has_terminal: bool,
}

impl Renderer {
    pub(super) fn new(cwd: PathBuf, client: &Capabilities) -> Self {
        Self {
            cwd,
            terminal: client.terminal(),
            notices: client.takes_notices(),
            compaction: client.takes_compaction(),
            calls: BTreeMap::new(),
            discarded: 0,
            context: None,
            cost: Money::ZERO,
        }
    }

    pub(super) fn cost(&self) -> Money {
        self.cost
    }

    /// Returns the updates that an event comes to.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::ChatTextDelta(delta) => vec![self.text(delta)],
            Event::ChatThinkingDelta(delta) => vec![self.thought(delta)],
            Event::ChatToolInputDelta(delta) => match self.calls.contains_key(&delta.tool_id) {
                true => Vec::new(),
                false => {
                    vec![self.announce(&delta.tool_id, &delta.tool_name, &Map::new(), "pending")]
                }
            },
            Event::ChatToolConfirm(confirm) => self.confirm(confirm),
            Event::ChatToolStart(start) => self.start(start),
            Event::ChatToolDelta(delta) => self.output(&delta.tool_id, &delta.chunk),
            Event::ChatToolResult(outcome) => self.result(outcome),
            Event::ChatTurnDiscarded(_) => self.discard(),
            Event::ChatUsage(usage) => self.usage(&usage.context),
            Event::ChatStreamEnd(end) => self.end(end),
            Event::ChatState(state) if state.state == StateName::Retrying => {
                let reason = state.reason.as_deref().unwrap_or("it did not answer");
                self.notice("warning", "The provider is asked again", Some(reason))
            }
            Event::ChatCompaction(compaction) => self.compact(compaction),
            Event::SessionNotice(notice) => self.told(notice),
            Event::SessionError(error) => self.notice("error", &error.message, None),
            _ => Vec::new(),
        }
    }

    /// Returns updates with the output of running commands that was not sent yet.
    pub(super) fn flush(&mut self) -> Vec<Value> {
        let dirty = self.calls.iter_mut().filter(|(_, call)| call.is_dirty);
        dirty
            .map(|(id, call)| {
                call.is_dirty = false;
                let content = [text_content(&fenced("", &call.output))];
                json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content})
            })
            .collect()
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.calls.values().any(|call| call.is_dirty)
    }

    /// Returns a message of this agent's own, beside what the model says.
    pub(super) fn say(text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
    }

    fn text(&self, delta: &Delta) -> Value {
        chunk(
            "agent_message_chunk",
            &delta.content,
            &self.message_id(delta, ""),
        )
    }

    fn thought(&self, delta: &Delta) -> Value {
        chunk(
            "agent_thought_chunk",
            &delta.content,
            &self.message_id(delta, "t"),
        )
    }

    /// Returns the id of a turn's message: another turn is another message.
    fn message_id(&self, delta: &Delta, kind: &str) -> String {
        let again = match self.discarded {
            0 => String::new(),
            count => format!("-{count}"),
        };
        format!("{}.{}{again}{kind}", delta.message_id, delta.turn)
    }

    /// Announces a call.
    fn announce(
        &mut self,
        id: &ToolId,
        tool: &str,
        input: &Map<String, Value>,
        status: &str,
    ) -> Value {
        let mut update = self.describe(id, tool, input);
        let has_terminal = self.terminal != Terminal::None && tool == "bash";
        if let Some(fields) = update.as_object_mut() {
            fields.insert("sessionUpdate".to_owned(), json!("tool_call"));
            fields.insert("name".to_owned(), json!(tool));
            fields.insert("status".to_owned(), json!(status));
            if has_terminal {
                fields.insert(
                    "content".to_owned(),
                    json!([{"type": "terminal", "terminalId": id}]),
                );
                let info = json!({"terminal_info": {"terminal_id": id, "cwd": self.cwd}});
                fields.insert("_meta".to_owned(), info);
            }
        }
        let call = Call {
            tool: tool.to_owned(),
            input: input.clone(),
            has_terminal,
            ..Call::default()
        };
        self.calls.insert(id.clone(), call);
        update
    }

    /// Returns what a client shows of a call.
    fn describe(&self, id: &ToolId, tool: &str, input: &Map<String, Value>) -> Value {
        let mut update = json!({"toolCallId": id, "title": tool_call::title(tool, input),
            "kind": tool_call::kind(tool, input)});
        if let Some(fields) = update.as_object_mut().filter(|_| !input.is_empty()) {
            fields.insert("rawInput".to_owned(), json!(input));
            let places = tool_call::locations(tool, input, &self.cwd);
            if !places.is_empty() {
                fields.insert("locations".to_owned(), json!(places));
            }
        }
        update
    }

    /// Returns an update that says all of a call; announces it where that was not done.
    fn known(
        &mut self,
        id: &ToolId,
        tool: &str,
        input: &Map<String, Value>,
        status: &str,
    ) -> Value {
        let Some(call) = self.calls.get_mut(id) else {
            return self.announce(id, tool, input, status);
        };
        call.input.clone_from(input);
        let mut update = self.describe(id, tool, input);
        if let Some(fields) = update.as_object_mut() {
            fields.insert("sessionUpdate".to_owned(), json!("tool_call_update"));
            fields.insert("status".to_owned(), json!(status));
        }
        update
    }

    fn confirm(&mut self, confirm: &ToolConfirm) -> Vec<Value> {
        // The call runs where a host is asked for.
        let status = if confirm.host.is_some() {
            "in_progress"
        } else {
            "pending"
        };
        let mut update = self.known(&confirm.tool_id, &confirm.tool_name, &confirm.input, status);
        let unified = confirm.preview.as_deref();
        let diff = tool_call::diff(&confirm.tool_name, &confirm.input, unified, &self.cwd);
        put_content(&mut update, diff);
        vec![update]
    }

    fn start(&mut self, start: &ToolStart) -> Vec<Value> {
        let mut update = self.known(
            &start.tool_id,
            &start.tool_name,
            &start.input,
            "in_progress",
        );
        let diff = tool_call::diff(&start.tool_name, &start.input, None, &self.cwd);
        put_content(&mut update, diff);
        vec![update]
    }

    fn output(&mut self, id: &ToolId, output: &str) -> Vec<Value> {
        let Some(call) = self.calls.get_mut(id) else {
            return Vec::new();
        };
        if let (Terminal::Output(key), true) = (self.terminal, call.has_terminal) {
            return vec![terminal_output(id, key, output)];
        }
        call.output.push_str(output);
        if call.output.len() > SHOWN_OUTPUT {
            let from = call
                .output
                .ceil_char_boundary(call.output.len() - SHOWN_OUTPUT);
            call.output.drain(..from);
        }
        call.is_dirty = true;
        Vec::new()
    }

    fn result(&mut self, outcome: &ToolOutcome) -> Vec<Value> {
        let id = &outcome.tool_id;
        let mut updates = Vec::new();
        if !self.calls.contains_key(id) {
            updates.push(self.announce(id, &outcome.tool_name, &Map::new(), "in_progress"));
        }
        let call = self.calls.remove(id).unwrap_or_default();
        let settled = Settled {
            status: outcome.status,
            text: &outcome.result,
            pictures: &outcome.content,
            facts: outcome.metadata.as_ref(),
        };
        updates.extend(self.settle(id, &call, &settled));
        updates
    }

    /// Returns the updates that end a call.
    fn settle(&self, id: &ToolId, call: &Call, settled: &Settled<'_>) -> Vec<Value> {
        let Settled {
            status,
            text,
            pictures,
            facts,
        } = *settled;
        let status = match status {
            ResultStatus::Success => "completed",
            ResultStatus::Error => "failed",
        };
        let mut update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status});
        if let (Some(facts), Some(fields)) = (facts, update.as_object_mut()) {
            fields.insert("rawOutput".to_owned(), json!(facts));
        }
        let exited = facts.filter(|it| it.exit_code.is_some() || it.signal.is_some());
        if let (true, Some(facts), Some(fields)) =
            (call.has_terminal, exited, update.as_object_mut())
        {
            let exit = json!({"terminal_exit": {"terminal_id": id, "exit_code": facts.exit_code,
                "signal": facts.signal.map(|it| it.to_string())}});
            fields.insert("_meta".to_owned(), exit);
            return vec![update];
        }
        let unified = facts.and_then(|facts| facts.diff.as_deref());
        let diff = match status {
            "completed" => tool_call::diff(&call.tool, &call.input, unified, &self.cwd),
            _ => None,
        };
        let shown = || match call.tool.as_str() {
            "bash" | "git" => text_content(&fenced("", text)),
            _ => text_content(text),
        };
        put_content(&mut update, Some(diff.unwrap_or_else(shown)));
        if let Some(Value::Array(content)) = update.get_mut("content") {
            content.extend(pictures.iter().filter_map(picture));
        }
        vec![update]
    }

    /// A call of a session that is loaded: announced and settled at once.
    pub(super) fn past(
        &mut self,
        id: &ToolId,
        tool: &str,
        input: &Map<String, Value>,
        result: Option<(ResultStatus, &str)>,
    ) -> Vec<Value> {
        let mut updates = vec![self.announce(id, tool, input, "in_progress")];
        let call = self.calls.remove(id).unwrap_or_default();
        let (status, text) = result.unwrap_or((ResultStatus::Error, "it has no result"));
        if let (Terminal::Output(key), true) = (self.terminal, call.has_terminal) {
            updates.push(terminal_output(id, key, text));
            let code = i32::from(status == ResultStatus::Error);
            updates.push(json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
                "status": if code == 0 { "completed" } else { "failed" },
                "_meta": {"terminal_exit": {"terminal_id": id, "exit_code": code, "signal": null}}}));
            return updates;
        }
        updates.extend(self.settle(
            id,
            &call,
            &Settled {
                status,
                text,
                pictures: &[],
                facts: None,
            },
        ));
        updates
    }

    /// Text cannot be taken back: what follows is another message, and calls of the turn are over.
    fn discard(&mut self) -> Vec<Value> {
        self.discarded += 1;
        let mut updates = self.close("the connection to the provider broke");
        updates.push(Self::say(
            "\n\n*(the connection broke; the answer begins again)*\n\n",
        ));
        updates
    }

    /// Ends calls that have no result.
    fn close(&mut self, why: &str) -> Vec<Value> {
        let calls = std::mem::take(&mut self.calls).into_keys();
        calls
            .map(|id| {
                json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
                    "content": [text_content(why)]})
            })
            .collect()
    }

    fn usage(&mut self, context: &Context) -> Vec<Value> {
        self.context = context.window.map(|window| (context.used, window));
        self.shown_usage().into_iter().collect()
    }

    fn shown_usage(&self) -> Option<Value> {
        let (used, size) = self.context?;
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if let Some(fields) = update.as_object_mut().filter(|_| self.cost > Money::ZERO) {
            let cost = json!({"amount": self.cost.dollars(), "currency": "USD"});
            fields.insert("cost".to_owned(), cost);
        }
        Some(update)
    }

    fn end(&mut self, end: &StreamEnd) -> Vec<Value> {
        let mut updates = self.close("the turn ended before it did");
        if let Some(cost) = end
            .spent_usd
            .or(end.cost_usd)
            .filter(|it| *it > Money::ZERO)
        {
            self.cost = self.cost.plus(cost);
            updates.extend(self.shown_usage());
        }
        updates
    }

    fn told(&self, notice: &Notice) -> Vec<Value> {
        let severity = match notice.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        self.notice(severity, &notice.message, None)
    }

    fn notice(&self, severity: &str, title: &str, description: Option<&str>) -> Vec<Value> {
        if !self.notices {
            return Vec::new();
        }
        let mut update = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
        if let (Some(text), Some(fields)) = (description, update.as_object_mut()) {
            fields.insert("description".to_owned(), json!(text));
        }
        vec![update]
    }

    fn compact(&self, compaction: &Compaction) -> Vec<Value> {
        if !self.compaction {
            return Vec::new();
        }
        let status = match compaction.phase {
            CompactionPhase::Started => "in_progress",
            CompactionPhase::Done => "completed",
            CompactionPhase::Failed => "failed",
        };
        let mut update = json!({"sessionUpdate": "compaction_update",
            "compactionId": compaction.compaction_id, "status": status});
        if let Some(fields) = update.as_object_mut() {
            let result = compaction.result.as_ref();
            if let Some(summary) = result.and_then(|it| it.summary.as_deref()) {
                let summary = [json!({"type": "text", "text": summary})];
                fields.insert("summary".to_owned(), json!(summary));
            }
            if let Some(reason) = &compaction.reason {
                fields.insert("error".to_owned(), json!(word(reason)));
            }
        }
        vec![update]
    }
}

/// What came of a call.
struct Settled<'a> {
    status: ResultStatus,
    text: &'a str,
    /// Parts of it, of which the pictures are shown.
    pictures: &'a [Part],
    facts: Option<&'a Metadata>,
}

fn put_content(update: &mut Value, content: Option<Value>) {
    if let (Some(content), Some(fields)) = (content, update.as_object_mut()) {
        fields.insert("content".to_owned(), json!([content]));
    }
}

pub(super) fn chunk(kind: &str, text: &str, message_id: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message_id})
}

pub(super) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

fn picture(part: &Part) -> Option<Value> {
    let Part::Image { media_type, data } = part else {
        return None;
    };
    let image = json!({"type": "image", "mimeType": media_type, "data": data});
    Some(json!({"type": "content", "content": image}))
}

/// Returns output for a client's terminal, in which a line goes on where the last one ended.
fn terminal_output(id: &ToolId, key: &str, output: &str) -> Value {
    let data = output.replace("\r\n", "\n").replace('\n', "\r\n");
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
        "_meta": {key: {"terminal_id": id, "data": data}}})
}

#[cfg(test)]
mod tests;

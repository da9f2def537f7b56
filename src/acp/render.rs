//! Events of a session as updates of the protocol. Pure: the same events give the same updates.

mod said;
mod told;
mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::said::Said;
pub(super) use self::updates::{chunk, text_content};
use self::updates::{picture, put_content, terminal_content, terminal_output};
use super::blocks::fenced;
use super::diff::{self, Known};
use super::wire::{Capabilities, Terminal};
use super::{question, tool_call};
use crate::message::{Metadata, Money, Part, ToolId, is_cut_diff};
use crate::protocol::budget::BudgetOutcome;
use crate::protocol::event::{
    Delta, Event, Outcome, ResultStatus, StateName, ToolConfirm, ToolOutcome, ToolStart,
};

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
    /// Questions that stand there as calls of their own: about hosts, and about money.
    asked: BTreeSet<String>,
    texts: Said,
    thoughts: Said,
    /// How often a turn's text was void: what follows is another message.
    discarded: u32,
    context: Option<(u64, u64)>,
    /// What the session has cost.
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
    /// The change that the user was asked for.
    change: Vec<Value>,
}

impl Call {
    /// Whether more of the change was shown when the user was asked than this difference has.
    fn is_better_known(&self, unified: &str) -> bool {
        is_cut_diff(unified) && !self.change.is_empty()
    }
}

impl Renderer {
    pub(super) fn new(cwd: PathBuf, client: &Capabilities) -> Self {
        Self {
            cwd,
            terminal: client.terminal,
            notices: client.notices,
            compaction: client.compaction,
            calls: BTreeMap::new(),
            asked: BTreeSet::new(),
            texts: Said::default(),
            thoughts: Said::default(),
            discarded: 0,
            context: None,
            cost: Money::ZERO,
        }
    }

    /// Returns the folder that paths are below, as the client names it.
    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the file, as the model names it, that an event's difference is of, where its text is needed to show the change.
    pub(super) fn changes<'a>(&'a self, event: &'a Event) -> Option<&'a str> {
        let input = match event {
            Event::ChatToolConfirm(confirm) if confirm.preview.is_some() => &confirm.input,
            Event::ChatToolResult(outcome) => {
                let unified = outcome.metadata.as_ref()?.diff.as_deref()?;
                let call = self.calls.get(&outcome.tool_id)?;
                let is_known = tool_call::written(&call.tool, &call.input).is_some()
                    || call.is_better_known(unified);
                if outcome.status != ResultStatus::Success || is_known {
                    return None;
                }
                &call.input
            }
            _ => return None,
        };
        input.get("path").and_then(Value::as_str)
    }

    /// Returns the updates that an event comes to; `text` is that of the file which it changes, as it is now.
    pub(super) fn event(&mut self, event: &Event, text: Option<&str>) -> Vec<Value> {
        match event {
            Event::ChatTextDelta(delta) => self.text(delta).into_iter().collect(),
            Event::ChatThinkingDelta(delta) => self.thought(delta).into_iter().collect(),
            Event::ChatToolInputDelta(delta) => match self.calls.contains_key(&delta.tool_id) {
                true => Vec::new(),
                false => {
                    vec![self.announce(&delta.tool_id, &delta.tool_name, &Map::new(), "pending")]
                }
            },
            Event::ChatToolConfirm(confirm) => self.confirm(confirm, text),
            Event::ChatToolResolved(it) => match &it.host {
                Some(host) => {
                    let id = question::host_call(&it.tool_id, host);
                    self.resolved(&id, it.outcome == Outcome::Approved)
                }
                // Of a call of a task nothing more is shown.
                None if it.conversation_id.task().is_some() => {
                    self.settled(&it.tool_id, it.outcome == Outcome::Approved)
                }
                None => Vec::new(),
            },
            Event::ChatBudgetConfirm(confirm) => {
                let id = question::money_call(&confirm.request_id);
                vec![self.ask(id, question::of_cap(confirm))]
            }
            Event::ChatBudgetResolved(it) => {
                let id = question::money_call(&it.request_id);
                self.resolved(&id, it.outcome == BudgetOutcome::Extended)
            }
            Event::ChatTrustConfirm(_) | Event::ChatTrustResolved(_) => self.trust(event),
            Event::ChatToolStart(start) => self.start(start),
            Event::ChatToolDelta(delta) => self.output(&delta.tool_id, &delta.chunk),
            Event::ChatToolResult(outcome) => self.result(outcome, text),
            Event::ChatTurnDiscarded(_) => self.discard(),
            Event::ChatUsage(usage) => self.usage(&usage.context),
            Event::ChatStreamEnd(end) => self.end(end),
            Event::ChatState(state) if state.state == StateName::Retrying => {
                let reason = state.reason.as_deref().unwrap_or("it did not answer");
                self.notice("warning", "The provider is asked again", Some(reason))
            }
            Event::ChatCompaction(compaction) => self.compact(compaction),
            Event::SessionNotice(notice) => self.told(notice),
            Event::McpAuthRequired(asked) => vec![Self::sign_in(asked)],
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

    fn text(&mut self, delta: &Delta) -> Option<Value> {
        let id = self.message_id(delta, "");
        let new = self.texts.new_of(&id, &delta.content)?;
        Some(chunk("agent_message_chunk", new, &id))
    }

    fn thought(&mut self, delta: &Delta) -> Option<Value> {
        let id = self.message_id(delta, "t");
        let new = self.thoughts.new_of(&id, &delta.content)?;
        Some(chunk("agent_thought_chunk", new, &id))
    }

    /// Notes that the session says again how it stands: what the running turn has said so far comes once more.
    pub(super) fn begin_again(&mut self) {
        self.texts.begin_again();
        self.thoughts.begin_again();
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
                fields.insert("content".to_owned(), json!([terminal_content(id)]));
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

    fn confirm(&mut self, confirm: &ToolConfirm, text: Option<&str>) -> Vec<Value> {
        let (id, tool, input) = (&confirm.tool_id, &confirm.tool_name, &confirm.input);
        if let Some(host) = &confirm.host {
            // The call runs: what it shows stays as it is.
            return vec![self.ask(
                question::host_call(id, host),
                question::of_host(confirm, host),
            )];
        }
        let mut update = self.known(id, tool, input, "pending");
        let known = Known {
            before: text,
            after: tool_call::written(tool, input),
        };
        let change = confirm
            .preview
            .as_deref()
            .zip(tool_call::path(tool, input, &self.cwd));
        let change = change.map(|(unified, path)| diff::content(&path, unified, known));
        if let Some(call) = self.calls.get_mut(id) {
            call.change = change.unwrap_or_default();
        }
        let content = self.shown(id);
        put_content(&mut update, &content);
        vec![update]
    }

    /// Returns what a call that waits or runs shows: a change, a terminal. Whatever a client was sent as its content replaces
    /// what there was.
    pub(super) fn shown(&self, id: &ToolId) -> Vec<Value> {
        let Some(call) = self.calls.get(id) else {
            return Vec::new();
        };
        let terminal = call.has_terminal.then(|| terminal_content(id));
        call.change.iter().cloned().chain(terminal).collect()
    }

    /// Announces a question as a call of its own.
    pub(super) fn ask(&mut self, id: String, mut call: Value) -> Value {
        if let Some(fields) = call.as_object_mut() {
            fields.insert("sessionUpdate".to_owned(), json!("tool_call"));
            fields.insert("status".to_owned(), json!("in_progress"));
        }
        self.asked.insert(id);
        call
    }

    fn start(&mut self, start: &ToolStart) -> Vec<Value> {
        let (id, tool, input) = (&start.tool_id, &start.tool_name, &start.input);
        let mut update = self.known(id, tool, input, "in_progress");
        let mut content = self.shown(id);
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        if let (true, "file_edit", Some(old), Some(new), Some(path)) = (
            content.is_empty(),
            tool.as_str(),
            text("oldText"),
            text("newText"),
            tool_call::path(tool, input, &self.cwd),
        ) {
            content = diff::replacement(&path, old, new);
        }
        put_content(&mut update, &content);
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

    fn result(&mut self, outcome: &ToolOutcome, text: Option<&str>) -> Vec<Value> {
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
            file: text,
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
            file,
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
            put_content(&mut update, &[terminal_content(id)]);
            return vec![update];
        }
        let unified = facts.and_then(|facts| facts.diff.as_deref());
        let path = tool_call::path(&call.tool, &call.input, &self.cwd);
        let content = match (status, unified.zip(path)) {
            ("completed", Some((unified, _))) if call.is_better_known(unified) => {
                call.change.clone()
            }
            ("completed", Some((unified, path))) => {
                let after = tool_call::written(&call.tool, &call.input).or(file);
                let known = Known {
                    before: None,
                    after,
                };
                diff::content(&path, unified, known)
            }
            _ => vec![match call.tool.as_str() {
                "bash" | "git" => text_content(&fenced("", text)),
                _ => text_content(text),
            }],
        };
        let content: Vec<Value> = content
            .into_iter()
            .chain(pictures.iter().filter_map(picture))
            .collect();
        put_content(&mut update, &content);
        vec![update]
    }

    /// A call of a session that is loaded: announced and settled at once.
    pub(super) fn past(
        &mut self,
        id: &ToolId,
        tool: &str,
        input: &Map<String, Value>,
        result: Option<(ResultStatus, &str)>,
        facts: Option<&Metadata>,
    ) -> Vec<Value> {
        let mut updates = vec![self.announce(id, tool, input, "in_progress")];
        let call = self.calls.remove(id).unwrap_or_default();
        let (status, text) = result.unwrap_or((ResultStatus::Error, "it has no result"));
        if let (Terminal::Output(key), true) = (self.terminal, call.has_terminal) {
            updates.push(terminal_output(id, key, text));
        }
        // What the file was then is not known: it may have changed since.
        let settled = Settled {
            status,
            text,
            pictures: &[],
            facts,
            file: None,
        };
        updates.extend(self.settle(id, &call, &settled));
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
        let asked = std::mem::take(&mut self.asked).into_iter();
        calls
            .map(|id| id.to_string())
            .chain(asked)
            .map(|id| {
                json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
                    "content": [text_content(why)]})
            })
            .collect()
    }
}

/// What came of a call.
struct Settled<'a> {
    status: ResultStatus,
    text: &'a str,
    /// Parts of it, of which the pictures are shown.
    pictures: &'a [Part],
    facts: Option<&'a Metadata>,
    /// The text of the file that the call changed.
    file: Option<&'a str>,
}

#[cfg(test)]
mod tests;

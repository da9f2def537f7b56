//! What a call came to, for everyone: the record, the metrics, the audit log, the client and the model.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::known;
use super::shown::{parts_of, text_of};
use crate::audit::{By, Contents, Digested, Entry, HostRuling, Ruling, Rulings, beginning};
use crate::exchange::Exchange;
use crate::exchange::context::{Context, Services, SessionContext};
use crate::exchange::files::Keeper;
use crate::message::{
    Danger, DangerLevel, Message, MessageId, Notice, Part, Severity, ToolCall, ToolCategory,
    ToolId, ToolResult,
};
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{Event, ResultStatus, State, StateName, ToolOutcome};
use crate::protocol::record::{Approval, ExecutionRecord, ExecutionStatus, Resources};
use crate::protocol::{json_bytes, word};
use crate::store::files::Author;
use crate::telemetry::{Redactor, metrics, traces};
use crate::tool::undo::Keep;
use crate::tool::{Metadata, Output, Tool};
use crate::units::millis;

/// What a record names in the place of a provider where a client started the call.
const BY_CLIENT: &str = "client";

/// Returns what a call came to that did not run by a fault of its own.
pub(super) fn failed(text: impl Into<String>) -> Box<Output> {
    Box::new(Output::error(text))
}

pub(super) fn denied(text: impl Into<String>) -> Box<Output> {
    Box::new(Output::error(text).with(Metadata {
        denied: true,
        ..Metadata::default()
    }))
}

/// Returns what a call came to that nobody was there to be asked about.
pub(super) fn unattended(text: impl Into<String>) -> Box<Output> {
    Box::new(Output::error(text).with(Metadata {
        denied: true,
        unattended: true,
        ..Metadata::default()
    }))
}

/// Returns what a call came to that a cancel ended before it ran.
pub(super) fn cancelled_unrun() -> Box<Output> {
    Box::new(Output::error("cancelled before it ran").with(cancelled()))
}

pub(in crate::exchange) fn cancelled() -> Metadata {
    Metadata {
        cancelled: true,
        ..Metadata::default()
    }
}

impl Exchange<'_> {
    pub(super) fn open_record(
        &self,
        call: &ToolCall,
        tool: Option<&Arc<dyn Tool>>,
        cancel: CancellationToken,
    ) {
        let record = ExecutionRecord {
            tool_id: call.id.clone(),
            session_id: None,
            conversation_id: self.setup.conversation_id.clone(),
            provider: match self.is_clients {
                true => BY_CLIENT.to_owned(),
                false => self.setup.provider_id.clone(),
            },
            model: match self.is_clients {
                true => String::new(),
                false => self.setup.model.clone(),
            },
            provider_call_id: call.provider_call_id.clone(),
            // The model's word, where there is no such tool.
            tool_name: match tool {
                Some(_) => call.name.clone(),
                None => self
                    .context
                    .services
                    .redactor
                    .redact(&call.name)
                    .into_owned(),
            },
            input: call.input.clone(),
            input_bytes: json_bytes(&call.input) as u64,
            commands: Vec::new(),
            category: tool.map_or(ToolCategory::Exec, |tool| tool.spec().category),
            danger: Danger {
                level: tool.map_or(DangerLevel::Warning, |tool| tool.spec().danger_level),
                reasons: Vec::new(),
            },
            approval: Approval::default(),
            status: ExecutionStatus::Queued,
            exit_code: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            truncated: false,
            duration_ms: 0,
            queued_ms: 0,
            sandbox: None,
            resources: None,
            background: None,
            started_at: Timestamp::now().to_string(),
        };
        self.context.session.executions.open(record, cancel);
    }

    /// Returns where a call keeps what its changes take to be undone.
    pub(super) fn keep(&self, call: &ToolId, cancel: &CancellationToken) -> Arc<dyn Keep> {
        let session = &self.context.session;
        match session.journal.is_on() {
            true => Arc::new(Keeper {
                journal: session.journal.clone(),
                redactor: self.context.services.redactor.clone(),
                executions: Arc::clone(&session.executions),
                author: author(self.context, &self.setup.message_id, call),
                cancel: cancel.clone(),
            }),
            false => Arc::new(()),
        }
    }

    /// Settles a call, which ran for so long, and returns the model's result of it.
    pub(super) fn settle(
        &self,
        call: &ToolCall,
        output: Output,
        ran: Option<Duration>,
    ) -> ToolResult {
        let name = (&call.id, call.name.as_str());
        let outcome = (word(&status(&output)), output.is_error);
        let result = settle(self.context, &self.setup.message_id, name, output, ran);
        // Whoever settles a call is in its span.
        traces::settled(&Span::current(), &outcome.0, outcome.1);
        result
    }
}

/// Returns whose the changes are that a call makes.
fn author(context: &Context, exchange: &MessageId, call: &ToolId) -> Author {
    let (conversation, exchange) = context.owner(exchange);
    Author {
        conversation: conversation.clone(),
        exchange: exchange.clone(),
        call: Some(call.clone()),
    }
}

/// Answers the open calls of a conversation whose exchange failed by a fault of the daemon.
pub(crate) fn settle_open(context: &Context, message_id: &MessageId) {
    let executions = &context.session.executions;
    for id in executions.open_of(&context.conversation.id) {
        let name = executions.get(&id).map(|record| record.tool_name);
        let name = name.unwrap_or_default();
        let output = Output::error("interrupted by a fault of the daemon");
        settle(context, message_id, (&id, &name), output, None);
    }
}

/// Notes what a call came to in its record, emits it, and returns the model's result; `ran` is `None` where it did not
/// run.
fn settle(
    context: &Context,
    message_id: &MessageId,
    (tool_id, tool_name): (&ToolId, &str),
    mut output: Output,
    ran: Option<Duration>,
) -> ToolResult {
    redact(&context.services.redactor, &mut output);
    let status = status(&output);
    let duration_ms = ran.map_or(0, millis);
    let text = text_of(&output.content);
    let content = parts_of(&output.content);
    let result = ToolResult {
        id: tool_id.clone(),
        name: tool_name.to_owned(),
        content: std::mem::take(&mut output.content),
        is_error: output.is_error,
    };
    let message = Message::ToolResult(result.clone());
    let executions = &context.session.executions;
    let settled = executions.settle(tool_id, &message, |record| {
        record.status = status;
        record.duration_ms = duration_ms;
        record.exit_code = output.metadata.exit_code;
        // A call that did not run has no output; its text is ours.
        let said = ran.map_or(0, |_| text.len());
        let total = output.metadata.total_bytes.unwrap_or(said as u64);
        record.stderr_bytes = output.metadata.stderr_bytes.unwrap_or(0);
        record.stdout_bytes = total.saturating_sub(record.stderr_bytes);
        record.truncated = output.metadata.truncated;
        record.sandbox.clone_from(&output.metadata.sandbox);
        record.resources = output.metadata.cpu_ms.map(|cpu_ms| Resources {
            cpu_ms,
            max_rss_bytes: output.metadata.max_rss_bytes.unwrap_or(0),
        });
    });
    if let Some(changed) = &output.metadata.changed {
        let author = author(context, message_id, tool_id);
        context.session.journal.files_of_command(&author, changed);
    }
    let status = word(&status);
    metrics::tool_settled(known(context, tool_name), &status, ran);
    tracing::info!(status, duration_ms, "call settled");
    if let Some((record, rulings)) = settled {
        output.metadata.unanswered_hosts = unanswered(&context.services.redactor, &rulings);
        let whose = (&context.services, &context.session);
        let status = word(&record.status);
        audit(whose, message_id, &record, rulings, status, &text);
    }
    let conversation_id = &context.conversation.id;
    let has_facts = output.metadata != Metadata::default();
    let outcome = ToolOutcome {
        conversation_id: conversation_id.clone(),
        message_id: message_id.clone(),
        tool_id: tool_id.clone(),
        tool_name: tool_name.to_owned(),
        status: match output.is_error {
            true => ResultStatus::Error,
            false => ResultStatus::Success,
        },
        result: text,
        content,
        duration_ms,
        metadata: has_facts.then_some(output.metadata),
    };
    let events = context.events();
    events.emit(Event::ChatToolResult(Box::new(outcome)));
    events.emit(Event::ChatState(State {
        tool_id: Some(tool_id.clone()),
        ..State::new(conversation_id, Some(message_id), StateName::ToolCompleted)
    }));
    result
}

/// Returns the hosts that nobody decided about who would have had to be asked.
fn unanswered(redactor: &Redactor, rulings: &Rulings) -> Vec<String> {
    let is_unanswered = |it: &&HostRuling| matches!(it.decided_by, By::Unattended | By::Timeout);
    let hosts = rulings.hosts.iter().filter(is_unanswered);
    // A command chose this name; it may hold a secret.
    let shown = hosts.map(|it| redactor.redact(&it.host).into_owned());
    shown.collect()
}

/// Writes the line of the audit log of a call that ran when its daemon was killed, which wrote none.
pub(crate) fn audit_interrupted(
    whose: (&Services, &SessionContext),
    exchange: &MessageId,
    record: &ExecutionRecord,
    output: &str,
) {
    let rulings = Rulings {
        call: Ruling::run(By::Nobody),
        ..Rulings::default()
    };
    let status = "interrupted".to_owned();
    audit(whose, exchange, record, rulings, status, output);
}

/// Writes the line of the audit log of a call that was settled; `output` is its result as the model is given it.
///
/// The first one after the log failed notifies the client.
fn audit(
    (services, session): (&Services, &SessionContext),
    exchange: &MessageId,
    record: &ExecutionRecord,
    rulings: Rulings,
    status: String,
    output: &str,
) {
    if !services.audit.is_on() {
        return;
    }
    let clean = |text: &str| services.redactor.redact_for_record(text).into_owned();
    let input = serde_json::to_vec(&record.input).unwrap_or_default();
    let mut hosts = rulings.hosts;
    for ruling in &mut hosts {
        // A command chose this name; it may hold a secret.
        ruling.host = clean(&ruling.host);
    }
    let config = services.config();
    let contents = config.audit.as_ref().map(|audit| audit.content);
    let contents = contents.unwrap_or_default();
    let named = |text: Option<String>| {
        let text = text.filter(|_| contents >= Contents::Command)?;
        Some(beginning(&clean(&text)))
    };
    let digested = |content: &[u8], shown: &dyn Fn() -> String| match contents {
        Contents::Full => Digested::of(content).with_text(&shown()),
        Contents::Hash | Contents::Command => Digested::of(content),
    };
    let clean_input = || {
        // Text by text: as JSON a key of several lines looks otherwise.
        let mut input = Value::Object(record.input.clone());
        services.redactor.redact_value_for_record(&mut input);
        input.to_string()
    };
    services.audit.record(Entry {
        time: Timestamp::now().to_string(),
        user: session.user.to_string(),
        session: session.id.to_string(),
        conversation: clean(&record.conversation_id.to_string()),
        exchange: exchange.to_string(),
        tool_id: record.tool_id.to_string(),
        // The model's word, where there is no such tool.
        tool: clean(&record.tool_name),
        provider: record.provider.clone(),
        model: clean(&record.model),
        level: word(&record.danger.level),
        decision: rulings.call.decision,
        decided_by: rulings.call.by,
        scope: rulings.call.scope,
        edited: rulings.call.edited,
        hosts,
        status,
        sandbox: record.sandbox.clone(),
        exit_code: record.exit_code,
        duration_ms: record.duration_ms,
        queued_ms: record.queued_ms,
        command: named(command_line(record)),
        path: named(text_field(record, "path")),
        input: digested(&input, &clean_input),
        output: digested(output.as_bytes(), &|| clean(output)),
    });
    if let Some(message) = services.audit.news() {
        session.events.emit(Event::SessionNotice(Notice {
            severity: Severity::Error,
            code: "audit_failed".to_owned(),
            message,
        }));
    }
}

/// Returns the command line of a call: of `bash` and what takes one likewise, and of `git` its words.
fn command_line(record: &ExecutionRecord) -> Option<String> {
    let words = || {
        let words = record.input.get("args")?.as_array()?.iter();
        let words: Option<Vec<&str>> = words.map(Value::as_str).collect();
        Some(format!("{} {}", record.tool_name, words?.join(" ")))
    };
    text_field(record, "command").or_else(words)
}

fn text_field(record: &ExecutionRecord, name: &str) -> Option<String> {
    record.input.get(name)?.as_str().map(str::to_owned)
}

fn status(output: &Output) -> ExecutionStatus {
    match &output.metadata {
        metadata if metadata.cancelled => ExecutionStatus::Cancelled,
        metadata if metadata.denied || metadata.expired => ExecutionStatus::Denied,
        _ if output.is_error => ExecutionStatus::Error,
        _ => ExecutionStatus::Success,
    }
}

/// Takes secrets out of what a tool returned, for model and client alike, and counts them with those that the tool
/// took out itself before it cut its output.
fn redact(redactor: &Redactor, output: &mut Output) {
    let mut masked = output.metadata.redacted.unwrap_or(0);
    for part in &mut output.content {
        let text = match part {
            Part::Text { text } => Some(text),
            Part::Document(document) => document.text.as_mut(),
            Part::Image { .. } => None,
        };
        if let Some(text) = text
            && let (Cow::Owned(redacted), count) = redactor.redact_counted(text)
        {
            *text = redacted;
            masked += count;
        }
    }
    // What the model never sees, but the wire does.
    if let Some(diff) = &mut output.metadata.diff
        && let Cow::Owned(redacted) = redactor.redact(diff)
    {
        *diff = redacted;
    }
    output.metadata.redacted = Some(masked).filter(|masked| *masked > 0);
}

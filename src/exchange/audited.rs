//! One line of the audit log for each call that was settled.

use super::context::Context;
use super::questions::approval::Verdict;
use crate::audit::{By, Digested, Entry, Ruling};
use crate::message::{MessageId, Notice, Severity};
use crate::protocol::event::Event;
use crate::protocol::record::ExecutionRecord;
use crate::protocol::word;

/// Records a call that was settled; `output` is its result as the model is given it.
///
/// The first one after the log failed notifies the client.
pub fn record(
    context: &Context,
    exchange: &MessageId,
    record: &ExecutionRecord,
    ruling: Ruling,
    output: &str,
) {
    let Context {
        services, session, ..
    } = context;
    if !services.audit.is_on() {
        return;
    }
    let clean = |text: &str| services.redactor.redact(text).into_owned();
    let input = serde_json::to_vec(&record.input).unwrap_or_default();
    services.audit.record(Entry {
        time: crate::protocol::envelope::Timestamp::now().to_string(),
        session: session.id.to_string(),
        conversation: clean(&record.conversation_id.to_string()),
        exchange: exchange.to_string(),
        tool_id: record.tool_id.to_string(),
        // The model's word, where there is no such tool.
        tool: clean(&record.tool_name),
        provider: record.provider.clone(),
        model: clean(&record.model),
        level: word(&record.danger.level),
        decision: ruling.decision,
        decided_by: ruling.by,
        edited: ruling.edited,
        status: word(&record.status),
        sandbox: record.sandbox.clone(),
        exit_code: record.exit_code,
        duration_ms: record.duration_ms,
        queued_ms: record.queued_ms,
        input: Digested::of(&input),
        output: Digested::of(output.as_bytes()),
    });
    if let Some(message) = services.audit.news() {
        session.events.emit(Event::SessionNotice(Notice {
            severity: Severity::Error,
            code: "audit_failed".to_owned(),
            message,
        }));
    }
}

/// Returns what a verdict decides.
pub(super) fn ruling(verdict: &Verdict) -> Ruling {
    match verdict {
        Verdict::Approved(input) => Ruling {
            edited: input.is_some(),
            ..Ruling::run(By::User)
        },
        Verdict::Denied(_) => Ruling::refused(By::User),
        Verdict::Unattended => Ruling::refused(By::Unattended),
        Verdict::Expired => Ruling::refused(By::Timeout),
        Verdict::Cancelled => Ruling::default(),
    }
}

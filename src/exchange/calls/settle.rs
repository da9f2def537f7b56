//! What a call came to, told to everyone: the record, the metrics, the audit log, the client and the model.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::millis;
use crate::exchange::turn::cancelled;
use crate::exchange::{Exchange, audited};
use crate::message::{Danger, DangerLevel, Part, ToolCall, ToolCategory, ToolResult};
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{Event, ResultStatus, State, StateName, ToolOutcome};
use crate::protocol::record::{Approval, ExecutionRecord, ExecutionStatus, Resources};
use crate::protocol::word;
use crate::telemetry::metrics;
use crate::tool::{Metadata, Output, Tool};

/// What a call that did not run, or ran, came to.
pub(super) struct Settled {
    pub(super) output: Box<Output>,
    pub(super) status: ExecutionStatus,
    /// How long it ran; `None` where it did not.
    pub(super) ran: Option<Duration>,
}

impl Settled {
    pub(super) fn unrun(
        text: impl Into<String>,
        status: ExecutionStatus,
        metadata: Metadata,
    ) -> Self {
        Self {
            output: Box::new(Output::error(text).with(metadata)),
            status,
            ran: None,
        }
    }

    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::unrun(text, ExecutionStatus::Error, Metadata::default())
    }

    pub(super) fn denied(text: impl Into<String>) -> Self {
        let metadata = Metadata {
            denied: true,
            ..Metadata::default()
        };
        Self::unrun(text, ExecutionStatus::Denied, metadata)
    }

    pub(super) fn cancelled() -> Self {
        Self::unrun(
            "cancelled before it ran",
            ExecutionStatus::Cancelled,
            cancelled(),
        )
    }
}

impl Exchange<'_> {
    /// Takes up the record of a call.
    pub(super) fn open(
        &self,
        call: &ToolCall,
        tool: Option<&Arc<dyn Tool>>,
        cancel: CancellationToken,
    ) {
        let record = ExecutionRecord {
            tool_id: call.id.clone(),
            conversation_id: self.setup.conversation_id.clone(),
            provider: self.setup.provider_id.clone(),
            model: self.setup.model.clone(),
            provider_call_id: call.provider_call_id.clone(),
            tool_name: call.name.clone(),
            input: call.input.clone(),
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
            started_at: Timestamp::now().to_string(),
        };
        self.session.executions.open(record, cancel);
    }

    /// Tells the client and the record what a call came to, and makes the model's result of it.
    pub(super) fn settle(&self, call: &ToolCall, settled: Settled) -> ToolResult {
        let Settled {
            mut output,
            status,
            ran,
        } = settled;
        self.redact(&mut output);
        let duration_ms = ran.map_or(0, millis);
        let text = text_of(&output.content);
        let settled = self.session.executions.settle(&call.id, |record| {
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
        let status = word(&status);
        metrics::tool_settled(self.known(&call.name), &status, ran);
        tracing::info!(status, duration_ms, "call settled");
        if let Some((record, ruling)) = settled {
            audited::record(
                self.services,
                self.session,
                &self.setup.message_id,
                &record,
                ruling,
                &text,
            );
        }
        let has_facts = output.metadata != Metadata::default();
        self.events()
            .send(Event::ChatToolResult(Box::new(ToolOutcome {
                conversation_id: self.setup.conversation_id.clone(),
                message_id: self.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                status: if output.is_error {
                    ResultStatus::Error
                } else {
                    ResultStatus::Success
                },
                result: text,
                duration_ms,
                metadata: has_facts.then_some(output.metadata),
            })));
        self.events().send(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            ..self.state(StateName::ToolCompleted)
        }));
        ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: output.content,
            is_error: output.is_error,
        }
    }

    /// Takes secrets out of what a tool returned, for model and client alike, and counts them with those that the tool
    /// took out itself before it cut its output.
    fn redact(&self, output: &mut Output) {
        let mut masked = output.metadata.redacted.unwrap_or(0);
        for part in &mut output.content {
            if let Part::Text { text } = part
                && let (Cow::Owned(redacted), count) = self.services.redactor.redact_counted(text)
            {
                *text = redacted;
                masked += count;
            }
        }
        // What the model never sees, but the wire does.
        if let Some(diff) = &mut output.metadata.diff
            && let Cow::Owned(redacted) = self.services.redactor.redact(diff)
        {
            *diff = redacted;
        }
        output.metadata.redacted = Some(masked).filter(|masked| *masked > 0);
    }
}

pub(super) fn text_of(content: &[Part]) -> String {
    let mut text = String::new();
    for part in content {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Image { media_type, .. } => {
                text.push_str("[image ");
                text.push_str(media_type);
                text.push(']');
            }
        }
    }
    text
}

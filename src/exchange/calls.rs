//! One tool call: prepared, judged, asked for, queued, run, and answered. It always is answered.
//!
//! Nothing here fails: whatever goes wrong is the call's result. The one thing that reaches beyond
//! the call is a violation, which may end the exchange when the other calls of the turn have ended.
//!
//! Here is the turn with its calls side by side; a call's way is `permit` (with `question` where
//! the user is asked), then `run`, then `settle`.

mod permit;
mod question;
mod run;
mod settle;
mod turnstile;
mod user;
mod view;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::accumulator::Fault;
use super::{Exchange, Leave, Progress};
use crate::audit::{By, Ruling};
use crate::message::{Danger, Message, OnViolation, Part, ToolCall, ToolResult};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::protocol::record::ExecutionStatus;
use crate::telemetry::Redactor;
use crate::tool::{Facts, Metadata, Prepared, ToolSet, Violation};

use settle::Settled;
use turnstile::{Place, Turnstile};

/// What the model is told of a tool that panicked.
const FAULT: &str = "the tool failed by a fault of its own; see the log";

/// What paths may name.
const REACH: &str = "tools reach only the project and its central storage, less the deny list";

/// Violations of one exchange, the last of which ends it though the model may read them: it is not told what is
/// outside by trying.
const MAX_VIOLATIONS: u32 = 3;

/// Most bytes of an edited input that the model is shown: it says what ran, and is no copy of a file.
const SHOWN_EDIT: usize = 16 * 1024;

/// The calls of one turn.
struct Calls<'a> {
    exchange: &'a Exchange<'a>,
    turn: u32,
    tools: &'a ToolSet,
    /// How many may run at once.
    slots: Semaphore,
    violations: Mutex<Violations>,
}

/// Calls whose path left the roots or is denied.
#[derive(Default)]
struct Violations {
    /// How many of this exchange.
    count: u32,
    /// The first one that ends it.
    ends: Option<Violation>,
}

/// A call that may run.
struct Cleared {
    prepared: Box<dyn Prepared>,
    facts: Facts,
    /// How much harm it may do, for whoever is asked.
    danger: Danger,
    input: Map<String, Value>,
}

impl Exchange<'_> {
    /// Runs the calls of a turn side by side and remembers their results in the order of the calls.
    pub(super) async fn run_calls(
        &self,
        turn: u32,
        tools: &Arc<ToolSet>,
        calls: Vec<ToolCall>,
        faults: Vec<Option<Fault>>,
        progress: &mut Progress,
    ) -> Option<Leave> {
        progress.ended.tool_calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let shared = Calls {
            exchange: self,
            turn,
            tools,
            slots: Semaphore::new(self.services.config.tools.max_concurrent.max(1)),
            violations: Mutex::new(Violations {
                count: progress.violations,
                ends: None,
            }),
        };
        let questions = Turnstile::new(calls.len());
        let running = calls.into_iter().zip(faults).enumerate();
        let running = running.map(|(position, (call, fault))| {
            let repeated = self.conversation.repeats.count(&call);
            let span = self.span_of(&call);
            let place = questions.place(position);
            shared.run(call, fault, repeated, place).instrument(span)
        });
        let results = futures::future::join_all(running).await;
        let violations = shared.violations.into_inner();
        progress.violations = violations.count;
        let results: Vec<Message> = results.into_iter().map(Message::ToolResult).collect();
        progress.budget.injected(&results);
        for result in results {
            self.remember(result);
        }
        let ends = violations.ends?;
        Some(Leave::Violated(self.violated(&ends)))
    }

    /// Answers calls that will not run.
    pub(super) fn refuse_calls(&self, calls: &[ToolCall], reason: &str, metadata: &Metadata) {
        let status = if metadata.cancelled {
            ExecutionStatus::Cancelled
        } else {
            ExecutionStatus::Error
        };
        let tools = self.services.registry.snapshot();
        for call in calls {
            let tool = tools.get(&call.name);
            self.open(call, tool, self.cancel.child_token());
            let settled = Settled::unrun(reason, status, metadata.clone());
            let result = self.span_of(call).in_scope(|| self.settle(call, settled));
            self.remember(Message::ToolResult(result));
        }
    }

    /// A call's place in the tree of spans; what the model wrote is not in it.
    fn span_of(&self, call: &ToolCall) -> tracing::Span {
        tracing::info_span!("call", tool_id = %call.id, tool = self.known(&call.name))
    }

    /// The name of a tool, where there is one of this name.
    fn known<'n>(&self, name: &'n str) -> &'n str {
        let tools = self.services.registry.snapshot();
        if tools.contains_key(name) {
            name
        } else {
            "unknown"
        }
    }

    /// What is remembered of a call that ran with an input of the user's: the call itself stays as the model made it, since
    /// providers sign what a model wrote.
    fn edited(&self, input: Map<String, Value>) -> Part {
        Part::text(shown_edit(input, &self.services.redactor))
    }

    fn violated(&self, violation: &Violation) -> ChatError {
        ChatError {
            hint: Some(REACH.to_owned()),
            ..ChatError::new(
                &self.setup.conversation_id,
                Some(&self.setup.message_id),
                ChatCode::SandboxViolation,
                &violation.message,
            )
        }
    }
}

/// Says with which input of the user's a call ran, without secrets: first these go, then what is too long.
fn shown_edit(input: Map<String, Value>, redactor: &Redactor) -> String {
    let input = Value::Object(input).to_string();
    let mut input = redactor.redact(&input).into_owned();
    if input.len() > SHOWN_EDIT {
        input.truncate(input.floor_char_boundary(SHOWN_EDIT));
        input.push('…');
    }
    format!("\n[the user changed the input of this call; it ran with {input}]")
}

impl Calls<'_> {
    async fn run(
        &self,
        call: ToolCall,
        fault: Option<Fault>,
        repeated: u32,
        place: Place,
    ) -> ToolResult {
        let cancel = self.exchange.cancel.child_token();
        let tool = self.tools.get(&call.name);
        self.exchange.open(&call, tool, cancel.clone());
        let clear = self.clear(&call, tool, fault, repeated, place, &cancel);
        let mut edited = None;
        let settled = match AssertUnwindSafe(clear).catch_unwind().await {
            Ok(Ok(cleared)) => {
                edited = (cleared.input != call.input).then(|| cleared.input.clone());
                self.execute(&call, cleared, &cancel).await
            }
            Ok(Err(settled)) => settled,
            Err(_) => Settled::failed(FAULT),
        };
        let mut result = self.exchange.settle(&call, settled);
        if let Some(input) = edited {
            result.content.push(self.exchange.edited(input));
        }
        result
    }

    fn violate(&self, call: &ToolCall, violation: Violation) -> Settled {
        self.rule(call, Ruling::refused(By::Sandbox));
        let mut violations = self.violations.lock();
        violations.count += 1;
        let count = violations.count;
        if self.exchange.setup.on_violation == OnViolation::Error && count < MAX_VIOLATIONS {
            return Settled::denied(format!(
                "{}; {REACH}. This is violation {count} of {MAX_VIOLATIONS}: the last one ends the exchange",
                violation.message
            ));
        }
        let settled = Settled::denied(violation.message.clone());
        violations.ends.get_or_insert(violation);
        settled
    }

    fn rule(&self, call: &ToolCall, ruling: Ruling) {
        self.exchange.session.executions.rule(&call.id, ruling);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_edited_input_is_cut_after_its_secrets_are_out() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let overhead = "{\"command\":\"".len();
        let mut input = Map::new();
        let before = "x".repeat(SHOWN_EDIT - overhead - 10);
        input.insert(
            "command".to_owned(),
            json!(format!("{before}hunter2-hunter2 after")),
        );
        let shown = shown_edit(input, &redactor);
        assert!(shown.ends_with("x[redacted]…]"), "{shown}");
    }
}

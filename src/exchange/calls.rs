//! The calls of a turn, side by side. Each is answered, whatever happens.
//!
//! Nothing here fails: whatever goes wrong is the call's result. The one thing that reaches beyond
//! the call is a violation, which may end the exchange when the other calls of the turn have ended.
//! A call's way is `permit` (with `question` where the user is asked), then `run`, then `settle`.

mod hooked;
pub(super) mod host;
mod order;
mod permit;
mod programs;
mod question;
mod run;
mod sampling;
mod settle;
mod shown;
mod task;
mod user;

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tracing::Instrument as _;

use super::accumulator::Fault;
use super::context::Context;
use super::offer::{ToolOffer, tool_of};
use super::tasks::MAX_PARALLEL;
use super::turn::TurnRequest;
use super::{Exchange, Leave};
use crate::audit::{By, Ruling};
use crate::message::{Danger, Message, OnViolation, Part, ToolCall, ToolResult};
use crate::protocol::ChatCode;
use crate::protocol::event::{ChatError, StopReason};
use crate::telemetry::Redactor;
use crate::tool::{Facts, Metadata, Output, Prepared, ToolSet, Violation};

use order::Place;
pub(super) use settle::cancelled;
pub(crate) use settle::{audit_interrupted, settle_open};
use settle::{denied, failed};

/// The result of a tool that panicked.
pub(super) const FAULT: &str = "the tool failed by a fault of its own; see the log";

/// Says what paths may name.
const REACH: &str = "tools reach only the project and its central storage, less the deny list";

/// Most violations of one exchange, the last of which ends it though the model may read them: it cannot find out by
/// trying what is outside.
const MAX_VIOLATIONS: u32 = 3;

/// Most bytes of an edited input that the model is shown: it says what ran, and is no copy of a file.
const SHOWN_EDIT: usize = 16 * 1024;

struct Calls<'a> {
    exchange: &'a Exchange<'a>,
    turn: u32,
    tools: &'a ToolSet,
    /// Those that may run at once.
    slots: Semaphore,
    /// Tasks that may run at once.
    tasks: Semaphore,
    /// Held by the one call of the turn that may write any file, or waits for that.
    tree: tokio::sync::Mutex<()>,
    violations: Mutex<Violations>,
}

/// Calls whose path left the roots or is denied.
#[derive(Default)]
struct Violations {
    count: u32,
    ends: Option<Violation>,
}

/// A call whose input was parsed, and which may run once it was decided.
struct Permitted {
    prepared: Box<dyn Prepared>,
    facts: Facts,
    /// How much harm it may do, for whoever is asked.
    danger: Danger,
    /// What its input was changed to, and by whom.
    edited: Option<Edit>,
    /// What hooks had to say of it.
    notes: Vec<String>,
    /// Whether the user was asked for it and lets it run.
    approved: bool,
}

/// An input in the place of the model's.
#[derive(Clone)]
struct Edit {
    input: Map<String, Value>,
    by: Editor,
}

/// Who changed an input last.
#[derive(Clone, PartialEq, Eq)]
enum Editor {
    User,
    /// The hook of this name.
    Hook(String),
}

impl Exchange<'_> {
    /// Runs the calls of a turn side by side and remembers their results in the order of the calls.
    pub(super) async fn run_calls(
        &mut self,
        request: &TurnRequest,
        calls: Vec<ToolCall>,
        faults: Vec<Option<Fault>>,
    ) -> Result<(), Leave> {
        self.count_calls(calls.len());
        let shared = self.calls(request.turn, &request.offer.tools);
        let places = Place::in_order(&calls);
        let running = calls.into_iter().zip(faults).zip(places);
        let running = running.map(|((call, fault), place)| {
            let repeated = self.context.conversation.repeats.count(&call);
            let span = span_of(self.context, &call);
            shared.handle(call, fault, repeated, place).instrument(span)
        });
        let results = futures::future::join_all(running).await;
        let violations = shared.violations.into_inner();
        self.progress.violations = violations.count;
        let results: Vec<Message> = results.into_iter().map(Message::ToolResult).collect();
        for result in results {
            self.transcript.record(result);
        }
        self.unless_violated(violations)
    }

    /// Runs a call that no model made. An error says why the exchange ends with it.
    pub(super) async fn run_call(
        &mut self,
        offer: &ToolOffer,
        call: ToolCall,
    ) -> (ToolResult, Result<(), Leave>) {
        self.count_calls(1);
        let shared = self.calls(0, &offer.tools);
        let span = span_of(self.context, &call);
        let running = shared.handle(call, None, 1, Place::alone());
        let result = running.instrument(span).await;
        let violations = shared.violations.into_inner();
        (result, self.unless_violated(violations))
    }

    fn calls<'a>(&'a self, turn: u32, tools: &'a ToolSet) -> Calls<'a> {
        Calls {
            exchange: self,
            turn,
            tools,
            slots: Semaphore::new(self.context.services.config().tools.max_concurrent.max(1)),
            tasks: Semaphore::new(MAX_PARALLEL as usize),
            tree: tokio::sync::Mutex::default(),
            violations: Mutex::new(Violations {
                count: self.progress.violations,
                ends: None,
            }),
        }
    }

    fn unless_violated(&self, violations: Violations) -> Result<(), Leave> {
        match violations.ends {
            Some(Violation { message }) => {
                let error = ChatError {
                    hint: Some(REACH.to_owned()),
                    ..self.setup.error(ChatCode::SandboxViolation, message)
                };
                Err(Leave::Failed(StopReason::SandboxViolation, Box::new(error)))
            }
            None => Ok(()),
        }
    }

    fn count_calls(&mut self, calls: usize) {
        self.progress.tool_calls += u32::try_from(calls).unwrap_or(u32::MAX);
    }

    pub(super) fn refuse_calls(&mut self, calls: &[ToolCall], reason: &str, metadata: &Metadata) {
        self.count_calls(calls.len());
        for call in calls {
            let tool = tool_of(self.context, &call.name);
            self.open_record(call, tool.as_ref(), self.cancel.child_token());
            let output = Output::error(reason).with(metadata.clone());
            let span = span_of(self.context, call);
            let result = span.in_scope(|| self.settle(call, output, None));
            self.transcript.record(Message::ToolResult(result));
        }
    }
}

/// Returns a call's span; what the model wrote is not in it.
fn span_of(context: &Context, call: &ToolCall) -> tracing::Span {
    tracing::info_span!("call", tool_id = %call.id, tool = known(context, &call.name))
}

/// Returns the name of a tool, where there is one of this name.
fn known<'n>(context: &Context, name: &'n str) -> &'n str {
    match tool_of(context, name).is_some() {
        true => name,
        false => "unknown",
    }
}

/// Returns an input as text for the model: without secrets, and then without what is too long.
pub(super) fn shown_input(input: Map<String, Value>, redactor: &Redactor) -> String {
    let input = Value::Object(input).to_string();
    let mut input = redactor.redact(&input).into_owned();
    if input.len() > SHOWN_EDIT {
        input.truncate(input.floor_char_boundary(SHOWN_EDIT));
        input.push('…');
    }
    input
}

/// Says with which input a call ran that is not the model's, without secrets: first these go, then what is too long. The call itself
/// stays as the model made it, since providers sign what a model wrote.
fn shown_edit(edit: Edit, redactor: &Redactor) -> String {
    let input = shown_input(edit.input, redactor);
    let by = match edit.by {
        Editor::User => "the user",
        Editor::Hook(_) => "a hook of the operator",
    };
    format!("\n[{by} changed the input of this call; it ran with {input}]")
}

impl Calls<'_> {
    /// Returns the result of one call, which runs where it may.
    async fn handle(
        &self,
        call: ToolCall,
        fault: Option<Fault>,
        repeated: u32,
        place: Place,
    ) -> ToolResult {
        let cancel = self.exchange.cancel.child_token();
        let tool = self.tools.get(&call.name);
        self.exchange.open_record(&call, tool, cancel.clone());
        let permit = async {
            match fault {
                Some(fault) => Err(failed(permit::reason(fault))),
                None => self.permit(&call, tool, repeated, &place, &cancel).await,
            }
        };
        let mut edited = None;
        let permitted = AssertUnwindSafe(permit).catch_unwind().await;
        place.asked();
        let (output, ran) = match permitted {
            Ok(Ok(mut permitted)) => {
                edited.clone_from(&permitted.edited);
                let notes = std::mem::take(&mut permitted.notes);
                let (mut output, ran) = self.run(&call, permitted, place, &cancel).await;
                if ran.is_some() {
                    let input = edited.as_ref().map_or(&call.input, |edit| &edit.input);
                    output = self.after_tool(&call, input, output, &cancel).await;
                    let notes = notes
                        .into_iter()
                        .map(|note| Part::text(format!("\n{note}")));
                    output.content.extend(notes);
                }
                (output, ran)
            }
            Ok(Err(unrun)) => (*unrun, None),
            Err(_) => (*failed(FAULT), None),
        };
        let mut result = self.exchange.settle(&call, output, ran);
        if let Some(edit) = edited {
            let redactor = &self.exchange.context.services.redactor;
            result.content.push(Part::text(shown_edit(edit, redactor)));
        }
        result
    }

    fn violate(&self, call: &ToolCall, violation: Violation) -> Box<Output> {
        self.record_ruling(call, Ruling::refused(By::Sandbox));
        let mut violations = self.violations.lock();
        violations.count += 1;
        let count = violations.count;
        if self.exchange.setup.on_violation == OnViolation::Error && count < MAX_VIOLATIONS {
            return denied(format!(
                "{}; {REACH}. This is violation {count} of {MAX_VIOLATIONS}: the last one ends the exchange",
                violation.message
            ));
        }
        let output = denied(violation.message.clone());
        violations.ends.get_or_insert(violation);
        output
    }

    fn record_ruling(&self, call: &ToolCall, ruling: Ruling) {
        let executions = &self.exchange.context.session.executions;
        executions.rule(&call.id, ruling);
    }
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
        let by = Editor::User;
        let shown = shown_edit(Edit { input, by }, &redactor);
        assert!(shown.ends_with("x[redacted]…]"), "{shown}");
    }
}

//! A call that may run: it waits for a slot and for its files, runs under a clock, and its output is streamed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settle::{cancelled_unrun, text_of};
use super::user::User;
use super::{Calls, FAULT, Permitted};
use crate::exchange::Exchange;
use crate::exchange::recording::{CleanOutput, Recorder};
use crate::exchange::stopwatch::Stopwatch;
use crate::message::{ToolCall, ToolId};
use crate::permission::scope::Grant;
use crate::protocol::event::{Event, State, StateName, ToolDelta, ToolStart};
use crate::protocol::record::ExecutionStatus;
use crate::telemetry::{Unit, metrics};
use crate::tool::{Facts, Output, OutputStream, Run};
use crate::units::millis;

/// How long a tool may take to end by itself after it was cancelled; then its future is dropped.
const END_GRACE: Duration = Duration::from_secs(10);

impl Calls<'_> {
    /// Waits for a slot and for the files, then runs the call; returns what came of it, and how long it ran.
    pub(super) async fn run(
        &self,
        call: &ToolCall,
        permitted: Permitted,
        cancel: &CancellationToken,
    ) -> (Output, Option<Duration>) {
        let queued = Instant::now();
        let waits = metrics::QUEUED_CALLS.enter();
        let Some(slot) = self.slot(call, cancel).await else {
            return (*cancelled_unrun(), None);
        };
        let claims = permitted.prepared.claims();
        let locks = &self.exchange.context.services.locks;
        let blockers = locks.blockers(&claims);
        if !blockers.is_empty() {
            self.queued(call, format!("waits for {}", blockers.join(", ")));
        }
        let holder = format!("{} {}", call.id, call.name);
        let Some(files) = cancel
            .run_until_cancelled(locks.acquire(&holder, claims))
            .await
        else {
            return (*cancelled_unrun(), None);
        };
        drop(waits);
        let _counted = metrics::RUNNING_CALLS.enter();
        let executions = &self.exchange.context.session.executions;
        executions.update(&call.id, |record| {
            record.queued_ms = millis(queued.elapsed());
            record.status = ExecutionStatus::Running;
            if let Some(edited) = &permitted.edited {
                record.input.clone_from(edited);
            }
        });
        let (output, ran) = self.execute(call, permitted, cancel).await;
        drop(files);
        drop(slot);
        (output, Some(ran))
    }

    /// Takes a slot (`tools.max_concurrent`), waiting for it as long as others run: a call that was approved runs. `None` on a cancel.
    /// What holds a slot may wait for files, but what waits for a slot holds none.
    async fn slot(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Option<SemaphorePermit<'_>> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Some(slot);
        }
        self.queued(call, "waits for other calls of this turn".to_owned());
        let slot = cancel.run_until_cancelled(self.slots.acquire()).await;
        slot.and_then(Result::ok)
    }

    fn queued(&self, call: &ToolCall, reason: String) {
        self.exchange.emit(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            reason: Some(reason),
            ..self.exchange.state(StateName::ToolQueued)
        }));
    }

    async fn execute(
        &self,
        call: &ToolCall,
        permitted: Permitted,
        cancel: &CancellationToken,
    ) -> (Output, Duration) {
        let exchange = self.exchange;
        tracing::debug!("call runs");
        exchange.emit(Event::ChatToolStart(ToolStart {
            conversation_id: exchange.setup.conversation_id.clone(),
            message_id: exchange.setup.message_id.clone(),
            turn: self.turn,
            tool_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: permitted.edited.unwrap_or_else(|| call.input.clone()),
        }));
        exchange.emit_call_state(&call.id, StateName::ToolExecuting);
        let streamed = CallOutput::new(exchange, &call.id);
        let emit = |stream, chunk: &str| streamed.push(stream, chunk);
        let grant = self.grant(call);
        let timeout = self.timeout(grant.as_ref(), &permitted.facts);
        let clock = Stopwatch::start(timeout.saturating_add(END_GRACE));
        let user = User {
            exchange,
            tool_id: &call.id,
            clock: &clock,
        };
        let run = Run {
            emit: &emit,
            cancel: cancel.clone(),
            timeout,
            seen: &exchange.context.conversation.seen,
            redactor: &exchange.context.services.redactor,
            quota: &exchange.context.session.quota,
            visible: Arc::new(move |path| grant.as_ref().is_some_and(|grant| grant.shows(path))),
            user: Some(&user),
        };
        let began = Instant::now();
        let work = AssertUnwindSafe(permitted.prepared.run(run)).catch_unwind();
        // What is dropped here takes its questions back: they are over before their call is answered.
        let outcome = tokio::select! {
            outcome = work => outcome.unwrap_or_else(|_| Ok(Output::error(FAULT))),
            () = overdue(&clock, cancel) => {
                Ok(Output::error("the tool did not end in time and was given up"))
            }
        };
        let output = outcome.unwrap_or_else(|violation| *self.violate(call, violation));
        streamed.finish(&output);
        (output, began.elapsed())
    }

    fn grant(&self, call: &ToolCall) -> Option<Grant> {
        let spec = self.tools.get(&call.name)?.spec();
        let scope = &self.exchange.setup.scope;
        scope.grant(&spec.name, spec.danger_level)
    }

    /// Returns how long the call may run: what it asks for, or the default, up to the permission's cap.
    fn timeout(&self, grant: Option<&Grant>, facts: &Facts) -> Duration {
        let default = self.exchange.context.services.config.tools.timeout;
        let wanted = facts.timeout.unwrap_or(default);
        let cap = grant.and_then(Grant::timeout);
        cap.map_or(wanted, |cap| wanted.min(cap))
    }
}

/// Waits until a tool should long have ended: by its clock, or after a cancel.
async fn overdue(clock: &Stopwatch, cancel: &CancellationToken) {
    if cancel.run_until_cancelled(clock.expired()).await.is_none() {
        tokio::time::sleep(END_GRACE).await;
    }
}

/// The output of a running call: streamed to the client as it comes, and kept whole for `tool:output`.
struct CallOutput<'a> {
    exchange: &'a Exchange<'a>,
    tool_id: &'a ToolId,
    /// What is kept, and what the client is shown. Held for one piece of output, never across an await.
    streams: Mutex<(Recorder, CleanOutput)>,
}

impl<'a> CallOutput<'a> {
    fn new(exchange: &'a Exchange<'a>, tool_id: &'a ToolId) -> Self {
        let services = &exchange.context.services;
        let recorder = Recorder::new(&services.spill, &services.redactor);
        let executions = &exchange.context.session.executions;
        executions.keep(tool_id, Arc::clone(&recorder.recording));
        let live = CleanOutput::new(&services.redactor, Unit::Word);
        Self {
            exchange,
            tool_id,
            streams: Mutex::new((recorder, live)),
        }
    }

    fn push(&self, stream: OutputStream, chunk: &str) {
        let mut streams = self.streams.lock();
        let (recorder, live) = &mut *streams;
        recorder.push(stream, chunk);
        self.show(stream, live.push(stream, chunk));
    }

    /// Shows what was held back, and ends the recording of what came to `output`.
    fn finish(self, output: &Output) {
        let rest = self.streams.lock().1.finish();
        for (stream, chunk) in rest {
            self.show(stream, chunk);
        }
        // A command that wrote nothing has no output, whatever the result says of that.
        let text = text_of(&output.content);
        let result = (output.metadata.total_bytes != Some(0)).then_some(&*text);
        let (recorder, _) = self.streams.into_inner();
        recorder.finish(result);
    }

    fn show(&self, stream: OutputStream, chunk: String) {
        if chunk.is_empty() {
            return;
        }
        let setup = self.exchange.setup;
        let delta = ToolDelta {
            conversation_id: setup.conversation_id.clone(),
            message_id: setup.message_id.clone(),
            tool_id: self.tool_id.clone(),
            chunk,
            stream,
        };
        self.exchange.emit(Event::ChatToolDelta(delta));
    }
}

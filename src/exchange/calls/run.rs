//! A call that may run: it waits for a permit and for its files, and runs under a clock.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::output::CallOutput;
use super::settle::Settled;
use super::user::User;
use super::{Calls, Cleared, FAULT, millis};
use crate::exchange::stopwatch::Stopwatch;
use crate::message::ToolCall;
use crate::protocol::event::{Event, State, StateName, ToolStart};
use crate::protocol::record::ExecutionStatus;
use crate::telemetry::metrics;
use crate::tool::{Facts, Output, Run, Visible};

/// How long a tool may take to end by itself after it was cancelled; then its future is dropped.
const END_GRACE: Duration = Duration::from_secs(10);

impl Calls<'_> {
    /// Waits for a permit and for the files, then runs the call.
    pub(super) async fn run_cleared(
        &self,
        call: &ToolCall,
        cleared: Cleared,
        cancel: &CancellationToken,
    ) -> Settled {
        let queued = Instant::now();
        let waits = metrics::QUEUED_CALLS.enter();
        let Some(slot) = self.slot(call, cancel).await else {
            return Settled::cancelled();
        };
        let claims = cleared.prepared.claims();
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
            return Settled::cancelled();
        };
        drop(waits);
        let _counted = metrics::RUNNING_CALLS.enter();
        let executions = &self.exchange.context.session.executions;
        executions.update(&call.id, |record| {
            record.queued_ms = millis(queued.elapsed());
            record.status = ExecutionStatus::Running;
            record.input.clone_from(&cleared.input);
        });
        let settled = self.run_tool(call, cleared, cancel).await;
        drop(files);
        drop(slot);
        settled
    }

    /// Takes a permit to run, waiting for it as long as others run: a call that was approved runs. `None` on a cancel.
    /// What holds a permit may wait for files, but what waits for a permit holds none.
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

    /// Runs the tool until it ends or is given up; its output is streamed.
    async fn run_tool(
        &self,
        call: &ToolCall,
        cleared: Cleared,
        cancel: &CancellationToken,
    ) -> Settled {
        let exchange = self.exchange;
        tracing::debug!("call runs");
        exchange.emit(Event::ChatToolStart(ToolStart {
            conversation_id: exchange.setup.conversation_id.clone(),
            message_id: exchange.setup.message_id.clone(),
            turn: self.turn,
            tool_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: cleared.input,
        }));
        exchange.emit(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            ..exchange.state(StateName::ToolExecuting)
        }));
        let streamed = CallOutput::new(exchange, &call.id);
        let emit = |stream, chunk: &str| streamed.push(stream, chunk);
        let timeout = self.timeout(call, &cleared.facts);
        let clock = Stopwatch::start(timeout.saturating_add(END_GRACE));
        let user = User::new(exchange, &call.id, &clock);
        let run = Run {
            emit: &emit,
            cancel: cancel.clone(),
            timeout,
            seen: &exchange.context.conversation.seen,
            redactor: &exchange.context.services.redactor,
            quota: &exchange.context.session.quota,
            visible: self.visible(call),
            user: Some(&user),
        };
        let began = Instant::now();
        let work = AssertUnwindSafe(cleared.prepared.run(run)).catch_unwind();
        let outcome = tokio::select! {
            outcome = work => match outcome {
                Ok(Ok(output)) => Ok(output),
                Ok(Err(violation)) => Err(violation),
                Err(_) => Ok(Output::error(FAULT)),
            },
            () = overdue(&clock, cancel) => {
                Ok(Output::error("the tool did not end in time and was given up"))
            }
        };
        // A question is over before its call is answered, here as everywhere.
        user.withdraw().await;
        let output = match outcome {
            Ok(output) => Box::new(output),
            Err(violation) => self.violate(call, violation).output,
        };
        streamed.finish(&output);
        Settled {
            status: status(&output),
            output,
            ran: Some(began.elapsed()),
        }
    }

    /// Returns what a call that looks through folders may see by the scope.
    fn visible(&self, call: &ToolCall) -> Visible {
        let scope = &self.exchange.setup.scope;
        let grant = self.tools.get(&call.name).and_then(|tool| {
            let spec = tool.spec();
            scope.grant(&spec.name, spec.danger_level)
        });
        Arc::new(move |path| grant.as_ref().is_some_and(|grant| grant.shows(path)))
    }

    /// Returns how long the call may run: what it asks for, or the default, up to the permission's cap.
    fn timeout(&self, call: &ToolCall, facts: &Facts) -> Duration {
        let wanted = facts
            .timeout
            .unwrap_or(self.exchange.context.services.config.tools.timeout);
        self.tools
            .get(&call.name)
            .and_then(|tool| {
                let spec = tool.spec();
                let scope = &self.exchange.setup.scope;
                scope.grant(&spec.name, spec.danger_level)?.timeout()
            })
            .map_or(wanted, |cap| wanted.min(cap))
    }
}

/// Waits until a tool should long have ended: by its clock, or after a cancel.
async fn overdue(clock: &Stopwatch, cancel: &CancellationToken) {
    if cancel.run_until_cancelled(clock.expired()).await.is_none() {
        tokio::time::sleep(END_GRACE).await;
    }
}

fn status(output: &Output) -> ExecutionStatus {
    match output {
        Output { metadata, .. } if metadata.cancelled => ExecutionStatus::Cancelled,
        Output { metadata, .. } if metadata.denied => ExecutionStatus::Denied,
        Output { is_error: true, .. } => ExecutionStatus::Error,
        Output { .. } => ExecutionStatus::Success,
    }
}

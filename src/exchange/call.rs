//! One tool call: prepared, judged, asked for, queued, run, and answered. It always is answered.
//!
//! Nothing here fails: whatever goes wrong is the call's result. The one thing that reaches beyond
//! the call is a violation, which ends the other calls of the turn and then the exchange.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::accumulator::Fault;
use super::ask::{Ask, Question, Verdict};
use super::stream::cancelled;
use super::{Exchange, Leave, Progress};
use crate::config::Unattended;
use crate::message::{
    Danger, DangerLevel, Message, Part, ToolCall, ToolCategory, ToolId, ToolResult,
};
use crate::permission::decision::{Rules, decide};
use crate::permission::{Decision, Subject};
use crate::protocol::ChatCode;
use crate::protocol::event::{
    ChatError, Event, Outcome, ResultStatus, State, StateName, ToolConfirm, ToolDelta, ToolOutcome,
    ToolStart,
};
use crate::protocol::record::{Approval, ExecutionRecord, ExecutionStatus, Resources};
use crate::tool::{Facts, Metadata, Output, Prepared, Refusal, Run, Tool, ToolSet, Violation};

/// What the model is told of a tool that panicked.
const FAULT: &str = "the tool failed by a fault of its own; see the log";

/// How long a tool may take to end by itself after it was told to; then its future is dropped.
const END_GRACE: Duration = Duration::from_secs(10);

/// The calls of one turn.
struct Calls<'a> {
    exchange: &'a Exchange<'a>,
    turn: u32,
    tools: &'a ToolSet,
    /// How many may run at once.
    slots: Semaphore,
    waiting: AtomicUsize,
    /// Ends all calls of the turn.
    abort: CancellationToken,
    violation: Mutex<Option<Violation>>,
}

/// A call that may run.
struct Cleared {
    prepared: Box<dyn Prepared>,
    facts: Facts,
    input: Map<String, Value>,
}

/// What a call that did not run, or ran, came to.
struct Settled {
    output: Box<Output>,
    status: ExecutionStatus,
    duration: Duration,
}

impl Settled {
    fn unrun(text: impl Into<String>, status: ExecutionStatus, metadata: Metadata) -> Self {
        Self {
            output: Box::new(Output::error(text).with(metadata)),
            status,
            duration: Duration::ZERO,
        }
    }

    fn failed(text: impl Into<String>) -> Self {
        Self::unrun(text, ExecutionStatus::Error, Metadata::default())
    }

    fn denied(text: impl Into<String>) -> Self {
        let metadata = Metadata {
            denied: true,
            ..Metadata::default()
        };
        Self::unrun(text, ExecutionStatus::Denied, metadata)
    }

    fn cancelled() -> Self {
        Self::unrun(
            "cancelled before it ran",
            ExecutionStatus::Cancelled,
            cancelled(),
        )
    }
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
            waiting: AtomicUsize::new(0),
            abort: self.cancel.child_token(),
            violation: Mutex::new(None),
        };
        let running = calls.into_iter().zip(faults).map(|(call, fault)| {
            let repeated = progress.count_repeats(&call);
            shared.run(call, fault, repeated)
        });
        let results = futures::future::join_all(running).await;
        let violation = shared
            .violation
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let results: Vec<Message> = results.into_iter().map(Message::ToolResult).collect();
        progress.budget.injected(&results);
        for result in results {
            self.remember(result);
        }
        violation.map(|violation| Leave::Violated(self.violated(&violation)))
    }

    /// Answers calls that will not run.
    pub(super) fn refuse_calls(&self, calls: &[ToolCall], reason: &str, metadata: &Metadata) {
        let status = if metadata.cancelled {
            ExecutionStatus::Cancelled
        } else {
            ExecutionStatus::Error
        };
        for call in calls {
            self.open(call, None, self.cancel.child_token());
            let settled = Settled::unrun(reason, status, metadata.clone());
            let result = self.settle(call, settled);
            self.remember(Message::ToolResult(result));
        }
    }

    /// Takes up the record of a call.
    fn open(&self, call: &ToolCall, tool: Option<&Arc<dyn Tool>>, cancel: CancellationToken) {
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
            started_at: crate::protocol::envelope::timestamp(),
        };
        self.session.executions.open(record, cancel);
    }

    /// Tells the client and the record what a call came to, and makes the model's result of it.
    fn settle(&self, call: &ToolCall, settled: Settled) -> ToolResult {
        let Settled {
            mut output,
            status,
            duration,
        } = settled;
        self.redact(&mut output);
        let duration_ms = millis(duration);
        let text = text_of(&output.content);
        self.session.executions.settle(&call.id, |record| {
            record.status = status;
            record.duration_ms = duration_ms;
            record.exit_code = output.metadata.exit_code;
            // A call that did not run has no output; its text is ours.
            let said = if duration.is_zero() { 0 } else { text.len() };
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

    /// Takes known secrets out of what a tool returned, for model and client alike.
    fn redact(&self, output: &mut Output) {
        for part in &mut output.content {
            if let Part::Text { text } = part
                && let Cow::Owned(redacted) = self.services.redactor.redact(text)
            {
                *text = redacted;
            }
        }
    }

    fn violated(&self, violation: &Violation) -> ChatError {
        ChatError {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: Some(self.setup.message_id.clone()),
            code: ChatCode::SandboxViolation,
            message: violation.message.clone(),
            hint: Some(
                "tools reach only the project and its central storage, less the deny list"
                    .to_owned(),
            ),
            retryable: false,
            http_status: None,
            retry_after_ms: None,
            provider: None,
        }
    }
}

impl Progress {
    /// Counts how often in a row this very call was made, this one included.
    fn count_repeats(&mut self, call: &ToolCall) -> u32 {
        let count = match &self.repeated {
            Some((name, input, count)) if *name == call.name && *input == call.input => count + 1,
            _ => 1,
        };
        self.repeated = Some((call.name.clone(), call.input.clone(), count));
        count
    }
}

impl Calls<'_> {
    async fn run(&self, call: ToolCall, fault: Option<Fault>, repeated: u32) -> ToolResult {
        let cancel = self.abort.child_token();
        let tool = self.tools.get(&call.name);
        self.exchange.open(&call, tool, cancel.clone());
        let clear = self.clear(&call, tool, fault, repeated, &cancel);
        let settled = match AssertUnwindSafe(clear).catch_unwind().await {
            Ok(Ok(cleared)) => self.execute(&call, cleared, &cancel).await,
            Ok(Err(settled)) => settled,
            Err(_) => Settled::failed(FAULT),
        };
        self.exchange.settle(&call, settled)
    }

    /// Finds out whether the call may run, asking the user where need be.
    async fn clear(
        &self,
        call: &ToolCall,
        tool: Option<&Arc<dyn Tool>>,
        fault: Option<Fault>,
        repeated: u32,
        cancel: &CancellationToken,
    ) -> Result<Cleared, Settled> {
        match fault {
            Some(Fault::Truncated) => {
                return Err(Settled::failed(
                    "this call was cut off before its input was complete, and was not run; make the input smaller and call again",
                ));
            }
            Some(Fault::Invalid(reason)) => {
                return Err(Settled::failed(format!(
                    "the input of this call is not a JSON object, so it was not run: {reason}"
                )));
            }
            None => {}
        }
        let tool = tool.ok_or_else(|| self.unknown(&call.name))?;
        let cleared = self.prepare(tool, call.input.clone())?;
        match self.decide(call, tool, &cleared, repeated) {
            Decision::Run => Ok(cleared),
            Decision::Refuse(reason) => Err(Settled::denied(format!("not allowed: {reason}"))),
            Decision::Ask(reason) => {
                if self.exchange.services.config.approval.unattended == Unattended::Deny {
                    return Err(Settled::denied(format!(
                        "not allowed: {reason}, and nobody is there to answer; do without this call"
                    )));
                }
                self.ask(call, tool, cleared, reason, cancel).await
            }
        }
    }

    fn unknown(&self, name: &str) -> Settled {
        let known: Vec<&str> = self
            .tools
            .values()
            .map(|tool| tool.spec())
            .filter(|spec| self.exchange.setup.scope.allows(spec))
            .map(|spec| spec.name.as_str())
            .collect();
        Settled::failed(format!(
            "there is no tool `{name}`; the tools are {}",
            known.join(", ")
        ))
    }

    fn prepare(&self, tool: &Arc<dyn Tool>, input: Map<String, Value>) -> Result<Cleared, Settled> {
        match tool.prepare(&input) {
            Ok(prepared) => Ok(Cleared {
                facts: prepared.facts(),
                prepared,
                input,
            }),
            Err(Refusal::Invalid(reason)) => Err(Settled::failed(reason)),
            Err(Refusal::Violation(violation)) => Err(self.violate(violation)),
        }
    }

    fn violate(&self, violation: Violation) -> Settled {
        let settled = Settled::denied(violation.message.clone());
        *self
            .violation
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(violation);
        self.abort.cancel();
        settled
    }

    fn decide(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: &Cleared,
        repeated: u32,
    ) -> Decision {
        let config = &self.exchange.services.config;
        let remembered = &self.exchange.conversation.remembered;
        let facts = &cleared.facts;
        self.exchange
            .session
            .executions
            .update(&call.id, |record| record.danger = facts.danger.clone());
        let subject = Subject {
            tool: tool.spec(),
            danger: &facts.danger,
            paths: &facts.paths,
            commands: &facts.commands,
            plain: facts.plain,
            network: facts.network,
            remembered: facts
                .remember
                .as_ref()
                .is_some_and(|key| remembered.holds(key)),
            repeated,
        };
        let rules = Rules {
            trust: self.exchange.setup.trust,
            auto_approve_safe_commands: config.approval.auto_approve_safe_commands,
            network: config.tools.bash.network,
        };
        decide(&subject, &self.exchange.setup.scope, rules)
    }

    async fn ask(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: Cleared,
        reason: String,
        cancel: &CancellationToken,
    ) -> Result<Cleared, Settled> {
        let exchange = self.exchange;
        let _pause = exchange.stopwatch.pause();
        let asked = Instant::now();
        let (verdict, answer) = oneshot::channel();
        let preview = cleared.prepared.preview().await;
        exchange.events().send(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            ..exchange.state(StateName::AwaitingApproval)
        }));
        let ask = Ask {
            confirm: ToolConfirm {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: cleared.input.clone(),
                danger: cleared.facts.danger.clone(),
                reason,
                preview,
                expires_at: None,
            },
            tool: Arc::clone(tool),
            remember: cleared.facts.remember.clone(),
            verdict,
        };
        let question = Question::Ask(Box::new(ask));
        let verdict = match exchange.asks.send(question).await {
            Ok(()) => tokio::select! {
                biased;
                verdict = answer => verdict.unwrap_or(Verdict::Cancelled),
                () = cancel.cancelled() => self.withdraw(&call.id).await,
            },
            Err(_) => Verdict::Cancelled,
        };
        exchange.session.executions.update(&call.id, |record| {
            record.approval = Approval {
                asked: true,
                outcome: Some(outcome(&verdict)),
                waited_ms: millis(asked.elapsed()),
            };
        });
        self.judge(call, tool, cleared, verdict)
    }

    /// Takes a question back and waits until it is settled.
    async fn withdraw(&self, tool_id: &ToolId) -> Verdict {
        let (settled, done) = oneshot::channel();
        let question = Question::Withdraw {
            tool_id: tool_id.clone(),
            settled,
        };
        if self.exchange.asks.send(question).await.is_ok() {
            // An error means that it was settled before.
            drop(done.await);
        }
        Verdict::Cancelled
    }

    /// Makes of a verdict a call that runs, or its refusal.
    fn judge(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: Cleared,
        verdict: Verdict,
    ) -> Result<Cleared, Settled> {
        match verdict {
            Verdict::Approved(None) => Ok(cleared),
            Verdict::Approved(Some(input)) => {
                let edited = self.prepare(tool, input)?;
                // The user wrote it, so nothing is asked again; what is refused stays refused.
                match self.decide(call, tool, &edited, 1) {
                    Decision::Refuse(reason) => {
                        Err(Settled::denied(format!("not allowed as edited: {reason}")))
                    }
                    Decision::Run | Decision::Ask(_) => Ok(edited),
                }
            }
            Verdict::Denied(reason) => Err(Settled::denied(match reason {
                Some(reason) => format!("the user denied this call: {reason}"),
                None => "the user denied this call; do not try it again another way, ask or go on without it".to_owned(),
            })),
            Verdict::Expired => Err(Settled::unrun(
                "nobody answered in time whether this call may run, so it was not run",
                ExecutionStatus::Denied,
                Metadata {
                    expired: true,
                    ..Metadata::default()
                },
            )),
            Verdict::Cancelled => Err(Settled::cancelled()),
        }
    }

    /// Waits for a place and for the files, then runs the call.
    async fn execute(
        &self,
        call: &ToolCall,
        cleared: Cleared,
        cancel: &CancellationToken,
    ) -> Settled {
        let queued = Instant::now();
        let Some(slot) = self.slot(call, cancel).await else {
            return match cancel.is_cancelled() {
                true => Settled::cancelled(),
                false => Settled::failed(format!(
                    "too many calls wait already (tools.max_queued = {}), so this one was not run",
                    self.exchange.services.config.tools.max_queued
                )),
            };
        };
        let claims = cleared.prepared.claims();
        let locks = &self.exchange.services.locks;
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
        self.exchange.session.executions.update(&call.id, |record| {
            record.queued_ms = millis(queued.elapsed());
            record.status = ExecutionStatus::Running;
            record.input.clone_from(&cleared.input);
        });
        let settled = self.perform(call, cleared, cancel).await;
        drop(files);
        drop(slot);
        settled
    }

    /// Takes a place among the running calls; `None` where too many wait, or on a cancel.
    async fn slot(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> Option<SemaphorePermit<'_>> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Some(slot);
        }
        let limit = self.exchange.services.config.tools.max_queued;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= limit {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.queued(call, "waits for other calls of this turn".to_owned());
        let slot = cancel.run_until_cancelled(self.slots.acquire()).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        slot.and_then(Result::ok)
    }

    fn queued(&self, call: &ToolCall, reason: String) {
        self.exchange.events().send(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            reason: Some(reason),
            ..self.exchange.state(StateName::ToolQueued)
        }));
    }

    async fn perform(
        &self,
        call: &ToolCall,
        cleared: Cleared,
        cancel: &CancellationToken,
    ) -> Settled {
        let exchange = self.exchange;
        exchange.events().send(Event::ChatToolStart(ToolStart {
            conversation_id: exchange.setup.conversation_id.clone(),
            message_id: exchange.setup.message_id.clone(),
            turn: self.turn,
            tool_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: cleared.input,
        }));
        exchange.events().send(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            ..exchange.state(StateName::ToolExecuting)
        }));
        let emit = |stream, chunk: &str| {
            exchange.events().send(Event::ChatToolDelta(ToolDelta {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                chunk: exchange.services.redactor.redact(chunk).into_owned(),
                stream,
            }));
        };
        let timeout = self.timeout(call, &cleared.facts);
        let run = Run {
            emit: &emit,
            cancel: cancel.clone(),
            timeout,
            seen: &exchange.conversation.seen,
        };
        let began = Instant::now();
        let work = AssertUnwindSafe(cleared.prepared.run(run)).catch_unwind();
        let outcome = tokio::select! {
            outcome = work => Some(outcome),
            () = overdue(timeout, cancel) => None,
        };
        let output = match outcome {
            Some(Ok(Ok(output))) => Box::new(output),
            Some(Ok(Err(violation))) => self.violate(violation).output,
            Some(Err(_)) => Box::new(Output::error(FAULT)),
            None => Box::new(Output::error(
                "the tool did not end in time and was given up",
            )),
        };
        let status = status(&output);
        Settled {
            output,
            status,
            duration: began.elapsed(),
        }
    }

    /// The longest the call may run: what it asks for, or the default, up to the permission's cap.
    fn timeout(&self, call: &ToolCall, facts: &Facts) -> Duration {
        let wanted = facts
            .timeout
            .unwrap_or(self.exchange.services.config.tools.timeout);
        self.tools
            .get(&call.name)
            .and_then(|tool| {
                let spec = tool.spec();
                let scope = &self.exchange.setup.scope;
                scope.grant(&spec.name, spec.danger_level)?.timeout
            })
            .map_or(wanted, |cap| wanted.min(cap))
    }
}

/// Waits until a tool should long have ended.
async fn overdue(timeout: Duration, cancel: &CancellationToken) {
    let _ = tokio::time::timeout(timeout, cancel.cancelled()).await;
    tokio::time::sleep(END_GRACE).await;
}

fn status(output: &Output) -> ExecutionStatus {
    match output {
        Output { metadata, .. } if metadata.cancelled => ExecutionStatus::Cancelled,
        Output { metadata, .. } if metadata.denied => ExecutionStatus::Denied,
        Output { is_error: true, .. } => ExecutionStatus::Error,
        Output { .. } => ExecutionStatus::Success,
    }
}

fn outcome(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Approved(_) => Outcome::Approved,
        Verdict::Denied(_) => Outcome::Denied,
        Verdict::Expired => Outcome::Expired,
        Verdict::Cancelled => Outcome::Cancelled,
    }
}

fn text_of(content: &[Part]) -> String {
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

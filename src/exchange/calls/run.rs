//! A call that may run: it waits for a slot and for its claims, runs under a clock, and its output is streamed.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{MutexGuard, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::order::Place;
use super::settle::cancelled_unrun;
use super::shown::text_of;
use super::task::{Tasker, shorten};
use super::user::User;
use super::{Calls, FAULT, Permitted};
use crate::exchange::Exchange;
use crate::exchange::background::Detached;
use crate::exchange::recording::{CleanOutput, Recorder};
use crate::exchange::tasks::MAX_PARALLEL;
use crate::message::{DangerLevel, ToolCall, ToolCategory, ToolId};
use crate::permission::scope::Grant;
use crate::protocol::event::{Event, State, StateName, ToolDelta, ToolStart};
use crate::protocol::json_bytes;
use crate::runtime::Stopwatch;
use crate::telemetry::{Unit, metrics};
use crate::tool::background::{Background, Outlet};
use crate::tool::locks::{Holder, Ticket};
use crate::tool::user::AskUser;
use crate::tool::{Begins, Claim, Facts, Known, Output, OutputStream, Run, Slot};
use crate::units::millis;

/// How long a tool may take to end by itself after it was cancelled; then its future is dropped.
const END_GRACE: Duration = Duration::from_secs(10);

/// What a call waits for that cannot be named.
const OTHERS: &str = "waits for other calls of this turn";

/// What is said of a call of which it cannot be kept that it began.
const NOT_KEPT: &str = "not run: the store of sessions does not take it, and another daemon may have this session soon";

/// What a task waits for.
const OTHER_TASKS: &str = "waits for other tasks of this exchange";

/// The beginning of a call, which is known, whatever happens to the daemon, before the call changes anything: it will not be
/// taken for one that did not run.
struct Beginning<'a> {
    calls: &'a Calls<'a>,
    call: &'a ToolCall,
    /// What its input was changed to.
    edited: Option<Map<String, Value>>,
    cancel: &'a CancellationToken,
    /// When it began; it may never.
    began: OnceLock<Instant>,
}

impl Beginning<'_> {
    /// Says that it begins, once.
    fn begin(&self) {
        let Self { calls, call, .. } = self;
        if self.began.set(Instant::now()).is_err() {
            return;
        }
        tracing::debug!("call runs");
        let exchange = calls.exchange;
        exchange.emit(Event::ChatToolStart(ToolStart {
            conversation_id: exchange.setup.conversation_id.clone(),
            message_id: exchange.setup.message_id.clone(),
            turn: calls.turn,
            tool_id: call.id.clone(),
            tool_name: call.name.clone(),
            input: self.edited.as_ref().unwrap_or(&call.input).clone(),
        }));
        exchange.emit_call_state(&call.id, StateName::ToolExecuting);
    }
}

impl Known for Beginning<'_> {
    fn known(&self) -> BoxFuture<'_, Result<(), Box<Output>>> {
        let known = async {
            if self.calls.may_change_something(self.call) {
                let settled = self.calls.exchange.context.session.journal.settled();
                match self.cancel.run_until_cancelled(settled).await {
                    Some(true) => {}
                    Some(false) => return Err(Box::new(Output::error(NOT_KEPT))),
                    None => return Err(cancelled_unrun()),
                }
            }
            self.begin();
            Ok(())
        };
        known.boxed()
    }
}

/// What a call holds while it runs.
#[derive(Default)]
struct Admitted<'a> {
    _place: Option<Place>,
    _claims: Option<Ticket>,
    _slot: Option<SemaphorePermit<'a>>,
    /// The turn's one place among those that may write any file.
    _tree: Option<MutexGuard<'a, ()>>,
}

impl Calls<'_> {
    /// Waits for a slot and for what the call claims, then runs the call; returns what came of it, and how long it ran.
    pub(super) async fn run(
        &self,
        call: &ToolCall,
        mut permitted: Permitted,
        place: Place,
        cancel: &CancellationToken,
    ) -> (Output, Option<Duration>) {
        if let Some(file) = &permitted.facts.file {
            let instructions = &self.exchange.context.conversation.instructions;
            instructions.visit(file, permitted.facts.walks);
        }
        let queued = Instant::now();
        let waits = metrics::QUEUED_CALLS.enter();
        let (claims, slot) = (permitted.prepared.claims(), permitted.prepared.slot());
        let admit = self.admit(call, claims, slot, place);
        let Some(admitted) = cancel.run_until_cancelled(admit).await else {
            return (*cancelled_unrun(), None);
        };
        drop(waits);
        let _counted = metrics::RUNNING_CALLS.enter();
        let executions = &self.exchange.context.session.executions;
        let begins = permitted.prepared.begins();
        executions.begin(&call.id, begins == Begins::Keeping, |record| {
            record.queued_ms = millis(queued.elapsed());
            if let Some(edit) = &permitted.edited {
                record.input.clone_from(&edit.input);
                record.input_bytes = json_bytes(&edit.input) as u64;
            }
        });
        let edited = permitted.edited.take();
        let beginning = Beginning {
            calls: self,
            call,
            edited: edited.map(|edit| edit.input),
            cancel,
            began: OnceLock::new(),
        };
        match begins {
            Begins::Waited => {
                if let Err(unrun) = beginning.known().await {
                    return (*unrun, None);
                }
            }
            Begins::Keeping => beginning.begin(),
            Begins::Looking => {}
        }
        let output = self.execute(call, permitted, cancel, &beginning).await;
        drop(admitted);
        let began = beginning.began.get();
        (output, began.map(Instant::elapsed))
    }

    /// Returns whether it may change something: all but reading files and pages, and searching.
    fn may_change_something(&self, call: &ToolCall) -> bool {
        let tool = self.tools.get(&call.name);
        tool.is_none_or(|tool| {
            let spec = tool.spec();
            let only_looks = matches!(
                spec.category,
                ToolCategory::File | ToolCategory::Search | ToolCategory::Network
            );
            !only_looks || spec.danger_level > DangerLevel::Safe
        })
    }

    /// Waits for what the call needs while it runs: a call that was approved runs.
    ///
    /// What waits for claims holds no slot, so that others of the turn run meanwhile. What holds a slot has all that it
    /// needs, so that slots come free again. And of the calls that may write any file each turn queues one at a time, so
    /// that conversations take turns. A call waits for the earlier ones of its turn that concern the same files.
    async fn admit(
        &self,
        call: &ToolCall,
        claims: Vec<Claim>,
        slot: Slot,
        place: Place,
    ) -> Admitted<'_> {
        if let Slot::Task { alone } = slot {
            return Admitted {
                _slot: self.task_slot(call, alone).await,
                ..Admitted::default()
            };
        }
        if slot == Slot::Elsewhere && claims.is_empty() {
            return Admitted::default();
        }
        let context = self.exchange.context;
        let locks = &context.services.locks;
        let holder = Holder {
            session: context.session.id.clone(),
            conversation: context.conversation.id.clone(),
            call: call.id.clone(),
            tool: call.name.clone(),
        };
        // The user may have changed the input.
        place.claim(&claims);
        if let Some(earlier) = place.earlier(&claims) {
            let obstacle = locks.obstacle(&holder, &claims);
            let earlier = || format!("waits for {earlier}, which comes first");
            self.queued(call, obstacle.unwrap_or_else(earlier));
            place.first_to_queue(&claims).await;
        }
        let writes_tree = claims.iter().any(|it| matches!(it, Claim::WriteTree(_)));
        let tree = match writes_tree {
            false => None,
            true => Some(match self.tree.try_lock() {
                Ok(tree) => tree,
                Err(_) => {
                    let obstacle = locks.obstacle(&holder, &claims);
                    self.queued(call, obstacle.unwrap_or_else(|| OTHERS.to_owned()));
                    self.tree.lock().await
                }
            }),
        };
        let mut slot = self.slot(call).await;
        let ticket = locks.queue(holder, claims);
        place.queued();
        if let Some(obstacle) = ticket.obstacle() {
            drop(slot);
            self.queued(call, obstacle);
            ticket.granted().await;
            slot = self.slot(call).await;
        }
        Admitted {
            _place: Some(place),
            _claims: Some(ticket),
            _slot: slot,
            _tree: tree,
        }
    }

    /// Takes a slot (`tools.max_concurrent`), waiting for it as long as others run.
    async fn slot(&self, call: &ToolCall) -> Option<SemaphorePermit<'_>> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Some(slot);
        }
        self.queued(call, OTHERS.to_owned());
        // An error would say that it was closed, which nobody does.
        self.slots.acquire().await.ok()
    }

    /// Takes the place of a task, or of all of them for one that runs alone, in the order of the calls.
    async fn task_slot(&self, call: &ToolCall, alone: bool) -> Option<SemaphorePermit<'_>> {
        let places = if alone { MAX_PARALLEL } else { 1 };
        if let Ok(slot) = self.tasks.try_acquire_many(places) {
            return Some(slot);
        }
        self.queued(call, OTHER_TASKS.to_owned());
        self.tasks.acquire_many(places).await.ok()
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
        beginning: &Beginning<'_>,
    ) -> Output {
        let exchange = self.exchange;
        let streamed = CallOutput::new(exchange, &call.id);
        let emit = |stream, chunk: &str| streamed.push(stream, chunk);
        let detach = || streamed.detach();
        let grant = self.grant(call);
        let timeout = self.timeout(grant.as_ref(), &permitted.facts);
        let clock = Arc::new(Stopwatch::start(timeout.saturating_add(END_GRACE)));
        let user = self.tools.get(&call.name).map(|tool| User {
            exchange,
            call,
            tool: Arc::clone(tool),
            has_network: grant.as_ref().is_some_and(Grant::network),
            // The host that the call names, where the user was asked for the call and let it run.
            approved_host: permitted.facts.host.filter(|_| permitted.approved),
            clock: &clock,
            cancel,
            asks: tokio::sync::Mutex::default(),
        });
        let tasker = Tasker {
            exchange,
            call,
            clock: &clock,
            cancel,
        };
        let keep = exchange.keep(&call.id, cancel);
        let run = Run {
            emit: &emit,
            cancel: cancel.clone(),
            timeout,
            known: beginning,
            seen: &exchange.context.conversation.seen,
            redactor: &exchange.context.services.redactor,
            quota: &exchange.context.session.quota,
            keep: &keep,
            owner: exchange.context.session.user.as_str(),
            pod: &exchange.context.conversation.pod,
            background: Some(Background {
                jobs: &exchange.context.conversation.background,
                detach: &detach,
            }),
            visible: Arc::new(move |path| grant.as_ref().is_some_and(|grant| grant.shows(path))),
            user: user.as_ref().map(|user| user as &dyn AskUser),
            tasks: Some(&tasker),
        };
        let work = AssertUnwindSafe(permitted.prepared.run(run)).catch_unwind();
        // What is dropped here takes its questions back: they are over before their call is answered.
        let outcome = tokio::select! {
            outcome = work => outcome.unwrap_or_else(|_| Ok(Output::error(FAULT))),
            () = overdue(&clock, cancel) => {
                Ok(Output::error("the tool did not end in time and was given up"))
            }
        };
        let mut output = outcome.unwrap_or_else(|violation| *self.violate(call, violation));
        streamed.finish(&output, beginning.began.get().is_some());
        shorten(&mut output, &exchange.context.services.redactor);
        output
    }

    fn grant(&self, call: &ToolCall) -> Option<Grant> {
        let spec = self.tools.get(&call.name)?.spec();
        let scope = &self.exchange.setup.scope;
        scope.grant(&spec.name, spec.danger_level)
    }

    /// Returns how long the call may run: what it asks for, or the default, up to the permission's cap.
    fn timeout(&self, grant: Option<&Grant>, facts: &Facts) -> Duration {
        let default = self.exchange.context.services.config().tools.timeout;
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
    /// `None` once a command in the background has taken it over.
    streams: Mutex<Option<(Recorder, CleanOutput)>>,
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
            streams: Mutex::new(Some((recorder, live))),
        }
    }

    fn push(&self, stream: OutputStream, chunk: &str) {
        if let Some((recorder, live)) = &mut *self.streams.lock() {
            recorder.push(stream, chunk);
            self.show(stream, live.push(stream, chunk));
        }
    }

    /// Hands the output of the call over to a command that outlives it.
    fn detach(&self) -> Arc<dyn Outlet> {
        *self.streams.lock() = None;
        Arc::new(Detached::new(self.exchange, self.tool_id))
    }

    /// Shows what was held back, and ends the recording of what came to `output`, which is nothing where it has not begun.
    fn finish(self, output: &Output, has_begun: bool) {
        let Some((recorder, mut live)) = self.streams.lock().take() else {
            return;
        };
        for (stream, chunk) in live.finish() {
            self.show(stream, chunk);
        }
        // A command that wrote nothing has no output, whatever the result says of that.
        let text = text_of(&output.content);
        let has_output = has_begun && output.metadata.total_bytes != Some(0);
        let result = has_output.then_some(&*text);
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

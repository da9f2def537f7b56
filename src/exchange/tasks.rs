//! What an exchange and its tasks have of each other.
//!
//! A task is an exchange in a conversation of its own, which the session makes (`crate::session`) when a call asks for it
//! ([`BeginTask`]). It differs from another one in what it is given: an empty history, the tools without `task`, and a sink of
//! events that passes them on and tells the call how it goes ([`follow`]). The call waits for its end (`calls/task.rs`).
//!
//! What is shared is here: [`Tasks`] by the tasks of one exchange, [`Within`] by a task and what is around it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::context::Setup;
use super::history::History;
use super::instructions::Answers;
use super::ledger::{Answered, Spent};
use super::memory::ConversationMemory;
use super::questions::Questions;
use super::questions::budget::Decision;
use super::searches::Searches;
use super::transcript::Events;
use crate::message::{ConversationId, MessageId, Money, ToolId};
use crate::protocol::event::{Event, State, StateName, StreamEnd, ToolOutcome};
use crate::runtime::Stopwatch;
use crate::spend::Account;
use crate::telemetry::Redactor;

/// Most tasks of one exchange.
pub(crate) const MAX_TASKS: u32 = 20;

/// Most tasks of one exchange that run at once.
pub(crate) const MAX_PARALLEL: u32 = 3;

/// Which part of what is left of a cap one task may spend.
const SHARE: f64 = 0.25;

/// The same of tokens: one part of so many.
const TOKEN_SHARES: u64 = 4;

/// Tasks that wait for their session to begin them: it takes them at once, so this is slack, not a queue.
pub(crate) const DESK: usize = 16;

/// Lines that say what a task does, on their way to its call. One beyond is dropped: its event tells the same.
pub(super) const MAX_LINES: usize = 64;

/// Most hosts whose questions nobody answered that a task's result names.
const MAX_UNANSWERED_HOSTS: usize = 64;

/// Longest input of a call that a line shows, or reason why it was not run, in characters.
const SHOWN_INPUT: usize = 80;

/// What the tasks of one exchange have in common.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    begun: AtomicU32,
    /// What they took of models.
    spent: Mutex<Spent>,
    /// How the user refused more money; held by the one task that asks for it.
    refused: tokio::sync::Mutex<Option<Decision>>,
}

impl Tasks {
    /// Counts one more; returns false where it would be one too many.
    pub(super) fn begin(&self) -> bool {
        let one_more = |begun: u32| (begun < MAX_TASKS).then_some(begun + 1);
        let order = Ordering::Relaxed;
        self.begun.fetch_update(order, order, one_more).is_ok()
    }

    pub(super) fn add(&self, request: &Answered<'_>) {
        self.spent.lock().add(request);
    }

    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock()
    }

    /// Waits for its turn to ask about money, and is told how the user refused it before, where they did.
    pub(super) async fn to_ask(&self) -> tokio::sync::MutexGuard<'_, Option<Decision>> {
        self.refused.lock().await
    }
}

/// What a task is within.
#[derive(Debug)]
pub(crate) struct Within {
    /// The call that began it.
    pub call: ToolId,
    pub conversation: ConversationId,
    pub exchange: MessageId,
    /// What the exchange has spent.
    pub account: Arc<Account>,
    /// The clocks of the exchange and of the call.
    pub clocks: Vec<Arc<Stopwatch>>,
    pub tasks: Arc<Tasks>,
    /// How many tasks of the conversation wait for an answer.
    pub asking: Arc<AtomicUsize>,
    /// What the user said: a task's own words of the user are a model's.
    pub history: Arc<History>,
    /// The searches of the exchange, its tasks' included.
    pub searches: Arc<Searches>,
    /// What was said of files that would speak for the user: nobody is asked about the same file twice.
    pub answers: Answers,
}

impl Within {
    fn emit_state(&self, events: &Events, state: StateName) {
        events.emit(Event::ChatState(State {
            tool_id: Some(self.call.clone()),
            ..State::new(&self.conversation, Some(&self.exchange), state)
        }));
    }
}

/// What a task will say, or why it does not begin.
pub(crate) type Begun = Result<Arc<History>, String>;

/// Asks the session to begin a task.
pub(crate) struct BeginTask {
    pub within: Arc<Within>,
    /// How the exchange around it is set up.
    pub setup: Setup,
    pub profile: String,
    pub prompt: String,
    pub timeout: Duration,
    /// Most that it may spend, and most fresh tokens that it may take.
    pub max_cost: Option<Money>,
    pub max_fresh_tokens: Option<u64>,
    /// What the user said in the conversation around it, which counts here too.
    pub memory: ConversationMemory,
    /// What the conversation around it has spent.
    pub account: Arc<Account>,
    pub questions: Arc<Questions>,
    /// Where its events go.
    pub events: Events,
    pub cancel: CancellationToken,
    pub begun: oneshot::Sender<Begun>,
}

/// How a task ended.
#[derive(Debug)]
pub(super) struct Done {
    pub end: StreamEnd,
    pub model: String,
    /// What went wrong.
    pub error: Option<String>,
    pub unattended: Unattended,
}

/// What a task was refused since nobody could be asked, or answered in time.
#[derive(Debug, Default)]
pub(super) struct Unattended {
    pub calls: u32,
    pub hosts: BTreeSet<String>,
}

impl Unattended {
    fn count(&mut self, result: &ToolOutcome) {
        let Some(facts) = &result.metadata else {
            return;
        };
        self.calls += u32::from(facts.unattended || facts.expired);
        for host in &facts.unanswered_hosts {
            if self.hosts.len() < MAX_UNANSWERED_HOSTS {
                self.hosts.insert(host.clone());
            }
        }
    }
}

/// What is told of a task on its way.
pub(super) struct Told {
    pub lines: mpsc::Receiver<String>,
    pub done: oneshot::Receiver<Done>,
}

/// Returns the part of a cap that one task may spend.
pub(super) fn share(left: Money) -> Money {
    left.part(SHARE)
}

/// The same of tokens; a task gets one at least, so that it ends by its limit.
pub(super) fn share_of_tokens(most: u64, used: u64) -> u64 {
    (most.saturating_sub(used) / TOKEN_SHARES).max(1)
}

/// Returns a sink that passes the events of a task on to `events`, and what tells its call how it goes.
pub(super) fn follow(
    events: Events,
    within: Arc<Within>,
    questions: Arc<Questions>,
    redactor: Redactor,
) -> (Events, Told) {
    let (lines, lines_told) = mpsc::channel(MAX_LINES);
    let (done, done_told) = oneshot::channel();
    let follower = Follower {
        within,
        questions,
        redactor,
        lines,
        seen: Mutex::new(Seen {
            model: String::new(),
            error: None,
            awaits: None,
            calls: CallLines::default(),
            unattended: Unattended::default(),
            done: Some(done),
        }),
    };
    let sink = Events::new(move |event, reply_to| {
        follower.before(&event);
        let look = may_change_questions(&event);
        let end = match &event {
            Event::ChatStreamEnd(end) => Some((**end).clone()),
            _ => None,
        };
        events.answer(reply_to, event);
        if look {
            follower.look_at_questions(&events);
        }
        if let Some(end) = end {
            follower.ended(end);
        }
    });
    let told = Told {
        lines: lines_told,
        done: done_told,
    };
    (sink, told)
}

/// The calls of a task, as lines.
#[derive(Default)]
struct CallLines {
    /// The turn that was last over.
    turn: u32,
    /// Calls that run: fewer than a turn has.
    running: BTreeSet<ToolId>,
}

impl CallLines {
    /// Returns the line of a call that begins, or that was not run, which has a result alone.
    fn line(&mut self, event: &Event, redactor: &Redactor) -> Option<String> {
        let (turn, name, more) = match event {
            Event::ChatUsage(usage) => {
                self.turn = usage.turn;
                return None;
            }
            Event::ChatToolStart(start) => {
                self.running.insert(start.tool_id.clone());
                let input = match start.input.values().next() {
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(_) => serde_json::Value::Object(start.input.clone()).to_string(),
                    None => String::new(),
                };
                (start.turn, &start.tool_name, input)
            }
            Event::ChatToolResult(result) if !self.running.remove(&result.tool_id) => {
                (self.turn, &result.tool_name, format!("– {}", result.result))
            }
            _ => return None,
        };
        let more = redactor.redact(&more);
        let mut more = more.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((at, _)) = more.char_indices().nth(SHOWN_INPUT) {
            more.truncate(at);
            more.push('…');
        }
        let line = format!("turn {}: {name} {more}", turn + 1);
        Some(format!("{}\n", line.trim_end()))
    }
}

/// Looks at a task's events on their way.
struct Follower {
    within: Arc<Within>,
    questions: Arc<Questions>,
    redactor: Redactor,
    lines: mpsc::Sender<String>,
    /// Held for a look or a change, never while something is emitted.
    seen: Mutex<Seen>,
}

struct Seen {
    model: String,
    error: Option<String>,
    /// What it waits for.
    awaits: Option<StateName>,
    calls: CallLines,
    unattended: Unattended,
    done: Option<oneshot::Sender<Done>>,
}

impl Follower {
    fn before(&self, event: &Event) {
        match event {
            Event::ChatStreamStart(start) => self.seen.lock().model.clone_from(&start.model),
            Event::ChatError(error) => self.seen.lock().error = Some(error.message.clone()),
            Event::ChatToolResult(result) => self.seen.lock().unattended.count(result),
            _ => {}
        }
        let line = self.seen.lock().calls.line(event, &self.redactor);
        if let Some(line) = line {
            // Its event tells the same.
            drop(self.lines.try_send(line));
        }
    }

    /// Has the state of the exchange around it say what the task waits for.
    fn look_at_questions(&self, events: &Events) {
        let now = self.questions.state();
        let before = std::mem::replace(&mut self.seen.lock().awaits, now);
        if before == now {
            return;
        }
        match (before, now) {
            (None, Some(_)) => drop(self.within.asking.fetch_add(1, Ordering::Relaxed)),
            (Some(_), None) => drop(self.within.asking.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        let state = now.unwrap_or(StateName::ToolExecuting);
        self.within.emit_state(events, state);
    }

    fn ended(&self, end: StreamEnd) {
        let mut seen = self.seen.lock();
        if let Some(done) = seen.done.take() {
            let done = done.send(Done {
                end,
                model: seen.model.clone(),
                error: seen.error.take(),
                unattended: std::mem::take(&mut seen.unattended),
            });
            // Its call may have been given up.
            drop(done);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.seen.get_mut().awaits.is_some() {
            self.within.asking.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns whether a question was opened or settled. Nothing of the table is held while these are emitted.
fn may_change_questions(event: &Event) -> bool {
    event.is_question() || matches!(event, Event::ChatToolResult(_))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_call_is_a_line_also_one_that_was_not_run() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let mut calls = CallLines::default();
        let mut line = |kind: &str, mut payload: Value| {
            for (name, id) in [("conversationId", "task:t1"), ("messageId", "m2")] {
                payload[name] = json!(id);
            }
            let event = json!({"type": kind, "payload": payload});
            calls.line(&serde_json::from_value(event).unwrap(), &redactor)
        };
        let result = |id: &str, text: &str| json!({"toolId": id, "toolName": "bash", "status": "error", "result": text, "durationMs": 0});
        let usage = json!({"turn": 1, "context": {"used": 1}});
        assert_eq!(line("chat:usage", usage), None);
        let start = json!({"turn": 1, "toolId": "t2", "toolName": "bash", "input": {"command": "echo\nhunter2-hunter2"}});
        let shown = line("chat:tool-start", start).unwrap();
        assert!(shown.starts_with("turn 2: bash echo "), "{shown}");
        assert!(!shown.contains("hunter"), "{shown}");
        assert_eq!(line("chat:tool-result", result("t2", "failed")), None);
        assert_eq!(
            line(
                "chat:tool-result",
                result("t3", "not allowed: the hook\n`h` refused")
            ),
            Some("turn 2: bash – not allowed: the hook `h` refused\n".to_owned())
        );
    }

    #[test]
    fn what_nobody_answered_is_counted_and_its_hosts_are_bounded() {
        let mut unattended = Unattended::default();
        let mut count = |metadata: Value| {
            let result: ToolOutcome = serde_json::from_value(json!({
                "conversationId": "task:t1", "messageId": "m2", "toolId": "t2", "toolName": "bash",
                "status": "error", "result": "", "durationMs": 0, "metadata": metadata,
            }))
            .unwrap();
            unattended.count(&result);
            (unattended.calls, unattended.hosts.len())
        };
        assert_eq!(count(Value::Null), (0, 0));
        assert_eq!(count(json!({"denied": true})), (0, 0));
        assert_eq!(count(json!({"denied": true, "unattended": true})), (1, 0));
        assert_eq!(count(json!({"expired": true})), (2, 0));
        for round in 0..2 {
            let hosts = ["a", "b"].map(|name| format!("{name}{round}"));
            let found = count(json!({"unansweredHosts": [hosts[0], hosts[1], "same"]}));
            assert_eq!(found, (2, 3 + 2 * round));
        }
        let many: Vec<String> = (0..100).map(|host| format!("host-{host}")).collect();
        let found = count(json!({ "unansweredHosts": many }));
        assert_eq!(found, (2, MAX_UNANSWERED_HOSTS));
    }

    #[test]
    fn an_exchange_begins_so_many_tasks_and_no_more() {
        let tasks = Tasks::default();
        for _ in 0..MAX_TASKS {
            assert!(tasks.begin());
        }
        assert!(!tasks.begin() && !tasks.begin());
    }

    #[test]
    fn a_task_has_a_quarter_of_what_is_left() {
        assert_eq!(
            share(Money::from_micros(2_000_000)),
            Money::from_micros(500_000)
        );
        for (most, used, expected) in [(4_000, 0, 1_000), (4_000, 2_000, 500), (10, 10, 1)] {
            assert_eq!(share_of_tokens(most, used), expected);
        }
    }
}

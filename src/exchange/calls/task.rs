//! A call that hands work to another model: the session begins the task, and the call waits for its end.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::exchange::Exchange;
use crate::exchange::history::History;
use crate::exchange::questions::Questions;
use crate::exchange::tasks::{
    BeginTask, Begun, Done, MAX_TASKS, Told, Within, follow, share, share_of_tokens,
};
use crate::message::{Message, Part, StopReason, TaskFacts, ToolCall};
use crate::runtime::Stopwatch;
use crate::telemetry::Redactor;
use crate::tool::task::{RunTask, Task};
use crate::tool::{Metadata, Output};

/// The longest result of a task that the model gets, in bytes; `tool:output` has all of it.
const MAX_RESULT: usize = 16 * 1024;

/// What a call says that could not begin a task since all is about to end.
const ENDING: &str = "the session ends, so no task was begun";

/// Who begins tasks for one running call.
pub(super) struct Tasker<'a> {
    pub(super) exchange: &'a Exchange<'a>,
    pub(super) call: &'a ToolCall,
    /// The call's own clock.
    pub(super) clock: &'a Arc<Stopwatch>,
    pub(super) cancel: &'a CancellationToken,
}

impl RunTask for Tasker<'_> {
    fn run<'a>(
        &'a self,
        task: Task,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Output> {
        async move {
            let output = self.delegate(task, progress).await;
            output.unwrap_or_else(Output::error)
        }
        .boxed()
    }
}

impl Tasker<'_> {
    /// Fails with why there is no task.
    async fn delegate(
        &self,
        task: Task,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Output, String> {
        let exchange = self.exchange;
        if exchange.is_clients {
            return Err("a task is begun by a model, in an exchange".to_owned());
        }
        if !exchange.ledger.tasks.begin() {
            return Err(format!(
                "this exchange has begun {MAX_TASKS} tasks, which is the limit; go on without another one"
            ));
        }
        // Also where this future is dropped.
        let cancel = self.cancel.child_token();
        let _ends = cancel.clone().drop_guard();
        let profile = task.profile.clone();
        let (begin, told, begun) = self.begin(task, cancel);
        let desk = &exchange.context.session.desk;
        let asked = async {
            desk.send(begin).await.ok()?;
            begun.await.ok()
        };
        let asked = self.cancel.run_until_cancelled(asked).await;
        let history = asked.flatten().ok_or_else(|| ENDING.to_owned())??;
        let Told {
            mut lines,
            mut done,
        } = told;
        let done = loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => progress(&line),
                // It ends soon where the call is cancelled, and says so.
                done = &mut done => break done.map_err(|_| ENDING.to_owned())?,
            }
        };
        while let Ok(line) = lines.try_recv() {
            progress(&line);
        }
        Ok(self.output(done, profile, &history))
    }

    fn begin(
        &self,
        task: Task,
        cancel: CancellationToken,
    ) -> (Box<BeginTask>, Told, oneshot::Receiver<Begun>) {
        let exchange = self.exchange;
        let (setup, conversation) = (exchange.setup, &exchange.context.conversation);
        let ledger = &exchange.ledger;
        let within = Arc::new(Within {
            call: self.call.id.clone(),
            conversation: conversation.id.clone(),
            exchange: setup.message_id.clone(),
            account: Arc::clone(&ledger.account),
            clocks: vec![Arc::clone(exchange.stopwatch), Arc::clone(self.clock)],
            tasks: Arc::clone(&ledger.tasks),
            asking: Arc::clone(&conversation.asking),
            history: Arc::clone(&conversation.history),
            searches: Arc::clone(&conversation.searches),
            answers: conversation.instructions.answers().clone(),
        });
        let questions = Arc::<Questions>::default();
        let (events, told) = follow(
            exchange.context.events().clone(),
            Arc::clone(&within),
            Arc::clone(&questions),
            exchange.context.services.redactor.clone(),
        );
        let used = || ledger.total().usage.fresh();
        let (begun, answer) = oneshot::channel();
        let begin = BeginTask {
            within,
            setup: setup.clone(),
            profile: task.profile,
            prompt: task.prompt,
            timeout: task.timeout,
            max_cost: ledger.caps.tightest().map(|(_, stand)| share(stand.left())),
            max_fresh_tokens: setup
                .max_fresh_tokens
                .map(|most| share_of_tokens(most, used())),
            memory: conversation.memory.clone(),
            account: Arc::clone(&conversation.account),
            questions,
            events,
            cancel,
            begun,
        };
        (Box::new(begin), told, answer)
    }

    fn output(&self, done: Done, profile: String, history: &History) -> Output {
        let Done {
            end,
            model,
            error,
            unattended,
        } = done;
        let said = last_words(history);
        let (remark, is_error) = remark(end.stop_reason, error);
        let text = match (said.is_empty(), remark) {
            (false, None) => said,
            (true, None) => "[the task ended without a word]".to_owned(),
            (false, Some(remark)) => format!("[{remark}; what follows it said last]\n{said}"),
            (true, Some(remark)) => format!(
                "[{remark}; it had said nothing, in {} and {}]",
                counted(end.turns, "turn"),
                counted(end.tool_calls, "call")
            ),
        };
        let task = TaskFacts {
            task_id: self.call.id.clone(),
            profile,
            model,
            turns: end.turns,
            tool_calls: end.tool_calls,
            stop_reason: end.stop_reason,
            usage: end.usage,
            spent_usd: end.spent_usd,
            unattended_calls: unattended.calls,
            unanswered_hosts: unattended.hosts.into_iter().collect(),
        };
        Output {
            is_error,
            ..Output::text(text)
        }
        .with(Metadata {
            cancelled: end.stop_reason == StopReason::Cancelled,
            timed_out: end.stop_reason == StopReason::Timeout,
            task: Some(Box::new(task)),
            ..Metadata::default()
        })
    }
}

/// Leaves out the end of a task's result that is too long. Secrets go first, so that none is cut in two.
pub(super) fn shorten(output: &mut Output, redactor: &Redactor) {
    if output.metadata.task.is_none() {
        return;
    }
    for part in &mut output.content {
        if let Part::Text { text } = part
            && text.len() > MAX_RESULT
        {
            let clean = redactor.redact(text).into_owned();
            let kept = clean.floor_char_boundary(MAX_RESULT);
            let left_out = clean.len() - kept;
            output.metadata.truncated = left_out > 0;
            output.metadata.total_bytes = Some(clean.len() as u64);
            output.metadata.omitted_bytes = Some(left_out as u64).filter(|bytes| *bytes > 0);
            *text = match left_out {
                0 => clean,
                _ => {
                    let kept = clean.get(..kept).unwrap_or_default();
                    format!("{kept}\n[{left_out} more bytes are left out]")
                }
            };
        }
    }
}

/// Returns how many of something there were, in words.
fn counted(count: u32, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Returns what a task said last.
fn last_words(history: &History) -> String {
    let messages = history.snapshot();
    let mut texts = messages.iter().rev().filter_map(|message| match message {
        Message::Reply(reply) if !reply.text.trim().is_empty() => Some(reply.text.clone()),
        _ => None,
    });
    texts.next().unwrap_or_default()
}

/// Returns what the model has to know of the way in which a task ended, and whether that makes it a failure.
fn remark(stop: StopReason, error: Option<String>) -> (Option<String>, bool) {
    let (text, is_error) = match stop {
        StopReason::EndTurn | StopReason::StopSequence => return (None, false),
        StopReason::MaxTurns => ("the task had no more turns and was made to answer", false),
        StopReason::ContextBudget => (
            "the task's context was full, and it was made to answer",
            false,
        ),
        StopReason::MaxTokens => ("the answer was cut off by the limit of tokens", false),
        StopReason::Refusal => ("the model refused to go on", true),
        StopReason::ContentFilter => ("a filter of the provider stopped the answer", true),
        StopReason::Cancelled => ("the task was cancelled", true),
        StopReason::Timeout => ("the task took too long and was ended (tasks.timeout)", true),
        StopReason::Budget => ("the task may spend no more, and was ended", true),
        StopReason::SandboxViolation => {
            ("the task was ended by a path that no tool may reach", true)
        }
        StopReason::Error => ("the task failed", true),
    };
    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
    (Some(format!("{text}{why}")), is_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_something_is_no_plural() {
        let words = [0, 1, 2].map(|count| counted(count, "turn"));
        assert_eq!(words, ["0 turns", "1 turn", "2 turns"]);
    }

    #[test]
    fn a_long_result_is_cut_after_its_secrets_are_out() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let before = "x".repeat(MAX_RESULT - 10);
        let facts = TaskFacts {
            task_id: crate::message::ToolId::new("t1"),
            profile: "explore".to_owned(),
            model: "m".to_owned(),
            turns: 1,
            tool_calls: 0,
            stop_reason: StopReason::EndTurn,
            usage: Default::default(),
            spent_usd: None,
            unattended_calls: 0,
            unanswered_hosts: Vec::new(),
        };
        let mut output = Output::text(format!("{before}hunter2-hunter2")).with(Metadata {
            task: Some(Box::new(facts)),
            ..Metadata::default()
        });
        shorten(&mut output, &redactor);
        let Part::Text { text } = &output.content[0] else {
            unreachable!()
        };
        assert!(!text.contains("hunter"), "{text}");
        assert!(output.metadata.total_bytes.is_some());
        let mut short = Output::text("short");
        shorten(&mut short, &redactor);
        assert_eq!(short, Output::text("short"));
    }
}

//! The question whether a call may run. When it expires and which answer counts is decided in the table of open
//! questions (`crate::exchange::questions`).

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settle::Settled;
use super::turnstile::Place;
use super::{Calls, Cleared, millis};
use crate::audit::{By, Ruling};
use crate::classifier::Word;
use crate::exchange::audited;
use crate::exchange::questions::approval::{Approval as Question, Verdict};
use crate::exchange::questions::{self, QuestionRequest, Which};
use crate::message::{ToolCall, ToolId, TrustLevel};
use crate::permission::Decision;
use crate::protocol::event::{Event, Outcome, State, StateName, ToolConfirm, TriggeredRule};
use crate::protocol::record::{Approval, ExecutionStatus};
use crate::protocol::word;
use crate::telemetry::metrics;
use crate::tool::{Facts, Metadata, Tool};

impl Calls<'_> {
    /// Asks the user whether the call may run.
    pub(super) async fn ask(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: Cleared,
        reason: String,
        place: Place,
        cancel: &CancellationToken,
    ) -> Result<Cleared, Settled> {
        let exchange = self.exchange;
        let _pause = exchange.stopwatch.pause();
        let since = Instant::now();
        let (verdict, answer) = oneshot::channel();
        let redactor = &exchange.context.services.redactor;
        let preview = cancel.run_until_cancelled(cleared.prepared.preview()).await;
        let preview = preview.ok_or_else(Settled::cancelled)?;
        let preview = preview.map(|diff| redactor.redact(&diff).into_owned());
        place.first().await;
        exchange.emit(Event::ChatState(State {
            tool_id: Some(call.id.clone()),
            ..exchange.state(StateName::AwaitingApproval)
        }));
        let question = Question {
            confirm: ToolConfirm {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: cleared.input.clone(),
                danger: cleared.danger.clone(),
                reason,
                commands: commands(&cleared.facts),
                rules: rules(&cleared.facts),
                preview,
                expires_at: None,
            },
            tool: Arc::clone(tool),
            remember: cleared.facts.remember.clone(),
            may_remember: exchange.setup.trust != TrustLevel::Supervised,
            verdict,
        };
        let question = questions::Question::Approval(Box::new(question));
        let executions = &exchange.context.session.executions;
        executions.update(&call.id, |record| record.approval.asked = true);
        let waits = metrics::OPEN_APPROVALS.enter();
        let request = QuestionRequest::Ask(question);
        let sent = exchange.questions.send(request).await;
        drop(place);
        let verdict = match sent {
            Ok(()) => tokio::select! {
                biased;
                verdict = answer => verdict.unwrap_or(Verdict::Cancelled),
                () = cancel.cancelled() => self.withdraw(&call.id).await,
            },
            Err(_) => Verdict::Cancelled,
        };
        drop(waits);
        let outcome = outcome(&verdict);
        tracing::info!(outcome = word(&outcome), "approval settled");
        metrics::approval_settled(&word(&outcome), since.elapsed());
        executions.update(&call.id, |record| {
            record.approval = Approval {
                asked: true,
                outcome: Some(outcome),
                waited_ms: millis(since.elapsed()),
            };
        });
        self.rule(call, audited::ruling(&verdict));
        self.judge(call, tool, cleared, verdict, cancel).await
    }

    /// Withdraws a question and waits until it is settled.
    async fn withdraw(&self, tool_id: &ToolId) -> Verdict {
        let (settled, done) = oneshot::channel();
        let request = QuestionRequest::Withdraw {
            which: Which::Call(tool_id.clone()),
            settled,
        };
        if self.exchange.questions.send(request).await.is_ok() {
            // An error means that it was settled before.
            drop(done.await);
        }
        Verdict::Cancelled
    }

    /// Turns a verdict into a call that may run, or its refusal.
    async fn judge(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: Cleared,
        verdict: Verdict,
        cancel: &CancellationToken,
    ) -> Result<Cleared, Settled> {
        match verdict {
            Verdict::Approved(None) => Ok(cleared),
            Verdict::Approved(Some(input)) => {
                let edited = self.prepare(call, tool, input, cancel).await?;
                // The user wrote it, so nothing is asked again; what is refused stays refused.
                match self.decide(call, tool, &edited, 1) {
                    Decision::Refuse(reason) => {
                        self.rule(call, Ruling::refused(By::Policy));
                        Err(Settled::denied(format!("not allowed as edited: {reason}")))
                    }
                    Decision::Run { .. } | Decision::Ask(_) => Ok(edited),
                }
            }
            Verdict::Denied(reason) => Err(Settled::denied(match reason {
                Some(reason) => format!("the user denied this call: {reason}"),
                None => "the user denied this call; do not try it again another way, ask or go on without it".to_owned(),
            })),
            Verdict::Unattended => Err(Settled::denied(
                "this call was not run, since nobody was there to be asked; do without it",
            )),
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
}

/// Returns the words of each command, as the user is shown them.
fn commands(facts: &Facts) -> Vec<Vec<String>> {
    let text = |word: &Word| match word {
        Word::Literal(text) | Word::Dynamic(text) => text.clone(),
    };
    facts
        .commands
        .iter()
        .map(|command| command.words.iter().map(text).collect())
        .collect()
}

/// Returns the rules that were triggered, worst first.
fn rules(facts: &Facts) -> Vec<TriggeredRule> {
    let mut rules: Vec<TriggeredRule> = facts
        .findings
        .iter()
        .map(|finding| TriggeredRule {
            rule: finding.rule.to_owned(),
            level: finding.level,
            words: finding.words.clone(),
        })
        .collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.level));
    rules
}

fn outcome(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Approved(_) => Outcome::Approved,
        Verdict::Denied(_) | Verdict::Unattended => Outcome::Denied,
        Verdict::Expired => Outcome::Expired,
        Verdict::Cancelled => Outcome::Cancelled,
    }
}

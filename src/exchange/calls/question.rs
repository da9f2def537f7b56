//! The user is asked whether a call may run. When a question lapses and which answer counts is the
//! conversation's affair (`crate::conversation::approvals`).

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::settle::Settled;
use super::turnstile::Place;
use super::{Calls, Cleared, millis};
use crate::audit::{By, Ruling};
use crate::classifier::Word;
use crate::exchange::ask::{Ask, Question, Verdict};
use crate::exchange::audited;
use crate::message::{ToolCall, ToolId, TrustLevel};
use crate::permission::Decision;
use crate::protocol::event::{Event, Outcome, State, StateName, ToolConfirm, TriggeredRule};
use crate::protocol::record::{Approval, ExecutionStatus};
use crate::protocol::word;
use crate::telemetry::metrics;
use crate::tool::{Facts, Metadata, Tool};

impl Calls<'_> {
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
        let asked = Instant::now();
        let (verdict, answer) = oneshot::channel();
        let redactor = &exchange.services.redactor;
        let preview = cleared.prepared.preview().await;
        let preview = preview.map(|diff| redactor.redact(&diff).into_owned());
        place.first().await;
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
        let question = Question::Ask(Box::new(ask));
        let executions = &exchange.session.executions;
        executions.update(&call.id, |record| record.approval.asked = true);
        let waits = metrics::OPEN_APPROVALS.enter();
        let sent = exchange.asks.send(question).await;
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
        metrics::approval_settled(&word(&outcome), asked.elapsed());
        executions.update(&call.id, |record| {
            record.approval = Approval {
                asked: true,
                outcome: Some(outcome),
                waited_ms: millis(asked.elapsed()),
            };
        });
        self.rule(call, audited::ruling(&verdict));
        self.judge(call, tool, cleared, verdict).await
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
    async fn judge(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        cleared: Cleared,
        verdict: Verdict,
    ) -> Result<Cleared, Settled> {
        match verdict {
            Verdict::Approved(None) => Ok(cleared),
            Verdict::Approved(Some(input)) => {
                let edited = self.prepare(call, tool, input).await?;
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

/// The words of each command, as the user is shown them.
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

/// The rules that were triggered, worst first.
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

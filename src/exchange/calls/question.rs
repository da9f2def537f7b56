//! The question whether a call may run. When it expires and which answer counts is decided in the table of open
//! questions (`crate::exchange::questions`).

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::order::Place;
use super::settle::{cancelled_unrun, denied, unattended};
use super::{Calls, Edit, Editor, Permitted};
use crate::audit::{By, Ruling};
use crate::classifier::Word;
use crate::exchange::questions::approval::{ApprovalQuestion, Matter, Verdict};
use crate::exchange::questions::{Open, Question};
use crate::message::ToolCall;
use crate::permission::Decision;
use crate::protocol::event::{By as SettledBy, Outcome, StateName, ToolConfirm, TriggeredRule};
use crate::protocol::record::Approval;
use crate::protocol::word;
use crate::telemetry::metrics;
use crate::tool::{Facts, Metadata, Output, Tool};
use crate::units::millis;

/// What becomes of a call once the user has answered.
enum Answered {
    Runs(Permitted),
    /// A hook made something else of the user's edit, and this is why it is asked about.
    Asked(Permitted, String),
}

impl Calls<'_> {
    /// Asks the user whether a call may run, until it is clear with which input.
    pub(super) async fn ask(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        mut permitted: Permitted,
        mut reason: String,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Permitted, Box<Output>> {
        loop {
            let asked = self.verdict(call, tool, &permitted, reason, place, cancel);
            let verdict = asked.await?;
            match self.apply(call, tool, permitted, verdict, cancel).await? {
                Answered::Runs(permitted) => return Ok(permitted),
                Answered::Asked(changed, why) => {
                    (permitted, reason) = (changed, why);
                }
            }
        }
    }

    /// Returns what the user says of a call.
    async fn verdict(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        permitted: &Permitted,
        reason: String,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Verdict, Box<Output>> {
        let exchange = self.exchange;
        let _pause = exchange.stopwatch.pause();
        let since = Instant::now();
        let (sender, verdict) = oneshot::channel();
        let redactor = &exchange.context.services.redactor;
        let preview = cancel
            .run_until_cancelled(permitted.prepared.preview())
            .await;
        let preview = preview.ok_or_else(cancelled_unrun)?;
        let preview = preview.map(|diff| redactor.redact(&diff).into_owned());
        place.first_to_ask().await;
        exchange.emit_call_state(&call.id, StateName::AwaitingApproval);
        let question = ApprovalQuestion {
            confirm: ToolConfirm {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: match &permitted.edited {
                    Some(edit) => edit.input.clone(),
                    None => call.input.clone(),
                },
                changed_by: match &permitted.edited {
                    Some(Edit {
                        by: Editor::Hook(hook),
                        ..
                    }) => Some(hook.clone()),
                    _ => None,
                },
                danger: permitted.danger.clone(),
                reason,
                commands: commands(&permitted.facts),
                rules: rules(&permitted.facts),
                preview,
                host: None,
                remember: None,
                expires_at: None,
            },
            tool: Arc::clone(tool),
            matter: Matter::of(&call.name, &permitted.facts, exchange.setup.freedom.trust()),
            trust: exchange.setup.freedom.trust(),
            sender,
        };
        let executions = &exchange.context.session.executions;
        executions.update(&call.id, |record| record.approval.asked = true);
        let waits = metrics::OPEN_APPROVALS.enter();
        let questions = &exchange.context.conversation.questions;
        questions.ask(Question::Approval(Box::new(question)), exchange.context);
        place.asked();
        let verdict = tokio::select! {
            biased;
            // Dropped without an answer where it could not be asked.
            verdict = verdict => verdict.unwrap_or(Verdict::Cancelled),
            () = cancel.cancelled() => {
                let ours = |open: &Open| open.tool_id.as_ref() == Some(&call.id);
                questions.withdraw(ours, SettledBy::Cancel, exchange.context);
                Verdict::Cancelled
            }
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
        self.record_ruling(call, ruling(&verdict));
        Ok(verdict)
    }

    /// Does what the user's verdict says.
    async fn apply(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        permitted: Permitted,
        verdict: Verdict,
        cancel: &CancellationToken,
    ) -> Result<Answered, Box<Output>> {
        match verdict {
            Verdict::Approved(None) => Ok(Answered::Runs(Permitted {
                approved: true,
                ..permitted
            })),
            Verdict::Approved(Some(input)) => {
                let mut edited = self.prepare(call, tool, &input, cancel).await?;
                let by = Editor::User;
                let edit = edited.edited.get_or_insert(Edit { input, by });
                let is_users = edit.by == Editor::User;
                edited.approved = is_users;
                // What the user wrote is not asked again, but what a hook made of it is; what is refused stays refused.
                match self.decide(call, tool, &edited, 1) {
                    Decision::Ask(reason) if !is_users => Ok(Answered::Asked(edited, reason)),
                    Decision::Refuse(reason) => {
                        self.record_ruling(call, Ruling::refused(By::Policy));
                        Err(denied(format!("not allowed as edited: {reason}")))
                    }
                    Decision::Denied(said) => Err(self.denied_before(call, &said)),
                    Decision::Run { .. } | Decision::Ask(_) => Ok(Answered::Runs(edited)),
                }
            }
            Verdict::Denied(reason) => Err(denied(match reason {
                Some(reason) => format!("the user denied this call: {reason}"),
                None => "the user denied this call; do not try it again another way, ask or go on without it".to_owned(),
            })),
            Verdict::Unattended => Err(unattended(
                "this call was not run, since nobody was there to be asked; do without it",
            )),
            Verdict::Expired => {
                let text = "nobody answered in time whether this call may run, so it was not run";
                let expired = Metadata {
                    expired: true,
                    ..Metadata::default()
                };
                Err(Box::new(Output::error(text).with(expired)))
            }
            Verdict::Cancelled => Err(cancelled_unrun()),
        }
    }
}

/// Returns what a verdict decides.
fn ruling(verdict: &Verdict) -> Ruling {
    match verdict {
        Verdict::Approved(input) => Ruling {
            edited: input.is_some(),
            ..Ruling::run(By::User)
        },
        Verdict::Denied(_) => Ruling::refused(By::User),
        Verdict::Unattended => Ruling::refused(By::Unattended),
        Verdict::Expired => Ruling::refused(By::Timeout),
        Verdict::Cancelled => Ruling::default(),
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
        .map(|command| command.iter().map(text).collect())
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

//! Whether a call may run: its input is parsed, the policy decides, and the user is asked where it says so.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::order::Place;
use super::settle::{cancelled_unrun, denied, failed, unattended};
use super::{Calls, Edit, Editor, FAULT, Permitted, programs};
use crate::audit::{By, Ruling};
use crate::exchange::NOTHING_ASKED;
use crate::exchange::accumulator::Fault;
use crate::exchange::history::bytes_of_map;
use crate::message::ToolCall;
use crate::permission::decision::{Rules, decide};
use crate::permission::rule::{Call, Said};
use crate::permission::{ApprovalPolicy, Decision, Remember, Subject};
use crate::tool::{Facts, Output, Prepared, Refusal, Tool};

/// An input of more bytes than this is parsed on a thread for blocking work: beyond it, a command line takes the
/// classifier more than about a millisecond.
const LONG_INPUT: usize = 8 * 1024;

impl Calls<'_> {
    /// Decides whether the call may run, asking the user where need be. `place` says when later calls may ask: with the
    /// question, or the end of this.
    pub(super) async fn permit(
        &self,
        call: &ToolCall,
        tool: Option<&Arc<dyn Tool>>,
        repeated: u32,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Permitted, Box<Output>> {
        let tool = tool.ok_or_else(|| self.unknown(&call.name))?;
        let permitted = self.prepare(call, tool, &call.input, cancel).await?;
        place.claim(&permitted.prepared.claims());
        match self.decide(call, tool, &permitted, repeated) {
            Decision::Run { remembered } => {
                self.record_ruling(
                    call,
                    match remembered {
                        Some(reach) => Ruling::remembered(true, reach),
                        None => Ruling::run(By::Policy),
                    },
                );
                Ok(permitted)
            }
            Decision::Refuse(reason) => {
                self.record_ruling(call, Ruling::refused(By::Policy));
                Err(denied(format!("not allowed: {reason}")))
            }
            Decision::Denied(said) => Err(self.denied_before(call, &said)),
            Decision::Ask(reason) => {
                // What the policy says of questions is decided by now.
                if self.exchange.unasked().is_some() {
                    self.record_ruling(call, Ruling::refused(By::Unattended));
                    return Err(unattended(format!(
                        "not allowed: {reason}, and nobody is there to answer; do without this call"
                    )));
                }
                self.ask(call, tool, permitted, reason, place, cancel).await
            }
        }
    }

    /// Returns the result of a call that the user refused before.
    pub(super) fn denied_before(&self, call: &ToolCall, said: &Said) -> Box<Output> {
        self.record_ruling(call, Ruling::remembered(false, said.reach));
        let reach = match said.reach {
            Remember::Once | Remember::Conversation => "in this conversation",
            Remember::Session => "in this session",
            Remember::Project => "in this project",
            Remember::Always => "ever",
        };
        let reason = said.reason.as_ref();
        let reason = reason.map(|it| format!(": {it}")).unwrap_or_default();
        denied(format!(
            "the user denied this before and does not want it {reach}{reason}; do not try it again another way, ask or go on without it"
        ))
    }

    fn unknown(&self, name: &str) -> Box<Output> {
        let known: Vec<&str> = self
            .tools
            .values()
            .map(|tool| tool.spec())
            .filter(|spec| self.exchange.setup.scope.allows(spec))
            .map(|spec| spec.name.as_str())
            .collect();
        failed(format!(
            "there is no tool `{name}`; the tools are {}",
            known.join(", ")
        ))
    }

    /// Asks hooks, parses the input of a call as they leave it, looks at what it names, and records how much harm it may do:
    /// no input gets past here that hooks have not seen. A file system may take long, and so may a long command line: only
    /// what is neither is done on the runtime's own thread.
    pub(super) async fn prepare(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        input: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Permitted, Box<Output>> {
        let said = self.before_tool(call, input, cancel).await?;
        let input = said.changed.as_ref().map_or(input, |(input, _)| input);
        let prepared = if tool.looks_at_files() || bytes_of_map(input) > LONG_INPUT {
            let (tool, input) = (Arc::clone(tool), input.clone());
            let prepared = tokio::task::spawn_blocking(move || with_facts(&*tool, &input));
            match cancel.run_until_cancelled(prepared).await {
                Some(Ok(prepared)) => prepared,
                Some(Err(_)) => return Err(failed(FAULT)),
                None => return Err(cancelled_unrun()),
            }
        } else {
            with_facts(&**tool, input)
        };
        match prepared {
            Ok((prepared, facts)) => {
                let appraised = cancel.run_until_cancelled(prepared.appraise()).await;
                let appraised = appraised.ok_or_else(cancelled_unrun)?;
                let danger = appraised.unwrap_or_else(|| facts.danger.clone());
                let executions = &self.exchange.context.session.executions;
                let redactor = &self.exchange.context.services.redactor;
                let commands = programs::of(&facts.written, redactor);
                executions.update(&call.id, |record| {
                    record.danger = danger.clone();
                    record.commands = commands;
                });
                Ok(Permitted {
                    prepared,
                    facts,
                    danger,
                    edited: said.changed.map(|(input, hook)| Edit {
                        input,
                        by: Editor::Hook(hook),
                    }),
                    notes: said.notes,
                    approved: false,
                })
            }
            Err(Refusal::Invalid(reason)) => Err(failed(match &said.changed {
                None => reason,
                Some((_, hook)) => format!(
                    "the operator's hook `{hook}` changed the input to one that does not fit; yours is not at fault: {reason}"
                ),
            })),
            Err(Refusal::Violation(violation)) => Err(self.violate(call, violation)),
        }
    }

    /// Returns what the policy says of a call that the model has made so often in a row.
    pub(super) fn decide(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        permitted: &Permitted,
        repeated: u32,
    ) -> Decision {
        let config = &self.exchange.context.services.config();
        let facts = &permitted.facts;
        let search = permitted.prepared.query().map(|query| {
            let conversation = &self.exchange.context.conversation;
            let (searches, history) = match &conversation.within {
                Some(within) => (&within.searches, &within.history),
                None => (&conversation.searches, &conversation.history),
            };
            let history = history.snapshot();
            searches.judge(&call.id, query, &history, &config.tools.web_search)
        });
        let said = self.exchange.context.conversation.memory.said(&Call {
            tool: &tool.spec().name,
            approval: facts.remember.as_ref(),
            commands: &facts.commands,
            file: facts.file.as_ref(),
        });
        let subject = Subject {
            tool: tool.spec(),
            danger: &facts.danger,
            paths: &facts.paths,
            walks: facts.walks,
            commands: &facts.commands,
            plain: facts.plain,
            network: facts.network,
            said: said.as_ref().ok().and_then(Option::as_ref),
            repeated,
            search: search.as_ref(),
        };
        let rules = Rules {
            trust: self.exchange.setup.freedom.trust(),
            auto_approve_safe_commands: self.exchange.setup.freedom.policy()
                == ApprovalPolicy::AutoApproveSafe,
            network: config.tools.bash.network,
        };
        let policy = self.exchange.setup.freedom.policy();
        let decision = match (decide(&subject, &self.exchange.setup.scope, rules), said) {
            (Decision::Run { .. }, Err(unread)) => Decision::Ask(unread.to_string()),
            (Decision::Ask(_), Ok(_)) if policy == ApprovalPolicy::AllowAll => {
                Decision::Run { remembered: None }
            }
            (decision, _) => decision,
        };
        match decision {
            Decision::Ask(reason) if policy == ApprovalPolicy::DenyAll => Decision::Refuse(
                format!("{reason}, and {NOTHING_ASKED}; do without this call"),
            ),
            decision => decision,
        }
    }
}

/// Says why a call of the model's does not run.
pub(super) fn reason(fault: Fault) -> String {
    match fault {
        Fault::Truncated => "this call was cut off before its input was complete, and was not run; make the input smaller and call again".to_owned(),
        Fault::TurnCut => "your answer was cut off by its limit of tokens, so none of its calls was run; call again, with fewer calls or smaller input".to_owned(),
        Fault::TurnRefused => {
            "the answer ended in a refusal, so none of its calls was run".to_owned()
        }
        Fault::Invalid(reason) => {
            format!("the input of this call is not a JSON object, so it was not run: {reason}")
        }
    }
}

fn with_facts(
    tool: &dyn Tool,
    input: &Map<String, Value>,
) -> Result<(Box<dyn Prepared>, Facts), Refusal> {
    let prepared = tool.prepare(input)?;
    let facts = prepared.facts();
    Ok((prepared, facts))
}

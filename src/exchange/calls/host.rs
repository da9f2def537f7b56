//! The question whether a running call may connect to a host, and what was said of hosts before in the conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::user::User;
use crate::audit::{By, HostRuling, Ruling};
use crate::exchange::memory::ConversationMemory;
use crate::exchange::questions::approval::{ApprovalQuestion, Matter, Verdict};
use crate::exchange::questions::{Question, QuestionId};
use crate::exchange::{NOTHING_ASKED, Unasked};
use crate::message::{Danger, DangerLevel, ToolCategory, TrustLevel};
use crate::permission::rule::{Call, Key, Said};
use crate::permission::{ApprovalPolicy, Freedom};
use crate::protocol::event::{StateName, ToolConfirm};
use crate::tool::user::{HostVerdict, KnownHosts};

/// Why a host is refused that nobody decided about.
const LATE: &str = "nobody answered in time";

/// Most hosts that one call asks for: a user who is asked more often stops reading.
const MAX_ASKED: usize = 20;

/// What a call has asked about hosts.
#[derive(Debug, Default)]
pub(super) struct HostsOfCall {
    asked: usize,
    /// What came of those that are not remembered.
    settled: BTreeMap<String, (HostVerdict, Ruling)>,
}

impl User<'_> {
    /// Returns what is said of a host; asks where nothing was said yet. One question of a call is open at a time.
    pub(super) async fn host_verdict(&self, host: &str, port: u16) -> HostVerdict {
        let (verdict, ruling) = self.decide(host, port).await;
        self.record(host, ruling);
        verdict
    }

    async fn decide(&self, host: &str, port: u16) -> (HostVerdict, Ruling) {
        if let Some(known) = self.known(host) {
            return known;
        }
        let mut asks = self.asks.lock().await;
        // It may have been the one before.
        if let Some(known) = self.known(host) {
            return known;
        }
        if self.cancel.is_cancelled() {
            return refused("the call was cancelled", By::Nobody);
        }
        if let Some(settled) = asks.settled.get(host) {
            return settled.clone();
        }
        if asks.asked >= MAX_ASKED {
            let why = "the user was asked for too many hosts in this call";
            return refused(why, By::Policy);
        }
        if self.exchange.setup.freedom.policy() == ApprovalPolicy::AllowAll {
            return (HostVerdict::Allowed, Ruling::run(By::Policy));
        }
        match self.exchange.unasked() {
            Some(Unasked::Policy) => return refused(NOTHING_ASKED, By::Policy),
            Some(Unasked::Unattended) => {
                return refused("nobody is there to be asked", By::Unattended);
            }
            None => {}
        }
        asks.asked += 1;
        let settled = match self.ask_for(host, port).await {
            Verdict::Approved(_) => (HostVerdict::Allowed, Ruling::run(By::User)),
            Verdict::Denied(why) => refused(&denied(why.as_deref()), By::User),
            Verdict::Unattended => refused("nobody was there to be asked", By::Unattended),
            Verdict::Expired => refused(LATE, By::Timeout),
            Verdict::Cancelled => refused("the call was cancelled", By::Nobody),
        };
        if self.known(host).is_none() {
            // Once for each call, or it would ask for ever.
            asks.settled.insert(host.to_owned(), settled.clone());
        }
        settled
    }

    /// Writes down what was decided, for the audit log.
    fn record(&self, host: &str, ruling: Ruling) {
        let executions = &self.exchange.context.session.executions;
        let ruling = HostRuling {
            host: host.to_owned(),
            decision: ruling.decision,
            decided_by: ruling.by,
            scope: ruling.scope,
        };
        executions.rule_host(&self.call.id, ruling);
    }

    fn known(&self, host: &str) -> Option<(HostVerdict, Ruling)> {
        if self.has_network {
            return Some((HostVerdict::Allowed, Ruling::run(By::Policy)));
        }
        if self.approved_host.as_deref() == Some(host) {
            return Some((HostVerdict::Allowed, Ruling::run(By::User)));
        }
        let memory = &self.exchange.context.conversation.memory;
        said(memory, &self.call.name, &self.exchange.setup.freedom, host)
    }

    /// Returns the same for a command that goes on when the call is over.
    pub(super) fn known_for_longer(&self) -> KnownHosts {
        let memory = self.exchange.context.conversation.memory.clone();
        let (tool, freedom) = (self.call.name.clone(), self.exchange.setup.freedom.clone());
        Arc::new(move |host| match freedom.policy() {
            ApprovalPolicy::AllowAll => Some(HostVerdict::Allowed),
            _ => said(&memory, &tool, &freedom, host).map(|(verdict, _)| verdict),
        })
    }

    async fn ask_for(&self, host: &str, port: u16) -> Verdict {
        let _pauses = (self.exchange.stopwatch.pause(), self.clock.pause());
        let (exchange, call) = (self.exchange, self.call);
        let (who, what, list) = match self.tool.spec().category {
            ToolCategory::Network => (&*call.name, "read a page of", "tools.web_fetch.hosts"),
            _ => ("the command", "connect to", "tools.bash.hosts"),
        };
        let reason = format!(
            "{who} wants to {what} {host}, port {port}, which is not on the list of hosts ({list})"
        );
        let (sender, verdict) = oneshot::channel();
        let question = ApprovalQuestion {
            confirm: ToolConfirm {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: call.input.clone(),
                changed_by: None,
                danger: Danger {
                    level: DangerLevel::Warning,
                    reasons: Vec::new(),
                },
                reason,
                commands: Vec::new(),
                rules: Vec::new(),
                preview: None,
                host: Some(host.to_owned()),
                remember: None,
                expires_at: None,
            },
            tool: self.tool.clone(),
            matter: Matter::of_host(key(host), exchange.setup.freedom.trust()),
            trust: exchange.setup.freedom.trust(),
            sender,
        };
        let _asked = self.withdraws(QuestionId::of_call(&call.id, Some(host)));
        exchange.emit_call_state(&call.id, StateName::AwaitingApproval);
        let questions = &exchange.context.conversation.questions;
        questions.ask(Question::Approval(Box::new(question)), exchange.context);
        // Dropped without an answer where it could not be asked.
        let verdict = verdict.await.unwrap_or(Verdict::Cancelled);
        exchange.emit_call_state(&call.id, StateName::ToolExecuting);
        tracing::info!(
            host,
            port,
            allowed = matches!(verdict, Verdict::Approved(_)),
            "a host was asked for"
        );
        verdict
    }
}

/// Returns what was said of a host in a conversation; `None` also where that is not known.
fn said(
    memory: &ConversationMemory,
    tool: &str,
    freedom: &Freedom,
    host: &str,
) -> Option<(HostVerdict, Ruling)> {
    let said = memory.said(&Call {
        tool,
        approval: Some(&key(host)),
        commands: &[],
        file: None,
    });
    let Said {
        allows,
        reach,
        reason,
    } = said.ok()??;
    // What was said under another level is no answer where everything is asked for.
    if allows && freedom.trust() == TrustLevel::Supervised {
        return None;
    }
    let verdict = match allows {
        true => HostVerdict::Allowed,
        false => HostVerdict::Refused(denied(reason.as_deref())),
    };
    Some((verdict, Ruling::remembered(allows, reach)))
}

fn key(host: &str) -> Key {
    Key::Host {
        host: host.to_owned(),
    }
}

fn refused(reason: &str, by: By) -> (HostVerdict, Ruling) {
    let verdict = HostVerdict::Refused(reason.to_owned());
    (verdict, Ruling::refused(by))
}

/// Returns why a host is refused that the user denied.
fn denied(why: Option<&str>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("the user denied it{why}")
}

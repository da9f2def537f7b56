//! The question whether a running command may connect to a host, and what was said of hosts before in the conversation.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::user::User;
use crate::audit::{By, Decision, HostRuling};
use crate::config::Unattended;
use crate::exchange::questions::approval::{ApprovalQuestion, Verdict};
use crate::exchange::questions::{Question, QuestionId};
use crate::message::{Danger, DangerLevel, TrustLevel};
use crate::protocol::event::{StateName, ToolConfirm};
use crate::tool::RememberKey;
use crate::tool::user::HostVerdict;

/// Why a host is refused that nobody decided about.
const LATE: &str = "nobody answered in time";

/// For how many hosts a conversation remembers the answer; a further one is asked for each time.
const MAX_HOSTS: usize = 1_000;

/// Most hosts that one call asks for: a user who is asked more often stops reading.
const MAX_ASKED: usize = 20;

/// What a call has asked about hosts.
#[derive(Debug, Default)]
pub(super) struct HostsOfCall {
    asked: usize,
    /// Those that nobody decided about, and why not.
    lapsed: BTreeMap<String, (HostVerdict, By)>,
}

/// What was said of hosts in a conversation.
#[derive(Debug, Default)]
pub(crate) struct AskedHosts(Mutex<BTreeMap<String, HostVerdict>>);

impl AskedHosts {
    fn get(&self, host: &str) -> Option<HostVerdict> {
        self.0.lock().get(host).cloned()
    }

    fn keep(&self, host: &str, verdict: &HostVerdict) {
        let mut hosts = self.0.lock();
        if hosts.len() < MAX_HOSTS {
            hosts.insert(host.to_owned(), verdict.clone());
        }
    }
}

impl User<'_> {
    /// Returns what is said of a host; asks where nothing was said yet. One question of a call is open at a time.
    pub(super) async fn host_verdict(&self, host: &str, port: u16) -> HostVerdict {
        let (verdict, by) = self.decide(host, port).await;
        self.record(host, &verdict, by);
        verdict
    }

    async fn decide(&self, host: &str, port: u16) -> (HostVerdict, By) {
        if let Some(known) = self.known(host) {
            return known;
        }
        let mut asks = self.asks.lock().await;
        // It may have been the one before.
        if let Some(known) = self.known(host) {
            return known;
        }
        if self.cancel.is_cancelled() {
            return (refused("the call was cancelled"), By::Nobody);
        }
        if let Some(lapsed) = asks.lapsed.get(host) {
            return lapsed.clone();
        }
        if asks.asked >= MAX_ASKED {
            let why = "the user was asked for too many hosts in this call";
            return (refused(why), By::Policy);
        }
        let config = &self.exchange.context.services.config.approval;
        if config.unattended == Unattended::Deny {
            return (refused("nobody is there to be asked"), By::Unattended);
        }
        asks.asked += 1;
        let (verdict, by) = match self.ask_for(host, port).await {
            Verdict::Approved(_) => (HostVerdict::Allowed, By::User),
            Verdict::Denied(None) => (refused("the user denied it"), By::User),
            Verdict::Denied(Some(why)) => {
                (refused(&format!("the user denied it: {why}")), By::User)
            }
            Verdict::Unattended => (refused("nobody was there to be asked"), By::Unattended),
            Verdict::Expired => (refused(LATE), By::Timeout),
            Verdict::Cancelled => (refused("the call was cancelled"), By::Nobody),
        };
        if by == By::User {
            let hosts = &self.exchange.context.conversation.hosts;
            hosts.keep(host, &verdict);
        } else {
            // Once for each call, or it would ask for ever.
            asks.lapsed.insert(host.to_owned(), (verdict.clone(), by));
        }
        (verdict, by)
    }

    /// Writes down what was decided, for the audit log.
    fn record(&self, host: &str, verdict: &HostVerdict, by: By) {
        let executions = &self.exchange.context.session.executions;
        let ruling = HostRuling {
            host: host.to_owned(),
            decision: match verdict {
                HostVerdict::Allowed => Decision::Run,
                HostVerdict::Refused(_) => Decision::Refused,
            },
            decided_by: by,
        };
        executions.rule_host(&self.call.id, ruling);
    }

    fn known(&self, host: &str) -> Option<(HostVerdict, By)> {
        if self.has_network {
            return Some((HostVerdict::Allowed, By::Policy));
        }
        let conversation = &self.exchange.context.conversation;
        let key = RememberKey::Host(host.to_owned());
        let is_remembered = self.exchange.setup.trust != TrustLevel::Supervised
            && conversation.remembered.holds(&key);
        let verdict = match is_remembered {
            true => Some(HostVerdict::Allowed),
            false => conversation.hosts.get(host),
        };
        verdict.map(|verdict| (verdict, By::Remembered))
    }

    async fn ask_for(&self, host: &str, port: u16) -> Verdict {
        let _pauses = (self.exchange.stopwatch.pause(), self.clock.pause());
        let (exchange, call) = (self.exchange, self.call);
        let reason = format!(
            "the command wants to connect to {host}, port {port}, which is not on the list of hosts (tools.bash.hosts)"
        );
        let (sender, verdict) = oneshot::channel();
        let question = ApprovalQuestion {
            confirm: ToolConfirm {
                conversation_id: exchange.setup.conversation_id.clone(),
                message_id: exchange.setup.message_id.clone(),
                tool_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: call.input.clone(),
                danger: Danger {
                    level: DangerLevel::Warning,
                    reasons: Vec::new(),
                },
                reason,
                commands: Vec::new(),
                rules: Vec::new(),
                preview: None,
                host: Some(host.to_owned()),
                expires_at: None,
            },
            tool: self.tool.clone(),
            remember: Some(RememberKey::Host(host.to_owned())),
            may_remember: exchange.setup.trust != TrustLevel::Supervised,
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

fn refused(reason: &str) -> HostVerdict {
    HostVerdict::Refused(reason.to_owned())
}

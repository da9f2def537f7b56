//! Requests about answers that count for later calls.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;

use super::Session;
use super::daemon::Daemon;
use super::resolve::invalid;
use crate::exchange::memory::{Listed, SharedRules, Unread};
use crate::message::{Notice, Severity};
use crate::notices::To;
use crate::permission::Remember;
use crate::permission::rule::Place;
use crate::protocol::command::{ApprovalList, ApprovalRevoke};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{SessionCode, answer};
use crate::telemetry::Redactor;
use crate::users::User;

/// The answers of a user, which may be on their way from the store.
pub(super) struct PendingRules {
    pub(super) rules: SharedRules,
    /// Waits until they are read, for two seconds at most; comes to whether they are.
    pub(super) are_read: Shared<BoxFuture<'static, bool>>,
}

impl Daemon {
    /// Has a user's answers read from the store, unless that was begun before.
    pub(super) fn read_rules(self: &Arc<Self>, user: &User) -> PendingRules {
        let rules = self.rules.of(user);
        if rules.begin()
            && let Some(store) = self.store.as_ref().map(|store| store.of(user))
        {
            let (daemon, rules, user) = (Arc::clone(self), rules.clone(), user.clone());
            self.tasks.spawn(async move {
                let read = rules.read(&store);
                if daemon.stop.run_until_cancelled(read).await == Some(true) {
                    let message =
                        "what was remembered for projects and always is read now, and counts";
                    let to = To::User(user);
                    let notices = &daemon.notices;
                    notices.send(to, Severity::Info, "answers_read", message.to_owned());
                }
            });
        }
        let (waiting, stop) = (rules.clone(), self.stop.clone());
        let are_read = async move {
            let read = stop.run_until_cancelled(waiting.are_read_soon()).await;
            read.unwrap_or(false)
        };
        PendingRules {
            rules,
            are_read: are_read.boxed().shared(),
        }
    }
}

impl Session {
    /// Returns what to say where it is not known what was denied.
    pub(super) fn unread(&self, are_read: bool) -> Option<Notice> {
        let unread = match are_read {
            false => Unread::Store,
            true if self.shared.memory.has_unreadable() => Unread::Denial,
            true => return None,
        };
        Some(Notice {
            severity: Severity::Warning,
            code: "answers_unread".to_owned(),
            message: format!(
                "{unread}; until then you are asked about all that would run without a question"
            ),
        })
    }

    pub(super) fn list_approvals(&self, wanted: &ApprovalList) -> Event {
        let redactor = &self.services.redactor;
        let rules = self.shared.memory.list().into_iter();
        let is_wanted = |it: &Listed| {
            wanted
                .scope
                .is_none_or(|scope| it.rule.place.reach() == scope)
        };
        let rules = rules.filter(is_wanted);
        Event::ApprovalListResult(answer::ApprovalRules {
            rules: rules.map(|it| shown(it, redactor)).collect(),
        })
    }

    /// Has answers count no more, in every session at once.
    pub(super) fn revoke_approvals(&self, wanted: ApprovalRevoke) -> Result<Event, SessionError> {
        let ApprovalRevoke {
            rule_id,
            scope,
            conversation_id,
        } = wanted;
        if conversation_id.is_some() && scope != Some(Remember::Conversation) {
            return Err(invalid(
                "approval:revoke: field `conversationId` goes with the scope `conversation`",
            ));
        }
        let memory = &self.shared.memory;
        let rule_ids = match (rule_id, scope) {
            (Some(id), None) => {
                let revoked = memory.revoke(|rule| rule.id == id);
                if revoked.is_empty() {
                    let problem = format!(
                        "no answer {id:?} counts in this session; approval:list (/approvals) says which do"
                    );
                    return Err(SessionError::new(SessionCode::RuleNotFound, problem));
                }
                revoked
            }
            (None, Some(scope)) if scope != Remember::Once => memory.revoke(|rule| {
                let is_of = |named| rule.place == Place::Conversation(named);
                rule.place.reach() == scope && conversation_id.clone().is_none_or(is_of)
            }),
            _ => {
                return Err(invalid(
                    "approval:revoke: give `ruleId`, or a `scope` such as `session` whose answers are all revoked",
                ));
            }
        };
        Ok(Event::ApprovalRevokeResult(answer::ApprovalsRevoked {
            rule_ids,
        }))
    }
}

fn shown(listed: Listed, redactor: &Redactor) -> answer::ApprovalRule {
    let Listed { rule, in_force } = listed;
    let clean = |text: &str| redactor.redact(text).into_owned();
    let (conversation_id, project) = match &rule.place {
        Place::Conversation(id) => (Some(id.clone()), None),
        Place::Project(folder) => (None, Some(folder.clone())),
        Place::Session | Place::Always => (None, None),
    };
    let given = Timestamp::from_millisecond(rule.given_ms).unwrap_or_default();
    answer::ApprovalRule {
        tool_name: rule.key.of_tool().map(str::to_owned),
        matches: clean(&rule.key.in_words()),
        approved: rule.allows,
        scope: rule.place.reach(),
        conversation_id,
        project,
        reason: rule.reason.as_deref().map(clean),
        session_id: rule.session,
        given_at: format!("{given:.3}"),
        in_force,
        rule_id: rule.id,
    }
}

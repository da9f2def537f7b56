//! The verdicts that a client still owes, by tool id.
//!
//! Owed first, then announced, so that no answer can come too early. Each question is settled
//! exactly once; unknown, expired and answered twice are one case and need no bookkeeping.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::deadline::Deadline;
use crate::config::ApprovalConfig;
use crate::exchange::ask::{Ask, Remembered, Verdict};
use crate::exchange::transcript::Events;
use crate::message::ToolId;
use crate::protocol::SessionCode;
use crate::protocol::answer::{Approved, Extended};
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::{
    By, Event, Outcome, SessionError, ToolConfirm, ToolExtended, ToolResolved,
};
use crate::tool::{Refusal, RememberKey};

/// The questions open in one conversation.
#[derive(Default)]
pub struct Approvals {
    open: HashMap<ToolId, Owed>,
}

struct Owed {
    ask: Ask,
    deadline: Deadline,
}

impl Approvals {
    /// Takes up a question and announces it.
    pub fn register(&mut self, mut ask: Ask, rules: &ApprovalConfig, events: &Events) {
        let now = Instant::now();
        let deadline = Deadline::new(now, rules);
        ask.confirm.expires_at = deadline.expires_at(now);
        let confirm = ask.confirm.clone();
        self.open
            .insert(confirm.tool_id.clone(), Owed { ask, deadline });
        events.send(Event::ChatToolConfirm(Box::new(confirm)));
    }

    /// Takes a client's verdict.
    ///
    /// # Errors
    ///
    /// `approval_not_found`; or `invalid_payload` where an edited input does not fit the tool, and
    /// then the question stays open.
    pub fn answer(
        &mut self,
        verdict: ToolApprove,
        remembered: &Remembered,
        events: &Events,
    ) -> Result<Approved, SessionError> {
        let ToolApprove {
            tool_id,
            approved,
            input,
            remember,
            reason,
            unattended,
        } = verdict;
        let Some(owed) = self.open.get(&tool_id) else {
            return Err(not_found(&tool_id));
        };
        let input = input.filter(|input| approved && *input != owed.ask.confirm.input);
        // What is remembered is what the user approved: with an edited input, that one.
        let key = match &input {
            Some(input) => check(owed, input)?,
            None => owed.ask.remember.clone(),
        };
        let Some(owed) = self.open.remove(&tool_id) else {
            return Err(not_found(&tool_id));
        };
        let reach = match key {
            Some(key) if approved && owed.ask.may_remember => remembered.add(key, remember),
            _ => Remember::Once,
        };
        let outcome = if approved {
            Outcome::Approved
        } else {
            Outcome::Denied
        };
        events.send(resolved(
            &owed.ask.confirm,
            outcome,
            By::User,
            reach,
            input.is_some(),
        ));
        let verdict = match (approved, unattended) {
            (true, _) => Verdict::Approved(input),
            (false, false) => Verdict::Denied(reason),
            (false, true) => Verdict::Unattended,
        };
        let accepted = owed.ask.verdict.send(verdict).is_ok();
        Ok(Approved { tool_id, accepted })
    }

    /// Gives a question more time and tells when it lapses now.
    ///
    /// # Errors
    ///
    /// `approval_not_found`.
    pub fn extend(
        &mut self,
        id: &ToolId,
        rules: &ApprovalConfig,
        events: &Events,
    ) -> Result<Extended, SessionError> {
        let owed = self.open.get_mut(id).ok_or_else(|| not_found(id))?;
        let now = Instant::now();
        let confirm = &mut owed.ask.confirm;
        if owed.deadline.extend(now, rules) {
            confirm.expires_at = owed.deadline.expires_at(now);
            events.send(Event::ChatToolExtended(ToolExtended {
                conversation_id: confirm.conversation_id.clone(),
                message_id: confirm.message_id.clone(),
                tool_id: confirm.tool_id.clone(),
                request_id: None,
                expires_at: confirm.expires_at.clone(),
            }));
        }
        Ok(Extended {
            tool_id: confirm.tool_id.clone(),
            request_id: None,
            expires_at: confirm.expires_at.clone(),
        })
    }

    /// Returns when the next question lapses.
    pub fn next_expiry(&self) -> Option<Instant> {
        let deadlines = self.open.values().filter_map(|owed| owed.deadline.at());
        deadlines.min()
    }

    /// Settles the questions whose time is up.
    pub fn expire(&mut self, now: Instant, events: &Events) {
        let late: Vec<ToolId> = self
            .open
            .iter()
            .filter(|(_, owed)| owed.deadline.has_passed(now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            self.settle(&id, Outcome::Expired, By::Timeout, Verdict::Expired, events);
        }
    }

    /// Settles one question, or all of them where no id is given, because the call is over.
    pub fn void(&mut self, id: Option<&ToolId>, by: By, events: &Events) {
        let ids: Vec<ToolId> = match id {
            Some(id) => vec![id.clone()],
            None => self.open.keys().cloned().collect(),
        };
        for id in ids {
            self.settle(&id, Outcome::Cancelled, by, Verdict::Cancelled, events);
        }
    }

    /// Returns the open questions as they were announced.
    pub fn confirms(&self) -> Vec<ToolConfirm> {
        self.open
            .values()
            .map(|owed| owed.ask.confirm.clone())
            .collect()
    }

    fn settle(&mut self, id: &ToolId, outcome: Outcome, by: By, verdict: Verdict, events: &Events) {
        if let Some(owed) = self.open.remove(id) {
            events.send(resolved(
                &owed.ask.confirm,
                outcome,
                by,
                Remember::Once,
                false,
            ));
            // A waiter that is gone was told by other means.
            drop(owed.ask.verdict.send(verdict));
        }
    }
}

/// Checks an edited input; returns what an approval of it with `remember` stands for.
fn check(owed: &Owed, input: &Map<String, Value>) -> Result<Option<RememberKey>, SessionError> {
    match owed.ask.tool.prepare(input) {
        Ok(prepared) => Ok(prepared.facts().remember),
        Err(Refusal::Invalid(message)) => Err(SessionError {
            code: SessionCode::InvalidPayload,
            message: format!("field `input`: {message}; the approval stays open"),
        }),
        Err(Refusal::Violation(violation)) => Err(SessionError {
            code: SessionCode::InvalidPayload,
            message: format!(
                "field `input`: {}; the approval stays open",
                violation.message
            ),
        }),
    }
}

fn resolved(
    confirm: &ToolConfirm,
    outcome: Outcome,
    by: By,
    remember: Remember,
    edited: bool,
) -> Event {
    Event::ChatToolResolved(ToolResolved {
        conversation_id: confirm.conversation_id.clone(),
        message_id: confirm.message_id.clone(),
        tool_id: confirm.tool_id.clone(),
        outcome,
        by,
        remember: (remember != Remember::Once).then_some(remember),
        edited,
    })
}

/// The error of an approval that is not open.
pub fn not_found(id: &ToolId) -> SessionError {
    SessionError {
        code: SessionCode::ApprovalNotFound,
        message: format!("no approval `{id}` is open; it was answered, has expired, or never was"),
    }
}

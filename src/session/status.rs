//! How a session stands in one word, folded from its events and from what no event tells. Pure.

use std::collections::{HashMap, HashSet};

use crate::message::{ConversationId, MessageId, ToolId};
use crate::protocol::answer::SendState;
use crate::protocol::event::{Event, StopReason};
use crate::protocol::status::{Required, RequiredKind, SessionStateName, SessionStatus};

/// The most open questions that a status names.
const MAX_REQUIRED: usize = 64;

/// What runs, what is asked, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Status {
    running: HashMap<ConversationId, MessageId>,
    /// What was admitted and has not begun, by conversation.
    waiting: HashMap<ConversationId, HashSet<MessageId>>,
    /// Conversations in which what waits is not held: something was said in them since the daemon was started.
    awake: HashSet<ConversationId>,
    /// Conversations in which the documents of a send are read.
    reading: HashSet<ConversationId>,
    /// Conversations in which an exchange is about to begin of which no event has said anything.
    expected: HashSet<ConversationId>,
    /// Open questions, oldest first. They are as many as their tables hold.
    required: Vec<Required>,
    /// Conversations whose last exchange went wrong.
    failed: HashSet<ConversationId>,
    /// Whether something was folded that may make another status.
    is_touched: bool,
    /// Whether a question was put since the status was told.
    has_new_question: bool,
    /// The status that was told last.
    told: SessionStatus,
}

/// A status that is other than the one that was told before.
#[derive(Debug)]
pub(crate) struct News {
    pub(crate) status: SessionStatus,
    /// Whether a question was put that the one before did not have.
    pub(crate) has_new_question: bool,
}

impl Status {
    pub(crate) fn fold(&mut self, event: &Event) {
        match event {
            Event::ChatStreamStart(start) => {
                let conversation = start.conversation_id.clone();
                self.failed.remove(&conversation);
                self.begun(&conversation, &start.message_id);
                self.awake.insert(conversation.clone());
                self.running.insert(conversation, start.message_id.clone());
            }
            Event::ChatStreamEnd(end) => {
                let is_its = |it: &Required| {
                    it.conversation_id == end.conversation_id && it.message_id == end.message_id
                };
                self.required.retain(|it| !is_its(it));
                self.begun(&end.conversation_id, &end.message_id);
                // A send that was dropped from the queue ends, too, and does not run.
                if self.running.get(&end.conversation_id) == Some(&end.message_id) {
                    self.running.remove(&end.conversation_id);
                    if matches!(end.stop_reason, StopReason::Error | StopReason::Timeout) {
                        self.failed.insert(end.conversation_id.clone());
                    }
                }
            }
            Event::ChatCloseResult(closed) => {
                self.failed.remove(&closed.conversation_id);
                self.awake.remove(&closed.conversation_id);
            }
            Event::ChatSendResult(sent) => {
                self.admitted(
                    sent.state,
                    sent.duplicate,
                    &sent.conversation_id,
                    &sent.message_id,
                );
            }
            Event::ToolExecuteResult(it) => {
                self.admitted(it.state, it.duplicate, &it.conversation_id, &it.message_id);
            }
            Event::ChatQueued(it) => {
                // What is told with its words was said before; it waits until somebody says something.
                if it.content.is_none() {
                    self.awake.insert(it.conversation_id.clone());
                }
                match it.position {
                    0 => self.begun(&it.conversation_id, &it.message_id),
                    _ => self.waits(&it.conversation_id, &it.message_id),
                }
            }
            _ => {
                if let Some(opened) = opened(event) {
                    // One that is announced again is none.
                    self.has_new_question |= !self.required.contains(&opened);
                    self.settle(|it| *it == opened);
                    self.required.push(opened);
                } else if !self.fold_settled(event) {
                    return;
                }
            }
        }
        self.is_touched = true;
    }

    /// Folds the answer to a send or a call that is to run at once.
    fn admitted(
        &mut self,
        state: SendState,
        duplicate: bool,
        conversation: &ConversationId,
        message: &MessageId,
    ) {
        if state == SendState::Started && !duplicate {
            self.awake.insert(conversation.clone());
            self.waits(conversation, message);
        }
    }

    fn waits(&mut self, conversation: &ConversationId, message: &MessageId) {
        let waiting = self.waiting.entry(conversation.clone()).or_default();
        waiting.insert(message.clone());
    }

    /// Forgets what waits no longer.
    fn begun(&mut self, conversation: &ConversationId, message: &MessageId) {
        self.expected.remove(conversation);
        if let Some(waiting) = self.waiting.get_mut(conversation) {
            waiting.remove(message);
            if waiting.is_empty() {
                self.waiting.remove(conversation);
            }
        }
    }

    /// Notes that the documents of a send are read.
    pub(crate) fn reads(&mut self, conversation: &ConversationId) {
        self.reading.insert(conversation.clone());
        self.is_touched = true;
    }

    /// Notes that they are not read any more.
    pub(crate) fn has_read(&mut self, conversation: &ConversationId) {
        self.reading.remove(conversation);
        self.is_touched = true;
    }

    /// Notes whether an exchange runs in a conversation or is about to, as its own task says: not each send that is
    /// admitted has an event before its exchange begins.
    pub(crate) fn note_live(&mut self, conversation: &ConversationId, is_live: bool) {
        let is_known = self.running.contains_key(conversation) || self.has_next(conversation);
        match is_live && !is_known {
            true => self.expected.insert(conversation.clone()),
            false => self.expected.remove(conversation),
        };
        self.is_touched = true;
    }

    /// Returns whether something waits that is not held.
    fn has_next(&self, conversation: &ConversationId) -> bool {
        self.waiting.contains_key(conversation) && self.awake.contains(conversation)
    }

    /// Returns whether something runs or is going to, as far as nobody has to answer anything.
    fn is_at_work(&self) -> bool {
        !self.running.is_empty()
            || !self.reading.is_empty()
            || !self.expected.is_empty()
            || self.waiting.keys().any(|it| self.awake.contains(it))
    }

    /// Returns whether an event settles a question.
    fn fold_settled(&mut self, event: &Event) -> bool {
        match event {
            Event::ChatToolResolved(it) => {
                let kind = RequiredKind::Approval;
                self.settle_call(kind, &it.tool_id, |open| open.host == it.host);
            }
            Event::ChatToolInputResolved(it) => {
                let id = Some(it.request_id.to_string());
                self.settle(|open| open.kind == RequiredKind::Input && open.request_id == id);
            }
            Event::ChatBudgetResolved(it) => {
                let id = Some(it.request_id.to_string());
                self.settle(|open| open.kind == RequiredKind::Budget && open.request_id == id);
            }
            Event::ChatTrustResolved(it) => {
                let id = Some(it.request_id.to_string());
                self.settle(|open| open.kind == RequiredKind::Trust && open.request_id == id);
            }
            Event::ChatToolCancelled(it) => {
                self.settle_call(RequiredKind::ToolOutput, &it.tool_id, |_| true);
            }
            Event::ChatToolResult(it) => {
                self.settle_call(RequiredKind::ToolOutput, &it.tool_id, |_| true);
            }
            _ => return false,
        }
        true
    }

    fn settle(&mut self, is_settled: impl Fn(&Required) -> bool) {
        self.required.retain(|open| !is_settled(open));
    }

    fn settle_call(
        &mut self,
        kind: RequiredKind,
        call: &ToolId,
        is_settled: impl Fn(&Required) -> bool,
    ) {
        self.settle(|open| {
            open.kind == kind && open.tool_id.as_ref() == Some(call) && is_settled(open)
        });
    }

    /// Returns how the session stands now.
    pub(crate) fn now(&self) -> SessionStatus {
        let state = if !self.required.is_empty() {
            SessionStateName::RequiresAction
        } else if self.is_at_work() {
            SessionStateName::Running
        } else if !self.failed.is_empty() {
            SessionStateName::Failed
        } else {
            SessionStateName::Idle
        };
        let total = self.required.len();
        SessionStatus {
            state,
            requires: self.required.iter().take(MAX_REQUIRED).cloned().collect(),
            requires_total: (total > MAX_REQUIRED).then_some(total),
        }
    }

    /// Returns how the session stands, where that is other than what this said last.
    pub(crate) fn news(&mut self) -> Option<News> {
        if !std::mem::take(&mut self.is_touched) {
            return None;
        }
        let has_new_question = std::mem::take(&mut self.has_new_question);
        let status = self.now();
        if status == self.told {
            return None;
        }
        self.told = status.clone();
        Some(News {
            status,
            has_new_question,
        })
    }
}

/// Returns the question that an event puts.
fn opened(event: &Event) -> Option<Required> {
    let required = |kind, conversation: &ConversationId, message: &MessageId| Required {
        kind,
        conversation_id: conversation.clone(),
        message_id: message.clone(),
        tool_id: None,
        request_id: None,
        host: None,
    };
    Some(match event {
        Event::ChatToolConfirm(it) => Required {
            tool_id: Some(it.tool_id.clone()),
            host: it.host.clone(),
            ..required(RequiredKind::Approval, &it.conversation_id, &it.message_id)
        },
        Event::ChatToolInputRequest(it) => Required {
            tool_id: Some(it.tool_id.clone()),
            request_id: Some(it.request_id.to_string()),
            ..required(RequiredKind::Input, &it.conversation_id, &it.message_id)
        },
        Event::ChatBudgetConfirm(it) => Required {
            request_id: Some(it.request_id.to_string()),
            ..required(RequiredKind::Budget, &it.conversation_id, &it.message_id)
        },
        Event::ChatTrustConfirm(it) => Required {
            request_id: Some(it.request_id.to_string()),
            ..required(RequiredKind::Trust, &it.conversation_id, &it.message_id)
        },
        Event::ChatToolCall(it) => Required {
            tool_id: Some(it.tool_id.clone()),
            ..required(
                RequiredKind::ToolOutput,
                &it.conversation_id,
                &it.message_id,
            )
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

//! How a session stands in one word, folded from its events. Pure.

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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, mut payload: Value, conversation: &str) -> Event {
        payload["conversationId"] = json!(conversation);
        serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
    }

    fn start(conversation: &str) -> Event {
        let start = json!({"messageId": "m1", "provider": "p", "model": "m"});
        event("chat:stream-start", start, conversation)
    }

    fn end(conversation: &str, message: &str, reason: &str) -> Event {
        let end = json!({"messageId": message, "stopReason": reason, "partial": false, "turns": 1,
            "toolCalls": 0, "usage": {}, "durationMs": 1});
        event("chat:stream-end", end, conversation)
    }

    fn confirm(host: Option<&str>) -> Event {
        let mut confirm = json!({"messageId": "m1", "toolId": "t1", "toolName": "bash", "input": {},
            "danger": {"level": "warning", "reasons": []}, "reason": "trust"});
        if let Some(host) = host {
            confirm["host"] = json!(host);
        }
        event("chat:tool-confirm", confirm, "a")
    }

    fn resolved(host: Option<&str>) -> Event {
        let mut resolved =
            json!({"messageId": "m1", "toolId": "t1", "outcome": "approved", "by": "user"});
        if let Some(host) = host {
            resolved["host"] = json!(host);
        }
        event("chat:tool-resolved", resolved, "a")
    }

    fn states(events: &[Event]) -> Vec<(SessionStateName, usize)> {
        let news = news(events).into_iter();
        news.map(|it| (it.status.state, it.status.requires.len()))
            .collect()
    }

    fn news(events: &[Event]) -> Vec<News> {
        let mut status = Status::default();
        let mut news = Vec::new();
        for event in events {
            status.fold(event);
            news.extend(status.news());
        }
        news
    }

    #[test]
    fn a_question_is_new_once_and_an_answer_to_another_one_is_none() {
        let told = news(&[
            start("a"),
            confirm(None),
            confirm(Some("a.example")),
            confirm(None),
            resolved(None),
            resolved(Some("a.example")),
        ]);
        let new: Vec<bool> = told.iter().map(|it| it.has_new_question).collect();
        // The third is that the two are in another order.
        assert_eq!(new, [false, true, true, false, false, false]);
    }

    #[test]
    fn each_change_is_told_once() {
        use SessionStateName::{Failed, Idle, RequiresAction, Running};

        let told = states(&[
            start("a"),
            start("b"),
            confirm(None),
            // Announced again, as when it was extended.
            confirm(None),
            confirm(Some("example.org")),
            resolved(None),
            end("b", "m1", "end_turn"),
            resolved(Some("example.org")),
            end("a", "m1", "error"),
            start("a"),
            end("a", "m1", "end_turn"),
        ]);
        assert_eq!(
            told,
            [
                (Running, 0),
                (RequiresAction, 1),
                (RequiresAction, 2),
                (RequiresAction, 1),
                (Running, 0),
                (Failed, 0),
                (Running, 0),
                (Idle, 0),
            ]
        );
    }

    #[test]
    fn an_end_leaves_no_question_of_its_exchange_and_one_of_the_queue_changes_nothing() {
        use SessionStateName::{Idle, RequiresAction, Running};

        let told = states(&[
            start("a"),
            confirm(None),
            end("a", "m2", "cancelled"),
            end("a", "m1", "cancelled"),
        ]);
        assert_eq!(told, [(Running, 0), (RequiresAction, 1), (Idle, 0)]);
    }

    fn queued(message: &str, content: Option<&str>, position: usize) -> Event {
        let mut queued = json!({"messageId": message, "position": position});
        if let Some(content) = content {
            queued["content"] = json!(content);
        }
        event("chat:queued", queued, "a")
    }

    fn started(message: &str, duplicate: bool) -> Event {
        let sent = json!({"messageId": message, "state": "started", "duplicate": duplicate});
        event("chat:send-result", sent, "a")
    }

    #[test]
    fn what_waits_runs_unless_it_is_held() {
        use SessionStateName::{Failed, Idle, Running};

        let end_of = |message: &str| end("a", message, "end_turn");
        let start_of = |message: &str| {
            let start = json!({"messageId": message, "provider": "p", "model": "m"});
            event("chat:stream-start", start, "a")
        };
        for (events, expected) in [
            // Between two exchanges the session is not idle.
            (
                vec![
                    started("m1", false),
                    queued("m2", None, 1),
                    start_of("m1"),
                    end_of("m1"),
                    start_of("m2"),
                    end_of("m2"),
                    started("m2", true),
                ],
                vec![Running, Idle],
            ),
            // Of a daemon of before: held until something is said.
            (
                vec![
                    queued("m1", Some("one"), 1),
                    queued("m2", Some("two"), 2),
                    started("m3", false),
                    start_of("m3"),
                    end("a", "m3", "error"),
                    start_of("m1"),
                    end("a", "m1", "error"),
                    end("a", "m2", "cancelled"),
                ],
                vec![Running, Failed],
            ),
            (
                vec![queued("m1", Some("one"), 1), end("a", "m1", "cancelled")],
                vec![],
            ),
            // It becomes part of what runs.
            (
                vec![
                    start_of("m1"),
                    queued("m2", None, 1),
                    queued("m2", None, 0),
                    end_of("m1"),
                ],
                vec![Running, Idle],
            ),
        ] {
            let told: Vec<_> = states(&events)
                .into_iter()
                .map(|(state, _)| state)
                .collect();
            assert_eq!(told, expected, "{events:?}");
        }
    }

    #[test]
    fn what_no_event_has_told_yet_is_noted() {
        let mut status = Status::default();
        let conversation = ConversationId::new("a");
        let mut told = |change: &dyn Fn(&mut Status)| {
            change(&mut status);
            status.news().map(|it| it.status.state)
        };
        let running = Some(SessionStateName::Running);
        assert_eq!(told(&|it| it.reads(&conversation)), running);
        assert_eq!(told(&|it| it.note_live(&conversation, true)), None);
        assert_eq!(told(&|it| it.has_read(&conversation)), None);
        assert_eq!(told(&|it| it.fold(&start("a"))), None);
        assert_eq!(told(&|it| it.note_live(&conversation, true)), None);
        let idle = Some(SessionStateName::Idle);
        assert_eq!(told(&|it| it.fold(&end("a", "m1", "end_turn"))), idle);
    }

    #[test]
    fn a_failure_is_forgotten_with_its_conversation() {
        use SessionStateName::{Failed, Idle, Running};

        let close = event("chat:close-result", json!({"closed": true}), "a");
        let told = states(&[start("a"), end("a", "m1", "timeout"), close]);
        assert_eq!(told, [(Running, 0), (Failed, 0), (Idle, 0)]);
    }
}

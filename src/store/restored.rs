//! A session as the store has it, in this program's own words.
//!
//! What cannot be read is left out and logged: one damaged row must not cost the rest.

use std::collections::HashMap;
use std::fmt;

use outrigger_store::{Conversation, Exchange, Session};
use serde::de::DeserializeOwned;

use super::{Waiting, body, calls};
use crate::message::{ConversationId, Message, MessageId, Money, SessionId, ToolId};
use crate::permission::rule::{Key, Place, Rule};
use crate::protocol::RequestId;
use crate::protocol::answer;
use crate::protocol::content::WireMessage;
use crate::protocol::event::StreamEnd;
use crate::protocol::record::ExecutionRecord;

/// What is restored of a session.
#[derive(Debug)]
pub(crate) struct Restored {
    /// How often it was begun, the first time included.
    pub epoch: u64,
    /// The highest numbers of events and ids that somebody may have seen, and how many after them are reserved.
    pub seq: u64,
    pub ids: u64,
    pub reserved_seq: u64,
    pub reserved_ids: u64,
    pub project: Option<String>,
    pub title: Option<String>,
    pub settings: Option<String>,
    pub conversations: Vec<RestoredConversation>,
    /// What is known of calls, the oldest first, and whether their tools had begun to run.
    pub records: Vec<(ExecutionRecord, bool)>,
    /// The calls whose result no message says yet.
    pub calls: HashMap<ToolId, Call>,
    /// How exchanges ended, with the numbers of those events, the oldest first.
    pub ends: Vec<(u64, StreamEnd)>,
    /// Exchanges that did not end.
    pub interrupted: Vec<(ConversationId, MessageId)>,
    /// Sends that wait, by the names of their rows.
    pub queued: Vec<(String, Waiting)>,
    pub sent: Vec<Sent>,
    /// The answers that count in it and its conversations.
    pub rules: Vec<Rule>,
    /// What its conversations spent; what others of it did, that are forgotten, is under an empty name.
    pub spent: Vec<(ConversationId, Money)>,
}

/// A conversation as it was.
#[derive(Debug)]
pub(crate) struct RestoredConversation {
    pub id: ConversationId,
    /// Its messages by place; none where one cannot be read.
    pub messages: Vec<Option<Message>>,
    /// What its model does not see of it, as JSON.
    pub compacted: Option<String>,
}

/// A call as it was when the daemon ended.
#[derive(Debug)]
pub(crate) struct Call {
    /// Whether its tool had begun to run.
    pub began: bool,
    /// What it came to, where it did.
    pub result: Option<Message>,
}

/// A send that was answered.
#[derive(Debug)]
pub(crate) struct Sent {
    pub id: RequestId,
    pub digest: Vec<u8>,
    pub answer: answer::Sent,
}

impl From<Session> for Restored {
    fn from(session: Session) -> Self {
        let mut restored = Self {
            epoch: session.epoch,
            seq: session.seq,
            ids: session.ids,
            reserved_seq: session.reserved_seq,
            reserved_ids: session.reserved_ids,
            project: session.project,
            title: session.title,
            settings: session.settings,
            conversations: session
                .conversations
                .into_iter()
                .map(conversation)
                .collect(),
            records: Vec::new(),
            calls: HashMap::new(),
            ends: Vec::new(),
            interrupted: Vec::new(),
            queued: Vec::new(),
            sent: Vec::new(),
            rules: rules(&session.rules, &Place::Session),
            spent: session
                .spent
                .into_iter()
                .map(|(id, micros)| (ConversationId::new(id), Money::from_micros(micros)))
                .collect(),
        };
        for call in session.calls {
            let record = read(&call.record, "a call");
            restored
                .records
                .extend(record.map(|record| (calls::broken_off(record), call.began)));
            let result = call.result.and_then(|result| {
                let message: Option<WireMessage> = read(&result, "a result");
                message.map(Message::from)
            });
            let began = call.began;
            let id = ToolId::new(call.id);
            restored.calls.insert(id, Call { began, result });
        }
        for exchange in session.exchanges {
            let Exchange {
                id,
                conversation,
                end,
                ..
            } = exchange;
            match end {
                Some((seq, end)) => {
                    let end = read(&end, "an end");
                    restored.ends.extend(end.map(|end| (seq, end)));
                }
                None => {
                    let id = (ConversationId::new(conversation), MessageId::new(id));
                    restored.interrupted.push(id);
                }
            }
        }
        // As the log has them.
        restored.ends.sort_by_key(|(seq, _)| *seq);
        for queued in session.queued {
            let waiting = Waiting::read(&queued.send);
            restored.queued.extend(waiting.map(|it| (queued.id, it)));
        }
        for sent in session.sent {
            let answer = read(&sent.answer, "an answer");
            restored.sent.extend(answer.map(|answer| Sent {
                id: RequestId::from_json(sent.id),
                digest: sent.digest,
                answer,
            }));
        }
        restored
    }
}

/// Returns answers as they were given. One that cannot be read may be a denial: it stands for itself, at `place`.
pub(crate) fn rules(kept: &[(String, String)], place: &Place) -> Vec<Rule> {
    let rule = |(id, text): &(String, String)| {
        read(text, "a rule").unwrap_or_else(|| Rule {
            id: id.clone(),
            key: Key::Unreadable,
            allows: false,
            place: place.clone(),
            reason: None,
            session: SessionId::new(""),
            given_ms: 0,
        })
    };
    kept.iter().map(rule).collect()
}

fn conversation(conversation: Conversation) -> RestoredConversation {
    let bodies = conversation.messages.iter().map(|message| &message.body);
    let messages = bodies.map(|body| logged(body::message(body), "a message").map(Message::from));
    RestoredConversation {
        messages: messages.collect(),
        id: ConversationId::new(conversation.id),
        compacted: conversation.compacted,
    }
}

pub(crate) fn read<T: DeserializeOwned>(text: &str, what: &str) -> Option<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.disable_recursion_limit();
    logged(T::deserialize(&mut json), what)
}

pub(super) fn logged<T>(read: Result<T, impl fmt::Display>, what: &str) -> Option<T> {
    read.inspect_err(|error| tracing::error!(%error, "{what} of the store cannot be read"))
        .ok()
}

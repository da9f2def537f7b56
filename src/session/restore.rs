//! A session of the store, begun anew: its conversations, what waits in them, and how its last exchanges ended.

use std::collections::HashMap;
use std::sync::Arc;

use super::Session;
use super::sends::KnownSend;
use crate::conversation::{self, Admission, KeptSend};
use crate::exchange::calls::audit_interrupted;
use crate::exchange::compaction::Compacted;
use crate::exchange::history::{History, is_valid, repair_with};
use crate::message::{
    ConversationId, Message, MessageId, Notice, Part, Severity, ToolCall, ToolId, ToolResult,
};
use crate::protocol::ChatCode;
use crate::protocol::command::{Configure, WhenBusy};
use crate::protocol::event::{ChatError, Event, StopReason, StreamEnd, Tokens};
use crate::store::Waiting;
use crate::store::restored::{Call, Restored, RestoredConversation, read};

/// What the client of an exchange is told that the daemon's end broke off.
const INTERRUPTED: &str = "the daemon stopped while this exchange ran; what it had said is remembered turn by turn, so send something to go on";

impl Session {
    /// Takes up what the store has of this session. Its journal knows all of it already.
    pub(super) async fn restore(&mut self, restored: Restored) {
        let Restored {
            conversations,
            calls,
            interrupted,
            queued,
            sent,
            settings,
            rules,
            ..
        } = restored;
        self.shared.memory.restore(rules);
        if let Some(settings) = settings {
            self.restore_settings(&settings);
        }
        for sent in sent {
            self.sends.push_back(KnownSend::restored(sent));
        }
        for conversation in conversations {
            let exchange = interrupted
                .iter()
                .find(|(interrupted, _)| *interrupted == conversation.id);
            let exchange = exchange.map(|(_, exchange)| exchange);
            self.restore_conversation(conversation, &calls, exchange);
        }
        for (conversation, exchange) in &interrupted {
            self.end_interrupted(conversation, exchange);
        }
        let count = queued.len();
        for (row, waiting) in queued {
            self.restore_send(&MessageId::new(row), waiting, &interrupted)
                .await;
        }
        let what_waits = match (count, self.holds_queue()) {
            (0, _) => "",
            (_, true) => {
                ". What waits is answered after the next thing that you send in its conversation, or dropped by chat:cancel with `queued`"
            }
            (_, false) => ". What waits runs now (store.resume_queue)",
        };
        if !interrupted.is_empty() || count > 0 {
            self.at_begin.push(Notice {
                severity: Severity::Warning,
                code: "interrupted".to_owned(),
                message: format!(
                    "the daemon was stopped meanwhile: exchanges that were broken off: {}, sends that waited: {count}{what_waits}",
                    interrupted.len()
                ),
            });
        }
    }

    /// Returns whether what waited when the daemon ended waits on until the user says something.
    fn holds_queue(&self) -> bool {
        let store = &self.daemon.services.config().store;
        !store.as_ref().is_some_and(|store| store.resume_queue)
    }

    /// Configures what the client had configured, as far as the operator still lets it.
    fn restore_settings(&mut self, settings: &str) {
        let wanted: Result<Configure, _> = serde_json::from_str(settings);
        let problems = match wanted {
            Ok(wanted) => {
                let parts = one_by_one(wanted).into_iter();
                let refused = parts.filter_map(|part| self.configure_defaults(&part).err());
                refused.map(|error| error.message).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        for problem in problems {
            self.at_begin.push(Notice {
                severity: Severity::Warning,
                code: "settings_lost".to_owned(),
                message: format!(
                    "something that this session had configured is not in force any more: {problem}"
                ),
            });
        }
    }

    /// Makes a conversation of its messages; a call without a result gets one that says what is known of it. What cannot
    /// be read is left out.
    fn restore_conversation(
        &mut self,
        conversation: RestoredConversation,
        calls: &HashMap<ToolId, Call>,
        interrupted: Option<&MessageId>,
    ) {
        let RestoredConversation {
            id,
            messages,
            compacted,
        } = conversation;
        let id = &id;
        let history = self.new_history(id);
        let damaged = messages.iter().filter(|message| message.is_none()).count();
        // Nearly every one. What a long one says is neither copied nor compared with itself.
        if damaged == 0 && is_valid(messages.iter().flatten()) {
            history.restore(messages.into_iter().flatten().collect());
            restore_compacted(&history, compacted.as_deref(), usize::MAX);
            return self.take_up(id, history);
        }
        // Each at its place in the store.
        let unreadable = || Message::User(vec![Part::text("[cannot be read]")]);
        let before = messages.iter().cloned();
        let before: Vec<Message> = before
            .map(|message| message.unwrap_or_else(unreadable))
            .collect();
        let messages = messages.into_iter().flatten().collect();
        let mut broken_off = Vec::new();
        let (messages, _) = repair_with(messages, |call| {
            let known = calls.get(&call.id);
            let (result, text) = outcome(call, known);
            let began = known.is_some_and(|known| known.began);
            broken_off.extend(text.filter(|_| began).map(|text| (call.id.clone(), text)));
            result
        });
        if damaged > 0 {
            self.at_begin.push(Notice {
                severity: Severity::Error,
                code: "messages_damaged".to_owned(),
                message: format!(
                    "{damaged} messages of conversation {:?} cannot be read in the store and are left out; `outrigger sessions backup` makes a copy of the rest",
                    id.as_str()
                ),
            });
        }
        let same = before.iter().zip(&messages);
        let same = same.take_while(|(before, now)| before == now).count();
        history.restore(before);
        // What is other than before is written.
        if let Err(full) = history.replace(&MessageId::new(""), messages) {
            tracing::error!(conversation_id = %id, ?full, "there is no room for a conversation of the store");
        }
        restore_compacted(&history, compacted.as_deref(), same);
        self.take_up(id, history);
        // Once: from now on the history has their results.
        for (id, text) in broken_off {
            if let Some(record) = self.shared.executions.get(&id) {
                let exchange = interrupted.cloned().unwrap_or_else(|| MessageId::new(""));
                audit_interrupted((&self.services, &self.shared), &exchange, &record, text);
            }
        }
    }

    /// Goes on with a conversation; a task is not begun anew.
    fn take_up(&mut self, id: &ConversationId, history: Arc<History>) {
        match id.task() {
            Some(_) => self.ended_tasks.add(id.clone(), history),
            None => drop(self.begin_conversation(id, history)),
        }
    }

    fn end_interrupted(&self, conversation: &ConversationId, exchange: &MessageId) {
        let events = &self.shared.events;
        events.emit(Event::ChatError(Box::new(ChatError {
            retryable: true,
            ..ChatError::new(
                conversation,
                Some(exchange),
                ChatCode::Interrupted,
                INTERRUPTED,
            )
        })));
        events.emit(Event::ChatStreamEnd(Box::new(StreamEnd {
            conversation_id: conversation.clone(),
            message_id: exchange.clone(),
            stop_reason: StopReason::Error,
            partial: true,
            turns: 0,
            tool_calls: 0,
            usage: Tokens::default(),
            cost_usd: None,
            spent_usd: None,
            estimated: false,
            duration_ms: 0,
        })));
    }

    /// Has a send wait that waited; one whose exchange had begun is what the user said in it.
    async fn restore_send(
        &mut self,
        row: &MessageId,
        Waiting { send, most }: Waiting,
        interrupted: &[(ConversationId, MessageId)],
    ) {
        let conversation = send.conversation_id.clone();
        let is_held = self.holds_queue();
        let began = interrupted.iter().any(|(_, exchange)| exchange == row);
        let setup = match began {
            true => Err(None),
            false => self.setup(&send, row.clone()).map_err(Some),
        };
        match setup {
            Ok(setup) => {
                // Whoever comes back to it may have more done than whoever said it.
                setup.freedom.narrow(most);
                let json = Waiting::json(&send, setup.freedom.most());
                let inbox = self.conversation(&conversation);
                let send = conversation::SendRequest {
                    setup,
                    execute: None,
                    has_settings: super::sends::has_settings(&send),
                    history: send.history,
                    when_busy: WhenBusy::Queue,
                    reply_to: None,
                    admission: conversation::SharedAdmission::default(),
                    kept: KeptSend {
                        json,
                        is_restored: true,
                        is_held,
                        ..KeptSend::default()
                    },
                };
                let command = conversation::Command::Send(Box::new(send));
                drop(inbox.send(command).await);
            }
            Err(problem) => {
                // Its words stay: as a message that nobody answered.
                let before = send.history;
                let message = Message::User(send.content.into_parts());
                let say = {
                    let row = row.clone();
                    move |view: conversation::View<'_>| {
                        let history = &view.context.conversation.history;
                        if let Some(before) = before {
                            let before = before.into_iter().map(Message::from).collect();
                            history.replace(&row, before).ok();
                        }
                        history.say(&row, message, std::slice::from_ref(&row));
                    }
                };
                drop(self.conversation(&conversation));
                self.look(&conversation, say).await;
                if let Some(problem) = problem {
                    self.shared.events.emit(Event::SessionError(problem));
                }
            }
        }
    }
}

/// Has the model of a conversation see no more of it than before, unless one of the messages that there were then is not as it
/// was: the first `same` ones are.
fn restore_compacted(history: &History, compacted: Option<&str>, same: usize) {
    let read = |text| read::<Compacted>(text, "a compaction");
    let compacted = compacted.and_then(read);
    if let Some(compacted) = compacted.filter(|compacted| compacted.made_at <= same) {
        history.restore_compacted(compacted);
    }
}

/// Returns settings that hold without one another, so that one which is refused costs itself only.
fn one_by_one(wanted: Configure) -> [Configure; 5] {
    let Configure {
        trust_level,
        provider,
        model,
        layers,
        workflow,
        input_requests,
        trust_questions,
        budget,
        ..
    } = wanted;
    [
        Configure {
            trust_level,
            ..Configure::default()
        },
        Configure {
            workflow,
            ..Configure::default()
        },
        Configure {
            provider,
            model,
            ..Configure::default()
        },
        Configure {
            budget,
            ..Configure::default()
        },
        Configure {
            layers,
            input_requests,
            trust_questions,
            ..Configure::default()
        },
    ]
}

/// Returns the result of a call that no message answers, and its text where it had none of its own.
fn outcome(call: &ToolCall, known: Option<&Call>) -> (ToolResult, Option<&'static str>) {
    if let Some(Call {
        result: Some(Message::ToolResult(result)),
        ..
    }) = known
    {
        return (result.clone(), None);
    }
    let text = match known.is_some_and(|known| known.began) {
        true => {
            "no result: the daemon stopped while this call ran; whether it had an effect is not known"
        }
        // Of a copy, too, that was made while it ran.
        false => "no result: it is not known that this call ever ran",
    };
    let result = ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: vec![Part::text(text)],
        is_error: true,
    };
    (result, Some(text))
}

impl KnownSend {
    fn restored(sent: crate::store::restored::Sent) -> Self {
        let admission = conversation::SharedAdmission::default();
        let conversation = sent.answer.conversation_id.clone();
        *admission.lock() = Admission::Admitted(sent.answer);
        Self {
            id: sent.id,
            digest: sent.digest,
            conversation,
            call: None,
            admission,
        }
    }
}

//! From `chat:send` to a conversation: once, however often it is sent under the id that a client gave it.

use sha2::{Digest as _, Sha256};

use super::asking::asks;
use super::reading::{Unfinished, has_documents};
use super::{MAX_CONVERSATIONS, Session, resolve};
use crate::conversation::{self, Admission, KeptSend, SharedAdmission};
use crate::exchange::context::Setup;
use crate::exchange::failure;
use crate::message::{ConversationId, MessageId, ToolId, TrustLevel};
use crate::permission::{ApprovalPolicy, Limits};
use crate::protocol::answer::Sent;
use crate::protocol::command::{ChatSend, Command};
use crate::protocol::event::{ChatError, Event, SessionError};
use crate::protocol::{RequestId, SessionCode, word};
use crate::spend::Owners;
use crate::store::Waiting;
use crate::telemetry::metrics;

/// Ids of sends that are remembered, so that none runs twice.
const REMEMBERED_SENDS: usize = 256;

pub(super) struct KnownSend {
    pub(super) id: RequestId,
    /// Of all that it says: a client whose ids begin anew says something else under an old one.
    pub(super) digest: Vec<u8>,
    pub(super) conversation: ConversationId,
    /// The call that it is, where it is no message.
    pub(super) call: Option<ToolId>,
    pub(super) admission: SharedAdmission,
}

/// A send that was not sent before.
pub(super) struct NewSend {
    send: ChatSend,
    /// All that it says, and the digest of that.
    json: String,
    digest: Vec<u8>,
}

impl Session {
    /// Passes a `chat:send` on to its conversation, once where it comes again under the same id.
    pub(super) async fn send(&mut self, send: ChatSend, id: Option<&RequestId>) {
        let Some(new) = self.new_send(send, id).await else {
            return;
        };
        // Before documents and hooks: they are what costs.
        match self.count_send().await {
            Ok(()) => self.take_send(new, id).await,
            Err(error) => self.answer(id, Event::SessionError(error)),
        }
    }

    /// Returns a send that was not sent before; else answers it.
    pub(super) async fn new_send(
        &mut self,
        send: ChatSend,
        id: Option<&RequestId>,
    ) -> Option<NewSend> {
        let json = json(&send);
        let digest = Sha256::digest(&json).to_vec();
        if let Some(id) = id
            && self.is_repeated(id, &digest).await
        {
            return None;
        }
        if self.daemon.draining.is_cancelled() {
            self.answer(id, Event::SessionError(shutting_down()));
            return None;
        }
        Some(NewSend { send, json, digest })
    }

    /// Passes a send on that is counted.
    pub(super) async fn take_send(&mut self, new: NewSend, id: Option<&RequestId>) {
        let NewSend { send, json, digest } = new;
        self.daemon.mcp.seek(&self.shared.id);
        let conversation = &send.conversation_id;
        if self.reading.is_reading(conversation) {
            let conversation = conversation.clone();
            let send = Command::ChatSend(Box::new(send));
            return self.wait_behind(&conversation, send, id);
        }
        let before = send.history.iter().flatten().map(|it| &it.content);
        let has_documents = before.chain([&send.content]).any(has_documents);
        if has_documents || asks(&self.daemon.services.config()) {
            return self.read_documents(Unfinished::Send(Box::new(send), digest), id);
        }
        self.admit_send(send, json, digest, id).await;
    }

    /// Passes a send on to its conversation whose documents are read; `json` is what is kept of it, `digest` is of what the
    /// client sent.
    pub(super) async fn admit_send(
        &mut self,
        send: ChatSend,
        json: String,
        digest: Vec<u8>,
        id: Option<&RequestId>,
    ) {
        if self.daemon.draining.is_cancelled() {
            return self.answer(id, Event::SessionError(shutting_down()));
        }
        let (config, default) = (
            self.daemon.services.config(),
            self.daemon.providers.default_id(),
        );
        let chosen = self.defaults.allowed(&config, default).provider;
        if send.provider.is_none() && chosen.is_none() {
            self.daemon.find_provider().await;
        }
        let setup = self.setup(&send, self.shared.ids.message());
        let setup = match setup {
            Ok(setup) => setup,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        if let Some(error) = self.exhausted(&setup).await {
            return self.answer(id, Event::ChatError(Box::new(error)));
        }
        let conversation_id = send.conversation_id.clone();
        if let Err(error) = self.room_for_conversation(&conversation_id) {
            return self.answer(id, Event::SessionError(error));
        }
        let json = match self.grant.most_trust {
            TrustLevel::Autonomous => json,
            most => Waiting::json(&send, most),
        };
        let admission = SharedAdmission::default();
        if let Some(id) = id {
            self.remember_send(KnownSend {
                id: id.clone(),
                digest: digest.clone(),
                conversation: conversation_id.clone(),
                call: None,
                admission: admission.clone(),
            });
        }
        for message in send.history.iter().flatten() {
            for call in &message.tool_calls {
                self.shared.ids.taken(&call.id);
            }
        }
        let inbox = self.conversation(&conversation_id);
        let send = conversation::SendRequest {
            setup,
            execute: None,
            has_settings: has_settings(&send),
            history: send.history,
            when_busy: send.when_busy,
            reply_to: id.cloned(),
            admission,
            kept: KeptSend {
                json,
                digest,
                ..KeptSend::default()
            },
        };
        let command = conversation::Command::Send(Box::new(send));
        drop(inbox.send(command).await);
    }

    /// Fails where another conversation is one too many.
    pub(super) fn room_for_conversation(
        &mut self,
        id: &ConversationId,
    ) -> Result<(), SessionError> {
        self.closing.retain(|_, gone| !gone.is_cancelled());
        let count = self.conversations.len() + self.closing.len();
        if self.conversations.contains_key(id) || count < MAX_CONVERSATIONS {
            return Ok(());
        }
        let message = format!(
            "this session has {MAX_CONVERSATIONS} conversations; close one with chat:close"
        );
        Err(SessionError::new(SessionCode::RateLimited, message))
    }

    pub(super) fn remember_send(&mut self, send: KnownSend) {
        self.sends.push_back(send);
        if self.sends.len() > REMEMBERED_SENDS {
            self.sends.pop_front();
        }
    }

    /// Returns the error of a send of whose cap nothing is left, before anything is remembered of it.
    async fn exhausted(&self, setup: &Setup) -> Option<ChatError> {
        let (spend, config) = (&self.services.spend, &self.services.config());
        spend.known().await;
        let conversation = self.conversations.get(&setup.conversation_id);
        let owners = Owners {
            task: None,
            exchange: None,
            conversation: conversation.map(|handle| &handle.account),
            session: &self.shared.account,
            provider: &setup.provider_id,
        };
        let caps = spend.caps(owners, |key| config.session.is_locked(key));
        let reached = caps.exhausted()?;
        metrics::budget_reached(&word(&reached.cap.scope));
        Some(ChatError {
            message_id: None,
            ..failure::budget_exhausted(&reached, None, setup, spend)
        })
    }

    /// Settles what a send leaves open.
    pub(super) fn setup(&self, send: &ChatSend, id: MessageId) -> Result<Setup, SessionError> {
        self.check_trust(send.trust_level, None)?;
        resolve::setup(
            send,
            id,
            &self.ready.session_id,
            (&self.defaults, self.grant.most_trust),
            &self.daemon.services.config(),
            &self.daemon.providers,
            (&self.shared.workspace, &self.shared.tools),
        )
    }

    /// Fails where more is to be done without asking than the token of whoever asks allows.
    pub(super) fn check_trust(
        &self,
        trust: Option<TrustLevel>,
        policy: Option<ApprovalPolicy>,
    ) -> Result<(), SessionError> {
        let most = self.grant.most_trust;
        let what = match (trust, policy) {
            (Some(trust), _) if trust > most => "trustLevel",
            (_, Some(policy)) if policy.capped(most) != policy => "approvalPolicy",
            _ => return Ok(()),
        };
        let message = format!("field `{what}`: this socket's token does not allow so much");
        Err(SessionError::new(SessionCode::Forbidden, message))
    }

    /// Answers a send that was sent before; false where it was not, or was not admitted then.
    pub(super) async fn is_repeated(&mut self, id: &RequestId, digest: &[u8]) -> bool {
        let is_same = |(_, known): &(usize, &KnownSend)| known.id == *id && known.digest == digest;
        let Some((at, known)) = self.sends.iter().enumerate().find(is_same) else {
            return false;
        };
        let (conversation, admission) = (known.conversation.clone(), known.admission.clone());
        let call = known.call.clone();
        let known = admission.lock().clone();
        match known {
            Admission::Admitted(sent) => {
                let sent = Sent {
                    duplicate: true,
                    ..sent
                };
                self.answer(Some(id), conversation::sent(sent, call.as_ref()));
            }
            Admission::Refused => {
                self.sends.remove(at);
                return false;
            }
            // The conversation has not taken the send yet, so it cannot be said what became of it. This comes
            // behind it in the same inbox, and by then it can.
            Admission::Pending => {
                let answer_again = conversation::Command::AnswerAgain {
                    call,
                    admission,
                    reply_to: Some(id.clone()),
                };
                self.command(&conversation, answer_again).await;
            }
        }
        true
    }
}

pub(super) fn json(send: &ChatSend) -> String {
    serde_json::to_string(send)
        .inspect_err(|error| tracing::error!(%error, "a send could not be written as JSON"))
        .unwrap_or_default()
}

/// Returns the error of a request that comes too late.
pub(crate) fn shutting_down() -> SessionError {
    SessionError::new(
        SessionCode::ShuttingDown,
        "the daemon is shutting down and begins nothing new; send it again when it is back",
    )
}

/// Returns whether a send says how it is to be answered.
pub(super) fn has_settings(send: &ChatSend) -> bool {
    send.provider.is_some()
        || send.model.is_some()
        || send.system_prompt.is_some()
        || send.trust_level.is_some()
        || send.workflow.is_some()
        || send.tool_permissions.is_some()
        || send.max_tokens.is_some()
        || send.temperature.is_some()
        || send.thinking.is_some()
        || send.output.is_some()
        || send.limits != Limits::default()
}

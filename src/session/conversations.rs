//! The conversations of a session: made on first use, and the way to each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{ConversationHandle, Session, usage};
use crate::conversation;
use crate::exchange::context::{Context, ConversationContext};
use crate::exchange::history::History;
use crate::message::ConversationId;

impl Session {
    /// Returns the inbox of a conversation, which is made where there is none.
    pub(super) fn conversation(
        &mut self,
        id: &ConversationId,
    ) -> mpsc::Sender<conversation::Command> {
        if let Some(handle) = self.conversations.get(id)
            && !handle.inbox.is_closed()
        {
            return handle.inbox.clone();
        }
        let history = self.new_history(id);
        self.begin_conversation(id, history)
    }

    /// Returns the history of a conversation that begins.
    pub(super) fn new_history(&self, id: &ConversationId) -> Arc<History> {
        let (room, journal) = (&self.services.room, &self.shared.journal);
        Arc::new(History::new(room.clone(), journal.clone(), id.clone()))
    }

    pub(super) fn begin_conversation(
        &mut self,
        id: &ConversationId,
        history: Arc<History>,
    ) -> mpsc::Sender<conversation::Command> {
        self.spare.store(false, Ordering::Relaxed);
        let (inbox, commands) = mpsc::channel(conversation::INBOX);
        let memory = self.shared.memory.for_conversation(id);
        let most = self.services.config().budget.conversation;
        let account = usage::account(most, &self.spent.remove(id));
        let context = Context {
            services: self.services.clone(),
            session: self.shared.clone(),
            conversation: ConversationContext::new(
                id.clone(),
                Arc::clone(&history),
                memory.clone(),
                Arc::clone(&account),
            ),
        };
        self.services.quota.count_home(&context.conversation.pod);
        let cancel = self.cancel.child_token();
        let predecessor_gone = self.closing.remove(id).unwrap_or_else(already_cancelled);
        let gone = CancellationToken::new();
        let on_end = gone.clone().drop_guard();
        let span = tracing::info_span!("conversation", conversation_id = %id);
        let run = async move {
            conversation::run(commands, context, cancel, predecessor_gone).await;
            drop(on_end);
        };
        self.daemon.tasks.spawn(run.instrument(span));
        let handle = ConversationHandle {
            inbox: inbox.clone(),
            gone,
            history,
            memory,
            account,
        };
        self.conversations.insert(id.clone(), handle);
        inbox
    }

    /// Sends a command to a conversation; returns false where there is none.
    pub(super) async fn command(
        &self,
        id: &ConversationId,
        command: conversation::Command,
    ) -> bool {
        match self.conversations.get(id) {
            Some(handle) => handle.inbox.send(command).await.is_ok(),
            None => false,
        }
    }
}

fn already_cancelled() -> CancellationToken {
    let token = CancellationToken::new();
    token.cancel();
    token
}

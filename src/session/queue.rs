//! From `chat:queue` to its conversation.

use super::Session;
use super::asking::asks;
use super::reading::{Unfinished, has_documents};
use super::resolve::{check_images, invalid};
use crate::conversation::{self, QueueChange};
use crate::message::{MessageId, TrustLevel};
use crate::protocol::RequestId;
use crate::protocol::command::Command;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::queue::{ChatQueue, QueueAction, QueueListed};

impl Session {
    /// Passes a `chat:queue` on to its conversation. Where there is none, nothing waits, and nothing can be changed.
    pub(super) async fn queue(&mut self, wanted: ChatQueue, id: Option<&RequestId>) {
        // What says something else is asked about as a send is.
        let counted = match wanted.action {
            QueueAction::Edit => self.count_send().await,
            _ => Ok(()),
        };
        match counted {
            Ok(()) => self.take_queue(wanted, id).await,
            Err(error) => self.answer(id, Event::SessionError(error)),
        }
    }

    /// The same where it is counted.
    pub(super) async fn take_queue(&mut self, wanted: ChatQueue, id: Option<&RequestId>) {
        let conversation = &wanted.conversation_id;
        if wanted.action != QueueAction::List && self.reading.is_reading(conversation) {
            let conversation = conversation.clone();
            return self.wait_behind(&conversation, Command::ChatQueue(wanted), id);
        }
        let is_edit = wanted.action == QueueAction::Edit;
        let has_documents = wanted.content.as_ref().is_some_and(has_documents);
        if is_edit && (has_documents || asks(&self.daemon.services.config())) {
            return self.read_documents(Unfinished::Edit(Box::new(wanted)), id);
        }
        self.change_queue(wanted, id).await;
    }

    /// The same where its documents have been read.
    pub(super) async fn change_queue(&self, wanted: ChatQueue, id: Option<&RequestId>) {
        let conversation_id = wanted.conversation_id.clone();
        let change = match change(wanted, self.grant.most_trust) {
            Ok(change) => change,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        let changed = change.as_ref().map(|(id, _)| id.clone());
        let command = conversation::Command::Queue {
            change: change.map(Box::new),
            reply_to: id.cloned(),
        };
        if !self.command(&conversation_id, command).await {
            if let Some(changed) = changed {
                let error = conversation::not_queued(&changed);
                return self.answer(id, Event::SessionError(error));
            }
            let nothing = QueueListed {
                conversation_id,
                queue: Vec::new(),
                held: false,
            };
            self.answer(id, Event::ChatQueueResult(nothing));
        }
    }
}

/// Returns what is to be changed, and of which send, by somebody who may have so much done; `None` where it is only to be listed.
fn change(
    wanted: ChatQueue,
    most: TrustLevel,
) -> Result<Option<(MessageId, QueueChange)>, SessionError> {
    let missing = |field: &str| invalid(format!("chat:queue: field `{field}` is missing"));
    let change = match wanted.action {
        QueueAction::List => return Ok(None),
        QueueAction::Edit => {
            let content = wanted.content.ok_or_else(|| missing("content"))?;
            if content.is_empty() {
                return Err(invalid(
                    "chat:queue: field `content` is empty; `remove` drops what waits",
                ));
            }
            check_images(&content)?;
            QueueChange::Edit(content, most)
        }
        QueueAction::Move => QueueChange::Move(wanted.position.ok_or_else(|| missing("position"))?),
        QueueAction::Remove => QueueChange::Remove,
        QueueAction::Send => QueueChange::Send,
    };
    let id = wanted.message_id.ok_or_else(|| missing("messageId"))?;
    Ok(Some((id, change)))
}

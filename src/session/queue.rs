//! From `chat:queue` to its conversation.

use super::Session;
use super::resolve::{check_images, invalid};
use crate::conversation::{self, QueueChange};
use crate::document;
use crate::message::MessageId;
use crate::protocol::RequestId;
use crate::protocol::content::Content;
use crate::protocol::event::{Event, SessionError};
use crate::protocol::queue::{ChatQueue, QueueAction, QueueListed};

impl Session {
    /// Passes a `chat:queue` on to its conversation, in which nothing waits where there is none.
    pub(super) async fn queue(&self, mut wanted: ChatQueue, id: Option<&RequestId>) {
        if let Some(Content::Parts(parts)) = &mut wanted.content
            && let Err(problem) = document::Reader::default().read("content", parts).await
        {
            return self.answer(id, Event::SessionError(invalid(problem)));
        }
        let conversation_id = wanted.conversation_id.clone();
        let change = match change(wanted) {
            Ok(change) => change,
            Err(error) => return self.answer(id, Event::SessionError(error)),
        };
        let command = conversation::Command::Queue {
            change: change.map(Box::new),
            reply_to: id.cloned(),
        };
        if !self.command(&conversation_id, command).await {
            let nothing = QueueListed {
                conversation_id,
                queue: Vec::new(),
                held: false,
            };
            self.answer(id, Event::ChatQueueResult(nothing));
        }
    }
}

/// Returns what is to be changed, and of which send; `None` where it is only to be listed.
fn change(wanted: ChatQueue) -> Result<Option<(MessageId, QueueChange)>, SessionError> {
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
            QueueChange::Edit(content)
        }
        QueueAction::Move => QueueChange::Move(wanted.position.ok_or_else(|| missing("position"))?),
        QueueAction::Remove => QueueChange::Remove,
        QueueAction::Send => QueueChange::Send,
    };
    let id = wanted.message_id.ok_or_else(|| missing("messageId"))?;
    Ok(Some((id, change)))
}

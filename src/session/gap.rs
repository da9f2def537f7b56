//! What a client gets in place of events that are no longer kept: how everything stands.
//!
//! Each conversation takes its own snapshot, in its own task, at one moment: no event of it is both in the
//! resync and after it, and none in neither.

use std::sync::Arc;

use super::Session;
use super::live::LiveSnapshot;
use super::log::Log;
use crate::conversation::View;
use crate::message::ConversationId;
use crate::protocol::SessionCode;
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{BackgroundChanged, Event, SessionError, State, StateName};
use crate::protocol::roles::SocketId;
use crate::telemetry::metrics;

/// The most bytes of histories in one resync: as many as a session keeps of events by default. Each
/// conversation has the same share; what goes beyond it is to be had with `chat:history`.
const HISTORIES_BYTES: usize = 8 * 1024 * 1024;

impl Session {
    /// Replaces what the log no longer holds by a snapshot of every conversation, for a reader that
    /// has everything up to `after`; returns the number before it.
    pub(super) async fn resync(&self, after: u64, socket: Option<SocketId>) -> u64 {
        metrics::replay_gap();
        let mut ids: Vec<_> = self.conversations.keys().cloned().collect();
        ids.sort();
        if let Some(socket) = socket {
            return self.resync_apart(socket, after, &ids).await;
        }
        let awaited = ids.iter().cloned();
        self.feed.log().begin_resync(after, gap(), awaited);
        let share = HISTORIES_BYTES / ids.len().max(1);
        for id in &ids {
            let feed = Arc::clone(&self.feed);
            self.look(id, move |view| {
                let say = |live| events(&view, share, live);
                let conversation = &view.context.conversation.id;
                feed.log().snapshot(conversation, say);
            })
            .await;
        }
        self.feed.grow(|log| log.finish_resync(Timestamp::now()))
    }

    /// The same for one socket alone, beside events that go on.
    async fn resync_apart(&self, socket: SocketId, after: u64, ids: &[ConversationId]) -> u64 {
        let now = Timestamp::now();
        let begin = |log: &mut Log| log.begin_own_resync(socket, after, &gap(), now);
        let last = self.feed.grow(begin);
        let share = HISTORIES_BYTES / ids.len().max(1);
        let mut open = Vec::new();
        for id in ids {
            let feed = Arc::clone(&self.feed);
            let said = self.look(id, move |view| {
                let say = |live| events(&view, share, live);
                let conversation = &view.context.conversation.id;
                let now = Timestamp::now();
                feed.grow(|log| log.own_snapshot(socket, conversation, say, now));
            });
            if said.await.is_some() {
                open.push(id.clone());
            }
        }
        let rest = vec![Event::SessionRoles(self.roles(Some(socket)))];
        let now = Timestamp::now();
        self.feed
            .grow(|log| log.finish_own_resync(socket, &open, rest, now));
        last
    }
}

fn gap() -> Event {
    Event::SessionError(SessionError::new(
        SessionCode::ReplayGap,
        "events that you have not seen are not kept any more: there were more than session.buffer_bytes holds, or the daemon was started anew; what follows says how things stand. Requests whose answer did not come may be sent again: a chat:send with the same id is not run twice",
    ))
}

/// Returns how a conversation stands, as events, with as many of its newest messages as `most` bytes hold.
fn events(view: &View<'_>, most: usize, live: LiveSnapshot) -> Vec<Event> {
    let (mut history, state) = (view.newest_history(most), view.state(None));
    let id = state.conversation_id.clone();
    history.truncated |= live.cut;
    let mut events = vec![Event::ChatHistoryResult(history)];
    events.extend(live.events);
    let questions = &view.context.conversation.questions;
    events.extend(questions.announcements(view.context));
    events.extend(view.queued().into_iter().map(Event::ChatQueued));
    events.extend(state.background.iter().map(|background| {
        Event::ToolBackground(BackgroundChanged {
            conversation_id: id.clone(),
            background: background.clone(),
        })
    }));
    let state_event = live.state.map(Event::ChatState);
    let state_event = state_event.or_else(|| {
        let name = match (&state.message_id, state.queue.first()) {
            (Some(_), _) => return None,
            (None, Some(_)) => StateName::Queued,
            (None, None) => StateName::Idle,
        };
        Some(Event::ChatState(State::new(&id, state.queue.first(), name)))
    });
    events.extend(state_event);
    events
}

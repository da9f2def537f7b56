//! What a client is told in the place of events that are no longer kept: how everything stands.
//!
//! Each conversation says so itself, in its own task, at one moment: no event of it is both in the
//! account and after it, and none in neither.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Session;
use super::live::Told;
use crate::conversation::{self, Standing};
use crate::protocol::SessionCode;
use crate::protocol::event::{Event, Queued, SessionError, State, StateName};
use crate::telemetry::metrics;

/// The most bytes of histories in one account: as many as a session keeps of events by default. Each
/// conversation has the same share; what goes beyond it is to be had with `chat:history`.
const HISTORIES_BYTES: usize = 8 * 1024 * 1024;

impl Session {
    /// Replaces what the log no longer holds by an account of every conversation, for a reader that
    /// has everything up to `after`; returns the number before it.
    pub(super) async fn account(&self, after: u64) -> u64 {
        metrics::replay_gap();
        let mut ids: Vec<_> = self.conversations.keys().cloned().collect();
        ids.sort();
        self.feed.draw_up(after, gap(), ids.iter().cloned());
        let share = HISTORIES_BYTES / ids.len().max(1);
        for id in &ids {
            let (told, cut) = oneshot::channel::<()>();
            let feed = Arc::clone(&self.feed);
            let account = conversation::Command::Account {
                most: share,
                told: Box::new(move |standing| {
                    let id = standing.state.conversation_id.clone();
                    feed.cut(&id, |live| events(standing, live));
                    drop(told);
                }),
            };
            if self.tell(id, account).await {
                // Dropped when it was said, or will not be.
                let _ = cut.await;
            }
        }
        self.feed.restart()
    }
}

fn gap() -> Event {
    Event::SessionError(SessionError {
        code: SessionCode::ReplayGap,
        message: "events were lost to the bound of session.buffer_bytes; what follows says how things stand. Requests whose answer did not come may be sent again: a chat:send with the same id is not run twice".to_owned(),
    })
}

/// How a conversation stands, as events.
fn events(standing: Standing, live: Told) -> Vec<Event> {
    let Standing {
        mut history,
        state,
        asked,
    } = standing;
    let conversation::Asked {
        mut approvals,
        inputs,
    } = asked;
    let id = state.conversation_id.clone();
    history.truncated |= live.cut;
    approvals.sort_by(|a, b| a.expires_at.cmp(&b.expires_at));
    let mut events = vec![Event::ChatHistoryResult(history)];
    events.extend(live.events);
    let approvals = approvals.into_iter();
    events.extend(approvals.map(|confirm| Event::ChatToolConfirm(Box::new(confirm))));
    let inputs = inputs.into_iter();
    events.extend(inputs.map(|request| Event::ChatToolInputRequest(Box::new(request))));
    for (index, message_id) in state.queue.iter().enumerate() {
        events.push(Event::ChatQueued(Queued {
            conversation_id: id.clone(),
            message_id: message_id.clone(),
            position: index + 1,
        }));
    }
    let told = live.state.map(Event::ChatState);
    let told = told.or_else(|| {
        let name = match (&state.message_id, state.queue.first()) {
            (Some(_), _) => return None,
            (None, Some(_)) => StateName::Queued,
            (None, None) => StateName::Idle,
        };
        Some(Event::ChatState(State::new(&id, state.queue.first(), name)))
    });
    events.extend(told);
    events
}

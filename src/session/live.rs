//! What runs in each conversation, folded from its events: what a resync adds to the histories. Pure.
//!
//! A history holds whole messages only. What a client would lack besides, when it has missed events,
//! is here: that an exchange runs, what its turn has said so far, its calls, and the state emitted last.
//! Layers do not matter here; what a client did not ask for is left out later.

use std::collections::HashMap;

use crate::message::{ConversationId, MessageId, ToolId};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{Delta, Event, State, StateName, StreamStart, ToolInputDelta};

/// The most text of a turn that is kept for a resync, in bytes, and the most of a call's input: more
/// than the longest answers of models. Of a longer one the end is kept.
const KEPT_BYTES: usize = 1024 * 1024;

/// What runs, by conversation. One in which nothing runs has no entry.
#[derive(Debug, Default)]
pub(crate) struct Live(HashMap<ConversationId, Running>);

#[derive(Debug)]
struct Running {
    start: StreamStart,
    state: Option<State>,
    turn: u32,
    text: Said,
    thinking: Said,
    /// The calls of the turn whose results are not remembered yet.
    calls: Vec<Call>,
}

/// Text or thinking of the running turn.
#[derive(Debug, Default)]
struct Said {
    delta: Option<Delta>,
    /// Whether its beginning was dropped.
    cut: bool,
}

#[derive(Debug)]
struct Call {
    id: ToolId,
    /// Its input as far as the model has written it or, from there on, its start, and its result.
    events: Vec<Event>,
}

#[derive(Debug, Default)]
pub(crate) struct LiveSnapshot {
    /// From its start to what its turn has come to.
    pub events: Vec<Event>,
    /// The state emitted last; `None` where nothing runs.
    pub state: Option<State>,
    /// Whether the beginning of the turn's text is left out.
    pub cut: bool,
}

impl Live {
    pub(crate) fn fold(&mut self, event: &Event) {
        match event {
            Event::ChatStreamStart(start) => return self.begin(start),
            Event::ChatStreamEnd(end) => return self.end(&end.conversation_id, &end.message_id),
            Event::ChatState(state) => return self.state(state),
            _ => {}
        }
        let running = event.conversation().and_then(|id| self.0.get_mut(id));
        let Some(running) = running else {
            return;
        };
        match event {
            Event::ChatTextDelta(delta) => running.at(delta.turn).text.push(delta),
            Event::ChatThinkingDelta(delta) => running.at(delta.turn).thinking.push(delta),
            Event::ChatToolInputDelta(delta) => {
                running.at(delta.turn).call(&delta.tool_id).plan(delta);
            }
            Event::ChatToolStart(start) => {
                running.call(&start.tool_id).events = vec![event.clone()];
            }
            Event::ChatToolResult(result) => {
                running.call(&result.tool_id).events.push(event.clone());
            }
            // The turn is over, and what it said is remembered in the same step.
            Event::ChatUsage(_) => running.forget_text(),
            Event::ChatTurnDiscarded(_) => {
                running.forget_text();
                running.calls.clear();
            }
            Event::ChatMessage(whole) => running.remembered(&whole.message),
            _ => {}
        }
    }

    pub(crate) fn snapshot(&self, conversation: &ConversationId) -> LiveSnapshot {
        let Some(running) = self.0.get(conversation) else {
            return LiveSnapshot::default();
        };
        LiveSnapshot {
            events: running.events(),
            state: running.state.clone(),
            cut: running.text.cut || running.thinking.cut,
        }
    }

    /// Returns whether something runs that does not wait for the user, as far as was emitted.
    pub(crate) fn is_at_work(&self) -> bool {
        let mut states = self.0.values().map(|running| running.state.as_ref());
        states.any(|state| {
            let asks = |state: &State| {
                matches!(
                    state.state,
                    StateName::AwaitingApproval
                        | StateName::AwaitingInput
                        | StateName::AwaitingBudget
                        | StateName::AwaitingTrust
                        | StateName::AwaitingClient
                )
            };
            !state.is_some_and(asks)
        })
    }

    /// Returns the state emitted last; `None` where nothing runs.
    pub(crate) fn state_of(&self, conversation: &ConversationId) -> Option<StateName> {
        let state = self.0.get(conversation)?.state.as_ref();
        state.map(|state| state.state)
    }

    fn begin(&mut self, start: &StreamStart) {
        let running = Running {
            start: start.clone(),
            state: None,
            turn: 0,
            text: Said::default(),
            thinking: Said::default(),
            calls: Vec::new(),
        };
        self.0.insert(start.conversation_id.clone(), running);
    }

    fn end(&mut self, conversation: &ConversationId, message: &MessageId) {
        let running = self.0.get(conversation);
        if running.is_some_and(|running| running.start.message_id == *message) {
            self.0.remove(conversation);
        }
    }

    fn state(&mut self, state: &State) {
        // What waits in the queue is not what the conversation does.
        if let Some(running) = self.0.get_mut(&state.conversation_id)
            && state.message_id.as_ref() == Some(&running.start.message_id)
        {
            running.state = Some(state.clone());
        }
    }
}

impl Running {
    /// Returns the running turn, where it is this one; another one begins with nothing.
    fn at(&mut self, turn: u32) -> &mut Self {
        if self.turn != turn {
            self.turn = turn;
            self.forget_text();
        }
        self
    }

    fn forget_text(&mut self) {
        self.text = Said::default();
        self.thinking = Said::default();
    }

    fn call(&mut self, id: &ToolId) -> &mut Call {
        let at = self.calls.iter().position(|call| call.id == *id);
        let at = at.unwrap_or(self.calls.len());
        if at == self.calls.len() {
            self.calls.push(Call {
                id: id.clone(),
                events: Vec::new(),
            });
        }
        #[expect(clippy::indexing_slicing, reason = "found, or pushed just now")]
        &mut self.calls[at]
    }

    fn remembered(&mut self, message: &WireMessage) {
        match &message.tool_call_id {
            Some(id) => self.calls.retain(|call| call.id != *id),
            None => self.forget_text(),
        }
    }

    fn events(&self) -> Vec<Event> {
        let mut events = vec![Event::ChatStreamStart(self.start.clone())];
        events.extend(self.thinking.delta.clone().map(Event::ChatThinkingDelta));
        events.extend(self.text.delta.clone().map(Event::ChatTextDelta));
        let calls = self.calls.iter();
        events.extend(calls.flat_map(|call| call.events.iter().cloned()));
        events
    }
}

impl Said {
    fn push(&mut self, more: &Delta) {
        let delta = self.delta.get_or_insert_with(|| Delta {
            content: String::new(),
            ..more.clone()
        });
        delta.content.push_str(&more.content);
        if delta.content.len() > KEPT_BYTES {
            // Cut by half, so that a long text is not moved for each delta.
            let from = delta.content.ceil_char_boundary(KEPT_BYTES / 2);
            delta.content.drain(..from);
            self.cut = true;
        }
    }
}

impl Call {
    fn plan(&mut self, delta: &ToolInputDelta) {
        match self.events.last_mut() {
            None => self.events.push(Event::ChatToolInputDelta(delta.clone())),
            // Longer ones come whole with the call's start.
            Some(Event::ChatToolInputDelta(planned))
                if planned.chunk.len() + delta.chunk.len() <= KEPT_BYTES =>
            {
                planned.chunk.push_str(&delta.chunk);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;

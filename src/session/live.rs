//! What runs in each conversation, folded from its events: what a resync adds to the histories. Pure.
//!
//! A history holds whole messages only. What a client would lack besides, when it has missed events,
//! is here: that an exchange runs, what its turn has said so far, its calls, and the state emitted last.
//! Layers do not matter here; what a client did not ask for is left out later.

use std::collections::HashMap;

use crate::message::{ConversationId, MessageId, ToolId};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{
    Delta, Event, State, StateName, StreamStart, ToolInputDelta, ToolOutcome, ToolStart,
};

/// The most text of a turn that is kept for a resync, in bytes, and the most of a call's input: more
/// than the longest answers of models. Of a longer one the end is kept.
const KEPT_BYTES: usize = 1024 * 1024;

/// What runs, by conversation. One in which nothing runs has no entry.
#[derive(Debug, Default)]
pub struct Live(HashMap<ConversationId, Doing>);

#[derive(Debug, Default)]
struct Doing {
    state: Option<State>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    start: StreamStart,
    turn: u32,
    text: Said,
    thinking: Said,
    /// The calls of the turn whose results are not remembered yet.
    calls: Vec<Call>,
}

/// Text or thinking of the running turn.
#[derive(Debug, Default)]
struct Said {
    index: u64,
    content: String,
    /// Whether its beginning was dropped.
    cut: bool,
}

#[derive(Debug)]
struct Call {
    id: ToolId,
    /// Its input as far as the model has written it.
    planned: Option<ToolInputDelta>,
    start: Option<ToolStart>,
    result: Option<Box<ToolOutcome>>,
}

/// What runs in one conversation, as events.
#[derive(Debug, Default)]
pub struct LiveSnapshot {
    /// From its start to what its turn has come to.
    pub events: Vec<Event>,
    /// The state emitted last; `None` where nothing runs.
    pub state: Option<State>,
    /// Whether the beginning of the turn's text is left out.
    pub cut: bool,
}

impl Live {
    /// Takes an event.
    pub fn fold(&mut self, event: &Event) {
        match event {
            Event::ChatStreamStart(start) => self.begin(start),
            Event::ChatStreamEnd(end) => self.end(&end.conversation_id, &end.message_id),
            Event::ChatState(state) => self.state(state),
            Event::ChatTextDelta(delta) => {
                if let Some(running) = self.running(&delta.conversation_id) {
                    running.at(delta.turn).text.push(delta);
                }
            }
            Event::ChatThinkingDelta(delta) => {
                if let Some(running) = self.running(&delta.conversation_id) {
                    running.at(delta.turn).thinking.push(delta);
                }
            }
            Event::ChatToolInputDelta(delta) => {
                if let Some(running) = self.running(&delta.conversation_id) {
                    running.at(delta.turn).call(&delta.tool_id).plan(delta);
                }
            }
            Event::ChatToolStart(start) => {
                if let Some(running) = self.running(&start.conversation_id) {
                    let call = running.call(&start.tool_id);
                    call.planned = None;
                    call.start = Some(start.clone());
                }
            }
            Event::ChatToolResult(result) => {
                if let Some(running) = self.running(&result.conversation_id) {
                    running.call(&result.tool_id).result = Some(result.clone());
                }
            }
            // The turn is over, and what it said is remembered in the same step.
            Event::ChatUsage(usage) => {
                if let Some(running) = self.running(&usage.conversation_id) {
                    running.forget_text();
                }
            }
            Event::ChatTurnDiscarded(discarded) => {
                if let Some(running) = self.running(&discarded.conversation_id) {
                    running.forget_text();
                    running.calls.clear();
                }
            }
            Event::ChatMessage(whole) => {
                if let Some(running) = self.running(&whole.conversation_id) {
                    running.remembered(&whole.message);
                }
            }
            _ => {}
        }
    }

    /// Returns what runs in a conversation.
    pub fn snapshot(&self, conversation: &ConversationId) -> LiveSnapshot {
        let Some(doing) = self.0.get(conversation) else {
            return LiveSnapshot::default();
        };
        let mut snapshot = LiveSnapshot {
            state: doing.state.clone(),
            ..LiveSnapshot::default()
        };
        if let Some(running) = &doing.running {
            snapshot.cut = running.text.cut || running.thinking.cut;
            running.events(&mut snapshot.events);
        }
        snapshot
    }

    /// Returns the state emitted last; `None` where nothing runs.
    pub fn state_of(&self, conversation: &ConversationId) -> Option<StateName> {
        let doing = self.0.get(conversation)?;
        doing.state.as_ref().map(|state| state.state)
    }

    fn running(&mut self, conversation: &ConversationId) -> Option<&mut Running> {
        self.0.get_mut(conversation)?.running.as_mut()
    }

    fn begin(&mut self, start: &StreamStart) {
        let doing = self.0.entry(start.conversation_id.clone()).or_default();
        *doing = Doing {
            state: None,
            running: Some(Running {
                start: start.clone(),
                turn: 0,
                text: Said::default(),
                thinking: Said::default(),
                calls: Vec::new(),
            }),
        };
    }

    fn end(&mut self, conversation: &ConversationId, message: &MessageId) {
        let ended = |doing: &Doing| {
            let running = doing.running.as_ref();
            running.is_none_or(|running| running.start.message_id == *message)
        };
        if self.0.get(conversation).is_some_and(ended) {
            self.0.remove(conversation);
        }
    }

    fn state(&mut self, state: &State) {
        // What waits in the queue is not what the conversation does.
        if let Some(doing) = self.0.get_mut(&state.conversation_id)
            && let Some(running) = &doing.running
            && state.message_id.as_ref() == Some(&running.start.message_id)
        {
            doing.state = Some(state.clone());
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
                planned: None,
                start: None,
                result: None,
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

    fn events(&self, out: &mut Vec<Event>) {
        out.push(Event::ChatStreamStart(self.start.clone()));
        if let Some(delta) = self.delta(&self.thinking) {
            out.push(Event::ChatThinkingDelta(delta));
        }
        if let Some(delta) = self.delta(&self.text) {
            out.push(Event::ChatTextDelta(delta));
        }
        for call in &self.calls {
            if let Some(planned) = &call.planned {
                out.push(Event::ChatToolInputDelta(planned.clone()));
            }
            if let Some(start) = &call.start {
                out.push(Event::ChatToolStart(start.clone()));
            }
            if let Some(result) = &call.result {
                out.push(Event::ChatToolResult(result.clone()));
            }
        }
    }

    fn delta(&self, said: &Said) -> Option<Delta> {
        (!said.content.is_empty()).then(|| Delta {
            conversation_id: self.start.conversation_id.clone(),
            message_id: self.start.message_id.clone(),
            turn: self.turn,
            index: said.index,
            content: said.content.clone(),
        })
    }
}

impl Said {
    fn push(&mut self, delta: &Delta) {
        if self.content.is_empty() {
            self.index = delta.index;
        }
        self.content.push_str(&delta.content);
        if self.content.len() > KEPT_BYTES {
            // Cut by half, so that a long text is not moved for each delta.
            let from = self.content.ceil_char_boundary(KEPT_BYTES / 2);
            self.content.drain(..from);
            self.cut = true;
        }
    }
}

impl Call {
    fn plan(&mut self, delta: &ToolInputDelta) {
        match &mut self.planned {
            None => self.planned = Some(delta.clone()),
            // Longer ones come whole with the call's start.
            Some(planned) if planned.chunk.len() + delta.chunk.len() <= KEPT_BYTES => {
                planned.chunk.push_str(&delta.chunk);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! How things stand in a conversation, as its own task sees them at one moment.

use super::state::ActorState;
use crate::exchange::context::{Context, Setup};
use crate::exchange::parts::context_use;
use crate::message::{CompactionId, Message, Part};
use crate::protocol::answer;
use crate::protocol::command::{ChatHistory, HistoryView};
use crate::protocol::content::{self, WireMessage};
use crate::protocol::context::ContextUse;
use crate::protocol::event::{Queued, StateName};
use crate::protocol::json_bytes;

/// Bytes of an answer besides the messages in it, more than enough.
const ENVELOPE_BYTES: usize = 512;

/// The most text of a send that waits which is announced, in bytes.
const MAX_WORDS: usize = 64 * 1024;

pub(crate) struct View<'a> {
    state: &'a ActorState,
    pub context: &'a Context,
}

impl<'a> View<'a> {
    pub(super) fn new(state: &'a ActorState, context: &'a Context) -> Self {
        Self { state, context }
    }

    /// Returns the page of messages that a request asks for, as much of it as one frame holds.
    pub(crate) fn history(&self, wanted: &ChatHistory) -> answer::History {
        let frame = self.context.services.config().server.max_frame_bytes;
        let most = frame.saturating_sub(ENVELOPE_BYTES);
        let limit = wanted.limit.unwrap_or(usize::MAX);
        let history = &self.context.conversation.history;
        match wanted.view {
            HistoryView::Record => page(
                self.context,
                &history.snapshot(),
                limit,
                wanted.before,
                most,
            ),
            HistoryView::Model => {
                let seen = history.view();
                let mut page = page(self.context, &seen, limit, wanted.before, most);
                let is_first = page.next_before.is_none();
                if let (true, Some(first), (_, Some(compacted))) =
                    (is_first, page.messages.first_mut(), history.compacted())
                {
                    first.compaction = compacted.summary.map(|_| content::Compacted {
                        id: CompactionId::new(compacted.id),
                        replaces: (0, compacted.base.saturating_sub(1)),
                    });
                }
                page
            }
        }
    }

    /// Returns where the window of its model goes; `next` is how an exchange would be where there was none yet.
    pub(crate) fn context_use(&self, next: Setup) -> ContextUse {
        let setup = self.state.last.clone().unwrap_or(next);
        context_use(&setup, self.context)
    }

    /// Returns as many of the newest messages as `most` bytes hold.
    pub(crate) fn newest_history(&self, most: usize) -> answer::History {
        let remembered = self.context.conversation.history.snapshot();
        page(self.context, &remembered, usize::MAX, None, most)
    }

    /// Returns whether an exchange runs that does not wait for the user, or is about to.
    pub(crate) fn is_at_work(&self) -> bool {
        match &self.state.running {
            Some(_) => self.context.conversation.questions.state().is_none(),
            None => !self.state.is_held && self.state.waiting().next().is_some(),
        }
    }

    /// Returns whether an exchange runs, or is to run at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.running.is_some() || self.state.next.is_some()
    }

    /// Returns whether an exchange runs, or is to run without anybody saying anything more.
    pub(crate) fn is_live(&self) -> bool {
        let running = self.state.running.as_ref();
        let is_exchange = running.is_some_and(|running| running.steer.is_some());
        is_exchange || (!self.state.is_held && self.state.waiting().next().is_some())
    }

    /// Returns what waits, the next one first, with what it says.
    pub(crate) fn queued(&self) -> Vec<Queued> {
        let waiting = self.state.waiting().zip(1..);
        waiting
            .map(|(waiting, position)| Queued {
                conversation_id: self.context.conversation.id.clone(),
                message_id: waiting.setup.message_id.clone(),
                position,
                content: waiting.said(),
            })
            .collect()
    }

    /// Returns how the conversation stands; `emitted` is the state that it emitted last while something runs.
    pub(crate) fn state(&self, emitted: Option<StateName>) -> answer::ConversationState {
        let running = self.state.running.as_ref();
        let executions = &self.context.session.executions;
        let conversation = &self.context.conversation;
        let is_compaction = running.is_some_and(|running| running.steer.is_none());
        let derived = || match executions.open_of(&conversation.id).is_empty() {
            true if is_compaction => StateName::Compacting,
            true => StateName::Thinking,
            false => StateName::ToolExecuting,
        };
        // A question outweighs the state emitted last, of another call beside it.
        let question = || conversation.questions.state();
        let state = match running {
            None if self.state.waiting().next().is_some() => StateName::Queued,
            None => StateName::Idle,
            Some(_) => question().or(emitted).unwrap_or_else(derived),
        };
        let queue = self.state.waiting();
        answer::ConversationState {
            conversation_id: conversation.id.clone(),
            state,
            message_id: running
                .filter(|running| running.steer.is_some())
                .map(|running| running.message_id.clone()),
            queue: queue
                .map(|waiting| waiting.setup.message_id.clone())
                .collect(),
            background: conversation.background.list(),
        }
    }
}

/// Returns the text of what was said, as much as an announcement has of it.
pub(super) fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } | Part::Document(_) => None,
    });
    let mut words = texts.collect::<Vec<_>>().join("\n");
    words.truncate(words.floor_char_boundary(MAX_WORDS));
    words
}

/// Returns how many pictures and documents are among the parts.
pub(super) fn attachments(parts: &[Part]) -> usize {
    let is_text = |part: &&Part| matches!(part, Part::Text { .. });
    parts.iter().filter(|part| !is_text(part)).count()
}

fn page(
    context: &Context,
    remembered: &[Message],
    limit: usize,
    before: Option<usize>,
    most: usize,
) -> answer::History {
    let end = before.unwrap_or(usize::MAX).min(remembered.len());
    let mut bytes = 0_usize;
    let older = remembered.iter().take(end).rev();
    let mut messages: Vec<WireMessage> = older
        .take(limit)
        .map(WireMessage::from)
        .take_while(|message| {
            // With the comma between two.
            bytes = json_bytes(message).saturating_add(bytes).saturating_add(1);
            bytes <= most
        })
        .collect();
    messages.reverse();
    let truncated = messages.len() < end.min(limit);
    // One that alone is too large is left out, so that each page leads further back.
    let skipped = usize::from(truncated && messages.is_empty());
    let next_before = end.saturating_sub(messages.len() + skipped);
    answer::History {
        conversation_id: context.conversation.id.clone(),
        truncated,
        messages,
        next_before: (next_before > 0).then_some(next_before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::testing;
    use crate::exchange::history::Room;
    use crate::exchange::transcript::Events;
    use crate::message::{Message, MessageId, Part};

    fn said(context: &Context, text: &str) {
        let message = Message::User(vec![Part::text(text)]);
        context
            .conversation
            .history
            .extend(&MessageId::new("m1"), [message]);
    }

    fn texts(page: &answer::History) -> Vec<String> {
        let messages = page.messages.iter().cloned().map(Message::from);
        let texts = messages.map(|message| match message {
            Message::User(parts) => match parts.as_slice() {
                [Part::Text { text }] => text.chars().take(3).collect(),
                _ => unreachable!(),
            },
            _ => unreachable!(),
        });
        texts.collect()
    }

    #[test]
    fn pages_lead_back_to_the_first_message() {
        let context = testing::context(Events::new(|_, _| {}), Room::default());
        for number in 1..=5 {
            said(&context, &format!("m{number}"));
        }
        let mut before = None;
        for (expected, next) in [
            (vec!["m4", "m5"], Some(3)),
            (vec!["m2", "m3"], Some(1)),
            (vec!["m1"], None),
        ] {
            let page = page(
                &context,
                &context.conversation.history.snapshot(),
                2,
                before,
                10_000,
            );
            assert_eq!(texts(&page), expected);
            assert_eq!((page.next_before, page.truncated), (next, false));
            before = page.next_before;
        }
        let all = context.conversation.history.snapshot();
        let beyond = page(&context, &all, 9, Some(99), 10_000);
        assert_eq!((beyond.messages.len(), beyond.next_before), (5, None));
    }

    #[test]
    fn a_page_ends_where_its_bytes_do_and_the_next_one_goes_on() {
        let context = testing::context(Events::new(|_, _| {}), Room::default());
        for text in ["m1", &"x".repeat(1_000), "m3", "m4"] {
            said(&context, text);
        }
        let mut before = None;
        for (expected, next, truncated) in [
            (vec!["m3", "m4"], Some(2), true),
            // It alone is larger than a page.
            (vec![], Some(1), true),
            (vec!["m1"], None, false),
        ] {
            let page = page(
                &context,
                &context.conversation.history.snapshot(),
                9,
                before,
                300,
            );
            assert_eq!(texts(&page), expected);
            assert_eq!((page.next_before, page.truncated), (next, truncated));
            before = page.next_before;
        }
    }
}

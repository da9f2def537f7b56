//! A client's history taken in, and what is remembered given out in pages.

use crate::exchange::context::Context;
use crate::exchange::history::{Full, Repairs, bytes_of_parts};
use crate::message::{Message, Notice, Part, Severity};
use crate::protocol::answer;
use crate::protocol::command::ChatHistory;
use crate::protocol::content::WireMessage;
use crate::protocol::event::Event;

/// Bytes of an answer besides the messages in it, more than enough.
const ENVELOPE_BYTES: usize = 512;

/// Replaces what is remembered by a client's own history.
pub(super) fn replace(context: &Context, history: Vec<WireMessage>) -> Result<(), Full> {
    let messages = history.into_iter().map(Message::from).collect();
    let conversation = &context.conversation;
    let repairs = conversation.history.replace(messages)?;
    conversation.context_tokens.forget();
    if !repairs.is_empty() {
        let notice = Event::SessionNotice(repaired(repairs));
        context.events().emit(notice);
    }
    Ok(())
}

/// Fails where there is no room to remember what a user says.
pub(super) fn room_for(context: &Context, content: &[Part]) -> Result<(), Full> {
    let bytes = bytes_of_parts(content);
    context.conversation.history.room_for(bytes)
}

/// Returns the page that a request asks for, as much of it as one frame holds.
pub(super) fn page(context: &Context, wanted: &ChatHistory) -> answer::History {
    let frame = context.services.config.server.max_frame_bytes;
    let most = frame.saturating_sub(ENVELOPE_BYTES);
    let limit = wanted.limit.unwrap_or(usize::MAX);
    page_within(context, limit, wanted.before, most)
}

/// Returns as many of the newest messages as `most` bytes hold.
pub(super) fn newest_within(context: &Context, most: usize) -> answer::History {
    page_within(context, usize::MAX, None, most)
}

fn page_within(
    context: &Context,
    limit: usize,
    before: Option<usize>,
    most: usize,
) -> answer::History {
    let remembered = context.conversation.history.snapshot();
    let end = before.unwrap_or(usize::MAX).min(remembered.len());
    let mut bytes = 0;
    let older = remembered.iter().take(end).rev();
    let mut messages: Vec<WireMessage> = older
        .take(limit)
        .map(WireMessage::from)
        .take_while(|message| {
            // With the comma between two.
            bytes = size(message).saturating_add(bytes).saturating_add(1);
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

/// Returns how many bytes a message is on the wire.
fn size(message: &WireMessage) -> usize {
    serde_json::to_vec(message).map_or(usize::MAX, |json| json.len())
}

fn repaired(repairs: Repairs) -> Notice {
    Notice {
        severity: Severity::Warning,
        code: "history_repaired".to_owned(),
        message: format!(
            "the history sent was not valid: {} calls without a result got an error result, {} results without a call were dropped",
            repairs.answered, repairs.dropped
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::testing;
    use crate::exchange::history::Room;
    use crate::exchange::transcript::Events;

    fn said(context: &Context, text: &str) {
        let message = Message::User(vec![Part::text(text)]);
        context.conversation.history.extend([message]);
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
            let page = page_within(&context, 2, before, 10_000);
            assert_eq!(texts(&page), expected);
            assert_eq!((page.next_before, page.truncated), (next, false));
            before = page.next_before;
        }
        let beyond = page_within(&context, 9, Some(99), 10_000);
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
            let page = page_within(&context, 9, before, 300);
            assert_eq!(texts(&page), expected);
            assert_eq!((page.next_before, page.truncated), (next, truncated));
            before = page.next_before;
        }
    }
}

//! Where a conversation is cut: what comes before is summarised. Pure.

use std::collections::BTreeSet;

use super::view::pruned;
use crate::exchange::NUDGE;
use crate::exchange::budget::message_tokens;
use crate::message::{Message, Part};

/// Where the messages that stay begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The first message that stays; it is the user's or the model's, so that no call is parted from its result.
    pub base: usize,
    /// The user's last message, where it comes before that.
    pub said: Option<usize>,
}

/// Returns where to cut so that what stays has at most so many tokens, with the messages in `places` pruned. What the
/// model has not answered yet stays, whatever it has.
///
/// It is at a message of the user where one fits, else at a reply.
pub(super) fn cut(messages: &[Message], from: usize, places: &BTreeSet<usize>, most: u64) -> Cut {
    let last_said = messages.iter().rposition(is_users);
    let kept = last_said
        .and_then(|at| messages.get(at))
        .map_or(0, message_tokens);
    let seen = pruned(messages, from, places);
    let (mut tokens, mut by_user, mut by_reply) = (0_u64, None, None);
    for (place, message) in (from..messages.len()).zip(seen).rev() {
        tokens = tokens.saturating_add(message_tokens(&message));
        let has_said = last_said.is_none_or(|at| at >= place);
        let needed = tokens.saturating_add(if has_said { 0 } else { kept });
        match message {
            Message::User(_) if needed <= most => by_user = Some(place),
            Message::Reply(_) if needed <= most => by_reply = Some(place),
            // What is not settled stays in any case, so its size stops nothing.
            _ if needed > most && is_answered(messages, place) => break,
            _ => {}
        }
    }
    let base = by_user
        .or(by_reply)
        .unwrap_or(messages.len())
        .min(open_from(messages));
    Cut {
        base,
        said: last_said.filter(|at| *at < base),
    }
}

/// Cuts as much away as can be: all but what the model has not answered yet.
pub(super) fn hardest(messages: &[Message]) -> Cut {
    cut(messages, messages.len(), &BTreeSet::new(), 0)
}

/// Returns the first message that is not settled: the model's last calls, whose results it may not have seen yet, or what the
/// user said after its last answer. An answer that nothing follows stays too: it may be a pause, and else its request would look
/// like a new one.
fn open_from(messages: &[Message]) -> usize {
    let replies = messages.iter().enumerate().rev();
    let last = replies.into_iter().find_map(|(at, message)| match message {
        Message::Reply(reply) => Some((at, !reply.calls.is_empty())),
        _ => None,
    });
    match last {
        Some((at, has_calls)) if has_calls || at + 1 == messages.len() => at,
        Some((at, _)) => at + 1,
        None => 0,
    }
}

/// Returns whether a message is what the user said, and not the daemon in the user's name.
fn is_users(message: &Message) -> bool {
    match message {
        Message::User(parts) => !matches!(parts.as_slice(), [Part::Text { text }] if text == NUDGE),
        _ => false,
    }
}

/// Returns whether the model has gone on after this message.
fn is_answered(messages: &[Message], place: usize) -> bool {
    place < open_from(messages)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exchange::compaction::testing::{reply, result, said};

    /// Some 100 tokens.
    fn long() -> String {
        "x".repeat(300)
    }

    fn exchange(id: &str) -> Vec<Message> {
        vec![
            said(&long()),
            reply(&long(), &[(id, "bash", json!({}))]),
            result(id, "bash", &long(), false),
            reply(&long(), &[]),
        ]
    }

    #[test]
    fn what_stays_begins_with_the_user_where_that_fits() {
        let messages = [exchange("t1"), exchange("t2"), vec![said("go on")]].concat();
        for (most, expected) in [
            (10_000, (0, None)),
            (510, (4, None)),
            // The last message alone: a reply before it is no good beginning.
            (300, (8, None)),
            (0, (8, None)),
        ] {
            let cut = cut(&messages, 0, &BTreeSet::new(), most);
            assert_eq!((cut.base, cut.said), expected, "{most}");
        }
    }

    #[test]
    fn one_long_exchange_is_cut_at_a_reply_and_keeps_what_the_user_said() {
        let mut messages = vec![said(&long())];
        for id in ["t1", "t2", "t3", "t4"] {
            messages.push(reply(&long(), &[(id, "bash", json!({}))]));
            messages.push(result(id, "bash", &long(), false));
        }
        for (most, expected) in [
            (10_000, (0, None)),
            (550, (5, Some(0))),
            // The last calls, though they are more.
            (10, (7, Some(0))),
        ] {
            let cut = cut(&messages, 0, &BTreeSet::new(), most);
            assert_eq!((cut.base, cut.said), expected, "{most}");
        }
        let all = hardest(&messages);
        assert_eq!((all.base, all.said), (7, Some(0)));
    }

    #[test]
    fn all_of_a_conversation_that_waits_for_its_user_may_go() {
        let messages = exchange("t1");
        let cut = cut(&messages, 0, &BTreeSet::new(), 0);
        // But for the last answer and what it answers.
        assert_eq!((cut.base, cut.said), (3, Some(0)));
    }

    #[test]
    fn results_stay_that_the_user_or_a_nudge_came_after() {
        let call = |id: &str| {
            [
                reply("", &[(id, "bash", json!({}))]),
                result(id, "bash", &long(), false),
            ]
        };
        for (last, kept) in [("stop that", None), (NUDGE, Some(0))] {
            let messages = [
                vec![said("go on")],
                call("t1").to_vec(),
                call("t2").to_vec(),
                vec![said(last)],
            ]
            .concat();
            let all = hardest(&messages);
            assert_eq!((all.base, all.said), (3, kept), "{last}");
        }
    }
}

//! The first step: what is large and old is left out, without asking a model. Pure.

use std::collections::BTreeSet;

use super::view::{has_bulk, without_bulk};
use crate::exchange::budget::{Shares, estimate, message_tokens};
use crate::message::{Message, Part, ToolCall};

/// What a result may have that is never left out, in tokens.
const SHORT: u64 = 200;

/// The longest error that is never left out, in bytes: what went wrong is worth knowing.
const SHORT_ERROR: usize = 500;

/// How many messages of the user, with all that followed, are recent.
const RECENT: usize = 2;

/// Hundredths of the target that recent messages may take before something of them is left out.
const RECENT_SHARE: u64 = 40;

/// Hundredths of the window that results may take, the newest first.
const RESULTS_SHARE: u64 = 20;

/// Hundredths of the window that have to come free, since each change of what was sent costs the provider's cache.
const WORTH: u64 = 10;

/// Returns the places of the messages of which something is to be left out, those in `before` included. Nothing of what
/// the model has not seen yet is.
pub(super) fn places(
    messages: &[Message],
    base: usize,
    before: &BTreeSet<usize>,
    shares: &Shares,
    keep_tools: &[String],
) -> BTreeSet<usize> {
    let recent = shares.target * RECENT_SHARE / 100;
    let results = shares.share(RESULTS_SHARE).min(shares.room() / 2);
    let calls = calls_of(messages, base);
    let mut pruned = before.clone();
    let (mut users, mut all, mut of_results, mut is_unseen) = (0, 0_u64, 0_u64, true);
    for ((place, message), calls) in messages.iter().enumerate().skip(base).zip(calls).rev() {
        let tokens = match before.contains(&place) {
            true => message_tokens(&without_bulk(message, calls)),
            false => message_tokens(message),
        };
        all = all.saturating_add(tokens);
        let is_recent = users < RECENT && all <= recent;
        let is_kept = match message {
            Message::User(_) => {
                users += 1;
                users <= RECENT
            }
            Message::Reply(_) => std::mem::take(&mut is_unseen) || is_recent,
            Message::ToolResult(result) => {
                of_results = of_results.saturating_add(tokens);
                let bytes: usize = result.content.iter().map(text_bytes).sum();
                is_unseen
                    || is_recent
                    || of_results <= results
                    || tokens <= SHORT
                    || (result.is_error && bytes < SHORT_ERROR)
                    || keep_tools.contains(&result.name)
            }
        };
        if !is_kept && has_bulk(message) {
            pruned.insert(place);
        }
    }
    pruned
}

/// Returns how many tokens come free where the messages at these places are pruned, and not only those of `before`.
pub(super) fn freed(
    messages: &[Message],
    base: usize,
    before: &BTreeSet<usize>,
    places: &BTreeSet<usize>,
) -> u64 {
    let calls = calls_of(messages, base);
    let tail = messages.iter().enumerate().skip(base).zip(calls);
    let freed = tail.filter(|((place, _), _)| places.contains(place) && !before.contains(place));
    let freed = freed.map(|((_, message), calls)| {
        let short = without_bulk(message, calls);
        estimate(std::slice::from_ref(message)).saturating_sub(message_tokens(&short))
    });
    freed.sum()
}

/// Returns whether that is worth the loss of the provider's cache.
pub(super) fn is_worth_it(freed: u64, shares: &Shares) -> bool {
    freed > 0 && freed >= shares.share(WORTH)
}

/// Returns for each message from a place on the calls that are open there.
fn calls_of(messages: &[Message], from: usize) -> Vec<&[ToolCall]> {
    let mut calls: &[ToolCall] = &[];
    let tail = messages.iter().skip(from);
    let each = tail.map(|message| {
        if let Message::Reply(reply) = message {
            calls = &reply.calls;
        }
        calls
    });
    each.collect()
}

fn text_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Image { .. } => SHORT_ERROR,
        Part::Document(document) => document.text().len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exchange::budget::Wanted;
    use crate::exchange::compaction::testing::{picture, reply, result, said};

    fn shares() -> Shares {
        let wanted = Wanted {
            reserve: 8_192,
            output: 8_192,
            at: 80,
            target: 50,
        };
        Shares::new(10_000, 100, wanted)
    }

    fn planned(messages: &[Message]) -> Vec<usize> {
        let places = places(
            messages,
            0,
            &BTreeSet::new(),
            &shares(),
            &["kept".to_owned()],
        );
        let again = super::places(messages, 0, &places, &shares(), &["kept".to_owned()]);
        assert_eq!(again, places);
        places.into_iter().collect()
    }

    /// A call with a result of so many bytes.
    fn call(id: &str, tool: &str, bytes: usize, is_error: bool) -> [Message; 2] {
        [
            reply("", &[(id, tool, json!({"path": id}))]),
            result(id, tool, &"x".repeat(bytes), is_error),
        ]
    }

    #[test]
    fn old_results_are_left_out_and_new_short_and_named_ones_stay() {
        let messages = [
            vec![said("one")],
            call("t1", "bash", 3_000, false).to_vec(),
            call("t2", "kept", 3_000, false).to_vec(),
            call("t3", "bash", 499, true).to_vec(),
            call("t4", "bash", 3_000, true).to_vec(),
            call("t5", "bash", 500, false).to_vec(),
            // 2,000 tokens of results are what may stay.
            call("t6", "bash", 3_000, false).to_vec(),
            call("t7", "bash", 2_700, false).to_vec(),
        ]
        .concat();
        assert_eq!(planned(&messages), [2, 8]);
    }

    #[test]
    fn what_the_model_has_not_seen_stays_however_large() {
        let messages = [
            vec![said("one")],
            call("t1", "bash", 90_000, false).to_vec(),
            call("t2", "bash", 90_000, false).to_vec(),
        ]
        .concat();
        assert_eq!(planned(&messages), [2]);
    }

    #[test]
    fn pictures_go_but_for_the_last_two_messages() {
        let messages = [picture(), picture(), said("two"), picture()];
        assert_eq!(planned(&messages), [0, 1]);
    }

    #[test]
    fn long_inputs_go_but_for_the_last_reply() {
        let write = |id| {
            reply(
                "",
                &[(id, "file_write", json!({"content": "x".repeat(9_000)}))],
            )
        };
        let messages = [
            said("one"),
            write("t1"),
            result("t1", "file_write", "ok", false),
            write("t2"),
            result("t2", "file_write", "ok", false),
        ];
        assert_eq!(planned(&messages), [1]);
        let places = BTreeSet::from([1]);
        assert!(freed(&messages, 0, &BTreeSet::new(), &places) > 2_900);
        assert_eq!(freed(&messages, 0, &places, &places), 0);
    }
}

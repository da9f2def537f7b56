//! What must hold of all that a client saw.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use super::Client;
use crate::conversation::testing::check;
use crate::exchange::history::{is_valid, repair};
use crate::message::Message;
use crate::protocol::event::Event;

/// Checks what a client saw that read to the end.
pub(super) fn judge(client: &Client) -> Result<(), TestCaseError> {
    let events = client.events();
    let frames: Vec<Value> = client
        .seen
        .values()
        .map(|frame| serde_json::from_str(frame).unwrap())
        .collect();
    for event in &events {
        if let Event::ChatHistoryResult(history) = event {
            let messages: Vec<Message> = history
                .messages
                .iter()
                .cloned()
                .map(Message::from)
                .collect();
            // One that is sent while calls run lacks their results, and nothing else.
            let lacks_results =
                || !client.gaps.is_empty() && repair(messages.clone()).1.dropped == 0;
            prop_assert!(is_valid(&messages) || lacks_results());
        }
    }
    if !client.gaps.is_empty() {
        return with_gap(client, &events, &frames);
    }
    let last = client.seen.keys().next_back().copied().unwrap_or_default();
    prop_assert_eq!(client.seen.len() as u64, last, "numbers without an event");
    check(&events)?;
    let (streamed, whole) = texts(&events);
    prop_assert_eq!(streamed, whole, "the deltas are not the messages");
    // What was steered too late is pointed to the exchange that answers it.
    let steered: BTreeSet<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ChatSteered(it) => Some(it.message_id.to_string()),
            _ => None,
        })
        .collect();
    let mut admitted = BTreeMap::new();
    for number in 1..=client.asked {
        let id = format!("q{number}");
        let answers: Vec<&Value> = frames.iter().filter(|it| it["replyTo"] == id).collect();
        prop_assert!(!answers.is_empty(), "no answer to {}", id);
        for answer in answers {
            if answer["type"] == "chat:send-result" {
                let message = answer["payload"]["messageId"].as_str().unwrap().to_owned();
                let first = admitted
                    .entry(id.clone())
                    .or_insert_with(|| message.clone());
                let moved = answer["payload"]["state"] == "steered" && steered.contains(&message);
                prop_assert!(*first == message || moved, "one send ran twice");
            }
        }
    }
    Ok(())
}

/// Checks what still holds where a gap was reported: from each resync on nothing comes twice, what was begun ends, and
/// what a client shows is what the daemon remembers.
fn with_gap(client: &Client, events: &[Event], frames: &[Value]) -> Result<(), TestCaseError> {
    let mut once = BTreeSet::new();
    let (mut asked, mut settled) = (BTreeSet::new(), BTreeSet::new());
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut shown: BTreeMap<String, Shown> = BTreeMap::new();
    for ((number, event), frame) in client.seen.keys().zip(events).zip(frames) {
        if client.gaps.contains(number) {
            once.clear();
            asked.clear();
            shown.clear();
        }
        let what = match event {
            Event::ChatStreamStart(it) => {
                begun.insert(it.message_id.clone());
                ("start", it.message_id.to_string())
            }
            Event::ChatStreamEnd(it) => {
                ended.insert(it.message_id.clone());
                ("end", it.message_id.to_string())
            }
            Event::ChatToolStart(it) => ("tool-start", it.tool_id.to_string()),
            Event::ChatToolResult(it) => ("tool-result", it.tool_id.to_string()),
            Event::ChatToolResolved(it) => {
                settled.insert(it.tool_id.clone());
                ("tool-resolved", it.tool_id.to_string())
            }
            Event::ChatToolConfirm(it) => {
                asked.insert(it.tool_id.clone());
                ("tool-confirm", it.tool_id.to_string())
            }
            _ => {
                show(&mut shown, event, frame)?;
                continue;
            }
        };
        prop_assert!(once.insert(what.clone()), "{:?} twice", what);
    }
    let unsettled: Vec<_> = asked.difference(&settled).collect();
    prop_assert!(unsettled.is_empty(), "not settled: {:?}", unsettled);
    let endless: Vec<_> = begun.difference(&ended).collect();
    prop_assert!(endless.is_empty(), "without an end: {:?}", endless);
    Ok(())
}

/// What a client shows of a conversation since the last resync: the answers, in pieces by exchange and turn.
#[derive(Default)]
struct Shown(Vec<(String, String)>);

/// Takes an event as a client that draws; compares where the whole history is sent.
fn show(
    shown: &mut BTreeMap<String, Shown>,
    event: &Event,
    frame: &Value,
) -> Result<(), TestCaseError> {
    let turn = |message: &str, turn: u32| format!("{message} {turn}");
    match event {
        Event::ChatTextDelta(it) => {
            let pieces = shown.entry(it.conversation_id.to_string()).or_default();
            let piece = turn(it.message_id.as_str(), it.turn);
            pieces.0.push((piece, it.content.clone()));
        }
        Event::ChatTurnDiscarded(it) => {
            let pieces = shown.entry(it.conversation_id.to_string()).or_default();
            let void = turn(it.message_id.as_str(), it.turn);
            pieces.0.retain(|(piece, _)| *piece != void);
        }
        Event::ChatCloseResult(it) => drop(shown.remove(it.conversation_id.as_str())),
        Event::ChatHistoryResult(it) => {
            let remembered: String = it
                .messages
                .iter()
                .filter_map(|message| match Message::from(message.clone()) {
                    Message::Reply(reply) => Some(reply.text),
                    _ => None,
                })
                .collect();
            let pieces = shown.entry(it.conversation_id.to_string()).or_default();
            if frame["replyTo"].is_null() {
                pieces.0 = vec![(String::new(), remembered)];
            } else {
                let drawn: String = pieces.0.iter().map(|(_, text)| text.as_str()).collect();
                prop_assert_eq!(
                    drawn,
                    remembered,
                    "what is shown of {}",
                    &it.conversation_id
                );
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns what the model wrote in each exchange: as its deltas say, and as its messages do.
fn texts(events: &[Event]) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let (mut turns, mut whole) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::ChatTextDelta(it) => {
                let turn = turns.entry((it.message_id.to_string(), it.turn));
                turn.or_insert_with(String::new).push_str(&it.content);
            }
            Event::ChatTurnDiscarded(it) => {
                turns.remove(&(it.message_id.to_string(), it.turn));
            }
            Event::ChatMessage(it) => {
                if let Message::Reply(reply) = Message::from(it.message.clone())
                    && !reply.text.is_empty()
                {
                    let text = whole.entry(it.message_id.to_string());
                    text.or_insert_with(String::new).push_str(&reply.text);
                }
            }
            _ => {}
        }
    }
    let mut streamed = BTreeMap::new();
    for ((message, _), text) in turns {
        streamed
            .entry(message)
            .or_insert_with(String::new)
            .push_str(&text);
    }
    (streamed, whole)
}

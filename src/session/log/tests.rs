//! Numbers without gaps, merging that changes no text, a bound that holds and is told.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::message::MessageId;
use crate::protocol::command::Empty;

const LAYERS: [Layer; 2] = [Layer::Stream, Layer::State];

fn delta(conversation: &str, index: u64, text: &str) -> Event {
    Event::ChatTextDelta(Delta {
        conversation_id: ConversationId::new(conversation),
        message_id: MessageId::new("m1"),
        turn: 0,
        index,
        content: text.to_owned(),
    })
}

fn pong() -> Event {
    Event::SessionPingResult(Empty {})
}

fn frames(log: &mut Log, after: u64) -> (Vec<Value>, Read) {
    let mut out = Vec::new();
    let read = log.read(after, usize::MAX, &mut out);
    let frames = out.iter().map(|frame| serde_json::from_str(frame).unwrap());
    (frames.collect(), read)
}

#[test]
fn unread_deltas_of_one_turn_are_merged_and_read_ones_are_not() {
    let mut log = Log::new(1 << 20, LAYERS.to_vec());
    log.append(delta("a", 0, "1"), None, "t");
    log.append(delta("b", 0, "x"), None, "t");
    log.append(delta("a", 1, "2"), None, "t");
    let (first, read) = frames(&mut log, 0);
    assert_eq!(read, Read::UpTo(2));
    assert_eq!(first[0]["payload"]["content"], "12");
    assert_eq!(first[0]["payload"]["index"], 0);
    log.append(delta("a", 2, "3"), None, "t");
    let (second, read) = frames(&mut log, 2);
    assert_eq!(read, Read::UpTo(3));
    assert_eq!(second[0]["payload"]["content"], "3");
    // A resume gets what was read before, as it was.
    let (again, _) = frames(&mut log, 0);
    assert_eq!(again, [first, second].concat());
}

#[test]
fn what_stands_between_keeps_deltas_apart() {
    let mut log = Log::new(1 << 20, LAYERS.to_vec());
    let state = |conversation: &str| {
        Event::ChatState(crate::protocol::event::State {
            conversation_id: ConversationId::new(conversation),
            message_id: None,
            state: crate::protocol::event::StateName::Idle,
            tool_id: None,
            attempt: None,
            delay_ms: None,
            reason: None,
        })
    };
    log.append(delta("a", 0, "1"), None, "t");
    log.append(state("a"), None, "t");
    log.append(delta("a", 1, "2"), None, "t");
    log.append(state("b"), None, "t");
    log.append(delta("a", 2, "3"), None, "t");
    let (all, _) = frames(&mut log, 0);
    let contents: Vec<_> = all
        .iter()
        .filter_map(|frame| frame["payload"]["content"].as_str())
        .collect();
    assert_eq!(contents, ["1", "23"]);
}

#[test]
fn a_layer_that_nobody_asked_for_has_no_number() {
    let mut log = Log::new(1 << 20, Vec::new());
    log.append(delta("a", 0, "1"), None, "t");
    log.append(pong(), None, "t");
    let (all, _) = frames(&mut log, 0);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["seq"], 1);
}

#[test]
fn beyond_the_bound_there_is_a_gap_and_an_account_bridges_it() {
    let mut log = Log::new(2_000, LAYERS.to_vec());
    for _ in 0..50 {
        log.append(pong(), None, "t");
    }
    assert_eq!(frames(&mut log, 0).1, Read::Gap);
    assert_eq!(frames(&mut log, u64::MAX).1, Read::UpTo(50));
    log.hold();
    log.append(delta("a", 0, "meanwhile"), None, "t");
    let before = log.restart(vec![pong(), pong()], "t");
    assert_eq!(before, 50);
    let (account, read) = frames(&mut log, before);
    assert_eq!(read, Read::UpTo(53));
    let numbers: Vec<_> = account.iter().map(|frame| frame["seq"].as_u64()).collect();
    assert_eq!(numbers, [Some(51), Some(52), Some(53)]);
    assert_eq!(account[2]["payload"]["content"], "meanwhile");
}

#[test]
fn an_account_that_nobody_reads_does_not_lift_the_bound() {
    let mut log = Log::new(2_000, LAYERS.to_vec());
    log.restart((0..100).map(|_| pong()).collect(), "t");
    let account = log.bytes;
    for _ in 0..1_000 {
        log.append(pong(), None, "t");
    }
    assert!(log.bytes <= account + 2_000, "{} bytes", log.bytes);
}

proptest! {
    #[test]
    fn every_text_arrives_once_and_in_order(
        steps in prop::collection::vec((0..3_u8, 0..2_u8, "[a-z]{1,5}"), 0..60),
    ) {
        let mut log = Log::new(1 << 20, LAYERS.to_vec());
        let (mut told, mut heard) = ([String::new(), String::new()], [String::new(), String::new()]);
        let (mut after, mut index) = (0, 0);
        let mut read = |log: &mut Log, after: &mut u64| {
            let (frames, read) = frames(log, *after);
            for frame in &frames {
                *after += 1;
                assert_eq!(frame["seq"].as_u64(), Some(*after));
                if let Some(text) = frame["payload"]["content"].as_str() {
                    let which = usize::from(frame["payload"]["conversationId"] == "1");
                    heard[which].push_str(text);
                }
            }
            assert_eq!(read, Read::UpTo(*after));
        };
        for (what, conversation, text) in steps {
            match what {
                0 => read(&mut log, &mut after),
                1 => log.append(pong(), None, "t"),
                _ => {
                    log.append(delta(&conversation.to_string(), index, &text), None, "t");
                    index += 1;
                    told[usize::from(conversation)].push_str(&text);
                }
            }
        }
        read(&mut log, &mut after);
        prop_assert_eq!(told, heard);
    }
}

//! Numbers without gaps, merging that changes no text, a bound that holds, and a gap that is reported.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::message::MessageId;
use crate::protocol::command::Empty;
use crate::protocol::event::Delta;

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

fn frames(log: &mut Log, after: u64) -> (Vec<Value>, ReadResult) {
    let mut out = Vec::new();
    let read = log.read(after, usize::MAX, u64::MAX, None, &mut out);
    let frames = out.iter().map(|frame| serde_json::from_str(frame).unwrap());
    (frames.collect(), read)
}

#[test]
fn unread_deltas_of_one_turn_are_merged_and_read_ones_are_not() {
    let mut log = Log::new(1 << 20, LAYERS.to_vec());
    log.append(delta("a", 0, "1"), None, Timestamp::default());
    log.append(delta("b", 0, "x"), None, Timestamp::default());
    log.append(delta("a", 1, "2"), None, Timestamp::default());
    let (first, read) = frames(&mut log, 0);
    assert_eq!(read, ReadResult::UpTo(2));
    assert_eq!(first[0]["payload"]["content"], "12");
    assert_eq!(first[0]["payload"]["index"], 0);
    log.append(delta("a", 2, "3"), None, Timestamp::default());
    let (second, read) = frames(&mut log, 2);
    assert_eq!(read, ReadResult::UpTo(3));
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
            state: StateName::Idle,
            tool_id: None,
            attempt: None,
            delay_ms: None,
            reason: None,
        })
    };
    log.append(delta("a", 0, "1"), None, Timestamp::default());
    log.append(state("a"), None, Timestamp::default());
    log.append(delta("a", 1, "2"), None, Timestamp::default());
    log.append(state("b"), None, Timestamp::default());
    log.append(delta("a", 2, "3"), None, Timestamp::default());
    let (all, _) = frames(&mut log, 0);
    let contents: Vec<_> = all
        .iter()
        .filter_map(|frame| frame["payload"]["content"].as_str())
        .collect();
    assert_eq!(contents, ["1", "23"]);
}

#[test]
fn what_is_emitted_after_a_look_comes_after_the_answer() {
    let mut log = Log::new(1 << 20, LAYERS.to_vec());
    log.append(delta("a", 0, "before "), None, Timestamp::default());
    log.defer(&ConversationId::new("a"));
    log.append(delta("a", 1, "after"), None, Timestamp::default());
    log.append(delta("b", 0, "before too"), None, Timestamp::default());
    log.defer(&ConversationId::new("b"));
    log.append(delta("b", 1, "after too"), None, Timestamp::default());
    log.flush_deferred(pong(), Some(&RequestId::from("1")), Timestamp::default());
    log.append(delta("a", 2, "!"), None, Timestamp::default());
    let (all, _) = frames(&mut log, 0);
    let appended: Vec<_> = all
        .iter()
        .map(|frame| {
            let content = frame["payload"]["content"].as_str();
            content.or(frame["type"].as_str()).unwrap()
        })
        .collect();
    assert_eq!(
        appended,
        [
            "before ",
            "before too",
            "session:ping-result",
            "after!",
            "after too"
        ]
    );
}

#[test]
fn a_layer_that_nobody_asked_for_has_no_number() {
    let mut log = Log::new(1 << 20, Vec::new());
    log.append(delta("a", 0, "1"), None, Timestamp::default());
    log.append(pong(), None, Timestamp::default());
    let (all, _) = frames(&mut log, 0);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["seq"], 1);
}

#[test]
fn what_happens_in_a_task_is_for_who_asked_for_it() {
    let kinds = |layers: &[Layer]| {
        let mut log = Log::new(1 << 20, layers.to_vec());
        let id = ConversationId::new("task:t7");
        let extended = crate::protocol::event::ToolExtended {
            conversation_id: id.clone(),
            message_id: MessageId::new("m1"),
            tool_id: crate::message::ToolId::new("t8"),
            request_id: None,
            host: None,
            expires_at: None,
        };
        let steered = crate::protocol::event::Steered {
            conversation_id: id,
            message_id: MessageId::new("m1"),
            content: crate::protocol::content::Content::Text("x".to_owned()),
        };
        for event in [
            delta("a", 0, "x"),
            delta("task:t7", 0, "y"),
            Event::ChatToolExtended(extended),
            Event::ChatSteered(steered),
        ] {
            log.append(event, None, Timestamp::default());
        }
        let (frames, _) = frames(&mut log, 0);
        let shown = frames.iter().map(|it| {
            let kind = it["type"].as_str().unwrap().to_owned();
            (kind, it["taskId"].as_str().map(str::to_owned))
        });
        shown.collect::<Vec<_>>()
    };
    let of_task = |kind: &str| (kind.to_owned(), Some("t7".to_owned()));
    let own = ("chat:text-delta".to_owned(), None);
    let question = of_task("chat:tool-extended");
    assert_eq!(kinds(&[Layer::Stream]), [own.clone(), question.clone()]);
    let all = [
        own,
        of_task("chat:text-delta"),
        question.clone(),
        of_task("chat:steered"),
    ];
    assert_eq!(kinds(&[Layer::Stream, Layer::Tasks]), all);
    let without_deltas = [question, of_task("chat:steered")];
    assert_eq!(kinds(&[Layer::Tasks]), without_deltas);
}

#[test]
fn beyond_the_bound_there_is_a_gap_and_a_resync_bridges_it() {
    let mut log = Log::new(2_000, LAYERS.to_vec());
    for _ in 0..50 {
        log.append(pong(), None, Timestamp::default());
    }
    assert_eq!(frames(&mut log, 0).1, ReadResult::Gap);
    assert_eq!(frames(&mut log, u64::MAX).1, ReadResult::UpTo(50));
    log.begin_resync(0, pong(), [ConversationId::new("a")]);
    // Of a conversation that is to say how it stands, and of one that is not.
    log.append(delta("a", 0, "part of it"), None, Timestamp::default());
    log.append(delta("b", 0, "meanwhile"), None, Timestamp::default());
    log.snapshot(&ConversationId::new("a"), |_| vec![pong()]);
    log.append(delta("a", 1, "later"), None, Timestamp::default());
    let before = log.finish_resync(Timestamp::default());
    assert_eq!(before, 50);
    let (resync, read) = frames(&mut log, before);
    assert_eq!(read, ReadResult::UpTo(54));
    let numbers: Vec<_> = resync.iter().map(|frame| frame["seq"].as_u64()).collect();
    assert_eq!(numbers, [Some(51), Some(52), Some(53), Some(54)]);
    assert_eq!(resync[2]["payload"]["content"], "meanwhile");
    assert_eq!(resync[3]["payload"]["content"], "later");
}

#[test]
fn a_resync_is_kept_until_it_is_read_and_holds_the_bound() {
    let mut log = Log::new(2_000, LAYERS.to_vec());
    log.begin_resync(0, pong(), [ConversationId::new("a")]);
    log.snapshot(&ConversationId::new("a"), |_| vec![pong(); 99]);
    let before = log.finish_resync(Timestamp::default());
    let mut after = before;
    let mut gaps = 0;
    // A reader that takes one frame while twenty come sees the whole resync all the same.
    for _ in 0..100 {
        for _ in 0..20 {
            log.append(pong(), None, Timestamp::default());
        }
        assert!(log.bytes <= 2_000, "{} bytes", log.bytes);
        let mut out = Vec::new();
        match log.read(after, 1, u64::MAX, None, &mut out) {
            ReadResult::UpTo(seq) => after = seq,
            ReadResult::Gap => gaps += 1,
        }
    }
    assert_eq!((after, gaps), (before + 100, 0));
    assert_eq!(
        log.read(after, 1, u64::MAX, None, &mut Vec::new()),
        ReadResult::Gap
    );
    assert!(log.resync.bytes() == 0, "it was read and makes room");
}

#[test]
fn an_answer_that_is_kept_and_was_not_read_comes_after_the_resync() {
    let mut log = Log::new(400, LAYERS.to_vec());
    for _ in 0..10 {
        log.append(pong(), None, Timestamp::default());
    }
    let id: RequestId = RequestId::from("q");
    log.append(pong(), Some(&id), Timestamp::default());
    log.begin_resync(0, pong(), []);
    let before = log.finish_resync(Timestamp::default());
    let (all, _) = frames(&mut log, before);
    assert_eq!((before, all.len()), (11, 2));
    assert_eq!(
        (&all[1]["seq"], &all[1]["replyTo"]),
        (&13.into(), &"q".into())
    );
}

#[test]
fn an_answer_is_in_each_resync_until_one_arrives() {
    let mut log = Log::new(2_000, LAYERS.to_vec());
    let id = RequestId::from("q");
    log.append(pong(), Some(&id), Timestamp::default());
    let resync = |log: &mut Log, after: u64| {
        log.begin_resync(after, pong(), []);
        let before = log.finish_resync(Timestamp::default());
        let (frames, _) = frames(log, before);
        (
            before,
            frames.iter().filter(|it| it["replyTo"] == "q").count(),
        )
    };
    // Written twice to sockets that broke before anything of it arrived.
    assert_eq!(resync(&mut log, 0), (1, 1));
    assert_eq!(resync(&mut log, 0), (3, 1));
    // The third one got all of that.
    assert_eq!(resync(&mut log, 5), (5, 0));
}

#[test]
fn one_event_larger_than_the_bound_pushes_nothing_out_that_is_just_read() {
    let notice = |bytes: usize| -> Event {
        Event::SessionNotice(crate::message::Notice {
            severity: crate::message::Severity::Info,
            code: "large".to_owned(),
            message: "x".repeat(bytes),
        })
    };
    let mut log = Log::new(2_000, LAYERS.to_vec());
    log.append(pong(), None, Timestamp::default());
    log.append(notice(10_000), None, Timestamp::default());
    log.append(pong(), None, Timestamp::default());
    let (all, read) = frames(&mut log, 0);
    assert_eq!((all.len(), read), (3, ReadResult::UpTo(3)));
    assert!(log.bytes <= 2_000, "{} bytes after it was read", log.bytes);
    // Several that nobody reads are not all kept.
    for _ in 0..10 {
        log.append(notice(10_000), None, Timestamp::default());
    }
    assert!(log.bytes <= 2_000 + 11_000, "{} bytes", log.bytes);
    assert_eq!(frames(&mut log, 3).1, ReadResult::Gap);
}

#[test]
fn ends_that_nobody_read_are_repeated_and_read_ones_are_not() {
    let mut log = Log::new(500, LAYERS.to_vec());
    let end = |message: &str| -> Event {
        serde_json::from_value(serde_json::json!({"type": "chat:stream-end", "payload": {
            "conversationId": "a", "messageId": message, "stopReason": "end_turn", "partial": false,
            "turns": 1, "toolCalls": 0, "usage": {}, "durationMs": 1}}))
        .unwrap()
    };
    let ends = |log: &mut Log, before: u64| -> Vec<Value> {
        let (frames, _) = frames(log, before);
        let ends = frames.iter().filter(|it| it["type"] == "chat:stream-end");
        ends.map(|it| it["payload"]["messageId"].clone()).collect()
    };
    for message in ["m1", "m2", "m3"] {
        log.append(end(message), None, Timestamp::default());
    }
    log.begin_resync(1, pong(), [ConversationId::new("a")]);
    log.append(end("m4"), None, Timestamp::default());
    log.snapshot(&ConversationId::new("a"), |_| Vec::new());
    log.append(end("m5"), None, Timestamp::default());
    let before = log.finish_resync(Timestamp::default());
    assert_eq!(ends(&mut log, before), ["m2", "m3", "m4", "m5"]);
    // Somebody who has less than that gets all of it once.
    log.begin_resync(0, pong(), []);
    let before = log.finish_resync(Timestamp::default());
    assert_eq!(ends(&mut log, before), ["m1", "m2", "m3", "m4", "m5"]);
}

proptest! {
    #[test]
    fn every_text_arrives_once_and_in_order(
        steps in prop::collection::vec((0..3_u8, 0..2_u8, "[a-z]{1,5}"), 0..60),
    ) {
        let mut log = Log::new(1 << 20, LAYERS.to_vec());
        let (mut appended, mut received) = ([String::new(), String::new()], [String::new(), String::new()]);
        let (mut after, mut index) = (0, 0);
        let mut read = |log: &mut Log, after: &mut u64| {
            let (frames, read) = frames(log, *after);
            for frame in &frames {
                *after += 1;
                assert_eq!(frame["seq"].as_u64(), Some(*after));
                if let Some(text) = frame["payload"]["content"].as_str() {
                    let which = usize::from(frame["payload"]["conversationId"] == "1");
                    received[which].push_str(text);
                }
            }
            assert_eq!(read, ReadResult::UpTo(*after));
        };
        for (what, conversation, text) in steps {
            match what {
                0 => read(&mut log, &mut after),
                1 => log.append(pong(), None, Timestamp::default()),
                _ => {
                    log.append(delta(&conversation.to_string(), index, &text), None, Timestamp::default());
                    index += 1;
                    appended[usize::from(conversation)].push_str(&text);
                }
            }
        }
        read(&mut log, &mut after);
        prop_assert_eq!(appended, received);
    }
}

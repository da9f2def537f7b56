//! Any messages at all come out valid, and valid ones come out as they are.

use proptest::prelude::*;

use super::*;
use crate::message::ToolId;

fn call(id: u8) -> ToolCall {
    ToolCall {
        id: ToolId::new(format!("t{id}")),
        provider_call_id: None,
        name: "file_read".to_owned(),
        input: serde_json::Map::new(),
    }
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        "[a-z]{0,4}".prop_map(|text| Message::User(vec![Part::text(text)])),
        prop::collection::vec(0..6_u8, 0..4).prop_map(|ids| Message::Reply(Reply {
            calls: ids.into_iter().map(call).collect(),
            ..Reply::default()
        })),
        (0..6_u8).prop_map(|id| Message::ToolResult(ToolResult {
            id: ToolId::new(format!("t{id}")),
            name: "other".to_owned(),
            content: vec![Part::text("ok")],
            is_error: false,
        })),
    ]
}

proptest! {
    #[test]
    fn repaired_is_valid(messages in prop::collection::vec(message(), 0..12)) {
        let (repaired, _) = repair(messages);
        prop_assert!(is_valid(&repaired), "{repaired:?}");
    }

    #[test]
    fn repair_changes_nothing_twice(messages in prop::collection::vec(message(), 0..12)) {
        let (once, _) = repair(messages);
        let (twice, repairs) = repair(once.clone());
        prop_assert_eq!(once, twice);
        prop_assert_eq!(repairs, Repairs::default());
    }
}

#[test]
fn parallel_orphans_are_all_answered() {
    let reply = Reply {
        calls: vec![call(1), call(2), call(3)],
        ..Reply::default()
    };
    let (repaired, repairs) = repair(vec![Message::Reply(reply)]);
    assert_eq!(
        repairs,
        Repairs {
            answered: 3,
            dropped: 0
        }
    );
    assert_eq!(repaired.len(), 4);
}

#[test]
fn results_out_of_order_are_put_in_order() {
    let result = |id: u8| {
        Message::ToolResult(ToolResult {
            id: ToolId::new(format!("t{id}")),
            name: "file_read".to_owned(),
            content: vec![Part::text(id.to_string())],
            is_error: false,
        })
    };
    let reply = Message::Reply(Reply {
        calls: vec![call(1), call(2)],
        ..Reply::default()
    });
    let (repaired, repairs) = repair(vec![reply.clone(), result(2), result(1)]);
    assert_eq!(repairs, Repairs::default());
    assert_eq!(repaired, vec![reply, result(1), result(2)]);
}

fn said(bytes: usize) -> Message {
    Message::User(vec![Part::text("x".repeat(bytes))])
}

#[test]
fn a_history_has_room_for_so_many_bytes() {
    let history = history(Room::new(10_000, 1 << 20));
    history.extend(&exchange(), [said(6000)]);
    assert_eq!(history.room_for(3000), Ok(()));
    assert_eq!(history.room_for(4000), Err(Full::Conversation(10_000)));
    // One that is too long by itself changes nothing.
    let refused = history.replace(&exchange(), vec![said(11_000)]);
    assert_eq!(refused, Err(Full::Conversation(10_000)));
    assert_eq!(*history.snapshot(), [said(6000)]);
    // What has to be remembered is, and then there is no room until something goes.
    history.extend(&exchange(), [said(6000)]);
    assert!(history.room_for(0).is_err());
    history.replace(&exchange(), vec![said(1)]).unwrap();
    assert_eq!(history.room_for(9000), Ok(()));
}

#[test]
fn all_histories_share_what_there_is() {
    let room = Room::new(10_000, 15_000);
    let (first, second) = (history(room.clone()), history(room));
    first.extend(&exchange(), [said(8000)]);
    assert_eq!(second.room_for(6000), Ok(()));
    assert_eq!(second.room_for(8000), Err(Full::Daemon(15_000)));
    let refused = second.replace(&exchange(), vec![said(8000)]);
    assert_eq!(refused, Err(Full::Daemon(15_000)));
    drop(first);
    assert_eq!(second.room_for(8000), Ok(()));
}

#[test]
fn every_part_of_a_message_counts() {
    let long = || "x".repeat(5000);
    let input =
        serde_json::Map::from_iter([("k".to_owned(), serde_json::json!([{ "a": long() }]))]);
    let native = crate::message::NativeReply {
        wire: String::new(),
        provider: String::new(),
        model: String::new(),
        items: serde_json::json!([[long()]]),
    };
    let image = Part::Image {
        media_type: "image/png".to_owned(),
        data: long(),
    };
    for message in [
        said(5000),
        Message::User(vec![image]),
        Message::Reply(Reply {
            text: long(),
            ..Reply::default()
        }),
        Message::Reply(Reply {
            thinking: long(),
            ..Reply::default()
        }),
        Message::Reply(Reply {
            calls: vec![ToolCall { input, ..call(1) }],
            ..Reply::default()
        }),
        Message::Reply(Reply {
            native: Some(native),
            ..Reply::default()
        }),
        Message::ToolResult(ToolResult {
            id: ToolId::new("t1"),
            name: "f".to_owned(),
            content: vec![Part::text(long())],
            is_error: false,
        }),
    ] {
        let history = history(Room::new(5000, 1 << 20));
        history.extend(&exchange(), [message.clone()]);
        assert!(history.room_for(0).is_err(), "{message:?}");
    }
}

fn history(room: Room) -> History {
    History::new(room, Journal::default(), ConversationId::new("c"))
}

fn exchange() -> MessageId {
    MessageId::new("m1")
}

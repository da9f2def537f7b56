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
        prop_assert!(repairs.is_empty());
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
    assert!(repairs.is_empty());
    assert_eq!(repaired, vec![reply, result(1), result(2)]);
}

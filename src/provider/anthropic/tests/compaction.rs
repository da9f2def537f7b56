//! The vendor's own compaction: how it is asked for, read, and sent back.

use super::*;
use crate::message::NativeReply;
use crate::provider::compaction;
use crate::provider::decode::Decoder;

/// What comes back of a compaction, in the order of the stream's fields.
fn block() -> Value {
    json!({"type": "compaction", "content": "so far: ü", "encrypted_content": "gAAA", "signature": "c2ln",
        "tool_changes": []})
}

fn stream(begun: &Value, deltas: &[Value]) -> Vec<Value> {
    let delta = |delta: &Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let usage = json!({"input_tokens": 1, "output_tokens": 2, "iterations": [
        {"type": "compaction", "input_tokens": 40, "output_tokens": 30, "cache_read_input_tokens": 20}]});
    let mut frames = vec![
        json!({"type": "message_start", "message": {"model": MODEL, "usage": {"input_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun}),
    ];
    frames.extend(deltas.iter().map(delta));
    frames.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]);
    frames
}

fn read(frames: &[Value]) -> End {
    let wire = Box::new(MessageWire::new("abc".to_owned()));
    let mut decoder = Decoder::new(wire, "anthropic", MODEL, Vec::new());
    let mut chunks = Vec::new();
    for frame in frames {
        decoder.frame("", &frame.to_string(), &mut chunks).unwrap();
    }
    match chunks.pop() {
        Some(Chunk::End(end)) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_compaction_is_kept_as_it_came_and_is_counted() {
    let empty = json!({"type": "compaction", "content": null, "encrypted_content": null, "signature": "c2ln",
        "tool_changes": []});
    let delta = |content: Value, more: Value| {
        let mut delta = json!({"type": "compaction_delta", "content": content});
        delta
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        delta
    };
    let last = || delta(json!("so far: ü"), json!({"encrypted_content": "gAAA"}));
    let failed = || delta(json!(null), json!({"encrypted_content": null}));
    let begun_by_piece = json!({"type": "compaction", "content": "so", "encrypted_content": null, "signature": "c2ln",
        "tool_changes": []});
    for (begun, deltas, expected) in [
        (&empty, vec![last()], Some(block())),
        (&empty, vec![failed()], None),
        // A delta has the last word and is no piece.
        (&begun_by_piece, vec![last()], Some(block())),
        (&begun_by_piece, vec![failed()], None),
        (&block(), vec![], Some(block())),
        (
            &json!({"type": "compaction", "content": null, "encrypted_content": "gAAA"}),
            vec![delta(
                json!("so far: ü"),
                json!({"signature": "c2ln", "tool_changes": []}),
            )],
            Some(
                json!({"type": "compaction", "content": "so far: ü", "encrypted_content": "gAAA",
                "signature": "c2ln", "tool_changes": []}),
            ),
        ),
    ] {
        let end = read(&stream(begun, &deltas));
        // Input with what the cache had, and what the compaction took beside.
        let usage = (end.usage.input, end.usage.output, end.usage.cache_read);
        assert_eq!(usage, (Some(61), Some(32), Some(20)));
        let made = compaction::read(end).ok();
        let text = made.as_ref().and_then(|made| made.text.as_deref());
        assert_eq!(text, expected.as_ref().map(|_| "so far: ü"));
        let items = made.map(|made| made.reply.items.to_string());
        assert_eq!(
            items,
            expected.map(|block| format!("[{block}]")),
            "{begun} {deltas:?}"
        );
    }
}

#[tokio::test]
async fn a_compaction_is_asked_for_and_goes_back_first_and_unchanged() {
    let server = Server::start([said("Hi"), said("Hi"), said("Hi")]).await;
    let mut case = Case::new();
    let answer = Reply {
        text: "Yes?".to_owned(),
        ..Reply::default()
    };
    case.messages.push(Message::Reply(answer));
    for (instructions, sent) in [
        ("", json!({"type": "summarize"})),
        (
            "briefly",
            json!({"type": "summarize", "instructions": "briefly"}),
        ),
    ] {
        case.compact = Some(instructions);
        server.turn(&case).await.unwrap();
        let body = server.bodies().pop().unwrap();
        assert_eq!(body["compaction"], sent);
        // Nobody says anything after the last answer.
        assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    }
    case.compact = None;
    let made = Reply {
        text: "so far".to_owned(),
        native: Some(NativeReply {
            wire: decode::WIRE.to_owned(),
            provider: "anthropic".to_owned(),
            model: MODEL.to_owned(),
            items: json!([block()]),
        }),
        ..Reply::default()
    };
    case.messages.insert(0, Message::Reply(made));
    server.turn(&case).await.unwrap();
    let body = server.bodies().pop().unwrap();
    let first = &body["messages"][0];
    assert_eq!(first["role"], "assistant");
    assert_eq!(first["content"].to_string(), json!([block()]).to_string());
    assert_eq!(body["messages"][1]["role"], "user");
    assert!(body.get("compaction").is_none());
    let asked = server.asked.lock().unwrap();
    let betas: Vec<_> = asked
        .iter()
        .map(|(_, headers, _)| &headers["anthropic-beta"])
        .collect();
    assert_eq!(betas, ["compact-2026-09-04"; 3]);
}

#[tokio::test]
async fn betas_of_the_configuration_stay() {
    let mut server = Server::start([said("Hi"), said("Hi")]).await;
    let own = [("Anthropic-Beta", "mine-2026-01-01")];
    let base_url = server.provider.config().base_url.clone();
    server.provider = provider(&base_url, Some("k"), &own);
    for (compact, expected) in [
        (None, "mine-2026-01-01"),
        (Some(""), "mine-2026-01-01,compact-2026-09-04"),
    ] {
        let mut case = Case::new();
        case.compact = compact;
        server.turn(&case).await.unwrap();
        let asked = server.asked.lock().unwrap();
        let (_, headers, _) = asked.last().unwrap();
        assert_eq!(headers["anthropic-beta"], expected);
    }
}

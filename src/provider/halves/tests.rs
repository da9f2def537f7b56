use bytes::Bytes;
use futures::StreamExt;
use serde_json::json;

use super::super::replay::Wire;
use super::super::{End, Stop};
use super::*;
use crate::provider::json;

/// The halves of one smiling face, as JSON text has them.
const FIRST_HALF: &str = "\\ud83d";
const SECOND_HALF: &str = "\\ude00";

#[test]
fn marks_become_characters() {
    let read = |text: &str| {
        let mut text = json::read_piece::<String>(text).unwrap();
        join(&mut text);
        text
    };
    for (text, expected) in [
        (r#""plain""#, "plain"),
        (r#""\ud83d\ude00""#, "\u{1f600}"),
        (r#""a\ud83d""#, "a\u{fffd}"),
        (r#""\ude00x""#, "\u{fffd}x"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        (r#""\ud800-\udfff""#, "\u{fffd}-\u{fffd}"),
        // Characters for private use are text.
        (
            "\"\u{10d83d}\u{10de00}\u{e03d}\"",
            "\u{10d83d}\u{10de00}\u{e03d}",
        ),
        ("\"\\ud83d\u{e03d}\"", "\u{fffd}\u{e03d}"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Reads pieces of text, of which each is a JSON string.
fn pieces(pieces: &[(Of, &str)]) -> Vec<(Of, String)> {
    let mut halves = Halves::default();
    let mut out = Vec::new();
    for (of, piece) in pieces {
        let text: String = json::read_piece(&format!("\"{piece}\"")).unwrap();
        let chunk = match of {
            Of::Text => Chunk::Text(text),
            Of::Thinking => Chunk::Thinking(text),
            Of::Call(index) => Chunk::ToolCallDelta {
                index: *index,
                fragment: text,
            },
        };
        halves.join(chunk, &mut out);
    }
    halves.finish(&mut out);
    out.into_iter()
        .map(|chunk| match chunk {
            Chunk::Text(text) => (Of::Text, text),
            Chunk::Thinking(text) => (Of::Thinking, text),
            Chunk::ToolCallDelta { index, fragment } => (Of::Call(index), fragment),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_half_waits_for_the_next_piece_of_its_own() {
    use Of::{Call, Text, Thinking};
    type Pieces = &'static [(Of, &'static str)];
    let cases: &[(Pieces, Pieces)] = &[
        (
            &[(Text, "a\\ud83d"), (Text, "\\ude00b")],
            &[(Text, "a"), (Text, "\u{1f600}b")],
        ),
        (
            &[(Text, FIRST_HALF), (Thinking, "t"), (Text, SECOND_HALF)],
            &[(Thinking, "t"), (Text, "\u{1f600}")],
        ),
        (
            &[
                (Call(0), FIRST_HALF),
                (Call(1), FIRST_HALF),
                (Call(0), SECOND_HALF),
                (Call(1), "x"),
            ],
            &[(Call(0), "\u{1f600}"), (Call(1), "\u{fffd}x")],
        ),
        (
            &[(Text, "\u{10d83d}"), (Text, "\u{10de00}")],
            &[(Text, "\u{10d83d}"), (Text, "\u{10de00}")],
        ),
        (
            &[(Text, "a"), (Text, FIRST_HALF)],
            &[(Text, "a"), (Text, "\u{fffd}")],
        ),
        (
            &[(Text, FIRST_HALF), (Text, FIRST_HALF)],
            &[(Text, "\u{fffd}"), (Text, "\u{fffd}")],
        ),
        (&[(Text, SECOND_HALF)], &[(Text, "\u{fffd}")]),
    ];
    for (given, expected) in cases {
        let expected: Vec<(Of, String)> = expected
            .iter()
            .map(|(of, text)| (*of, (*text).to_owned()))
            .collect();
        assert_eq!(pieces(given), expected, "{given:?}");
    }
}

#[test]
fn names_and_errors_show_no_mark() {
    let mut input = json::read_piece(r#"{"k\ud83d":{"\ud83d\ude00":1}}"#).unwrap();
    join_value(&mut input);
    assert_eq!(input, json!({"k\u{fffd}": {"\u{1f600}": 1}}));
    let body = r#"data: {"error":{"message":"a\ud83d","type":"b\ude00","code":"c\ud83d"}}"#;
    let bytes = futures::stream::iter([Ok(Bytes::from(body))]);
    let chunks = Wire::Chat.play(bytes, "", "p", "m");
    let chunks: Vec<_> = futures::executor::block_on(chunks.collect());
    let error = chunks.last().unwrap().clone().unwrap_err();
    assert_eq!(error.message, "a\u{fffd}");
    assert_eq!(error.error_type.as_deref(), Some("b\u{fffd}"));
    assert_eq!(error.code.as_deref(), Some("c\u{fffd}"));
}

/// A stream of two pieces of text and a call whose input has two pieces too, `@` and `#` for the halves.
fn answer(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => {
            r##"data: {"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t@"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"#"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a@"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"#b"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"k\":\"@"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"#\"}"}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

"##
        }
        Wire::Chat => {
            r##"data: {"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"t@"}}]}

data: {"choices":[{"index":0,"delta":{"reasoning_content":"#"}}]}

data: {"choices":[{"index":0,"delta":{"content":"a@"}}]}

data: {"choices":[{"index":0,"delta":{"content":"#b"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"k\":\"@"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"#\"}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

"##
        }
        Wire::Responses => {
            r##"data: {"type":"response.created","response":{"model":"m"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}

data: {"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"t@"}

data: {"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"#"}

data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"t@#"}]}}

data: {"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"i"}}

data: {"type":"response.output_text.delta","output_index":1,"delta":"a@"}

data: {"type":"response.output_text.delta","output_index":1,"delta":"#b"}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"i","content":[{"type":"output_text","text":"a@#b"}]}}

data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":""}}

data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"k\":\"@"}

data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"#\"}"}

data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":"{\"k\":\"@#\"}"}}

data: {"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}}}

"##
        }
        // Its calls come whole.
        Wire::Ollama => {
            r##"{"model":"m","message":{"role":"assistant","thinking":"t@"},"done":false}
{"message":{"role":"assistant","thinking":"#"},"done":false}
{"message":{"role":"assistant","content":"a@"},"done":false}
{"message":{"role":"assistant","content":"#b"},"done":false}
{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"k":"@#"}}}]},"done":false}
{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}
"##
        }
    }
}

#[test]
fn a_pair_cut_into_two_deltas_is_one_character_on_every_wire() {
    for wire in Wire::ALL {
        let body = answer(wire)
            .replace('@', FIRST_HALF)
            .replace('#', SECOND_HALF);
        let bytes = futures::stream::iter([Ok(Bytes::from(body))]);
        let chunks = wire.play(bytes, "", "p", "m");
        let chunks: Vec<Chunk> =
            futures::executor::block_on(chunks.map(|chunk| chunk.unwrap()).collect());
        let (mut text, mut thinking, mut fragments) = (String::new(), String::new(), String::new());
        let mut ended = 0;
        for chunk in chunks {
            match chunk {
                Chunk::Text(more) => text.push_str(&more),
                Chunk::Thinking(more) => thinking.push_str(&more),
                Chunk::ToolCallDelta { fragment, .. } => fragments.push_str(&fragment),
                Chunk::ToolCallEnd { input, .. } => {
                    let expected = json!({"k": "\u{1f600}"});
                    let CallInput::Object(input) = input else {
                        panic!("{wire:?} {input:?}");
                    };
                    assert_eq!(Value::Object(input), expected, "{wire:?}");
                    ended += 1;
                }
                Chunk::End(End { native, stop, .. }) => {
                    assert_eq!(stop, Stop::ToolUse, "{wire:?}");
                    let kept = native.unwrap().items.to_string();
                    assert!(kept.contains("t\u{1f600}"), "{wire:?} {kept}");
                    assert!(!kept.contains([MARK, '\u{fffd}']), "{wire:?} {kept}");
                }
                Chunk::Start { .. } | Chunk::ToolCallStart { .. } | Chunk::Notice(_) => {}
            }
        }
        assert_eq!(ended, 1, "{wire:?}");
        assert_eq!(text, "a\u{1f600}b", "{wire:?}");
        assert_eq!(thinking, "t\u{1f600}", "{wire:?}");
        assert_eq!(fragments, "{\"k\":\"\u{1f600}\"}", "{wire:?}");
    }
}

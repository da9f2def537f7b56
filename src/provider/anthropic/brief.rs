//! The frame that most of an answer consists of, read without a tree: more text of a block.
//!
//! A tree of a frame with a few characters of text is a dozen allocations and as many hashes; this is one copy of the
//! text. What has a field more, or is anything else, is `None` here and left to the tree, which reads these frames to
//! the same effect.

use std::borrow::Cow;

use serde::Deserialize;

use crate::provider::json::Object;

/// A `content_block_delta` with a `text_delta` and nothing else.
#[derive(Debug, PartialEq)]
pub(super) struct MoreText<'f> {
    /// The block's place.
    pub(super) index: u64,
    pub(super) text: Cow<'f, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame<'f> {
    r#type: &'f str,
    index: u64,
    #[serde(borrow)]
    delta: Object<Delta<'f>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta<'f> {
    r#type: &'f str,
    #[serde(borrow)]
    text: Cow<'f, str>,
}

impl<'f> MoreText<'f> {
    /// Reads the data of a frame.
    pub(super) fn read(data: &'f str) -> Option<Self> {
        let Object(Frame {
            r#type,
            index,
            delta: Object(delta),
        }) = serde_json::from_str(data).ok()?;
        let known = r#type == "content_block_delta" && delta.r#type == "text_delta";
        known.then_some(Self {
            index,
            text: delta.text,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::decode::{Context, MessageDecoder};
    use super::*;
    use crate::provider::decode::Decoder;

    #[test]
    fn only_more_text_and_nothing_else_is_read() {
        for (data, expected) in [
            (
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a\n\u00e4"}}"#,
                Some((2, "a\nä")),
            ),
            (
                r#" {"index":0,"delta":{"text":"","type":"text_delta"},"type":"content_block_delta"} "#,
                Some((0, "")),
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","text":"a"}}"#,
                None,
            ),
            (
                r#"{"type":"other","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
                None,
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
                None,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"error":{}}"#,
                None,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","citations":[]}}"#,
                None,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}"#,
                None,
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":["text_delta","a"]}"#,
                None,
            ),
            (
                r#"["content_block_delta",0,{"type":"text_delta","text":"a"}]"#,
                None,
            ),
            ("", None),
        ] {
            let expected = expected.map(|(index, text)| MoreText {
                index,
                text: text.into(),
            });
            assert_eq!(MoreText::read(data), expected, "{data}");
        }
    }

    /// What a decoder makes of frames; with `marked` each has a field that only the tree takes.
    fn decoded(frames: &[Value], marked: bool) -> String {
        let mut decoder = MessageDecoder::new(Context::default());
        let mut out = Vec::new();
        for frame in frames {
            let mut frame = frame.clone();
            if marked {
                frame["mark"] = json!(1);
            }
            if let Err(error) = decoder.frame("", &frame.to_string(), &mut out) {
                return format!("{out:?} {error:?}");
            }
        }
        format!("{out:?} {:?}", decoder.finish(&mut out))
    }

    fn frame() -> impl Strategy<Value = Value> {
        let block = prop_oneof![
            Just(json!({"type": "text", "text": ""})),
            Just(json!({"type": "thinking", "thinking": ""})),
            Just(json!({"type": "tool_use", "id": "x", "name": "f", "input": {}})),
            Just(json!({"type": "new", "text": "a"})),
        ];
        let more = prop_oneof![
            3 => Just(json!({"type": "text_delta", "text": "b\n\u{e4}"})),
            1 => Just(json!({"type": "text_delta", "text": ""})),
            1 => Just(json!({"type": "text_delta", "text": "c", "citation": 1})),
            1 => Just(json!({"type": "thinking_delta", "thinking": "d"})),
            1 => Just(json!({"type": "input_json_delta", "partial_json": "{}"})),
            1 => Just(json!({"type": "new_delta", "text": "e"})),
        ];
        prop_oneof![
            2 => (0u64..3, block).prop_map(|(index, block)| {
                json!({"type": "content_block_start", "index": index, "content_block": block})
            }),
            6 => (0u64..3, more).prop_map(|(index, more)| {
                json!({"type": "content_block_delta", "index": index, "delta": more})
            }),
            1 => (0u64..3).prop_map(|index| json!({"type": "content_block_stop", "index": index})),
            1 => Just(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
        ]
    }

    proptest! {
        #[test]
        fn the_tree_reads_the_same(mut frames in proptest::collection::vec(frame(), 1..12)) {
            frames.push(json!({"type": "message_stop"}));
            prop_assert_eq!(decoded(&frames, false), decoded(&frames, true));
        }
    }
}

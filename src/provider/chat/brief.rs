//! The chunk that most of an answer consists of, read without a tree: more text.
//!
//! A tree of a chunk with a few characters of text is two dozen allocations and as many hashes; this is one copy of the
//! text. What has a field that matters, or one that nobody here knows, is `None` here and left to the tree, which reads
//! these chunks to the same effect. Only numbers and nesting beyond what a tree can hold, in fields that nobody reads,
//! are passed over here and an error there.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::provider::json::Object;

/// A chunk whose only choice is the first, with text and nothing else to be taken in.
#[derive(Debug, PartialEq)]
pub(super) struct MoreText<'c> {
    /// Empty where it is not told.
    pub(super) model: Cow<'c, str>,
    pub(super) text: Cow<'c, str>,
}

// Of the fields that are not read those of type `()` are null where they are there, the others may hold anything.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a field is known by being named")]
struct Chunk<'c> {
    #[serde(borrow, default)]
    model: Cow<'c, str>,
    #[serde(borrow)]
    choices: [Object<Choice<'c>>; 1],
    #[serde(default)]
    usage: (),
    #[serde(default)]
    error: (),
    #[serde(default)]
    id: IgnoredAny,
    #[serde(default)]
    object: IgnoredAny,
    #[serde(default)]
    created: IgnoredAny,
    #[serde(default)]
    provider: IgnoredAny,
    #[serde(default)]
    service_tier: IgnoredAny,
    #[serde(default)]
    system_fingerprint: IgnoredAny,
    #[serde(default)]
    obfuscation: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a field is known by being named")]
struct Choice<'c> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Object<Delta<'c>>,
    #[serde(default)]
    finish_reason: (),
    #[serde(default)]
    native_finish_reason: (),
    #[serde(default)]
    logprobs: IgnoredAny,
    #[serde(default)]
    token_ids: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a field is known by being named")]
struct Delta<'c> {
    #[serde(borrow)]
    content: Cow<'c, str>,
    #[serde(default)]
    role: IgnoredAny,
    #[serde(default)]
    refusal: (),
    #[serde(default)]
    reasoning: (),
    #[serde(default)]
    reasoning_content: (),
    #[serde(default)]
    tool_calls: (),
    #[serde(default)]
    function_call: (),
}

impl<'c> MoreText<'c> {
    /// Reads the data of an event.
    pub(super) fn read(data: &'c str) -> Option<Self> {
        let Object(Chunk { model, choices, .. }) = serde_json::from_str(data).ok()?;
        let [Object(Choice { index, delta, .. })] = choices;
        let text = delta.0.content;
        (index == 0).then_some(Self { model, text })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::decode::ChatDecoder;
    use super::*;
    use crate::provider::decode::Decoder;
    use crate::provider::schema::ToolNames;

    #[test]
    fn only_more_text_and_nothing_else_is_read() {
        for (data, expected) in [
            (
                r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":"a\n\u00e4"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                Some(("m", "a\nä")),
            ),
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":"","refusal":null}}]}"#,
                Some(("", "")),
            ),
            (
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#,
                None,
            ),
            (r#"{"choices":[{"delta":{"content":null}}]}"#, None),
            (r#"{"choices":[{"delta":{}}]}"#, None),
            (r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#, None),
            (
                r#"{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}"#,
                None,
            ),
            (r#"{"choices":[]}"#, None),
            (
                r#"{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a","extra_content":{}}}]}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a"}}],"usage":{}}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a"}}],"error":{"message":"b"}}"#,
                None,
            ),
            (
                r#"{"choices":[{"delta":{"content":"a"}}],"x_groq":{}}"#,
                None,
            ),
            (r#"{"choices":[{"delta":["a"]}]}"#, None),
            (r#"{"choices":[[0,{"content":"a"}]]}"#, None),
            (r#"["m",[{"delta":{"content":"a"}}]]"#, None),
            ("[DONE]", None),
        ] {
            let expected = expected.map(|(model, text)| MoreText {
                model: model.into(),
                text: text.into(),
            });
            assert_eq!(MoreText::read(data), expected, "{data}");
        }
    }

    /// What a decoder makes of chunks; with `marked` each has a field that only the tree takes.
    fn decoded(chunks: &[Value], marked: bool) -> String {
        let mut decoder = ChatDecoder::new("p", "m", ToolNames::default(), Vec::new());
        let mut out = Vec::new();
        for chunk in chunks {
            let mut chunk = chunk.clone();
            if marked {
                chunk["mark"] = json!(1);
            }
            if let Err(error) = decoder.frame("", &chunk.to_string(), &mut out) {
                return format!("{out:?} {error:?}");
            }
        }
        format!("{out:?} {:?}", decoder.finish(&mut out))
    }

    /// An object of some of these fields.
    fn object(fields: &[(&'static str, Value)]) -> impl Strategy<Value = Value> + use<> {
        let count = fields.len();
        proptest::sample::subsequence(fields.to_vec(), 0..=count).prop_map(|fields| {
            fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()
        })
    }

    fn delta() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(json!({"content": "text"})),
            Just(json!({"content": "\u{e4}\n\"", "role": "assistant"})),
            object(&[
                ("content", json!("a")),
                ("role", json!("assistant")),
                ("refusal", json!(null)),
                ("reasoning", json!(null)),
                ("reasoning_content", json!("b")),
                ("tool_calls", json!(null)),
                ("function_call", json!(null)),
            ]),
            object(&[
                ("content", json!([{"type": "text", "text": "c"}])),
                ("reasoning", json!("d")),
                ("refusal", json!("e")),
                (
                    "tool_calls",
                    json!([{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}])
                ),
            ]),
        ]
    }

    fn chunk() -> impl Strategy<Value = Value> {
        let rest = object(&[
            ("id", json!("c")),
            ("object", json!("error")),
            ("created", json!(1)),
            ("model", json!("m")),
            ("usage", json!(null)),
            ("error", json!(null)),
            ("service_tier", json!("default")),
        ]);
        let choice = object(&[
            ("index", json!(0)),
            ("finish_reason", json!(null)),
            ("logprobs", json!({"content": []})),
        ]);
        let reason = prop_oneof![5 => Just(None), 1 => Just(Some("stop"))];
        (rest, choice, delta(), reason).prop_map(|(mut chunk, mut choice, delta, reason)| {
            choice["delta"] = delta;
            if let Some(reason) = reason {
                choice["finish_reason"] = json!(reason);
            }
            chunk["choices"] = json!([choice]);
            chunk
        })
    }

    proptest! {
        #[test]
        fn the_tree_reads_the_same(chunks in proptest::collection::vec(chunk(), 1..8)) {
            prop_assert_eq!(decoded(&chunks, false), decoded(&chunks, true));
        }
    }
}

//! A vendor's own compaction, as the answer to a request for one. Pure.
//!
//! Facts: `docs/providers.md`, "Compaction by the vendor".

use serde_json::Value;

use super::json::string;
use super::{End, Stop, anthropic, responses};
use crate::message::NativeReply;

/// The most bytes of one that are kept: it is sent with every request that follows.
const MAX_BYTES: usize = 1024 * 1024;

/// The type of the item, which both vendors call so.
const ITEM: &str = "compaction";

/// Stands in the place of the messages that it was made of, for the model that made it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NativeCompaction {
    /// Its one item, as it came.
    pub reply: NativeReply,
    /// What it says, where others than its vendor can read it.
    pub text: Option<String>,
}

/// Reads how an answer ended; fails where it is not exactly one compaction.
pub(crate) fn read(end: End) -> Result<NativeCompaction, &'static str> {
    if end.stop == Stop::MaxTokens {
        return Err("the vendor's compaction was cut off");
    }
    let Some(NativeReply {
        wire,
        provider,
        model,
        items: Value::Array(mut items),
    }) = end.native
    else {
        return Err("the answer has no compaction");
    };
    // What the model thought of it is of no use beside it.
    items.retain(|item| wire != responses::decode::WIRE || string(item, "type") != "reasoning");
    let [item] = items.as_slice() else {
        return Err("the answer is more than one compaction");
    };
    if string(item, "type") != ITEM {
        return Err("the answer is no compaction");
    }
    let content = string(item, "content");
    let (has_content, text) = match wire == anthropic::decode::WIRE {
        true => (!content.trim().is_empty(), Some(content.to_owned())),
        false => (!string(item, "encrypted_content").is_empty(), None),
    };
    if !has_content {
        return Err("the vendor's compaction failed: it is empty");
    }
    if item.to_string().len() > MAX_BYTES {
        return Err("the vendor's compaction is too large");
    }
    let items = Value::Array(items);
    let reply = NativeReply {
        wire,
        provider,
        model,
        items,
    };
    Ok(NativeCompaction { reply, text })
}

/// Returns whether an item of a request is one.
pub(super) fn is_item(item: &Value) -> bool {
    string(item, "type") == ITEM
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::message::Usage;
    use crate::provider::{ErrorKind, ProviderError};

    fn end(wire: &str, stop: Stop, items: Option<Value>) -> End {
        End {
            stop,
            raw_stop: None,
            usage: Usage::default(),
            native: items.map(|items| NativeReply {
                wire: wire.to_owned(),
                provider: "p".to_owned(),
                model: "m".to_owned(),
                items,
            }),
        }
    }

    #[test]
    fn one_item_with_something_in_it_is_a_compaction() {
        let (theirs, opaque) = (anthropic::decode::WIRE, responses::decode::WIRE);
        let block = json!({"type": "compaction", "content": "so far", "encrypted_content": null, "signature": "c2ln"});
        let failed = json!({"type": "compaction", "content": null, "encrypted_content": null});
        let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"});
        let empty = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": ""});
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let text = json!({"type": "text", "text": "so far"});
        let huge = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "x".repeat(MAX_BYTES)});
        for (wire, items, expected) in [
            (theirs, Some(json!([block])), Some((&block, Some("so far")))),
            (theirs, Some(json!([failed])), None),
            (theirs, Some(json!([text])), None),
            (theirs, Some(json!([text, block])), None),
            (theirs, Some(json!([block, block])), None),
            (theirs, None, None),
            (opaque, Some(json!([item])), Some((&item, None))),
            (opaque, Some(json!([reasoning, item])), Some((&item, None))),
            (opaque, Some(json!([reasoning])), None),
            (opaque, Some(json!([item, item])), None),
            (opaque, Some(json!([empty])), None),
            (opaque, Some(json!([huge])), None),
            (opaque, Some(json!([])), None),
            (opaque, Some(json!({})), None),
        ] {
            let case = format!("{wire} {items:?}")
                .chars()
                .take(200)
                .collect::<String>();
            let read = |stop| read(end(wire, stop, items.clone()));
            assert!(read(Stop::MaxTokens).is_err(), "{case}");
            let read = read(Stop::EndTurn).ok();
            let read = read.map(|it| (it.reply.items.to_string(), it.text));
            let expected =
                expected.map(|(item, text)| (format!("[{item}]"), text.map(str::to_owned)));
            assert_eq!(read, expected, "{case}");
        }
    }

    #[test]
    fn a_compaction_that_is_refused_is_named() {
        use ErrorKind::{Compaction, InvalidRequest, Overloaded, Server};
        let anthropic = |code: &str| json!({"type": "invalid_request_error", "message": "x", "details": {"error_code": code}});
        let openai = |message: &str, code: &str| json!({"type": "invalid_request_error", "message": message, "code": code});
        let opaque = "Invalid input[0]: the Compaction item cannot be decrypted.";
        for (status, error, kind, expected) in [
            (
                400,
                anthropic("compaction_block_ambiguous"),
                Compaction,
                true,
            ),
            (
                400,
                anthropic("compaction_block_misplaced"),
                Compaction,
                true,
            ),
            (
                400,
                anthropic("compaction_content_mismatch"),
                Compaction,
                true,
            ),
            (
                400,
                anthropic("compaction_signature_invalid"),
                Compaction,
                true,
            ),
            (
                400,
                anthropic("compaction_tool_changes_mismatch"),
                Compaction,
                true,
            ),
            (
                400,
                anthropic("compaction_nothing_to_summarize"),
                InvalidRequest,
                false,
            ),
            (529, anthropic("compaction_unavailable"), Overloaded, false),
            (400, openai(opaque, "invalid_value"), InvalidRequest, true),
            (
                400,
                openai("Invalid input[0].", "invalid_value"),
                InvalidRequest,
                false,
            ),
            (
                400,
                openai("a call of compaction", "tool_use_failed"),
                InvalidRequest,
                false,
            ),
            (
                500,
                openai("compaction failed", "server_error"),
                Server,
                false,
            ),
        ] {
            let body = json!({"error": error}).to_string();
            let error = ProviderError::from_response(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!(
                (error.kind, error.names_compaction()),
                (kind, expected),
                "{body}"
            );
        }
    }
}

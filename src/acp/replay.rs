//! What was said in a session that is loaded, as updates. Pure.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::render::{Renderer, chunk};
use crate::message::{Metadata, Part, ToolId};
use crate::protocol::content::{Content, Role, WireMessage};
use crate::protocol::event::ResultStatus;

/// Returns the updates of all messages, in their order; a call comes with its result, and with the facts of it that are kept.
pub(super) fn replay(
    messages: Vec<WireMessage>,
    renderer: &mut Renderer,
    facts: impl Fn(&ToolId) -> Option<Metadata>,
) -> Vec<Value> {
    let results: HashMap<ToolId, (ResultStatus, String)> = messages
        .iter()
        .filter_map(|message| {
            let status = match message.is_error {
                true => ResultStatus::Error,
                false => ResultStatus::Success,
            };
            Some((
                message.tool_call_id.clone()?,
                (status, text(&message.content)),
            ))
        })
        .collect();
    let mut updates = Vec::new();
    for (number, message) in messages.into_iter().enumerate() {
        let id = format!("h{number}");
        match message.role {
            Role::User => {
                let parts = message.content.into_parts().into_iter();
                updates.extend(parts.map(|part| user(part, &id)));
            }
            Role::Assistant => {
                if let Some(thinking) = message.thinking.filter(|it| !it.is_empty()) {
                    updates.push(chunk("agent_thought_chunk", &thinking, &format!("{id}t")));
                }
                let said = text(&message.content);
                if !said.is_empty() {
                    updates.push(chunk("agent_message_chunk", &said, &id));
                }
                for call in message.tool_calls {
                    let result = results.get(&call.id);
                    let result = result.map(|(status, text)| (*status, text.as_str()));
                    let facts = facts(&call.id);
                    updates.extend(renderer.past(
                        &call.id,
                        &call.name,
                        &call.input,
                        result,
                        facts.as_ref(),
                    ));
                }
            }
            // With its call.
            Role::Tool => {}
        }
    }
    updates
}

fn user(part: Part, id: &str) -> Value {
    let content = match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { media_type, data } => {
            json!({"type": "image", "mimeType": media_type, "data": data})
        }
        Part::Document(document) => {
            let uri = format!("attachment:///{}", document.name());
            let (kind, content) = match document.pdf() {
                Some(data) => ("blob", data),
                None => ("text", document.text()),
            };
            let resource = json!({"uri": uri, "mimeType": document.media_type, kind: content});
            json!({"type": "resource", "resource": resource})
        }
    };
    json!({"sessionUpdate": "user_message_chunk", "content": content, "messageId": id})
}

fn text(content: &Content) -> String {
    let parts = match content {
        Content::Text(text) => return text.clone(),
        Content::Parts(parts) => parts,
    };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } | Part::Document(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use agent_client_protocol_schema::v1::SessionUpdate;

    use super::*;
    use crate::acp::wire::Capabilities;

    #[test]
    fn all_that_was_said_comes_in_its_order() {
        let said = json!([
            {"role": "user", "content": [{"type": "text", "text": "look"},
                {"type": "image", "mediaType": "image/png", "data": "AA=="},
                {"type": "document", "mediaType": "application/pdf", "data": "AA==", "text": "", "name": "a.pdf"},
                {"type": "document", "mediaType": "text/csv", "text": "x,y"}]},
            {"role": "assistant", "content": "I look.", "thinking": "hm", "toolCalls": [
                {"id": "t1", "name": "file_read", "input": {"path": "a"}},
                {"id": "t2", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "tool", "toolCallId": "t2", "toolName": "bash", "content": "no", "isError": true},
            {"role": "tool", "toolCallId": "t1", "toolName": "file_read", "content": "text of a"},
            {"role": "assistant", "content": "Done."},
        ]);
        let said: Vec<WireMessage> = serde_json::from_value(said).unwrap();
        for (client, terminals) in [
            (json!({}), 0),
            (json!({"_meta": {"terminal_output": true}}), 1),
        ] {
            let client: Capabilities = serde_json::from_value(client).unwrap();
            let mut renderer = Renderer::new(PathBuf::from("/p"), &client);
            let facts = |id: &ToolId| {
                let exited = Metadata {
                    exit_code: Some(2),
                    ..Metadata::default()
                };
                (id.as_str() == "t2").then_some(exited)
            };
            let updates = replay(said.clone(), &mut renderer, facts);
            for update in &updates {
                let read = serde_json::from_value::<SessionUpdate>(update.clone());
                assert!(read.is_ok(), "{update}: {read:?}");
            }
            let kinds: Vec<_> = updates
                .iter()
                .map(|it| it["sessionUpdate"].as_str().unwrap())
                .collect();
            let call = ["tool_call", "tool_call_update"];
            let mut expected = vec![
                "user_message_chunk",
                "user_message_chunk",
                "user_message_chunk",
                "user_message_chunk",
                "agent_thought_chunk",
                "agent_message_chunk",
            ];
            expected.extend(call);
            expected.extend(call);
            expected.extend(vec!["tool_call_update"; terminals]);
            expected.push("agent_message_chunk");
            assert_eq!(kinds, expected);
            let ends: Vec<_> = updates
                .iter()
                .filter_map(|it| it["status"].as_str())
                .filter(|it| *it != "in_progress")
                .collect();
            assert_eq!(ends, ["completed", "failed"]);
            let mut exits = updates
                .iter()
                .filter_map(|it| it["_meta"]["terminal_exit"]["exit_code"].as_u64());
            assert_eq!(exits.next(), (terminals == 1).then_some(2));
        }
    }
}

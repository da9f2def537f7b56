//! The question whether files may speak for the user, as a request to the client. Pure, but for the zone of the time that is shown.

use serde_json::{Value, json};

use super::blocks::fenced;
use super::question::{DENY, FURTHER, chosen, lapse, option};
use super::render::{Renderer, text_content};
use crate::message::TrustId;
use crate::protocol::event::Event;
use crate::protocol::trust::{TrustApprove, TrustConfirm, TrustOutcome};

/// Returns what the client decided. Whatever is no clear yes is a no.
pub(super) fn answer(id: &TrustId, outcome: Result<Value, Value>) -> TrustApprove {
    TrustApprove {
        request_id: id.clone(),
        approved: matches!(chosen(outcome), Ok(Some(option)) if option == FURTHER),
    }
}

impl Renderer {
    /// Shows a question about files as a call, and its end.
    pub(super) fn trust(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::ChatTrustConfirm(confirm) => {
                let id = trust_call(&confirm.request_id);
                vec![self.ask(id, of_files(confirm))]
            }
            Event::ChatTrustResolved(it) => {
                let id = trust_call(&it.request_id);
                self.resolved(&id, it.outcome == TrustOutcome::Trusted)
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the id of the call that stands for a question about files.
fn trust_call(id: &TrustId) -> String {
    format!("trust-{id}")
}

/// Returns the call that stands for a question about files, with all that they say.
fn of_files(confirm: &TrustConfirm) -> Value {
    let mut content: Vec<Value> = confirm
        .files
        .iter()
        .map(|file| {
            let text = fenced("", &file.text);
            text_content(&format!(
                "{}, {} bytes, SHA-256 {}:\n\n{text}",
                file.path, file.bytes, file.sha256
            ))
        })
        .collect();
    content.extend(lapse(confirm.expires_at.as_deref()).map(|it| text_content(it.trim())));
    let paths: Vec<&str> = confirm.files.iter().map(|it| it.path.as_str()).collect();
    let title = format!("Tell the model as your words: {}", paths.join(", "));
    json!({"toolCallId": trust_call(&confirm.request_id), "title": title, "kind": "other", "content": content})
}

/// Returns the parameters of `session/request_permission` for files. A yes counts for their contents for as long as it reaches.
pub(super) fn of_trust(session: &str, confirm: &TrustConfirm) -> Value {
    json!({
        "sessionId": session,
        "toolCall": of_files(confirm),
        "options": [
            option(FURTHER, "Tell it, as it is now", "allow_always"),
            option(DENY, "Do not", "reject_once"),
        ],
    })
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::RequestPermissionRequest;

    use super::*;

    #[test]
    fn files_are_shown_whole_and_only_a_clear_yes_is_one() {
        let files = json!({"conversationId": "default", "messageId": "m1", "requestId": "f1", "remember": "project",
            "files": [{"path": "AGENTS.md", "kind": "instructions", "sha256": "ab", "bytes": 3, "text": "a ```` b"}]});
        let asked = of_trust("s", &serde_json::from_value(files).unwrap());
        let text = asked["toolCall"]["content"][0]["content"]["text"].as_str();
        assert!(text.unwrap().ends_with("\n\n`````\na ```` b\n`````"));
        serde_json::from_value::<RequestPermissionRequest>(asked).unwrap();
        let selected =
            |option: &str| Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}));
        for (outcome, approved) in [
            (selected(FURTHER), true),
            (selected("once"), false),
            (selected(DENY), false),
            (Err(Value::Null), false),
        ] {
            assert_eq!(answer(&TrustId::new("f1"), outcome).approved, approved);
        }
    }
}

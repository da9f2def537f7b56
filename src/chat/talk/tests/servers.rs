//! Prompts of MCP servers, and what these ask.

use super::*;
use crate::protocol::input::InputAction;

fn sent_by(actions: Vec<Action>) -> Vec<Command> {
    let command = |action| match action {
        Action::Send(_, command) => Some(command),
        _ => None,
    };
    actions.into_iter().filter_map(command).collect()
}

#[test]
fn a_prompt_is_asked_for_and_then_said() {
    let mut story = Story::conversation();
    let asked = sent_by(story.talk.line(Some("/docs:review a.rs"), NOW));
    assert!(
        matches!(&asked[..], [Command::McpUsePrompt(used)] if used.line == "a.rs"),
        "{asked:?}"
    );
    let said = event(
        "mcp:use-prompt-result",
        &json!({"server": "docs", "name": "review", "content": [{"type": "text", "text": "Review a.rs."}]}),
    );
    let number = story.talk.requests;
    let sent = sent_by(story.talk.event(&said, Some(number), NOW));
    let [Command::ChatSend(send)] = &sent[..] else {
        panic!("{sent:?}");
    };
    let content = serde_json::to_value(&send.content).unwrap();
    assert_eq!(content, json!([{"type": "text", "text": "Review a.rs."}]));
    // The answer to it is waited for.
    assert!(story.talk.is_busy());
}

#[test]
fn a_prompt_that_is_refused_leads_back_to_the_prompt() {
    let mut story = Story::conversation();
    story.talk.line(Some("/docs:review"), NOW);
    let number = story.talk.requests;
    let actions = story.talk.event(&refusal("mcp_error"), Some(number), NOW);
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Read { .. }))
    );
    assert!(!story.talk.is_busy());
}

fn request(purpose: Option<&str>) -> Event {
    let mut payload = json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "requestId": "i1",
        "server": "crm", "message": "The server wants\n    words", "mode": "form",
        "requestedSchema": {"type": "object", "properties": {}}});
    if let Some(purpose) = purpose {
        payload["purpose"] = json!(purpose);
    }
    event("chat:tool-input-request", &payload)
}

#[test]
fn whether_the_model_answers_a_server_is_asked_and_nothing_else_is() {
    for (line, expected) in [
        (Some("y"), Some(InputAction::Accept)),
        (Some("no"), Some(InputAction::Decline)),
        (None, Some(InputAction::Decline)),
        (Some("perhaps"), None),
    ] {
        let mut story = Story::conversation();
        let asked = story.talk.event(&request(Some("sampling")), None, NOW);
        assert!(asked.iter().any(
            |action| matches!(action, Action::Read { prompt, .. } if prompt.contains("ask the model"))
        ));
        let sent = sent_by(story.talk.line(line, NOW));
        let action = sent.first().map(|command| match command {
            Command::ChatToolInput(input) => input.action,
            other => panic!("{other:?}"),
        });
        assert_eq!(action, expected, "{line:?}");
    }
    let mut story = Story::conversation();
    let sent = sent_by(story.talk.event(&request(None), None, NOW));
    assert!(
        matches!(&sent[..], [Command::ChatToolInput(input)] if input.action == InputAction::Decline),
        "{sent:?}"
    );
    // One that is void leaves nothing on the screen.
    story.talk.event(&request(Some("sampledAnswer")), None, NOW);
    let resolved = event(
        "chat:tool-input-resolved",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "requestId": "i1",
            "outcome": "cancelled", "by": "cancel"}),
    );
    let actions = story.talk.event(&resolved, None, NOW);
    assert!(actions.contains(&Action::Forget));
}

use serde_json::json;

use super::*;
use crate::message::{ConversationId, Danger, MessageId, ToolId};
use crate::protocol::event::RememberOffer;

/// A question about this input, from JSON.
fn confirm(input: &Value) -> ToolConfirm {
    ToolConfirm {
        conversation_id: ConversationId::new("default"),
        message_id: MessageId::new("m1"),
        tool_id: ToolId::new("t1"),
        tool_name: "bash".to_owned(),
        input: input.as_object().cloned().unwrap(),
        changed_by: None,
        danger: Danger::new(DangerLevel::Dangerous, "`rm` removes files"),
        reason: "commands are asked for".to_owned(),
        commands: Vec::new(),
        rules: Vec::new(),
        preview: None,
        host: None,
        remember: None,
        expires_at: Some("2026-11-20T12:00:30.500Z".to_owned()),
    }
}

/// The question as plain text.
fn shown(confirm: &ToolConfirm) -> String {
    show(confirm)
        .into_iter()
        .map(|piece| match piece {
            Piece::Answer(text) | Piece::Aside(_, text) => text,
        })
        .collect()
}

#[test]
fn a_question_says_who_changed_the_input() {
    let mut confirm = confirm(&json!({"command": "ls"}));
    assert!(!shown(&confirm).contains("changed"));
    confirm.changed_by = Some("gu\u{1b}ard".to_owned());
    let text = shown(&confirm);
    assert!(
        text.contains("\n  the input was changed by the hook gu\\u{1b}ard\n"),
        "{text}"
    );
}

#[test]
fn a_question_for_a_host_names_it() {
    let mut confirm = confirm(&json!({"command": "npm ci"}));
    confirm.host = Some("registry.example".to_owned());
    let text = shown(&confirm);
    let begin = "? t1, bash, wants to connect to registry.example\n";
    assert!(text.starts_with(begin), "{text}");
}

#[test]
fn a_question_shows_everything() {
    let mut confirm = confirm(&json!({"command": "rm -r a\nrm -r b", "timeout": 5}));
    confirm.preview = Some("--- a\n+++ b\n-old\n+new\n".to_owned());
    assert_eq!(
        shown(&confirm),
        "? t1 wants to run bash\n\
         \x20 command:\n\
         \x20   │ rm -r a\n\
         \x20   │ rm -r b\n\
         \x20 timeout: 5\n\
         \x20 danger: dangerous\n\
         \x20   `rm` removes files\n\
         \x20 asked because: commands are asked for\n\
         \x20 --- a\n\
         \x20 +++ b\n\
         \x20 -old\n\
         \x20 +new\n"
    );
}

#[test]
fn nothing_in_a_question_steers_the_terminal_or_hides() {
    let nasty = "\u{1b}[2J\u{202e}\u{200b}\r\u{7}";
    let mut confirm = confirm(&json!({ nasty: nasty, "deep": {"in": [nasty]} }));
    confirm.tool_name = nasty.to_owned();
    confirm.reason = nasty.to_owned();
    confirm.danger.reasons = vec![nasty.to_owned()];
    confirm.preview = Some(format!("+{nasty}"));
    let text = shown(&confirm);
    let hidden: Vec<char> = text
        .chars()
        .filter(|c| *c != '\n' && crate::terminal_text::is_hidden(*c))
        .collect();
    assert_eq!(hidden, Vec::<char>::new(), "{text}");
    assert!(text.contains("\\u{202e}"), "{text}");
}

#[test]
fn a_call_without_input_says_so() {
    assert!(shown(&confirm(&json!({}))).contains("without input"));
}

#[test]
fn the_prompt_counts_down() {
    let mut confirm = confirm(&json!({}));
    let cases = [
        ("2026-11-20T12:00:00Z", Some("30 s to answer")),
        ("2026-11-20T12:00:30Z", Some("0 s to answer")),
        ("2026-11-20T13:00:00Z", Some("0 s to answer")),
    ];
    for (now, expected) in cases {
        let text = prompt(&confirm, now.parse().unwrap());
        assert!(expected.is_some_and(|words| text.contains(words)), "{text}");
    }
    for never in [None, Some("soon".to_owned())] {
        confirm.expires_at = never;
        let text = prompt(&confirm, Timestamp::UNIX_EPOCH);
        assert!(!text.contains("to answer"), "{text}");
    }
}

#[test]
fn only_a_clear_yes_is_one() {
    let refuse = |reason: &str| Reply::Refuse(Some(reason.to_owned()));
    let remember = |remember, folder: Option<&str>| {
        Reply::Remember(Lasting {
            remember,
            folder: folder.map(str::to_owned),
        })
    };
    let cases = [
        ("y", Reply::Approve),
        (" YES \n", Reply::Approve),
        ("a", remember(Remember::Conversation, None)),
        ("a session", remember(Remember::Session, None)),
        (
            "Always PROJECT in src/a b",
            remember(Remember::Project, Some("src/a b")),
        ),
        ("a in .", remember(Remember::Conversation, Some("."))),
        ("a session in", Reply::Unclear),
        ("a once", Reply::Unclear),
        ("a bit", Reply::Unclear),
        (
            "never always",
            Reply::Never(Lasting {
                remember: Remember::Always,
                folder: None,
            }),
        ),
        ("never mind", Reply::Unclear),
        ("e", Reply::Edit(None)),
        (
            r#"e {"command": "ls"}"#,
            Reply::Edit(Some(r#"{"command": "ls"}"#.to_owned())),
        ),
        ("e ls", Reply::Unclear),
        ("n", Reply::Refuse(None)),
        ("no", Reply::Refuse(None)),
        ("n use git rm\n", refuse("use git rm")),
        ("", Reply::Unclear),
        ("yy", Reply::Unclear),
        ("y but carefully", Reply::Unclear),
        ("always!", Reply::Unclear),
        ("ok", Reply::Unclear),
    ];
    for (line, expected) in cases {
        assert_eq!(Reply::read(line), expected, "{line:?}");
    }
}

#[test]
fn an_edited_input_is_one_object() {
    assert_eq!(
        edited(" {\"command\": \"ls\"}\n").map(Value::Object),
        Ok(json!({"command": "ls"}))
    );
    for (text, words) in [
        ("[]", "one JSON object"),
        ("ls", "not valid JSON"),
        ("", "not valid JSON"),
    ] {
        let problem = edited(text).unwrap_err();
        assert!(problem.contains(words), "{problem}");
    }
}

#[test]
fn a_prompt_says_how_far_an_answer_may_reach() {
    let mut confirm = confirm(&json!({"path": "src/a.rs"}));
    confirm.expires_at = None;
    let offer = |approval: &[Remember], denial: &[Remember], folders: &[&str]| RememberOffer {
        approval: approval.to_vec(),
        denial: denial.to_vec(),
        folders: folders.iter().map(|it| (*it).to_owned()).collect(),
    };
    let near = [Remember::Conversation, Remember::Session];
    let all = Remember::FURTHER;
    for (offer, answers, hint) in [
        (None, "", None),
        (
            Some(offer(&near, &near, &[])),
            ", a always, never",
            Some("  a and never count in this conversation; further: `a session`"),
        ),
        (
            Some(offer(&all, &all, &["src", "."])),
            ", a always, never",
            Some(
                "  a and never count in this conversation; further: `a session`, `a project`, `a always`; \
                 for writing below a folder: `a in src`",
            ),
        ),
        (
            Some(offer(&[], &near, &[])),
            ", never",
            Some("  never counts in this conversation; further: `never session`"),
        ),
    ] {
        confirm.remember = offer;
        let text = prompt(&confirm, Timestamp::UNIX_EPOCH);
        assert!(text.ends_with(&format!("e edit{answers} > ")), "{text}");
        assert_eq!(on_offer(&confirm).as_deref(), hint);
    }
}

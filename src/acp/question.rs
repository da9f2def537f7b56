//! Questions to the user as requests to the client, and what its answers mean. Pure, but for the zone of the time that is shown.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::render::text_content;
use super::tool_call;
use super::trust;
use super::wire::{Permission, PermissionOutcome};
use crate::message::{BudgetId, InputId, Money, ToolId, TrustId};
use crate::protocol::budget::{BudgetApprove, BudgetConfirm};
use crate::protocol::command::{Command, Remember, ToolApprove};
use crate::protocol::event::ToolConfirm;
use crate::protocol::input::{InputAction, InputMode, ToolInput, ToolInputRequest};
use crate::protocol::word;

const ONCE: &str = "once";
pub(super) const FURTHER: &str = "further";
pub(super) const DENY: &str = "deny";

/// The longest name of what an approval is for, in characters: it stands on a button.
const MAX_MATTER: usize = 80;

/// What the model reads where the client did not ask.
const NOT_ASKED: &str = "the editor could not show the question";

/// A question that the client was asked.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Call(Box<ToolConfirm>),
    Money(BudgetId),
    Trust(TrustId),
    Input(InputId),
}

/// Which question it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    Call(&'a ToolId, Option<&'a str>),
    Money(&'a BudgetId),
    Trust(&'a TrustId),
    Input(&'a InputId),
}

impl Question {
    /// Returns which question this is.
    pub(super) fn key(&self) -> Key<'_> {
        match self {
            Self::Call(confirm) => Key::Call(&confirm.tool_id, confirm.host.as_deref()),
            Self::Money(id) => Key::Money(id),
            Self::Trust(id) => Key::Trust(id),
            Self::Input(id) => Key::Input(id),
        }
    }

    /// Returns the request for what the client decided. Whatever is no clear yes is a no.
    pub(super) fn answered(&self, outcome: Result<Value, Value>) -> Command {
        match self {
            Self::Call(confirm) => Command::ChatToolApprove(verdict(confirm, outcome)),
            Self::Money(id) => Command::ChatBudgetApprove(money(id, outcome)),
            Self::Trust(id) => Command::ChatTrustApprove(trust::answer(id, outcome)),
            Self::Input(id) => Command::ChatToolInput(input(id, outcome)),
        }
    }
}

/// Returns the option that was chosen; `None` where none was, an error where the client did not ask.
pub(super) fn chosen(outcome: Result<Value, Value>) -> Result<Option<String>, ()> {
    let answer = outcome.map_err(drop)?;
    let permission: Permission = serde_json::from_value(answer).map_err(drop)?;
    Ok(match permission.outcome {
        PermissionOutcome::Selected { option_id } => Some(option_id),
        PermissionOutcome::Cancelled => None,
    })
}

fn verdict(confirm: &ToolConfirm, outcome: Result<Value, Value>) -> ToolApprove {
    let denied = ToolApprove::of(confirm, false);
    match chosen(outcome) {
        Ok(Some(option)) if option == ONCE => ToolApprove::of(confirm, true),
        Ok(Some(option)) if option == FURTHER => ToolApprove {
            remember: further(confirm).unwrap_or_default(),
            ..ToolApprove::of(confirm, true)
        },
        Ok(_) => denied,
        Err(()) => ToolApprove {
            reason: Some(NOT_ASKED.to_owned()),
            ..denied
        },
    }
}

fn money(id: &BudgetId, outcome: Result<Value, Value>) -> BudgetApprove {
    let option = chosen(outcome).ok().flatten();
    BudgetApprove {
        request_id: id.clone(),
        approved: matches!(option.as_deref(), Some(ONCE | FURTHER)),
        extend_usd: None,
        unlimited: option.as_deref() == Some(FURTHER),
        finish: true,
    }
}

fn input(id: &InputId, outcome: Result<Value, Value>) -> ToolInput {
    let answer = outcome.unwrap_or_default();
    let action = match answer.get("action").and_then(Value::as_str) {
        Some("accept") => InputAction::Accept,
        Some("decline") => InputAction::Decline,
        _ => InputAction::Cancel,
    };
    let content = answer.get("content").and_then(Value::as_object);
    ToolInput {
        request_id: id.clone(),
        content: content.filter(|_| action == InputAction::Accept).cloned(),
        action,
    }
}

/// Returns how far an approval may reach beyond the call, the nearest.
fn further(confirm: &ToolConfirm) -> Option<Remember> {
    confirm.remember.as_ref()?.approval.first().copied()
}

pub(super) fn option(id: &str, name: &str, kind: &str) -> Value {
    json!({"optionId": id, "name": name, "kind": kind})
}

/// Returns the id of the call that stands for the question about a host: the call itself runs and shows what it does.
pub(super) fn host_call(call: &ToolId, host: &str) -> String {
    format!("{call}/host/{host}")
}

/// Returns the id of the call that stands for a question about money.
pub(super) fn money_call(id: &BudgetId) -> String {
    format!("budget-{id}")
}

/// Returns the call that stands for the question about a host.
pub(super) fn of_host(confirm: &ToolConfirm, host: &str) -> Value {
    json!({"toolCallId": host_call(&confirm.tool_id, host), "title": format!("Connect to {host}"),
        "kind": "fetch", "content": [text_content(&why(confirm))]})
}

/// Returns the call that stands for a question about money.
pub(super) fn of_cap(confirm: &BudgetConfirm) -> Value {
    let mut text = format!(
        "{} of {} are spent of what {} may cost; the next request is expected to cost {}.",
        confirm.spent_usd,
        confirm.limit_usd,
        confirm.scope.words(),
        confirm.next_usd
    );
    text.extend(lapse(confirm.expires_at.as_deref()));
    json!({"toolCallId": money_call(&confirm.request_id), "title": "Spend more", "kind": "other",
        "content": [text_content(&text)]})
}

/// Returns why a call is asked for, and until when.
fn why(confirm: &ToolConfirm) -> String {
    let mut why = format!("{}: {}", word(&confirm.danger.level), confirm.reason);
    for reason in &confirm.danger.reasons {
        why.push_str("\n- ");
        why.push_str(reason);
    }
    if let Some(hook) = &confirm.changed_by {
        why.push_str(&format!("\n- the input was changed by the hook {hook}"));
    }
    why.extend(lapse(confirm.expires_at.as_deref()));
    why
}

/// Returns a line that says when a question lapses, in the time of this machine.
pub(super) fn lapse(expires_at: Option<&str>) -> Option<String> {
    let at: Timestamp = expires_at?.parse().ok()?;
    let at = at.to_zoned(TimeZone::system()).strftime("%H:%M:%S");
    Some(format!("\n\nRefused unless answered by {at}."))
}

/// Returns what an approval is for that reaches further than the call.
fn matter(confirm: &ToolConfirm) -> String {
    if let Some(host) = &confirm.host {
        return format!("connections to {host}");
    }
    let commands = confirm.commands.iter().map(|words| words.join(" "));
    let commands: Vec<String> = commands.map(|it| format!("`{it}`")).collect();
    let tool = confirm.tool_name.as_str();
    let whole = match (commands.is_empty(), tool) {
        (false, _) => commands.join(", "),
        (true, "bash" | "git") => format!("`{}`", tool_call::title(tool, &confirm.input)),
        (true, _) => format!("every call of {tool}"),
    };
    match whole.char_indices().nth(MAX_MATTER) {
        Some((at, _)) => format!("{}…", whole.get(..at).unwrap_or_default()),
        None => whole,
    }
}

/// Returns the parameters of `session/request_permission` for a call: one option of each kind. `shown` is what the call shows
/// already: what is sent here replaces it.
pub(super) fn of_call(session: &str, confirm: &ToolConfirm, shown: Vec<Value>) -> Value {
    let (tool, input) = (&confirm.tool_name, &confirm.input);
    let mut options = vec![option(ONCE, "Allow once", "allow_once")];
    options.extend(further(confirm).map(|reach| {
        let reach = match reach {
            Remember::Once | Remember::Conversation => "in this conversation",
            Remember::Session => "in this session",
            Remember::Project => "in this project",
            Remember::Always => "always",
        };
        let name = format!("Allow {} {reach}", matter(confirm));
        option(FURTHER, &name, "allow_always")
    }));
    options.push(option(DENY, "Deny", "reject_once"));
    let call = match &confirm.host {
        Some(host) => of_host(confirm, host),
        None => {
            let mut content = shown;
            content.push(text_content(&why(confirm)));
            json!({"toolCallId": confirm.tool_id, "title": tool_call::title(tool, input),
                "kind": tool_call::kind(tool, input), "status": "pending", "rawInput": input, "content": content})
        }
    };
    json!({"sessionId": session, "toolCall": call, "options": options})
}

/// Returns the parameters of `session/request_permission` for money.
pub(super) fn of_money(session: &str, confirm: &BudgetConfirm) -> Value {
    let first = confirm.choices.iter().find_map(|choice| choice.extend_usd);
    let more = first.unwrap_or(Money::ZERO);
    json!({
        "sessionId": session,
        "toolCall": of_cap(confirm),
        "options": [
            option(ONCE, &format!("Allow {more} more"), "allow_once"),
            option(FURTHER, "No cap any more", "allow_always"),
            option(DENY, "Stop", "reject_once"),
        ],
    })
}

/// Returns the answer to a request for input that the client cannot show.
pub(super) fn not_shown(id: &InputId) -> Command {
    Command::ChatToolInput(input(id, Err(Value::Null)))
}

/// Returns the parameters of `elicitation/create`.
pub(super) fn of_input(session: &str, asked: &ToolInputRequest) -> Value {
    let message = format!("{}: {}", asked.server, asked.message);
    match asked.mode {
        InputMode::Form => {
            json!({"mode": "form", "sessionId": session, "toolCallId": asked.tool_id,
            "message": message, "requestedSchema": asked.requested_schema})
        }
        InputMode::Url => json!({"mode": "url", "sessionId": session, "toolCallId": asked.tool_id,
            "message": message, "elicitationId": asked.request_id, "url": asked.url}),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{CreateElicitationRequest, RequestPermissionRequest};

    use super::*;

    fn confirm(more: &Value) -> ToolConfirm {
        let mut whole = json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "toolName": "bash",
            "input": {"command": "cargo publish"}, "reason": "commands are asked for",
            "danger": {"level": "dangerous", "reasons": ["publishes"]}});
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn selected(option: &str) -> Result<Value, Value> {
        Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}))
    }

    #[test]
    fn a_question_has_one_option_of_a_kind_and_says_the_danger() {
        let remember = json!({"remember": {"approval": ["conversation", "always"], "denial": []}});
        for (more, count) in [(json!({}), 2), (remember, 3)] {
            let asked = of_call("s", &confirm(&more), Vec::new());
            serde_json::from_value::<RequestPermissionRequest>(asked.clone()).unwrap();
            let options = asked["options"].as_array().unwrap();
            let mut kinds: Vec<_> = options
                .iter()
                .map(|it| it["kind"].as_str().unwrap())
                .collect();
            kinds.dedup();
            assert_eq!((kinds.len(), options.len()), (count, count));
            let text = asked["toolCall"]["content"][0]["content"]["text"]
                .as_str()
                .unwrap();
            assert!(
                text.contains("dangerous") && text.contains("publishes"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_question_says_what_a_further_yes_is_for_and_when_it_lapses() {
        let further = |more: Value| {
            let mut all = json!({"remember": {"approval": ["session"], "denial": []},
                "expiresAt": "2026-11-26T14:03:20.000Z"});
            let fields = all.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            let asked = of_call("s", &confirm(&all), Vec::new());
            let text = asked["toolCall"]["content"][0]["content"]["text"].clone();
            let text = text.as_str().unwrap().to_owned();
            // The hour is that of the zone.
            assert!(text.contains("\n\nRefused unless answered by "), "{text}");
            assert!(text.ends_with(":20."), "{text}");
            asked["options"][1]["name"].as_str().unwrap().to_owned()
        };
        for (more, expected) in [
            (
                json!({"commands": [["cargo", "publish"], ["ls"]]}),
                "Allow `cargo publish`, `ls` in this session",
            ),
            (json!({}), "Allow `cargo publish` in this session"),
            (
                json!({"host": "example.com"}),
                "Allow connections to example.com in this session",
            ),
            (
                json!({"toolName": "file_write", "input": {"path": "a"}}),
                "Allow every call of file_write in this session",
            ),
        ] {
            assert_eq!(further(more), expected);
        }
    }

    #[test]
    fn a_host_is_asked_for_beside_the_call_that_runs() {
        let host = of_call("s", &confirm(&json!({"host": "example.com"})), Vec::new());
        serde_json::from_value::<RequestPermissionRequest>(host.clone()).unwrap();
        let call = &host["toolCall"];
        assert_eq!(call["toolCallId"], "t1/host/example.com");
        assert_eq!(call["title"], "Connect to example.com");
        assert!(call.get("status").is_none() && call.get("rawInput").is_none());
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let confirm = confirm(&json!({"remember": {"approval": ["session"], "denial": []}}));
        let question = Question::Call(Box::new(confirm.clone()));
        for (outcome, approved, remember, reason) in [
            (selected(ONCE), true, Remember::Once, None),
            (selected(FURTHER), true, Remember::Session, None),
            (selected(DENY), false, Remember::Once, None),
            (selected("anything"), false, Remember::Once, None),
            (
                Ok(json!({"outcome": {"outcome": "cancelled"}})),
                false,
                Remember::Once,
                None,
            ),
            (
                Ok(json!({"outcome": "yes"})),
                false,
                Remember::Once,
                Some(NOT_ASKED),
            ),
            (
                Err(json!({"code": -1})),
                false,
                Remember::Once,
                Some(NOT_ASKED),
            ),
        ] {
            let expected = ToolApprove {
                remember,
                reason: reason.map(str::to_owned),
                ..ToolApprove::of(&confirm, approved)
            };
            assert_eq!(
                question.answered(outcome),
                Command::ChatToolApprove(expected)
            );
        }
    }

    #[test]
    fn money_and_input_are_asked_for_too() {
        let money = json!({"conversationId": "default", "messageId": "m1", "requestId": "c1", "scope": "session",
            "spentUsd": 1.0, "limitUsd": 1.0, "nextUsd": 0.1, "turn": 0, "choices": [{"extendUsd": 1.0}, {"unlimited": true}]});
        let asked = of_money("s", &serde_json::from_value(money).unwrap());
        serde_json::from_value::<RequestPermissionRequest>(asked).unwrap();
        let question = Question::Money(BudgetId::new("c1"));
        for (outcome, approved, unlimited) in [
            (selected(ONCE), true, false),
            (selected(FURTHER), true, true),
            (selected(DENY), false, false),
            (Err(Value::Null), false, false),
        ] {
            let Command::ChatBudgetApprove(answer) = question.answered(outcome) else {
                panic!("another request");
            };
            assert_eq!((answer.approved, answer.unlimited), (approved, unlimited));
        }
        for (mode, more) in [
            (
                "form",
                json!({"requestedSchema": {"type": "object", "properties": {}}}),
            ),
            ("url", json!({"url": "https://example.com/x"})),
        ] {
            let mut asked = json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "requestId": "i1",
                "server": "mail", "message": "who?", "mode": mode});
            asked
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let asked = of_input("s", &serde_json::from_value(asked).unwrap());
            serde_json::from_value::<CreateElicitationRequest>(asked).unwrap();
        }
        let question = Question::Input(InputId::new("i1"));
        let accept = Ok(json!({"action": "accept", "content": {"a": 1}}));
        let Command::ChatToolInput(answer) = question.answered(accept) else {
            panic!("another request");
        };
        assert_eq!(
            (answer.action, answer.content.unwrap()["a"].clone()),
            (InputAction::Accept, json!(1))
        );
    }
}

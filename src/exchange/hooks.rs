//! Where an exchange asks the operator's hooks, and what becomes of what they say.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Exchange;
use super::context::{Context, Setup};
use crate::config::HookPoint;
use crate::hooks::{Matter, Said};
use crate::message::{Message, Notice, Part, Severity};
use crate::protocol::event::Event;
use crate::protocol::word;

/// How often hooks may have the model go on that was about to end an exchange: one that is never content must not run for
/// ever.
const MAX_HELD: u32 = 3;

/// Asks the hooks of a point; `more` is what they are sent besides. `None` where it was cancelled meanwhile.
pub(super) async fn ask(
    context: &Context,
    setup: &Setup,
    (on, tool): (HookPoint, Option<&str>),
    more: impl FnOnce() -> Map<String, Value>,
    cancel: &CancellationToken,
) -> Option<Said> {
    let config = context.services.config();
    if !config.hooks.iter().any(|hook| hook.is_asked(on, tool)) {
        return Some(Said::default());
    }
    let workspace = &context.session.workspace;
    let mut body = Map::new();
    body.insert("hook".to_owned(), word(&on).into());
    body.insert("sessionId".to_owned(), json!(context.session.id));
    body.insert("conversationId".to_owned(), json!(setup.conversation_id));
    body.insert("messageId".to_owned(), json!(setup.message_id));
    body.append(&mut more());
    let matter = Matter {
        on,
        tool,
        body: Value::Object(body),
    };
    let hooks = &context.services.hooks;
    let said = hooks.ask(&config, workspace.exec(), matter, cancel).await?;
    for failure in &said.failures {
        tell(context, Severity::Warning, "hook_failed", failure);
    }
    Some(said)
}

/// Tells the session's client something about hooks, without secrets.
pub(super) fn tell(context: &Context, severity: Severity, code: &str, message: &str) {
    let message = context.services.redactor.redact(message).into_owned();
    context.events().emit(Event::SessionNotice(Notice {
        severity,
        code: code.to_owned(),
        message,
    }));
}

impl Exchange<'_> {
    /// Returns whether any hook is asked at a point.
    pub(super) fn has_hooks(&self, on: HookPoint) -> bool {
        let config = self.context.services.config();
        config.hooks.iter().any(|hook| hook.on == on)
    }

    /// Asks whether the model may end the exchange with this answer. Where it may not, it reads why, as a message of the user's
    /// side; returns whether it goes on.
    pub(super) async fn is_held(&mut self, answer: &str) -> bool {
        if self.progress.held >= MAX_HELD {
            return false;
        }
        let more = || Map::from_iter([("text".to_owned(), answer.into())]);
        let point = (HookPoint::Stop, None);
        let Some(said) = ask(self.context, self.setup, point, more, self.cancel).await else {
            return false;
        };
        for note in said.notes {
            tell(self.context, Severity::Info, "hook_note", &note);
        }
        let Some(refused) = said.refused else {
            return false;
        };
        self.progress.held += 1;
        let redactor = &self.context.services.redactor;
        let text = format!("[not done yet: {refused}]");
        let text = redactor.redact(&text).into_owned();
        self.transcript
            .record(Message::User(vec![Part::text(text)]));
        true
    }
}

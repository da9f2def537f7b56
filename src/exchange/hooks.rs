//! Where an exchange asks the operator's hooks, and what becomes of what they say.

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Exchange;
use super::context::{Context, Setup};
use crate::config::HookPoint;
use crate::hooks::{Matter, Said, notice};
use crate::message::{Message, Part, Severity};
use crate::protocol::event::Event;

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
    let tell = |notice| context.events().emit(Event::SessionNotice(notice));
    let matter = Matter {
        on,
        tool,
        session: &context.session.id,
        conversation: &setup.conversation_id,
        exchange: Some(&setup.message_id),
        exec: context.session.workspace.exec(),
        places: context.services.quota.hooks(),
        tell: &tell,
    };
    let config = context.services.config();
    let hooks = &context.services.hooks;
    hooks.ask(&config, matter, more, cancel).await
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
            self.emit(Event::SessionNotice(notice(
                Severity::Info,
                "hook_note",
                note,
            )));
        }
        let Some(refused) = said.refused else {
            return false;
        };
        self.progress.held += 1;
        let message = format!("the model goes on, its answer was not enough: {refused}");
        self.emit(Event::SessionNotice(notice(
            Severity::Info,
            "hook_refused",
            message,
        )));
        self.transcript
            .record(Message::User(vec![Part::text(refused.held())]));
        true
    }
}

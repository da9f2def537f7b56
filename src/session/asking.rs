//! Asks the operator's hooks about what a user says, before anything is kept of it.

use std::sync::Arc;

use serde_json::Map;
use tokio_util::sync::CancellationToken;

use super::reading::Unfinished;
use crate::config::{Config, HookPoint};
use crate::exchange::context::Services;
use crate::exchange::transcript::Events;
use crate::hooks::Matter;
use crate::message::{Part, SessionId};
use crate::protocol::SessionCode;
use crate::protocol::content::Content;
use crate::protocol::event::{Event, SessionError};
use crate::tool::workspace::Workspace;

/// Asks hooks about what a user says, beside the session.
pub(super) struct Asker {
    pub(super) services: Services,
    pub(super) workspace: Arc<Workspace>,
    pub(super) session: SessionId,
    pub(super) events: Events,
}

impl Asker {
    /// Asks about the words of a send, or of an edit; adds what hooks have to say of it.
    pub(super) async fn ask(&self, unfinished: &mut Unfinished) -> Result<(), SessionError> {
        let conversation = unfinished.conversation().clone();
        let (content, system) = match unfinished {
            Unfinished::Send(send, _) => (Some(&mut send.content), send.system_prompt.clone()),
            Unfinished::Edit(edit) => (edit.content.as_mut(), None),
        };
        let Some(content) = content else {
            return Ok(());
        };
        let tell = |notice| self.events.emit(Event::SessionNotice(notice));
        let matter = Matter {
            on: HookPoint::BeforeSend,
            tool: None,
            session: &self.session,
            conversation: &conversation,
            exchange: None,
            exec: self.workspace.exec(),
            places: self.services.quota.hooks(),
            tell: &tell,
        };
        let more = || {
            let text = ("text".to_owned(), text_of(content).into());
            let system = system.map(|system| ("systemPrompt".to_owned(), system.into()));
            Map::from_iter(std::iter::once(text).chain(system))
        };
        // Whoever gives it up drops the task.
        let cancel = CancellationToken::new();
        let (hooks, config) = (&self.services.hooks, self.services.config());
        let said = hooks.ask(&config, matter, more, &cancel).await;
        let said = said.unwrap_or_default();
        if let Some(refused) = said.refused {
            let problem = format!("nothing of this was taken: {refused}");
            return Err(SessionError::new(SessionCode::Forbidden, problem));
        }
        if !said.notes.is_empty() {
            let mut parts = std::mem::replace(content, Content::Parts(Vec::new())).into_parts();
            parts.extend(said.notes.into_iter().map(Part::text));
            *content = Content::Parts(parts);
        }
        Ok(())
    }
}

/// Returns whether hooks are asked about what a user says.
pub(super) fn asks(config: &Config) -> bool {
    let mut hooks = config.hooks.iter();
    hooks.any(|hook| hook.on == HookPoint::BeforeSend)
}

/// Returns the words of what a user says, those of documents too.
fn text_of(content: &Content) -> String {
    let parts = match content {
        Content::Text(text) => return text.clone(),
        Content::Parts(parts) => parts,
    };
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Document(document) => document.text.as_deref(),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

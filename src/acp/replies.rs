//! The daemon's answers to what a session of the protocol asked of it.

use serde_json::json;

use super::options::Choice;
use super::render::Renderer;
use super::rpc::{Id, RpcError};
use super::session::AcpSession;
use crate::message::SessionId;
use crate::protocol::answer::{CompactState, McpState, RevertOutcome};
use crate::protocol::command::{Command, Configure, FilesRevert, McpName, SessionRename};
use crate::protocol::event::Event;

/// What an answer is for.
#[derive(Debug)]
pub(super) enum Pending {
    /// The turn's send.
    Prompt,
    /// A send into the turn that runs.
    Steer(Id),
    /// A choice of the client's; with `whole` the answer has all options.
    Choice {
        id: Id,
        whole: bool,
    },
    /// A choice by a slash command.
    Told,
    Compact,
    /// What the last turn changed, to be undone.
    UndoWhat,
    Undo,
    Title(Id, String),
    /// How MCP servers stand for which a prompt waits.
    Servers,
    /// Nothing waits for it.
    Quiet,
}

impl AcpSession {
    pub(super) async fn replied(&mut self, pending: Pending, event: Event) {
        match (pending, event) {
            (Pending::Prompt, Event::ChatSendResult(sent)) => self.began(sent.message_id),
            (Pending::Prompt, Event::ChatError(error)) => {
                let error = RpcError::internal(error.message, error.hint.as_deref());
                self.fail_turn(error).await;
            }
            (Pending::Prompt, Event::SessionError(error)) => self.fail_turn(error.into()).await,
            // It is answered with the turn.
            (Pending::Steer(_), Event::ChatSendResult(_)) => {}
            (Pending::Choice { id, whole }, Event::SessionConfigureResult(in_force)) => {
                if let Some(options) = &mut self.options {
                    options.in_force = in_force;
                }
                self.chosen(&id, whole).await;
            }
            (Pending::Told, Event::SessionConfigureResult(in_force)) => {
                let text = format!(
                    "{} {}, {:?}",
                    in_force.provider, in_force.model, in_force.trust_level
                );
                if let Some(options) = &mut self.options {
                    options.in_force = in_force;
                }
                self.tell_options().await;
                self.say_and_finish(&text).await;
            }
            (Pending::Compact, Event::ChatCompactResult(it)) => {
                if it.state == CompactState::NothingToDo {
                    self.say_and_finish("There is nothing to leave out.").await;
                }
            }
            (Pending::UndoWhat, Event::FilesChangesResult(changes)) => {
                match changes.changes.into_iter().next() {
                    Some(last) => {
                        let revert = FilesRevert {
                            message_id: Some(last.message_id),
                            tool_id: None,
                        };
                        self.send(Command::FilesRevert(revert), Pending::Undo).await;
                    }
                    None => {
                        self.say_and_finish("No turn of this session has changed a file.")
                            .await;
                    }
                }
            }
            (Pending::Undo, Event::FilesRevertResult(reverted)) => {
                let lines = reverted.files.iter().map(|file| {
                    let what = match file.outcome {
                        RevertOutcome::Reverted => "is as it was",
                        RevertOutcome::Partly => "is put back in part",
                        RevertOutcome::Left => "was left",
                    };
                    let why = file.message.as_deref().map(|why| format!(": {why}"));
                    format!("- `{}` {what}{}\n", file.path, why.unwrap_or_default())
                });
                let text: String = lines.collect();
                self.say_and_finish(&text).await;
            }
            (Pending::Title(id, title), Event::SessionRenameResult(_)) => {
                self.out.answer(&id, Ok(json!({ "title": title }))).await;
            }
            (Pending::Servers, Event::McpListResult(list)) => {
                let is_starting = |name: &String| {
                    let server = list.servers.iter().find(|server| server.name == *name);
                    server.is_some_and(|server| server.state == McpState::Starting)
                };
                for server in &list.servers {
                    if let (true, Some(why)) = (self.starting.contains(&server.name), &server.error)
                    {
                        self.update(Renderer::say(&format!(
                            "*MCP server `{}`: {why}*\n\n",
                            server.name
                        )))
                        .await;
                    }
                }
                self.starting.retain(is_starting);
                if self.starting.is_empty() {
                    self.begin().await;
                }
            }
            (Pending::Quiet, Event::ModelListResult(list)) => {
                if let Some(options) = &mut self.options {
                    options.models = list.models;
                }
                self.tell_options().await;
            }
            (Pending::Quiet | Pending::Servers, _) => {}
            (Pending::Steer(id) | Pending::Choice { id, .. } | Pending::Title(id, _), event) => {
                self.out.answer(&id, Err(refused(event))).await;
            }
            (
                Pending::Told | Pending::Compact | Pending::UndoWhat | Pending::Undo,
                Event::SessionError(error),
            ) => {
                self.say_and_finish(&error.message).await;
            }
            (_, event) => self.fail_turn(refused(event)).await,
        }
    }

    pub(super) async fn set_mode(&mut self, id: Id, mode: &str) {
        let choice = self.options.as_ref().map(|options| options.trust(mode));
        self.choose(id, choice, false).await;
    }

    pub(super) async fn set_option(&mut self, id: Id, option: &str, value: &serde_json::Value) {
        let choice = self
            .options
            .as_ref()
            .map(|options| options.choose(option, value));
        self.choose(id, choice, true).await;
    }

    async fn choose(&mut self, id: Id, choice: Option<Result<Choice, RpcError>>, whole: bool) {
        match choice {
            Some(Ok(Choice::Configure(configure))) => {
                let configure: Configure = *configure;
                let pending = Pending::Choice { id, whole };
                self.send(Command::SessionConfigure(configure), pending)
                    .await;
            }
            Some(Ok(Choice::Effort(effort))) => {
                if let Some(options) = &mut self.options {
                    options.effort = effort;
                }
                self.chosen(&id, whole).await;
            }
            Some(Err(error)) => self.out.answer(&id, Err(error)).await,
            None => {
                let error = RpcError::internal("the session is not there yet", None);
                self.out.answer(&id, Err(error)).await;
            }
        }
    }

    async fn chosen(&self, id: &Id, whole: bool) {
        let Some(options) = &self.options else {
            return;
        };
        let result = match whole {
            true => json!({"configOptions": options.config()}),
            false => json!({}),
        };
        self.out.answer(id, Ok(result)).await;
        // A client that shows both has the other one to change.
        let other = match whole {
            true => {
                json!({"sessionUpdate": "current_mode_update", "currentModeId": options.mode()})
            }
            false => {
                json!({"sessionUpdate": "config_option_update", "configOptions": options.config()})
            }
        };
        self.update(other).await;
    }

    /// Tells the client which options are in force, and which there are.
    async fn tell_options(&self) {
        let Some(options) = &self.options else {
            return;
        };
        self.update(
            json!({"sessionUpdate": "config_option_update", "configOptions": options.config()}),
        )
        .await;
        self.update(
            json!({"sessionUpdate": "current_mode_update", "currentModeId": options.mode()}),
        )
        .await;
    }

    pub(super) async fn set_title(&mut self, id: Id, title: String) {
        let rename = SessionRename {
            session_id: Some(SessionId::new(self.id())),
            title: title.clone(),
        };
        self.send(Command::SessionRename(rename), Pending::Title(id, title))
            .await;
    }

    /// Ends the servers that the client named.
    pub(super) async fn end_servers(&mut self) {
        for name in std::mem::take(&mut self.servers) {
            self.send_quietly(Command::McpRemove(McpName { name }))
                .await;
        }
    }
}

/// Returns why something was not done.
fn refused(event: Event) -> RpcError {
    match event {
        Event::SessionError(error) => error.into(),
        Event::ChatError(error) => RpcError::internal(error.message, error.hint.as_deref()),
        _ => RpcError::internal("the daemon gave another answer than it was asked for", None),
    }
}

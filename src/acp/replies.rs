//! The daemon's answers to what a session of the protocol asked of it.

use serde_json::json;

use super::options::{Choice, Told};
use super::rpc::{Id, RpcError};
use super::session::AcpSession;
use crate::message::SessionId;
use crate::protocol::SessionCode;
use crate::protocol::answer::{CompactState, RevertOutcome};
use crate::protocol::command::{ChatSend, Command, Configure, FilesRevert, SessionRename};
use crate::protocol::event::{Event, SessionError};

const LOST: &str =
    "the answer was not read in time and is lost; load the session to see how it stands";

/// What an answer is for.
#[derive(Debug)]
pub(super) enum Pending {
    /// A prompt's send.
    Prompt(Id),
    /// A choice of the client's; with `whole` the answer has all options.
    Choice {
        id: Id,
        whole: bool,
    },
    /// A choice by a slash command.
    Told(Told),
    Compact,
    /// What the last turn changed, to be undone.
    UndoWhat,
    Undo,
    /// The prompts of MCP servers.
    Prompts,
    /// What a prompt of an MCP server says, and what is sent with it.
    Using(Id, Box<ChatSend>),
    Title(Id, String),
    /// What has no answer when this is answered: the answers are lost.
    AfterGap(Vec<u64>),
    /// Nothing waits for it.
    Quiet,
}

impl AcpSession {
    pub(super) async fn replied(&mut self, pending: Pending, event: Event) {
        match (pending, event) {
            (Pending::Prompt(id), Event::ChatSendResult(sent)) => self.sent(&id, sent).await,
            (Pending::Prompt(id), event) => self.refuse(&id, refused(event)).await,
            (Pending::Choice { id, whole }, Event::SessionConfigureResult(in_force)) => {
                if let Some(options) = &mut self.options {
                    options.in_force = in_force;
                }
                self.chosen(&id, whole).await;
            }
            (Pending::Told(told), Event::SessionConfigureResult(in_force)) => {
                let text = self.options.as_mut().map(|options| {
                    options.in_force = in_force;
                    options.told(told)
                });
                self.tell_options().await;
                self.say_and_finish(&text.unwrap_or_default()).await;
            }
            (Pending::Compact, Event::ChatCompactResult(it)) => match it.state {
                CompactState::NothingToDo => {
                    self.say_and_finish("There is nothing to leave out.").await;
                }
                CompactState::Refused => self.say_and_finish("A hook refused it.").await,
                CompactState::Started | CompactState::Queued => {}
            },
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
            (Pending::Prompts, answer) => self.prompts_listed(answer).await,
            (Pending::Using(id, send), answer) => self.use_prompt(id, send, answer).await,
            (Pending::Title(id, title), Event::SessionRenameResult(_)) => {
                self.out.answer(&id, Ok(json!({ "title": title }))).await;
            }
            (Pending::Quiet, Event::ModelListResult(list)) => {
                if let Some(options) = &mut self.options {
                    options.models = list.models;
                }
                self.tell_options().await;
            }
            (Pending::AfterGap(unanswered), _) => {
                for number in unanswered {
                    let lost = SessionError::new(SessionCode::Internal, LOST);
                    if let Some(pending) = self.pending.remove(&number) {
                        Box::pin(self.replied(pending, Event::SessionError(lost))).await;
                    }
                }
            }
            (Pending::Quiet, _) => {}
            (Pending::Choice { id, .. } | Pending::Title(id, _), event) => {
                self.out.answer(&id, Err(refused(event))).await;
            }
            (
                Pending::Told(_) | Pending::Compact | Pending::UndoWhat | Pending::Undo,
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
        // As the daemon keeps it.
        let title = title.trim().to_owned();
        let rename = SessionRename {
            session_id: Some(SessionId::new(self.id())),
            title: title.clone(),
        };
        self.send(Command::SessionRename(rename), Pending::Title(id, title))
            .await;
    }
}

/// Returns why something was not done.
pub(super) fn refused(event: Event) -> RpcError {
    match event {
        Event::SessionError(error) => error.into(),
        Event::ChatError(error) => RpcError::internal(error.message, error.hint.as_deref()),
        _ => RpcError::internal("the daemon gave another answer than it was asked for", None),
    }
}

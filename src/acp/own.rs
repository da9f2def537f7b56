//! What this agent does itself: slash commands.

use super::open::CONVERSATION;
use super::options::{Choice, Options, Told, model};
use super::replies::Pending;
use super::session::AcpSession;
use super::slash::Slash;
use super::turn::Work;
use crate::message::ConversationId;
use crate::protocol::command::{ChatCompact, Command, FilesChanges, WhenBusy};

impl AcpSession {
    pub(super) async fn slash(&mut self, slash: Slash) {
        match slash {
            Slash::Compact(instructions) => {
                if let Some(turn) = &mut self.turn {
                    turn.work = Work::Compaction;
                }
                let compact = ChatCompact {
                    conversation_id: ConversationId::new(CONVERSATION),
                    instructions: Some(instructions).filter(|it| !it.is_empty()),
                    mode: None,
                    when_busy: WhenBusy::Reject,
                };
                self.send(Command::ChatCompact(compact), Pending::Compact)
                    .await;
            }
            Slash::Undo => {
                let last = FilesChanges {
                    conversation_id: Some(ConversationId::new(CONVERSATION)),
                    limit: Some(1),
                    ..FilesChanges::default()
                };
                self.send(Command::FilesChanges(last), Pending::UndoWhat)
                    .await;
            }
            Slash::Cost => {
                let text = format!("This session has cost {}.", self.renderer.cost());
                self.say_and_finish(&text).await;
            }
            Slash::Model(name) if name.is_empty() => {
                let model = self.options.as_ref().map(Options::model);
                let text = format!(
                    "The model is {}. Choose another one with `/model provider/model`.",
                    model.unwrap_or_default()
                );
                self.say_and_finish(&text).await;
            }
            Slash::Model(name) => {
                let configure = Command::SessionConfigure(model(&name));
                self.send(configure, Pending::Told(Told::Model)).await;
            }
            Slash::Trust(level) => match self.options.as_ref().map(|options| options.trust(&level))
            {
                Some(Ok(Choice::Configure(configure))) => {
                    let configure = Command::SessionConfigure(*configure);
                    self.send(configure, Pending::Told(Told::Trust)).await;
                }
                _ => {
                    let text = "Trust is supervised, guided or autonomous: `/trust guided`.";
                    self.say_and_finish(text).await;
                }
            },
            // Prompts, and no commands of this agent's.
            Slash::Workflow { .. } | Slash::Prompt(_) => {}
        }
    }
}

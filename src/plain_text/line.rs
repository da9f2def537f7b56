//! What a line typed at the prompt means. Pure.

use crate::message::{ConversationId, TrustLevel};
use crate::protocol::Command;
use crate::protocol::command::{ChatHistory, Configure, Empty, ModelList};

/// What `/help` says of the commands that both have.
pub(crate) const COMMANDS: &str = "\
/model [ID]       use a model, or list those there are
/provider [NAME]  use a provider instance, or list those there are
/trust LEVEL      supervised, guided or autonomous
/history          what the daemon remembers of this conversation";

/// What a typed line means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// Nothing.
    Empty,
    /// Something to say to the model.
    Say(String),
    /// A request to the daemon.
    Ask(Command),
    /// Show what can be typed.
    Help,
    /// End.
    Quit,
    /// It means nothing, for the reason given.
    Wrong(String),
}

impl Line {
    /// Reads a line; only what begins with a slash is no message.
    pub(crate) fn read(line: &str, conversation: &ConversationId) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return match line.is_empty() {
                true => Self::Empty,
                false => Self::Say(line.to_owned()),
            };
        };
        let (word, argument) = match command.split_once(char::is_whitespace) {
            Some((word, argument)) => (word, argument.trim()),
            None => (command, ""),
        };
        match (word, argument) {
            ("help", _) => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            ("history", "") => Self::Ask(Command::ChatHistory(ChatHistory::newest(
                conversation.clone(),
            ))),
            ("model", "") => Self::Ask(Command::ModelList(ModelList::default())),
            ("model", id) => configure(Configure {
                model: Some(id.to_owned()),
                ..Configure::default()
            }),
            ("provider", "") => Self::Ask(Command::ProviderList(Empty {})),
            ("provider", name) => configure(Configure {
                provider: Some(name.to_owned()),
                ..Configure::default()
            }),
            ("trust", level) => trust(level),
            (word, _) => Self::Wrong(format!("there is no command /{word}; /help lists them")),
        }
    }
}

fn configure(wanted: Configure) -> Line {
    Line::Ask(Command::SessionConfigure(wanted))
}

fn trust(level: &str) -> Line {
    let level = match level {
        "supervised" => TrustLevel::Supervised,
        "guided" => TrustLevel::Guided,
        "autonomous" => TrustLevel::Autonomous,
        _ => return Line::Wrong("/trust takes supervised, guided or autonomous".to_owned()),
    };
    configure(Configure {
        trust_level: Some(level),
        ..Configure::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let here = ConversationId::new("default");
        let wrong = |text: &str| Line::Wrong(text.to_owned());
        let cases = [
            ("", Line::Empty),
            ("  \t", Line::Empty),
            (" hi there ", Line::Say("hi there".to_owned())),
            ("/quit", Line::Quit),
            ("/help", Line::Help),
            (
                "/history",
                Line::Ask(Command::ChatHistory(ChatHistory::newest(here.clone()))),
            ),
            (
                "/model",
                Line::Ask(Command::ModelList(ModelList::default())),
            ),
            (
                "/model  gpt-5 ",
                configure(Configure {
                    model: Some("gpt-5".to_owned()),
                    ..Configure::default()
                }),
            ),
            (
                "/provider ollama",
                configure(Configure {
                    provider: Some("ollama".to_owned()),
                    ..Configure::default()
                }),
            ),
            (
                "/trust autonomous",
                configure(Configure {
                    trust_level: Some(TrustLevel::Autonomous),
                    ..Configure::default()
                }),
            ),
            (
                "/trust",
                wrong("/trust takes supervised, guided or autonomous"),
            ),
            (
                "/quti",
                wrong("there is no command /quti; /help lists them"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(Line::read(line, &here), expected, "{line:?}");
        }
    }
}

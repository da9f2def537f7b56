//! What a line typed at the prompt means. Pure.

use serde_json::Value;

use crate::message::ConversationId;
use crate::permission::Remember;
use crate::protocol::Command;
use crate::protocol::command::{
    ApprovalList, ApprovalRevoke, ChatCompact, ChatHistory, ChatSend, Configure, Conversation,
    Empty, Expose, McpAuth, McpSignOut, ModelList, WhenBusy,
};

/// What `/help` says of the commands that both have.
pub(crate) const COMMANDS: &str = "\
/model [ID]       use a model, or list those there are
/provider [NAME]  use a provider instance, or list those there are
/trust LEVEL      supervised, guided or autonomous
/history          what the daemon remembers of this conversation
/context          what the tokens of the next request are for
/compact [WORDS]  have the model see a summary of it; the words are for whoever writes it
/skills           the skills that the model may read
/mcp              the MCP servers, and how they are
/sign-in SERVER   where to sign in at an MCP server; with the address that the page led to behind it, the end of that
/sign-out SERVER  forget the sign-in
/expose PORT      have a port of a command in the background lead to an address of this machine, to look at it
/approvals        answers that are remembered, each with its id
/revoke ID        forget one, or all of a scope: conversation, session, project, always";

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    Empty,
    /// A request to the daemon, of most lines to send them to the model.
    Ask(Command),
    Help,
    Quit,
    /// It means nothing, for the reason given.
    Wrong(String),
}

impl Line {
    /// Reads a line; only what begins with a slash is no message.
    pub(crate) fn read(line: &str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return match line.is_empty() {
                true => Self::Empty,
                false => Self::Ask(send(line)),
            };
        };
        let (word, argument) = first_word(command);
        match (word, argument) {
            ("help", _) => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            ("history", "") => Self::Ask(Command::ChatHistory(ChatHistory::newest(conversation()))),
            ("context", "") => Self::Ask(Command::ChatContext(Conversation {
                conversation_id: conversation(),
            })),
            ("skills", "") => Self::Ask(Command::SkillList(Empty {})),
            ("mcp", "") => Self::Ask(Command::McpList(Empty {})),
            ("compact", words) => Self::Ask(Command::ChatCompact(compact(words))),
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
            ("trust", level) => match serde_json::from_value(Value::from(level)) {
                Ok(level) => configure(Configure {
                    trust_level: Some(level),
                    ..Configure::default()
                }),
                Err(_) => Self::Wrong("/trust takes supervised, guided or autonomous".to_owned()),
            },
            ("sign-in" | "sign-out", "") => {
                Self::Wrong(format!("/{word} takes the name of an MCP server"))
            }
            ("sign-in", argument) => Self::Ask(Command::McpAuth(sign_in(argument))),
            ("sign-out", server) => Self::Ask(Command::McpSignOut(McpSignOut {
                server: server.to_owned(),
            })),
            ("expose", port) => match port.parse() {
                Ok(port) => Self::Ask(Command::ToolExpose(Expose {
                    conversation_id: conversation(),
                    port,
                    close: false,
                })),
                Err(_) => Self::Wrong(
                    "/expose takes a port on which a command in the background listens".to_owned(),
                ),
            },
            ("approvals", "") => Self::Ask(Command::ApprovalList(ApprovalList::default())),
            ("revoke", "") => {
                Self::Wrong("/revoke takes an id of /approvals, or a scope".to_owned())
            }
            ("revoke", which) => Self::Ask(Command::ApprovalRevoke(revoked(which))),
            ("history" | "context" | "skills" | "mcp" | "approvals" | "quit" | "exit", _) => {
                Self::Wrong(format!("/{word} takes nothing behind it"))
            }
            (word, _) => Self::Wrong(format!("there is no command /{word}; /help lists them")),
        }
    }
}

fn configure(wanted: Configure) -> Line {
    Line::Ask(Command::SessionConfigure(wanted))
}

/// Reads a server's name, and behind it what its page answered: an address, or the code alone.
fn sign_in(argument: &str) -> McpAuth {
    let (server, answer) = first_word(argument);
    let is_address = answer.contains(['?', '&']);
    let answer = |wanted: bool| (wanted && !answer.is_empty()).then(|| answer.to_owned());
    McpAuth {
        server: server.to_owned(),
        url: answer(is_address),
        code: answer(!is_address),
    }
}

fn compact(words: &str) -> ChatCompact {
    ChatCompact {
        conversation_id: conversation(),
        instructions: (!words.is_empty()).then(|| words.to_owned()),
        mode: None,
        when_busy: WhenBusy::Queue,
    }
}

/// Reads an answer's id, or how far those reach that are meant.
fn revoked(which: &str) -> ApprovalRevoke {
    let scope = serde_json::from_value::<Remember>(Value::from(which)).ok();
    let scope = scope.filter(|scope| Remember::FURTHER.contains(scope));
    ApprovalRevoke {
        rule_id: scope.is_none().then(|| which.to_owned()),
        scope,
        conversation_id: None,
    }
}

/// Returns the request to send a text to the model.
pub(crate) fn send(text: &str) -> Command {
    Command::ChatSend(Box::new(ChatSend::text(conversation(), text.to_owned())))
}

/// Returns the conversation that everything is said in.
pub(crate) fn conversation() -> ConversationId {
    ConversationId::new("default")
}

/// Splits a line into its first word and what comes after it.
pub(crate) fn first_word(line: &str) -> (&str, &str) {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (word, rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TrustLevel;

    #[test]
    fn lines_are_messages_or_commands() {
        let wrong = |text: &str| Line::Wrong(text.to_owned());
        let cases = [
            ("", Line::Empty),
            ("  \t", Line::Empty),
            (" hi there ", Line::Ask(send("hi there"))),
            ("/quit", Line::Quit),
            ("/mcp docs", wrong("/mcp takes nothing behind it")),
            (
                "/compact  mind the tests",
                Line::Ask(Command::ChatCompact(compact("mind the tests"))),
            ),
            ("/help", Line::Help),
            (
                "/history",
                Line::Ask(Command::ChatHistory(ChatHistory::newest(conversation()))),
            ),
            (
                "/context",
                Line::Ask(Command::ChatContext(Conversation {
                    conversation_id: conversation(),
                })),
            ),
            ("/skills", Line::Ask(Command::SkillList(Empty {}))),
            ("/mcp", Line::Ask(Command::McpList(Empty {}))),
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
                "/sign-in docs",
                Line::Ask(Command::McpAuth(McpAuth {
                    server: "docs".to_owned(),
                    ..McpAuth::default()
                })),
            ),
            (
                "/sign-in docs  http://127.0.0.1:1/oauth/callback?code=c&state=s",
                Line::Ask(Command::McpAuth(McpAuth {
                    server: "docs".to_owned(),
                    url: Some("http://127.0.0.1:1/oauth/callback?code=c&state=s".to_owned()),
                    code: None,
                })),
            ),
            (
                "/sign-in docs c0de",
                Line::Ask(Command::McpAuth(McpAuth {
                    server: "docs".to_owned(),
                    url: None,
                    code: Some("c0de".to_owned()),
                })),
            ),
            (
                "/sign-out docs",
                Line::Ask(Command::McpSignOut(McpSignOut {
                    server: "docs".to_owned(),
                })),
            ),
            (
                "/sign-in",
                wrong("/sign-in takes the name of an MCP server"),
            ),
            (
                "/expose 5173",
                Line::Ask(Command::ToolExpose(Expose {
                    conversation_id: conversation(),
                    port: 5173.try_into().unwrap(),
                    close: false,
                })),
            ),
            (
                "/expose 0",
                wrong("/expose takes a port on which a command in the background listens"),
            ),
            (
                "/expose",
                wrong("/expose takes a port on which a command in the background listens"),
            ),
            (
                "/approvals",
                Line::Ask(Command::ApprovalList(ApprovalList::default())),
            ),
            (
                "/revoke a1b2",
                Line::Ask(Command::ApprovalRevoke(ApprovalRevoke {
                    rule_id: Some("a1b2".to_owned()),
                    ..ApprovalRevoke::default()
                })),
            ),
            (
                "/revoke session",
                Line::Ask(Command::ApprovalRevoke(ApprovalRevoke {
                    scope: Some(Remember::Session),
                    ..ApprovalRevoke::default()
                })),
            ),
            (
                "/revoke",
                wrong("/revoke takes an id of /approvals, or a scope"),
            ),
            (
                "/quti",
                wrong("there is no command /quti; /help lists them"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(Line::read(line), expected, "{line:?}");
        }
    }
}

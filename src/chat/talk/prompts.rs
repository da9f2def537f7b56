//! Prompts of MCP servers, which are commands: `/SERVER:PROMPT` and its arguments. Pure.

use serde_json::Map;

use super::Talk;
use crate::message::Part;
use crate::plain_text::line::{conversation, first_word};
use crate::plain_text::style::Style;
use crate::plain_text::text::one_line;
use crate::protocol::Command;
use crate::protocol::command::ChatSend;
use crate::protocol::content::Content;
use crate::protocol::mcp::{McpListPrompts, McpPromptContent, McpUsePrompt};

/// The most prompts that are listed: the most of one answer.
const MAX_LISTED: usize = 200;

/// Characters that are shown of what a prompt says.
const SHOWN: usize = 200;

/// Returns the request that a line is about prompts; `None` of another line.
pub(super) fn wanted(line: &str) -> Option<Command> {
    let line = line.trim();
    let (word, rest) = first_word(line.strip_prefix('/')?);
    if word == "prompts" && rest.is_empty() {
        return Some(Command::McpListPrompts(McpListPrompts {
            limit: Some(MAX_LISTED),
            ..McpListPrompts::default()
        }));
    }
    let (server, prompt) = word.split_once(':')?;
    let is_one = !server.is_empty() && !prompt.is_empty() && !word.contains('/');
    is_one.then(|| {
        Command::McpUsePrompt(McpUsePrompt {
            command: word.to_owned(),
            line: rest.to_owned(),
            arguments: Map::new(),
        })
    })
}

impl Talk {
    /// Says to the model what a prompt says, and shows the beginning of it.
    pub(super) fn prompt_said(&mut self, said: &McpPromptContent) {
        let texts = said.content.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } | Part::Document(_) => None,
        });
        let text = texts.collect::<Vec<_>>().join(" ");
        let shown = format!("{}: {}", said.server, one_line(&text, SHOWN));
        self.say(Style::Dim, shown);
        let send = ChatSend {
            content: Content::Parts(said.content.clone()),
            ..ChatSend::text(conversation(), String::new())
        };
        self.wait_for(Command::ChatSend(Box::new(send)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_colon_behind_the_slash_is_a_prompt() {
        let Some(Command::McpUsePrompt(used)) = wanted(" /docs:review src/a.rs  strict ") else {
            panic!("a prompt");
        };
        assert_eq!(used.command, "docs:review");
        assert_eq!(used.line, "src/a.rs  strict");
        assert!(matches!(
            wanted("/prompts"),
            Some(Command::McpListPrompts(_))
        ));
        for line in [
            "/help",
            "/usr/bin:x",
            "/:a",
            "/a:",
            "a:b",
            "say a:b",
            "/prompts x",
        ] {
            assert_eq!(wanted(line), None, "{line}");
        }
    }
}

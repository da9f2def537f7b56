//! What a prompt that begins with a slash asks of this agent itself. Pure.

use serde_json::{Map, Value, json};

use crate::protocol::mcp::{McpPrompt, McpUsePrompt};

/// A command in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    Compact(String),
    Undo,
    Model(String),
    Trust(String),
    Cost,
    /// A prompt in a workflow.
    Workflow {
        name: String,
        prompt: String,
    },
    /// What an MCP server has the user say.
    Prompt(McpUsePrompt),
}

const COMMANDS: [(&str, &str, &str); 5] = [
    (
        "compact",
        "Make what the model sees of this conversation shorter",
        "what to keep in mind",
    ),
    ("undo", "Undo what the last turn did to files", ""),
    ("model", "Choose a model", "provider/model"),
    (
        "trust",
        "Choose how much is done without asking",
        "supervised, guided or autonomous",
    ),
    ("cost", "Say what this session has cost", ""),
];

/// Returns the commands that a client may offer; workflows and prompts of MCP servers are commands, too.
pub(super) fn available(workflows: &[String], prompts: &[McpPrompt]) -> Value {
    let command = |name: &str, description: &str, hint: &str| match hint {
        "" => json!({"name": name, "description": description}),
        hint => json!({"name": name, "description": description, "input": {"hint": hint}}),
    };
    let own = COMMANDS
        .iter()
        .map(|(name, description, hint)| command(name, description, hint));
    let workflows = workflows.iter().filter(|name| !is_own(name));
    let workflows = workflows.map(|name| command(name, "A prompt in this workflow", "prompt"));
    let prompts = prompts.iter().map(|prompt| {
        let about = prompt.description.as_ref().or(prompt.title.as_ref());
        let about = about.map_or("A prompt", String::as_str);
        let about = format!("{about} (of the MCP server {})", prompt.server);
        let names = prompt.arguments.iter().map(|it| it.name.as_str());
        let hint = names.collect::<Vec<_>>().join(" ");
        command(&prompt.command, &about, &hint)
    });
    Value::Array(own.chain(workflows).chain(prompts).collect())
}

fn is_own(name: &str) -> bool {
    COMMANDS.iter().any(|(own, ..)| *own == name)
}

/// Reads the text of a prompt; `None` where it is one for the model, as an unknown word behind the slash is.
pub(super) fn read(text: &str, workflows: &[String], prompts: &[McpPrompt]) -> Option<Slash> {
    let line = text.trim_start().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim().to_owned();
    Some(match name {
        "compact" => Slash::Compact(rest),
        "undo" => Slash::Undo,
        "model" => Slash::Model(rest),
        "trust" => Slash::Trust(rest),
        "cost" => Slash::Cost,
        name if workflows.iter().any(|known| known == name) => Slash::Workflow {
            name: name.to_owned(),
            prompt: rest,
        },
        name if prompts.iter().any(|known| known.command == name) => Slash::Prompt(McpUsePrompt {
            command: name.to_owned(),
            line: rest,
            arguments: Map::new(),
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_known_word_are_a_command() {
        let workflows = ["review".to_owned(), "undo".to_owned()];
        let prompts = [McpPrompt {
            server: "docs".to_owned(),
            command: "docs:review".to_owned(),
            ..McpPrompt::default()
        }];
        let read = |text| read(text, &workflows, &prompts);
        let Some(Slash::Prompt(used)) = read("/docs:review src/a.rs strict") else {
            panic!("a prompt");
        };
        assert_eq!(used.line, "src/a.rs strict");
        assert_eq!(read("/docs:other"), None);
        assert_eq!(
            read("/compact keep the names"),
            Some(Slash::Compact("keep the names".to_owned()))
        );
        assert_eq!(read(" /undo"), Some(Slash::Undo));
        assert_eq!(
            read("/review\nthis file"),
            Some(Slash::Workflow {
                name: "review".to_owned(),
                prompt: "this file".to_owned()
            })
        );
        assert_eq!(
            (read("/usr/bin is a folder"), read("undo"), read("/")),
            (None, None, None)
        );
        let offered = available(&workflows, &prompts);
        let names: Vec<_> = offered
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "compact",
                "undo",
                "model",
                "trust",
                "cost",
                "review",
                "docs:review"
            ]
        );
    }
}

//! What MCP servers have and say, as lines. Each is marked as the server's: its words are nobody's here.

use super::super::style::{Piece, Style};
use super::super::text::one_line;
use crate::protocol::answer::{McpServer, McpServers, McpState};
use crate::protocol::mcp::{McpLog, McpLogLevel, McpPrompt, McpPrompts, McpResourceName};
use crate::protocol::word;

/// Longest text of a server on a line, in characters.
const SHOWN: usize = 300;

/// Returns the prompts as they are typed; what may be left out is in brackets.
pub(super) fn prompts(listed: &McpPrompts) -> Vec<Piece> {
    if listed.prompts.is_empty() {
        return vec![Piece::line(Style::Dim, "no MCP server has prompts")];
    }
    let line = |prompt: &McpPrompt| {
        let mut text = format!("/{}", one_line(&prompt.command, SHOWN));
        for argument in &prompt.arguments {
            let name = one_line(&argument.name, SHOWN).to_uppercase();
            text.push_str(&match argument.required {
                true => format!(" {name}"),
                false => format!(" [{name}]"),
            });
        }
        if let Some(about) = prompt.description.as_ref().or(prompt.title.as_ref()) {
            text.push_str(&format!("  {}", one_line(about, SHOWN)));
        }
        Piece::line(Style::Plain, text)
    };
    let more = listed.next_cursor.is_some();
    let more = more.then(|| Piece::line(Style::Dim, "and more"));
    listed.prompts.iter().map(line).chain(more).collect()
}

/// Returns the servers, how they are, and what they have.
pub(super) fn list(listed: &McpServers) -> Vec<Piece> {
    if listed.servers.is_empty() {
        return vec![Piece::line(Style::Dim, "there are no MCP servers")];
    }
    let line = |server: &McpServer| {
        let style = match server.state {
            McpState::Failed => Style::Red,
            McpState::SignIn | McpState::Restarting => Style::Yellow,
            McpState::Starting | McpState::Ready | McpState::Stopped => Style::Plain,
        };
        let name = one_line(&server.name, SHOWN);
        let mut text = match server.state {
            McpState::SignIn => format!("{name}  asks to sign in: /sign-in {name}"),
            state => format!("{name}  {}", word(&state)),
        };
        let counts = [
            (server.tools.len(), "tools"),
            (server.resources.len(), "resources"),
            (server.prompts.len(), "prompts"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!("  {what}: {count}"));
        }
        if let Some(error) = &server.error {
            text.push_str(&format!("  {}", one_line(error, SHOWN)));
        }
        Piece::line(style, text)
    };
    listed.servers.iter().map(line).collect()
}

/// Returns a line of a server's log.
pub(super) fn log(line: &McpLog) -> Piece {
    let style = match line.level {
        McpLogLevel::Debug | McpLogLevel::Info | McpLogLevel::Notice => Style::Dim,
        McpLogLevel::Warning => Style::Yellow,
        _ => Style::Red,
    };
    let dropped = match line.dropped {
        0 => String::new(),
        count => format!(" ({count} before it left out)"),
    };
    let text = format!(
        "MCP server {} logs {}{dropped}: {}",
        one_line(&line.server, SHOWN),
        word(&line.level),
        one_line(&line.text, SHOWN)
    );
    Piece::line(style, text)
}

/// Returns that a resource has changed.
pub(super) fn updated(it: &McpResourceName) -> Piece {
    let (server, uri) = (one_line(&it.server, SHOWN), one_line(&it.uri, SHOWN));
    Piece::line(
        Style::Dim,
        format!("MCP server {server}: {uri} has changed"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::mcp::McpPromptArgument;

    fn text(piece: &Piece) -> &str {
        let (Piece::Answer(text) | Piece::Aside(_, text)) = piece;
        text
    }

    #[test]
    fn what_a_server_says_is_one_line_that_is_marked_as_its() {
        let line = McpLog {
            server: "docs".to_owned(),
            level: McpLogLevel::Error,
            logger: None,
            text: "broken\nerror: the daemon is broken \u{202e}".to_owned(),
            dropped: 3,
        };
        let shown = log(&line);
        let shown = text(&shown);
        assert!(
            shown.starts_with("MCP server docs logs error (3 before it left out): broken error:"),
            "{shown}"
        );
        assert!(!shown.trim_end().contains('\n') && !shown.contains('\u{202e}'));
    }

    #[test]
    fn a_server_is_listed_with_what_it_has_or_what_it_wants() {
        let server = |name: &str, state| McpServer {
            name: name.to_owned(),
            state,
            ..McpServer::default()
        };
        let listed = McpServers {
            servers: vec![
                McpServer {
                    tools: vec!["a".to_owned(), "b".to_owned()],
                    ..server("docs", McpState::Ready)
                },
                server("mail", McpState::SignIn),
                McpServer {
                    error: Some("no such\nprogram".to_owned()),
                    ..server("broken", McpState::Failed)
                },
            ],
        };
        let shown = list(&listed);
        let lines: Vec<_> = shown.iter().map(|it| text(it).trim_end()).collect();
        assert_eq!(
            lines,
            [
                "docs  ready  tools: 2",
                "mail  asks to sign in: /sign-in mail",
                "broken  failed  no such program",
            ]
        );
    }

    #[test]
    fn a_prompt_is_listed_as_it_is_typed() {
        let argument = |name: &str, required| McpPromptArgument {
            name: name.to_owned(),
            description: None,
            required,
        };
        let prompt = McpPrompt {
            command: "docs:review".to_owned(),
            description: Some("Looks for mistakes".to_owned()),
            arguments: vec![argument("file", true), argument("style", false)],
            ..McpPrompt::default()
        };
        let listed = McpPrompts {
            prompts: vec![prompt],
            next_cursor: Some("1.1".to_owned()),
        };
        let shown = prompts(&listed);
        assert_eq!(
            text(&shown[0]).trim_end(),
            "/docs:review FILE [STYLE]  Looks for mistakes"
        );
        assert_eq!(text(&shown[1]).trim_end(), "and more");
        let none = prompts(&McpPrompts::default());
        assert!(text(&none[0]).contains("no MCP server"));
    }
}

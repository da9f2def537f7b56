//! Signing in at MCP servers, as lines.

use super::super::style::{Piece, Style};
use super::super::text::{exposed, one_line};
use crate::protocol::answer::{McpAuthState, McpServer};
use crate::protocol::event::McpAuthRequired;

/// Longest address of a page that is shown, in characters: with every right that a server may name it fits.
const ADDRESS: usize = 8_000;

pub(super) fn asked(asked: &McpAuthRequired) -> Vec<Piece> {
    let name = exposed(&asked.server);
    let host = exposed(&asked.host);
    let what = match asked.more {
        true => "wants more rights: sign in again",
        false => "asks you to sign in",
    };
    let mut lines = vec![Piece::line(
        Style::Yellow,
        format!("the MCP server {name} {what} at {host}:"),
    )];
    if let Some(before) = &asked.was_at {
        let text = format!(
            "  (it was {} before; make sure that this is meant)",
            exposed(before)
        );
        lines.push(Piece::line(Style::Yellow, text));
    }
    if !asked.scopes.is_empty() {
        let scopes = one_line(&asked.scopes.join(" "), ADDRESS);
        lines.push(Piece::line(Style::Dim, format!("  rights: {scopes}")));
    }
    // For who may drive alone.
    if asked.url.is_empty() {
        return lines;
    }
    let url = one_line(&asked.url, ADDRESS);
    lines.push(Piece::line(Style::Plain, format!("  {url}")));
    let text = format!(
        "  open it in a browser; where that is on another machine, it ends on a page that cannot be shown: then type /sign-in {name} and its address"
    );
    lines.push(Piece::line(Style::Dim, text));
    lines
}

pub(super) fn answered(state: &McpAuthState) -> Vec<Piece> {
    match state.signed_in {
        true => {
            let text = format!("signed in to the MCP server {}", exposed(&state.server));
            vec![Piece::line(Style::Green, text)]
        }
        // The event has shown where.
        false => Vec::new(),
    }
}

pub(super) fn out(row: &McpServer) -> Piece {
    let text = format!(
        "the sign-in at the MCP server {} is forgotten",
        exposed(&row.name)
    );
    Piece::line(Style::Dim, text)
}

//! The names by which the model calls the tools of MCP servers. Pure.
//!
//! `mcp__SERVER__TOOL`, in the letters and the length that every provider takes. Where either part has
//! to be changed for that, it gets a hash of what it was, so that no two tools ever share a name and
//! a name never depends on which other tools there are.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// The longest name of a tool that every provider takes, in bytes.
const MAX_NAME: usize = 64;

/// The longest server's part of it, so that there is room for the tool's.
const MAX_SERVER: usize = 28;

/// Hexadecimal digits of a hash: 32 bits tell the few tools of one server apart.
const HASH_DIGITS: usize = 8;

/// Returns the name by which the model calls a tool.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let prefix = format!("mcp__{}__", server_part(server));
    let room = MAX_NAME.saturating_sub(prefix.len());
    format!("{prefix}{}", part(tool, room, '_', is_plain_tool))
}

/// Returns what a user types for a prompt, behind a slash.
pub(super) fn command(server: &str, prompt: &str) -> String {
    let prompt = part(prompt, MAX_NAME, '-', is_plain_tool);
    format!("{}:{prompt}", server_part(server))
}

/// The server's part of its tools' names.
///
/// It holds no `__` and does not end in `_`, so that `mcp__a__*` means the tools of `a` alone.
pub(super) fn server_part(server: &str) -> String {
    part(server, MAX_SERVER, '-', is_plain_server)
}

fn part(text: &str, room: usize, joint: char, is_plain: fn(&str) -> bool) -> String {
    if text.len() <= room && is_plain(text) {
        return text.to_owned();
    }
    let mut clean = String::new();
    for letter in text.chars().take(room.saturating_sub(HASH_DIGITS + 1)) {
        let letter = if is_allowed(letter) { letter } else { '_' };
        if letter != '_' || !(clean.is_empty() || clean.ends_with('_')) {
            clean.push(letter);
        }
    }
    let clean = clean.trim_matches('_');
    format!("{clean}{joint}{}", hash(text))
}

fn is_plain_server(text: &str) -> bool {
    is_plain_tool(text) && !text.contains("__") && !text.starts_with('_') && !text.ends_with('_')
}

fn is_plain_tool(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_allowed)
}

fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn hash(text: &str) -> String {
    let mut digits = HEXLOWER.encode(&Sha256::digest(text));
    digits.truncate(HASH_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for (server, tool, expected) in [
            ("time", "get_current_time", "mcp__time__get_current_time"),
            ("a-b", "x", "mcp__a-b__x"),
            ("a", "_b", "mcp__a___b"),
            ("a", "b__c", "mcp__a__b__c"),
        ] {
            assert_eq!(tool_name(server, tool), expected);
        }
    }

    #[test]
    fn a_prompt_is_typed_as_one_word() {
        for (server, prompt, expected) in [
            ("docs", "review", "docs:review"),
            ("a b", "x", "a_b-c8687a08:x"),
        ] {
            assert_eq!(command(server, prompt), expected);
        }
        assert_ne!(command("a", "b c"), command("a", "b.c"));
        assert!(!command("a", "b: c").contains(' '));
    }

    #[test]
    fn no_two_tools_share_a_name_and_all_fit() {
        let long = "x".repeat(200);
        let servers = [
            "a", "a_", "_a", "a__b", "a b", "a.b", "a_b", "ä", "ö", "", "A", &long,
        ];
        let tools = [
            "b", "_b", "b__c", "c", "b c", "b.c", "b/c", "b_c", "日本", "", &long, "__",
        ];
        let mut seen = HashSet::new();
        for server in servers {
            for tool in tools {
                let name = tool_name(server, tool);
                assert!(name.len() <= MAX_NAME && is_plain_tool(&name), "{name}");
                assert!(
                    seen.insert(name.clone()),
                    "{name} twice: {server:?} {tool:?}"
                );
            }
        }
    }

    #[test]
    fn a_wildcard_for_one_server_means_no_other() {
        for other in ["git__x", "git_", "git hub", "git_hub"] {
            let name = tool_name(other, "push");
            assert!(!name.starts_with("mcp__git__"), "{other}: {name}");
        }
    }
}

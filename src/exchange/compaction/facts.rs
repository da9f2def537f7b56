//! What a summary must not lose, taken from the messages by code and not left to a model. Pure.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::view::{main_argument, one_line};
use crate::exchange::budget::{BYTES_PER_TOKEN, Shares, text_tokens};
use crate::message::{Message, Part, ToolCall, ToolResult};

/// The most files of each list, the newest ones.
const MAX_FILES: usize = 50;

/// The most commands that failed.
const MAX_FAILED: usize = 5;

/// The most characters of a path or a command.
const MAX_LINE: usize = 200;

/// Hundredths of the window for the user's first message, and for those after it.
const FIRST_SHARE: u64 = 1;
const SAID_SHARE: u64 = 4;

/// Tokens that they may have however small the window is.
const SAID_LEAST: u64 = 400;

/// Tools that write files, and the one that reads them.
const WRITERS: [&str; 2] = ["file_write", "file_edit"];
const READER: &str = "file_read";

/// Returns the user's words and what was done, of the messages before `base`. The user's message at `kept` is seen as
/// it is, and is not quoted.
pub(super) fn facts(
    messages: &[Message],
    base: usize,
    kept: Option<usize>,
    shares: &Shares,
) -> String {
    let before = messages.get(..base).unwrap_or(messages);
    let mut text = users_words(before, kept, shares);
    list(
        &mut text,
        "Files that were changed",
        &files(before, |tool| WRITERS.contains(&tool)),
    );
    list(
        &mut text,
        "Files that were read",
        &files(before, |tool| tool == READER),
    );
    list(
        &mut text,
        "Commands that failed last",
        &failed_commands(before),
    );
    text
}

/// Quotes the first message of the user, which says what it is all about, and then the last ones as far as there is room.
fn users_words(before: &[Message], kept: Option<usize>, shares: &Shares) -> String {
    let quoted = before
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != kept);
    let said: Vec<String> = quoted.filter_map(|(_, message)| words(message)).collect();
    let mut text = String::new();
    let Some((first, later)) = said.split_first() else {
        return text;
    };
    let room = shares.share(FIRST_SHARE).max(SAID_LEAST);
    let _ = writeln!(
        text,
        "The user's first message:\n{}",
        quote(&beginning(first, room))
    );
    let mut room = shares.share(SAID_SHARE).max(SAID_LEAST);
    let fits = |words: &&String| {
        let tokens = text_tokens(words.len());
        let fits = tokens <= room;
        room -= if fits { tokens } else { 0 };
        fits
    };
    let shown: Vec<&String> = later.iter().rev().filter(fits).collect();
    if !shown.is_empty() {
        text.push_str("What the user said after that, the last message first:\n");
        for words in &shown {
            let _ = writeln!(text, "{}\n", quote(words));
        }
    }
    let left_out = later.len() - shown.len();
    if left_out > 0 {
        let _ = writeln!(text, "({left_out} more messages of the user are left out.)");
    }
    text
}

/// Returns what a message of the user says; `None` for others.
fn words(message: &Message) -> Option<String> {
    let Message::User(parts) = message else {
        return None;
    };
    let words = parts.iter().map(|part| match part {
        Part::Text { text } => Cow::from(text),
        Part::Image { .. } => Cow::from("[picture]"),
        Part::Document(document) => Cow::from(format!("[{}]", document.label())),
    });
    Some(words.collect::<Vec<_>>().join("\n"))
}

/// Returns as much of a text as so many tokens hold.
fn beginning(words: &str, tokens: u64) -> String {
    let most = usize::try_from(tokens).unwrap_or(usize::MAX);
    let end = words.floor_char_boundary(most.saturating_mul(BYTES_PER_TOKEN));
    match words.get(..end) {
        Some(beginning) if end < words.len() => format!("{beginning}… (cut here)"),
        _ => words.to_owned(),
    }
}

fn quote(words: &str) -> String {
    let lines = words.lines().map(|line| format!("> {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the paths that calls which ended well named, the newest first, each once.
fn files(before: &[Message], is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut paths = Vec::new();
    for (call, result) in settled(before).into_iter().rev() {
        if result.is_error || !is_wanted(&call.name) {
            continue;
        }
        let path = call.input.get("path").and_then(serde_json::Value::as_str);
        let path = path.map(|path| one_line(path, MAX_LINE));
        paths.extend(path.filter(|path| !paths.contains(path)));
        if paths.len() == MAX_FILES {
            break;
        }
    }
    paths
}

/// Returns the last commands that failed, the newest first.
fn failed_commands(before: &[Message]) -> Vec<String> {
    let calls = settled(before).into_iter().rev();
    let failed =
        calls.filter(|(call, result)| result.is_error && call.input.contains_key("command"));
    let lines = failed.filter_map(|(call, _)| main_argument(&call.input));
    lines.take(MAX_FAILED).collect()
}

/// Returns each call with its result, the oldest first.
fn settled(messages: &[Message]) -> Vec<(&ToolCall, &ToolResult)> {
    let mut calls: &[ToolCall] = &[];
    let mut settled = Vec::new();
    for message in messages {
        match message {
            Message::Reply(reply) => calls = &reply.calls,
            Message::ToolResult(result) => {
                let call = calls.iter().find(|call| call.id == result.id);
                settled.extend(call.map(|call| (call, result)));
            }
            Message::User(_) => {}
        }
    }
    settled
}

fn list(text: &mut String, head: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{head}:");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exchange::budget::Wanted;
    use crate::exchange::compaction::testing::{reply, result, said};

    fn shares(window: u64) -> Shares {
        let wanted = Wanted {
            reserve: 0,
            output: 0,
            at: 80,
            target: 50,
        };
        Shares::new(window, 0, wanted)
    }

    #[test]
    fn words_files_and_failures_are_kept_in_order() {
        let mut messages = vec![said("build it\nwith tabs")];
        for (id, tool, input, is_error) in [
            ("t1", "file_read", json!({"path": "a.rs"}), false),
            ("t2", "file_write", json!({"path": "b.rs"}), false),
            ("t3", "file_edit", json!({"path": "c.rs"}), true),
            ("t4", "file_edit", json!({"path": "a.rs"}), false),
            ("t5", "bash", json!({"command": "cargo\ntest"}), true),
            ("t6", "bash", json!({"command": "ls"}), false),
            ("t7", "file_write", json!({"path": "b.rs"}), false),
        ] {
            messages.push(reply("", &[(id, tool, input)]));
            messages.push(result(id, tool, "done", is_error));
        }
        messages.extend([said("never push"), said("and now?")]);
        let text = facts(
            &messages,
            messages.len(),
            Some(messages.len() - 1),
            &shares(8_000),
        );
        let expected = "The user's first message:\n> build it\n> with tabs\n\
            What the user said after that, the last message first:\n> never push\n\n\
            Files that were changed:\n- b.rs\n- a.rs\n\
            Files that were read:\n- a.rs\n\
            Commands that failed last:\n- cargo test\n";
        assert_eq!(text, expected);
        assert_eq!(facts(&messages, 0, None, &shares(8_000)), "");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let long = "x".repeat(3_000);
        let messages = [said(&long), said("one"), said(&long), said("two")];
        let text = facts(&messages, 4, None, &shares(1_000));
        assert!(text.contains("x… (cut here)"), "{text}");
        assert!(text.contains("> two\n\n> one"), "{text}");
        assert!(
            text.contains("(1 more messages of the user are left out.)"),
            "{text}"
        );
    }

    #[test]
    fn lists_are_bounded() {
        let mut messages = Vec::new();
        for number in 0..60 {
            let id = format!("t{number}");
            let (write, fail) = (json!({"path": id}), json!({"command": id}));
            let failed = format!("f{number}");
            messages.push(reply(
                "",
                &[(&id, "file_write", write), (&failed, "bash", fail)],
            ));
            messages.push(result(&id, "file_write", "ok", false));
            messages.push(result(&failed, "bash", "no", true));
        }
        let text = facts(&messages, messages.len(), None, &shares(8_000));
        assert_eq!(text.matches("- t").count(), MAX_FILES + MAX_FAILED);
        assert!(text.contains("changed:\n- t59\n"), "{text}");
    }
}

//! What the model sees in the place of a conversation's messages, which are all kept. Pure: the same messages and the same
//! [`Compacted`] give the same bytes, after a restart too, and so the provider's cache holds.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::exchange::budget::text_tokens;
use crate::message::{Message, NativeReply, Part, Reply, ToolCall, ToolResult};

/// Says in a message what is not there.
const LEFT_OUT: &str = "left out to save room";

/// From so many tokens on a text in a call's input is left out.
const LONG_INPUT: u64 = 1_000;

/// The most characters of a call's main argument that are shown.
const MAX_ARGUMENT: usize = 120;

/// Tools that only read, which the model may well run again.
const READERS: [&str; 5] = [
    "file_read",
    "file_list",
    "file_search",
    "web_search",
    "web_fetch",
];

/// What the model is taken to have said to a summary, so that no two messages of the user follow each other.
const UNDERSTOOD: &str = "Understood.";

/// The inputs that say best what a call was about, the best one first.
const MAIN_ARGUMENTS: [&str; 6] = ["path", "command", "pattern", "query", "url", "name"];

/// What of a conversation the model does not see any more. Places are those of all its messages, from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compacted {
    /// The compaction that made it.
    pub id: String,
    /// What stands in the place of the messages before `base`; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What stands there for the model that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
    /// The first message that the model sees as it is.
    pub base: usize,
    /// The user's last message, where it is before `base`: the model sees it all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<usize>,
    /// Messages of which something is left out.
    #[serde(default)]
    pub pruned: BTreeSet<usize>,
    /// How many messages there were.
    pub made_at: usize,
}

/// A vendor's own compaction of the messages before `base`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Native {
    /// Its item, which goes back as it came.
    pub reply: NativeReply,
    /// What it says, to be shown and estimated; empty where only its vendor can read it.
    pub text: String,
    /// What code knows of these messages: the model reads it beside.
    pub facts: String,
}

impl Compacted {
    /// Returns what this model of this provider instance is shown: a vendor's own compaction only where it made it.
    pub(crate) fn shown_to(&self, provider: &str, model: &str) -> Self {
        let is_own =
            |native: &Native| native.reply.provider == provider && native.reply.model == model;
        Self {
            native: self.native.clone().filter(is_own),
            ..self.clone()
        }
    }
}

/// Returns what the model sees of these messages; it is the one that made [`Compacted::native`] where there is one.
pub(crate) fn view(messages: &[Message], compacted: &Compacted) -> Vec<Message> {
    let base = compacted.base.min(messages.len());
    let tail = messages.get(base..).unwrap_or_default();
    let said = compacted.said.and_then(|at| messages.get(at));
    let mut seen = Vec::with_capacity(tail.len() + 4);
    if let Some(native) = &compacted.native {
        seen.push(Message::Reply(Reply {
            text: native.text.clone(),
            native: Some(native.reply.clone()),
            ..Reply::default()
        }));
    }
    let facts = compacted.native.as_ref().map(|native| &native.facts);
    if let Some(record) = facts.or(compacted.summary.as_ref()) {
        seen.push(Message::User(vec![Part::text(record)]));
        if said.is_some() || !matches!(tail.first(), Some(Message::Reply(_))) {
            seen.push(Message::Reply(Reply {
                text: UNDERSTOOD.to_owned(),
                ..Reply::default()
            }));
        }
    }
    seen.extend(said.cloned());
    seen.extend(pruned(messages, base, &compacted.pruned));
    seen
}

/// Returns the messages from a place on, those in `places` pruned.
pub(super) fn pruned(messages: &[Message], from: usize, places: &BTreeSet<usize>) -> Vec<Message> {
    let mut calls: &[ToolCall] = &[];
    let tail = messages.iter().enumerate().skip(from);
    let seen = tail.map(|(place, message)| {
        if let Message::Reply(reply) = message {
            calls = &reply.calls;
        }
        match places.contains(&place) {
            true => without_bulk(message, calls),
            false => message.clone(),
        }
    });
    seen.collect()
}

/// Returns a message without what is large in it; `calls` are those that a result may belong to.
pub(super) fn without_bulk(message: &Message, calls: &[ToolCall]) -> Message {
    match message {
        Message::User(parts) => Message::User(parts.iter().map(without_attachment).collect()),
        Message::ToolResult(result) => {
            let call = calls.iter().find(|call| call.id == result.id);
            Message::ToolResult(ToolResult {
                content: vec![Part::text(result_line(result, call))],
                ..result.clone()
            })
        }
        // Without the provider's own form, which has the input too. Its thinking goes with it as a whole: no provider takes a
        // part of it.
        Message::Reply(reply) => Message::Reply(Reply {
            text: reply.text.clone(),
            thinking: String::new(),
            calls: reply.calls.iter().map(without_long_input).collect(),
            native: None,
        }),
    }
}

/// Returns whether a message has something that can be left out: long texts in the inputs of calls, pictures, documents, a result.
pub(super) fn has_bulk(message: &Message) -> bool {
    match message {
        Message::User(parts) => has_attachment(parts),
        Message::ToolResult(_) => true,
        Message::Reply(reply) => reply
            .calls
            .iter()
            .any(|call| call.input.values().any(is_long)),
    }
}

fn has_attachment(parts: &[Part]) -> bool {
    let is_bulk = |part: &Part| matches!(part, Part::Image { .. } | Part::Document(_));
    parts.iter().any(is_bulk)
}

fn without_attachment(part: &Part) -> Part {
    match part {
        Part::Image { media_type, .. } => {
            Part::text(format!("[picture, {media_type}, {LEFT_OUT}]"))
        }
        Part::Document(document) => Part::text(format!("[{}, {LEFT_OUT}]", document.label())),
        Part::Text { .. } => part.clone(),
    }
}

fn is_long(value: &Value) -> bool {
    matches!(value, Value::String(text) if text_tokens(text.len()) > LONG_INPUT)
}

fn without_long_input(call: &ToolCall) -> ToolCall {
    let short = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) if is_long(value) => {
                Value::String(format!("[{LEFT_OUT}: {} bytes]", text.len()))
            }
            value => value.clone(),
        };
        (name.clone(), value)
    };
    ToolCall {
        input: call.input.iter().map(short).collect(),
        ..call.clone()
    }
}

fn result_line(result: &ToolResult, call: Option<&ToolCall>) -> String {
    let argument = call.and_then(|call| main_argument(&call.input));
    let argument = argument.map_or(String::new(), |argument| format!(" {argument}"));
    let bytes: usize = result.content.iter().map(bytes_of).sum();
    let (outcome, advice) = match result.is_error {
        true => ("failed", ""),
        false if READERS.contains(&result.name.as_str()) => {
            ("ok", " Run it again if it is needed.")
        }
        false => ("ok", ""),
    };
    format!(
        "[{LEFT_OUT}: {}{argument}, {bytes} bytes, {outcome}.{advice}]",
        result.name
    )
}

fn bytes_of(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        // As base64.
        Part::Image { data, .. } => data.len() / 4 * 3,
        Part::Document(document) => document.text().len(),
    }
}

/// Returns what a call was about, in one line: a path, a command.
pub(super) fn main_argument(input: &Map<String, Value>) -> Option<String> {
    let named = MAIN_ARGUMENTS.iter().filter_map(|name| input.get(*name));
    let text = named.chain(input.values()).find_map(Value::as_str)?;
    Some(one_line(text, MAX_ARGUMENT))
}

/// Returns the beginning of a text as one line.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(most) {
        line.truncate(at);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exchange::compaction::testing::{reply, result, said};
    use crate::exchange::history::is_valid;

    #[test]
    fn what_is_left_out_says_what_it_was() {
        let input = json!({"path": "src/a.rs", "content": "x".repeat(4_000)});
        let messages = [
            said("do it"),
            reply("writing", &[("t1", "file_write", input)]),
            result("t1", "file_write", &"y".repeat(18_842), false),
            reply("", &[("t2", "bash", json!({"command": "cargo\n  test"}))]),
            result("t2", "bash", "exit code 1", true),
        ];
        let all = Compacted {
            pruned: (0..messages.len()).collect(),
            ..Compacted::default()
        };
        let seen = view(&messages, &all);
        assert!(is_valid(&seen));
        assert_eq!(seen[0], messages[0]);
        let short = json!({"path": "src/a.rs", "content": "[left out to save room: 4000 bytes]"});
        assert_eq!(seen[1], reply("writing", &[("t1", "file_write", short)]));
        let line = "[left out to save room: file_write src/a.rs, 18842 bytes, ok.]";
        assert_eq!(seen[2], result("t1", "file_write", line, false));
        assert_eq!(seen[3], messages[3]);
        let line = "[left out to save room: bash cargo test, 11 bytes, failed.]";
        assert_eq!(seen[4], result("t2", "bash", line, true));
    }

    #[test]
    fn users_and_replies_take_turns_behind_a_summary() {
        let messages = [
            said("one"),
            reply("first", &[("t1", "bash", json!({}))]),
            result("t1", "bash", "done", false),
            reply("second", &[]),
            said("two"),
        ];
        let (user, model, tool) = ('u', 'r', 't');
        // What comes first, whether the user's last message is kept, and who speaks.
        for (base, kept, expected) in [
            (4, None, vec![user, model, user]),
            (3, None, vec![user, model, user]),
            (
                1,
                Some(0),
                vec![user, model, user, model, tool, model, user],
            ),
            (5, Some(4), vec![user, model, user]),
            (5, None, vec![user, model]),
        ] {
            let compacted = Compacted {
                summary: Some("summary".to_owned()),
                base,
                said: kept,
                ..Compacted::default()
            };
            let seen = view(&messages, &compacted);
            assert!(is_valid(&seen));
            let speakers: Vec<char> = seen.iter().map(speaker).collect();
            assert_eq!(speakers, expected, "{base}");
        }
    }

    #[test]
    fn only_the_model_that_made_a_native_compaction_is_shown_it() {
        let messages = [said("one"), reply("first", &[]), said("two")];
        let made = |provider: &str, model: &str| NativeReply {
            wire: "w".to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            items: json!([{"type": "compaction", "content": "so far", "signature": "c2ln"}]),
        };
        let compacted = Compacted {
            summary: Some("so far, and facts".to_owned()),
            native: Some(Native {
                reply: made("p", "m"),
                text: "so far".to_owned(),
                facts: "facts".to_owned(),
            }),
            base: 2,
            ..Compacted::default()
        };
        let understood = reply(UNDERSTOOD, &[]);
        let text = vec![
            said("so far, and facts"),
            understood.clone(),
            messages[2].clone(),
        ];
        let native = Message::Reply(Reply {
            text: "so far".to_owned(),
            native: Some(made("p", "m")),
            ..Reply::default()
        });
        let own = vec![native, said("facts"), understood, messages[2].clone()];
        for (provider, model, expected) in
            [("p", "m", own), ("p", "n", text.clone()), ("q", "m", text)]
        {
            let seen = view(&messages, &compacted.shown_to(provider, model));
            assert!(is_valid(&seen));
            assert_eq!(seen, expected, "{provider}/{model}");
        }
        // As it is kept.
        let kept = serde_json::to_string(&compacted).unwrap();
        assert_eq!(serde_json::from_str::<Compacted>(&kept).unwrap(), compacted);
    }

    fn speaker(message: &Message) -> char {
        match message {
            Message::User(_) => 'u',
            Message::Reply(_) => 'r',
            Message::ToolResult(_) => 't',
        }
    }
}

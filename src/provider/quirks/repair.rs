//! Repairs of a refused request: what an error says a server does not take is left out, once.
//!
//! The flags that a repair changed are remembered for the model when the repaired request was accepted
//! (`docs/providers.md`, "Refusals that can be repaired"). Where the error is about what this one request has, a file or a
//! schema, the repair counts for it alone.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    MAX_COMPLETION_TOKENS, MAX_TOKENS, Quirks, ReasoningBack, SYSTEM, Summaries, ThinkingDialect,
};
use crate::provider::error::lacks_tools;
use crate::provider::{ErrorKind, ProviderError};

/// Most models that repairs are remembered for; beyond it they are found anew each time.
const MAX_MODELS: usize = 256;

/// Most mistakes that are noted; beyond it all are forgotten, for conversations may never ask again.
const MAX_MISTAKES: usize = 256;

/// Changes one of the flags.
pub(crate) type Repair = fn(&mut Quirks);

/// What an error requires.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) repair: Repair,
    /// The flags of the repaired request.
    pub(crate) quirks: Quirks,
    /// Whether it is about the model, and not about this one request.
    pub(crate) is_of_model: bool,
}

/// Returns the repair that an error requires and the flags with it, if the refused body has what it complains about;
/// `None` where nothing changes. `start` are the flags before any repair, `now` those of the refused request.
pub(crate) fn find(
    error: &ProviderError,
    body: &Value,
    start: &Quirks,
    now: &Quirks,
) -> Option<Found> {
    let (ErrorKind::InvalidRequest
    | ErrorKind::NotFound
    | ErrorKind::NoTools
    | ErrorKind::Server
    | ErrorKind::Unknown) = error.kind
    else {
        return None;
    };
    let complaint = Complaint {
        text: error.message.to_lowercase(),
        code: error.code.as_deref().unwrap_or_default(),
        kind: error.kind,
        status: error.status,
        body,
    };
    let (repair, is_of_model) = complaint
        .about_tools()
        .or_else(|| complaint.about_history())
        .or_else(|| of_model(complaint.about_parameter()?))?;
    let mut repaired = *now;
    repair(&mut repaired);
    // The two flags that could be changed to and fro without end.
    if now.output_cap != start.output_cap {
        repaired.output_cap = now.output_cap;
    }
    if now.reasoning_back != start.reasoning_back {
        repaired.reasoning_back = now.reasoning_back;
    }
    (repaired != *now).then_some(Found {
        repair,
        quirks: repaired,
        is_of_model,
    })
}

/// A repair, and whether it is about the model, and not about this one request.
type Remedy = (Repair, bool);

fn of_model(repair: Repair) -> Option<Remedy> {
    Some((repair, true))
}

/// Words with which one schema is refused, and not all of them.
const OF_SCHEMAS: [&str; 5] = [
    "schema for",
    "invalid schema",
    "invalid json schema",
    "in context=",
    "keyword",
];

/// Words with which one file is refused, and not all of them.
const OF_FILES: [&str; 8] = [
    "pages",
    "too large",
    "too many",
    "size",
    "corrupt",
    "damaged",
    "encrypt",
    "password",
];

struct Complaint<'a> {
    text: String,
    code: &'a str,
    kind: ErrorKind,
    status: Option<u16>,
    body: &'a Value,
}

impl Complaint<'_> {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    fn sent(&self, key: &str) -> bool {
        self.body.get(key).is_some()
    }

    /// Whether the error is about something that is not known or not allowed, rather than out of range.
    fn is_refusal(&self) -> bool {
        self.is_unsupported()
            || self.says(&[
                "unknown",
                "unrecognized",
                "unrecognised",
                "unexpected",
                "extra",
                "not permitted",
                "not allowed",
                "deprecated",
                "only the default",
                "no such",
                "invalid field",
            ])
    }

    /// Whether the error says that the model, or the server, does not take something at all.
    fn is_unsupported(&self) -> bool {
        self.code == "unsupported_parameter"
            || self.code == "unsupported_value"
            || self.says(&[
                "not support",
                "unsupported",
                "n't support",
                "does not accept",
                "is not available",
                "unknown field",
                "unknown parameter",
                "unrecognized request argument",
                "extra inputs",
            ])
    }

    fn about_tools(&self) -> Option<Remedy> {
        let without = self.kind == ErrorKind::NoTools || self.says(&["requires --jinja"]);
        if self.sent("tools") && (without || lacks_tools(&self.text)) {
            return of_model(|quirks| quirks.tools = false);
        }
        if self.says(&["v1/responses"]) && self.sent("messages") {
            return of_model(|quirks| quirks.other_api = true);
        }
        // No such path, which is not the same as no such model.
        let no_path = matches!(self.status, Some(404 | 405)) && self.code.is_empty();
        if no_path && self.sent("input") && !self.says(&["model"]) {
            return of_model(|quirks| quirks.other_api = true);
        }
        let form = [
            "response_format",
            "json_schema",
            "text.format",
            "structured output",
        ];
        if (self.sent("response_format") || self.body.pointer("/text/format").is_some())
            && self.says(&form)
        {
            let is_of_model = self.is_unsupported() && !self.says(&OF_SCHEMAS);
            return Some((|quirks| quirks.output = false, is_of_model));
        }
        if self.sent("tool_choice") && self.says(&["tool_choice"]) {
            return of_model(|quirks| quirks.tool_choice = false);
        }
        if self.sent("provider") && self.says(&["requested parameters", "require_parameters"]) {
            return of_model(|quirks| quirks.routed = false);
        }
        None
    }

    fn about_history(&self) -> Option<Remedy> {
        let history = self
            .body
            .get("messages")
            .or_else(|| self.body.get("input"))?;
        let messages = history.as_array()?;
        let any = |key: &str| messages.iter().any(|message| message.get(key).is_some());
        if self.says(&["reasoning_content"]) && self.says(&["passed back", "missing"]) {
            return of_model(|quirks| {
                quirks.reasoning_back = ReasoningBack::Always("reasoning_content");
            });
        }
        let fields = ["reasoning_content", "reasoning_details", "reasoning"];
        if self.is_refusal() && fields.iter().any(|key| any(key) && self.says(&[key])) {
            return of_model(|quirks| quirks.reasoning_back = ReasoningBack::Never);
        }
        if self.code == "3280" || self.says(&["length of 9"]) {
            return of_model(|quirks| quirks.short_ids = true);
        }
        if self.code == "3230" || self.says(&["role 'user' after role 'tool'"]) {
            return of_model(|quirks| quirks.user_after_tool = false);
        }
        let role = |message: &Value| message.get("role") == Some(&Value::from("developer"));
        if messages.iter().any(role) && self.says(&["developer"]) {
            return of_model(|quirks| quirks.system_role = SYSTEM);
        }
        let is_file = |kind: &str| matches!(kind, "file" | "input_file");
        let has_files = messages.iter().any(|message| has_part(message, is_file));
        if has_files && self.says(&["file", "pdf", "document"]) {
            let is_of_model = self.is_unsupported() && !self.says(&OF_FILES);
            return Some((|quirks| quirks.documents = false, is_of_model));
        }
        let is_image = |kind: &str| kind.ends_with("image_url") || kind.ends_with("image");
        let has_images = messages.iter().any(|message| has_part(message, is_image));
        if has_images && self.says(&["image", "vision", "multimodal", "multi-modal"]) {
            return of_model(|quirks| quirks.images = false);
        }
        None
    }

    fn about_parameter(&self) -> Option<Repair> {
        if self.says(&["summar"]) && self.body.pointer("/reasoning/summary").is_some() {
            return Some(|quirks| quirks.summaries = Summaries::Never);
        }
        if !self.is_refusal() {
            return None;
        }
        let no_thinking: Repair = |quirks| quirks.thinking = ThinkingDialect::None;
        let no_options: Repair = |quirks| quirks.stream_options = false;
        // What is named, and the fields of which one was sent.
        let parameters: [(&str, &[&str], Repair); 12] = [
            ("stream_options", &["stream_options"], no_options),
            ("include_obfuscation", &["stream_options"], no_options),
            (MAX_COMPLETION_TOKENS, &[MAX_COMPLETION_TOKENS], |quirks| {
                quirks.output_cap = MAX_TOKENS;
            }),
            (MAX_TOKENS, &[MAX_TOKENS], |quirks| {
                quirks.output_cap = MAX_COMPLETION_TOKENS;
            }),
            ("temperature", &["temperature"], |quirks| {
                quirks.temperature = false;
            }),
            ("prompt_cache_key", &["prompt_cache_key"], |quirks| {
                quirks.prompt_cache_key = false;
            }),
            ("include", &["include"], |quirks| quirks.include = false),
            ("reasoning_effort", &["reasoning_effort"], no_thinking),
            // "reasoning.effort" is named where "reasoning_effort" was meant, and the other way round.
            ("reasoning", &["reasoning", "reasoning_effort"], no_thinking),
            ("enable_thinking", &["chat_template_kwargs"], no_thinking),
            (
                "chat_template_kwargs",
                &["chat_template_kwargs"],
                no_thinking,
            ),
            (
                "thinking",
                &["thinking", "reasoning_effort", "reasoning"],
                no_thinking,
            ),
        ];
        let mut named = parameters.into_iter();
        let (.., repair) = named.find(|(name, fields, _)| {
            self.says(&[name]) && fields.iter().any(|field| self.sent(field))
        })?;
        Some(repair)
    }
}

fn has_part(message: &Value, is_it: impl Fn(&str) -> bool) -> bool {
    let parts = ["content", "output"].map(|key| message.get(key).and_then(Value::as_array));
    parts
        .into_iter()
        .flatten()
        .flatten()
        .any(|part| is_it(part.get("type").and_then(Value::as_str).unwrap_or_default()))
}

/// What was learned of a server's models: repairs, and mistakes that the model has not been notified of.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// By vendor and model: whose server it is may turn out later.
    quirks: Mutex<BTreeMap<(String, String), Quirks>>,
    /// By conversation.
    mistakes: Mutex<BTreeMap<String, String>>,
}

impl Learned {
    /// Returns the flags of a model as they are known by now.
    pub(crate) fn quirks(&self, vendor: &str, model: &str) -> Quirks {
        let known = self.quirks.lock();
        let known = known.get(&(vendor.to_owned(), model.to_owned())).copied();
        known.unwrap_or_else(|| Quirks::of(vendor, model))
    }

    /// Remembers the repairs of a request that was accepted, beside those that other requests needed meanwhile.
    pub(crate) fn remember(&self, vendor: &str, model: &str, repairs: &[Repair]) {
        let mut known = self.quirks.lock();
        let key = (vendor.to_owned(), model.to_owned());
        if known.len() < MAX_MODELS || known.contains_key(&key) {
            let quirks = known
                .entry(key)
                .or_insert_with(|| Quirks::of(vendor, model));
            repairs.iter().for_each(|repair| repair(quirks));
        }
    }

    /// Notes a call that the server refused while the answer ran, for when the turn runs again.
    pub(crate) fn note_mistake(&self, conversation: &str, message: &str) {
        let mut mistakes = self.mistakes.lock();
        if mistakes.len() >= MAX_MISTAKES {
            mistakes.clear();
        }
        mistakes.insert(conversation.to_owned(), message.to_owned());
    }

    /// Takes the mistake noted for a conversation.
    pub(crate) fn take_mistake(&self, conversation: &str) -> Option<String> {
        self.mistakes.lock().remove(conversation)
    }
}

#[cfg(test)]
mod tests;

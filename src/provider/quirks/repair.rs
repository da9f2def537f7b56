//! Repairs of a refused request: what an error says a server does not take is left out, once.
//!
//! A repair is used at most once for a request and remembered for the model when the repaired request
//! was accepted (`docs/providers.md`, "Refusals that can be repaired").

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::Value;

use super::{CallIds, OutputCap, Quirks, ReasoningBack, Summaries, SystemRole, ThinkingDialect};
use crate::provider::error::lacks_tools;
use crate::provider::{ErrorKind, ProviderError};

/// Most models that repairs are remembered for; beyond it they are found anew each time.
const MAX_MODELS: usize = 256;

/// One change of a request: what is left out of it or put otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repair {
    OtherOutputCap,
    NoTemperature,
    NoStreamOptions,
    /// `system` instead of `developer`.
    SystemRole,
    NoThinking,
    NoSummary,
    /// Reasoning goes back with every reply.
    ReasoningRequired,
    NoReasoningBack,
    /// Ids of nine letters or digits.
    ShortIds,
    /// An assistant message between tool and user.
    NoUserAfterTool,
    NoToolChoice,
    NoTools,
    NoImages,
    NoCacheKey,
    NoInclude,
    /// No demand on the routing.
    NotRouted,
    /// The other of the two APIs.
    OtherApi,
}

/// The repairs of one request.
pub(crate) type Repairs = BTreeSet<Repair>;

impl Quirks {
    /// Returns the flags as repairs changed them.
    pub(crate) fn repaired(mut self, repairs: &Repairs) -> Self {
        for repair in repairs {
            match repair {
                Repair::OtherOutputCap => {
                    self.output_cap = match self.output_cap {
                        OutputCap::MaxTokens => OutputCap::MaxCompletionTokens,
                        OutputCap::MaxCompletionTokens => OutputCap::MaxTokens,
                    };
                }
                Repair::NoTemperature => self.temperature = false,
                Repair::NoStreamOptions => self.stream_options = false,
                Repair::SystemRole => self.system_role = SystemRole::System,
                Repair::NoThinking => self.thinking = ThinkingDialect::None,
                Repair::NoSummary => self.summaries = Summaries::Never,
                Repair::ReasoningRequired => {
                    self.reasoning_back = ReasoningBack::Always("reasoning_content");
                }
                Repair::NoReasoningBack => self.reasoning_back = ReasoningBack::Never,
                Repair::ShortIds => self.call_ids = CallIds::NineAlphanumerics,
                Repair::NoUserAfterTool => self.user_after_tool = false,
                Repair::NoToolChoice => self.tool_choice = false,
                Repair::NoTools => self.tools = false,
                Repair::NoImages => self.images = false,
                Repair::NoCacheKey => self.prompt_cache_key = false,
                Repair::NoInclude => self.include = false,
                Repair::NotRouted => self.routed = false,
                Repair::OtherApi => {}
            }
        }
        self
    }
}

/// Finds the repair that an error asks for, if the refused body has what it complains about.
pub(crate) fn find(error: &ProviderError, body: &Value, tried: &Repairs) -> Option<Repair> {
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
    complaint
        .about_tools()
        .or_else(|| complaint.about_history())
        .or_else(|| complaint.about_parameter())
        .filter(|repair| !tried.contains(repair))
}

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
        self.code == "unsupported_parameter"
            || self.code == "unsupported_value"
            || self.says(&[
                "not support",
                "unsupported",
                "n't support",
                "unknown",
                "unrecognized",
                "unrecognised",
                "unexpected",
                "extra",
                "not permitted",
                "not allowed",
                "deprecated",
                "only the default",
                "does not accept",
                "no such",
                "invalid field",
                "is not available",
            ])
    }

    fn about_tools(&self) -> Option<Repair> {
        let without = self.kind == ErrorKind::NoTools || self.says(&["requires --jinja"]);
        if self.sent("tools") && (without || lacks_tools(&self.text)) {
            return Some(Repair::NoTools);
        }
        if self.says(&["v1/responses"]) && self.sent("messages") {
            return Some(Repair::OtherApi);
        }
        // No such path, which is not the same as no such model.
        let no_path = matches!(self.status, Some(404 | 405)) && self.code.is_empty();
        if no_path && self.sent("input") && !self.says(&["model"]) {
            return Some(Repair::OtherApi);
        }
        if self.sent("tool_choice") && self.says(&["tool_choice"]) {
            return Some(Repair::NoToolChoice);
        }
        (self.sent("provider") && self.says(&["requested parameters", "require_parameters"]))
            .then_some(Repair::NotRouted)
    }

    fn about_history(&self) -> Option<Repair> {
        let history = self
            .body
            .get("messages")
            .or_else(|| self.body.get("input"))?;
        let messages = history.as_array()?;
        let any = |key: &str| messages.iter().any(|message| message.get(key).is_some());
        if self.says(&["reasoning_content"]) && self.says(&["passed back", "missing"]) {
            return Some(Repair::ReasoningRequired);
        }
        let reasoning = ["reasoning_content", "reasoning_details", "reasoning"];
        if self.is_refusal() && reasoning.iter().any(|key| any(key) && self.says(&[key])) {
            return Some(Repair::NoReasoningBack);
        }
        if self.code == "3280" || self.says(&["length of 9"]) {
            return Some(Repair::ShortIds);
        }
        if self.code == "3230" || self.says(&["role 'user' after role 'tool'"]) {
            return Some(Repair::NoUserAfterTool);
        }
        let role = |message: &Value| message.get("role") == Some(&Value::from("developer"));
        if messages.iter().any(role) && self.says(&["developer"]) {
            return Some(Repair::SystemRole);
        }
        let has_images = messages.iter().any(has_image);
        (has_images && self.says(&["image", "vision", "multimodal", "multi-modal"]))
            .then_some(Repair::NoImages)
    }

    fn about_parameter(&self) -> Option<Repair> {
        if self.says(&["summar"]) && self.body.pointer("/reasoning/summary").is_some() {
            return Some(Repair::NoSummary);
        }
        if !self.is_refusal() {
            return None;
        }
        let parameters = [
            ("stream_options", Repair::NoStreamOptions),
            ("include_obfuscation", Repair::NoStreamOptions),
            ("max_completion_tokens", Repair::OtherOutputCap),
            ("max_tokens", Repair::OtherOutputCap),
            ("temperature", Repair::NoTemperature),
            ("prompt_cache_key", Repair::NoCacheKey),
            ("include", Repair::NoInclude),
            ("reasoning_effort", Repair::NoThinking),
            ("reasoning", Repair::NoThinking),
            ("enable_thinking", Repair::NoThinking),
            ("chat_template_kwargs", Repair::NoThinking),
            ("thinking", Repair::NoThinking),
        ];
        let sent = |name: &str| {
            let fields: &[&str] = match name {
                "include_obfuscation" => &["stream_options"],
                "enable_thinking" => &["chat_template_kwargs"],
                // "reasoning.effort" is named where "reasoning_effort" was meant, and the other way round.
                "reasoning" => &["reasoning", "reasoning_effort"],
                "thinking" => &["thinking", "reasoning_effort", "reasoning"],
                name => &[name],
            };
            fields.iter().any(|field| self.sent(field))
        };
        let mut named = parameters.into_iter();
        let (_, repair) = named.find(|(name, _)| self.says(&[name]) && sent(name))?;
        Some(repair)
    }
}

fn has_image(message: &Value) -> bool {
    let parts = ["content", "output"].map(|key| message.get(key).and_then(Value::as_array));
    parts.into_iter().flatten().flatten().any(|part| {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        kind.ends_with("image_url") || kind.ends_with("image")
    })
}

/// What was learned of models: repairs, and mistakes that the model has still to be told of.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    repairs: Mutex<BTreeMap<String, Repairs>>,
    mistakes: Mutex<BTreeMap<String, String>>,
}

impl Learned {
    /// The repairs known for a model.
    pub(crate) fn repairs(&self, model: &str) -> Repairs {
        self.repairs.lock().get(model).cloned().unwrap_or_default()
    }

    /// Remembers repairs that a request was accepted with.
    pub(crate) fn remember(&self, model: &str, repairs: &Repairs) {
        let mut known = self.repairs.lock();
        if !repairs.is_empty() && (known.len() < MAX_MODELS || known.contains_key(model)) {
            known.entry(model.to_owned()).or_default().extend(repairs);
        }
    }

    /// Notes a call that the server refused while the answer ran, to be told when the turn runs again.
    pub(crate) fn note_mistake(&self, conversation: &str, message: &str) {
        let mut mistakes = self.mistakes.lock();
        if mistakes.len() < MAX_MODELS {
            mistakes.insert(conversation.to_owned(), message.to_owned());
        }
    }

    /// Takes the mistake noted for a conversation.
    pub(crate) fn take_mistake(&self, conversation: &str) -> Option<String> {
        self.mistakes.lock().remove(conversation)
    }
}

#[cfg(test)]
mod tests;

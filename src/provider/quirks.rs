//! What servers of the OpenAI wires do differently, as flags that the request builders read.
//!
//! A preset gives the flags to start with; an error that names what a server does not take changes
//! them for that model ([`repair`]). Facts: `docs/providers.md`, "Chat Completions: requests",
//! "Chat Completions: reasoning fields" and "Responses: requests". Nothing here sends or parses.

pub(crate) mod repair;

use super::schema::Dialect;
use crate::config::{ProviderConfig, ProviderKind};

/// What a server takes, for one model; a flag says that it takes, or has, what it is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// The field for the most tokens of the answer: `max_tokens`, which most compatible servers know alone, or
    /// `max_completion_tokens`, which newer OpenAI models know alone.
    pub(crate) output_cap: &'static str,
    /// The role of the system prompt: `system`, known everywhere, or `developer`, OpenAI's word since its
    /// reasoning models.
    pub(crate) system_role: &'static str,
    pub(crate) stream_options: bool,
    /// Whether an assistant message with calls and no text has `null` content instead of `""`.
    pub(crate) null_content: bool,
    /// Whether ids of calls have nine letters or digits (Mistral).
    pub(crate) short_ids: bool,
    /// Whether a user message may follow a tool message directly.
    pub(crate) user_after_tool: bool,
    pub(crate) reasoning_back: ReasoningBack,
    pub(crate) thinking: ThinkingDialect,
    /// Whether it takes `temperature` while the model thinks.
    pub(crate) temperature: bool,
    pub(crate) tools: bool,
    /// What it takes of a tool's schema. Chat only.
    pub(crate) schemas: Dialect,
    pub(crate) tool_choice: bool,
    /// Whether it takes the schema of an answer; else the model has to call a tool that has it.
    pub(crate) output: bool,
    pub(crate) images: bool,
    /// Whether it takes PDF files; else it gets their text.
    pub(crate) documents: bool,
    pub(crate) prompt_cache_key: bool,
    /// Whether calls need a `thought_signature` (Gemini).
    pub(crate) thought_signature: bool,
    /// Whether requests are routed to other servers, and only to those that take all parameters.
    pub(crate) routed: bool,
    /// Responses: whether it takes `include`.
    pub(crate) include: bool,
    /// Responses: whether it takes reasoning items that say nothing.
    pub(crate) empty_reasoning: bool,
    /// Responses: when summaries of the reasoning are requested.
    pub(crate) summaries: Summaries,
    /// Responses: whether it says that an answer was cut; else only its count of tokens tells.
    pub(crate) says_cut: bool,
    /// Responses: whether it takes the form of an answer as Chat Completions have it, and passes over the other.
    pub(crate) chat_form: bool,
    /// Whether the model needs the other of OpenAI's two APIs than the one that is configured.
    pub(crate) other_api: bool,
}

/// When summaries of the reasoning are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summaries {
    /// Never: refused, e.g. to organisations that are not verified.
    Never,
    /// Where the request says something about thinking.
    WithThinking,
    /// Unless the request turns thinking off: api.openai.com shows no reasoning otherwise.
    Always,
}

/// What of a reply's reasoning goes back with the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningBack {
    Never,
    /// The field it came in, on replies with calls.
    AsSent,
    /// This field, on replies with calls.
    As(&'static str),
    /// This field, on every reply, empty where there was no reasoning (DeepSeek).
    Always(&'static str),
    /// `reasoning_details` unchanged; `reasoning` where there were none (OpenRouter).
    Details,
}

/// How thinking is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingDialect {
    None,
    /// `reasoning_effort: none | low | medium | high`.
    Effort,
    /// `thinking: {type}`, `reasoning_effort: low | high` (DeepSeek).
    DeepSeek,
    /// `reasoning: {enabled | effort | max_tokens}` (OpenRouter).
    OpenRouter,
    /// `reasoning_effort: none | high` (Mistral).
    Mistral,
    /// `chat_template_kwargs.enable_thinking` and `reasoning_effort` (vLLM, llama.cpp).
    Template,
}

const MAX_TOKENS: &str = "max_tokens";
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
const SYSTEM: &str = "system";

/// A server that takes what the documents of OpenAI say and nothing that is new.
const GENERIC: Quirks = Quirks {
    output_cap: MAX_TOKENS,
    system_role: SYSTEM,
    stream_options: true,
    null_content: false,
    short_ids: false,
    user_after_tool: true,
    reasoning_back: ReasoningBack::AsSent,
    thinking: ThinkingDialect::Effort,
    temperature: true,
    tools: true,
    schemas: Dialect::Chat,
    tool_choice: true,
    output: true,
    images: true,
    documents: false,
    prompt_cache_key: false,
    thought_signature: false,
    routed: false,
    include: true,
    empty_reasoning: false,
    summaries: Summaries::WithThinking,
    says_cut: true,
    chat_form: false,
    other_api: false,
};

impl Quirks {
    /// Returns the flags to start with for a model at a vendor's server.
    pub(crate) fn of(vendor: &str, model: &str) -> Self {
        match vendor {
            "openai" => Self {
                output_cap: MAX_COMPLETION_TOKENS,
                system_role: "developer",
                null_content: true,
                reasoning_back: ReasoningBack::Never,
                thinking: match is_openai_reasoner(model) {
                    true => ThinkingDialect::Effort,
                    false => ThinkingDialect::None,
                },
                temperature: !is_openai_reasoner(model),
                prompt_cache_key: true,
                documents: true,
                empty_reasoning: true,
                summaries: Summaries::Always,
                ..GENERIC
            },
            "deepseek" => Self {
                reasoning_back: ReasoningBack::Always("reasoning_content"),
                thinking: ThinkingDialect::DeepSeek,
                // Knows `json_object` alone, which has no schema.
                output: false,
                images: false,
                ..GENERIC
            },
            "openrouter" => Self {
                reasoning_back: ReasoningBack::Details,
                thinking: ThinkingDialect::OpenRouter,
                routed: true,
                ..GENERIC
            },
            "groq" => Self {
                output_cap: MAX_COMPLETION_TOKENS,
                reasoning_back: ReasoningBack::As("reasoning"),
                ..GENERIC
            },
            "mistral" => Self {
                // Sends usage without a request for it.
                stream_options: false,
                short_ids: true,
                user_after_tool: false,
                // Its thinking comes as content parts, which go back as they are.
                reasoning_back: ReasoningBack::Never,
                thinking: ThinkingDialect::Mistral,
                prompt_cache_key: true,
                ..GENERIC
            },
            "vllm" => Self {
                reasoning_back: ReasoningBack::As("reasoning"),
                thinking: ThinkingDialect::Template,
                ..GENERIC
            },
            "llamacpp" => Self {
                reasoning_back: ReasoningBack::As("reasoning_content"),
                thinking: ThinkingDialect::Template,
                says_cut: false,
                chat_form: true,
                ..GENERIC
            },
            "xai" => Self {
                output_cap: MAX_COMPLETION_TOKENS,
                ..GENERIC
            },
            "gemini" => Self {
                thought_signature: true,
                schemas: Dialect::Gemini,
                ..GENERIC
            },
            // Its compatible endpoint passes over `tool_choice`.
            "ollama" => Self {
                tool_choice: false,
                schemas: Dialect::Ollama,
                reasoning_back: ReasoningBack::As("reasoning"),
                ..GENERIC
            },
            _ => GENERIC,
        }
    }
}

/// The vendor of a server that neither preset nor host names.
pub(crate) const GENERIC_VENDOR: &str = "generic";

/// Hosts that give a vendor away where the preset does not.
const HOSTS: [(&str, &str); 11] = [
    ("api.openai.com", "openai"),
    ("openai.azure.com", "openai"),
    ("api.deepseek.com", "deepseek"),
    ("openrouter.ai", "openrouter"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral"),
    ("api.x.ai", "xai"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("localhost:11434", "ollama"),
    ("127.0.0.1:11434", "ollama"),
    ("localhost:1234", "lmstudio"),
];

/// Returns whose server a provider instance talks to: its preset, else what its host says, else [`GENERIC_VENDOR`].
///
/// The preset `openai` with the host of somebody else is not OpenAI.
pub(crate) fn vendor(config: &ProviderConfig) -> &str {
    let preset = config.preset.as_str();
    let is_wire = matches!(config.kind, ProviderKind::Chat | ProviderKind::Responses);
    if is_wire && !matches!(preset, "" | "openai" | GENERIC_VENDOR) {
        return preset;
    }
    let host = host_of(&config.base_url);
    let is_at = |known: &str| {
        let before = host.strip_suffix(known);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let known = HOSTS.into_iter().find(|(known, _)| is_at(known));
    known.map_or(GENERIC_VENDOR, |(_, vendor)| vendor)
}

/// Returns host and port of a URL.
pub(crate) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Whether a model of OpenAI's own API reasons: `o1` and later, `gpt-5` and later but its chat models.
pub(crate) fn is_openai_reasoner(model: &str) -> bool {
    let leading_number = |text: &str| -> Option<u32> {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    if let Some(version) = model.strip_prefix("gpt-") {
        let major = leading_number(version);
        return major.is_some_and(|major| major >= 5) && !version.contains("-chat");
    }
    let number = model.strip_prefix('o').and_then(leading_number);
    number.is_some() || model.starts_with("codex")
}

/// Returns the URL of a path such as `chat/completions` below a base URL with or without `/v1`.
///
/// A base that has a version in its path, or ends in the path itself, is taken as it is:
/// `https://api.groq.com/openai/v1`, `…/v1beta/openai`, `…/paas/v4`.
pub(crate) fn url(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    for endpoint in ["/chat/completions", "/responses"] {
        if let Some(root) = base.strip_suffix(endpoint) {
            return format!("{root}/{path}");
        }
    }
    let is_version = |segment: &str| {
        let rest = segment.strip_prefix('v');
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let (_, place) = base.split_once("://").unwrap_or(("", base));
    match place.split('/').skip(1).any(is_version) {
        true => format!("{base}/{path}"),
        false => format!("{base}/v1/{path}"),
    }
}

#[cfg(test)]
mod tests;

//! Tells an error's kind from its status, its codes and, where vendors leave no other way, its text.
//!
//! The order is the point: money and an overfull context hide behind 400, 403 and 429, so they are
//! looked for first; then the status decides; words decide alone only where there is no status,
//! inside a stream. Words as of 2026-11-20.

use super::ErrorKind;
use super::payload::Said;

/// Texts that mean money where the code does not.
const QUOTA_TEXTS: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient quota",
    "out of credits",
    "requires more credits",
    "not enough credits",
    "more credits are required",
    "purchase credits",
    "purchase more credits",
    "spend limit",
    "spending limit",
    "usage limit reached",
    "usage limit has been reached",
    "you've hit your usage limit",
    "specified api usage limits",
    "key limit exceeded",
    "billing details",
    "billing hard limit",
    "enable billing",
    // OpenAI's; Gemini also uses it for a limit per minute.
    "exceeded your current quota",
];

/// Texts of a conversation that does not fit; each needs the other word of its pair as well.
const CONTEXT_TEXTS: &[(&str, &str)] = &[
    ("prompt is too long", ""),
    ("prompt too long", ""),
    ("input is too long", ""),
    ("total length of all messages is too long", ""),
    ("context length", "maximum"),
    ("context length", "max "),
    ("context length", "exceed"),
    ("context length", "greater than"),
    ("context length", "not enough"),
    ("context length", "larger than"),
    ("context limit", "exceed"),
    ("context size", "exceed"),
    ("context window", "exceed"),
    ("context window", "too large"),
    ("context window", "too long"),
    ("context window", "does not fit"),
    ("maximum prompt length", ""),
    ("maximum number of tokens", "exceed"),
    ("maximum number of input tokens", "exceed"),
    ("maximum input length", ""),
    ("token limit", "prompt"),
    ("token count", "exceeds the maximum"),
    ("reduce the length of the", "message"),
    ("reduce the length of the", "prompt"),
    ("reduce the length of the", "input"),
    ("too many tokens", "context"),
];

const NO_TOOLS_TEXTS: &[&str] = &[
    "support tool",
    "support function call",
    "tools are not supported",
    "tools is not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not supported",
    "function calling is not enabled",
    "--enable-auto-tool-choice",
];

/// Texts of a filter that refused the input.
const FILTER_TEXTS: &[&str] = &[
    "content management policy",
    "content filtering policy",
    "content policy",
    "usage policy",
    "usage policies",
    "input was flagged",
    "prompt was flagged",
    "flagged as potentially",
    "flagged by",
    "data may contain inappropriate content",
    "unsafe or sensitive content",
];

/// Texts that say "too busy" whatever 5xx they come with.
const BUSY_TEXTS: &[&str] = &["overloaded", "server busy", "at capacity", "over capacity"];

/// Returns the kind. `status` is the effective one, 300 and above, or `None` inside a stream that
/// names none; `names_delay` is whether the error says when to come back.
pub(super) fn kind(status: Option<u16>, said: &Said, names_delay: bool) -> ErrorKind {
    let codes: Vec<String> = [&said.code, &said.inner_code, &said.error_type]
        .into_iter()
        .flatten()
        .map(|code| code.to_ascii_lowercase())
        .collect();
    if let Some(kind) = hidden(status, &codes, &said.searched, names_delay) {
        return kind;
    }
    match status {
        Some(status) => by_status(status, &codes, &said.searched),
        None => by_words(&codes, &said.searched),
    }
}

/// Finds what hides behind another status.
fn hidden(
    status: Option<u16>,
    codes: &[String],
    text: &str,
    names_delay: bool,
) -> Option<ErrorKind> {
    let has = |kind| codes.iter().any(|code| by_code(code) == Some(kind));
    let says = |known: &[&str]| known.iter().any(|known| text.contains(known));
    let is_load =
        matches!(status, Some(425 | 429)) || by_codes(codes) == Some(ErrorKind::RateLimit);
    let is_no_money = matches!(status, Some(401 | 404 | 500..)) || (is_load && names_delay);
    if status == Some(402) || has(ErrorKind::Quota) || (!is_no_money && says(QUOTA_TEXTS)) {
        return Some(ErrorKind::Quota);
    }
    if has(ErrorKind::ContextLength) || (!is_load && overflows(text)) {
        return Some(ErrorKind::ContextLength);
    }
    if matches!(status, None | Some(400 | 404 | 405 | 422)) && lacks_tools(text) {
        return Some(ErrorKind::NoTools);
    }
    let may_be_filtered = matches!(status, None | Some(400 | 403 | 422 | 451));
    (has(ErrorKind::ContentFilter) || (may_be_filtered && says(FILTER_TEXTS)))
        .then_some(ErrorKind::ContentFilter)
}

/// Whether a text in lower case says that a model, or a server, has no tools.
pub(crate) fn lacks_tools(text: &str) -> bool {
    NO_TOOLS_TEXTS.iter().any(|known| text.contains(known))
}

fn overflows(text: &str) -> bool {
    CONTEXT_TEXTS
        .iter()
        .any(|(words, others)| text.contains(words) && text.contains(others))
}

fn by_status(status: u16, codes: &[String], text: &str) -> ErrorKind {
    match status {
        300..=399 => ErrorKind::Protocol,
        401 if !codes.iter().any(|code| code == "permission_error") => ErrorKind::Authentication,
        401 | 403 => ErrorKind::Permission,
        404 | 410 => ErrorKind::NotFound,
        // A gateway's 504, 522 and 524 are its server's failure; 408 is the server's own patience.
        408 => ErrorKind::Timeout,
        409 => ErrorKind::Conflict,
        413 => ErrorKind::TooLarge,
        425 | 429 => ErrorKind::RateLimit,
        // Groq: the flex tier is full.
        498 | 503 | 529 => ErrorKind::Overloaded,
        500.. if busy(codes, text) => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        // Some gateways answer each failure of theirs with 400.
        400 => by_codes(codes)
            .filter(|kind| {
                matches!(
                    kind,
                    ErrorKind::Overloaded
                        | ErrorKind::RateLimit
                        | ErrorKind::Authentication
                        | ErrorKind::Permission
                        | ErrorKind::Compaction
                )
            })
            .unwrap_or(ErrorKind::InvalidRequest),
        _ => ErrorKind::InvalidRequest,
    }
}

/// A stream that is already 200 has only words; without known ones nothing was said.
fn by_words(codes: &[String], text: &str) -> ErrorKind {
    if busy(codes, text) {
        return ErrorKind::Overloaded;
    }
    by_codes(codes).unwrap_or_else(|| {
        if text.contains("rate limit") || text.contains("too many requests") {
            ErrorKind::RateLimit
        } else {
            ErrorKind::Unknown
        }
    })
}

fn busy(codes: &[String], text: &str) -> bool {
    by_codes(codes) == Some(ErrorKind::Overloaded)
        || BUSY_TEXTS.iter().any(|known| text.contains(known))
}

/// The first code that is known decides: code, inner code, type.
fn by_codes(codes: &[String]) -> Option<ErrorKind> {
    codes.iter().find_map(|code| by_code(code))
}

/// What a code or a type alone means.
fn by_code(code: &str) -> Option<ErrorKind> {
    Some(match code.strip_suffix("_error").unwrap_or(code) {
        "insufficient_quota"
        | "exceeded_current_quota"
        | "billing"
        | "billing_not_active"
        | "billing_hard_limit_reached"
        | "credit_balance_exhausted"
        | "insufficient_credits"
        | "insufficient_balance"
        | "insufficient_funds"
        | "payment_required"
        | "enforced_spend_limit_reached"
        | "contract_spend_limit_reached"
        | "spend_limit_reached"
        | "usage_limit_reached"
        | "usage_not_included" => ErrorKind::Quota,
        "context_length_exceeded"
        | "context_window_exceeded"
        | "model_context_window_exceeded"
        | "exceed_context_size"
        | "too_many_prompt_tokens"
        | "max_prompt_tokens_exceeded"
        | "model_max_prompt_tokens_exceeded" => ErrorKind::ContextLength,
        "content_filter"
        | "content_policy_violation"
        | "responsibleaipolicyviolation"
        | "data_inspection_failed"
        | "moderation"
        | "bio_policy"
        | "cyber_policy"
        | "cyber_policy_violation"
        | "misalignment_policy_violation"
        | "sensitive_content" => ErrorKind::ContentFilter,
        "overloaded"
        | "server_is_overloaded"
        | "engine_overloaded"
        | "model_overloaded"
        | "service_unavailable"
        | "unavailable"
        | "insufficient_system_resource"
        | "capacity_exceeded" => ErrorKind::Overloaded,
        "rate_limit"
        | "rate_limit_exceeded"
        | "rate_limit_reached"
        | "rate_limited"
        | "too_many_requests"
        | "resource_exhausted"
        | "throttling"
        | "slow_down"
        | "ramp_limit_exceeded" => ErrorKind::RateLimit,
        "timeout" | "deadline_exceeded" => ErrorKind::Timeout,
        "api"
        | "server"
        | "internal"
        | "internal_server"
        | "internalservererror"
        | "upstream"
        | "provider" => ErrorKind::Server,
        "permission" | "permission_denied" | "request_forbidden" => ErrorKind::Permission,
        "not_found" | "model_not_found" | "notfounderror" | "deploymentnotfound" => {
            ErrorKind::NotFound
        }
        // A request for one may be refused for other things; there is no repair for those.
        "compaction_block_ambiguous"
        | "compaction_block_misplaced"
        | "compaction_content_mismatch"
        | "compaction_signature_invalid"
        | "compaction_tool_changes_mismatch" => ErrorKind::Compaction,
        "request_too_large" => ErrorKind::TooLarge,
        "conflict" => ErrorKind::Conflict,
        "invalid_request"
        | "invalid_argument"
        | "invalid_prompt"
        | "badrequesterror"
        | "bad_request"
        | "data_residency_mismatch" => ErrorKind::InvalidRequest,
        "invalid_api_key" | "authentication" | "unauthenticated" | "unauthorized" => {
            ErrorKind::Authentication
        }
        _ => return None,
    })
}

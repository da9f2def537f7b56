//! What goes wrong between the daemon and a provider, in one type.
//!
//! Classification of statuses, bodies and errors inside a stream lives here, for all wire formats:
//! vendors borrow each other's words. Whether to try again is `retry`'s to say.

mod classify;
mod delay;
mod payload;
mod redact;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MAX_CALLS;
use super::gate::QueuePosition;
pub(crate) use classify::lacks_tools;
use payload::Said;
pub(crate) use redact::{REDACTED, safe_message};

/// A provider's failure, safe to show: no key, no URL with credentials, no stack.
#[derive(Clone, Debug, Default, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// The provider's own message where it sent one, at most 2 KiB.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's own error type, e.g. `overloaded_error`.
    pub error_type: Option<String>,
    /// The provider's own code, numbers as text.
    pub code: Option<String>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The provider's own word on whether the same request may succeed later (`x-should-retry`).
    pub should_retry: Option<bool>,
    /// Whether nothing was sent, because the provider is known to be busy; it does not count as an attempt.
    pub not_sent: bool,
    /// How many requests in a row it has refused, of whichever conversation; see `retry::Failures`. `None`
    /// where the failure is not about load, and so says nothing of others.
    pub consecutive_failures: Option<u32>,
    /// Whether it came from no server but from a script.
    pub scripted: bool,
    /// Where a conversation does not fit: the server on which the user can widen the window.
    pub widens: Option<WiderWindow>,
    /// Where a conversation does not fit: the tokens of the window, if the server names them.
    pub window: Option<NonZeroU32>,
    /// Where the turn waits, with others, for a provider that is known to be busy.
    pub(crate) position: Option<Arc<QueuePosition>>,
}

/// Servers whose window is the user's own to widen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WiderWindow {
    /// llama.cpp's server.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
    /// vLLM.
    Vllm,
}

impl WiderWindow {
    /// Returns what to do there where a conversation does not fit.
    pub fn advice(self) -> &'static str {
        match self {
            Self::LlamaCpp => {
                "start a new conversation, or restart llama.cpp with a larger context (llama-server -c TOKENS)"
            }
            Self::LmStudio => {
                "start a new conversation, or load the model with a larger context in LM Studio"
            }
            Self::Ollama => {
                "start a new conversation, or set a larger providers.NAME.num_ctx where model and memory allow it"
            }
            Self::Vllm => {
                "start a new conversation, or restart vLLM with a larger context (--max-model-len)"
            }
        }
    }
}

impl ProviderError {
    /// An error without status, type, code or delay.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            ..Self::default()
        }
    }

    /// Waits for the delay before the next attempt, or for less where the provider turns out to have time.
    pub async fn wait(&self, delay: Duration) {
        match &self.position {
            Some(position) => position.wait(delay).await,
            None => tokio::time::sleep(delay).await,
        }
    }

    /// Reads the answer of an HTTP status that is not 2xx, whoever sent it.
    pub fn from_response(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let said = match payload::find(&text) {
            Some(value) => Said::of_json(&value),
            None => Said::of_text(&text, headers, status),
        };
        let mut error = Self::from_said(said, Some(status));
        error.should_retry = delay::should_retry(headers);
        if error.is_about_load() {
            error.retry_after = delay::from_headers(headers, SystemTime::now())
                .or(error.retry_after)
                .or_else(|| delay::from_limits(status, headers, SystemTime::now()));
        }
        error
    }

    /// Reads an error object: a whole body, a frame of a stream, or the `error` inside of one.
    ///
    /// `status` is the HTTP status where the error did not come inside a 200 stream; there, what the
    /// object says of a status counts.
    pub fn from_payload(payload: &Value, status: Option<u16>) -> Self {
        Self::from_said(Said::of_json(payload), status)
    }

    fn from_said(said: Said, status: Option<u16>) -> Self {
        let failing = status.filter(|status| *status >= 300).or(said.status);
        let retry_after = said
            .retry_after
            .or_else(|| delay::from_text(&said.searched));
        let kind = classify::kind(failing, &said, retry_after.is_some());
        let does_not_fit = kind == ErrorKind::ContextLength;
        // A word of llama.cpp's alone, which has it on each of the three APIs that it speaks.
        let is_llama_cpp = said.error_type.as_deref() == Some("exceed_context_size_error");
        Self {
            kind,
            widens: (does_not_fit && is_llama_cpp).then_some(WiderWindow::LlamaCpp),
            window: said.window.filter(|_| does_not_fit),
            message: said.shown(),
            status,
            error_type: said.error_type,
            code: said.code,
            retry_after: retry_after.filter(|_| kind.is_about_load()),
            ..Self::default()
        }
    }

    /// Adds advice to an error of a conversation that does not fit; any other stays as it is.
    #[must_use]
    pub(super) fn widened_at(mut self, server: WiderWindow) -> Self {
        if self.kind == ErrorKind::ContextLength {
            self.widens = Some(server);
        }
        self
    }

    pub(crate) fn too_many_calls() -> Self {
        let message = format!("the answer has more than {MAX_CALLS} tool calls and was given up");
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn too_large(most: usize) -> Self {
        let message = format!("the answer is larger than {most} bytes");
        Self::new(ErrorKind::Protocol, message)
    }

    /// Whether it is a mistake of the model that it can mend once it knows.
    ///
    /// Groq checks calls against their schema and ends the answer with `tool_use_failed`
    /// (`docs/providers.md`, "Chat Completions: requests"). Its provider adds that to the request when the turn
    /// runs again.
    pub fn is_model_mistake(&self) -> bool {
        self.code.as_deref() == Some("tool_use_failed")
    }

    /// Whether the vendor's own compaction may be why a request that begins with one is refused: it is named.
    pub(crate) fn names_compaction(&self) -> bool {
        let is_refusal = self.kind == ErrorKind::InvalidRequest && !self.is_model_mistake();
        let names = || self.message.to_lowercase().contains("compaction");
        self.kind == ErrorKind::Compaction || (is_refusal && names())
    }

    /// Whether the provider is, or says it is, busy.
    pub(super) fn is_about_load(&self) -> bool {
        self.kind.is_about_load()
    }
}

/// What sort of failure it is. A kind exists where somebody acts on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection: refused, reset before the headers, no such host, TLS.
    Connect,
    /// Too slow: connecting, first byte, or silence.
    Timeout,
    /// 429 and its like.
    RateLimit,
    /// 529, 503 and errors that say so.
    Overloaded,
    /// Other 5xx.
    Server,
    /// The stream ended before its end marker.
    IncompleteStream,
    /// The answer is not what the wire format allows: HTML, garbage, a broken frame.
    Protocol,
    /// 400, 404 on the path, 422: the request itself.
    InvalidRequest,
    /// 401: the key is missing or wrong.
    Authentication,
    /// 403: the key may not do this.
    Permission,
    /// Money: credits, billing, a spend limit.
    Quota,
    /// The model does not exist there.
    NotFound,
    /// 413: the request is too large.
    TooLarge,
    /// The conversation does not fit the model's context.
    ContextLength,
    /// The provider's filter refused the input.
    ContentFilter,
    /// 409.
    Conflict,
    /// The vendor's own compaction, which the conversation begins with, is not accepted.
    Compaction,
    /// The model has no tools.
    NoTools,
    /// The provider instance lacks its key or another setting.
    NotConfigured,
    /// An error that says nothing.
    #[default]
    Unknown,
}

impl ErrorKind {
    /// Whether the provider is, or says it is, busy: only then does a delay it names mean anything.
    /// Spent money counts: it may come back at a time that is named.
    fn is_about_load(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Server
                | Self::Timeout
                | Self::Quota
                | Self::Unknown
        )
    }
}

#[cfg(test)]
mod tests;

//! What spans say of exchanges and of requests to models, for whoever is sent them.

use tracing::Span;

use super::context::Context;
use super::{Ended, failure};
use crate::message::{Money, Usage};
use crate::protocol::word;
use crate::provider::{ProviderError, Stop};
use crate::telemetry::traces::{self, Tokens};

/// Returns the span of a request to a model; `purpose` is what it is for.
pub(crate) fn of_request(purpose: &'static str, provider: &str, model: &str) -> Span {
    let span = tracing::info_span!("request");
    traces::requested(&span, purpose, provider, model);
    span
}

/// Ends the span of a request with what the model answered.
pub(crate) fn answered(span: &Span, stop: Stop, usage: &Usage) {
    let stop = match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Refusal => "refusal",
        Stop::ContentFilter => "content_filter",
        Stop::Pause => "pause_turn",
    };
    traces::answered(span, stop, tokens(usage));
}

/// Ends the span of a request with the sort of its failure.
pub(crate) fn failed(span: &Span, error: &ProviderError) {
    traces::failed(span, &word(&failure::meaning(error.kind).0));
}

/// Ends the span of a request that nobody wanted an answer to any more.
pub(crate) fn cancelled(span: &Span) {
    traces::failed(span, "cancelled");
}

/// Ends the span of an exchange with what it came to.
pub(crate) fn ended(span: &Span, ended: &Ended, context: &Context) {
    let conversation = context.conversation.id.to_string();
    traces::exchange_of(span, context.session.id.as_str(), &conversation);
    let error = ended.error.as_ref().map(|error| word(&error.code));
    let cost = ended.spent.cost.whole().map(Money::dollars);
    let tokens = tokens(&ended.spent.usage);
    traces::exchange_ended(span, &word(&ended.stop), error.as_deref(), tokens, cost);
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
    }
}

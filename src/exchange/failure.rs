//! What a client is told where an exchange goes wrong.

use crate::message::{ConversationId, MessageId};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::provider::{ErrorKind, ProviderError};

/// Turns a provider's failure into the client's words.
pub fn from_provider(
    error: &ProviderError,
    provider: &str,
    conversation_id: &ConversationId,
    message_id: &MessageId,
) -> ChatError {
    let (code, hint) = meaning(error.kind);
    ChatError {
        conversation_id: conversation_id.clone(),
        message_id: Some(message_id.clone()),
        code,
        message: error.message.clone(),
        hint: hint.map(|hint| hint.replace("NAME", provider)),
        retryable: is_transient(error.kind),
        http_status: error.status,
        retry_after_ms: error
            .retry_after
            .map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        provider: Some(provider.to_owned()),
    }
}

/// Whether the same request may well work later.
pub fn is_transient(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::RateLimit
            | ErrorKind::Overloaded
            | ErrorKind::Server
            | ErrorKind::IncompleteStream
            | ErrorKind::Protocol
    )
}

/// The code of a failure, and what to do about it.
pub fn meaning(kind: ErrorKind) -> (ChatCode, Option<&'static str>) {
    match kind {
        ErrorKind::Connect => (
            ChatCode::ProviderUnavailable,
            Some("check that the provider runs and that providers.NAME.base_url is right"),
        ),
        ErrorKind::Server | ErrorKind::Unknown => (ChatCode::ProviderUnavailable, None),
        ErrorKind::Conflict => (ChatCode::ProviderUnavailable, None),
        ErrorKind::Timeout => (
            ChatCode::ProviderTimeout,
            Some("a slow model may need a longer providers.NAME.timeout_first_byte"),
        ),
        ErrorKind::RateLimit => (ChatCode::ProviderRateLimited, Some("try again later")),
        ErrorKind::Overloaded => (ChatCode::ProviderOverloaded, Some("try again later")),
        ErrorKind::IncompleteStream | ErrorKind::Protocol => (
            ChatCode::ProviderProtocol,
            Some("check that providers.NAME.base_url names the provider's API and not a web page"),
        ),
        ErrorKind::InvalidRequest | ErrorKind::TooLarge | ErrorKind::ContentFilter => {
            (ChatCode::ProviderInvalidRequest, None)
        }
        ErrorKind::NotFound => (
            ChatCode::ProviderInvalidRequest,
            Some("ask for the models there are with model:list"),
        ),
        ErrorKind::Authentication | ErrorKind::Permission => (
            ChatCode::ProviderAuth,
            Some("set another key with provider:configure or in providers.NAME.api_key"),
        ),
        ErrorKind::Quota => (
            ChatCode::ProviderQuota,
            Some("look at the provider's billing page"),
        ),
        ErrorKind::ContextLength => (
            ChatCode::ContextOverflow,
            Some("start a new conversation or send a shorter history"),
        ),
        ErrorKind::NoTools => (
            ChatCode::ModelNoTools,
            Some("choose a model with supportsTools from model:list"),
        ),
        ErrorKind::NotConfigured => (
            ChatCode::ProviderNotConfigured,
            Some("set its key with provider:configure or in providers.NAME.api_key"),
        ),
    }
}

//! The errors that a client gets where an exchange goes wrong.

use super::context::Setup;
use super::history::Full;
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::provider::retry::may_pass;
use crate::provider::{ErrorKind, ProviderError, WiderWindow};

pub(crate) fn from_provider(error: &ProviderError, setup: &Setup) -> ChatError {
    ChatError {
        hint: hint(error, &setup.provider_id),
        retryable: may_pass(error),
        http_status: error.status,
        // No shorter than the delay.
        retry_after_ms: error
            .retry_after
            .map(|delay| u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)),
        provider: Some(setup.provider_id.clone()),
        ..setup.error(meaning(error.kind).0, &error.message)
    }
}

/// Returns what to do about an error of a provider instance.
fn hint(error: &ProviderError, provider: &str) -> Option<String> {
    // A script has no address, no key and no patience to set; no setting makes a server's patience longer.
    let is_servers = error.kind == ErrorKind::Timeout && error.status.is_some_and(|it| it >= 300);
    if error.scripted || is_servers {
        return None;
    }
    let own = error.widens.map(WiderWindow::advice);
    let hint = own.or(meaning(error.kind).1)?;
    Some(hint.replace("NAME", provider))
}

/// Returns the error of an exchange whose messages there is no room to remember.
pub(crate) fn history_full(full: Full, setup: &Setup) -> ChatError {
    let hint = match full {
        Full::Conversation(_) => {
            "send it in another conversation, or with a `history` of fewer messages; what is remembered stays"
        }
        Full::Daemon(_) => "close conversations that are not needed with chat:close",
    };
    ChatError {
        hint: Some(hint.to_owned()),
        ..setup.error(ChatCode::HistoryFull, full.to_string())
    }
}

/// Returns the code of a failure, and what to do about it.
pub(crate) fn meaning(kind: ErrorKind) -> (ChatCode, Option<&'static str>) {
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
        ErrorKind::IncompleteStream => (ChatCode::ProviderProtocol, None),
        ErrorKind::Protocol => (
            ChatCode::ProviderProtocol,
            Some("check that providers.NAME.base_url names the provider's API and not a web page"),
        ),
        ErrorKind::InvalidRequest
        | ErrorKind::TooLarge
        | ErrorKind::ContentFilter
        | ErrorKind::Compaction => (ChatCode::ProviderInvalidRequest, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_own_advice_stands_in_for_that_of_the_kind() {
        let mut error = ProviderError::new(ErrorKind::ContextLength, "too long");
        error.widens = Some(WiderWindow::Ollama);
        let hint = hint(&error, "local").unwrap();
        assert!(hint.contains("larger providers.local.num_ctx"), "{hint}");
    }

    #[test]
    fn the_hint_is_about_whose_patience_ended() {
        for (status, has_hint) in [(None, true), (Some(200), true), (Some(408), false)] {
            let error = ProviderError {
                status,
                ..ProviderError::new(ErrorKind::Timeout, "slow")
            };
            assert_eq!(hint(&error, "p").is_some(), has_hint, "{status:?}");
        }
    }
}

//! The errors that a client gets where an exchange goes wrong.

use super::context::Setup;
use super::history::Full;
use crate::message::{BudgetScope, Money};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::provider::retry::may_pass;
use crate::provider::{ErrorKind, ProviderError, WiderWindow};
use crate::spend::{Reached, Spend};

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

/// Returns the error of an exchange whose answer does not have the form that its send asks for.
pub(super) fn invalid_output(setup: &Setup, message: String) -> ChatError {
    let hint =
        "ask for a simpler schema, or another model; what it answered is in the conversation";
    ChatError {
        hint: Some(hint.to_owned()),
        ..setup.error(ChatCode::OutputInvalid, message)
    }
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

/// Returns the error of a request that a cap does not allow, which nobody may raise here.
pub(crate) fn budget_exhausted(
    reached: &Reached,
    next: Option<Money>,
    setup: &Setup,
    spend: &Spend,
) -> ChatError {
    let scope = reached.cap.scope;
    let is_of_day = matches!(
        scope,
        BudgetScope::User | BudgetScope::Daemon | BudgetScope::Provider
    );
    let is_locked = !reached.cap.may_raise;
    let resets_at = is_of_day.then(|| format!("{:.3}", spend.days().next(spend.now())));
    let hint = match scope {
        BudgetScope::Task => "ask for less in one task",
        BudgetScope::Exchange if is_locked => {
            "send less, or have the operator raise budget.exchange, which they locked"
        }
        BudgetScope::Exchange => "send a larger limits.maxCostUsd, or raise budget.exchange",
        BudgetScope::Conversation => {
            "go on in another conversation, or raise budget.conversation in the configuration"
        }
        BudgetScope::Session if is_locked => {
            "go on in another session, or have the operator raise budget.session, which they locked"
        }
        BudgetScope::Session => {
            "raise it with session:configure (budget.maxCostUsd), or budget.session in the configuration"
        }
        BudgetScope::User => "wait for the next day, or raise budget.user_day in the configuration",
        BudgetScope::Daemon => {
            "wait for the next day, or raise budget.daemon_day in the configuration"
        }
        BudgetScope::Provider => {
            "wait for the next day, choose another provider, or raise budget.provider.NAME.day in the configuration"
        }
    };
    // What runs beside it may cost less than was expected.
    let is_reserved = reached.stand.reserved > Money::ZERO;
    let hint = match is_reserved {
        true => "requests that run have the rest of it reserved: send it again when they are over",
        false => hint,
    };
    ChatError {
        hint: Some(hint.replace("NAME", &setup.provider_id)),
        retryable: is_reserved,
        scope: Some(scope),
        resets_at,
        ..setup.error(ChatCode::BudgetExhausted, cap_reached(reached, next))
    }
}

/// Says that a cap is reached.
pub(crate) fn cap_reached(reached: &Reached, next: Option<Money>) -> String {
    let reserved = match reached.stand.reserved {
        reserved if reserved > Money::ZERO => {
            format!(", {reserved} are reserved for requests that run")
        }
        _ => String::new(),
    };
    let next = next.map_or_else(
        || "nothing is left for another request".to_owned(),
        |next| format!("the next request, about {next}, does not fit"),
    );
    format!(
        "{} of {} are spent of what {} may cost{reserved}, and {next}",
        reached.stand.spent,
        reached.stand.limit,
        reached.cap.scope.words()
    )
}

/// Returns the error of a model of which nobody knows what it costs, where this is capped.
pub(crate) fn not_priced(scope: BudgetScope, setup: &Setup) -> ChatError {
    let hint = "choose a model with `pricing` from model:list, set providers.NAME.pricing, or allow it with budget.unpriced = \"allow\"";
    ChatError {
        hint: Some(hint.replace("NAME", &setup.provider_id)),
        provider: Some(setup.provider_id.clone()),
        scope: Some(scope),
        ..setup.error(
            ChatCode::ModelNotPriced,
            format!(
                "what {} may cost is capped, and nobody knows what model `{}` of provider `{}` costs",
                scope.words(),
                setup.model,
                setup.provider_id
            ),
        )
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

//! The provider modules, made as the daemon makes them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use outrigger::config::{ProviderConfig, ProviderKind, RateLimits};
use outrigger::provider::{Clients, Provider, registry};
use secrecy::SecretString;

static CLIENTS: LazyLock<Clients> = LazyLock::new(Clients::default);

/// Makes the provider that speaks a wire format with a server; `None` for a format without turns.
pub(crate) fn provider(api: &str, base_url: &str) -> Option<Arc<dyn Provider>> {
    let (kind, preset) = match api {
        "anthropic-messages" => (ProviderKind::Anthropic, "anthropic"),
        "openai-chat" => (ProviderKind::Chat, "openai"),
        "openai-responses" => (ProviderKind::Responses, "openai"),
        "ollama-chat" => (ProviderKind::Ollama, "ollama"),
        _ => return None,
    };
    Some(registry::make(
        config(kind, preset, base_url),
        CLIENTS.clone(),
    ))
}

fn config(kind: ProviderKind, preset: &str, base_url: &str) -> Arc<ProviderConfig> {
    Arc::new(ProviderConfig {
        id: "recorded".into(),
        kind,
        preset: preset.into(),
        base_url: base_url.into(),
        api_key: Some(SecretString::from("key-of-nobody".to_owned())),
        key_optional: false,
        model: String::new(),
        headers: BTreeMap::new(),
        timeout_first_byte: Duration::from_secs(60),
        timeout_idle: Duration::from_secs(60),
        max_retries: 0,
        restart_after_partial: 0,
        num_ctx: None,
        script: None,
        ca_file: None,
        record: None,
        pricing: None,
        rates: RateLimits::default(),
    })
}

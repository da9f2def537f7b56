//! The provider modules, made as the daemon makes them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use outrigger::config::{ProviderConfig, ProviderKind};
use outrigger::provider::anthropic::Anthropic;
use outrigger::provider::chat::Chat;
use outrigger::provider::ollama::Ollama;
use outrigger::provider::responses::Responses;
use outrigger::provider::{Clients, Provider};
use secrecy::SecretString;

static CLIENTS: LazyLock<Clients> = LazyLock::new(Clients::default);

/// Whether there is a module for a wire format.
pub(crate) fn is_built(api: &str) -> bool {
    provider(api, "http://127.0.0.1:1").is_some()
}

/// Makes the provider that speaks a wire format with a server.
pub(crate) fn provider(api: &str, base_url: &str) -> Option<Box<dyn Provider>> {
    let clients = CLIENTS.clone();
    let config = |kind, preset| config(kind, preset, base_url);
    Some(match api {
        "anthropic-messages" => Box::new(Anthropic::new(
            config(ProviderKind::Anthropic, "anthropic"),
            clients,
        )),
        "openai-chat" => Box::new(Chat::new(config(ProviderKind::Chat, "openai"), clients)),
        "openai-responses" => Box::new(Responses::new(
            config(ProviderKind::Responses, "openai"),
            clients,
        )),
        "ollama-chat" => Box::new(Ollama::new(config(ProviderKind::Ollama, "ollama"), clients)),
        _ => return None,
    })
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
    })
}

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

/// Makes the provider that speaks a wire format with a server; `None` for a format without turns.
pub(crate) fn provider(api: &str, base_url: &str) -> Option<Box<dyn Provider>> {
    let clients = CLIENTS.clone();
    Some(match api {
        "anthropic-messages" => {
            let config = config(ProviderKind::Anthropic, "anthropic", base_url);
            Box::new(Anthropic::new(config, clients))
        }
        "openai-chat" => {
            let config = config(ProviderKind::Chat, "openai", base_url);
            Box::new(Chat::new(config, clients))
        }
        "openai-responses" => {
            let config = config(ProviderKind::Responses, "openai", base_url);
            Box::new(Responses::new(config, clients))
        }
        "ollama-chat" => {
            let config = config(ProviderKind::Ollama, "ollama", base_url);
            Box::new(Ollama::new(config, clients))
        }
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

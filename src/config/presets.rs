//! What is known of each vendor's endpoint before anybody configures it.
//!
//! Pure data: nothing here reads the environment or connects. What a preset's server does
//! differently on the wire is in `quirks`; what its models can do and cost is in `models`.

use std::time::Duration;

use super::ProviderKind;

/// Longest wait for headers and longest silence with a vendor in the cloud.
pub(crate) const HOSTED: Duration = Duration::from_secs(120);
/// The same with a server on the user's machine: it loads the model and reads the whole prompt
/// before its first byte, and sends no pings meanwhile (`docs/providers.md`, "Silence and timeouts").
const LOCAL: Duration = Duration::from_secs(600);

/// The defaults of one vendor's endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The word for it in `kind = "…"`, and the usual name of an instance.
    pub name: &'static str,
    /// Which wire format it speaks.
    pub kind: ProviderKind,
    /// Base URL without a trailing slash; the wire's own path comes after it.
    pub base_url: &'static str,
    /// The environment variable that holds its key.
    pub key_variable: &'static str,
    /// Whether it works without a key.
    pub key_optional: bool,
    /// The default model; empty to take the first that the endpoint lists.
    pub model: &'static str,
    /// Longest wait for the response headers.
    pub timeout_first_byte: Duration,
    /// Longest silence within a response.
    pub timeout_idle: Duration,
}

const fn hosted(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    key_variable: &'static str,
    model: &'static str,
) -> Preset {
    Preset {
        name,
        kind,
        base_url,
        key_variable,
        key_optional: false,
        model,
        timeout_first_byte: HOSTED,
        timeout_idle: HOSTED,
    }
}

const fn local(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    key_variable: &'static str,
) -> Preset {
    Preset {
        name,
        kind,
        base_url,
        key_variable,
        key_optional: true,
        model: "",
        timeout_first_byte: LOCAL,
        timeout_idle: LOCAL,
    }
}

/// All presets, in the order in which one is chosen where several have a key: the vendors that
/// only serve their own models, then those that resell, then the user's own machine.
///
/// URLs and ports: `docs/providers.md`, "Endpoints and keys". Default models: `config/models.toml`.
static PRESETS: [Preset; 12] = [
    hosted(
        "anthropic",
        ProviderKind::Anthropic,
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "claude-sonnet-5-5",
    ),
    hosted(
        "openai",
        ProviderKind::Responses,
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "gpt-5.6-terra",
    ),
    hosted(
        "deepseek",
        ProviderKind::Chat,
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
        "deepseek-flash",
    ),
    hosted(
        "gemini",
        ProviderKind::Chat,
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-3.8-flash",
    ),
    hosted(
        "mistral",
        ProviderKind::Chat,
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        "mistral-medium-latest",
    ),
    hosted(
        "xai",
        ProviderKind::Chat,
        "https://api.x.ai/v1",
        "XAI_API_KEY",
        "grok-4.3",
    ),
    hosted(
        "groq",
        ProviderKind::Chat,
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        "openai/gpt-oss-120b",
    ),
    hosted(
        "openrouter",
        ProviderKind::Chat,
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "anthropic/claude-sonnet-5.5",
    ),
    local(
        "ollama",
        ProviderKind::Ollama,
        "http://127.0.0.1:11434",
        "OLLAMA_API_KEY",
    ),
    local(
        "llamacpp",
        ProviderKind::Chat,
        "http://127.0.0.1:8080/v1",
        "LLAMA_API_KEY",
    ),
    local(
        "lmstudio",
        ProviderKind::Chat,
        "http://127.0.0.1:1234/v1",
        "LMSTUDIO_API_KEY",
    ),
    local(
        "vllm",
        ProviderKind::Chat,
        "http://127.0.0.1:8000/v1",
        "VLLM_API_KEY",
    ),
];

/// Returns the preset of that name, e.g. `deepseek`.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Returns all presets, the one to prefer first.
pub fn all() -> &'static [Preset] {
    &PRESETS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_finds_its_own_preset() {
        for expected in all() {
            assert_eq!(preset(expected.name), Some(expected));
        }
        assert_eq!(preset("Deepseek"), None);
        assert_eq!(preset(""), None);
    }

    #[test]
    fn names_and_key_variables_are_unique() {
        let names: BTreeSet<_> = all().iter().map(|preset| preset.name).collect();
        let variables: BTreeSet<_> = all().iter().map(|preset| preset.key_variable).collect();
        assert_eq!(names.len(), all().len());
        assert_eq!(variables.len(), all().len());
    }

    #[test]
    fn only_servers_on_the_users_machine_go_without_key_and_tls() {
        for preset in all() {
            let loopback = preset.base_url.starts_with("http://127.0.0.1:");
            assert!(loopback || preset.base_url.starts_with("https://"));
            assert_eq!(preset.key_optional, loopback, "{}", preset.name);
            assert_eq!(preset.model.is_empty(), loopback, "{}", preset.name);
            assert_eq!(preset.timeout_idle == LOCAL, loopback, "{}", preset.name);
            assert!(!preset.base_url.ends_with('/'), "{}", preset.name);
        }
    }
}

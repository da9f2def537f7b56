use super::*;
use crate::provider::testing::config;

#[test]
fn urls_with_and_without_a_version() {
    let cases = [
        (
            "https://api.deepseek.com",
            "https://api.deepseek.com/v1/chat/completions",
        ),
        (
            "https://api.deepseek.com/",
            "https://api.deepseek.com/v1/chat/completions",
        ),
        (
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "https://api.groq.com/openai",
            "https://api.groq.com/openai/v1/chat/completions",
        ),
        (
            "https://api.groq.com/openai/v1/",
            "https://api.groq.com/openai/v1/chat/completions",
        ),
        (
            "https://openrouter.ai/api/v1",
            "https://openrouter.ai/api/v1/chat/completions",
        ),
        (
            "https://g.example/v1beta/openai",
            "https://g.example/v1beta/openai/chat/completions",
        ),
        (
            "https://z.example/api/paas/v4",
            "https://z.example/api/paas/v4/chat/completions",
        ),
        (
            "https://v1.example.com",
            "https://v1.example.com/v1/chat/completions",
        ),
        (
            "https://a.example/chat/completions",
            "https://a.example/chat/completions",
        ),
        (
            "https://a.example/v1/responses",
            "https://a.example/v1/chat/completions",
        ),
        ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
    ];
    for (base, expected) in cases {
        assert_eq!(url(base, "chat/completions"), expected, "{base}");
    }
}

#[test]
fn vendors_by_preset_and_host() {
    let cases = [
        (
            ProviderKind::Chat,
            "deepseek",
            "http://proxy.local",
            "deepseek",
        ),
        (
            ProviderKind::Chat,
            "openai",
            "https://api.openai.com/v1",
            "openai",
        ),
        (
            ProviderKind::Responses,
            "openai",
            "https://x.openai.azure.com/openai/v1",
            "openai",
        ),
        (
            ProviderKind::Chat,
            "openai",
            "https://api.groq.com/openai/v1",
            "groq",
        ),
        (
            ProviderKind::Chat,
            "openai",
            "http://localhost:11434/v1",
            "ollama",
        ),
        (
            ProviderKind::Chat,
            "openai",
            "http://127.0.0.1:8000/v1",
            "generic",
        ),
        (
            ProviderKind::Chat,
            "openai",
            "https://notapi.openai.com/v1",
            "generic",
        ),
        (ProviderKind::Chat, "", "https://api.mistral.ai", "mistral"),
        (
            ProviderKind::Chat,
            "lmstudio",
            "http://localhost:1234/v1",
            "lmstudio",
        ),
    ];
    for (kind, preset, base, expected) in cases {
        assert_eq!(
            vendor(&config(kind, preset, base)),
            expected,
            "{preset} {base}"
        );
    }
}

#[test]
fn openai_models_that_reason() {
    for model in [
        "o1",
        "o3-mini",
        "o4-mini-2025-04-16",
        "gpt-5",
        "gpt-5.4",
        "gpt-5.6-terra",
        "gpt-10",
    ] {
        assert!(is_openai_reasoner(model), "{model}");
    }
    for model in [
        "gpt-4o",
        "gpt-4.1-mini",
        "gpt-3.5-turbo",
        "gpt-5-chat-latest",
        "omni",
        "",
        "gpt-",
    ] {
        assert!(!is_openai_reasoner(model), "{model}");
    }
}

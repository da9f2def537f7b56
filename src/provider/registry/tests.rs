use std::time::Duration;

use super::*;

const KINDS: [ProviderKind; 5] = [
    ProviderKind::Anthropic,
    ProviderKind::Responses,
    ProviderKind::Chat,
    ProviderKind::Ollama,
    ProviderKind::Scripted,
];

pub(super) fn instance(id: &str, preset: &str, key: Option<&str>) -> ProviderConfig {
    let preset = presets::preset(preset).expect("a preset");
    ProviderConfig {
        id: id.to_owned(),
        api_key: key.map(SecretString::from),
        ..ProviderConfig::from(preset)
    }
}

pub(super) fn providers(configs: Vec<ProviderConfig>, default: &str) -> Providers {
    Providers::of(configs, default, None)
}

fn info(id: &str, kind: &str, base_url: &str, configured: bool, default: bool) -> ProviderInfo {
    ProviderInfo {
        id: id.to_owned(),
        kind: kind.to_owned(),
        base_url: base_url.to_owned(),
        configured,
        default,
    }
}

fn key(providers: &Providers, id: &str) -> Option<String> {
    let config = providers.find(id)?.config;
    let key = config.api_key.as_ref()?;
    Some(key.expose_secret().to_owned())
}

#[test]
fn instances_are_listed_in_order_and_a_script_is_always_there() {
    let both = vec![
        instance("work", "deepseek", Some("k")),
        instance("anthropic", "anthropic", None),
        instance("home", "ollama", None),
    ];
    let providers = providers(both, "work");
    let expected = [
        info("work", "deepseek", "https://api.deepseek.com", true, true),
        info(
            "anthropic",
            "anthropic",
            "https://api.anthropic.com",
            false,
            false,
        ),
        info("home", "ollama", "http://127.0.0.1:11434", true, false),
        info("scripted", "scripted", "", true, false),
    ];
    assert_eq!(providers.list(), expected);
    assert_eq!(providers.default_id(), "work");
    assert!(providers.get("home").is_some());
    assert!(providers.get("scripted").is_some());
    assert!(providers.get("deepseek").is_none());
}

#[test]
fn without_any_instance_the_script_answers() {
    for default in ["", "gone"] {
        let providers = providers(Vec::new(), default);
        assert_eq!(providers.default_id(), "scripted");
        assert_eq!(
            providers.list(),
            [info("scripted", "scripted", "", true, true)]
        );
    }
}

#[test]
fn a_script_of_the_configuration_is_not_doubled() {
    let mut script = ProviderConfig::from(&SCRIPTED);
    script.script = Some("/tmp/script".into());
    let providers = providers(vec![script], "scripted");
    assert_eq!(providers.list().len(), 1);
    let config = providers.find("scripted").expect("the script").config;
    assert_eq!(config.script, Some("/tmp/script".into()));
}

#[test]
fn an_instance_of_every_kind_can_be_made() {
    let configs = KINDS.map(|kind| ProviderConfig {
        id: format!("{kind:?}"),
        kind,
        ..instance("", "openai", None)
    });
    let providers = providers(configs.to_vec(), "");
    for kind in KINDS {
        let id = format!("{kind:?}");
        let provider = providers.get(&id).expect("an instance");
        let model = provider.model("some-model");
        assert_eq!((model.id.as_str(), model.provider), ("some-model", id));
    }
}

#[test]
fn a_key_comes_and_goes_and_is_reported_to_nobody() {
    let providers = providers(vec![instance("a", "anthropic", None)], "a");
    let before = providers.get("a").expect("an instance");
    let secret = |key: &str| Some(SecretString::from(key));

    let changed = providers.configure("a", secret(" sk-1\n"), None);
    let expected = info("a", "anthropic", "https://api.anthropic.com", true, true);
    assert_eq!(changed, Ok(expected.clone()));
    assert_eq!(providers.list()[0], expected);
    assert_eq!(key(&providers, "a").as_deref(), Some("sk-1"));
    assert!(
        !format!(
            "{changed:?} {:?}",
            providers.find("a").map(|found| found.config)
        )
        .contains("sk-1")
    );
    let after = providers.get("a").expect("an instance");
    assert!(!Arc::ptr_eq(&before, &after));

    assert!(
        providers
            .configure("a", None, None)
            .is_ok_and(|info| info.configured)
    );
    assert_eq!(key(&providers, "a").as_deref(), Some("sk-1"));

    let changed = providers.configure("a", secret("  "), None);
    assert_eq!(changed.map(|info| info.configured), Ok(false));
    assert_eq!(key(&providers, "a"), None);
}

#[test]
fn what_was_entrusted_to_one_server_is_not_sent_to_another() {
    // (new base URL, a key that comes with it, the key that is left)
    let cases = [
        ("https://api.deepseek.com/v1/", None, Some("old")),
        ("https://api.deepseek.com:443", None, Some("old")),
        ("https://api.deepseek.com:8443", None, None),
        ("http://api.deepseek.com", None, None),
        ("https://evil.example", None, None),
        ("https://evil.example", Some("new"), Some("new")),
    ];
    for (base_url, with, left) in cases {
        let mut config = instance("d", "deepseek", Some("old"));
        let header = ("x-team".to_owned(), "secret".into());
        config.headers.extend([header]);
        let providers = providers(vec![config], "d");
        let changed = providers.configure("d", with.map(SecretString::from), Some(base_url));
        assert!(changed.is_ok(), "{base_url}");
        assert_eq!(key(&providers, "d").as_deref(), left, "{base_url}");
        let config = providers.find("d").expect("an instance").config;
        assert_eq!(config.headers.is_empty(), left != Some("old"), "{base_url}");
        assert!(!config.base_url.ends_with('/'), "{base_url}");
    }
}

#[test]
fn a_base_url_that_cannot_be_used_changes_nothing() {
    let cases = [
        ("", "is no URL"),
        ("api.deepseek.com", "is no URL"),
        ("ftp://host", "has to begin with http:// or https://"),
        (
            "file:///etc/passwd",
            "has to begin with http:// or https://",
        ),
        (
            "https://me:pass@host",
            "must not hold a user name or password",
        ),
        ("https://host/?a=b", "must not have a query or fragment"),
        ("https://host/#a", "must not have a query or fragment"),
    ];
    for (base_url, reason) in cases {
        let providers = providers(vec![instance("d", "deepseek", Some("old"))], "d");
        let before = providers.list();
        let error = providers.configure("d", None, Some(base_url));
        let id = "d".to_owned();
        assert_eq!(error, Err(ConfigureError::BaseUrl { id, reason }));
        assert_eq!(providers.list(), before);
        assert_eq!(key(&providers, "d").as_deref(), Some("old"));
    }
    let error = providers(Vec::new(), "").configure("scripted", None, Some("http://host"));
    assert!(matches!(error, Err(ConfigureError::BaseUrl { .. })));
}

#[test]
fn a_preset_becomes_an_instance_and_other_names_do_not() {
    let providers = providers(vec![instance("home", "ollama", None)], "home");
    let changed = providers.configure("mistral", Some(SecretString::from("k")), None);
    let expected = info(
        "mistral",
        "mistral",
        "https://api.mistral.ai/v1",
        true,
        false,
    );
    assert_eq!(changed, Ok(expected));
    assert!(providers.get("mistral").is_some());
    let config = providers.find("mistral").expect("an instance").config;
    assert_eq!(config.timeout_idle, Duration::from_secs(120));

    let error = providers
        .configure("mistrall", None, None)
        .expect_err("no such name");
    let text = error.to_string();
    assert!(
        text.starts_with("there is no provider \"mistrall\", only home, scripted, mistral, "),
        "{text}"
    );
    assert!(text.contains("deepseek"), "{text}");
}

#[test]
fn clones_share_what_they_hold() {
    let providers = providers(Vec::new(), "");
    let clone = providers.clone();
    let changed = providers.configure("xai", Some(SecretString::from("k")), None);
    assert!(changed.is_ok());
    assert_eq!(clone.list(), providers.list());
}

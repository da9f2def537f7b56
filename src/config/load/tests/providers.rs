use super::*;

#[test]
fn providers_come_from_the_file_then_from_the_keys_there_are() {
    let file = "[providers.zeta]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1/'\n\
                [providers.alpha]\nkind = 'anthropic'\nbase_url = 'https://proxy.example/v1'";
    let environment = [
        ("DEEPSEEK_API_KEY", "d"),
        ("OPENAI_API_KEY", "o"),
        ("ANTHROPIC_API_KEY", "a"),
        ("OLLAMA_HOST", "0.0.0.0"),
    ];
    let loaded = toml(file).with_environment(&environment).load();
    let expected = [
        "zeta",
        "alpha",
        "anthropic",
        "openai",
        "deepseek",
        "ollama",
        "scripted",
    ];
    assert_eq!(ids(&loaded), expected);
    assert_eq!(loaded.config.chat.provider, "zeta");
    let [zeta, alpha, anthropic, openai, .., ollama, scripted] = &loaded.config.providers[..]
    else {
        panic!("seven providers");
    };
    assert_eq!(zeta.kind, ProviderKind::Chat);
    assert_eq!(zeta.base_url, "http://127.0.0.1:9/v1");
    assert_eq!(zeta.model, "");
    assert_eq!(zeta.timeout_idle, Duration::from_secs(600));
    assert!(zeta.key_optional && !anthropic.key_optional);
    assert_eq!(alpha.base_url, "https://proxy.example");
    assert_eq!(openai.kind, ProviderKind::Responses);
    assert_eq!(openai.max_retries, 4);
    assert_eq!(ollama.base_url, "http://127.0.0.1:11434");
    assert_eq!(scripted.kind, ProviderKind::Scripted);
}

#[test]
fn a_server_on_this_machine_has_time_to_load_its_model() {
    for (host, seconds) in [
        ("127.0.0.1", 600),
        ("[::1]", 600),
        ("0.0.0.0", 600),
        ("localhost", 600),
        ("models.localhost", 600),
        ("host.docker.internal", 600),
        ("localhost.example", 120),
        ("10.0.0.2", 120),
    ] {
        let file = format!("[providers.x]\nkind = 'openai'\nbase_url = 'http://{host}:9'");
        let loaded = toml(&file).load();
        let timeout = loaded.config.providers[0].timeout_idle;
        assert_eq!(timeout, Duration::from_secs(seconds), "{host}");
    }
}

#[test]
fn the_default_provider_is_the_first_that_can_answer() {
    type Variables = &'static [(&'static str, &'static str)];
    let cases: &[(&str, Variables, &str)] = &[
        ("", &[], "scripted"),
        ("[providers.openai]", &[], "scripted"),
        ("[providers.openai]\n[providers.ollama]", &[], "ollama"),
        ("[providers.scripted]\n[providers.ollama]", &[], "scripted"),
        (
            "",
            &[("MISTRAL_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
            "openai",
        ),
        ("", &[("OPENAI_API_KEY", "  ")], "scripted"),
        (
            "[chat]\nprovider = 'anthropic'",
            &[("OPENAI_API_KEY", "k")],
            "anthropic",
        ),
        ("", &[("OUTRIGGER_PROVIDERS__GROQ__API_KEY", "k")], "groq"),
    ];
    for (file, environment, expected) in cases {
        let loaded = toml(file).with_environment(environment).load();
        assert_eq!(loaded.config.chat.provider, *expected, "{file}");
        assert!(ids(&loaded).contains(expected), "{file}");
    }
}

#[test]
fn a_title_model_names_its_provider() {
    for (value, expected) in [
        ("", None),
        ("openai/gpt-5-nano", Some(("openai", "gpt-5-nano"))),
        (
            " anthropic/org/model:1 ",
            Some(("anthropic", "org/model:1")),
        ),
    ] {
        let loaded = toml(&format!("[session]\ntitle_model = '{value}'")).load();
        assert_eq!(loaded.config.session.title_model(), expected, "{value}");
        // It is for titles alone.
        assert_eq!(loaded.config.chat.provider, "scripted", "{value}");
        let is_known = |(provider, _): (&str, &str)| ids(&loaded).contains(&provider);
        assert!(expected.is_none_or(is_known), "{value}");
    }
    for (value, expected) in [
        ("gpt-5-nano", "expected PROVIDER/MODEL"),
        ("openai/", "expected PROVIDER/MODEL"),
        ("/gpt-5-nano", "expected PROVIDER/MODEL"),
        ("opena/gpt-5-nano", "there is no such provider"),
    ] {
        let errors = toml(&format!("[session]\ntitle_model = '{value}'")).errors();
        let is_told = errors.contains("session.title_model") && errors.contains(expected);
        assert!(is_told, "{value}: {errors}");
    }
}

#[test]
fn kind_preset_and_wire() {
    let cases = [
        (
            "[providers.x]\nkind = 'deepseek'",
            "deepseek",
            ProviderKind::Chat,
        ),
        (
            "[providers.deepseek]\nkind = 'openai'",
            "deepseek",
            ProviderKind::Chat,
        ),
        (
            "[providers.x]\nkind = 'openai'",
            "openai",
            ProviderKind::Responses,
        ),
        (
            "[providers.x]\nkind = 'openai'\nwire = 'chat'",
            "openai",
            ProviderKind::Chat,
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'https://openrouter.ai/api/v1'",
            "openrouter",
            ProviderKind::Chat,
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'https://eu.api.openai.com/v1'",
            "openai",
            ProviderKind::Responses,
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'http://h/v1'\nwire = 'responses'",
            "openai",
            ProviderKind::Responses,
        ),
        ("[providers.lmstudio]", "lmstudio", ProviderKind::Chat),
    ];
    for (file, preset, kind) in cases {
        let provider = toml(file).load().config.providers.remove(0);
        assert_eq!(
            (provider.preset.as_str(), provider.kind),
            (preset, kind),
            "{file}"
        );
    }
}

#[test]
fn keys_of_the_configuration_win_over_those_of_the_vendor_and_files_hold_them_too() {
    let place = toml("[providers.anthropic]\napi_key = ' config '");
    let path = place.write("key", "from-file\n").display().to_string();
    let key = |place: Place, variables: &[(&str, &str)]| {
        let loaded = place.with_environment(variables).load();
        let key = loaded.config.providers[0].api_key.as_ref();
        key.map(|key| key.expose_secret().to_owned())
    };
    assert_eq!(
        key(place, &[("ANTHROPIC_API_KEY", "e")]).as_deref(),
        Some("config")
    );
    let empty = || toml("[providers.anthropic]\napi_key = ''");
    assert_eq!(
        key(empty(), &[("ANTHROPIC_API_KEY", "e")]).as_deref(),
        Some("e")
    );
    assert_eq!(key(empty(), &[]), None);
    let place = empty();
    let path_here = place
        .write("key", &format!("{}\n", "from-file"))
        .display()
        .to_string();
    assert_eq!(
        key(place, &[("ANTHROPIC_API_KEY_FILE", &path_here)]).as_deref(),
        Some("from-file")
    );
    let place = empty();
    let path_here = place.write("key", "from-file\n").display().to_string();
    let variable = "OUTRIGGER_PROVIDERS__ANTHROPIC__API_KEY_FILE";
    assert_eq!(
        key(place, &[(variable, &path_here)]).as_deref(),
        Some("from-file")
    );
    let gone = Place::new().with_environment(&[("GROQ_API_KEY_FILE", &format!("{path}-gone"))]);
    assert!(gone.errors().contains("GROQ_API_KEY_FILE: the file"));
}

#[test]
fn the_address_of_a_database_may_be_in_a_file() {
    let place = Place::new();
    let path = place.write("url", "postgres://me:secret@db.example/outrigger\n");
    let path = path.display().to_string();
    let place = place.with_environment(&[("OUTRIGGER_STORE__URL_FILE", &path)]);
    let store = place.load().config.store.unwrap();
    let url = store.place.database().unwrap().expose_secret();
    assert_eq!(url, "postgres://me:secret@db.example/outrigger");
}

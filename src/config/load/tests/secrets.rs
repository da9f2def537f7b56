use super::*;

#[test]
fn secrets_are_shown_by_nothing() {
    let secret = "sk-ant-SECRET";
    let text_of_file = format!(
        "[providers.a]\nkind = 'anthropic'\napi_key = '{secret}'\nheaders = {{X = '{secret}'}}\n\
         [tools.web_search]\nbrave_api_key = '{secret}'\nsearxng_url = 'https://h'\n\
         [mcp.servers.m]\ncommand = 'c'\nenv = {{T = '{secret}'}}\n\
         [mcp.servers.h]\nurl = 'https://h'\nheaders = {{T = '{secret}'}}\n"
    );
    let environment = [("OUTRIGGER_TOKEN", secret), ("OPENAI_API_KEY", secret)];
    let loaded = toml(&text_of_file).with_environment(&environment).load();
    let shown = text(&loaded.values.list());
    assert!(shown.contains("providers.a.api_key = \"***\""), "{shown}");
    assert!(
        shown.contains("environment variable OPENAI_API_KEY"),
        "{shown}"
    );
    let json = crate::config::json(&loaded.values.list()).to_string();
    for output in [shown, json, format!("{loaded:?}")] {
        assert!(!output.contains("SECRET"), "{output}");
    }
    let broken =
        format!("{text_of_file}[providers.b]\nkind = 'x'\napi_key = 5\nheaders = '{secret}'");
    assert!(!toml(&broken).errors().contains("SECRET"));
    let url = format!("[tools.web_search]\nsearxng_url = 'http://u:{secret}@h'");
    let errors = toml(&url).errors();
    assert!(
        errors.contains("\"http://***@h\" (file") && !errors.contains("SECRET"),
        "{errors}"
    );
}

/// The secrets that are known of a configuration.
fn secrets_of(place: &Place) -> Vec<String> {
    let config = place.load().config;
    let secrets = config.secrets();
    let texts = secrets
        .iter()
        .map(|secret| secret.expose_secret().to_owned());
    texts.collect()
}

#[test]
fn secrets_are_listed_for_redaction_and_other_values_are_not() {
    let place = toml(
        "[providers.a]\nkind = 'anthropic'\napi_key = 'key-of-a'\n\
         headers = {X-Trace = 'everything', Authorization = 'Bearer token-of-a'}\n\
         [tools.web_search]\nbrave_api_key = 'key-of-brave'\n\
         [mcp.servers.m]\ncommand = 'c'\n\
         env = {NODE_ENV = 'production', ROOT = '/src/of/mine', GITHUB_TOKEN = 'token-of-m'}\n\
         [mcp.servers.n]\nurl = 'https://h'\n\
         headers = {X-Team = {value = 'team-of-n', secret = true}, X-Key = {value = 'known-to-all', secret = false}}\n",
    );
    assert_eq!(
        secrets_of(&place),
        [
            "key-of-a",
            "key-of-brave",
            "Bearer token-of-a",
            "token-of-a",
            "token-of-m",
            "team-of-n"
        ]
    );
}

#[test]
fn a_key_in_the_environment_is_a_secret_though_another_outranks_it() {
    let place = toml("[providers.anthropic]\napi_key = 'the-keys-own'\n");
    let file = place.write("demo/openai", "key-in-a-file\n");
    let place = place.with_environment(&[
        ("ANTHROPIC_API_KEY", "key-of-the-vendor"),
        ("OPENAI_API_KEY", "key-that-wins"),
        ("OPENAI_API_KEY_FILE", file.to_str().unwrap()),
        ("GIT_AUTHOR_NAME", "Grace Hopper"),
        ("MY_SECRET", "something-of-mine"),
    ]);
    let secrets = secrets_of(&place);
    for known in [
        "the-keys-own",
        "key-of-the-vendor",
        "key-that-wins",
        "key-in-a-file",
        "something-of-mine",
    ] {
        assert!(
            secrets.iter().any(|secret| secret == known),
            "{known} in {secrets:?}"
        );
    }
    assert!(
        !secrets.iter().any(|secret| secret.contains("Grace")),
        "{secrets:?}"
    );
}

#[test]
fn what_a_value_with_its_word_must_look_like_is_said() {
    for (env, said) in [
        ("{A = {secret = true}}", "value"),
        (
            "{A = {value = 'x', secrt = true}}",
            "did you mean \"secret\"",
        ),
        ("{A = 5}", "{value = "),
    ] {
        let errors = toml(&format!("[mcp.servers.m]\ncommand = 'c'\nenv = {env}\n")).errors();
        assert!(
            errors.contains("mcp.servers.m.env.A") && errors.contains(said),
            "{errors}"
        );
    }
}

#[test]
fn the_token_comes_from_a_file_or_the_environment() {
    let mut place = Place::new();
    place.write("demo/token", "from-file\n");
    place.sources.environment = [("OUTRIGGER_TOKEN", "from-environment")]
        .into_iter()
        .collect();
    let token = |sources: &Sources| {
        let token = load(sources).expect("valid").token.expect("given");
        token.expose_secret().to_owned()
    };
    assert_eq!(token(&place.sources), "from-environment");
    place.sources.token_file = Some("token".into());
    assert_eq!(token(&place.sources), "from-file");
    place.sources.token_file = Some("absent".into());
    assert!(place.errors().contains("--token-file: the file"));
    place.write("demo/empty", " \n");
    place.sources.token_file = Some("empty".into());
    assert!(place.errors().contains("is empty"));
}

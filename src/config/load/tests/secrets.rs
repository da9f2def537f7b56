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
    let shown = text(&loaded.origins);
    assert!(shown.contains("providers.a.api_key = \"***\""), "{shown}");
    assert!(
        shown.contains("environment variable OPENAI_API_KEY"),
        "{shown}"
    );
    let json = crate::config::json(&loaded.origins).to_string();
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

#[test]
fn secrets_are_listed_for_redaction_and_other_values_are_not() {
    let config = toml(
        "[providers.a]\nkind = 'anthropic'\napi_key = 'k1'\n\
         headers = {X-Trace = 'on', Authorization = 'Bearer h1'}\n\
         [tools.web_search]\nbrave_api_key = 'b1'\n\
         [mcp.servers.m]\ncommand = 'c'\nenv = {ROOT = '/src', GITHUB_TOKEN = 't1'}\n",
    )
    .load()
    .config;
    let secrets = config.secrets();
    let texts: Vec<&str> = secrets
        .iter()
        .map(|secret| secret.expose_secret())
        .collect();
    assert_eq!(texts, ["k1", "b1", "Bearer h1", "t1"]);
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

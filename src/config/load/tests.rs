use std::fs;
use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::*;
use crate::config::{LogFormat, NetworkPolicy, Origin, ProviderKind, text};
use crate::message::TrustLevel;

/// A home with a project in it, and a place for a configuration.
struct Place {
    directory: TempDir,
    sources: Sources,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path().canonicalize().expect("it is there");
        fs::create_dir_all(home.join("demo")).expect("an empty directory");
        let sources = Sources {
            home: Some(home.clone()),
            working_directory: home.join("demo"),
            ..Sources::default()
        };
        Self { directory, sources }
    }

    fn path(&self, name: &str) -> PathBuf {
        let home = self.directory.path().canonicalize();
        home.expect("it is there").join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().expect("a name inside the directory");
        fs::create_dir_all(parent).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    fn with_file(mut self, name: &str, text: &str) -> Self {
        self.sources.config_file = Some(self.write(name, text));
        self
    }

    fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        self.sources.environment = variables.iter().copied().collect();
        self
    }

    fn load(&self) -> Loaded {
        load(&self.sources).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn errors(&self) -> String {
        match load(&self.sources) {
            Ok(_) => panic!("the configuration is valid"),
            Err(errors) => errors.to_string(),
        }
    }
}

fn toml(text: &str) -> Place {
    Place::new().with_file("config.toml", text)
}

fn origin<'a>(loaded: &'a Loaded, key: &str) -> &'a Origin {
    let shown = loaded.origins.iter().find(|shown| shown.key == key);
    &shown.unwrap_or_else(|| panic!("{key} is shown")).origin
}

fn ids(loaded: &Loaded) -> Vec<&str> {
    let providers = loaded.config.providers.iter();
    providers.map(|provider| provider.id.as_str()).collect()
}

#[test]
fn without_any_source_the_documented_defaults_hold() {
    let place = Place::new();
    let Loaded { config, token, .. } = place.load();
    assert_eq!(config.server.address.to_string(), "127.0.0.1:4517");
    assert!(config.server.is_loopback());
    assert_eq!(config.server.max_frame_bytes, 16 << 20);
    assert_eq!(config.server.max_connections, 64);
    assert_eq!(config.project.root, place.path("demo"));
    assert_eq!(config.project.name, "demo");
    let central = place.path("outrigger/projects/demo");
    assert_eq!(config.project.central, central);
    assert!(!central.exists(), "made by whoever first writes there");
    assert_eq!(config.session.resume_grace, Duration::from_secs(60));
    assert_eq!(config.session.buffer_bytes, 8 << 20);
    assert_eq!(config.chat.provider, "scripted");
    assert_eq!(config.chat.trust_level, TrustLevel::Guided);
    assert_eq!(config.chat.max_turns, 200);
    assert_eq!(config.chat.context_reserve, 8192);
    assert_eq!(config.chat.timeout_plain, Duration::from_secs(300));
    assert_eq!(config.chat.timeout_tools, Duration::from_secs(1800));
    assert_eq!(config.approval.timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.tools.max_concurrent, 3);
    assert_eq!(config.tools.max_queued, 10);
    assert_eq!(config.tools.output_cap, 100 << 10);
    assert_eq!(config.tools.file_read.max_bytes, 1 << 20);
    assert_eq!(config.tools.bash.max_timeout, Duration::from_secs(600));
    assert_eq!(config.tools.bash.network, NetworkPolicy::Ask);
    assert!(config.tools.disabled.is_empty());
    let searxng = config.tools.web_search.searxng_url.as_deref();
    assert_eq!(searxng, Some("http://localhost:8080"));
    assert_eq!(config.log.format, LogFormat::Auto);
    assert_eq!(config.audit_path, None);
    assert_eq!(config.shutdown_grace, Duration::from_secs(5));
    assert!(config.workflows.is_empty() && config.mcp.servers.is_empty());
    assert!(token.is_none());
}

#[test]
fn each_source_goes_over_the_one_before() {
    let file = "[server]\nport = 1\nmax_connections = 1\nhost = '::1'\n[chat]\nmodel = 'file'";
    let environment = [
        ("OUTRIGGER_SERVER__PORT", "2"),
        ("OUTRIGGER_SERVER__MAX_CONNECTIONS", "2"),
    ];
    let mut place = toml(file).with_environment(&environment);
    place.sources.flags = vec![Override::new("--port", "server.port", 3u16)];
    let loaded = place.load();
    assert_eq!(loaded.config.server.address.to_string(), "[::1]:3");
    assert_eq!(loaded.config.server.max_connections, 2);
    assert_eq!(loaded.config.chat.model, "file");
    let file = Origin::File(place.path("config.toml"));
    let variable = Origin::Variable("OUTRIGGER_SERVER__MAX_CONNECTIONS".to_owned());
    assert_eq!(
        origin(&loaded, "server.port"),
        &Origin::Flag("--port".into())
    );
    assert_eq!(origin(&loaded, "server.max_connections"), &variable);
    assert_eq!(origin(&loaded, "server.host"), &file);
    assert_eq!(origin(&loaded, "session.locked"), &Origin::Default);
}

#[test]
fn a_file_of_each_format() {
    for (name, text) in [
        (
            "a.toml",
            "[chat]\ntrust_level = \"autonomous\"\n[server]\nport = 0",
        ),
        (
            "a.yaml",
            "chat:\n  trust_level: autonomous\nserver: {port: 0}\n",
        ),
        (
            "a.YML",
            "chat: {trust_level: autonomous}\nserver: {port: 0}\n",
        ),
        (
            "a.json",
            r#"{"chat": {"trust_level": "autonomous"}, "server": {"port": 0}}"#,
        ),
        (
            "b.json",
            "\u{feff}{\"chat\": {\"trust_level\": \"autonomous\"}, \"server\": {\"port\": 0}}",
        ),
    ] {
        let config = Place::new().with_file(name, text).load().config;
        assert_eq!(config.chat.trust_level, TrustLevel::Autonomous, "{name}");
        assert_eq!(config.server.address.port(), 0, "{name}");
    }
    for (name, text) in [
        ("a.toml", ""),
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n"),
        ("a.json", "{}"),
    ] {
        assert_eq!(
            Place::new()
                .with_file(name, text)
                .load()
                .config
                .server
                .address
                .port(),
            4517
        );
    }
}

#[test]
fn the_users_file_is_read_where_none_is_named_and_may_be_absent() {
    let mut place = Place::new();
    place.sources.user_directory = Some(place.path("settings"));
    assert_eq!(place.load().config.server.address.port(), 4517);
    place.write("settings/config.toml", "[server]\nport = 5");
    assert_eq!(place.load().config.server.address.port(), 5);
    place.sources.config_file = Some(place.write("other.toml", "[chat]\nmodel = 'm'"));
    assert_eq!(place.load().config.server.address.port(), 4517);
}

#[test]
fn variables_are_read_as_what_the_key_needs() {
    let loaded = toml("[providers.My-GPT]\nkind = 'openai'\n[mcp.servers.git]\ncommand = 'g'")
        .with_environment(&[
            ("OUTRIGGER_CHAT__MODEL", "4"),
            ("OUTRIGGER_MCP__ALLOW_RUNTIME_ADD", "1"),
            ("OUTRIGGER_SERVER__CONSOLE", "false"),
            ("OUTRIGGER_SERVER__ALLOWED_ORIGINS", "app://a, null"),
            ("OUTRIGGER_SESSION__LOCKED", r#"["chat.trust_level"]"#),
            ("OUTRIGGER_SERVER__MAX_FRAME_BYTES", "1MiB"),
            ("OUTRIGGER_SESSION__BUFFER_BYTES", "65536"),
            ("OUTRIGGER_PROVIDERS__MY_GPT__API_KEY", "123456"),
            ("OUTRIGGER_PROVIDERS__MY_GPT__HEADERS", r#"{"X-A": "b"}"#),
            ("OUTRIGGER_MCP__SERVERS__GIT__ENV__GITHUB_TOKEN", "7"),
            ("OUTRIGGER_TOKEN", " given "),
            ("OUTRIGGER_PORT", "tcp://10.0.0.1:4517"),
            ("RUST_LOG", "debug"),
        ])
        .load();
    let config = &loaded.config;
    assert_eq!(config.chat.model, "4");
    assert!(config.mcp.allow_runtime_add);
    assert!(!config.server.console);
    assert_eq!(config.server.allowed_origins, ["app://a", "null"]);
    assert_eq!(config.session.locked, ["chat.trust_level"]);
    assert_eq!(config.server.max_frame_bytes, 1 << 20);
    assert_eq!(config.session.buffer_bytes, 65536);
    let provider = &config.providers[0];
    assert_eq!(provider.id, "My-GPT");
    let key = provider.api_key.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(key, Some("123456"));
    assert_eq!(provider.headers["X-A"].expose_secret(), "b");
    let crate::config::McpTransport::Stdio { env, .. } = &config.mcp.servers["git"].transport
    else {
        panic!("a program");
    };
    assert_eq!(env["GITHUB_TOKEN"].expose_secret(), "7");
    let token = loaded.token.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(token, Some("given"));
    assert_eq!(config.log.level, "debug");
    assert_eq!(
        origin(&loaded, "log.level"),
        &Origin::Variable("RUST_LOG".into())
    );
}

#[test]
fn what_is_wrong_names_key_value_source_and_what_is_allowed() {
    let cases: &[(&str, &[&str])] = &[
        (
            "[server]\nprot = 1",
            &["server.prot: unknown key (file ", "did you mean \"port\"?"],
        ),
        (
            "prot = 1",
            &["prot: unknown key", "did you mean \"server.port\"?"],
        ),
        (
            "max_turns = 1",
            &["max_turns: unknown key", "did you mean \"chat.max_turns\"?"],
        ),
        (
            "[chat]\nelephant = 1",
            &["chat.elephant: unknown key", "known here: provider, model"],
        ),
        (
            "[chat]\ntrustLevel = 'guided'",
            &["did you mean \"trust_level\"?"],
        ),
        (
            "[server]\nport = 'x'",
            &["server.port = \"x\" (file ", "expected a whole number"],
        ),
        (
            "[server]\nport = -1",
            &["server.port = -1 ", "expected a whole number, 0 or more"],
        ),
        (
            "[server]\nport = 65536",
            &["server.port = 65536 ", "allowed: 0 to 65535"],
        ),
        (
            "[server]\nhost = 'example.org'",
            &["server.host = ", "expected an IP address"],
        ),
        (
            "[server]\nallowed_origins = 'app://x'",
            &["server.allowed_origins = ", "a list, as in"],
        ),
        ("[server]\nallowed_origins = ['*']", &["\"*\" has a *"]),
        (
            "[server]\nallowed_origins = ['app://x/']",
            &["no / at its end"],
        ),
        (
            "[server]\nallowed_hosts = ['a:80']",
            &["\"a:80\" is not a host name"],
        ),
        (
            "[server]\nmax_frame_bytes = '1GiB'",
            &["server.max_frame_bytes = \"1GiB\"", "1KiB to 256MiB"],
        ),
        (
            "[server]\nmax_frame_bytes = '1 parsec'",
            &["a size: bytes, or a number and B"],
        ),
        (
            "server = 5",
            &["server = 5 (file ", "expected a table of keys"],
        ),
        (
            "[chat]\ntrust_level = 'guidde'",
            &["allowed: supervised, guided, autonomous", "\"guided\"?"],
        ),
        (
            "[chat]\ntrust_level = 2",
            &["chat.trust_level = 2", "expected a text in quotes"],
        ),
        ("[chat]\nmax_turns = 201", &["allowed: 1 to 200"]),
        (
            "[chat]\ntimeout_plain = 30",
            &["a duration: a number and ms", "a bare number has no unit"],
        ),
        ("[chat]\ntimeout_plain = '25h'", &["allowed: 1ms to 24h"]),
        (
            "[chat]\nworkflow = 'x'",
            &["chat.workflow = \"x\"", "there is no such workflow"],
        ),
        (
            "[chat]\nprovider = 'scriptd'",
            &["there is no such provider", "\"scripted\"?"],
        ),
        (
            "[session]\nlocked = ['chat.trust']",
            &["\"chat.trust\" cannot be locked", "chat.trust_level"],
        ),
        ("[approval]\nunattended = 'no'", &["allowed: ask, deny"]),
        (
            "[approval]\nauto_approve_safe_commands = 'yes'",
            &["expected true or false"],
        ),
        (
            "[providers.x]\nmodel = 'm'",
            &["providers.x", "`kind` is missing"],
        ),
        (
            "[providers.x]\nkind = 'opnai'",
            &["providers.x.kind = \"opnai\"", "did you mean \"openai\"?"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'ftp://h'",
            &["the scheme is neither"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'localhost:80'",
            &["providers.x.base_url"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'http://u:pw@h'",
            &["***@h", "holds a user or a password"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nbase_url = 'http://h?a=1'",
            &["no ? and #"],
        ),
        (
            "[providers.x]\nkind = 'anthropic'\nwire = 'chat'",
            &["has a choice of wire"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nnum_ctx = 4096",
            &["only kind \"ollama\""],
        ),
        (
            "[providers.x]\nkind = 'openai'\nmax_retries = 11",
            &["allowed: 0 to 10"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nca_file = 'none.pem'",
            &["there is no such file"],
        ),
        (
            "[providers.x]\nkind = 'openai'\nheaders = {'a b' = 'c'}",
            &["this is no name of an HTTP header"],
        ),
        (
            "[providers.scripted]\nbase_url = 'http://h'",
            &["reaches no server"],
        ),
        (
            "[providers.scripted]\nscript = 'none'",
            &["there is no such file or directory"],
        ),
        (
            "[providers.'a b']\nkind = 'openai'",
            &["providers.\"a b\"", "a name has 1 to 64 letters"],
        ),
        (
            "[tools.bash]\ntimeout = '601s'",
            &["tools.bash.timeout = \"601s\"", "allowed: 1ms to 10m"],
        ),
        (
            "[tools.bash]\nnetwork = true",
            &["expected a text in quotes"],
        ),
        (
            "[tools.file_read]\nallowed_extensions = ['.rs']",
            &["write it without dot"],
        ),
        (
            "[tools.web_search]\nsearxng_url = 'localhost'",
            &["tools.web_search.searxng_url"],
        ),
        (
            "[mcp.servers.x]\nargs = ['a']",
            &["mcp.servers.x", "needs `command`"],
        ),
        (
            "[mcp.servers.x]\ncommand = 'a'\nurl = 'http://h'",
            &["only one of them"],
        ),
        (
            "[mcp.servers.x]\ncommand = 'a'\nheaders = {A = 'b'}",
            &["`headers` go with `url`"],
        ),
        (
            "[mcp.servers.x]\nurl = 'http://h'\nargs = ['a']",
            &["go with `command`"],
        ),
        (
            "[mcp.servers.x]\ncommand = 'a'\nenv = {'A=B' = 'c'}",
            &["has no ="],
        ),
        (
            "[workflows.w]\nlimits = {max_turns = 0}",
            &["workflows.w.limits.max_turns = 0"],
        ),
        (
            "[workflows.w]\nlimits = {timeout_ms = 0}",
            &["workflows.w.limits.timeout_ms = 0"],
        ),
        (
            "[workflows.w.tool_permissions]\nbsh = {allowed = true}",
            &["there is no such tool; did you mean \"bash\"?"],
        ),
        (
            "[workflows.w.tool_permissions]\nbash = {alowed = true}",
            &["did you mean \"allowed\"?"],
        ),
        (
            "[workflows.w.tool_permissions]\nbash = {allowDangerous = true}",
            &["did you mean \"allow_dangerous\"?"],
        ),
        (
            "[workflows.w.tool_permissions]\nbash = {timeout = '120'}",
            &["or a number of milliseconds"],
        ),
        (
            "[workflows.w.tool_permissions]\nfile_read = {paths = ['/etc/**']}",
            &["must be relative"],
        ),
        (
            "[workflows.w.tool_permissions]\nfile_read = {paths = ['a/../b']}",
            &["must be relative"],
        ),
        (
            "[workflows.w.tool_permissions]\nfile_read = {paths = ['a[']}",
            &["tool_permissions.file_read.paths"],
        ),
        (
            "[log]\nlevel = 'a=b=c'",
            &["log.level = \"a=b=c\"", "expected a filter"],
        ),
        ("[shutdown]\ngrace = '11m'", &["allowed: 0s to 10m"]),
    ];
    for (text, expected) in cases {
        let errors = toml(text).errors();
        assert!(
            !errors.contains('\n'),
            "one error only for {text}: {errors}"
        );
        for part in *expected {
            assert!(
                errors.contains(part),
                "{part:?} is missing for {text}: {errors}"
            );
        }
    }
}

#[test]
fn all_errors_are_told_at_once_each_with_its_own_source() {
    let text = "prot = 1\n[server]\nport = 'x'\nhosst = 'a'\n[chat]\nmax_turns = 0\n";
    let mut place = toml(text).with_environment(&[
        ("OUTRIGGER_CHAT__TRUST_LEVEL", "none"),
        ("OUTRIGGER_TOOLS__MAX_CONCURRENT", "many"),
        ("OUTRIGGER_NO__SUCH", "1"),
        ("ANTHROPIC_API_KEY", "two words"),
    ]);
    place.sources.flags = vec![Override::new("--project-root", "project.root", "none")];
    let errors = place.errors();
    assert_eq!(errors.lines().count(), 10, "{errors}");
    let file = place.path("config.toml").display().to_string();
    for expected in [
        format!("prot: unknown key (file {file})"),
        format!("server.hosst: unknown key (file {file}); did you mean \"host\"?"),
        format!("server.port = \"x\" (file {file}): expected a whole number, 0 or more"),
        format!("chat.max_turns = 0 (file {file}): allowed: 1 to 200"),
        "chat.trust_level = \"none\" (environment variable OUTRIGGER_CHAT__TRUST_LEVEL)".to_owned(),
        "tools.max_concurrent = \"many\" (environment variable OUTRIGGER_TOOLS__MAX_CONCURRENT)"
            .to_owned(),
        "no: unknown key (environment variable OUTRIGGER_NO__SUCH)".to_owned(),
        "project.root = \"none\" (flag --project-root): there is no such directory".to_owned(),
        "ANTHROPIC_API_KEY: a key or token is printable ASCII without spaces".to_owned(),
    ] {
        assert!(
            errors.contains(&expected),
            "{expected} is missing: {errors}"
        );
    }
}

#[test]
fn files_that_cannot_be_read_say_where() {
    let big = "#".repeat((1 << 20) + 1);
    let cases = [
        ("c.toml", "[server\nport = 1", "c.toml:1:8: "),
        ("c.toml", "[chat]\nmodel = \"secret\n", "c.toml:2:16: "),
        ("c.toml", "a = 1\na = 2", "c.toml:2:1: duplicate key"),
        ("c.yaml", "chat:\n  model: [", "c.yaml:"),
        ("c.json", "{\"chat\": {\n\"model\" 1}}", "c.json:2:9: "),
        ("c.json", "[]", "c.json:1:0: "),
        ("c.ini", "", "c.ini: unknown format"),
        ("c", "", "unknown format"),
        ("c.toml", big.as_str(), "is larger than 1 MiB"),
    ];
    for (name, text, expected) in cases {
        let errors = Place::new().with_file(name, text).errors();
        assert!(
            errors.contains(expected),
            "{expected:?} is missing: {errors}"
        );
        assert!(!errors.contains("secret"), "{errors}");
    }
    let mut place = Place::new();
    place.sources.config_file = Some(place.path("absent.toml"));
    assert!(place.errors().contains("absent.toml: cannot be read: "));
}

#[test]
fn a_project_is_a_directory_of_the_users_own() {
    let place = Place::new();
    place.write("demo/file", "");
    let home = place.path("").display().to_string();
    let temporary = Path::new(&home)
        .parent()
        .expect("not the root")
        .display()
        .to_string();
    let cases = [
        ("none", "there is no such directory"),
        ("file", "it is not a directory"),
        ("/", "a directory of the system"),
        ("/etc", "a directory of the system"),
        ("/usr/bin", "a directory of the system"),
        ("/proc/self", "a directory of the system"),
        ("..", "the home directory"),
        ("~", "the home directory"),
        (temporary.as_str(), "can be no project"),
    ];
    for (root, expected) in cases {
        let mut sources = place.sources.clone();
        sources.flags = vec![Override::new("--project-root", "project.root", root)];
        let errors = load(&sources).expect_err(root).to_string();
        assert!(errors.contains(expected), "{root}: {errors}");
    }
    for name in ["a/b", "..", "a\\b", "a\u{7}"] {
        let mut sources = place.sources.clone();
        sources.flags = vec![Override::new("--project-name", "project.name", name)];
        let errors = load(&sources).expect_err(name).to_string();
        assert!(errors.contains("one part of a path"), "{name}: {errors}");
    }
}

#[test]
fn central_storage_is_kept_apart() {
    let place = Place::new();
    let central = |central: &str| {
        let mut sources = place.sources.clone();
        sources.flags = vec![Override::new("--x", "project.central", central)];
        load(&sources).map(|loaded| loaded.config.project.central)
    };
    assert_eq!(central("~/store").expect("valid"), place.path("store"));
    for (path, expected) in [
        (".", "neither the project's folder nor around it"),
        ("~", "the home directory itself"),
        ("/etc/x", "a directory of the system"),
    ] {
        let errors = central(path).expect_err(path).to_string();
        assert!(errors.contains(expected), "{path}: {errors}");
    }
    let mut sources = place.sources.clone();
    sources.home = None;
    let errors = load(&sources).expect_err("no home").to_string();
    assert!(errors.contains("project.central"), "{errors}");
}

#[test]
fn secrets_are_shown_by_nothing() {
    let secret = "sk-ant-SECRET";
    let text_of_file = format!(
        "[providers.a]\nkind = 'anthropic'\napi_key = '{secret}'\nheaders = {{X = '{secret}'}}\n\
         [tools.web_search]\nbrave_api_key = '{secret}'\nsearxng_url = 'http://h'\n\
         [mcp.servers.m]\ncommand = 'c'\nenv = {{T = '{secret}'}}\n\
         [mcp.servers.h]\nurl = 'http://h'\nheaders = {{T = '{secret}'}}\n"
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
fn what_is_probably_not_meant_is_said() {
    let file = "[providers.far]\nkind = 'openai'\nbase_url = 'http://far.example/v1'\napi_key = 'k'\n\
                [providers.box]\nkind = 'openai'\nbase_url = 'http://box:8000/v1'\napi_key = 'k'\n\
                [providers.lan]\nkind = 'openai'\nbase_url = 'http://192.168.0.9/v1'\napi_key = 'k'\n\
                [providers.tls]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\napi_key = 'k'";
    let environment = [
        ("OUTRIGGER_TOOLS_BASH_MAX_TIMEOUT", "1h"),
        ("OUTRIGGER_SERVICE_HOST", "10.0.0.1"),
        ("OUTRIGGER_TOKEN", "t"),
    ];
    let warnings = toml(file).with_environment(&environment).load().warnings;
    let expected = [
        "the environment variable OUTRIGGER_TOOLS_BASH_MAX_TIMEOUT is not read; \
         the key's variable is OUTRIGGER_TOOLS__BASH__MAX_TIMEOUT",
        "provider \"far\" sends its key unencrypted to http://far.example/v1",
    ];
    assert_eq!(warnings, expected);
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
fn workflows_from_the_file_and_from_the_folder_beside_it() {
    let place = toml(
        "[workflows.fix]\ntrust_level = 'autonomous'\nlimits = {max_turns = 9, timeout = '1m'}\n\
         [workflows.fix.tool_permissions]\nbash = {allowed = true, timeout = 1500, allow = ['cargo **']}",
    );
    place.write(
        "workflows/review.yaml",
        "system_prompt: read\nprovider: openai\ntool_permissions:\n  file_read: { allowed: true, timeout: 120s }\n",
    );
    place.write("workflows/notes.txt", "not a workflow");
    let loaded = place.load();
    let config = &loaded.config;
    let fix = &config.workflows["fix"];
    assert_eq!(fix.trust_level, Some(TrustLevel::Autonomous));
    assert_eq!(fix.limits.max_turns, Some(9));
    assert_eq!(fix.limits.timeout_ms, Some(60_000));
    assert_eq!(
        fix.permissions["bash"].timeout,
        Some(Duration::from_millis(1500))
    );
    let review = &config.workflows["review"];
    assert_eq!(review.system_prompt.as_deref(), Some("read"));
    assert_eq!(
        review.permissions["file_read"].timeout,
        Some(Duration::from_secs(120))
    );
    assert!(ids(&loaded).contains(&"openai"), "named by a workflow");
    let file = Origin::File(place.path("workflows/review.yaml"));
    assert_eq!(origin(&loaded, "workflows.review.system_prompt"), &file);

    place.write("workflows/fix.yaml", "model: m");
    assert!(
        place
            .errors()
            .contains("workflows.fix: defined twice, in file ")
    );
}

#[test]
fn the_workflows_that_come_with_it_are_valid() {
    let place = Place::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/workflows");
    for entry in fs::read_dir(samples).expect("config/workflows") {
        let path = entry.expect("a file").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("UTF-8");
        let text = fs::read_to_string(&path).expect("a text");
        place.write(&format!("settings/workflows/{name}"), &text);
    }
    let mut sources = place.sources.clone();
    sources.user_directory = Some(place.path("settings"));
    let workflows = load(&sources).expect("valid").config.workflows;
    assert!(workflows["developer"].permissions["bash"].allowed);
    let reviewer = &workflows["reviewer"].permissions;
    let writes = ["file_write", "file_edit", "bash"];
    assert!(writes.iter().all(|tool| !reviewer.contains_key(*tool)));
}

#[test]
fn a_configuration_of_claude_desktop_works_as_it_is() {
    let text = r#"{
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "awslabs.core": {"command": "uvx", "args": ["x"], "env": {"LEVEL": "1"}},
            "remote": {"type": "http", "url": "https://h/mcp", "headers": {"A": "b"}},
            "off": {"command": "x", "disabled": true}
        },
        "mcp": {"servers": {"ours": {"command": "o"}}}
    }"#;
    let config = Place::new().with_file("claude.json", text).load().config;
    let names: Vec<&String> = config.mcp.servers.keys().collect();
    assert_eq!(names, ["awslabs.core", "ours", "remote"]);
    let wrong = r#"{"mcpServers": {"s": {"type": "sse", "url": "https://h"}}}"#;
    let errors = Place::new().with_file("claude.json", wrong).errors();
    assert!(
        errors.contains("mcp.servers.s.type: unknown key"),
        "{errors}"
    );
}

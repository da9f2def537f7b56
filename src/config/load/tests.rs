mod bash;
mod errors;
#[cfg(unix)]
mod folders;
mod hooks;
mod providers;
mod secrets;

use std::fs;
use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::*;
use crate::config::{LogFormat, NetworkPolicy, Origin, ProviderKind, text};
use crate::message::{DangerLevel, TrustLevel};
use crate::permission::scope::Grant;
use crate::permission::{Scope, Workflow};

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

fn origin(loaded: &Loaded, key: &str) -> Origin {
    let mut shown = loaded.values.list().into_iter();
    let shown = shown.find(|shown| shown.key == key);
    shown.unwrap_or_else(|| panic!("{key} is shown")).origin
}

fn ids(loaded: &Loaded) -> Vec<&str> {
    let providers = loaded.config.providers.iter();
    providers.map(|provider| provider.id.as_str()).collect()
}

#[test]
fn without_any_source_the_documented_defaults_hold() {
    let place = Place::new();
    let Loaded { config, token, .. } = place.load();
    assert_eq!(config.server.address().to_string(), "127.0.0.1:4517");
    assert!(config.server.host.is_loopback());
    assert_eq!(config.server.max_frame_bytes, 16 << 20);
    assert_eq!(config.server.max_connections, 64);
    let project = config.project.own.as_ref();
    let project = project.expect("the working directory");
    assert_eq!(project.root, place.path("demo"));
    assert_eq!(project.name, "demo");
    let central = place.path("outrigger/projects/demo");
    assert_eq!(project.central, central);
    let storage = place.path("outrigger/projects");
    assert_eq!(config.project.storage, Some(storage));
    assert!(config.project.allowed.is_empty());
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
    assert_eq!(config.tools.output_cap, 100 << 10);
    assert_eq!(config.tools.file_read.max_bytes, 1 << 20);
    assert_eq!(config.tools.bash.max_timeout, Duration::from_secs(600));
    assert_eq!(config.tools.bash.network, NetworkPolicy::Ask);
    assert!(config.tools.disabled.is_empty());
    let searxng = config.tools.web_search.searxng_url.as_deref();
    assert_eq!(searxng, Some("http://localhost:8080"));
    assert_eq!(config.log.format, LogFormat::Auto);
    assert_eq!(config.audit, None);
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
    assert_eq!(loaded.config.server.address().to_string(), "[::1]:3");
    assert_eq!(loaded.config.server.max_connections, 2);
    assert_eq!(loaded.config.chat.model, "file");
    let file = Origin::File(place.path("config.toml"));
    let variable = Origin::Variable("OUTRIGGER_SERVER__MAX_CONNECTIONS".to_owned());
    assert_eq!(
        origin(&loaded, "server.port"),
        Origin::Flag("--port".into())
    );
    assert_eq!(origin(&loaded, "server.max_connections"), variable);
    assert_eq!(origin(&loaded, "server.host"), file);
    assert_eq!(origin(&loaded, "session.locked"), Origin::Default);
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
        assert_eq!(config.server.address().port(), 0, "{name}");
    }
    for (name, text) in [
        ("a.toml", ""),
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n"),
        ("a.yaml", "chat:\nserver: {port: ~}\n"),
        ("a.json", r#"{"chat": null}"#),
        ("a.json", "{}"),
    ] {
        assert_eq!(
            Place::new()
                .with_file(name, text)
                .load()
                .config
                .server
                .address()
                .port(),
            4517
        );
    }
}

#[test]
fn the_users_file_is_read_where_none_is_named_and_may_be_absent() {
    let mut place = Place::new();
    place.sources.user_directory = Some(place.path("settings"));
    assert_eq!(place.load().config.server.address().port(), 4517);
    place.write("settings/config.toml", "[server]\nport = 5");
    assert_eq!(place.load().config.server.address().port(), 5);
    place.sources.config_file = Some(place.write("other.toml", "[chat]\nmodel = 'm'"));
    assert_eq!(place.load().config.server.address().port(), 4517);
}

#[test]
fn limits_of_commands_are_the_sandboxs_unless_others_are_set() {
    let default = crate::sandbox::Limits::default();
    let limits = |text: &str| toml(text).load().config.tools.bash.limits.of_commands();
    assert_eq!(limits(""), default);
    let set = limits(
        "tools.bash.limits = {memory = '4GiB', cpu = ' 200% ', processes = 99, file_size = '1GiB'}",
    );
    assert_eq!(
        set,
        crate::sandbox::Limits {
            memory: Some(4 << 30),
            // Where no group counts all of them, it is for each.
            data: Some(4 << 30),
            cpu_percent: Some(200),
            processes: Some(99),
            file_size: Some(1 << 30),
            ..default
        }
    );
    let loaded = toml("")
        .with_environment(&[("OUTRIGGER_TOOLS__BASH__LIMITS__CPU", "50%")])
        .load();
    assert_eq!(loaded.config.tools.bash.limits.cpu, Some(50));
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
            (&crate::config::variable_of_key("My-GPT"), "123456"),
            ("OUTRIGGER_PROVIDERS__MY_GPT__HEADERS", r#"{"X-A": "b"}"#),
            ("OUTRIGGER_MCP__SERVERS__GIT__ENV__GITHUB_TOKEN", "7"),
            ("OUTRIGGER_MCP__SERVERS__GIT__ENV__A__B", "8"),
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
    let crate::config::McpTransport::Stdio(server) = &config.mcp.servers["git"].transport else {
        panic!("a program");
    };
    let env = &server.env;
    assert_eq!(env["GITHUB_TOKEN"].expose_secret(), "7");
    assert_eq!(env["A__B"].expose_secret(), "8");
    let token = loaded.token.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(token, Some("given"));
    assert_eq!(config.log.level, "debug");
    assert_eq!(
        origin(&loaded, "log.level"),
        Origin::Variable("RUST_LOG".into())
    );
}

fn grant(workflow: &Workflow, tool: &str) -> Option<Grant> {
    let scope = Scope::new(Some(&workflow.permissions), None).expect("compiled");
    scope.grant(tool, DangerLevel::Warning)
}

fn timeout(workflow: &Workflow, tool: &str) -> Option<Duration> {
    grant(workflow, tool).expect("allowed").timeout()
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
    assert_eq!(timeout(fix, "bash"), Some(Duration::from_millis(1500)));
    let review = &config.workflows["review"];
    assert_eq!(review.system_prompt.as_deref(), Some("read"));
    assert_eq!(timeout(review, "file_read"), Some(Duration::from_secs(120)));
    assert!(ids(&loaded).contains(&"openai"), "named by a workflow");
    let file = Origin::File(place.path("workflows/review.yaml"));
    assert_eq!(origin(&loaded, "workflows.review.system_prompt"), file);

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
    assert!(grant(&workflows["developer"], "bash").is_some());
    let reviewer = &workflows["reviewer"];
    let writes = ["file_write", "file_edit", "bash"];
    assert!(writes.iter().all(|tool| grant(reviewer, tool).is_none()));
}

#[test]
fn a_configuration_of_claude_desktop_works_as_it_is() {
    let text = r#"{
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "awslabs.core": {"command": "uvx", "args": ["x"], "env": {"LEVEL": "1"}},
            "remote": {"type": "http", "url": "https://h/mcp", "headers": {"A": "b"}},
            "older": {"type": "sse", "url": "https://h/sse"},
            "off": {"command": "x", "disabled": true}
        },
        "mcp": {"servers": {"ours": {"command": "o"}}}
    }"#;
    let config = Place::new().with_file("claude.json", text).load().config;
    let names: Vec<&String> = config.mcp.servers.keys().collect();
    assert_eq!(names, ["awslabs.core", "older", "ours", "remote"]);
    let wrong = r#"{"mcpServers": {"s": {"type": "carrier", "url": "https://h"}}}"#;
    let errors = Place::new().with_file("claude.json", wrong).errors();
    assert!(
        errors.contains("mcp.servers.s.type: unknown key"),
        "{errors}"
    );
}

proptest::proptest! {
    #[test]
    fn no_input_panics(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "[", "]", "providers", "chat", ".", "=", "\"", "a", "1", "-1", "\n", "{", "}", ",",
                "server", "port", ":", " ", "kind", "openai", "#", "null", "'", "trust_level", "mcp",
                "servers", "workflows", "é", "true",
            ]),
            0..30,
        ),
        format in proptest::sample::select(vec!["toml", "yaml", "json"]),
        name in "[A-Z_]{0,30}",
        value in ".{0,20}",
    ) {
        let place = Place::new().with_file(&format!("c.{format}"), &words.concat());
        let name = format!("OUTRIGGER_{name}");
        let place = place.with_environment(&[(&name, &value)]);
        drop(load(&place.sources).map_err(|errors| errors.to_string()));
    }
}

#[test]
fn the_page_is_for_this_machine_unless_it_is_wanted() {
    for (host, console, expected) in [
        ("127.0.0.1", None, true),
        ("127.0.0.1", Some("false"), false),
        ("0.0.0.0", None, false),
        ("0.0.0.0", Some("true"), true),
    ] {
        let mut variables = vec![("OUTRIGGER_SERVER__HOST", host)];
        variables.extend(console.map(|console| ("OUTRIGGER_SERVER__CONSOLE", console)));
        let loaded = Place::new().with_environment(&variables).load();
        assert_eq!(loaded.config.server.console, expected, "{host} {console:?}");
    }
}

#[test]
fn an_ollama_is_looked_for_where_nothing_is_configured_alone() {
    const PLACE: &str = "http://127.0.0.1:11434";
    type Variables = &'static [(&'static str, &'static str)];
    let cases: [(&str, Variables, Option<&str>); 9] = [
        ("", &[], Some(PLACE)),
        ("[providers.anthropic]\nmodel = 'm'", &[], Some(PLACE)),
        (
            "[chat]\ndetect_ollama = 'http://box:1/'",
            &[],
            Some("http://box:1"),
        ),
        ("[chat]\ndetect_ollama = ''", &[], None),
        ("[chat]\nprovider = 'scripted'", &[], None),
        ("[providers.scripted]\nkind = 'scripted'", &[], None),
        ("", &[("ANTHROPIC_API_KEY", "k")], None),
        ("", &[("OLLAMA_HOST", "box")], None),
        ("[providers.local]\nkind = 'llamacpp'", &[], None),
    ];
    for (file, environment, expected) in cases {
        let loaded = toml(file).with_environment(environment).load();
        assert_eq!(
            loaded.config.chat.detect_ollama.as_deref(),
            expected,
            "{file}"
        );
    }
    let errors = toml("[chat]\ndetect_ollama = 'box'").errors();
    assert!(errors.contains("chat.detect_ollama"), "{errors}");
}

#[test]
fn providers_can_be_locked_as_a_whole() {
    let session = toml("[session]\nlocked = ['providers']")
        .load()
        .config
        .session;
    assert!(session.locks_providers() && session.is_locked("chat.provider"));
    assert!(!session.is_locked("chat.model"));
    let session = toml("[session]\nlocked = ['chat.model']")
        .load()
        .config
        .session;
    assert!(!session.locks_providers() && !session.is_locked("chat.provider"));
}

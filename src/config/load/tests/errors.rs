use super::*;

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
            "[mcp.servers.x]\nurl = 'http://example.org/mcp'",
            &["allowed to this machine only"],
        ),
        (
            "[mcp.servers.x]\nurl = 'https://169.254.169.254/'",
            &["link-local"],
        ),
        (
            "[tools.custom.bash]\ndescription = 'x'\ncommand = 'a'",
            &["tools.custom.bash", "taken by a tool of another sort"],
        ),
        (
            "[tools.custom.x]\ndescription = 'x'\ncommand = 'a'\nshell = 'b'",
            &["not both"],
        ),
        (
            "[tools.custom.x]\ncommand = 'a'",
            &["`description` is missing"],
        ),
        (
            "[tools.custom.x]\ndescription = 'x'\ncommand = 'a'\nargs = ['{file}']",
            &["names `file`, which is no input"],
        ),
        (
            "[tools.custom.x]\ndescription = 'x'\ncommand = 'a'\n\
             input_schema = {properties = {a = {type = 'string', pattern = '^a'}}}",
            &["`pattern` is not checked here"],
        ),
        (
            "[tools.custom.x]\ndescription = 'x'\ncommand = 'a'\ndanger = 'blocked'",
            &["allowed: safe, warning, dangerous"],
        ),
        (
            "[mcp.servers.x]\ncommand = 'a'\nargs = [\"a\\u0000b\"]",
            &["mcp.servers.x", "no NUL characters"],
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
            "[workflows.w.tool_permissions]\nbash = {allow = ['git ** x']}",
            &["tool_permissions.bash.allow", "only be the last word"],
        ),
        (
            "[workflows.w.tool_permissions]\ngit = {deny = ['echo $X']}",
            &["tool_permissions.git.deny", "is not literal"],
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
    check(cases);
}

/// Checks that each file has one error, which says all of this.
pub(super) fn check(cases: &[(&str, &[&str])]) {
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
fn all_errors_are_reported_at_once_each_with_its_own_source() {
    let text = "prot = 1\n[server]\nport = 'x'\nhosst = 'a'\n[chat]\nmax_turns = 0\n";
    let mut place = toml(text).with_environment(&[
        ("OUTRIGGER_CHAT__TRUST_LEVEL", "none"),
        ("OUTRIGGER_TOOLS__MAX_CONCURRENT", "many"),
        ("OUTRIGGER_NO__SUCH", "1"),
        ("ANTHROPIC_API_KEY", "two words"),
    ]);
    place.sources.flags = vec![Override::new("--project-name", "project.name", "a/b")];
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
        "project.name = \"a/b\" (flag --project-name): allowed: one part of a path".to_owned(),
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
fn without_a_directory_of_the_users_own_there_is_no_project() {
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
        let loaded = load(&sources).expect(root);
        let why = loaded.config.project.own.expect_err(root);
        assert!(why.contains(expected), "{root}: {why}");
        assert!(why.contains("--project-root"), "it says what to do: {why}");
        let warning = format!("project.root: {why}");
        assert!(loaded.warnings.contains(&warning), "{:?}", loaded.warnings);
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
        load(&sources).map(|loaded| loaded.config.project.own.expect("a project").central)
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
fn what_is_probably_not_meant_is_said() {
    let file = "[providers.far]\nkind = 'openai'\nbase_url = 'http://far.example/v1'\napi_key = 'k'\n\
                [providers.box]\nkind = 'openai'\nbase_url = 'http://box:8000/v1'\napi_key = 'k'\n\
                [providers.lan]\nkind = 'openai'\nbase_url = 'http://192.168.0.9/v1'\napi_key = 'k'\n\
                [providers.tls]\nkind = 'openai'\nbase_url = 'https://far.example/v1'\napi_key = 'k'";
    let environment = [
        ("OUTRIGGER_TOOLS_BASH_MAX_TIMEOUT", "1h"),
        ("OUTRIGGER_TOKEN", "t"),
    ];
    let warnings = toml(file).with_environment(&environment).load().warnings;
    let expected = [
        "the environment variable OUTRIGGER_TOOLS_BASH_MAX_TIMEOUT is not read; \
         did you mean OUTRIGGER_TOOLS__BASH__MAX_TIMEOUT?",
        "provider \"far\" sends its key unencrypted to http://far.example/v1",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn each_variable_that_nothing_reads_is_named_with_the_nearest() {
    let meant = [
        (
            "OUTRIGGER_PORT",
            "99",
            "did you mean OUTRIGGER_SERVER__PORT?",
        ),
        (
            "OUTRIGGER_SERVER_PORT",
            "99",
            "did you mean OUTRIGGER_SERVER__PORT?",
        ),
        (
            "OUTRIGGER_TRUST_LEVEL",
            "x",
            "did you mean OUTRIGGER_CHAT__TRUST_LEVEL?",
        ),
        (
            "OUTRIGGER_TRUSTLEVEL",
            "x",
            "did you mean OUTRIGGER_CHAT__TRUST_LEVEL?",
        ),
        ("OUTRIGGER_LEVEL", "x", "did you mean OUTRIGGER_LOG__LEVEL?"),
        ("OUTRIGGER_TOKN", "x", "did you mean OUTRIGGER_TOKEN?"),
        ("OUTRIGGER_ELEPHANT", "x", "OUTRIGGER_SECTION__KEY"),
    ];
    for (name, value, expected) in meant {
        let warnings = toml("").with_environment(&[(name, value)]).load().warnings;
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        let begins = format!("the environment variable {name} is not read; ");
        assert!(
            warnings[0].starts_with(&begins) && warnings[0].contains(expected),
            "{warnings:?}"
        );
    }
    for (name, value) in [
        ("OUTRIGGER_PORT", "tcp://10.0.0.1:4517"),
        ("OUTRIGGER_PORT_4517_TCP_ADDR", "10.0.0.1"),
        ("OUTRIGGER_SERVICE_HOST", "10.0.0.1"),
        ("OUTRIGGER_UID", "1000"),
    ] {
        let warnings = toml("").with_environment(&[(name, value)]).load().warnings;
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let deep = 20_000;
    let cases = [
        ("c.toml", format!("{}b = 1", "a.".repeat(deep))),
        ("c.toml", format!("[{}b]", "a.".repeat(deep))),
        ("c.toml", format!("a = {}", "[".repeat(deep))),
        ("c.yaml", "[".repeat(deep)),
        ("c.json", format!("{{\"a\": {}", "[".repeat(deep))),
    ];
    for (name, text) in cases {
        let errors = Place::new().with_file(name, &text).errors();
        assert!(errors.contains(name), "{errors}");
    }
    let variable = format!("OUTRIGGER{}", "__A".repeat(deep));
    let errors = Place::new().with_environment(&[(&variable, "1")]).errors();
    assert!(errors.contains("unknown key"));
    let json = "[".repeat(deep);
    let errors = Place::new()
        .with_environment(&[("OUTRIGGER_SERVER__PORT", &json)])
        .errors();
    assert!(errors.contains("server.port"));
}

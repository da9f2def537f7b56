use super::*;

const PROJECT: &str = "/home/u/project";

fn built(parent: &[(&str, &str)]) -> BTreeMap<String, String> {
    let parent = parent
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let surroundings = Surroundings {
        readable: &|path| path.starts_with("/usr") || path.starts_with("/home/u/.cargo"),
        trusted: &|path| !path.starts_with(PROJECT) && !path.starts_with("/tmp"),
        secrets: &["hunter2hunter2", "short"],
    };
    build_on(System::Unix, parent, &surroundings)
}

#[test]
fn only_what_is_listed_and_harmless_is_passed() {
    for (name, value, passed) in [
        ("LANG", "de_DE.UTF-8", true),
        ("LC_ALL", "C", true),
        ("TZ", "UTC", true),
        ("HOME", "/home/u", true),
        ("USER", "u", true),
        ("CARGO_HOME", "/home/u/.cargo", true),
        ("CARGO_HOME", "/srv/cargo", false),
        ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt", true),
        ("REQUESTS_CA_BUNDLE", "/usr/share/ca.pem", true),
        ("PIP_CERT", "/home/u/ca.pem", false),
        ("CURL_CA_BUNDLE", "etc/ca.pem", false),
        ("NODE_ENV", "test", true),
        ("HTTPS_PROXY", "http://proxy:3128", true),
        ("HTTPS_PROXY", "http://user:pass@proxy:3128", false),
        ("http_proxy", "http://token@proxy", false),
        ("NO_PROXY", "localhost", true),
        ("EDITOR_THEME", "dark", false),
        // Listed, but with a known secret or something of the form of one in it.
        ("LANG", "hunter2hunter2", false),
        ("LANG", "x-hunter2hunter2-x", false),
        ("LANG", "short", true),
        ("LC_TOKEN", "x", false),
        ("LC_NAME", "sk-abcdef", false),
        ("LC_NAME", "eyJhbGciOi.eyJzdWIiOi.sig", false),
        ("LC_NAME", "-----BEGIN PRIVATE KEY-----", false),
    ] {
        let environment = built(&[(name, value)]);
        assert_eq!(
            environment.get(name).map(String::as_str) == Some(value),
            passed,
            "{name}={value}"
        );
    }
}

#[test]
fn no_canary_survives() {
    let canaries = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_ORG",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AZURE_TENANT",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GCP_PROJECT",
        "GITHUB_TOKEN",
        "GH_PAT",
        "DATABASE_URL",
        "PGPASSWORD",
        "MONGO_URI",
        "SENTRY_DSN",
        "KUBECONFIG",
        "NPM_CONFIG__AUTH",
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DOCKER_HOST",
        "GIT_CONFIG_COUNT",
        "GIT_DIR",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASHOPTS",
        "PS4",
        "CDPATH",
        "IFS",
        "BASH_FUNC_ls%%",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "RIPGREP_CONFIG_PATH",
        "LESSOPEN",
        "OUTRIGGER_TOKEN",
        "XDG_RUNTIME_DIR",
        "TMPDIR",
        "MY_OWN",
    ];
    let parent: Vec<(&str, &str)> = canaries.iter().map(|name| (*name, "/usr/canary")).collect();
    let environment = built(&parent);
    assert!(
        !environment.values().any(|value| value == "/usr/canary"),
        "{environment:?}"
    );
}

#[test]
fn programs_are_only_taken_from_trusted_absolute_directories() {
    for (path, expected) in [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        ("/home/u/project/bin:/usr/bin", "/usr/bin"),
        (".:/usr/bin::bin:../x:/tmp/x:", "/usr/bin"),
        ("", DEFAULT_PATH),
        (".", DEFAULT_PATH),
    ] {
        assert_eq!(
            built(&[("PATH", path)]).get("PATH").map(String::as_str),
            Some(expected),
            "{path}"
        );
    }
}

#[test]
fn what_the_user_has_does_not_override_what_is_forced() {
    let environment = built(&[("EDITOR", "vi"), ("PAGER", "less"), ("LANG", "C")]);
    for (name, value) in [("PAGER", "cat"), ("EDITOR", "false"), ("LANG", "C")] {
        assert_eq!(environment.get(name).map(String::as_str), Some(value));
    }
}

#[test]
fn windows_has_variables_of_its_own_and_takes_no_notice_of_case() {
    let parent = [
        ("SYSTEMROOT", r"C:\Windows"),
        (
            "Path",
            r"C:\Windows\System32;rel;\\srv\x;C:\proj\bin;D:/tools",
        ),
        ("pathext", ".COM;.EXE"),
        ("UserProfile", r"C:\Users\u"),
        ("ProgramFiles(x86)", r"C:\Program Files (x86)"),
        ("HTTPS_PROXY", "http://user:pass@proxy:3128"),
        ("cargo_home", r"D:\cargo"),
        ("DATABASE_URL", "x"),
        ("GITHUB_TOKEN", "x"),
        ("LD_PRELOAD", "x"),
        ("NODE_OPTIONS", "--require x"),
        ("TMP", "hunter2hunter2"),
    ];
    let parent = parent.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let surroundings = Surroundings {
        readable: &|_| false,
        trusted: &|path| !path.to_string_lossy().starts_with(r"C:\proj"),
        secrets: &["hunter2hunter2"],
    };
    let built = build_on(System::Windows, parent, &surroundings);
    let forced = FORCED.iter().chain(&FORCED_ON_WINDOWS);
    let forced: Vec<&str> = forced.map(|(name, _)| *name).collect();
    let passed = built.iter();
    let passed = passed.filter(|(name, _)| !forced.contains(&name.as_str()));
    let passed: Vec<(&str, &str)> = passed.map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(
        passed,
        [
            ("CARGO_HOME", r"D:\cargo"),
            ("PATH", r"C:\Windows\System32;D:/tools"),
            ("PATHEXT", ".COM;.EXE"),
            ("ProgramFiles(x86)", r"C:\Program Files (x86)"),
            ("SystemRoot", r"C:\Windows"),
            ("USERPROFILE", r"C:\Users\u"),
        ]
    );
    assert!(!built.contains_key("SHELL") && built.contains_key("GIT_TERMINAL_PROMPT"));
    assert_eq!(built["NoDefaultCurrentDirectoryInExePath"], "1");
    let nothing = build_on(System::Windows, [], &surroundings);
    assert_eq!(nothing["PATH"], WINDOWS_PATH);
}

#[test]
fn folders_of_windows_may_stand_between_quotes() {
    let trusted = |path: &Path| !path.to_string_lossy().starts_with(r"C:\proj");
    for (path, expected) in [
        (r"C:\a;D:/b", r"C:\a;D:/b"),
        (
            r#""C:\Program Files\Git\cmd";C:\a"#,
            r"C:\Program Files\Git\cmd;C:\a",
        ),
        (
            r#"C:\"Program Files"\Git;C:\a"#,
            r"C:\Program Files\Git;C:\a",
        ),
        (r#""C:\a;b";C:\c"#, r#""C:\a;b";C:\c"#),
        // The project's, whatever it stands in.
        (r#""C:\proj\bin";"C:\proj;x";C:\c"#, r"C:\c"),
        // What stands between quotes is one folder, and none of its parts is another.
        (r#""rel;C:\proj\bin";C:\c"#, r"C:\c"),
        // A quote that is not closed holds to the end.
        (r#"C:\c;"C:\d;C:\e"#, r#"C:\c;"C:\d;C:\e""#),
        (r"rel;C:rel;\rel;\\server\share;;C:\c;", r"C:\c"),
        (r#"""#, WINDOWS_PATH),
    ] {
        assert_eq!(
            System::Windows.search_path(path, &trusted),
            expected,
            "{path}"
        );
    }
}

use super::errors::check;

#[test]
fn what_is_wrong_about_commands_says_what_is_allowed() {
    let cases: &[(&str, &[&str])] = &[
        (
            "[tools.bash]\ntimeout = '601s'",
            &["tools.bash.timeout = \"601s\"", "allowed: 1ms to 10m"],
        ),
        (
            "[tools.bash]\nnetwork = true",
            &["expected a text in quotes"],
        ),
        (
            "[tools.bash.limits]\ncpu = '0%'",
            &["tools.bash.limits.cpu = \"0%\"", "allowed: 1% to 100000%"],
        ),
        (
            "[tools.bash.limits]\ncpu = 'abc'",
            &["expected percent, as in \"50%\" or \"200%\""],
        ),
        ("[tools.bash.limits]\ncpu = 200", &["expected percent"]),
        (
            "tools.bash.limits = {memory = '1KiB'}",
            &["allowed: 16MiB to 16384GiB"],
        ),
        ("tools.bash.limits = {memory = 'abc'}", &["a size: bytes"]),
        (
            "tools.bash.limits = {processes = 0}",
            &["allowed: 16 to 1000000"],
        ),
        (
            "tools.bash.limits = {processes = 1}",
            &["tools.bash.limits.processes = 1", "allowed: 16"],
        ),
        (
            "tools.bash.limits = {file_size = '0'}",
            &["allowed: 1MiB to 16384GiB"],
        ),
        (
            "tools.bash.limits = {memroy = '4GiB'}",
            &["tools.bash.limits.memroy", "unknown key", "\"memory\""],
        ),
        ("tools.bash.limits = 5", &["expected a table of keys"]),
        (
            "tools.bash.hosts = ['npm', 'nmp']",
            &[
                "tools.bash.hosts",
                "\"nmp\" is no host",
                "npm, pnpm, yarn",
                "did you mean \"npm\"?",
            ],
        ),
        (
            "tools.bash.hosts = ['https://example.org/']",
            &["without a scheme, port or path"],
        ),
        ("tools.bash.hosts = 'example.org'", &["tools.bash.hosts"]),
        (
            "tools.bash.ports = 'all'",
            &["tools.bash.ports", "expected \"any\" or a list of ports"],
        ),
        (
            "tools.bash.ports = [0]",
            &["expected \"any\" or a list of ports from 1 to 65535"],
        ),
    ];
    check(cases);
}

#[test]
fn a_list_of_hosts_that_has_no_effect_is_warned_of() {
    for (with, warned) in [
        ("network = 'ask'", None),
        ("network = 'on'", Some("tools.bash.network = \"on\"")),
        ("network = 'off'", Some("tools.bash.network = \"off\"")),
        ("sandbox = 'off'", Some("tools.bash.sandbox = \"off\"")),
    ] {
        let text = format!("[tools.bash]\nhosts = ['example.org']\n{with}\n");
        let loaded = super::toml(&text).load();
        let said = loaded
            .warnings
            .iter()
            .find(|it| it.contains("tools.bash.hosts"));
        assert_eq!(said.is_some(), warned.is_some(), "{with}: {said:?}");
        if let (Some(said), Some(warned)) = (said, warned) {
            assert!(said.contains(warned), "{said}");
        }
    }
}

#[test]
fn servers_of_this_machine_are_known_by_their_ports() {
    let text = "[tools.web_search]\nsearxng_url = 'http://localhost:18080'\n\
                [providers.a]\nkind = 'openai'\nbase_url = 'http://[::1]:18081/v1'\nmodel = 'm'\napi_key = 'k'\n\
                [providers.b]\nkind = 'openai'\nbase_url = 'https://example.org:18082/v1'\nmodel = 'm'\napi_key = 'k'\n\
                [mcp.servers.s]\nurl = 'http://127.0.0.2:18083/mcp'\n\
                [store]\nurl = 'postgres://me@localhost/db'\n\
                [tools.web_fetch]\nallow_private = ['localhost:18084', '10.0.0.7:18085']\n";
    let ports = super::toml(text).load().config.local_ports();
    for (port, expected) in [
        (18080, true),
        (18081, true),
        (18082, false),
        (18083, true),
        (18084, true),
        (18085, false),
        (5432, true),
    ] {
        assert_eq!(ports.contains(&port), expected, "{port}: {ports:?}");
    }
}

#[test]
fn a_shorter_longest_time_shortens_the_one_that_nobody_set() {
    let loaded = super::toml("[tools.bash]\nmax_timeout = '30s'\n").load();
    let bash = &loaded.config.tools.bash;
    assert_eq!(bash.timeout, bash.max_timeout);
    let mut shown = loaded.values.list().into_iter();
    let shown = shown.find(|it| it.key == "tools.bash.timeout");
    assert_eq!(shown.unwrap().value, "30s");
    check(&[(
        "[tools.bash]\ntimeout = '10m'\nmax_timeout = '1m'",
        &[
            "tools.bash.timeout",
            "allowed: 1ms to 1m (tools.bash.max_timeout)",
        ],
    )]);
}

#[test]
fn lists_of_web_fetch_name_hosts_and_servers() {
    check(&[
        (
            "[tools.web_fetch]\nhosts = ['npm']",
            &["tools.web_fetch.hosts", "is for tools.bash.hosts"],
        ),
        (
            "[tools.web_fetch]\nallow_private = ['10.0.0.7']",
            &["tools.web_fetch.allow_private", "write a host and its port"],
        ),
        (
            "[tools.web_fetch]\nallow_private = ['169.254.169.254:80']",
            &["hands out keys"],
        ),
        (
            "[tools.web_fetch]\nuser_agent = 'é'",
            &["tools.web_fetch.user_agent", "ASCII"],
        ),
    ]);
}

#[test]
fn what_a_weaker_sandbox_leaves_without_effect_is_said() {
    use crate::config::testing::loaded;
    use crate::sandbox::Mode;

    let hosts = ("OUTRIGGER_TOOLS__BASH__HOSTS", "npm");
    let caches = ("OUTRIGGER_TOOLS__BASH__CACHES", "npm");
    let online = ("OUTRIGGER_TOOLS__BASH__NETWORK", "on");
    let off = ("OUTRIGGER_TOOLS__BASH__SANDBOX", "off");
    for (set, mode, expected) in [
        (&[hosts, caches][..], Mode::Full, &[][..]),
        (
            &[hosts, caches],
            Mode::Fallback,
            &[
                "tools.bash.hosts has no effect in mode fallback",
                "tools.bash.caches has no effect in mode fallback",
            ],
        ),
        // The home is the user's.
        (
            &[hosts, caches],
            Mode::Limits,
            &["tools.bash.hosts has no effect in mode limits"],
        ),
        // The check of the configuration says it.
        (&[hosts, online], Mode::Fallback, &[]),
        (&[hosts, off], Mode::None, &[]),
        (&[], Mode::Fallback, &[]),
    ] {
        let said = loaded(set).0.tools.bash.without_effect(mode);
        assert_eq!(said.len(), expected.len(), "{set:?} {mode}: {said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(expected), "{said}");
        }
    }
}

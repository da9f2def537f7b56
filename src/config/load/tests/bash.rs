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
            &["tools.bash.hosts", "\"nmp\" is no host", "npm, pnpm, yarn"],
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

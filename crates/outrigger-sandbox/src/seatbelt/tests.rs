use super::*;

fn command() -> Command {
    Command {
        args: vec!["-c".to_owned(), "ls".to_owned()],
        read_write: vec!["/Users/me/src/app".into()],
        ..Command::new("/bin/sh", "/Users/me/src/app")
    }
}

fn confinement(command: &Command) -> Confinement<'_> {
    Confinement {
        command,
        private: Path::new("/private/var/folders/x/outrigger-1"),
        toolchains: &[],
        own_port: Some(4517),
        proxy: Some(50123),
    }
}

fn profile(command: &Command) -> String {
    let arguments = confinement(command).arguments().unwrap();
    arguments[1].to_str().unwrap().to_owned()
}

/// What macOS would say, as far as its rules are these: the last one that matches counts, and without one it is denied.
fn may(command: &Command, operation: &str, path: &str) -> bool {
    let path = Path::new(path);
    let covers = |rule: &Rule| {
        let is_meant = rule
            .operations
            .split(' ')
            .any(|it| match it.strip_suffix('*') {
                Some(start) => operation.starts_with(start),
                None => operation == it,
            });
        let is_there = match rule.is_tree {
            true => path.starts_with(&rule.path),
            false => path == rule.path,
        };
        is_meant && is_there
    };
    let rules = confinement(command).rules();
    rules
        .iter()
        .rfind(|rule| covers(rule))
        .is_some_and(|rule| rule.allows)
}

#[test]
fn the_program_is_named_by_its_path_and_stands_behind_the_rules() {
    let command = command();
    let arguments = confinement(&command).arguments().unwrap();
    let texts: Vec<&str> = arguments.iter().map(|it| it.to_str().unwrap()).collect();
    assert_eq!(PROGRAM, "/usr/bin/sandbox-exec");
    assert_eq!(texts[0], "-p");
    assert!(
        texts[1].starts_with("(version 1)\n(deny default)\n"),
        "{}",
        texts[1]
    );
    assert_eq!(&texts[texts.len() - 4..], ["--", "/bin/sh", "-c", "ls"]);
    let parameters = &texts[2..texts.len() - 4];
    for (number, pair) in parameters.chunks(2).enumerate() {
        assert_eq!(pair[0], "-D");
        assert!(pair[1].starts_with(&format!("P{number}=/")), "{pair:?}");
        let used = format!("(param \"P{number}\")");
        assert_eq!(texts[1].matches(&used).count(), 1, "{used}");
    }
}

#[test]
fn what_may_be_done_to_which_file() {
    let command = Command {
        hidden: vec!["/Users/me/src/app/sub/.env".into()],
        read_only: vec!["/Users/me/library".into()],
        repositories: vec!["/Users/me/src/app/vendor/lib/.git".into()],
        ..command()
    };
    for (operation, path, expected) in [
        ("file-read-data", "/Users/me/src/app/a.rs", true),
        ("file-write-create", "/Users/me/src/app/a.rs", true),
        ("file-read-data", "/Users/me/src/other/a.rs", false),
        ("file-read-metadata", "/Users/me/src", true),
        ("file-read-data", "/Users/me/src", false),
        ("file-write-create", "/Users/me/src/x", false),
        ("file-read-data", "/Users/me/.ssh/id_ed25519", false),
        // A secret can be seen to be there.
        ("file-read-metadata", "/Users/me/src/app/sub/.env", true),
        ("file-read-data", "/Users/me/src/app/sub/.env", false),
        ("file-write-data", "/Users/me/src/app/sub/.env", false),
        ("file-write-unlink", "/Users/me/src/app/sub/.env", false),
        // Nor is it moved with what it lies in.
        ("file-write-unlink", "/Users/me/src/app/sub", false),
        ("file-write-unlink", "/Users/me/src/app/other", true),
        ("file-write-unlink", "/Users/me/src/app", false),
        ("file-write-create", "/Users/me/src/app/sub/x", true),
        ("file-read-data", "/Users/me/library/x", true),
        ("file-write-data", "/Users/me/library/x", false),
        // Without the first, no program starts; what is below is not meant.
        ("file-read-data", "/", true),
        ("file-read-metadata", "/", true),
        ("file-write-create", "/", false),
        ("file-read-data", "/Users", false),
        ("file-read-data", "/private", false),
        ("file-read-data", "/private/var/db", false),
        ("file-read-metadata", "/private/var/db", true),
        ("file-test-existence", "/private/var/db", true),
        ("file-read-data", "/private/var/db/dslocal/nodes", false),
        (
            "file-read-metadata",
            "/private/var/db/xcode_select_link",
            true,
        ),
        (
            "file-write-create",
            "/private/var/db/xcode_select_link",
            false,
        ),
        (
            "file-read-data",
            "/Library/Preferences/com.apple.dt.Xcode.plist",
            true,
        ),
        (
            "file-read-data",
            "/Library/Preferences/com.example.licence.plist",
            false,
        ),
        ("file-read-data", "/Library/Preferences", false),
        ("file-read-data", "/usr/lib/dyld", true),
        ("file-map-executable", "/usr/lib/dyld", true),
        ("file-write-data", "/usr/lib/dyld", false),
        (
            "file-read-data",
            "/Library/Keychains/System.keychain",
            false,
        ),
        ("file-write-data", "/dev/null", true),
        ("file-write-data", "/dev/disk0", false),
        ("file-read-data", "/dev/disk0", false),
        (
            "file-write-create",
            "/private/var/folders/x/outrigger-1/tmp/a",
            true,
        ),
        (
            "file-write-create",
            "/private/var/folders/x/outrigger-2/tmp/a",
            false,
        ),
        ("file-write-create", "/private/tmp/a", false),
        ("file-read-metadata", "/tmp", true),
        // Git's own.
        ("file-read-data", "/Users/me/src/app/.git/config", true),
        ("file-write-data", "/Users/me/src/app/.git/config", false),
        ("file-write-create", "/Users/me/src/app/.git", false),
        (
            "file-write-create",
            "/Users/me/src/app/.git/hooks/pre-commit",
            false,
        ),
        (
            "file-write-data",
            "/Users/me/src/app/vendor/lib/.git/index",
            false,
        ),
        ("file-write-unlink", "/Users/me/src/app/vendor/lib", false),
        (
            "file-write-create",
            "/Users/me/src/app/.husky/pre-commit",
            false,
        ),
    ] {
        assert_eq!(
            may(&command, operation, path),
            expected,
            "{operation} {path}"
        );
    }
}

#[test]
fn what_git_may_change_grows_with_its_access() {
    let at = |git| Command { git, ..command() };
    let index = "/Users/me/src/app/.git/index";
    let hook = "/Users/me/src/app/.git/hooks/pre-commit";
    let config = "/Users/me/src/app/.git/config";
    for (git, path, expected) in [
        (GitAccess::ReadOnly, index, false),
        (GitAccess::ExistingReadOnly, index, false),
        (GitAccess::Write, index, true),
        (GitAccess::Write, config, false),
        (GitAccess::Write, hook, false),
        (GitAccess::Create, index, true),
        (GitAccess::Create, hook, false),
        (GitAccess::Nested, config, true),
        (GitAccess::Nested, hook, false),
    ] {
        assert_eq!(
            may(&at(git), "file-write-data", path),
            expected,
            "{git:?} {path}"
        );
    }
}

#[test]
fn the_deeper_path_counts() {
    // The project lies in a folder that is denied, and has a secret of its own.
    let inside = Command {
        read_write: vec!["/Users/me/all".into(), "/Users/me/all/secrets/app".into()],
        hidden: vec![
            "/Users/me/all/secrets".into(),
            "/Users/me/all/secrets/app/.env".into(),
        ],
        ..command()
    };
    // A denied path that is a root at the same time stays denied.
    let both = Command {
        hidden: vec!["/Users/me/src/app".into()],
        ..command()
    };
    for (command, path, expected) in [
        (&inside, "/Users/me/all/x", true),
        (&inside, "/Users/me/all/secrets/x", false),
        (&inside, "/Users/me/all/secrets/app/x", true),
        (&inside, "/Users/me/all/secrets/app/.env", false),
        (&both, "/Users/me/src/app/x", false),
    ] {
        assert_eq!(may(command, "file-read-data", path), expected, "{path}");
    }
}

#[test]
fn paths_are_known_by_what_the_links_of_the_system_lead_to() {
    for (path, expected) in [
        ("/tmp", "/private/tmp"),
        ("/tmp/x", "/private/tmp/x"),
        ("/var/folders/x", "/private/var/folders/x"),
        ("/etc/hosts", "/private/etc/hosts"),
        ("/private/tmp/x", "/private/tmp/x"),
        ("/tmpfiles/x", "/tmpfiles/x"),
        ("/Users/tmp/x", "/Users/tmp/x"),
    ] {
        assert_eq!(real(Path::new(path)), Path::new(expected), "{path}");
    }
    let command = Command {
        read_write: vec!["/tmp/project".into()],
        ..command()
    };
    assert!(may(&command, "file-write-create", "/private/tmp/project/x"));
    assert!(!may(&command, "file-write-create", "/private/tmp/other"));
}

#[test]
fn no_name_of_a_file_becomes_a_part_of_the_profile() {
    for name in [
        "/Users/me/\") (allow default) (\"",
        "/Users/me/a b",
        "/Users/me/a\nb",
        "/Users/me/back\\slash\\\"",
        "/Users/me/a=b",
        "/Users/me/(param \"P0\")",
        "/Users/me/ünïcödé",
        "/Users/me/-D",
    ] {
        let odd = Command {
            read_write: vec![name.into()],
            hidden: vec![Path::new(name).join(".env")],
            cwd: name.into(),
            ..command()
        };
        let plain = Command {
            read_write: vec!["/Users/me/x".into()],
            hidden: vec!["/Users/me/x/.env".into()],
            cwd: "/Users/me/x".into(),
            ..command()
        };
        assert_eq!(profile(&odd), profile(&plain), "{name:?}");
        let arguments = confinement(&odd).arguments().unwrap();
        let given = |path: &str| {
            arguments
                .iter()
                .any(|it| it.to_str().unwrap().ends_with(path))
        };
        assert!(given(&format!("={name}")), "{name:?}");
        assert!(given(&format!("={name}/.env")), "{name:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_name_may_be_any_bytes() {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    let name = OsString::from_vec(b"/Users/me/\xff\xfe".to_vec());
    let command = Command {
        read_write: vec![name.into()],
        ..command()
    };
    let arguments = confinement(&command).arguments().unwrap();
    assert!(
        arguments
            .iter()
            .any(|it| it.as_bytes().ends_with(b"=/Users/me/\xff\xfe"))
    );
}

#[test]
fn the_network_is_off_unless_it_was_asked_for() {
    let (sender, _receiver) = tokio::sync::mpsc::channel(1);
    let with = |network, hosts| Command {
        network,
        hosts,
        ..command()
    };
    let some = Ports::Only(vec![22, 443]);
    for (command, has, lacks) in [
        (
            with(Network::Off, None),
            &[][..],
            &["network-", "system-socket", "trustd"][..],
        ),
        (
            with(Network::Host(some.clone()), None),
            &[
                "(remote tcp \"*:22\")",
                "(remote tcp \"*:443\")",
                "mDNSResponder",
                "(deny network-outbound (remote tcp \"*:4517\"))",
            ],
            &["tcp \"*:*\"", "network-inbound", "network-bind"],
        ),
        (
            with(Network::Outgoing(some.clone()), None),
            &["(remote tcp \"*:443\")"],
            &["tcp \"*:*\""],
        ),
        (
            with(Network::Host(Ports::Any), None),
            &["(remote tcp \"*:*\")"],
            &["network-inbound"],
        ),
        // Hosts are decided about, which the proxy does.
        (
            with(Network::Outgoing(some), Some(sender)),
            &["(allow network-outbound (remote tcp \"localhost:50123\"))\n"],
            &["\"*:", "mDNSResponder", "system-socket", "trustd"],
        ),
    ] {
        let profile = profile(&command);
        for part in has {
            assert!(profile.contains(part), "{part}: {profile}");
        }
        for part in lacks {
            assert!(!profile.contains(part), "{part}: {profile}");
        }
        let deny = profile.rfind("(deny network-outbound");
        let allow = profile.rfind("(allow network-outbound");
        assert!(
            deny >= allow || command.hosts.is_some(),
            "the daemon's own port is closed last: {profile}"
        );
    }
}

#[test]
fn more_paths_than_a_profile_can_name_are_refused() {
    let hidden = |count: usize| (0..count).map(|it| format!("/Users/me/src/app/{it}/.env").into());
    let some = Command {
        hidden: hidden(500).collect(),
        ..command()
    };
    let many = Command {
        hidden: hidden(MAX_PATHS).collect(),
        ..command()
    };
    assert!(confinement(&some).arguments().is_ok());
    assert_eq!(confinement(&many).arguments(), Err(TooMany));
}

#[test]
fn a_profile_has_its_brackets_in_order() {
    let command = Command {
        network: Network::Host(Ports::Any),
        ..command()
    };
    for line in profile(&command).lines() {
        let count = |it| line.matches(it).count();
        assert_eq!(count('('), count(')'), "{line}");
        assert!(line.starts_with('(') && line.ends_with(')'), "{line}");
        assert_eq!(line.matches('"').count() % 2, 0, "{line}");
    }
}

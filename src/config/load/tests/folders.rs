//! Further folders and caches for commands.

use super::*;

/// A home with some folders, and a configuration.
fn place(text: &str) -> Place {
    let place = toml(text);
    for folder in [
        "shared/inner",
        "src/library",
        ".ssh",
        ".config/x",
        "keys",
        "demo/inner",
    ] {
        fs::create_dir_all(place.path(folder)).expect("a folder");
    }
    fs::write(place.path("keys/openai"), "key").expect("a file");
    std::os::unix::fs::symlink("shared", place.path("link")).expect("a link");
    place
}

#[test]
fn folders_for_commands_are_taken_from_the_root_on_or_the_home() {
    let text = "[tools.bash]\nread_only = ['~/src/library/']\nread_write = ['~/shared', '~/keys']";
    let place = place(text);
    let bash = place.load().config.tools.bash;
    assert_eq!(bash.read_only, [place.path("src/library")]);
    assert_eq!(bash.read_write, [place.path("shared"), place.path("keys")]);
    assert!(bash.caches.is_empty());
    assert_eq!(bash.limits.disk, 2 << 30);
}

#[test]
fn what_is_no_folder_for_commands_is_refused_with_its_key() {
    let cases = [
        (
            "read_only = ['/']",
            "tools.bash.read_only",
            "whole file system",
        ),
        (
            "read_write = ['/etc/ssl']",
            "tools.bash.read_write",
            "folder /etc/ssl: it belongs to the system; name one of your own, such as one in the home",
        ),
        (
            "read_write = ['/usr/share']",
            "tools.bash.read_write",
            "belongs to the system",
        ),
        (
            "read_only = ['~']",
            "tools.bash.read_only",
            "folder ~: it holds the home directory",
        ),
        (
            "read_only = ['~/.ssh']",
            "tools.bash.read_only",
            "folder ~/.ssh: it is a folder for credentials",
        ),
        (
            "read_write = ['~/.config/x']",
            "tools.bash.read_write",
            "settings and credentials",
        ),
        (
            "read_write = ['~/link']",
            "tools.bash.read_write",
            "reached through a link",
        ),
        (
            "read_write = ['~/config.toml']",
            "tools.bash.read_write",
            "it is no folder",
        ),
        (
            "read_write = ['~/gone']",
            "tools.bash.read_write",
            "there is no such folder",
        ),
        (
            "read_write = ['shared']",
            "tools.bash.read_write",
            "from the root on",
        ),
        (
            "read_write = ['~/demo']",
            "tools.bash.read_write",
            "in the project",
        ),
        (
            "read_only = ['~/demo/inner']",
            "tools.bash.read_only",
            "in the project",
        ),
        (
            "read_write = ['~/shared', '~/shared']",
            "tools.bash.read_write",
            "named twice",
        ),
        (
            "read_write = ['~/shared']\nread_only = ['~/shared/inner']",
            "tools.bash.read_only",
            "of read_write is around it",
        ),
        (
            "read_only = ['~/keys']",
            "tools.bash.read_only",
            "what a variable names",
        ),
        (
            "caches = ['npn']",
            "tools.bash.caches",
            "\"npn\" is no cache that is known; allowed: npm, cargo, go,",
        ),
        (
            "limits = {disk = '1KiB'}",
            "tools.bash.limits.disk",
            "allowed: 1MiB to",
        ),
        (
            "limits = {disc = '1GiB'}",
            "tools.bash.limits.disc",
            "did you mean \"disk\"?",
        ),
    ];
    for (line, key, reason) in cases {
        let place = place(&format!("[tools.bash]\n{line}"));
        let keys = place.path("keys/openai");
        let variable = [("OPENAI_API_KEY_FILE", keys.to_str().expect("plain"))];
        let errors = place.with_environment(&variable).errors();
        assert!(
            errors.contains(key) && errors.contains(reason),
            "{line}: {errors}"
        );
    }
}

#[test]
fn what_the_daemon_keeps_is_out_of_reach() {
    let central = "[project]\ncentral = '~/store/mine'\n";
    let cases = [
        ("read_write = ['~/store']", "", "what MCP servers keep"),
        (
            "read_only = ['~/store/mine']",
            "",
            "the central storage is in it",
        ),
        (
            "read_only = ['~/logs']",
            "[audit]\npath = '~/logs/audit'",
            "the audit log",
        ),
    ];
    for (line, more, reason) in cases {
        let place = place(&format!("{central}[tools.bash]\n{line}\n{more}"));
        for folder in ["store/mine", "logs"] {
            fs::create_dir_all(place.path(folder)).expect("a folder");
        }
        let errors = place.errors();
        assert!(errors.contains(reason), "{line}: {errors}");
    }
    let mut place = place("[tools.bash]\nread_write = ['~/settings']");
    let file = place.write(
        "settings/outrigger.toml",
        "[tools.bash]\nread_write = ['~/settings']",
    );
    place.sources.config_file = Some(file);
    assert!(
        place.errors().contains("the configuration"),
        "{}",
        place.errors()
    );
}

use std::path::Path;

use super::super::{Surroundings, classify};
use super::Remembered;

fn key(line: &str) -> Option<Remembered> {
    let surroundings = Surroundings {
        project_root: Path::new("/home/ada/project"),
        central_root: Path::new("/home/ada/outrigger/projects/project"),
        home: Some(Path::new("/home/ada")),
        trusted_program: &|_| true,
        unhidden: None,
        secrets: crate::tests::secrets(),
    };
    classify(line, &surroundings).remembered
}

#[test]
fn one_command_is_its_words() {
    let words = |line: &str| key(line).unwrap().commands.concat();
    assert_eq!(words("mkdir -p 'a b'"), ["mkdir", "-p", "a b"]);
    assert_eq!(key("mkdir  -p \"a b\" "), key("mkdir -p 'a b'"));
    assert_ne!(key("mkdir a"), key("mkdir b"));
    assert_ne!(key("mkdir a b"), key("mkdir 'a b'"));
}

#[test]
fn what_joins_commands_is_part_of_the_approval() {
    let lines = [
        "touch a && touch b",
        "touch a || touch b",
        "touch a; touch b",
        "touch a | touch b",
        "touch a\ntouch b",
        "touch b && touch a",
        "touch a && touch b 2>/dev/null",
        "touch a",
    ];
    for (at, line) in lines.iter().enumerate() {
        let known = key(line);
        assert!(known.is_some(), "{line}");
        for other in lines.iter().skip(at + 1) {
            assert_ne!(known, key(other), "{line} / {other}");
        }
    }
}

/// Each of these can do something else tomorrow with the same words.
#[test]
fn what_words_do_not_tell_is_not_remembered() {
    for line in [
        "sqlite3 x.db <<'EOF'\nselect 1;\nEOF",
        "sqlite3 x.db <<< 'select 1'",
        "sqlite3 x.db < a.sql",
        "sqlite3 x.db",
        "cat <<'EOF'\nx\nEOF",
        "cat < x",
        "ed x",
        "patch -p1",
        "psql -f x.sql",
        "./x.sh",
        "scripts/ls",
        "/home/ada/project/ls",
        "/bin/ls",
        "tsx x.ts",
        "ts-node x.ts",
        "node x.js",
        "deno run x.ts",
        "bun x.ts",
        "gradle build",
        "./gradlew build",
        "mvn package",
        "cargo run",
        "cargo test",
        "cargo build",
        "go test ./...",
        "pytest",
        "make",
        "npm test",
        "yarn build",
        "git commit -m x",
        "git status",
        "docker build .",
        "ld.so ./x",
        "ld-linux-x86-64.so.2 ./x",
        "/lib64/ld-linux-x86-64.so.2 ./x",
        "env touch a",
        "nice touch a",
        "command touch a",
        "xargs touch",
        "timeout 1 touch a",
        "bash -c 'touch a'",
        "python3 x.py",
        "unheard-of-program x",
        "touch $X",
        "A=1 touch a",
        "touch a > b",
        "(touch a)",
        "touch a &",
        "if touch a; then touch b; fi",
        "f() { touch a; }; f",
        "touch a && ./x.sh",
        "touch a | sh",
        "rm -rf src",
        "sudo ls",
        "diff -l a b",
        "",
    ] {
        assert_eq!(key(line), None, "{line}");
    }
}

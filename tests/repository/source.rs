//! Rules about source files that no lint knows.

use super::support::{program, sources};

/// The most lines of a file.
const MOST_LINES: usize = 500;

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = program()
        .into_iter()
        .filter(|file| file.text.lines().count() > MOST_LINES)
        .map(|file| file.path)
        .collect();
    assert_eq!(long, Vec::<String>::new(), "files over {MOST_LINES} lines");
}

/// What must not be in the program's code, whatever a lint can find.
const NEVER: &[(&str, &str)] = &[
    (".unwrap()", "say why it holds with `expect`, or handle it"),
    ("todo!(", "do it"),
    ("unimplemented!(", "do it"),
    ("dbg!(", "use tracing"),
    ("#[allow(", "use #[expect(…, reason = …)]"),
    ("#[ignore", "a test that does not run is none"),
    ("unbounded_channel", "bound it by a named constant"),
    ("set_var(", "another thread may be reading; pass the value"),
    ("TODO", "do it, or name an issue"),
    ("FIXME", "mend it, or name an issue"),
];

#[test]
fn nothing_forbidden_is_in_the_code() {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            NEVER
                .iter()
                .filter(|(word, _)| source.text.contains(word))
                .map(|(word, instead)| format!("{}: {word} ({instead})", source.path))
        })
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

/// What a module that says that it is pure must not name.
const IMPURE: &[&str] = &[
    "tokio::",
    "std::fs",
    "std::net",
    "std::process",
    "std::env::var",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "getrandom",
];

#[test]
fn what_says_that_it_is_pure_is() {
    let mut pure = 0;
    let mut found = Vec::new();
    let says_so: Vec<String> = program()
        .into_iter()
        .filter(|file| head(&file.text).ends_with("Pure."))
        .map(|file| file.path)
        .collect();
    for source in sources().iter().filter(|file| says_so.contains(&file.path)) {
        pure += 1;
        let words = IMPURE.iter().filter(|word| source.text.contains(*word));
        found.extend(words.map(|word| format!("{}: {word}", source.path)));
    }
    assert!(pure > 10, "only {pure} modules were looked at");
    assert_eq!(found, Vec::<String>::new());
}

/// The first paragraph of a module's documentation, in one line.
fn head(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    lines.join(" ")
}

/// Modules that reach files and processes through `sandbox` only.
const CONFINED: &[&str] = &[
    "src/classifier",
    "src/connection",
    "src/conversation",
    "src/exchange",
    "src/mcp",
    "src/message",
    "src/permission",
    "src/protocol",
    "src/session",
    "src/tool",
];

#[test]
fn tools_reach_files_and_processes_through_the_sandbox() {
    let ways = ["std::fs::", "tokio::fs", "std::process", "tokio::process"];
    let found: Vec<String> = sources()
        .iter()
        .filter(|source| {
            CONFINED
                .iter()
                .any(|module| source.path.starts_with(module))
        })
        .flat_map(|source| {
            source
                .text
                .lines()
                // A file that `sandbox` opened has this type.
                .filter(|line| {
                    ways.iter().any(|way| line.contains(way)) && line.trim() != "use std::fs::File;"
                })
                .map(|line| format!("{}: {}", source.path, line.trim()))
        })
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

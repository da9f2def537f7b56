//! What the documents name is there: links, headings, commands, files.

use clap::Parser as _;
use outrigger::arguments::Arguments;

use super::support::{File, files, read, root};

fn documents() -> Vec<File> {
    let mut documents = files("docs", "md");
    for path in [
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "clients/typescript/README.md",
        "clients/npm/README.md",
        "clients/python/README.md",
        "crates/outrigger-sandbox/README.md",
        "crates/outrigger-shell/README.md",
        "crates/outrigger-store/README.md",
    ] {
        documents.push(File {
            path: path.to_owned(),
            text: read(path),
        });
    }
    documents
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for document in documents() {
        for target in links(&document.text) {
            if target.contains("://") {
                continue;
            }
            followed += 1;
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = document
                .path
                .rsplit_once('/')
                .map_or("", |(folder, _)| folder);
            let path = match path {
                "" => root().join(&document.path),
                path => root().join(folder).join(path),
            };
            let found = if heading.is_empty() {
                path.exists()
            } else {
                std::fs::read_to_string(&path)
                    .is_ok_and(|text| anchors(&text).contains(&heading.to_owned()))
            };
            if !found {
                broken.push(format!("{}: {target}", document.path));
            }
        }
    }
    assert!(followed > 30, "only {followed} links were found");
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn tests_that_are_named_are_there() {
    let sources: Vec<File> = ["src", "crates", "tests"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect();
    let document = read("docs/store.md");
    let words = document.split('`').skip(1).step_by(2);
    let is_test = |word: &&str| {
        let plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        word.chars().all(plain) && word.matches('_').count() > 1 && !word.starts_with("outrigger_")
    };
    let named: Vec<&str> = words.filter(is_test).collect();
    assert!(named.len() > 20, "only {} were found", named.len());
    let is_missing = |name: &&str| {
        let function = format!("fn {name}(");
        !sources.iter().any(|file| file.text.contains(&function))
    };
    let missing: Vec<&str> = named.into_iter().filter(is_missing).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Targets of `[text](target)` outside of code.
fn links(text: &str) -> Vec<&str> {
    let code = |line: &&str| !line.starts_with("    ");
    text.lines()
        .filter(code)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// The anchors that headings get: lower case, blanks as hyphens, punctuation gone.
fn anchors(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

#[test]
fn commands_of_the_program_parse() {
    let mut parsed = 0;
    for document in documents() {
        for line in commands(&document.text) {
            let words: Vec<&str> = line
                .split_whitespace()
                .skip_while(|word| word.contains('=') && !word.starts_with('-'))
                .take_while(|word| !word.starts_with('#'))
                .collect();
            if words.first() != Some(&"outrigger") {
                continue;
            }
            parsed += 1;
            if let Err(error) = Arguments::try_parse_from(&words) {
                panic!("{}: `{line}`: {error}", document.path);
            }
        }
    }
    assert!(parsed >= 4, "only {parsed} commands were found");
}

/// Lines of indented code.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("    "))
}

#[test]
fn files_that_are_named_are_there() {
    let mut missing = Vec::new();
    for document in documents() {
        for named in document.text.split('`').skip(1).step_by(2) {
            let beginnings = [
                "src/",
                "crates/",
                "tests/",
                "config/",
                "docs/",
                ".ci/",
                "benches/",
                "fuzz/",
                "fixtures/",
                "clients/",
                "release/",
            ];
            let is_path = beginnings
                .iter()
                .any(|beginning| named.starts_with(beginning))
                && !named.contains([' ', '{', '*']);
            // A crate's README names the crate's own files.
            let beside = root().join(&document.path).with_file_name(named);
            if is_path && !root().join(named).exists() && !beside.exists() {
                missing.push(format!("{}: {named}", document.path));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn transcripts_are_frames_of_the_contract() {
    let schema = outrigger::protocol::schema::schema();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut checked = 0;
    for document in documents() {
        for line in commands(&document.text) {
            let Some(text) = line.strip_prefix("< ").or_else(|| line.strip_prefix("> ")) else {
                continue;
            };
            // What is cut says so, and what is broken on purpose is answered by an error.
            let Ok(mut frame) = serde_json::from_str::<serde_json::Value>(text) else {
                continue;
            };
            if text.contains('…')
                || text.contains("chat:sendd")
                || text == r#"{"type":"chat:send"}"#
            {
                continue;
            }
            // The documents leave out when an event was.
            if line.starts_with('<')
                && text.contains("\"payload\"")
                && frame.get("timestamp").is_none()
            {
                frame["timestamp"] = "2026-11-20T12:00:00.000Z".into();
            }
            checked += 1;
            let wrong: Vec<String> = validator
                .iter_errors(&frame)
                .map(|error| error.to_string())
                .collect();
            assert!(wrong.is_empty(), "{}: {text}: {wrong:?}", document.path);
        }
    }
    assert!(checked > 40, "only {checked} frames were found");
}

/// What the console page shows as an escape is what the daemon does: two programs, one list. What the deny list does not
/// see in a name, nobody else sees either.
#[test]
fn the_lists_of_hidden_characters_agree() {
    let list = read("clients/console/src/visible.js");
    let (_, list) = list.split_once("const RANGES = [").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let numbers: Vec<u32> = list
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let mut listed = vec![false; 0x11_0000];
    for range in numbers.chunks_exact(2) {
        listed[range[0] as usize..=range[1] as usize].fill(true);
    }
    let mut others = Vec::new();
    // All planes that Unicode 16 has characters in, and some of the rest.
    let is_looked_at =
        |c: &char| matches!(u32::from(*c) >> 16, 0..=3 | 14) || u32::from(*c) % 251 == 0;
    for c in ('\0'..=char::MAX).filter(is_looked_at) {
        let code = u32::from(c);
        let shown = listed[code as usize];
        assert_eq!(shown, outrigger::classifier::is_hidden(c), "U+{code:04X}");
        if !shown {
            others.push(c.to_string());
        }
    }
    // Many at once, for there are many: a piece that is empty is looked at again, alone.
    let is_removed = |c: &str| outrigger::sandbox::deny::fold(c).is_empty();
    for some in others.chunks(1_000) {
        let folded = outrigger::sandbox::deny::fold(&some.join("/"));
        if folded.split('/').any(str::is_empty) {
            let removed = some.iter().find(|c| is_removed(c));
            assert_eq!(removed, None);
        }
    }
}
